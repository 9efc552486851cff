//! The state of the translation of a statement or expression.

use super::current::Current;
use super::filled::FilledBy;
use super::named::Named;
use super::title::{ListItem, Title};
use super::value::Value;
use super::variables::Variables;
use crate::error::Error;
use crate::facts::types::Type;
use crate::fragments::{Facts, RowSource};
use crate::resolve::names::Relation;
use crate::resolve::Scope;
use crate::Dialect;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    #[default]
    Select,
    /// `create table … as …`
    SelectInto,
    Insert,
    Update,
    Delete,
    Merge,
}

/// What `inserted` and `deleted` are called in RETURNING; None where a statement has no such rows.
#[derive(Clone, Debug, Default)]
pub struct ChangedRows {
    pub inserted: Option<String>,
    pub deleted: Option<String>,
    /// What `$action` is called; None likewise.
    pub action: Option<&'static str>,
}

impl ChangedRows {
    /// Of an update whose rows are called `inserted`.
    pub fn updated(inserted: String) -> ChangedRows {
        ChangedRows { inserted: Some(inserted), deleted: Some(String::from("old")), action: None }
    }
}

/// Bytes of SQL of one statement: some constructs repeat their operands.
const LONGEST: usize = 8 << 20;

/// A query or change.
#[derive(Clone, Debug, Default)]
pub struct Translated {
    pub sql: String,
    pub kind: Verb,
    /// The names to be shown, "" for a nameless one; None where PostgreSQL's names are to be shown ("?column?" is
    /// nameless).
    pub columns: Option<Vec<Title>>,
    /// `select @a = …`: the variables, by name, that take the last row's values, in the order of the columns,
    /// which have the variables' types.
    pub assigns: Vec<String>,
    /// `where current of`: its SQL returns the place of the row as it is then.
    pub current: Option<Current>,
    /// The table that an insert fills, in SQL.
    pub into: Option<String>,
    /// The table of which it changes, or makes, no more rows than `set rowcount` says.
    pub limited: Option<String>,
    /// That table again, when the insert names no columns and the scope does not know which take values.
    pub unlisted: Option<String>,
    /// Of a select that gives rows.
    pub items: Vec<ListItem>,
    pub filled: Option<FilledBy>,
    /// Of a select whose rows are each one of some tables: these.
    pub row_sources: Vec<RowSource>,
}

/// What the names of columns can mean.
#[derive(Debug, Default)]
pub struct Names {
    /// The sources of the columns, of each surrounding select, the innermost last.
    pub sources: Vec<Vec<Named>>,
    /// The names of the queries of WITH, in lower case.
    pub common: HashSet<String>,
    /// Those of them that have been written.
    pub written: HashMap<String, Named>,
}

/// The place that is being written.
#[derive(Debug, Default)]
pub struct Around {
    /// How many selects stand around.
    pub selects: usize,
    /// How many aggregates the select list has so far.
    pub aggregates: usize,
    /// How many variables have been written.
    pub variables: usize,
    /// How many `newid()` have been written.
    pub new_ids: usize,
    /// The select has an order of its own, or returns each row once.
    pub is_ordered: bool,
    /// The outermost selects are combined: the types of plain columns count.
    pub combining: bool,
    /// A NOT stands around: it makes a difference whether a condition is false or unknown.
    pub under_not: bool,
    /// Types of columns are not looked for: to PostgreSQL the columns of a recursive query are of its first rows' types.
    pub without_types: bool,
    /// The next select's rows become JSON.
    pub for_json: bool,
    /// Nobody else may write to the tables that are read until the transaction ends.
    pub holds: bool,
}

/// One statement or expression: what it uses and assigns is gathered on the way.
pub struct Translation<'a> {
    pub scope: &'a Scope,
    pub variables: &'a mut dyn Variables,
    /// Properties of the statement beside its SQL.
    pub result: Translated,
    pub names: Names,
    pub around: Around,
    /// Variables that a select without FROM has assigned so far, and their values.
    pub assigned: HashMap<String, Value>,
    /// The types of columns, where they are known: in the definition of a table.
    pub column_types: HashMap<String, Type>,
    /// The rows of OUTPUT, while it is written.
    pub output: Option<ChangedRows>,
    /// The table that an UPDATE changes, while its rows are those before it.
    pub unchanged: Option<String>,
    /// Bytes written so far.
    written: usize,
}

impl<'a> Translation<'a> {
    pub fn new(scope: &'a Scope, variables: &'a mut dyn Variables) -> Translation<'a> {
        Translation {
            scope,
            variables,
            result: Translated::default(),
            names: Names::default(),
            around: Around::default(),
            assigned: HashMap::new(),
            column_types: HashMap::new(),
            output: None,
            unchanged: None,
            written: 0,
        }
    }

    pub fn dialect(&self) -> &'static Dialect {
        self.scope.dialect
    }

    /// Notes a fact of the SQL.
    pub fn note(&mut self, note: impl FnOnce(&mut Facts)) {
        if let Some(facts) = self.variables.facts() {
            note(facts);
        }
    }

    /// The SQL names a table.
    pub fn note_table(&mut self, table: Relation) {
        self.note(|facts| {
            if !facts.tables.contains(&table) {
                facts.tables.push(table);
            }
        });
    }

    /// Counts the written parts. Error 191 when they are too many.
    pub fn wrote(&mut self, sql: &str, line: u32) -> Result<(), Error> {
        self.written += sql.len();
        if self.written > LONGEST {
            return Err(Error::nested_too_deeply(line));
        }
        Ok(())
    }
}
