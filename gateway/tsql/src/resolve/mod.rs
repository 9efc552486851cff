//! Resolves names: tables and their schemas, variables and their types.

pub mod names;
mod scope;

pub use scope::{Fired, Scope};
