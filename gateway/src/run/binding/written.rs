//! Queries as written for the present declarations of their tables. A table that does not exist when its text is
//! compiled, or is another one since, is bound when its statement runs, as SQL Server does ("Deferred Name Resolution
//! and Compilation").

use super::under_schema;
use crate::backend::{Backend, Described};
use crate::calls::Procedures;
use crate::client::Client;
use crate::convert::SqlType;
use crate::interrupt::{Failure, Interrupt, Stage};
use crate::postgres::PgError;
use crate::program::{Asking, Query, Sql};
use crate::tds::tokens::message::ServerMessage;
use std::future::ready;
use std::sync::Arc;

/// The query for the present declarations of the tables of `sql`; None: as compiled. `only_reads`: a node may have
/// the tables.
pub async fn written(
    procedures: &mut Procedures,
    client: &mut Client,
    sql: &Sql,
    only_reads: bool,
) -> Result<Option<Arc<Query>>, Failure> {
    match written_once(procedures, client, sql, only_reads).await {
        // another session has just made a table
        Err(failure) if failure.stage == Stage::Outdated => {
            let written = written_once(procedures, client, sql, only_reads).await;
            written.map_err(|failure| Failure { stage: Stage::Raised, ..failure })
        }
        written => written,
    }
}

async fn written_once(
    procedures: &mut Procedures,
    client: &mut Client,
    sql: &Sql,
    only_reads: bool,
) -> Result<Option<Arc<Query>>, Failure> {
    let Some(bound) = &sql.bound else { return Ok(None) };
    let Some(source) = &bound.source else { return Ok(None) };
    let backend = match only_reads {
        true => procedures.backend_of(client, sql).await?,
        false => &mut procedures.backend,
    };
    let declared = backend.declared(bound.uses.iter().map(|one| &one.name)).await;
    let schema = declared.map_err(|error| failed(backend, client, &error))?;
    if !sql.is_deferred() && bound.uses.hold_in(&*schema) {
        return Ok(None);
    }
    let write = |schema: Arc<Asking>| {
        let refused = |error: tsql::Error| PgError::refused(error.number, error.text).to_message();
        ready(match source.written_for(&*schema) {
            Some(query) => Ok((query, false)),
            None => source.write(schema).map(|query| (Arc::new(query), true)).map_err(refused),
        })
    };
    let written = under_schema(backend, client, true, write).await;
    let schema = backend.snapshot().map_err(|error| failed(backend, client, &error))?;
    let uses = written.as_ref().ok().and_then(|(query, _)| Some(&query.sql.bound.as_ref()?.uses));
    if let Some(table) = uses.unwrap_or(&bound.uses).missing_in(&*schema) {
        return Err(missing(backend, client, sql, table).await);
    }
    let (query, is_new) = written?;
    if is_new {
        source.keep(&query);
    }
    Ok(Some(query))
}

/// The query as `written`, with PostgreSQL's description. `type_of`: the type of a variable.
pub async fn written_and_described(
    procedures: &mut Procedures,
    client: &mut Client,
    query: &Query,
    type_of: impl Fn(&String) -> SqlType,
) -> Result<(Option<Arc<Query>>, Result<Arc<Described>, PgError>), ServerMessage> {
    let mut is_again = false;
    loop {
        let written = written(procedures, client, &query.sql, query.only_reads()).await;
        let written = written.map_err(|failure| failure.message)?;
        let now = written.as_deref().unwrap_or(query);
        let types: Vec<SqlType> = now.sql.variables.iter().map(&type_of).collect();
        let backend = procedures.describing(client, now).await?;
        let described = backend.describe(&now.sql, &types).await;
        if let Err(error) = &described {
            backend.check(error, client);
            if error.is_outdated() && !std::mem::replace(&mut is_again, true) {
                continue;
            }
        }
        return Ok((written, described));
    }
}

/// Whether a statement has not run because it was written for other declarations, and is to be written and run once
/// more. The second time its error stays.
pub fn is_outdated<T>(ran: &mut Result<T, Interrupt>, is_again: &mut bool) -> bool {
    match ran {
        Err(Interrupt::Failed(failure)) if failure.stage == Stage::Outdated => {
            failure.stage = Stage::Raised;
            !std::mem::replace(is_again, true)
        }
        _ => false,
    }
}

/// PostgreSQL's error for a query of a table that it does not have, or does not show to this login; `Stage::Outdated` if
/// it has the table meanwhile.
async fn missing(backend: &mut Backend, client: &mut Client, sql: &Sql, table: &str) -> Failure {
    let mut probe = Sql::plain(format!("select from {table}"));
    probe.facts.clone_from(&sql.facts);
    match backend.describe(&probe, &[]).await {
        Err(error) => failed(backend, client, &error),
        Ok(_) => {
            backend.forget_tables();
            Failure::from(&PgError::changed())
        }
    }
}

fn failed(backend: &mut Backend, client: &mut Client, error: &PgError) -> Failure {
    backend.check(error, client);
    error.into()
}
