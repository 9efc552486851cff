//! INSERT … EXECUTE: the rows that a procedure or a text selects are kept until its end, and then inserted into the
//! table.
//!
//! It is one statement: without a transaction of the client it runs in its own (SQL Server, "INSERT",
//! execute_statement; errors 3915, 3916, 8164).

use super::insert_rows::{insert_sets, present};
use crate::backend::{uncommittable, Backend};
use crate::client::{Client, Gathering};
use crate::interrupt::Interrupt;
use crate::program::{Executed, Filled, InsertExecute};
use crate::run::interpreter::Interpreter;
use crate::run::transactions::no_rollback;
use crate::run::variables::Variables;
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;

pub async fn insert_execute(
    interpreter: &mut Interpreter,
    client: &mut Client,
    insert: &InsertExecute,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    if client.reply.gathering.is_some() {
        let text = "An INSERT EXEC statement cannot be nested.";
        return Err(ServerMessage::error(8164, 16, text).into());
    }
    if client.settings().row_limit > 0 {
        let text = "Under SET ROWCOUNT only rows that are selected are limited: insert … execute is refused.";
        return Err(ServerMessage::error(195, 15, text).into());
    }
    let backend = &mut interpreter.state.procedures.backend;
    let begins_implicitly = client.settings().implicit_transactions;
    if begins_implicitly && !backend.in_transaction() {
        backend.begin(client, "");
    }
    let has_own = !backend.in_transaction();
    let transactions = backend.transaction_depth() + i32::from(has_own);
    client.reply.gathering = Some(Gathering::new(has_own, transactions));
    if has_own {
        backend.begin(client, "");
    }
    let called = match &insert.source {
        Executed::Procedure(execute) => interpreter.run_execute(client, execute, variables).await,
        Executed::Text(text) => interpreter.execute_text(client, text, variables).await.map(|()| true),
    };
    let inserted = match called {
        Ok(true) => {
            insert_gathered(&mut interpreter.state.procedures.backend, client, &insert.target, transactions)
                .await
        }
        Ok(false) => Ok(None),
        Err(interrupt) => Err(interrupt),
    };
    let inserted = match inserted {
        Err(Interrupt::Session(error)) => return Err(Interrupt::Session(error)),
        inserted => inserted,
    };
    let backend = &mut interpreter.state.procedures.backend;
    let mut ended = Ok(());
    if has_own && backend.in_transaction() {
        ended = match &inserted {
            Ok(Some(_)) => backend.commit(client).await,
            _ => backend.rollback(client, "").await.map_err(Interrupt::from),
        };
    }
    client.reply.gathering = None;
    let inserted = inserted?;
    ended?;
    let Some(rows) = inserted else {
        // the call failed and its error has been sent
        client.reply.end(Status::ERROR, None);
        return Ok(());
    };
    interpreter.state.identities.changed(Some(&insert.target.table), rows);
    client.reply.command = Command::Insert;
    client.reply.end(Status::empty(), Some(rows));
    client.reply.passed(Some(i64::try_from(rows).unwrap_or(i64::MAX)));
    Ok(())
}

/// Inserts the kept rows, all or none. Returns their number; None if there were too many.
async fn insert_gathered(
    backend: &mut Backend,
    client: &mut Client,
    target: &Filled,
    transactions: i32,
) -> Result<Option<u64>, Interrupt> {
    if backend.transaction_depth() != transactions {
        return Err(no_rollback().into());
    }
    if backend.is_doomed() {
        return Err(uncommittable().into());
    }
    let Some(sets) = client.reply.gathering.as_mut().and_then(Gathering::take) else { return Ok(None) };
    let target = &present(backend, client, target, &sets).await?;
    if sets.iter().all(|set| set.rows.is_empty()) {
        return Ok(Some(0));
    }
    backend.save_own(client).await?;
    let inserted = match insert_sets(backend, client, target, &sets).await {
        Err(Interrupt::Session(error)) => return Err(Interrupt::Session(error)),
        inserted => inserted,
    };
    backend.settle_own(client, inserted.is_ok()).await?;
    inserted.map(Some)
}
