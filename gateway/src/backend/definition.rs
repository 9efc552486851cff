//! Definitions: SQL that creates, changes or drops a procedure, run as one unit.

use super::cancellable::cancellable;
use super::connection::Backend;
use super::unfinished::Unfinished;
use crate::catalogue::{Catalogue, Extent, Reason};
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::program::Define;
use std::sync::Arc;

impl Backend {
    /// Runs the SQL of a definition: all of it or nothing. What it defines can be called at once.
    pub async fn define(&mut self, client: &mut Client, define: &Define) -> Result<(), Interrupt> {
        self.pin();
        self.before_statement(client, true, true).await;
        self.run_definition(client, define).await.map_err(|unfinished| {
            if let Unfinished::Refused(error) | Unfinished::Failed(error) = &unfinished {
                self.check(error, client);
            }
            unfinished.into()
        })
    }

    async fn run_definition(&mut self, client: &mut Client, define: &Define) -> Result<(), Unfinished> {
        let in_transaction = self.transaction.is_open();
        self.start_statement().await?;
        let metrics = self.gateway.metrics.clone();
        let before = self.gateway.catalogue();
        let open = self.open().await?;
        if !in_transaction {
            open.connection.query_text("begin").await?;
        }
        // another session may be changing the same definition
        let canceller = open.connection.canceller();
        let defining = async {
            for sql in &define.statements {
                open.connection.query_text(sql).await?;
            }
            Ok(())
        };
        let done = cancellable(client, canceller, defining).await;
        if let Err(Unfinished::Refused(error) | Unfinished::Failed(error)) = &done {
            if error.is_fatal() {
                return done;
            }
        }
        if in_transaction {
            open.settle(done.is_ok()).await?;
        } else {
            open.connection.query_text(if done.is_ok() { "commit" } else { "rollback" }).await?;
        }
        done?;
        open.temporary = None;
        if define.is_temporary {
            return Ok(());
        }
        if in_transaction {
            // not visible to other sessions before the commit
            let own = Catalogue::read(&mut open.connection, &metrics, Some(&before), Extent::Changes).await?;
            self.transaction.catalogue = Some(Arc::new(own));
        } else {
            self.gateway.reload_catalogue(Reason::Changed).await;
        }
        Ok(())
    }
}
