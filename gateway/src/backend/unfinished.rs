//! The reasons for which a statement on PostgreSQL did not complete.

use crate::client::SessionError;
use crate::interrupt::{Failure, Interrupt};
use crate::postgres::commit::Outcome;
use crate::postgres::message::PgColumn;
use crate::postgres::PgError;
use crate::tds::tokens::message::ServerMessage;
use std::sync::Arc;

/// The outcome, with the last row and its columns if the rows were not for the client.
pub struct Completed {
    pub outcome: Outcome,
    pub columns: Arc<[PgColumn]>,
}

/// Why there is no result.
pub enum Unfinished {
    /// PostgreSQL refused the statement without any effect: it can be tried again.
    Refused(PgError),
    Failed(PgError),
    /// A value cannot be sent to PostgreSQL or to this client; the statement was given up.
    Unsendable(ServerMessage),
    /// The client cancelled.
    Cancelled,
    Session(SessionError),
}

impl From<PgError> for Unfinished {
    fn from(error: PgError) -> Unfinished {
        Unfinished::Failed(error)
    }
}

impl From<std::io::Error> for Unfinished {
    fn from(error: std::io::Error) -> Unfinished {
        Unfinished::Failed(error.into())
    }
}

impl From<SessionError> for Unfinished {
    fn from(error: SessionError) -> Unfinished {
        Unfinished::Session(error)
    }
}

impl From<Unfinished> for Interrupt {
    /// The interrupt for a statement of a text.
    fn from(unfinished: Unfinished) -> Interrupt {
        match unfinished {
            Unfinished::Refused(error) | Unfinished::Failed(error) => (&error).into(),
            Unfinished::Unsendable(message) => Failure::of_value(message).into(),
            Unfinished::Cancelled => Interrupt::Cancelled,
            Unfinished::Session(error) => Interrupt::Session(error),
        }
    }
}
