//! The objects that a text may name: tables and views, user types, functions. Their declarations determine the types of
//! columns and results before a statement is written.

use crate::error::Error;
use crate::facts::types::Type;
use crate::resolve::names::own_name;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

/// An object of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    Table(Arc<Table>),
    /// The declaration of a user type.
    Type(Arc<str>),
    Function(Arc<Function>),
}

impl Object {
    /// An object of the kind of this key, without a declaration.
    pub fn empty(key: &str) -> Object {
        match key {
            _ if is_table(key) => Object::Table(Arc::default()),
            _ if key.starts_with(TYPE) => Object::Type(Arc::from("")),
            _ => Object::Function(Arc::default()),
        }
    }

    pub fn table(self) -> Option<Arc<Table>> {
        match self {
            Object::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn function(self) -> Option<Arc<Function>> {
        match self {
            Object::Function(function) => Some(function),
            _ => None,
        }
    }
}

/// The objects that a text may name.
pub trait Schema: Debug + Send + Sync {
    /// An object by its key: the name of a table or view in SQL, `type_key`, `function_key`; None if unknown.
    fn object(&self, key: &str) -> Option<Object>;

    /// A table or view by its name in SQL; None if unknown.
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.object(name)?.table()
    }

    /// Whether an object that it lacks is missing.
    fn is_complete(&self) -> bool {
        true
    }
}

/// The key of a user type in a schema, by its name in lower case: no unquoted table name contains a blank.
pub fn type_key(name: &str) -> String {
    format!("{TYPE}{name}")
}

/// Whether a key is that of a table or view.
pub fn is_table(key: &str) -> bool {
    !key.starts_with(TYPE) && !key.starts_with(FUNCTION)
}

/// The key of the functions of a name in SQL.
pub fn function_key(name: &str) -> String {
    format!("{FUNCTION}{name}")
}

/// The name in SQL of a function's key.
pub fn function_name(key: &str) -> Option<&str> {
    key.strip_prefix(FUNCTION)
}

/// The table of a trigger, by its name when the trigger runs.
pub const CHANGED: &str = "tg_relid::regclass";

const TYPE: &str = "type ";
const FUNCTION: &str = "function ";

/// Among the names of the columns that SQL depends on: the number of all columns. No column has it.
pub const WHOLE: &str = "";

/// 213: an insert gives another number of values than the table takes.
pub fn other_number(line: u32) -> Error {
    let text = "Column name or number of supplied values does not match table definition.";
    Error::new(213, text, line).with_severity(16)
}

/// A schema without knowledge.
#[derive(Debug)]
pub struct Unknown;

impl Schema for Unknown {
    fn object(&self, _: &str) -> Option<Object> {
        None
    }

    fn is_complete(&self) -> bool {
        false
    }
}

/// The functions of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    pub signatures: Vec<Signature>,
}

/// A function of PostgreSQL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// For a function of T-SQL: whether it gives rows.
    pub gives_rows: Option<bool>,
    /// The number of arguments without a default.
    pub least: usize,
    /// The types of all arguments.
    pub takes: Vec<Type>,
    /// The type of its value.
    pub returns: Type,
    /// The columns of its rows; none for a value.
    pub rows: Table,
}

impl Function {
    /// The signature of a call with arguments of these types, if all that PostgreSQL may choose give the same.
    pub fn called(&self, arguments: &[Type]) -> Option<&Signature> {
        let takes = |one: &&Signature| (one.least..=one.takes.len()).contains(&arguments.len());
        let is_exact = |one: &&Signature| {
            let pairs = one.takes.iter().zip(arguments);
            pairs.into_iter().all(|(takes, given)| given.oid == takes.oid)
        };
        let fitting: Vec<&Signature> = self.signatures.iter().filter(takes).collect();
        let first = *fitting.first()?;
        match fitting.iter().all(|one| one.returns == first.returns && one.rows == first.rows) {
            true => Some(first),
            false => fitting.into_iter().find(is_exact),
        }
    }
}

/// A table or view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Each of its rows is a row of one table, which can be locked.
    pub has_own_rows: bool,
    /// The events that fire a trigger of T-SQL: `insert`, `update`, `delete`, separated by blanks.
    pub fires: String,
    columns: Vec<Column>,
    /// The index of each column, by its name.
    indexes: HashMap<String, usize>,
}

/// A declared column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// The name in PostgreSQL, in lower case.
    pub name: String,
    pub of: Type,
    /// Type and modifier that PostgreSQL sends.
    pub sent: (u32, i32),
    /// Its type and T-SQL's declaration as PostgreSQL's catalogue has them (`tsql.demand_declared`).
    pub catalogued: Box<str>,
    pub is_identity: bool,
    pub is_computed: bool,
}

impl Column {
    /// Whether an insert without a column list gives it a value.
    pub fn takes_value(&self) -> bool {
        !self.is_identity && !self.is_computed
    }
}

impl Table {
    pub fn add(&mut self, column: Column) {
        self.indexes.insert(column.name.clone(), self.columns.len());
        self.columns.push(column);
    }

    /// The columns that an insert without a column list fills.
    pub fn filled(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.takes_value())
    }

    /// Error 213 or 8101 if an insert without a column list cannot give this number of values. `name`: the table's, in
    /// SQL.
    pub fn demand_values(&self, name: &str, number: usize, line: u32) -> Result<(), Error> {
        if self.filled().count() == number {
            return Ok(());
        }
        let has_identity = self.columns.iter().any(|column| column.is_identity);
        if has_identity && self.columns.iter().filter(|column| !column.is_computed).count() == number {
            let text = format!(
                "An explicit value for the identity column in table '{}' can only be specified when a column list is \
                 used and IDENTITY_INSERT is ON.",
                own_name(name)
            );
            return Err(Error::new(8101, text, line).with_severity(16));
        }
        Err(other_number(line))
    }

    /// In the order of their declaration.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of this name, in lower case.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.indexes.get(name).map(|index| &self.columns[*index])
    }
}

/// A table some of whose rows are elsewhere, by their times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partial {
    pub time: String,
    /// The function, by its name in SQL, that raises an error or a message: its arguments are the table's name and the
    /// bounds of `time`, the lower inclusive and the upper exclusive, null if unknown.
    pub demand: String,
    /// Some are elsewhere now.
    pub is_now: bool,
}
