//! `where current of`: changes of the row that a cursor has fetched last (SQL Server: UPDATE, DELETE; ASE: "Cursors").

use super::declared::Cursors;
use super::postgres::not_open;
use crate::backend::Backend;
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::postgres::commit::Outcome;
use crate::postgres::message::row_values;
use crate::program::Current;
use crate::run::State;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use tsql::quoting::literal;

impl Cursors {
    /// Ctid and xmin of the row to change.
    pub fn row_version(&self, cursor: &str) -> Value<'static> {
        let version = self.known.get(cursor).and_then(|cursor| cursor.versions.get(cursor.changed).cloned());
        version.flatten().map_or(Value::Null, |version| Value::Text(version.into()))
    }

    /// After a change: stores the row's new ctid and xmin, or that it is deleted.
    pub fn changed_current(&mut self, current: &Current, outcome: &Outcome) -> Result<(), Interrupt> {
        let cursor = self.cursor(&current.cursor)?;
        let Some(row) = &outcome.row else {
            let text = "Optimistic concurrency check failed. The row was modified outside of this cursor.";
            return Err(ServerMessage::error(16934, 16, text).into());
        };
        let version = row_values(row).next().flatten();
        let version = version.map(|raw| String::from_utf8_lossy(raw).into_owned());
        if let Some(stored) = cursor.versions.get_mut(cursor.changed) {
            *stored = version;
        }
        Ok(())
    }
}

/// Checks that the cursor has a row of this table that may be changed, and selects it for the change.
pub async fn check_current(
    state: &mut State,
    client: &mut Client,
    current: &Current,
) -> Result<(), Interrupt> {
    let cursor = state.cursors.cursor(&current.cursor)?;
    if cursor.open.is_none() {
        return Err(not_open().into());
    }
    if let Err((number, text)) = cursor.changes.allow(&current.columns) {
        return Err(ServerMessage::error(number, 16, text).into());
    }
    let tables = cursor.tables.clone();
    let changed = table_of(&mut state.procedures.backend, client, &tables, &current.table).await?;
    let cursor = state.cursors.cursor(&current.cursor)?;
    cursor.changed = changed;
    match cursor.versions.get(changed) {
        Some(Some(_)) => Ok(()),
        _ => Err(ServerMessage::error(16931, 16, "There are no rows in the current fetch buffer.").into()),
    }
}

/// The index of this table among the cursor's tables.
async fn table_of(
    backend: &mut Backend,
    client: &mut Client,
    tables: &[String],
    table: &str,
) -> Result<usize, Interrupt> {
    let same = tables.iter().enumerate().filter(|(_, one)| *one == table);
    let mut same: Vec<_> = same.map(|(index, _)| index).collect();
    if same.is_empty() && !tables.is_empty() {
        let named: Vec<_> = tables.iter().map(|table| literal(table)).collect();
        let asked = format!(
            "select number from pg_catalog.unnest(array[{}]::text[]) with ordinality named (name, number) \
              where pg_catalog.to_regclass(name)::oid = pg_catalog.to_regclass({})::oid",
            named.join(", "),
            literal(table)
        );
        let rows = backend.rows(client, &asked).await?;
        let index = |row: &Vec<Option<String>>| row.first()?.as_ref()?.parse::<usize>().ok()?.checked_sub(1);
        same = rows.iter().filter_map(index).collect();
    }
    match same.as_slice() {
        [index] => Ok(*index),
        // no such table, or two
        _ => {
            let text = "The cursor does not include the table being modified or the table is not updatable \
                        through the cursor.";
            Err(ServerMessage::error(16933, 16, text).into())
        }
    }
}
