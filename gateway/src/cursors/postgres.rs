//! The cursors of PostgreSQL, which keep the rows, and the errors of cursors.

use crate::backend::{Backend, Parameter, Rows, Source};
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::program::Sql;
use crate::tds::tokens::message::ServerMessage;
use std::sync::atomic::{AtomicU64, Ordering};
use tsql::quoting::literal;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A unique name, and the statement that opens a cursor of this name on a query.
pub fn declaring(query: &Sql, scrolls: bool) -> (String, Sql) {
    let name = format!("ringlog_cursor_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let scroll = if scrolls { "scroll" } else { "no scroll" };
    let sql = query.following(&format!("declare {name} {scroll} cursor with hold for ")).once();
    (name, sql)
}

/// Opens a cursor by the statement of `declaring`. Returns the number of its rows if it `counts` them.
pub async fn open_in_postgres<'a>(
    backend: &mut Backend,
    client: &mut Client,
    (name, sql): &'a (String, Sql),
    parameters: &'a [Parameter<'a>],
    counts: bool,
) -> Result<Option<i64>, Interrupt> {
    let source = Source::Query { sql, parameters, only_reads: false, in_try: false };
    backend.pin();
    backend.run(client, source, Rows::Kept).await?;
    if !counts {
        return Ok(None);
    }
    let rows = move_in(backend, client, name, "forward all").await?;
    move_in(backend, client, name, "absolute 0").await?;
    Ok(Some(rows))
}

/// Moves a cursor of PostgreSQL; returns the number of rows that it has passed.
pub async fn move_in(
    backend: &mut Backend,
    client: &mut Client,
    open: &str,
    how: &str,
) -> Result<i64, Interrupt> {
    let sql = Sql::plain(format!("move {how} in {open}")).once();
    let source = Source::Query { sql: &sql, parameters: &[], only_reads: true, in_try: false };
    let moved = backend.run(client, source, Rows::Kept).await?;
    Ok(moved.outcome.count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0))
}

/// Closes a cursor of PostgreSQL, unless a rollback has closed it.
pub async fn close_in_postgres(
    backend: &mut Backend,
    client: &mut Client,
    open: &str,
) -> Result<(), Interrupt> {
    let sql = Sql::plain(format!("close {open}")).once();
    let source = Source::Query { sql: &sql, parameters: &[], only_reads: false, in_try: false };
    match backend.run(client, source, Rows::Kept).await.map_err(Interrupt::from) {
        Err(interrupt) if is_taken(&interrupt) => Ok(()),
        closed => closed.map(|_| ()),
    }
}

/// Whether an open cursor still exists: a rollback may have closed it.
pub async fn is_in_postgres(
    backend: &mut Backend,
    client: &mut Client,
    open: &str,
) -> Result<bool, Interrupt> {
    let asked = format!("select 1 from pg_catalog.pg_cursors where name = {}", literal(open));
    Ok(!backend.rows(client, &asked).await?.is_empty())
}

/// The number of 34000, invalid_cursor_name, in `facts::errors`: a rollback has closed the cursor.
pub const NOT_OPEN: i32 = 16917;

/// Whether the cursor no longer exists in PostgreSQL.
pub fn is_taken(interrupt: &Interrupt) -> bool {
    matches!(interrupt, Interrupt::Failed(failure) if failure.message.number == NOT_OPEN)
}

pub fn no_such_cursor(name: &str) -> ServerMessage {
    if name.starts_with('@') {
        let text = format!("The variable '{name}' does not currently have a cursor allocated to it.");
        return ServerMessage::error(16950, 16, text);
    }
    ServerMessage::error(16916, 16, format!("A cursor with the name '{name}' does not exist."))
}

pub fn not_open() -> ServerMessage {
    ServerMessage::error(NOT_OPEN, 16, "Cursor is not open.")
}
