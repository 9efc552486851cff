//! Queries of the gateway's own.

use super::connection::Backend;
use super::open::Open;
use super::parameters::Parameter;
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::postgres::message::PgColumn;
use crate::postgres::PgError;
use crate::program::Sql;
use std::sync::Arc;
use tsql::fragments::Facts;
use tsql::quoting::{array, literal};

impl Backend {
    /// Runs `work` as a statement of the gateway's own. A failure inside a transaction is rolled back, and the
    /// transaction continues.
    pub async fn statement<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Open) -> Result<T, PgError>,
    ) -> Result<T, PgError> {
        let started = self.transaction.started;
        self.let_go_if_ended().await;
        let open = self.open().await?;
        if !started {
            return work(open).await;
        }
        open.connection.query_text("savepoint ringlog_statement").await?;
        let done = work(open).await;
        if !done.as_ref().is_err_and(PgError::is_fatal) {
            open.settle(done.is_ok()).await?;
        }
        done
    }

    /// The rows, as text, of a query of the gateway's own.
    pub async fn ask(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, PgError> {
        self.statement(async |open| open.connection.query_text(sql).await).await
    }

    /// The same for a statement of the client, which an error ends.
    pub async fn rows(
        &mut self,
        client: &mut Client,
        sql: &str,
    ) -> Result<Vec<Vec<Option<String>>>, Interrupt> {
        let rows = self.ask(sql).await;
        self.checked(client, rows)
    }

    /// The columns of a query, which PostgreSQL describes without running it.
    pub async fn columns(
        &mut self,
        client: &mut Client,
        sql: &Sql,
        parameters: &[Parameter<'_>],
    ) -> Result<Arc<[PgColumn]>, Interrupt> {
        let types: Vec<_> = parameters.iter().map(|parameter| parameter.sql_type).collect();
        let described = self.describe(sql, &types).await;
        self.checked(client, described).map(|described| described.columns.clone())
    }

    /// A result for a statement of the client.
    pub fn checked<T>(&mut self, client: &mut Client, done: Result<T, PgError>) -> Result<T, Interrupt> {
        done.map_err(|error| {
            self.check(&error, client);
            Interrupt::from(&error)
        })
    }
}

/// Drops global temporary tables, `##t` (`gateway/sql/ddl/globals.sql`), of ended sessions, before a statement that
/// names one. Error 208: one of them has ended and is still used by another statement.
pub(super) async fn look_after_globals(backend: &mut Backend, facts: &Facts) -> Result<(), PgError> {
    if !facts.names_global() {
        return Ok(());
    }
    // the tables and their list are on the primary
    backend.leave_standby().await?;
    backend.uses_globals = true;
    let named = facts.globals().map(literal);
    backend.ask(&format!("select tsql.end_globals({})", array(named, "text"))).await.map(|_| ())
}
