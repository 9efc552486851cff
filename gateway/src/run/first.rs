//! The checks that refuse a text before any of it runs.

use super::errors::failed;
use super::session_variables::type_of;
use super::state::State;
use super::variables::Variables;
use crate::backend::Unfinished;
use crate::client::Client;
use crate::convert::SqlType;
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::postgres::{Notice, PgError};
use crate::program::{sql_type, Declaration, Demanded, Program, Sql, CLOCKS};
use tsql::facts::errors::is_deferred;
use tsql::quoting::{array, literal};

pub async fn check_first(
    state: &mut State,
    client: &mut Client,
    program: &Program,
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    demand_tables(state, client, &program.demanded).await?;
    compile_first(state, client, program, variables).await
}

/// Returns error 208 for the first table that this session does not see. PostgreSQL searches for them as for those
/// of a statement.
async fn demand_tables(
    state: &mut State,
    client: &mut Client,
    demanded: &[Demanded],
) -> Result<(), Interrupt> {
    let Some(first) = demanded.first() else { return Ok(()) };
    let names = array(demanded.iter().map(|one| literal(&one.table.sql)), "text");
    let question = format!(
        "select pg_catalog.min(place) - 1 from pg_catalog.unnest({names}) with ordinality as named(name, place) \
         where pg_catalog.to_regclass(name) is null"
    );
    let (failure, line) = match state.procedures.backend.rows(client, &question).await {
        Ok(rows) => {
            let place = rows.into_iter().flatten().next().flatten().and_then(|place| place.parse().ok());
            let Some(unknown) = place.and_then(|place: usize| demanded.get(place)) else { return Ok(()) };
            (Failure::from(&no_relation(&unknown.table.sql)), unknown.line)
        }
        // a database that this login may not use
        Err(Interrupt::Failed(failure)) if failure.ends == Ends::Statement => {
            (Failure { ends: Ends::Text, ..failure }, first.line)
        }
        Err(interrupt) => return Err(interrupt),
    };
    failed(state, client, failure, line).await
}

/// Reports the error of the first statement that does not fit its tables, of those behind a statement with an
/// effect: then nothing of the text runs. A procedure was checked when it was created.
async fn compile_first(
    state: &mut State,
    client: &mut Client,
    program: &Program,
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    if state.nesting.running.is_some() || client.settings().only_formats {
        return Ok(());
    }
    let statements = program.compiled_first();
    if statements.is_empty() {
        return Ok(());
    }
    let declared = program.declarations();
    for (line, sql) in statements {
        let Some(types) = types_of(sql, variables, &declared) else { continue };
        match state.procedures.backend.compile(client, sql, &types).await {
            Ok(()) => {}
            Err(Unfinished::Refused(error) | Unfinished::Failed(error)) => {
                state.procedures.backend.check(&error, client);
                let failure = Failure::from(&error);
                let is_wrong = failure.ends == Ends::Text && !is_deferred(failure.message.number);
                if is_wrong || error.is_fatal() {
                    return failed(state, client, failure, line).await;
                }
            }
            Err(unfinished) => return Err(unfinished.into()),
        }
    }
    Ok(())
}

/// The types of the variables of `sql`; None if one is known only when it runs.
fn types_of(sql: &Sql, variables: &Variables<'_>, declared: &[&Declaration]) -> Option<Vec<SqlType>> {
    let of = |name: &String| {
        if let Some(variable) = variables.get(name) {
            return Some(variable.sql_type);
        }
        if CLOCKS.contains(&name.as_str()) {
            return Some(SqlType::TIMESTAMP);
        }
        match declared.iter().find(|declaration| declaration.name == *name) {
            Some(declaration) => Some(sql_type(declaration)),
            None => name.starts_with("@@").then(|| type_of(name)),
        }
    };
    sql.variables.iter().map(of).collect()
}

/// PostgreSQL's error for a statement that names a missing table.
pub fn no_relation(table: &str) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "42P01".into(),
        message: format!("relation \"{}\" does not exist", table.replace('"', "")),
        ..Notice::default()
    }))
}
