//! Queries that PostgreSQL compiles before they run.

use super::cancellable::cancellable;
use super::connection::Backend;
use super::open::Open;
use super::parameters::Typing;
use super::unfinished::Unfinished;
use crate::client::Client;
use crate::convert::SqlType;
use crate::program::Sql;

impl Backend {
    /// Prepares a query without running it, unless it is already prepared. No lock remains.
    pub async fn compile(
        &mut self,
        client: &mut Client,
        sql: &Sql,
        types: &[SqlType],
    ) -> Result<(), Unfinished> {
        self.follow_definitions()?;
        let is_known =
            |open: &Open| Typing::ALL.iter().any(|typing| open.known(sql, types, *typing).is_some());
        if self.open.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let started = self.transaction.started;
        let open = self.open().await?;
        let canceller = open.connection.canceller();
        if started {
            open.connection.query_text("savepoint ringlog_compiled").await?;
        }
        let compiled = cancellable(client, canceller, self.describe(sql, types)).await;
        if started && !matches!(&compiled, Err(Unfinished::Refused(error)) if error.is_fatal()) {
            self.set("rollback to savepoint ringlog_compiled; release savepoint ringlog_compiled").await?;
        }
        compiled.map(|_| ())
    }
}
