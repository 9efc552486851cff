//! The declarations of tables and views. A statement is bound to them before it is written: they give the types of columns.

use crate::facts::types::Type;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// The tables and views that a text may name.
pub trait Schema: Debug + Send + Sync {
    /// A table or view, as SQL names it; None where nothing is known of it.
    fn table(&self, name: &str) -> Option<Arc<Table>>;
}

/// The name under which a schema has a user type, by its name in small letters: no table has one with a blank outside of
/// quotes.
pub fn type_key(name: &str) -> String {
    format!("{TYPE}{name}")
}

/// Whether a name is that of a user type.
pub fn is_type(name: &str) -> bool {
    name.starts_with(TYPE)
}

const TYPE: &str = "type ";

/// A schema of which nothing is known.
#[derive(Debug)]
pub struct Unknown;

impl Schema for Unknown {
    fn table(&self, _: &str) -> Option<Arc<Table>> {
        None
    }
}

/// A table or view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Each of its rows is one of a table, which can be locked.
    pub has_own_rows: bool,
    columns: Vec<Column>,
    /// Where each column stands, by its name.
    places: HashMap<String, usize>,
}

/// A column as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// As PostgreSQL has it: in lower case.
    pub name: String,
    /// None for a type that T-SQL does not declare.
    pub of: Option<Type>,
    /// Type and modifier of what PostgreSQL sends.
    pub sent: (u32, i32),
}

impl Table {
    pub fn add(&mut self, column: Column) {
        self.places.insert(column.name.clone(), self.columns.len());
        self.columns.push(column);
    }

    /// In the order of their declaration.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Of a user type: its declaration, which is the name of its only column.
    pub fn declared(&self) -> Option<&str> {
        self.columns.first().map(|column| column.name.as_str())
    }

    /// The column of this name, in lower case.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.places.get(name).map(|place| &self.columns[*place])
    }
}

/// A table some of whose rows lie elsewhere, by their times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partial {
    pub time: String,
    /// The function that raises an error or a message, as SQL names it: of the table's name and the bounds of `time`,
    /// the lower inclusive and the upper exclusive, which are null where they are not known.
    pub demand: String,
    /// Some lie elsewhere now.
    pub is_now: bool,
}
