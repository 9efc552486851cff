//! The cursors that a rollback leaves open (SQL Server, ROLLBACK TRANSACTION: STATIC and INSENSITIVE ones, unless
//! CURSOR_CLOSE_ON_COMMIT is on). PostgreSQL drops those that the transaction has opened, so their rows are read before
//! the rollback, and opened again under the same name after it.

use super::declared::Cursors;
use super::postgres::move_in;
use crate::backend::{own_titles, Backend};
use crate::client::Client;
use crate::convert::SqlType;
use crate::interrupt::Interrupt;
use crate::limits::memory::Kept;
use crate::postgres::message::PgColumn;
use crate::program::Sql;
use crate::run::State;
use std::sync::Arc;
use tsql::quoting::{literal, quoted};

/// The most bytes of the rows of a session's cursors. A rollback closes the cursors that have more.
const MOST_BYTES: usize = 32 << 20;
/// The bytes, about, and the most rows that are read at once.
const AT_ONCE: usize = 256 << 10;
const MOST_AT_ONCE: usize = 1000;

/// A cursor, while its transaction is rolled back.
pub struct KeptCursor {
    /// Its name in PostgreSQL.
    name: String,
    columns: Arc<[PgColumn]>,
    /// As text. None: they are too many.
    rows: Option<Vec<Vec<Option<String>>>>,
    /// The number of its current row, 0 before the first one.
    at: i64,
    _kept: Kept,
}

impl Cursors {
    /// The query for the names in PostgreSQL of the open static cursors; None if there are none.
    fn static_cursors(&self) -> Option<String> {
        let declared = self.known.values().filter(|cursor| cursor.is_static);
        let declared = declared.filter_map(|cursor| cursor.open.as_deref());
        let names: Vec<_> = declared.chain(self.server.of_static()).map(literal).collect();
        let names = names.join(", ");
        let open =
            || format!("select name from pg_catalog.pg_cursors where name = any (array[{names}]::text[])");
        (!names.is_empty()).then(open)
    }

    /// PostgreSQL no longer knows the tables of the cursor's columns, whose declarations name and type them.
    fn keep_titles(&mut self, cursor: &KeptCursor) {
        let is_it = |open: &Option<String>| open.as_ref() == Some(&cursor.name);
        if let Some(known) = self.known.values_mut().find(|known| is_it(&known.open)) {
            known.titles = Some(own_titles(&cursor.columns, known.columns.as_deref()));
        }
        self.server.rename(&cursor.name, |titles| own_titles(&cursor.columns, titles));
    }
}

/// Reads the cursors that are to stay open, of those that this transaction has opened.
pub async fn keep_cursors(state: &mut State, client: &mut Client) -> Result<Vec<KeptCursor>, Interrupt> {
    let mut cursors = Vec::new();
    if client.settings().closes_cursors || !state.procedures.backend.in_transaction() {
        return Ok(cursors);
    }
    let Some(open) = state.cursors.static_cursors() else { return Ok(cursors) };
    let opened = format!("{open} and creation_time >= pg_catalog.transaction_timestamp()");
    let mut bytes = 0;
    for name in state.procedures.backend.rows(client, &opened).await?.into_iter().flatten().flatten() {
        cursors.push(keep_cursor(&mut state.procedures.backend, client, name, &mut bytes).await?);
    }
    Ok(cursors)
}

async fn keep_cursor(
    backend: &mut Backend,
    client: &mut Client,
    name: String,
    bytes: &mut usize,
) -> Result<KeptCursor, Interrupt> {
    let is_at_row = move_in(backend, client, &name, "relative 0").await? > 0;
    let before = move_in(backend, client, &name, "backward all").await?;
    // it is before the first row, or after the last one
    let at = if is_at_row || before > 0 { before + 1 } else { 0 };
    let described = Sql::plain(format!("fetch forward 0 from {name}")).once();
    let columns = backend.columns(client, &described, &[]).await?;
    let (mut rows, mut own_bytes, mut next) = (Vec::new(), 0, 1);
    let mut kept = Kept::default();
    loop {
        let read = backend.rows(client, &format!("fetch forward {next} from {name}")).await?;
        let is_last = read.len() < next;
        let bytes_of =
            |value: &Option<String>| size_of::<Option<String>>() + value.as_ref().map_or(0, String::len);
        own_bytes += read.iter().flatten().map(bytes_of).sum::<usize>();
        if kept.keep(*bytes + own_bytes, MOST_BYTES, "the rows of cursors").is_err() {
            return Ok(KeptCursor { name, columns, rows: None, at, _kept: Kept::default() });
        }
        rows.extend(read);
        if is_last {
            break;
        }
        next = (AT_ONCE / (own_bytes / rows.len()).max(1)).clamp(1, MOST_AT_ONCE);
    }
    *bytes += own_bytes;
    Ok(KeptCursor { name, columns, rows: Some(rows), at, _kept: kept })
}

/// Opens the cursors that the rollback has closed, and moves all to where they were.
pub async fn open_again(
    state: &mut State,
    client: &mut Client,
    cursors: Vec<KeptCursor>,
) -> Result<(), Interrupt> {
    if cursors.is_empty() {
        return Ok(());
    }
    let Some(open) = state.cursors.static_cursors() else { return Ok(()) };
    let open: Vec<String> =
        state.procedures.backend.rows(client, &open).await?.into_iter().flatten().flatten().collect();
    for cursor in cursors {
        if !open.contains(&cursor.name) {
            let Some(rows) = &cursor.rows else { continue };
            let types =
                state.procedures.backend.rows(client, &format!("select {}", types(&cursor.columns))).await?;
            let types: Vec<String> = types.into_iter().flatten().flatten().collect();
            state.procedures.backend.rows(client, &declaring(&cursor, rows, &types)).await?;
            state.procedures.backend.pin();
            state.cursors.keep_titles(&cursor);
        }
        move_in(&mut state.procedures.backend, client, &cursor.name, &format!("absolute {}", cursor.at))
            .await?;
    }
    Ok(())
}

/// The expressions of the types of the columns.
fn types(columns: &[PgColumn]) -> String {
    let of = |column: &PgColumn| match (SqlType { oid: column.oid, typmod: column.typmod }).own_name() {
        Some(name) => literal(&format!("tsql.{name}")),
        None => format!("pg_catalog.format_type({}, {})", column.oid, column.typmod),
    };
    columns.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// The statement that opens the cursor with its rows.
fn declaring(cursor: &KeptCursor, rows: &[Vec<Option<String>>], types: &[String]) -> String {
    let (mut list, mut arrays, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (column, of)) in cursor.columns.iter().zip(types).enumerate() {
        // an element of an array is read by the type's own input, other than a text by a cast
        let is_array = of.ends_with("[]");
        let value = |row: &Vec<Option<String>>| {
            let value = row.get(index)?.as_deref()?;
            Some(element(&if is_array { value.to_owned() } else { format!("{{{}}}", element(value)) }))
        };
        let values: Vec<_> =
            rows.iter().map(|row| value(row).unwrap_or_else(|| String::from("null"))).collect();
        arrays.push(format!("pg_catalog.unnest({}::text[])", literal(&format!("{{{}}}", values.join(",")))));
        let read = if is_array { format!("v{index}::{of}") } else { format!("(v{index}::{of}[])[1]") };
        list.push(format!("{read} as {}", quoted(&column.name)));
        names.push(format!("v{index}"));
    }
    format!(
        "declare {} scroll cursor with hold for select {} from rows from ({}) as kept ({})",
        cursor.name,
        list.join(", "),
        arrays.join(", "),
        names.join(", ")
    )
}

/// A value in the text of an array.
fn element(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}
