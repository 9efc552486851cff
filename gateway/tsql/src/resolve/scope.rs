//! The scope of a translation: variables, tables and settings.

use super::names;
use crate::error::Error;
use crate::facts::session;
use crate::facts::types::Type;
use crate::schema::{Partial, Schema, Table};
use crate::Dialect;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// What a trigger of one event knows of the columns that its statement names.
#[derive(Clone, Debug)]
pub enum Fired {
    /// All are filled.
    Insert,
    Delete,
    /// The mark under which they are noted (`tsql.note_update`).
    Update(String),
}

#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Those declared, with @ in lower case, and their types; None for a placeholder, whose type PostgreSQL
    /// infers.
    pub variables: HashMap<String, Option<Type>>,
    pub dialect: &'static Dialect,
    /// A variable or literal that is null equals null.
    pub nulls_equal: bool,
    /// `set rowcount` may be in effect.
    pub limits_rows: bool,
    /// The default or the check of a column is being written.
    pub definition: bool,
    /// A value that is kept with its row is being written: nothing in it may hang on the session.
    pub stored: bool,
    /// The clock must be asked each time: a procedure is one statement to PostgreSQL, whose clock stands still.
    pub procedure: bool,
    /// The schema that the client uses.
    pub database: String,
    /// The declarations of tables and views; None: nothing is known of them.
    pub schema: Option<Arc<dyn Schema>>,
    /// Tables that the text itself makes or changes, by their own names in SQL: what `schema` has may not be true of them.
    pub changing: HashSet<String>,
    /// Of tables, as SQL names them: the columns that an insert without columns fills; None: all.
    pub filled: HashMap<String, Option<Vec<String>>>,
    /// Of tables, as SQL names them: the columns of type sql_variant, in lower case. A value is given its type on the way
    /// into one, which PostgreSQL's assignment would not know.
    pub variants: HashMap<String, Vec<String>>,
    /// Tables that lack rows, as SQL names them with their schema.
    pub partial: BTreeMap<String, Partial>,
    /// The table whose identity column takes values, as SQL names it.
    pub identity_insert: Option<String>,
    /// Tables that are no more than columns where they are named: `inserted` of a trigger on delete, by their
    /// names in lower case, as queries.
    pub empty: HashMap<String, String>,
    /// The trigger that is being written.
    pub trigger: Option<Fired>,
    /// Variables that are tables, with @ in lower case.
    pub table_variables: HashSet<String>,
    /// Those of them that are parameters: their rows are not changed.
    pub given_tables: HashSet<String>,
    /// The mark of the procedure that has them; "" in a batch.
    pub table_owner: String,
}

impl Scope {
    /// The declaration of a table or view, as SQL names it.
    pub fn table(&self, name: &str) -> Option<Arc<Table>> {
        let schema = self.schema.as_ref().filter(|_| !self.changing.contains(names::own_name(name)))?;
        schema.table(name)
    }

    /// The type of a variable. Error 137 when there is none.
    pub fn type_of(&self, name: &str, line: u32) -> Result<Option<Type>, Error> {
        if let Some(of) = self.variables.get(name) {
            return Ok(*of);
        }
        session::variable(name).map(Some).ok_or_else(|| Error::undeclared(name, line))
    }
}
