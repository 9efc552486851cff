//! The binder of a statement or expression. It keeps the variables, the sources of columns, and the types of these
//! columns and of the result's.

pub(super) mod bound;
pub(super) mod changed_rows;
pub(super) mod declared;
pub(super) mod item;
pub(super) mod named;
pub(super) mod title;
pub(super) mod variables;

use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::types::Type;
use crate::fragments::{Facts, RowSource};
use crate::postgres::Statement;
use crate::resolve::names::Relation;
use crate::resolve::Scope;
use crate::schema::Table;
use crate::Dialect;
use changed_rows::ChangedRows;
use named::Named;
use std::collections::{HashMap, HashSet};
use title::{ListItem, Title};
use variables::Variables;

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

/// The most bytes of SQL of one statement: some constructs repeat their operands.
const LONGEST: usize = 8 << 20;

/// A change of the row of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    pub cursor: String,
    /// The changed table, in SQL.
    pub table: String,
    /// The columns that an update sets, in SQL.
    pub columns: Vec<String>,
}

/// A query or change.
#[derive(Clone, Debug, Default)]
pub struct Translated {
    pub sql: Statement,
    pub kind: Verb,
    /// The displayed names, "" for none; None if PostgreSQL's names are displayed ("?column?" is no name).
    pub columns: Option<Vec<Title>>,
    /// `select @a = …`: the variables, by name, that receive the last row's values, in the order of the columns, which
    /// have the variables' types.
    pub assigns: Vec<String>,
    /// `where current of`: its SQL returns the row's new ctid and xmin.
    pub current: Option<Current>,
    /// The table that an insert fills, in SQL.
    pub into: Option<String>,
    /// The table in which it changes, or creates, no more rows than the limit of `set rowcount`.
    pub limited: Option<String>,
    /// For a select that returns rows.
    pub items: Vec<ListItem>,
    /// The table of a SELECT INTO in a body, if its columns are known.
    pub made: Option<Table>,
    /// For a select each of whose rows is a row of these tables.
    pub row_sources: Vec<RowSource>,
}

/// The possible meanings of column names.
#[derive(Debug, Default)]
pub struct Names {
    /// The sources of columns, per enclosing select, innermost last.
    pub sources: Vec<Vec<Named>>,
    /// The names of the queries of WITH, in lower case.
    pub common: HashSet<String>,
    /// Those of them that have been written.
    pub written: HashMap<String, Named>,
}

/// The numbers of aggregates, and of those without a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregates {
    pub all: usize,
    pub plain: usize,
}

/// The context of the SQL being written.
#[derive(Debug, Default)]
pub struct Around {
    /// The number of enclosing selects.
    pub selects: usize,
    /// Those in the select list so far.
    pub aggregates: Aggregates,
    /// The number of `newid()` written.
    pub new_ids: usize,
    /// The number of `next value for` written.
    pub next_values: usize,
    /// The outermost selects are combined: the types of plain columns matter.
    pub combining: bool,
    /// Inside a NOT: it matters whether a condition is false or unknown.
    pub under_not: bool,
    /// The next select's rows become JSON.
    pub for_json: bool,
    /// Writers to the tables that are read must wait until the transaction ends.
    pub holds: bool,
}

/// Binds one statement or expression: it collects the names that it uses and assigns.
pub struct Binder<'a> {
    pub scope: &'a Scope,
    pub variables: &'a mut dyn Variables,
    /// Properties of the statement in addition to its SQL.
    pub result: Translated,
    pub names: Names,
    pub around: Around,
    /// Variables that a select without FROM has assigned so far, and their values.
    pub assigned: HashMap<String, Value>,
    /// The types of columns, if known: in the definition of a table.
    pub column_types: HashMap<String, Type>,
    /// The rows of OUTPUT, while it is written.
    pub output: Option<ChangedRows>,
    /// The table that an UPDATE changes, while its rows are those before it.
    pub unchanged: Option<String>,
    /// Bytes written so far.
    written: usize,
}

impl<'a> Binder<'a> {
    pub fn new(scope: &'a Scope, variables: &'a mut dyn Variables) -> Binder<'a> {
        Binder {
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

    /// Notes a table named in the SQL.
    pub fn note_table(&mut self, table: Relation) {
        self.note(|facts| {
            if !facts.tables.contains(&table) {
                facts.tables.push(table);
            }
        });
    }

    /// Counts the bytes written. Error 191 if there are too many.
    pub fn wrote(&mut self, bytes: usize, line: u32) -> Result<(), Error> {
        self.written += bytes;
        if self.written > LONGEST {
            return Err(Error::nested_too_deeply(line));
        }
        Ok(())
    }
}
