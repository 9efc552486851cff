//! How an error ends a statement, a batch or a transaction, and who gets it: a CATCH block or the client.

use super::state::State;
use super::transactions::undo_transaction;
use crate::backend::uncommittable;
use crate::client::Client;
use crate::interrupt::{Ends, Failure, Interrupt, Stage};
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;
use tsql::facts::errors::is_arithmetic;

/// "The transaction ended in the trigger.", "An error was raised during trigger execution."
const ENDED_IN_TRIGGER: [i32; 2] = [3609, 3616];
/// The number of PostgreSQL's error for a change in a read-only transaction.
const READS_ONLY: i32 = 3906;

/// Handles the failure of a statement. Ok: the next one follows.
pub async fn failed(
    state: &mut State,
    client: &mut Client,
    mut failure: Failure,
    line: u32,
) -> Result<(), Interrupt> {
    if matches!(failure.stage, Stage::Refused | Stage::Thrown | Stage::Reported) {
        return Err(failure.into());
    }
    failure.message.text = state.nesting.long_names.restored(failure.message.text);
    if failure.message.procedure.is_empty() {
        let line = if failure.message.line <= 1 { line } else { failure.message.line };
        failure.message = state.nesting.located(failure.message, line);
    }
    fail(state, client, failure).await
}

/// Passes an error to a CATCH or to the client. Ok: the next statement follows.
pub async fn fail(state: &mut State, client: &mut Client, failure: Failure) -> Result<(), Interrupt> {
    let failure = under_settings(state, client, failure);
    fail_unchanged(state, client, failure).await
}

/// The same for RAISERROR, which honors SET XACT_ABORT in a TRY block only.
pub async fn fail_unchanged(
    state: &mut State,
    client: &mut Client,
    failure: Failure,
) -> Result<(), Interrupt> {
    let failure = Failure { message: client.reply.numbered(failure.message), ..failure };
    client.reply.error = failure.message.number;
    client.reply.row_count = 0;
    state.nesting.note(&failure.message);
    let nesting = &state.nesting;
    let catching = if failure.ends == Ends::Text { nesting.tries_outside } else { nesting.tries };
    if catching > 0 {
        if let Some(rows) = client.reply.open_rows {
            client.reply.command = Command::Select;
            client.reply.end(Status::empty(), Some(rows));
        }
        if ENDED_IN_TRIGGER.contains(&failure.message.number) {
            undo_transaction(state, client).await;
        } else if failure.ends == Ends::Transaction || client.settings().abort_on_error {
            state.procedures.backend.doom(client).await?;
        }
        return Err(Failure { stage: Stage::Thrown, ..failure }.into());
    }
    let failure = Failure { stage: Stage::Reported, ..failure };
    client.reply.error_message(&failure.message);
    if failure.ends == Ends::Transaction {
        undo_transaction(state, client).await;
    }
    client.reply.end(Status::ERROR, None);
    failure.leave()
}

/// An error, with the effect that the transaction and the client's settings give it.
pub fn under_settings(state: &State, client: &Client, failure: Failure) -> Failure {
    let failure = in_transaction(state, failure);
    let ends = match failure.ends {
        Ends::Text => Ends::Text,
        _ if client.settings().abort_on_error => Ends::Transaction,
        Ends::Statement
            if client.settings().arithabort.is_some_and(|of| of.overflow)
                && is_arithmetic(failure.message.number) =>
        {
            Ends::Transaction
        }
        ends => ends,
    };
    Failure { ends, ..failure }
}

/// 3930: PostgreSQL refuses to write in a transaction that cannot be committed.
fn in_transaction(state: &State, failure: Failure) -> Failure {
    match failure.message.number {
        READS_ONLY if state.procedures.backend.is_doomed() => {
            let ServerMessage { text, number, severity, .. } = uncommittable();
            let message = ServerMessage { text, number, severity, ..failure.message };
            Failure { message, ends: Ends::Batch, ..failure }
        }
        _ => failure,
    }
}
