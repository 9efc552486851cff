//! Answers a client's requests: sp_executesql, prepared and dynamic statements, and the other system procedures that the
//! gateway itself implements.

mod dynamic;
mod options;
mod parameterised;
mod prepared;
mod requests;
mod system_procedures;

pub use parameterised::{handle, no_such_handle, statement_of, text_of};
pub use prepared::{Prepared, PreparedStatements, Target};
pub use system_procedures::{CursorProcedure, SystemProcedure};
