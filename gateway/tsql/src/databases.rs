//! Databases and the schemas in them, all of which are schemas of PostgreSQL.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Databases {
    /// The schemas whose default collation is case-insensitive.
    pub folding: BTreeSet<String>,
    /// Schemas in databases, each with its database.
    pub inner: BTreeMap<String, String>,
    /// Those of a server have been read. Otherwise any database may have any schema.
    pub are_all: bool,
}

impl Databases {
    /// The database that has this schema in it; None for a schema that is a database.
    pub fn of_schema(&self, schema: &str) -> Option<&str> {
        self.inner.get(schema).map(String::as_str)
    }

    /// Where a module of this schema looks names up: the schema itself, then its database.
    pub fn path<'a>(&'a self, schema: &'a str) -> impl Iterator<Item = &'a str> {
        iter::once(schema).chain(self.of_schema(schema))
    }

    /// The database of a name in T-SQL without one, in a text of this schema.
    pub fn around<'a>(&'a self, schema: &'a str) -> &'a str {
        self.of_schema(schema).unwrap_or(schema)
    }

    /// Whether the database has a schema of this name, in any case.
    pub fn has(&self, database: &str, schema: &str) -> bool {
        !self.are_all
            || self.of_schema(&schema.to_lowercase()).is_some_and(|of| of == database.to_lowercase())
    }
}

/// The databases, and the schema in which a text is run.
#[derive(Clone, Copy, Debug)]
pub struct Known<'t> {
    pub databases: &'t Databases,
    pub schema: &'t str,
}
