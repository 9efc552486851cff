//! Cursors of a session. PostgreSQL keeps the rows of an open cursor as of the time it was opened.

use super::declared::{Cursor, Fetched};
use super::postgres::{close_in_postgres, declaring, is_in_postgres, is_taken, not_open, open_in_postgres};
use crate::backend::{Backend, Completed, Parameter, Rows, Source};
use crate::client::Client;
use crate::convert::SqlType;
use crate::interrupt::{Failure, Interrupt};
use crate::limits::memory::Kept;
use crate::postgres::message::{row_values, PgColumn};
use crate::program::{Changes, CursorAction, Expression, FetchFrom, RowSource, Sql};
use crate::run::{values, written, State, Variables};
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;
use tsql::quoting::literal;

/// The most cursors of one session.
const MOST: usize = 1000;
/// The most bytes of the variables of a cursor.
const MOST_BYTES: usize = 32 << 20;

pub async fn run_cursor(
    state: &mut State,
    client: &mut Client,
    action: &CursorAction,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    match action {
        CursorAction::Declare { name, query, scrolls, is_filled, is_static, is_local, changes } => {
            let written = written(&mut state.procedures, client, &query.sql, false).await?;
            let query = written.as_deref().unwrap_or(query);
            let values = state.parameters(client, &query.sql, variables).await?;
            let value = |parameter: Parameter<'_>| {
                (parameter.name.to_owned(), parameter.sql_type, parameter.value.into_owned().into_owned())
            };
            let values: Vec<_> = values.into_iter().map(value).collect();
            let mut kept = Kept::default();
            let bytes = values.iter().map(|(.., value)| value.length()).sum();
            kept.keep(bytes, MOST_BYTES, "the variables of a cursor").map_err(Failure::of_value)?;
            let cursor = Cursor {
                _kept: kept,
                query: query.sql.clone(),
                columns: query.columns.clone(),
                scrolls: *scrolls,
                is_filled: *is_filled,
                is_static: *is_static,
                depth: is_local.then_some(state.nesting.depth),
                values,
                changes: changes.clone(),
                open: None,
                titles: None,
                tables: Vec::new(),
                versions: Vec::new(),
                changed: 0,
            };
            declare_cursor(state, client, name, cursor).await?;
        }
        CursorAction::Open(name) => return open_cursor(state, client, name, variables).await,
        CursorAction::Fetch { name, from, into, taken } => {
            return fetch(state, client, name, from, into, taken.as_ref(), variables).await;
        }
        CursorAction::Close(name) => {
            let Some(open) = state.cursors.cursor(name)?.close() else { return Err(not_open().into()) };
            close(state, client, &open).await?;
        }
        CursorAction::Deallocate(name) => {
            state.cursors.cursor(name)?;
            let cursor = state.cursors.known.remove(name);
            if let Some(open) = cursor.and_then(|cursor| cursor.open) {
                close(state, client, &open).await?;
            }
        }
    }
    client.reply.end(Status::empty(), None);
    client.reply.passed(Some(0));
    Ok(())
}

/// Ends the local cursors of the running text.
pub async fn end_local_cursors(state: &mut State, client: &mut Client) -> Result<(), Interrupt> {
    let depth = Some(state.nesting.depth);
    let ended = state.cursors.known.extract_if(|_, cursor| cursor.depth == depth);
    let open: Vec<_> = ended.filter_map(|(_, cursor)| cursor.open).collect();
    for open in open {
        close(state, client, &open).await?;
    }
    Ok(())
}

/// A variable can be given another cursor; a name must be new.
async fn declare_cursor(
    state: &mut State,
    client: &mut Client,
    name: &str,
    cursor: Cursor,
) -> Result<(), Interrupt> {
    if state.cursors.known.contains_key(name) && !name.starts_with('@') {
        let text = format!("A cursor with the name '{name}' already exists.");
        return Err(ServerMessage::error(16915, 16, text).into());
    }
    if state.cursors.known.len() >= MOST {
        let text = format!("This session has {MOST} cursors: deallocate some.");
        return Err(ServerMessage::error(8623, 16, text).into());
    }
    let before = state.cursors.known.insert(name.to_owned(), cursor);
    match before.and_then(|before| before.open) {
        Some(open) => close(state, client, &open).await,
        None => Ok(()),
    }
}

async fn open_cursor(
    state: &mut State,
    client: &mut Client,
    name: &str,
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    if let Some(open) = state.cursors.cursor(name)?.open.clone() {
        if is_in_postgres(&mut state.procedures.backend, client, &open).await? {
            return Err(ServerMessage::error(16905, 16, "The cursor is already open.").into());
        }
    }
    let cursor = state.cursors.cursor(name)?;
    cursor.close();
    if !client.dialect().is_tds7() {
        // ASE reads variables when it is opened, SQL Server when it is declared
        for (name, _, value) in &mut cursor.values {
            if let Some(variable) = variables.get(name) {
                *value = variable.value.clone().into_owned();
            }
        }
    }
    let is_filled = cursor.is_filled;
    let scrolls = cursor.scrolls || is_filled;
    let (query, values) = (cursor.query.clone(), cursor.values.clone());
    let changing = if cursor.changes == Changes::None { None } else { query.with_locations() };
    let (query, tables) = match changing {
        Some((with_versions, sources))
            if are_tables(&mut state.procedures.backend, client, sources).await? =>
        {
            (with_versions, sources.iter().map(|source| source.table.clone()).collect())
        }
        _ => (query, Vec::new()),
    };
    let parameters: Vec<_> = values
        .iter()
        .map(|(name, sql_type, value)| Parameter { name, sql_type: *sql_type, value: Cow::Borrowed(value) })
        .collect();
    let backend = &mut state.procedures.backend;
    let declared = declaring(&query, scrolls);
    let rows = open_in_postgres(backend, client, &declared, &parameters, is_filled).await?;
    let own = declared.0.clone();
    let cursor = state.cursors.cursor(name)?;
    (cursor.open, cursor.tables, cursor.versions) = (Some(own.clone()), tables, Vec::new());
    state.cursors.last = Some((own, rows.unwrap_or(-1)));
    client.reply.end(Status::empty(), None);
    client.reply.passed(Some(0));
    Ok(())
}

/// Whether all of these are tables, whose rows have a ctid.
async fn are_tables(
    backend: &mut Backend,
    client: &mut Client,
    sources: &[RowSource],
) -> Result<bool, Interrupt> {
    let tables: Vec<_> = sources.iter().map(|source| literal(&source.table)).collect();
    let asked = format!(
        "select count(*) from pg_catalog.unnest(array[{}]::text[]) named (name) \
           join pg_catalog.pg_class c on c.oid = pg_catalog.to_regclass(name)::oid where c.relkind = 'r'",
        tables.join(", ")
    );
    let rows = backend.rows(client, &asked).await?;
    let count = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
    Ok(count == Some(tables.len()))
}

async fn fetch(
    state: &mut State,
    client: &mut Client,
    name: &str,
    from: &FetchFrom,
    into: &[String],
    taken: Option<&Sql>,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    // a loop on @@fetch_status ends after an error too
    state.cursors.fetched = Fetched::Error;
    let direction = match from {
        FetchFrom::Next => String::from("next"),
        FetchFrom::Prior => String::from("prior"),
        FetchFrom::First => String::from("first"),
        FetchFrom::Last => String::from("last"),
        FetchFrom::Absolute(row) => {
            format!("absolute {}", row_number(state, client, row, variables).await?)
        }
        FetchFrom::Relative(rows) => {
            format!("relative {}", row_number(state, client, rows, variables).await?)
        }
    };
    let cursor = state.cursors.cursor(name)?;
    if *from != FetchFrom::Next && !cursor.scrolls {
        let word = direction.split(' ').next().unwrap_or_default();
        let text = format!("fetch: The fetch type {word} cannot be used with forward only cursors.");
        return Err(ServerMessage::error(16911, 16, text).into());
    }
    let Some(open) = &cursor.open else { return Err(not_open().into()) };
    let sql = Sql::plain(format!("fetch {direction} from {open}")).once();
    let columns = cursor.titles.as_ref().or(cursor.columns.as_ref()).cloned();
    let hidden = cursor.tables.len();
    let rows = match (into.is_empty(), hidden) {
        (true, 0) => Rows::ToClient(columns.as_deref()),
        (true, _) => Rows::AndVersions(columns.as_deref(), hidden),
        (false, _) => Rows::Kept,
    };
    let source = Source::Query { sql: &sql, parameters: &[], only_reads: true, in_try: false };
    let ran = state.procedures.backend.run(client, source, rows).await.map_err(Interrupt::from);
    if ran.as_ref().is_err_and(is_taken) {
        state.cursors.cursor(name)?.close();
    }
    let Completed { outcome, columns } = ran?;
    let own = columns.len().saturating_sub(hidden);
    let text = |raw: Option<&[u8]>| raw.map(|raw| String::from_utf8_lossy(raw).into_owned());
    let versions = outcome.row.iter().flat_map(|row| row_values(row).skip(own)).map(text).collect();
    state.cursors.cursor(name)?.versions = versions;
    if !into.is_empty() && into.len() != own {
        let text =
            "Cursorfetch: The number of variables declared in the INTO list must match that of selected \
                    columns.";
        return Err(ServerMessage::error(16924, 16, text).into());
    }
    if let (Some(taken), true) = (taken, outcome.row.is_some()) {
        let zone = state.gateway.zone();
        let of = |column: &PgColumn| SqlType { oid: column.oid, typmod: column.typmod };
        let values = columns.iter().map(of).zip(values(&outcome, &columns[..own], &zone)?).collect();
        for (name, value) in into.iter().zip(state.taken(client, taken, values).await?) {
            variables.set(name, value, &zone).map_err(Failure::of_value)?;
        }
    }
    let count = outcome.count.unwrap_or(0);
    state.cursors.fetched = if count > 0 { Fetched::Row } else { Fetched::NoRow };
    client.reply.command = Command::Select;
    client.reply.end(Status::empty(), Some(count).filter(|_| into.is_empty()));
    client.reply.passed(Some(i64::try_from(count).unwrap_or(0)));
    Ok(())
}

async fn row_number(
    state: &mut State,
    client: &mut Client,
    row: &Expression,
    variables: &Variables<'_>,
) -> Result<i64, Interrupt> {
    match state.value(client, row, variables).await? {
        Value::Int(number) => Ok(number),
        _ => Err(ServerMessage::error(16902, 16, "fetch: The row is not a number.").into()),
    }
}

async fn close(state: &mut State, client: &mut Client, open: &str) -> Result<(), Interrupt> {
    if state.cursors.last.as_ref().is_some_and(|(last, _)| last == open) {
        state.cursors.last = None;
    }
    close_in_postgres(&mut state.procedures.backend, client, open).await
}
