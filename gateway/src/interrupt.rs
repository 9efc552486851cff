//! Interruptions of work for a client: the error, and the unit (statement, text, batch, transaction) that it ends.

use crate::client::SessionError;
use crate::limits::memory::NO_MEMORY;
use crate::postgres::PgError;
use crate::tds::tokens::message::ServerMessage;
use tsql::facts::errors;
use tsql::facts::notices::RAISED;

pub use tsql::facts::errors::Ends;

#[derive(Debug)]
pub enum Interrupt {
    Failed(Failure),
    /// The client has cancelled; this is not acknowledged yet.
    Cancelled,
    Session(SessionError),
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub message: ServerMessage,
    pub ends: Ends,
    pub stage: Stage,
    /// The return status of the ended procedure.
    pub status: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Raised,
    /// Raised for a statement that was written for other declarations of its tables, and has not run.
    Outdated,
    /// Raised, but not caught by any CATCH: the gateway does not support the statement.
    Refused,
    /// On its way to the CATCH around it.
    Thrown,
    /// Sent to the client; the unit that it ends is being left.
    Reported,
}

impl Failure {
    fn new(message: ServerMessage, ends: Ends) -> Failure {
        // a loop would repeat it
        let ends = if message.number == NO_MEMORY { Ends::Batch } else { ends };
        Failure { message, ends, stage: Stage::Raised, status: None }
    }

    pub fn of_statement(message: ServerMessage) -> Failure {
        Failure::new(message, Ends::Statement)
    }

    pub fn of_batch(message: ServerMessage) -> Failure {
        Failure::new(message, Ends::Batch)
    }

    /// For a value that does not fit its variable.
    pub fn of_value(message: ServerMessage) -> Failure {
        let ends = match errors::ends(message.number) {
            Ends::Transaction => Ends::Transaction,
            _ => Ends::Statement,
        };
        Failure::new(message, ends)
    }

    /// Continues after a reported error: with the next statement (Ok), or with the interrupt of the unit that it ends.
    pub fn leave(self) -> Result<(), Interrupt> {
        match self.ends {
            Ends::Statement => Ok(()),
            _ => Err(self.into()),
        }
    }

    /// For a call: errors inside the procedure have ended there.
    pub fn of_call(error: &PgError) -> Failure {
        let failure = Failure::from(error);
        let ends = if failure.ends == Ends::Text { Ends::Statement } else { failure.ends };
        let has_run = !failure.message.procedure.is_empty();
        let status = has_run.then(|| status_after(failure.message.severity));
        Failure { ends, status, ..failure }
    }
}

/// The default return status of a procedure after an error of this severity: 10 minus it, from -1 to -14 (SQL
/// Server 6.5, "Return Status Values"; ASE Reference Manual, "return").
pub fn status_after(severity: u8) -> i32 {
    10 - i32::from(severity.min(24))
}

impl From<ServerMessage> for Failure {
    fn from(message: ServerMessage) -> Failure {
        let ends = errors::ends(message.number);
        Failure::new(message, ends)
    }
}

impl From<&PgError> for Failure {
    fn from(error: &PgError) -> Failure {
        let message = error.to_message();
        let ends = match error.sqlstate() {
            _ if error.is_in_trigger() => Ends::Transaction,
            // THROW in a procedure
            Some(RAISED) if message.number >= 50000 => Ends::Batch,
            // an error of T-SQL itself, with its own number
            Some(state) if state.starts_with('S') || state == RAISED => errors::ends(message.number),
            _ if error.is_fatal() => Ends::Batch,
            None => Ends::Batch,
            Some(state) => errors::sqlstate_ends(state),
        };
        let stage = if error.is_outdated() { Stage::Outdated } else { Stage::Raised };
        Failure { stage, ..Failure::new(message, ends) }
    }
}

impl From<Failure> for Interrupt {
    fn from(failure: Failure) -> Interrupt {
        Interrupt::Failed(failure)
    }
}

impl From<ServerMessage> for Interrupt {
    fn from(message: ServerMessage) -> Interrupt {
        Interrupt::Failed(message.into())
    }
}

impl From<&PgError> for Interrupt {
    fn from(error: &PgError) -> Interrupt {
        Interrupt::Failed(error.into())
    }
}

impl From<SessionError> for Interrupt {
    fn from(error: SessionError) -> Interrupt {
        Interrupt::Session(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::Notice;

    fn ends(sqlstate: &str) -> Ends {
        let notice = Notice { sqlstate: sqlstate.into(), ..Notice::default() };
        Failure::from(&PgError::Server(Box::new(notice))).ends
    }

    #[test]
    fn what_an_error_ends() {
        for (sqlstate, expected) in [
            ("23505", Ends::Statement),
            ("22012", Ends::Statement),
            ("42501", Ends::Statement),
            ("42P01", Ends::Text),
            ("42601", Ends::Text),
            ("S0245", Ends::Transaction),
            ("S0512", Ends::Statement),
            ("22P02", Ends::Transaction),
            ("40P01", Ends::Transaction),
        ] {
            assert_eq!(ends(sqlstate), expected, "{sqlstate}");
        }
        let lost = PgError::Io(std::io::ErrorKind::UnexpectedEof.into());
        assert_eq!(Failure::from(&lost).ends, Ends::Batch);
    }
}
