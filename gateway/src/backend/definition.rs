//! Definitions: SQL that creates, changes or drops a procedure, run as one unit.

use super::cancellable::cancellable;
use super::connection::Backend;
use super::unfinished::Unfinished;
use crate::catalogue::{Catalogue, Extent, Reason};
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::postgres::Canceller;
use crate::program::Define;
use std::sync::Arc;

/// Runs the SQL of a definition: all of it or nothing. What it defines can be called at once.
pub async fn define_in(backend: &mut Backend, client: &mut Client, define: &Define) -> Result<(), Interrupt> {
    backend.pin();
    backend.before_statement(client, true, true).await;
    run_definition(backend, client, define).await.map_err(|unfinished| {
        if let Unfinished::Refused(error) | Unfinished::Failed(error) = &unfinished {
            backend.check(error, client);
        }
        unfinished.into()
    })
}

async fn run_definition(
    backend: &mut Backend,
    client: &mut Client,
    define: &Define,
) -> Result<(), Unfinished> {
    let in_transaction = backend.transaction.is_open();
    backend.start_statement().await?;
    let metrics = backend.gateway.metrics.clone();
    let before = backend.gateway.catalogue();
    let open = backend.open().await?;
    if !in_transaction {
        open.connection.query_text("begin").await?;
    }
    // another session may be changing the same definition
    let canceller = Canceller::of(&open.connection);
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
    // a trigger is part of its table's declaration
    open.forget_declarations();
    open.has_defined |= in_transaction && !define.is_temporary;
    if define.is_temporary {
        return Ok(());
    }
    if in_transaction {
        // not visible to other sessions before the commit
        let own = Catalogue::read(&mut open.connection, &metrics, Some(&before), Extent::Changes).await?;
        backend.transaction.catalogue = Some(Arc::new(own));
    } else {
        backend.gateway.reload_catalogue(Reason::Changed).await;
    }
    Ok(())
}
