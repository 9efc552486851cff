//! Begin, commit and rollback of the client's transaction.

use super::state::TransactionState;
use crate::backend::cancellable::cancelled_with_client;
use crate::backend::connection::Backend;
use crate::catalogue::Reason;
use crate::client::{Client, Isolation, SessionError};
use crate::interrupt::Interrupt;
use crate::postgres::{Canceller, PgError};
use crate::tds::dialect::Version;
use crate::tds::tokens::envchange::{self, Transaction as Change};
use crate::tds::tokens::message::ServerMessage;

/// Savepoints of the client are numbered in PostgreSQL, which would cut a long name.
const SAVEPOINT: &str = "client_savepoint_";

/// The gateway's own savepoint.
const OWN_SAVEPOINT: &str = "ringlog_own";

impl Backend {
    /// @@trancount
    pub fn transaction_depth(&self) -> i32 {
        self.transaction.depth
    }

    pub fn in_transaction(&self) -> bool {
        self.transaction.is_open()
    }

    /// Sets @@transtate after a statement or call. `error`: its error, if it failed.
    pub(crate) fn note_statement(&mut self, only_reads: bool, error: Option<&PgError>) {
        if !only_reads || error.is_some() {
            self.transaction_state = self.transaction_state.after(self.transaction.is_open(), error);
        }
    }

    /// xact_state(): 1, or -1 for a transaction that cannot be committed.
    pub fn transaction_state(&self) -> i32 {
        match (self.transaction.is_open(), self.transaction.doomed) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => -1,
        }
    }

    pub fn is_doomed(&self) -> bool {
        self.transaction.doomed
    }

    /// Makes the transaction uncommittable: it allows reads and a rollback as a whole only (SQL Server: TRY...CATCH,
    /// "Uncommittable transactions and XACT_STATE").
    pub async fn doom(&mut self, client: &mut Client) -> Result<(), ServerMessage> {
        if !self.transaction.is_open() || self.transaction.doomed {
            return Ok(());
        }
        self.transaction.doomed = true;
        self.transaction.has_effects = true;
        let begin = if self.transaction.started { "" } else { "begin; " };
        // procedures read this setting
        self.run_text(client, &format!("{begin}set transaction read only; set local tsql.doomed = on"))
            .await?;
        self.transaction.started = true;
        Ok(())
    }

    /// Begins a transaction; `name` is "" for none.
    pub fn begin(&mut self, client: &mut Client, name: &str) {
        self.transaction.begin(name);
        self.transaction_state = TransactionState::InProgress;
        client.reply.in_transaction = true;
        if self.transaction.depth == 1 {
            self.put_change(client, Change::Begun);
        }
    }

    /// BEGIN TRANSACTION as a statement. Under implicit transactions SQL Server begins one for it too, so there
    /// are two (SQL Server: SET IMPLICIT_TRANSACTIONS).
    pub fn begin_statement(&mut self, client: &mut Client, name: &str) {
        if client.settings().implicit_transactions
            && client.dialect().is_tds7()
            && !self.transaction.is_open()
        {
            self.begin(client, "");
        }
        self.begin(client, name);
    }

    /// Begins a transaction before a statement that uses tables, under SET IMPLICIT_TRANSACTIONS.
    pub(in crate::backend) fn begin_implicitly(&mut self, client: &mut Client) {
        if client.settings().implicit_transactions && !self.transaction.is_open() {
            self.begin(client, "");
        }
    }

    /// Ends PostgreSQL's transaction if the client's has only read so far, so that an idle client does not prevent
    /// others from changing the table. The next statement begins another one and reads the rows committed by then, as
    /// under READ COMMITTED anyway. Returns whether it has ended.
    pub(in crate::backend) async fn end_reading(&mut self) -> Result<bool, PgError> {
        if self.transaction.has_effects || self.locking.isolation != Isolation::ReadCommitted {
            return Ok(false);
        }
        let Some(open) = &mut self.open else {
            return Ok(false);
        };
        let written = "select pg_catalog.pg_current_xact_id_if_assigned()";
        let written = open.connection.query_text(written).await?;
        if written.into_iter().flatten().flatten().next().is_some() {
            self.transaction.has_effects = true;
            return Ok(false);
        }
        open.connection.query_text("commit").await?;
        self.transaction.started = false;
        self.transaction.reported_depth = 0;
        Ok(true)
    }

    /// Commits or rolls back; the client is informed after PostgreSQL's answer.
    pub async fn commit(&mut self, client: &mut Client) -> Result<(), Interrupt> {
        match self.transaction.depth {
            0 if client.dialect().is_tds7() && !client.settings().implicit_transactions => {
                return Err(ServerMessage::error(
                    3902,
                    16,
                    "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                )
                .into());
            }
            0 => return Ok(()),
            _ if self.transaction.doomed => return Err(uncommittable().into()),
            1 => {}
            _ => {
                self.transaction.depth -= 1;
                return Ok(());
            }
        }
        let defines = self.transaction.catalogue.is_some();
        let (attention, committed) = match self.transaction.started {
            true => self.commit_started(client).await,
            false => (None, Ok(true)),
        };
        let is_committed = matches!(committed, Ok(true) | Err(PgError::Unconfirmed));
        let (state, change) = match is_committed {
            true => (TransactionState::Committed, Change::Committed),
            false => (TransactionState::RolledBack, Change::RolledBack),
        };
        self.end_transaction(client, state);
        self.put_change(client, change);
        if defines && is_committed {
            self.gateway.reload_catalogue(Reason::Changed).await;
        }
        if !matches!(committed, Ok(true)) {
            self.rolled_back();
        }
        match (attention, committed) {
            (Some(Err(gone)), _) => Err(gone.into()),
            (Some(Ok(())), Err(error)) if !error.is_fatal() && !is_committed => Err(Interrupt::Cancelled),
            (_, Ok(true)) => Ok(()),
            (_, Ok(false)) => Err(ServerMessage::error(
                3930,
                16,
                "The transaction had failed and could not be committed: it was rolled back.",
            )
            .into()),
            (_, Err(error)) => Err(self.message_of(&error, client).into()),
        }
    }

    /// COMMIT on PostgreSQL, where deferred triggers may wait for a lock. The client can cancel it.
    async fn commit_started(
        &mut self,
        client: &mut Client,
    ) -> (Option<Result<(), SessionError>>, Result<bool, PgError>) {
        match self.open().await {
            Ok(open) => {
                let canceller = Canceller::of(&open.connection);
                cancelled_with_client(client, canceller, open.connection.commit()).await
            }
            Err(error) => (None, Err(error)),
        }
    }

    pub async fn rollback(&mut self, client: &mut Client, name: &str) -> Result<(), ServerMessage> {
        if !self.transaction.is_open() {
            if client.dialect().is_tds7() && !client.settings().implicit_transactions {
                return Err(ServerMessage::error(
                    3903,
                    16,
                    "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                ));
            }
            return Ok(());
        }
        if let Some(number) = self.transaction.savepoint(name) {
            if self.transaction.doomed {
                let text =
                    "The current transaction cannot be committed and cannot be rolled back to a savepoint. \
                            Roll back the entire transaction.";
                return Err(ServerMessage::error(3931, 16, text));
            }
            self.run_text(client, &format!("rollback to savepoint {SAVEPOINT}{number}")).await?;
            self.transaction.went_back_to(number);
            self.rolled_back();
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
        self.end_transaction(client, TransactionState::RolledBack);
        self.put_change(client, Change::RolledBack);
        if started {
            self.run_text(client, "rollback").await?;
            self.rolled_back();
        }
        Ok(())
    }

    pub async fn save(&mut self, client: &mut Client, name: &str) -> Result<(), ServerMessage> {
        if !self.transaction.is_open() {
            return Err(ServerMessage::error(
                628,
                16,
                "Cannot issue SAVE TRANSACTION when there is no active transaction.",
            ));
        }
        if self.transaction.doomed {
            return Err(uncommittable());
        }
        if !self.transaction.started {
            self.run_text(client, "begin").await?;
            self.transaction.started = true;
        }
        self.transaction.has_effects = true;
        let number = self.transaction.next_savepoint();
        self.run_text(client, &format!("savepoint {SAVEPOINT}{number}")).await?;
        self.transaction.saved(name);
        Ok(())
    }

    /// Sets the gateway's own savepoint in the client's transaction; `settle_own` ends it.
    pub async fn save_own(&mut self, client: &mut Client) -> Result<(), ServerMessage> {
        let begin = if self.transaction.started { "" } else { "begin; " };
        self.run_text(client, &format!("{begin}savepoint {OWN_SAVEPOINT}")).await?;
        self.transaction.started = true;
        Ok(())
    }

    /// Releases or rolls back to the savepoint of `save_own`.
    pub async fn settle_own(&mut self, client: &mut Client, keep: bool) -> Result<(), ServerMessage> {
        let undo = match keep {
            true => String::new(),
            false => format!("rollback to savepoint {OWN_SAVEPOINT}; "),
        };
        self.run_text(client, &format!("{undo}release savepoint {OWN_SAVEPOINT}")).await
    }

    async fn run_text(&mut self, client: &mut Client, sql: &str) -> Result<(), ServerMessage> {
        let done = match self.open().await {
            Ok(open) => open.connection.query_text(sql).await,
            Err(error) => Err(error),
        };
        done.map(|_| ()).map_err(|error| self.message_of(&error, client))
    }

    /// Begins a transaction, invisible to the client, for several SQL statements that are one to the client. False: the
    /// client has a transaction. `end_own` ends it.
    pub async fn begin_own(&mut self, client: &mut Client) -> bool {
        self.before_statement(client, true, true).await;
        if self.in_transaction() {
            return false;
        }
        self.transaction.begin("");
        self.transaction.has_effects = true;
        true
    }

    /// Commits or rolls back the transaction of `begin_own`.
    pub async fn end_own(&mut self, client: &mut Client, keep: bool) -> Result<(), PgError> {
        let started = self.transaction.started;
        self.transaction.end();
        self.transaction_state = match keep {
            true => TransactionState::Committed,
            false => TransactionState::Undocumented,
        };
        let Some(open) = self.open.as_mut().filter(|_| started) else { return Ok(()) };
        let ended = open.connection.query_text(if keep { "commit" } else { "rollback" }).await;
        if let Err(error) = &ended {
            self.check(error, client);
        }
        if !keep || ended.is_err() {
            self.rolled_back();
        }
        ended.map(|_| ())
    }

    /// Resets the state of a transaction that has ended in PostgreSQL or is about to.
    pub(in crate::backend) fn end_transaction(&mut self, client: &mut Client, state: TransactionState) {
        self.transaction.end();
        self.transaction_state = state;
        // a connection to a node is not part of the client's transaction
        if !self.is_there() {
            client.reply.in_transaction = false;
        }
    }

    pub(in crate::backend) fn put_change(&mut self, client: &mut Client, change: Change) {
        let dialect = client.dialect();
        let is_own = client.reply.gathering.as_ref().is_some_and(|gathering| gathering.has_own_transaction);
        if dialect.version >= Version::Tds72 && !is_own {
            envchange::put_transaction(&mut client.reply.tokens, change, u64::from(self.spid) + 1, &dialect);
        }
    }
}

/// The error for other statements in an uncommittable transaction.
pub fn uncommittable() -> ServerMessage {
    let text =
        "The current transaction cannot be committed and cannot support operations that write to the log \
                file. Roll back the transaction.";
    ServerMessage::error(3930, 16, text)
}
