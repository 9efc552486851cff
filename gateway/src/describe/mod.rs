//! Descriptions of results, parameters and types, which clients request without running a statement.

mod browsed;
mod datatypes;
mod first_result;
mod table_keys;
mod undeclared;

pub use datatypes::{datatype_info, Known};
pub use table_keys::own_name;
