//! The SQLSTATEs of notices from procedures in PostgreSQL: result sets, row counts, errors (docs/explanation/gateway.md,
//! "Procedures with several results").

/// A result set: the message is the name of its cursor. The detail may be a JSON list of names for its columns; a name
/// in brackets of its own is that of a table's column. With a hint `nocount` its number of rows is not sent.
pub const RESULT_SET: &str = "01R01";
/// A number of rows: the message. The detail `select` says that they gave variables their values, `trigger` that a
/// trigger's statement has changed them, `nocount` that a caller has set nocount on.
pub const ROW_COUNT: &str = "01R02";
/// An error or message with a number of its own, after which the procedure continues. The detail has number, severity,
/// state, line and procedure.
pub const NUMBERED: &str = "01R03";
/// The error that a procedure leaves behind: @@error after its call.
pub const LEFT_ERROR: &str = "01R04";
/// The value of @@rowcount after a procedure, if its latest number of rows or result set does not determine it.
pub const LEFT_ROWS: &str = "01R05";
/// A procedure has caught an error that leaves the transaction of its caller uncommittable.
pub const DOOMED: &str = "01R06";
/// The end of a statement without a number of rows. The detail `failed`: of one whose error was sent; `nocount`: a caller has
/// set nocount on.
pub const ENDED: &str = "01R07";
/// The error of a call for the TRY block around it, which has undone nothing. The detail is that of [`NUMBERED`].
pub const HANDED_OVER: &str = "01R08";

/// Those of notices.
pub const NOTICES: [&str; 8] =
    [RESULT_SET, ROW_COUNT, NUMBERED, LEFT_ERROR, LEFT_ROWS, DOOMED, ENDED, HANDED_OVER];

/// An error with the detail of [`NUMBERED`], which ends the procedure.
pub const RAISED: &str = "TS001";
