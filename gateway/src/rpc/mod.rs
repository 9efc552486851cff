//! Answers a client's requests: sp_executesql, prepared and dynamic statements, and the other system procedures that the
//! gateway itself implements.

mod dynamic;
mod options;
mod parameterised;
mod params;
mod prepared;
mod requests;
mod system_procedures;

pub use params::{bound, prepare, prepared_as, statement_of, target_of, text_of};
pub use prepared::{Prepared, PreparedStatements, Target};
pub use requests::{answer, answer_planned};
pub use system_procedures::{CursorProcedure, SystemProcedure};
