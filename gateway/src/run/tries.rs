//! The TRY blocks that are open around an error.

use crate::tds::tokens::message::ServerMessage;

#[derive(Debug, Default)]
pub struct Tries {
    /// The number of open blocks.
    pub open: usize,
    /// The number of them outside of the running text.
    pub outside: usize,
    /// The errors that the running CATCH blocks have caught, the innermost last.
    pub caught: Vec<ServerMessage>,
}

impl Tries {
    pub fn are_open(&self) -> bool {
        self.open > 0
    }

    /// The error for error_number() and related functions.
    pub fn caught(&self) -> Option<&ServerMessage> {
        self.caught.last()
    }
}
