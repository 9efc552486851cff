//! The nesting of the running texts, procedures and TRY blocks.

use crate::interrupt::status_after;
use crate::tds::dialect::Dialect;
use crate::tds::tokens::message::ServerMessage;
use tsql::long_names::LongNames;

#[derive(Default)]
pub struct Nesting {
    /// The depth of the running text: @@nestlevel and one.
    pub depth: u8,
    /// The procedure whose statements run; None in a batch, and in a text inside a procedure.
    pub running: Option<Running>,
    /// The long names of the running text.
    pub long_names: LongNames,
    /// The table variables of the running texts.
    pub tables: Vec<String>,
    /// The highest severity of the errors sent to the client since the start of the procedure; 0 for none.
    pub worst: u8,
    /// The number of open TRY blocks.
    pub tries: usize,
    /// The number of them outside of the running text.
    pub tries_outside: usize,
    /// The errors that the running CATCH blocks have caught, the innermost last.
    pub caught: Vec<ServerMessage>,
}

/// A running procedure.
#[derive(Debug)]
pub struct Running {
    pub name: String,
    pub oid: u32,
    /// The value of RETURN.
    pub status: Option<i32>,
}

impl Running {
    /// The return status. Without a RETURN it is 0, or follows from the worst error.
    pub fn status(&self, worst: u8) -> i32 {
        match (self.status, worst) {
            (Some(status), _) => status,
            (None, 0) => 0,
            (None, worst) => status_after(worst),
        }
    }
}

impl Nesting {
    /// 217: procedures and texts nest too deeply (SQL Server: "@@NESTLEVEL"; ASE: "@@nestlevel").
    pub fn check(&self, dialect: &Dialect) -> Result<(), ServerMessage> {
        let limit = if dialect.is_tds7() { 32 } else { 16 };
        if self.depth <= limit {
            return Ok(());
        }
        let text = format!(
            "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit {limit})."
        );
        Err(ServerMessage::error(217, 16, text))
    }

    /// Notes an error, for the return status of its procedure.
    pub fn note(&mut self, error: &ServerMessage) {
        self.worst = self.worst.max(error.severity);
    }

    /// A message with the line of its statement and the procedure that contains it.
    pub fn located(&self, message: ServerMessage, line: u32) -> ServerMessage {
        let message = ServerMessage { line, ..message };
        match &self.running {
            Some(running) => message.in_procedure(&running.name),
            None => message,
        }
    }
}
