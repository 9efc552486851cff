//! The state of the translation of a statement or expression.

use super::current::Current;
use super::declared::Named;
use super::title::{ListItem, Title};
use super::value::Value;
use super::variables::Variables;
use crate::error::Error;
use crate::facts::types::Type;
use crate::program::{FilledBy, RowSource};
use crate::resolve::Scope;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
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

/// The table that a `create table … as` makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// As SQL names it.
    pub table: String,
    /// Bytes before its query.
    pub head: usize,
}

/// Bytes of SQL of one statement: some constructs repeat their operands.
const LONGEST: usize = 8 << 20;

/// One statement or expression: what it uses and assigns is gathered on the way.
pub struct Translation<'a> {
    pub scope: &'a Scope,
    pub variables: &'a mut dyn Variables,
    pub columns: Option<Vec<Title>>,
    pub assigns: Vec<String>,
    pub current: Option<Current>,
    pub into: Option<String>,
    /// The table of which no more rows are changed, or made, than `set rowcount` says.
    pub limited: Option<String>,
    pub made: Option<Made>,
    pub unlisted: Option<String>,
    pub filled: Option<FilledBy>,
    /// Variables that a select without FROM has assigned so far, and their values.
    pub assigned: HashMap<String, Value>,
    /// How many aggregates the select list being written has.
    pub aggregates: usize,
    /// Bytes written so far.
    written: usize,
    /// The types of columns, where they are known: in the definition of a table.
    pub column_types: HashMap<String, Type>,
    /// The rows of OUTPUT, while it is written.
    pub output: Option<ChangedRows>,
    /// The table that an UPDATE changes, while its rows are those before it.
    pub unchanged: Option<String>,
    /// Nobody else may write to the tables that it reads until the transaction ends.
    pub holds: bool,
    /// How many selects stand around what is being written.
    pub depth: usize,
    /// The items of the outermost select list, if it gives rows.
    pub items: Vec<ListItem>,
    /// The select that is written has an order of its own, or returns each row once.
    pub is_ordered: bool,
    /// Types of columns are not looked for: to PostgreSQL the columns of a recursive query are of its first rows' types.
    pub without_types: bool,
    /// The outermost selects are combined: the types of plain columns count.
    pub combining: bool,
    /// A NOT stands around what is being written: it makes a difference whether a condition is false or unknown.
    pub under_not: bool,
    /// The names of the queries of WITH, in lower case.
    pub common_names: HashSet<String>,
    /// Those of them that have been written.
    pub common_columns: HashMap<String, Named>,
    /// What the columns are of, of each select that stands around, the innermost last.
    pub named: Vec<Vec<Named>>,
    /// Of a select whose rows are each one of some tables: where its list ends, in bytes, and these.
    pub row_sources: Option<(usize, Vec<RowSource>)>,
}

impl<'a> Translation<'a> {
    pub fn new(scope: &'a Scope, variables: &'a mut dyn Variables) -> Translation<'a> {
        Translation {
            scope,
            variables,
            columns: None,
            assigns: Vec::new(),
            current: None,
            into: None,
            limited: None,
            made: None,
            unlisted: None,
            filled: None,
            assigned: HashMap::new(),
            holds: false,
            aggregates: 0,
            written: 0,
            column_types: HashMap::new(),
            output: None,
            unchanged: None,
            depth: 0,
            items: Vec::new(),
            is_ordered: false,
            without_types: false,
            combining: false,
            under_not: false,
            common_names: HashSet::new(),
            common_columns: HashMap::new(),
            named: Vec::new(),
            row_sources: None,
        }
    }

    pub fn sybase(&self) -> bool {
        self.scope.sybase
    }

    /// Counts what has been written. Error 191 when it is too much.
    pub fn wrote(&mut self, sql: &str, line: u32) -> Result<(), Error> {
        self.written += sql.len();
        if self.written > LONGEST {
            return Err(Error::nested_too_deeply(line));
        }
        Ok(())
    }
}
