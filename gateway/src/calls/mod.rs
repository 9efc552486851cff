//! Calls of PostgreSQL's functions and procedures: name resolution, binding, group commit, outputs.

mod elsewhere;
mod name;
mod procedures;
mod refusals;
mod returned;
mod shared;
mod system;

pub use name::ProcedureName;
pub use procedures::Procedures;
pub use returned::{end_failed, end_failed_inside, Form, OutputValue, Returned};
