//! Errors of cursors.

use crate::interrupt::Interrupt;
use crate::tds::tokens::message::ServerMessage;

/// The number of 34000, invalid_cursor_name, in `facts::errors`: a rollback has closed the cursor.
pub const NOT_OPEN: i32 = 16917;

/// Whether the cursor no longer exists in PostgreSQL.
pub fn is_taken(interrupt: &Interrupt) -> bool {
    matches!(interrupt, Interrupt::Failed(failure) if failure.message.number == NOT_OPEN)
}

pub fn no_such_cursor(name: &str) -> ServerMessage {
    ServerMessage::error(16916, 16, format!("A cursor with the name '{name}' does not exist."))
}

pub fn not_open() -> ServerMessage {
    ServerMessage::error(NOT_OPEN, 16, "Cursor is not open.")
}
