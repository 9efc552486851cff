//! Definitions: SQL that makes, changes or drops a procedure, run as one.

use super::failure::Stop;
use super::Session;
use crate::catalogue::Catalogue;
use crate::gateway::Because;
use crate::postgres::PgError;
use crate::program::Define;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs the SQL of a definition: all of it or nothing. What it defines can be called at once.
    pub(super) async fn define(&mut self, define: &Define) -> Result<(), Stop> {
        self.backend.pin();
        if let Err(error) = self.run_definition(define).await {
            self.told(&error);
            return Err((&error).into());
        }
        self.plans.clear();
        Ok(())
    }

    async fn run_definition(&mut self, define: &Define) -> Result<(), PgError> {
        let in_transaction = self.transaction.is_open();
        if !in_transaction {
            self.backend.let_go_if_ended().await;
        }
        self.start_transaction().await?;
        let metrics = self.gateway.metrics.clone();
        let connection = &mut self.backend.open(&self.database).await?.connection;
        if !in_transaction {
            connection.query_text("begin").await?;
        }
        let mut done = Ok(());
        for sql in &define.statements {
            done = connection.query_text(sql).await.map(|_| ());
            if done.is_err() {
                break;
            }
        }
        let end = match (&done, in_transaction) {
            (Ok(()), true) => "release savepoint ringlog_statement",
            (Ok(()), false) => "commit",
            (Err(_), true) => "rollback to savepoint ringlog_statement; release savepoint ringlog_statement",
            (Err(_), false) => "rollback",
        };
        if done.as_ref().is_err_and(PgError::is_fatal) {
            return done;
        }
        connection.query_text(end).await?;
        done?;
        if in_transaction {
            // nobody else sees it yet
            self.own_catalogue = Some(Arc::new(Catalogue::load(connection, &metrics).await?));
        } else {
            self.gateway.reload_catalogue(Because::Changed).await;
        }
        Ok(())
    }
}
