//! Errors of statements: what one of them ends, and how it comes to a CATCH.
//!
//! After most errors T-SQL goes on with the next statement. Errors of compiling a statement end the batch or
//! the procedure it stands in; a value that cannot be converted and a deadlock end everything and undo the
//! transaction (SQL Server: "Database Engine error severities" and TRY...CATCH, "Errors unaffected by a
//! TRY...CATCH construct"; ASE: set arithabort arith_overflow).

use super::SessionError;
use crate::postgres::PgError;
use crate::tds::tokens::message::ServerMessage;

/// What an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Statement,
    /// The batch or the text it stands in. A CATCH of the same text does not see it.
    Text,
    /// Every text around it too, when nothing catches it.
    Batch,
    /// The same, and the transaction is undone.
    Transaction,
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub message: ServerMessage,
    pub ends: Ends,
}

/// Why a statement does not come to its end.
#[derive(Debug)]
pub enum Stop {
    Failed(Failure),
    /// The client has cancelled.
    Cancelled,
    Session(SessionError),
}

impl Failure {
    pub fn of_statement(message: ServerMessage) -> Failure {
        Failure { message, ends: Ends::Statement }
    }

    /// A value's that is not what a variable is.
    pub fn of_value(message: ServerMessage) -> Failure {
        let ends = if message.number == 8114 { Ends::Transaction } else { Ends::Statement };
        Failure { message, ends }
    }

    /// A call's: what was wrong inside the procedure has ended there.
    pub fn of_call(error: &PgError) -> Failure {
        let failure = Failure::from(error);
        let ends = if failure.ends == Ends::Text { Ends::Statement } else { failure.ends };
        Failure { ends, ..failure }
    }
}

impl From<ServerMessage> for Failure {
    fn from(message: ServerMessage) -> Failure {
        let ends = match message.number {
            1205 | 241 | 242 | 244 | 245 | 248 | 8114 => Ends::Transaction,
            // syntax and names; the compiler; no such database
            100..=199 | 206..=209 | 213 | 257 | 260 | 911 | 2715 | 8120 | 8623 => Ends::Text,
            217 | 3930 => Ends::Batch,
            _ => Ends::Statement,
        };
        Failure { message, ends }
    }
}

impl From<&PgError> for Failure {
    fn from(error: &PgError) -> Failure {
        let message = error.to_message();
        let ends = match error.sqlstate() {
            // THROW in a procedure
            Some("TS001") if message.number >= 50000 => Ends::Batch,
            // raised by T-SQL itself, under its own number
            Some(state) if state.starts_with('S') || state == "TS001" => return message.into(),
            _ if error.is_fatal() => Ends::Batch,
            None => Ends::Batch,
            Some("40001" | "40P01" | "22P02" | "22P03" | "22007" | "22008" | "22023") => Ends::Transaction,
            // insufficient_privilege; objects that are there already
            Some("42501" | "42P07" | "42710" | "42723") => Ends::Statement,
            Some("57014") => Ends::Batch,
            Some(state) if state.starts_with("42") || matches!(state, "3F000" | "3D000") => Ends::Text,
            Some(_) => Ends::Statement,
        };
        Failure { message, ends }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl From<ServerMessage> for Stop {
    fn from(message: ServerMessage) -> Stop {
        Stop::Failed(message.into())
    }
}

impl From<&PgError> for Stop {
    fn from(error: &PgError) -> Stop {
        Stop::Failed(error.into())
    }
}

impl From<SessionError> for Stop {
    fn from(error: SessionError) -> Stop {
        Stop::Session(error)
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
