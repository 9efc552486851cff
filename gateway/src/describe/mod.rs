//! Descriptions of results, parameters and types, which clients request without running a statement.

mod browsed;
mod datatypes;
mod first_result;
mod table_keys;
mod undeclared;

pub use browsed::browsed;
pub use datatypes::{datatype_info, Known};
pub use first_result::{describe_first, type_in};
pub use table_keys::{column_names, own_name, unique_key};
pub use undeclared::describe_undeclared;
