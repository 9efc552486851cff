//! The client's transaction. BEGIN reaches PostgreSQL only with the first statement that needs it, so that
//! drivers that begin one at once hold nothing there.

use super::{Session, SessionError};
use crate::gateway::Because;
use crate::postgres::PgError;
use crate::tds::call as wire_call;
use crate::tds::tokens::envchange::{self, Transaction as Change};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::wire::WireError;
use tokio::io::{AsyncRead, AsyncWrite};

/// The client's savepoints have numbers in PostgreSQL, where a long name would be cut.
const SAVEPOINT: &str = "client_savepoint_";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// @@trancount
    pub depth: i32,
    /// PostgreSQL has a transaction open.
    pub started: bool,
    /// The depth that PostgreSQL has been told of.
    pub told: i32,
    /// The name it was begun with, or "".
    name: String,
    /// Names of the client's savepoints, oldest first. The same name may come again.
    savepoints: Vec<String>,
}

impl Transaction {
    pub fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Begins it, or one more level of it. `name` is "" for none.
    pub fn begin(&mut self, name: &str) {
        self.depth += 1;
        if self.depth == 1 {
            name.clone_into(&mut self.name);
        }
    }

    pub fn end(&mut self) {
        *self = Transaction::default();
    }

    /// Whether a rollback to `name` means all of it.
    pub fn is_named(&self, name: &str) -> bool {
        name.is_empty() || self.name.eq_ignore_ascii_case(name)
    }

    /// The number of the client's latest savepoint of this name.
    pub fn savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|known| known.eq_ignore_ascii_case(name))
    }

    /// The number that the next savepoint will have.
    pub fn next_savepoint(&self) -> usize {
        self.savepoints.len()
    }

    pub fn saved(&mut self, name: &str) {
        self.savepoints.push(name.to_owned());
    }

    /// Forgets the savepoints made after number `savepoint`, as PostgreSQL has when it went back there.
    pub fn went_back_to(&mut self, savepoint: usize) {
        self.savepoints.truncate(savepoint + 1);
        self.told = 0;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// `name` is "" for none.
    pub(super) fn begin(&mut self, name: &str) {
        self.transaction.begin(name);
        if self.transaction.depth == 1 {
            self.own_catalogue = None;
            self.put_transaction(Change::Begun);
        }
    }

    pub(super) async fn commit(&mut self) -> Result<(), ServerMessage> {
        match self.transaction.depth {
            0 if self.client.dialect.is_tds7() && !self.settings.implicit_transactions => {
                return Err(ServerMessage::error(
                    3902,
                    16,
                    "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                ));
            }
            0 => return Ok(()),
            1 => {}
            _ => {
                self.transaction.depth -= 1;
                return Ok(());
            }
        }
        let started = self.transaction.started;
        self.transaction.end();
        self.put_transaction(Change::Committed);
        if !started {
            return Ok(());
        }
        let committed = match self.backend.open(&self.database).await {
            Ok(open) => open.connection.commit().await,
            Err(error) => Err(error),
        };
        match committed {
            Ok(true) => {
                if self.own_catalogue.take().is_some() {
                    self.gateway.reload_catalogue(Because::Changed).await;
                }
                Ok(())
            }
            Ok(false) => {
                self.backend.rolled_back();
                Err(ServerMessage::error(
                    3930,
                    16,
                    "The transaction had failed and could not be committed: it was rolled back.",
                ))
            }
            Err(error) => {
                self.backend.rolled_back();
                Err(self.told(&error))
            }
        }
    }

    pub(super) async fn rollback(&mut self, name: &str) -> Result<(), ServerMessage> {
        if !self.transaction.is_open() {
            if self.client.dialect.is_tds7() && !self.settings.implicit_transactions {
                return Err(ServerMessage::error(
                    3903,
                    16,
                    "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                ));
            }
            return Ok(());
        }
        if let Some(number) = self.transaction.savepoint(name) {
            self.on_backend(&format!("rollback to savepoint {SAVEPOINT}{number}")).await?;
            self.transaction.went_back_to(number);
            self.backend.rolled_back();
            return Ok(());
        }
        if !self.transaction.is_named(name) {
            return Err(ServerMessage::error(
                6401,
                16,
                format!("Cannot roll back {name}. No transaction or savepoint of that name was found."),
            ));
        }
        let started = self.transaction.started;
        self.transaction.end();
        self.put_transaction(Change::RolledBack);
        if started {
            self.on_backend("rollback").await?;
            self.backend.rolled_back();
        }
        Ok(())
    }

    pub(super) async fn save(&mut self, name: &str) -> Result<(), ServerMessage> {
        if !self.transaction.is_open() {
            return Err(ServerMessage::error(
                628,
                16,
                "Cannot issue SAVE TRANSACTION when there is no active transaction.",
            ));
        }
        if !self.transaction.started {
            self.on_backend("begin").await?;
            self.transaction.started = true;
        }
        let number = self.transaction.next_savepoint();
        self.on_backend(&format!("savepoint {SAVEPOINT}{number}")).await?;
        self.transaction.saved(name);
        Ok(())
    }

    async fn on_backend(&mut self, sql: &str) -> Result<(), ServerMessage> {
        let done = match self.backend.open(&self.database).await {
            Ok(open) => open.connection.query_text(sql).await,
            Err(error) => Err(error),
        };
        done.map(|_| ()).map_err(|error| self.told(&error))
    }

    /// An error of the session's own connection as the client hears it. What a lost one held is gone.
    pub(super) fn told(&mut self, error: &PgError) -> ServerMessage {
        if error.is_fatal() {
            self.backend.forget();
            self.transaction.end();
        }
        error.to_message()
    }

    fn put_transaction(&mut self, change: Change) {
        let dialect = self.client.dialect;
        if dialect.version >= crate::tds::dialect::Version::Tds72 {
            envchange::put_transaction(&mut self.client.reply, change, u64::from(self.spid) + 1, &dialect);
        }
    }

    /// A transaction manager request (MS-TDS 2.2.6.9).
    pub(super) async fn answer_transaction_request(&mut self, body: &[u8]) -> Result<(), SessionError> {
        const BEGIN: u16 = 5;
        const COMMIT: u16 = 7;
        const ROLLBACK: u16 = 8;
        const SAVE: u16 = 9;
        /// commit and rollback: begin another transaction at once
        const BEGIN_AGAIN: u8 = 1;
        let dialect = self.client.dialect;
        let mut reader = wire_call::reader(body, &dialect);
        wire_call::skip_headers(&mut reader, &dialect)?;
        let request = reader.u16("transaction request")?;
        if request == BEGIN {
            reader.u8("isolation level")?;
        }
        let length = usize::from(reader.u8("transaction name")?);
        if !length.is_multiple_of(2) {
            return Err(WireError::Malformed("a transaction name of an odd number of bytes".into()).into());
        }
        let name = reader.utf16(length / 2, "transaction name")?;
        let done = match request {
            BEGIN => {
                self.begin(&name);
                Ok(())
            }
            COMMIT => self.commit().await,
            ROLLBACK => self.rollback(&name).await,
            SAVE => self.save(&name).await,
            other => {
                Err(ServerMessage::error(4002, 16, format!("Transaction request {other} is not served.")))
            }
        };
        match done {
            Ok(()) => {
                if matches!(request, COMMIT | ROLLBACK) && !reader.is_empty() {
                    let flags = reader.u8("transaction flags")?;
                    if flags & BEGIN_AGAIN != 0 {
                        self.begin("");
                    }
                }
                self.passed(Some(0));
            }
            Err(message) => self.refuse(&message),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_savepoints_with_one_name_the_latest_counts() {
        let mut transaction = Transaction::default();
        transaction.begin("all");
        for name in ["a", "b", "A"] {
            transaction.saved(name);
        }
        assert_eq!(transaction.savepoint("a"), Some(2));
        assert_eq!((transaction.savepoint("B"), transaction.savepoint("c")), (Some(1), None));
        transaction.went_back_to(1);
        assert_eq!((transaction.savepoint("a"), transaction.next_savepoint()), (Some(0), 2));
    }

    #[test]
    fn the_outermost_name_is_the_transaction() {
        let mut transaction = Transaction::default();
        transaction.begin("all");
        transaction.begin("inner");
        assert!(transaction.is_named("ALL") && transaction.is_named("") && !transaction.is_named("inner"));
        transaction.end();
        assert_eq!(transaction, Transaction::default());
    }
}
