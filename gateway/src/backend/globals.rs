//! Global temporary tables, `##t` (`gateway/sql/ddl/globals.sql`): tables of ended sessions are dropped before a
//! statement that names one.

use super::connection::Backend;
use super::transaction_state::TransactionState;
use crate::client::Client;
use crate::postgres::PgError;
use tsql::fragments::Facts;
use tsql::quoting::{array, literal};

impl Backend {
    /// Runs before a statement that names global temporary tables. Error 208: one of them has ended and is still used
    /// by another statement.
    pub(super) async fn look_after_globals(&mut self, facts: &Facts) -> Result<(), PgError> {
        if !facts.names_global() {
            return Ok(());
        }
        // the tables and their list are on the primary
        self.leave_standby().await?;
        self.uses_globals = true;
        let named = facts.globals().map(literal);
        self.ask(&format!("select tsql.end_globals({})", array(named, "text"))).await.map(|_| ())
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
}
