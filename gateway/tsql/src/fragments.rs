//! Written SQL: text and marks, and facts noted during writing. It is not parsed again.
//!
//! Marks are enclosed in NULs, which neither T-SQL nor PostgreSQL's SQL contains.

use crate::resolve::names::{Relation, RelationKind};

/// Marks the end of the select list of a query of tables.
pub const LIST_END: &str = "\0list\0";
/// Precedes the query of `create table … as`.
pub const QUERY: &str = "\0query\0";

/// A part of written SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fragment {
    Text(String),
    /// By its index among those of the statement, from 0.
    Variable(usize),
    ListEnd,
    Query,
}

/// Facts about SQL, noted while it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// It calls functions that are not T-SQL's and may have effects.
    pub calls: bool,
    /// It has a FROM.
    pub reads: bool,
    /// Its rows depend on the time or the session's state.
    pub varies: bool,
    /// It may return nulls for columns declared not null: the other side of an outer join, or a total.
    pub adds_nulls: bool,
    /// Its text is unique: it names a cursor.
    pub once: bool,
    /// The tables, views and functions of the catalogue that it names.
    pub tables: Vec<Relation>,
    /// The table that it creates.
    pub created: Option<Relation>,
    /// The rows of the table that it creates are rows of one table.
    pub of_one_table: bool,
    /// The tables and views whose definition it changes.
    pub changed: Vec<Relation>,
    /// The tables that are locked before it runs, against writers.
    pub locks: Vec<String>,
}

impl Facts {
    /// Whether a query returns the same rows whenever it runs on the same tables. A global temporary table may end.
    pub fn keeps(&self) -> bool {
        let is_one = |table: &Relation| !matches!(table.kind, RelationKind::Function | RelationKind::Global);
        !self.calls && !self.varies && self.tables.iter().all(is_one)
    }

    fn named(&self) -> impl Iterator<Item = &Relation> {
        self.tables.iter().chain(&self.created).chain(&self.changed)
    }

    /// Whether it names a temporary table.
    pub fn names_temporary(&self) -> bool {
        self.named().any(|table| table.is_temporary())
    }

    /// Whether it defines only temporary tables.
    pub fn defines_temporary(&self) -> bool {
        let mut defined = self.created.iter().chain(&self.changed).peekable();
        defined.peek().is_some() && defined.all(|table| table.is_temporary())
    }

    pub fn names_global(&self) -> bool {
        self.named().any(Relation::is_global)
    }

    /// The global temporary tables that must exist, with ##.
    pub fn globals(&self) -> impl Iterator<Item = &str> {
        let globals = self.tables.iter().chain(&self.changed).filter(|table| table.is_global());
        globals.map(|table| table.own.as_str())
    }
}

/// A table whose rows a query selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSource {
    /// The qualifier of its columns.
    pub qualifier: String,
    /// Its name in SQL.
    pub table: String,
    /// Its name in the query.
    pub shown: String,
}

/// The mark of a variable.
pub fn variable(index: usize) -> String {
    format!("\0{index}\0")
}

/// The parts of written SQL.
pub fn split(written: &str) -> Vec<Fragment> {
    let part = |(number, part): (usize, &str)| match part {
        _ if number % 2 == 0 => (!part.is_empty()).then(|| Fragment::Text(part.to_owned())),
        "list" => Some(Fragment::ListEnd),
        "query" => Some(Fragment::Query),
        variable => variable.parse().ok().map(Fragment::Variable),
    };
    written.split('\0').enumerate().filter_map(part).collect()
}
