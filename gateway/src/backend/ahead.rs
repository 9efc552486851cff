//! Queries sent ahead: a batch of several read-only queries waits for PostgreSQL once. Each answer is read when the
//! query's turn comes.

use super::connection::Backend;
use super::open::sent::Sent;
use super::parameters::{self, Parameter, Typing};
use crate::client::{Client, Isolation};
use crate::convert::SqlType;
use crate::postgres::PgError;
use crate::program::Sql;

/// The most bytes sent ahead: the socket buffers them while PostgreSQL waits for us to read its answers.
const MOST_BYTES: usize = 16 << 10;

pub(super) fn has_ahead(backend: &Backend) -> bool {
    backend.open.as_ref().is_some_and(|open| !open.ahead.is_empty())
}

/// Whether read-only queries may be sent ahead: each is a transaction of its own, and PostgreSQL has the client's
/// settings.
pub async fn may_send_ahead(backend: &mut Backend, client: &Client) -> bool {
    let settings = client.settings();
    if has_ahead(backend)
        || backend.transaction.started
        || settings.only_formats
        || settings.implicit_transactions
        || settings.locking.isolation != Isolation::ReadCommitted
    {
        return false;
    }
    backend.let_go_if_ended().await;
    if backend.follow_definitions().is_err() {
        return false;
    }
    let database = backend.database.as_str();
    backend.open.as_ref().is_some_and(|open| open.is_set(database, settings))
}

/// Queues a query to be sent ahead. False: it cannot be sent ahead.
pub fn queue_ahead(
    backend: &mut Backend,
    client: &Client,
    sql: &Sql,
    parameters: &[Parameter<'_>],
) -> Result<bool, PgError> {
    let Some(open) = &mut backend.open else { return Ok(false) };
    let zone = open.zone()?;
    let types: Vec<SqlType> = parameters.iter().map(|parameter| parameter.sql_type).collect();
    let Some(prepared) = open.known(sql, &types, Typing::Declared) else { return Ok(false) };
    let Ok((sent, values)) = parameters::bind(parameters, &prepared.parameters, &zone) else {
        return Ok(false);
    };
    if open.connection.unsent() + values.len() + 4 * prepared.columns.len() > MOST_BYTES {
        return Ok(false);
    }
    let limit = client.settings().row_limit;
    let columns = prepared.formats();
    open.put_checks(&prepared)?;
    open.connection.put_execute(&prepared.name, &sent, &values, &columns, limit);
    open.connection.put_sync();
    open.ahead.push(Sent { prepared, values, limit });
    Ok(true)
}

/// Sends the queued queries.
pub async fn flush_ahead(backend: &mut Backend) -> Result<(), PgError> {
    match &mut backend.open {
        Some(open) => open.connection.flush().await,
        None => Ok(()),
    }
}

/// Discards the answers to queries sent ahead.
pub async fn forget_ahead(backend: &mut Backend) -> Result<(), PgError> {
    match &mut backend.open {
        Some(open) => open.ahead.forget(&mut open.connection).await,
        None => Ok(()),
    }
}
