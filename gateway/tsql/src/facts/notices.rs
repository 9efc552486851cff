//! The SQLSTATEs of notices from procedures in PostgreSQL: result sets, row counts, errors
//! (docs/explanation/gateway.md, "Procedures with several results").

/// A result set: the message is the name of its cursor. The detail may be a JSON list of names for its columns; a name
/// in an inner list is that of a table's column. With `nocount` in the hint its row count is not sent, with [`WIDE`] its
/// texts may contain any character.
pub const RESULT_SET: &str = "01R01";
pub const WIDE: &str = "wide";
/// A row count: the message. The detail is `select` for an assignment to variables, `trigger` for a change by a
/// trigger's statement, `nocount` if a caller has set nocount on.
pub const ROW_COUNT: &str = "01R02";
/// An error or message with its own number, after which the procedure continues. The detail has number, severity,
/// state, line and procedure.
pub const NUMBERED: &str = "01R03";
/// @@error after the call of a procedure.
pub const LEFT_ERROR: &str = "01R04";
/// The value of @@rowcount after a procedure, if its latest number of rows or result set does not determine it.
pub const LEFT_ROWS: &str = "01R05";
/// A procedure has caught an error that leaves the transaction of its caller uncommittable.
pub const DOOMED: &str = "01R06";
/// The end of a statement without a row count. The detail is `failed` if its error was sent, `nocount` if a caller has
/// set nocount on.
pub const ENDED: &str = "01R07";
/// The error of a call for the TRY block around it, which has rolled nothing back. The detail is that of [`NUMBERED`].
pub const HANDED_OVER: &str = "01R08";

/// The SQLSTATEs of notices.
pub const NOTICES: [&str; 8] =
    [RESULT_SET, ROW_COUNT, NUMBERED, LEFT_ERROR, LEFT_ROWS, DOOMED, ENDED, HANDED_OVER];

/// An error with the detail of [`NUMBERED`], which ends the procedure.
pub const RAISED: &str = "TS001";
