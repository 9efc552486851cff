//! Resolves names: tables and their schemas, variables and their types.

pub mod names;
mod scope;
pub(crate) mod user_types;

pub use scope::{Fired, Scope};
