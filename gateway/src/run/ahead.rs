//! Sends several read-only queries of a text to PostgreSQL at once.

use super::variables::Variables;
use crate::backend::{flush_ahead, may_send_ahead, queue_ahead, Backend, Parameter};
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::postgres::PgError;
use crate::program::{Action, Query, Sql, Statement};
use std::borrow::Cow;

/// The most queries sent at once.
const MOST: usize = 64;

/// Sends the read-only queries at the start of `statements`, up to the first that an earlier statement could
/// affect.
pub async fn send_ahead(
    backend: &mut Backend,
    client: &mut Client,
    statements: &[Statement],
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    let [first, second, ..] = statements else { return Ok(()) };
    if reading(first).is_none() || reading(second).is_none() {
        return Ok(());
    }
    if !may_send_ahead(backend, client).await {
        return Ok(());
    }
    let sent = put_ahead(backend, client, statements, variables).await;
    backend.checked(client, sent)
}

async fn put_ahead(
    backend: &mut Backend,
    client: &Client,
    statements: &[Statement],
    variables: &Variables<'_>,
) -> Result<(), PgError> {
    for query in statements.iter().map_while(reading).take(MOST) {
        let Some(parameters) = given(&query.sql, variables) else { break };
        if !queue_ahead(backend, client, &query.sql, &parameters)? {
            break;
        }
    }
    flush_ahead(backend).await
}

/// A query that sends its rows to the client, changes nothing, and whose rows depend on tables alone.
fn reading(statement: &Statement) -> Option<&Query> {
    let Action::Query(query) = &statement.action else { return None };
    let sql = &query.sql;
    let is_ready = query.only_reads() && query.assigns.is_empty() && !sql.is_deferred();
    (is_ready && sql.facts.keeps()).then_some(query)
}

/// The values of the variables of `sql`; None if one depends on the statements before.
fn given<'v>(sql: &'v Sql, variables: &'v Variables<'_>) -> Option<Vec<Parameter<'v>>> {
    let value = |name: &'v String| {
        let variable = variables.get(name)?;
        Some(Parameter { name, sql_type: variable.sql_type, value: Cow::Borrowed(&variable.value) })
    };
    sql.variables.iter().map(value).collect()
}
