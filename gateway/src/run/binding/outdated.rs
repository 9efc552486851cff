//! Procedures, functions and triggers of T-SQL are compiled with the types of columns. After a change of a table those
//! that use it are compiled again, if the session may act as their owner.

use crate::backend::define_in;
use crate::catalogue::Text;
use crate::client::Client;
use crate::interrupt::{Failure, Interrupt};
use crate::program::{Action, Define};
use crate::run::state::State;
use crate::tds::tokens::message::ServerMessage;
use std::iter;
use tsql::lexer::as_altered;
use tsql::quoting::literal;

/// The definition of an object has changed since it was compiled (`tsql.demand_declared`).
const OUTDATED: i32 = 2801;

const OUTDATED_TEXTS: &str =
    "select schema, source, read_as, owner, pg_catalog.current_setting('role') from tsql.outdated()";

/// Whether `failed` is the error of an outdated procedure, function or trigger, and it was compiled again. Error: it
/// does not fit its tables any more.
pub async fn is_recompiled(
    state: &mut State,
    client: &mut Client,
    failed: &Interrupt,
) -> Result<bool, Interrupt> {
    let Interrupt::Failed(failure) = failed else { return Ok(false) };
    if failure.message.number != OUTDATED {
        return Ok(false);
    }
    let (number, mut refusals) = compile_outdated(state, client).await?;
    match refusals.pop() {
        // with several, nothing says which one was called
        Some(refusal) if number == 0 && refusals.is_empty() => Err(Failure::of_statement(refusal).into()),
        _ => Ok(number > 0),
    }
}

/// Compiles outdated procedures, functions and triggers again. Returns how many were compiled, and the errors of those
/// that no longer fit their tables.
pub async fn compile_outdated(
    state: &mut State,
    client: &mut Client,
) -> Result<(usize, Vec<ServerMessage>), Interrupt> {
    let outdated = state.procedures.backend.rows(client, OUTDATED_TEXTS).await?;
    let caller = state.procedures.backend.database.clone();
    let (mut number, mut refusals) = (0, Vec::new());
    if !outdated.is_empty() {
        // the session's declarations of these tables may be outdated too
        state.procedures.backend.forget_tables();
    }
    for row in outdated {
        let [Some(schema), Some(source), Some(read_as), Some(owner), Some(role)] = row.as_slice() else {
            continue;
        };
        let database = if schema.is_empty() { &caller } else { schema };
        state.procedures.backend.database.clone_from(database);
        match compile_again(state, client, source, read_as, [owner, role]).await {
            Ok(()) => number += 1,
            Err(Interrupt::Failed(failure)) => refusals.push(failure.message),
            Err(interrupt) => {
                state.procedures.backend.database = caller;
                return Err(interrupt);
            }
        }
    }
    if state.procedures.backend.database != caller || number > 0 {
        state.procedures.backend.database = caller;
        state.procedures.forget_plans();
    }
    Ok((number, refusals))
}

/// The text is its owner's: it can define no more than the owner may, and nothing of it runs. `roles`: the owner,
/// and the session's own role.
async fn compile_again(
    state: &mut State,
    client: &mut Client,
    source: &str,
    read_as: &str,
    roles: [&str; 2],
) -> Result<(), Interrupt> {
    let read_as = Text::read(read_as, "").unwrap_or_default();
    let settings = state.compiling_stored(&read_as);
    let text = as_altered(source).map_err(|error| Failure::of_statement(crate::program::refusal(&error)))?;
    let compiled = state.compile(client, &text, &settings, false).await.map_err(Failure::of_statement)?;
    let [owner, own] =
        roles.map(|role| format!("select pg_catalog.set_config('role', {}, true)", literal(role)));
    for statement in &compiled.program.statements {
        let Action::Define(define) = &statement.action else { continue };
        let statements = iter::once(&owner).chain(&define.statements).chain([&own]).cloned().collect();
        let definition = Define { statements, ..define.clone() };
        define_in(&mut state.procedures.backend, client, &definition).await?;
    }
    Ok(())
}
