//! The parameters of a `writetext bulk`, for the text that follows it.

use super::variables::Variables;
use crate::postgres::message::PgColumn;
use crate::program::Sql;

/// A text that follows in the client's next message.
pub struct AwaitedText {
    pub change: Sql,
    /// The values that the statement names.
    pub named: Variables<'static>,
    pub column: PgColumn,
}
