//! The ends of a client's transactions, which also close cursors.

use super::state::State;
use crate::backend::Backend;
use crate::client::Client;
use crate::cursors::{keep_cursors, open_again, Cursor, NOT_OPEN};
use crate::interrupt::{Failure, Interrupt};
use crate::tds::tokens::message::ServerMessage;

pub async fn commit(state: &mut State, client: &mut Client) -> Result<(), Interrupt> {
    state.procedures.backend.commit(client).await?;
    Ok(close_cursors(state, client).await?)
}

/// Rolls the transaction back, or to a savepoint. Static cursors stay open.
pub async fn rollback(state: &mut State, client: &mut Client, name: &str) -> Result<(), Interrupt> {
    let kept = keep_cursors(state, client).await?;
    roll_back(state, client, name).await?;
    open_again(state, client, kept).await
}

async fn roll_back(state: &mut State, client: &mut Client, name: &str) -> Result<(), ServerMessage> {
    state.procedures.backend.rollback(client, name).await?;
    close_cursors(state, client).await
}

/// Rolls the transaction back after an error that ends it, which closes its cursors.
pub async fn undo_transaction(state: &mut State, client: &mut Client) {
    if state.procedures.backend.in_transaction() {
        if let Err(message) = roll_back(state, client, "").await {
            client.reply.message(&message);
        }
    }
}

/// Rolls back a transaction that cannot be committed, at the end of the request in which it failed (SQL Server:
/// XACT_STATE).
pub async fn end_doomed(state: &mut State, client: &mut Client) {
    if state.procedures.backend.is_doomed() {
        undo_transaction(state, client).await;
        let text =
            "Uncommittable transaction is detected at the end of the batch. The transaction is rolled back.";
        client.reply.refuse(&ServerMessage::error(3998, 16, text));
    }
}

/// SQL Server, SET CURSOR_CLOSE_ON_COMMIT: a commit or rollback of a transaction, not to a savepoint, closes open
/// cursors.
async fn close_cursors(state: &mut State, client: &mut Client) -> Result<(), ServerMessage> {
    if !client.settings().closes_cursors || state.procedures.backend.in_transaction() {
        return Ok(());
    }
    let declared = state.cursors.known.values_mut().filter_map(Cursor::close);
    let open: Vec<_> = declared.chain(state.cursors.server.let_go()).collect();
    state.cursors.last = None;
    let backend = &mut state.procedures.backend;
    for name in open {
        if let Err(error) = backend.ask(&format!("close {name}")).await {
            let message = backend.message_of(&error, client);
            // a cursor opened in a transaction that is rolled back no longer exists
            if message.number != NOT_OPEN {
                return Err(message);
            }
        }
    }
    Ok(())
}

/// 3916: a procedure must not commit the transaction of INSERT … EXECUTE.
pub fn may_commit(backend: &Backend, client: &Client) -> Result<(), Failure> {
    match &client.reply.gathering {
        Some(gathering) if backend.transaction_depth() <= gathering.transactions => {
            let text =
                "Cannot use the COMMIT statement within an INSERT-EXEC statement unless BEGIN TRANSACTION \
                        is used first.";
            Err(Failure::of_batch(ServerMessage::error(3916, 16, text)))
        }
        _ => Ok(()),
    }
}

pub fn no_rollback() -> Failure {
    let text = "Cannot use the ROLLBACK statement within an INSERT-EXEC statement.";
    Failure::of_batch(ServerMessage::error(3915, 16, text))
}

/// 3915: a procedure must not roll back the transaction of INSERT … EXECUTE either; 102: nor a text that of a table
/// variable around it.
pub fn may_roll_back(state: &State, client: &Client) -> Result<(), Failure> {
    if client.reply.gathering.is_some() {
        return Err(no_rollback());
    }
    if !state.nesting.tables.is_empty() && state.procedures.backend.in_transaction() {
        let text = "'rollback with a table variable' is not supported: it would remove the rows of a table variable of \
                    the calling text.";
        return Err(ServerMessage::error(102, 15, text).into());
    }
    Ok(())
}
