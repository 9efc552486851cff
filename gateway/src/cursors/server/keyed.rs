//! Updatable cursors, whose rows are found again by their keys (SQL Server: sp_cursor; "Cursors", keyset-driven). They
//! read one table with a unique key. The set of rows is fixed when the cursor is opened, their values are read at each
//! fetch. A row deleted meanwhile is reported as missing.

use super::keyset::{Key, Keyset, Row, Version};
use super::options::invalid;
use super::rows::{hold_rows, stand_before};
use super::{HeldRows, Selection};
use crate::backend::{Backend, Completed, Fetched, KeyedColumns, Rows, Source};
use crate::client::Client;
use crate::convert::SqlType;
use crate::describe::{column_names, own_name, unique_key};
use crate::interrupt::{Failure, Interrupt};
use crate::postgres::message::{row_values, PgColumn};
use crate::program::{refusal, Sql};
use crate::rpc::Prepared;
use crate::run::{State, Variables};
use crate::tds::call::Param;
use crate::tds::tokens::columns::{Origin, Origins};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::collections::{BTreeSet, HashMap};
use tsql::facts::types::UNKNOWN;
use tsql::long_names::stored;
use tsql::quoting::quoted;
use tsql::schema::Schema;

/// The most rows that a cursor inserts, and the most whose keys it changes.
const MOST_CHANGED: usize = 100_000;

/// The operations of sp_cursor on rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Update,
    Delete,
    Insert,
}

/// The keyset for a cursor on this statement. None: its rows cannot be changed.
pub(super) async fn keyset(
    state: &mut State,
    client: &mut Client,
    prepared: &Prepared,
    selection: &Selection,
    variables: &Variables<'_>,
) -> Result<Option<Keyset>, Interrupt> {
    let mut settings = state.compiling(client);
    variables.declare_to(&mut settings);
    let Ok(Some(select)) = tsql::keyed(&prepared.text, &settings) else { return Ok(None) };
    let key = unique_key(&mut state.procedures.backend, client, &select.of.table).await?;
    if key.is_empty() {
        return Ok(None);
    }
    let columns = column_names(&mut state.procedures.backend, client, &select.of.table).await?;
    let types: Vec<SqlType> =
        state.parameters(client, &selection.sql, variables).await?.iter().map(|one| one.sql_type).collect();
    let query_columns = match state.procedures.backend.describe(&selection.sql, &types).await {
        Ok(query) => query.columns.clone(),
        // opening the cursor returns the error
        Err(_) => return Ok(None),
    };
    let origin = |column: &PgColumn| {
        let name = columns.get(&column.origin)?;
        Some(Origin { table: 1, name: own_name(column, name) })
    };
    let origins = Origins {
        tables: vec![select.of.shown.clone()],
        columns: query_columns.iter().map(origin).collect(),
    };
    let described = KeyedColumns { origins, columns: query_columns.clone() };
    let key = key.into_iter().map(|column| (column.quoted, column.of)).collect();
    let columns = columns.into_values().collect();
    let (added, changed, buffer) = (Vec::new(), HashMap::new(), Vec::new());
    Ok(Some(Keyset { select, key, described, columns, held: 0, added, changed, buffer }))
}

/// Opens a cursor of PostgreSQL on the keys of the rows.
pub(super) async fn hold_keys(
    state: &mut State,
    client: &mut Client,
    mut keyset: Keyset,
    selection: &Selection,
    variables: &Variables<'_>,
    scrolls: bool,
) -> Result<HeldRows, Interrupt> {
    let qualifier = format!("{}.", keyset.select.of.name);
    let own: Vec<_> = (1..=keyset.key.len()).map(|number| format!("\"ringlog {number}\"")).collect();
    let keys: Vec<_> = keyset
        .key
        .iter()
        .zip(&own)
        .map(|((column, _), own)| format!("{qualifier}{column}::text as {own}"))
        .collect();
    let (own, keys) = (own.join(", "), keys.join(", "));
    // the rows may be ordered by a column of the list
    let head = format!("select {own} from (select {}, {keys}", keyset.select.of.items);
    let sql = keyset.select.rest.following(&head).followed_by(") as \"ringlog rows\"");
    let of_keys = Selection { sql, titles: selection.titles.clone() };
    let mut rows = hold_rows(state, client, &of_keys, variables, scrolls).await?;
    keyset.held = rows.total.unwrap_or(0);
    rows.keyset = Some(Box::new(keyset));
    Ok(rows)
}

/// Sends the present values of rows, otherwise like `send_rows`.
pub(super) async fn send_keyed(
    backend: &mut Backend,
    client: &mut Client,
    rows: &mut HeldRows,
    first: Option<i64>,
    count: i64,
    described: bool,
) -> Result<i64, Interrupt> {
    let first = first.unwrap_or(rows.at + 1);
    let Some(mut keyset) = rows.keyset.take() else { return Ok(0) };
    let sent = read_keyed(backend, client, rows, &mut keyset, first, count, described).await;
    rows.keyset = Some(keyset);
    sent
}

async fn read_keyed(
    backend: &mut Backend,
    client: &mut Client,
    rows: &mut HeldRows,
    keyset: &mut Keyset,
    first: i64,
    count: i64,
    described: bool,
) -> Result<i64, Interrupt> {
    let is_counted = rows.total.is_some();
    let mut found = Vec::new();
    if count > 0 && (!is_counted || first <= keyset.held) {
        stand_before(backend, client, rows, first).await?;
        found = backend.rows(client, &format!("fetch forward {count} from {}", rows.name)).await?;
        rows.at += i64::try_from(found.len()).unwrap_or(0);
    }
    if is_counted {
        let left = usize::try_from(count).unwrap_or(0).saturating_sub(found.len());
        let skipped = usize::try_from(first - 1 - keyset.held).unwrap_or(0);
        found.extend(keyset.added.iter().skip(skipped).take(left).cloned());
    }
    let mut buffer: Vec<Row> = (first..)
        .zip(found)
        .map(|(number, key)| {
            let key = keyset.changed.get(&number).cloned().unwrap_or(key);
            Row { number, key, version: None }
        })
        .collect();
    let sql = Sql::plain(keyset.reading(&buffer));
    let source = Source::Query { sql: &sql, parameters: &[], only_reads: true, in_try: false };
    let titles = rows.titles.as_deref();
    let fetched = Rows::OfCursor(Fetched { titles, described, keyed: Some(&keyset.described) });
    let Completed { outcome, .. } = backend.run(client, source, fetched).await?;
    for (row, version) in buffer.iter_mut().zip(outcome.versions) {
        row.version = version.as_deref().and_then(Version::read);
    }
    let sent = i64::try_from(buffer.len()).unwrap_or(0);
    keyset.buffer = buffer;
    Ok(sent)
}

/// Changes a row of the buffer, or all if `row` is 0, or inserts one.
pub(super) async fn change_rows(
    state: &mut State,
    client: &mut Client,
    rows: &mut HeldRows,
    change: Change,
    row: i64,
    values: &[Param<'_>],
) -> Result<(), Interrupt> {
    let Some(mut keyset) = rows.keyset.take() else {
        return Err(read_only().into());
    };
    let done = match change {
        Change::Insert => insert_row(state, client, &mut keyset, values).await.map(|is_counted| {
            if let (true, Some(total)) = (is_counted, &mut rows.total) {
                *total += 1;
            }
        }),
        _ => change_fetched(state, client, &mut keyset, change, row, values).await,
    };
    rows.keyset = Some(keyset);
    done
}

async fn insert_row(
    state: &mut State,
    client: &mut Client,
    keyset: &mut Keyset,
    values: &[Param<'_>],
) -> Result<bool, Interrupt> {
    let (set, names, variables) = written(state, client, keyset, values, Change::Insert).await?;
    let columns: Vec<_> = set.iter().map(|(column, _)| column.as_str()).collect();
    let written: Vec<_> = set.iter().map(|(_, value)| value.as_str()).collect();
    let table = &keyset.select.of.table;
    let filled = match columns.is_empty() {
        true => String::from("default values"),
        false => format!("({}) values ({})", columns.join(", "), written.join(", ")),
    };
    let text = format!("insert into {table} {filled} returning {}", keyset.as_texts(""));
    let (row, _) = changed(state, client, &text, names, &variables).await?;
    if keyset.added.len() >= MOST_CHANGED {
        return Err(too_many().into());
    }
    keyset.added.push(row);
    Ok(true)
}

async fn change_fetched(
    state: &mut State,
    client: &mut Client,
    keyset: &mut Keyset,
    change: Change,
    row: i64,
    values: &[Param<'_>],
) -> Result<(), Interrupt> {
    let chosen = match usize::try_from(row) {
        Ok(0) => 0..keyset.buffer.len(),
        Ok(row) if row <= keyset.buffer.len() => row - 1..row,
        _ => return Err(not_fetched().into()),
    };
    let (set, names, variables) = match change {
        Change::Update => written(state, client, keyset, values, change).await?,
        _ => (Vec::new(), Vec::new(), Variables::default()),
    };
    if change == Change::Update && set.is_empty() {
        return Err(invalid("sp_cursor", "value").into());
    }
    let set: Vec<_> = set.iter().map(|(column, value)| format!("{column} = {value}")).collect();
    for index in chosen {
        let Some(Row { number, key, version }) = keyset.buffer.get(index).cloned() else { continue };
        let Some(Version(ctid, xmin)) = version else { return Err(gone().into()) };
        let table = &keyset.select.of.table;
        let is = keyset.is("", &key);
        let of = format!("where {is} and ctid = '{ctid}'::tid and xmin = '{xmin}'::xid");
        let returned = format!("returning {}, ctid::text || ' ' || xmin::text", keyset.as_texts(""));
        let text = match change {
            Change::Delete => format!("delete from {table} {of} {returned}"),
            _ => format!("update {table} set {} {of} {returned}", set.join(", ")),
        };
        let (mut row, count) = changed(state, client, &text, names.clone(), &variables).await?;
        if count == 0 {
            let left =
                state.procedures.backend.rows(client, &format!("select 1 from {table} where {is}")).await?;
            return Err(if left.is_empty() { gone() } else { modified() }.into());
        }
        let version = row.pop().flatten();
        let is_other = change == Change::Update && row != key;
        if is_other && keyset.changed.len() >= MOST_CHANGED {
            return Err(too_many().into());
        }
        if is_other {
            keyset.changed.insert(number, row.clone());
        }
        if let Some(fetched) = keyset.buffer.get_mut(index) {
            fetched.key = row;
            fetched.version = version.as_deref().and_then(Version::read).filter(|_| change == Change::Update);
        }
    }
    Ok(())
}

/// Runs a change. Returns the last row that it returns, and the number of rows.
async fn changed(
    state: &mut State,
    client: &mut Client,
    text: &str,
    names: Vec<String>,
    variables: &Variables<'_>,
) -> Result<(Key, u64), Interrupt> {
    let sql = Sql::written(text, names);
    let parameters = state.parameters(client, &sql, variables).await?;
    let source = Source::Query { sql: &sql, parameters: &parameters, only_reads: false, in_try: false };
    let backend = &mut state.procedures.backend;
    backend.pin();
    let Completed { outcome, .. } = backend.run(client, source, Rows::Kept).await?;
    let text = |raw: Option<&[u8]>| raw.map(|raw| String::from_utf8_lossy(raw).into_owned());
    let row = outcome.row.iter().flat_map(row_values).map(text).collect();
    Ok((row, outcome.count.unwrap_or(0)))
}

/// Columns with the SQL of their values, and the variables named in it.
type Written<'v> = (Vec<(String, String)>, Vec<String>, Variables<'v>);

async fn written<'v>(
    state: &mut State,
    client: &mut Client,
    keyset: &Keyset,
    values: &'v [Param<'_>],
    change: Change,
) -> Result<Written<'v>, Interrupt> {
    let dialect = client.dialect();
    if let [text] = values {
        if !text.is_named() {
            let is_default = matches!(text.value(&dialect), Ok(Value::Text(text))
                if change == Change::Insert && text.trim().to_lowercase().ends_with("default values"));
            if is_default {
                return Ok((Vec::new(), Vec::new(), Variables::default()));
            }
        }
    }
    let variables = Variables::of_command(values, &dialect)?;
    let backend = &mut state.procedures.backend;
    let declared = backend.read_declarations(&BTreeSet::from([keyset.select.of.table.clone()])).await;
    let table = backend.checked(client, declared)?.table(&keyset.select.of.table);
    let (mut set, mut names) = (Vec::new(), Vec::new());
    for param in values {
        if !param.is_named() {
            let text =
                "sp_cursor: Values that are written as a text of SQL are not supported: send each as a \
                        parameter with the name of its column.";
            return Err(ServerMessage::error(16902, 16, text).into());
        }
        let name = stored(&param.name(&dialect));
        if !keyset.columns.contains(&name) {
            return Err(ServerMessage::error(207, 16, format!("Invalid column name '{name}'.")).into());
        }
        let variable = format!("@{name}");
        let value = match variables.get(&variable) {
            None => continue,
            Some(found) if matches!(found.value, Value::Null) => String::from("null"),
            Some(found) => {
                let of =
                    table.as_ref().and_then(|table| table.column(&name)).map_or(UNKNOWN, |column| column.of);
                let index = names.len();
                names.push(variable);
                tsql::stored_parameter(index, found.sql_type.in_tsql(), of, dialect.of_texts())
                    .map_err(|error| refusal(&error))?
            }
        };
        set.push((quoted(&name), value));
    }
    Ok((set, names, variables))
}

pub(super) fn read_only() -> Failure {
    Failure::of_statement(ServerMessage::error(16929, 16, "The cursor is READ ONLY."))
}

fn not_fetched() -> ServerMessage {
    ServerMessage::error(16930, 16, "The requested row is not in the fetch buffer.")
}

fn modified() -> ServerMessage {
    let text = "Optimistic concurrency check failed. The row was modified outside of this cursor.";
    ServerMessage::error(16934, 16, text)
}

fn gone() -> ServerMessage {
    ServerMessage::error(16947, 16, "No rows were updated or deleted.")
}

fn too_many() -> ServerMessage {
    ServerMessage::error(8623, 16, format!("A cursor keeps at most {MOST_CHANGED} rows that it has changed."))
}
