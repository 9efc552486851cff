//! The scope of a translation: variables, tables and settings.

use super::names;
use crate::error::Error;
use crate::facts::collations::{self, Collation};
use crate::facts::session;
use crate::facts::types::Type;
use crate::schema::{function_key, Function, Object, Partial, Schema, Table};
use crate::{Databases, Dialect};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The columns named by a trigger's statement, for one event.
#[derive(Clone, Debug)]
pub enum Fired {
    /// All columns are filled.
    Insert,
    Delete,
    /// The mark under which they are recorded (`tsql.note_update`).
    Update(String),
}

#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The declared variables, with @ in lower case, and their types.
    pub variables: HashMap<String, Type>,
    pub dialect: &'static Dialect,
    /// A null variable or literal equals null.
    pub nulls_equal: bool,
    /// `set rowcount` may be in effect.
    pub limits_rows: bool,
    /// The default or the check of a column is being written.
    pub definition: bool,
    /// A value that is stored with its row is being written: it must not depend on the session.
    pub stored: bool,
    /// The clock must be read each time: a procedure is one statement for PostgreSQL, whose clock stands still.
    pub procedure: bool,
    /// The schema that the client uses.
    pub database: String,
    pub databases: Arc<Databases>,
    /// The default collation of the client's schema is case-insensitive.
    pub folds: bool,
    /// The declarations of tables and views; None: unknown.
    pub schema: Option<Arc<dyn Schema>>,
    /// Tables that the text itself creates or changes, by their names in SQL without schema: `schema` may be outdated
    /// for them.
    pub changing: HashSet<String>,
    /// Tables that lack rows, by their names in SQL with schema.
    pub partial: BTreeMap<String, Partial>,
    /// The table whose identity column takes values, by its name in SQL.
    pub identity_insert: Option<String>,
    /// Tables that are always empty: `inserted` of a trigger on delete, by their names in lower case, and the table with
    /// their columns.
    pub empty: HashMap<String, String>,
    /// The trigger that is being written.
    pub trigger: Option<Fired>,
    /// Table variables, with @ in lower case.
    pub table_variables: HashSet<String>,
    /// Those of them that are parameters, whose rows are read-only.
    pub given_tables: HashSet<String>,
    /// The mark of their procedure or inner text; "" in a batch.
    pub table_owner: String,
}

impl Scope {
    /// An object by its key (`Schema::object`).
    pub fn object(&self, key: &str) -> Option<Object> {
        let schema = self.schema.as_ref().filter(|_| !self.changing.contains(names::own_name(key)))?;
        schema.object(key)
    }

    /// The functions of a name in SQL.
    pub fn function(&self, name: &str) -> Option<Arc<Function>> {
        self.object(&function_key(name))?.function()
    }

    /// The declaration of a table or view, by its name in SQL.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.object(name)?.table()
    }

    /// The scope of an object that is created in another schema.
    pub fn in_schema(&self, schema: &str) -> Scope {
        Scope { database: schema.to_owned(), folds: self.databases.folding.contains(schema), ..self.clone() }
    }

    /// The collation of this name; None for one that texts cannot be compared by.
    pub fn collation(&self, name: &str) -> Option<Collation> {
        match name.eq_ignore_ascii_case("database_default") {
            true if self.folds => Some(Collation::Insensitive),
            true => Some(Collation::Binary),
            false => collations::named(name),
        }
    }

    /// The type of a variable. Error 137 if there is none.
    pub fn type_of(&self, name: &str, line: u32) -> Result<Type, Error> {
        if let Some(of) = self.variables.get(name) {
            return Ok(*of);
        }
        session::variable(name).ok_or_else(|| Error::undeclared(name, line))
    }
}
