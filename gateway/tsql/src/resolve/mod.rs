//! Resolves names: tables and their schemas, variables and their types.

mod changing;
pub mod names;
mod scope;
pub(crate) mod user_types;

pub(crate) use changing::{changing, defined_tables};
pub use scope::{Fired, Scope};
