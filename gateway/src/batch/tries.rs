//! Where an error stands among TRY blocks.

use crate::tds::tokens::message::ServerMessage;

#[derive(Debug, Default)]
pub struct Tries {
    /// How many are open.
    pub open: usize,
    /// How many of them are outside of the text that runs.
    pub outside: usize,
    /// What the CATCH blocks that run have caught, the innermost last.
    pub caught: Vec<ServerMessage>,
}

impl Tries {
    pub fn are_open(&self) -> bool {
        self.open > 0
    }

    /// What error_number() and the like return the parts of.
    pub fn caught(&self) -> Option<&ServerMessage> {
        self.caught.last()
    }
}
