//! The keys by which the rows of an updatable cursor are found again (SQL Server: "Cursors", keyset-driven).

use crate::backend::KeyedColumns;
use std::collections::HashMap;
use tsql::quoting::literal;
use tsql::Keyed;

/// The values of a key as texts.
pub type Key = Vec<Option<String>>;

#[derive(Debug)]
pub struct Keyset {
    pub select: Keyed,
    /// The key columns, quoted, and their types.
    pub key: Vec<(String, String)>,
    /// The description of its rows.
    pub described: KeyedColumns,
    /// Names of the table's columns in lower case.
    pub columns: Vec<String>,
    /// The number of rows when it was opened.
    pub held: i64,
    /// The keys of inserted rows, which follow those.
    pub added: Vec<Key>,
    /// The keys that the cursor has changed, by row number.
    pub changed: HashMap<i64, Key>,
    /// The rows fetched last.
    pub buffer: Vec<Row>,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub number: i64,
    pub key: Key,
    /// The version of the row; None: it is deleted.
    pub version: Option<Version>,
}

/// PostgreSQL's ctid and xmin.
#[derive(Clone, Debug)]
pub struct Version(pub String, pub String);

impl Version {
    pub fn read(text: &str) -> Option<Version> {
        text.split_once(' ').map(|(ctid, xmin)| Version(ctid.to_owned(), xmin.to_owned()))
    }
}

impl Keyset {
    /// The SQL condition that a row of the table has this key.
    pub fn is(&self, qualifier: &str, key: &Key) -> String {
        let one = |((column, of), value): (&(String, String), &Option<String>)| {
            format!("{qualifier}{column} = {}::{of}", written_out(value.as_deref()))
        };
        self.key.iter().zip(key).map(one).collect::<Vec<_>>().join(" and ")
    }

    pub fn as_texts(&self, qualifier: &str) -> String {
        let one = |(column, _): &(String, String)| format!("{qualifier}{column}::text");
        self.key.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The query for the rows with these keys, in their order; NULLs without a version for a deleted row.
    pub fn reading(&self, rows: &[Row]) -> String {
        let name = &self.select.of.name;
        let written = |number: i64, key: &[Option<&str>]| {
            let values: Vec<_> = key
                .iter()
                .zip(&self.key)
                .map(|(value, (_, of))| format!("{}::{of}", written_out(*value)))
                .collect();
            format!("({number}, {})", values.join(", "))
        };
        let mut values = vec![written(0, &vec![None; self.key.len()])];
        values.extend(
            (1..).zip(rows).map(|(number, row)| {
                written(number, &row.key.iter().map(Option::as_deref).collect::<Vec<_>>())
            }),
        );
        let own: Vec<_> = (0..=self.key.len()).map(|number| format!("\"ringlog {number}\"")).collect();
        let on: Vec<_> = (1..)
            .zip(&self.key)
            .map(|(number, (column, _))| format!("{name}.{column} = \"ringlog {number}\""))
            .collect();
        format!(
            "select {}, {name}.ctid::text || ' ' || {name}.xmin::text from (values {}) as \"ringlog keys\" ({}) \
             left join {} on {} where \"ringlog 0\" > 0 order by \"ringlog 0\"",
            self.select.of.items,
            values.join(", "),
            own.join(", "),
            self.select.of.from,
            on.join(" and "),
        )
    }
}

/// A value as SQL, or null.
fn written_out(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), literal)
}
