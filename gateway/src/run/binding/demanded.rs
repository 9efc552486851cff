//! The tables that must exist before a batch of ASE runs.

use crate::client::Client;
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::postgres::{Notice, PgError};
use crate::program::Demanded;
use crate::run::errors::failed;
use crate::run::state::State;
use tsql::quoting::{array, literal};

/// Returns error 208 for the first table that this session does not see. PostgreSQL searches for them as for those
/// of a statement.
pub async fn demand_tables(
    state: &mut State,
    client: &mut Client,
    demanded: &[Demanded],
) -> Result<(), Interrupt> {
    let Some(first) = demanded.first() else { return Ok(()) };
    let names = array(demanded.iter().map(|one| literal(&one.table.sql)), "text");
    let question = format!(
        "select pg_catalog.min(number) - 1 from pg_catalog.unnest({names}) with ordinality as named(name, number) \
         where pg_catalog.to_regclass(name) is null"
    );
    let (failure, line) = match state.procedures.backend.rows(client, &question).await {
        Ok(rows) => {
            let index = rows.into_iter().flatten().next().flatten().and_then(|index| index.parse().ok());
            let Some(unknown) = index.and_then(|index: usize| demanded.get(index)) else { return Ok(()) };
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

/// PostgreSQL's error for a statement that names a missing table.
pub fn no_relation(table: &str) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "42P01".into(),
        message: format!("relation \"{}\" does not exist", table.replace('"', "")),
        ..Notice::default()
    }))
}
