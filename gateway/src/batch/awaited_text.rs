//! The parameters of a `writetext bulk`, for the text that follows it.

use super::variables::Variables;
use crate::postgres::message::PgColumn;
use crate::program::Sql;

/// A text that follows in the client's next message.
pub struct AwaitedText {
    pub(super) change: Sql,
    /// The values that the statement names.
    pub(super) named: Variables<'static>,
    pub(super) column: PgColumn,
}
