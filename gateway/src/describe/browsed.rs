//! `select … for browse`: hidden columns after those of the list complete each table's key, and each column is
//! described with its table and column name, so that the client can find the rows again (SQL Server: "FOR Clause",
//! BROWSE; DB-Library, "Browse mode"; jTDS, CachedResultSet).

use super::table_keys::{column_names, own_name, unique_key};
use crate::backend::{Backend, BrowsedColumns, Parameter};
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::program::Sql;
use crate::tds::tokens::columns::{Origin, Origins};
use std::collections::HashMap;

/// The query with the hidden columns. None: its rows are not rows of tables that a client could find again.
pub async fn browsed(
    backend: &mut Backend,
    client: &mut Client,
    sql: &Sql,
    parameters: &[Parameter<'_>],
) -> Result<Option<(Sql, BrowsedColumns)>, Interrupt> {
    let sources = &sql.row_sources;
    if sources.is_empty() || client.reply.gathering.is_some() {
        return Ok(None);
    }
    let listed = backend.columns(client, sql, parameters).await?;
    let mut names: HashMap<(u32, i16), (u8, String)> = HashMap::new();
    let (mut items, mut keys) = (String::new(), Vec::new());
    for (number, source) in (1_u8..).zip(sources) {
        let columns = column_names(backend, client, &source.table).await?;
        if columns.keys().any(|column| names.contains_key(column)) {
            // a table is named twice: PostgreSQL does not report which of the two a column belongs to
            return Ok(None);
        }
        names.extend(columns.into_iter().map(|(column, name)| (column, (number, name))));
        for key in unique_key(backend, client, &source.table).await? {
            keys.push(key.origin);
            if !listed.iter().any(|column| column.origin == key.origin) {
                items.push_str(&format!(", {}.{}", source.qualifier, key.quoted));
            }
        }
    }
    let Some(with_keys) = sql.with_items(items) else { return Ok(None) };
    let described = match backend.columns(client, &with_keys, parameters).await {
        Ok(described) => described,
        // the query's rows are not single rows of the tables
        Err(Interrupt::Failed(_)) => return Ok(None),
        Err(interrupt) => return Err(interrupt),
    };
    let origins = described.iter().map(|column| {
        let (table, name) = names.get(&column.origin)?;
        Some(Origin { table: *table, name: own_name(column, name) })
    });
    let columns = BrowsedColumns {
        origins: Origins {
            tables: sources.iter().map(|source| source.shown.clone()).collect(),
            columns: origins.collect(),
        },
        hidden: described.len() - listed.len(),
        keys: described.iter().map(|column| keys.contains(&column.origin)).collect(),
    };
    Ok(Some((with_keys, columns)))
}
