//! The unique keys of tables, by which clients find rows again.

use crate::backend::Backend;
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::postgres::message::PgColumn;
use std::collections::HashMap;
use tsql::long_names::stored;
use tsql::quoting::literal;

/// A column of a key.
pub struct KeyColumn {
    /// Table oid and column number of PostgreSQL.
    pub origin: (u32, i16),
    /// Its name in SQL.
    pub quoted: String,
    /// Its type in SQL.
    pub of: String,
}

/// The columns of the primary key, or of another unique key without nulls; none if there is no such key. `table`:
/// its name in SQL.
pub async fn unique_key(
    backend: &mut Backend,
    client: &mut Client,
    table: &str,
) -> Result<Vec<KeyColumn>, Interrupt> {
    let table = literal(table);
    let question = format!(
        "select a.attrelid::bigint, a.attnum, pg_catalog.format('%I', a.attname),
                pg_catalog.format_type(a.atttypid, a.atttypmod)
           from (select i.indrelid, i.indkey::int2[] as columns, i.indnkeyatts::bigint as many
                   from pg_catalog.pg_index i
                  where i.indrelid = sys.stored_in(pg_catalog.to_regclass({table})::oid)
                    and i.indisunique and i.indisvalid
                    and i.indpred is null and i.indexprs is null
                    and not exists (select from pg_catalog.pg_attribute a
                      where a.attrelid = i.indrelid and a.attnum = any (i.indkey) and not a.attnotnull)
                  order by i.indisprimary desc, i.indexrelid
                  limit 1) key,
                pg_catalog.unnest(key.columns) with ordinality part (number, ordinal)
           join pg_catalog.pg_attribute k on k.attnum = part.number
           join pg_catalog.pg_attribute a on a.attname = k.attname
          where k.attrelid = key.indrelid and part.ordinal <= key.many
            and a.attrelid = pg_catalog.to_regclass({table})::oid
          order by part.ordinal"
    );
    let rows = backend.rows(client, &question).await?;
    let column = |row: Vec<Option<String>>| {
        let [Some(table), Some(number), Some(quoted), Some(of)] = <[_; 4]>::try_from(row).ok()? else {
            return None;
        };
        Some(KeyColumn { origin: origin(&table, &number)?, quoted, of })
    };
    Ok(rows.into_iter().filter_map(column).collect())
}

/// The names of a table's columns, by table and number. `table`: its name in SQL.
pub async fn column_names(
    backend: &mut Backend,
    client: &mut Client,
    table: &str,
) -> Result<HashMap<(u32, i16), String>, Interrupt> {
    let question = format!(
        "select attrelid::bigint, attnum, attname from pg_catalog.pg_attribute
          where attrelid = pg_catalog.to_regclass({})::oid and attnum > 0 and not attisdropped",
        literal(table)
    );
    let rows = backend.rows(client, &question).await?;
    let column = |row: Vec<Option<String>>| {
        let [Some(table), Some(number), Some(name)] = <[_; 3]>::try_from(row).ok()? else { return None };
        Some((origin(&table, &number)?, name))
    };
    Ok(rows.into_iter().filter_map(column).collect())
}

/// The declared name of a table's column. `name`: its name in PostgreSQL.
pub fn own_name(column: &PgColumn, name: &str) -> String {
    let shown = column.declared.shown.as_ref().filter(|shown| stored(shown) == name);
    shown.map_or_else(|| name.to_owned(), ToString::to_string)
}

fn origin(table: &str, number: &str) -> Option<(u32, i16)> {
    Some((table.parse().ok()?, number.parse().ok()?))
}
