//! The procedure catalogue: the callable procedures and their signatures, read from PostgreSQL's own
//! catalogue.

mod arguments;
mod function;
mod parameters;
mod plan;
mod reading;
mod schemas;
#[cfg(test)]
mod tests;
mod text;
mod versions;
mod watch;

pub use arguments::{assign, bind, fits, texts_taken, BindError, Bound};
pub use function::{Function, Returns};
pub use parameters::{Argument, Direction};
pub use plan::Plan;
pub use reading::Extent;
pub use schemas::{OWN, TEMPORARY};
pub use text::Text;
pub use watch::{Changed, LiveCatalogue, Reason, Watcher};

use crate::tds::dialect::Dialect;
use schemas::{OF_SYBASE, SYSTEM};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tsql::long_names::stored;
use tsql::program::Partial;
use tsql::Databases;
use versions::Versions;

/// The schemas of names without a database.
#[derive(Clone, Copy, Debug)]
pub struct SearchPath<'a> {
    /// The database (schema) in use.
    pub database: &'a str,
    /// The role's own search path.
    pub schemas: &'a [String],
}

/// A snapshot of all functions.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// By name in lower case.
    functions: HashMap<String, Vec<Arc<Function>>>,
    /// The tables on nodes, each with its node.
    nodes: HashMap<String, Arc<str>>,
    databases: Arc<Databases>,
    /// Tables that lack rows, by their names in SQL.
    partial: BTreeMap<String, Partial>,
    versions: Versions,
}

/// The reason why `Catalogue::find` found no function, or several.
#[derive(Debug, PartialEq, Eq)]
pub enum Unresolved {
    Missing,
    /// The names of the functions that fit equally.
    Ambiguous(Vec<String>),
}

impl Catalogue {
    /// A catalogue of these functions, and of these tables on nodes.
    fn of(all: impl IntoIterator<Item = Arc<Function>>, nodes: HashMap<String, Arc<str>>) -> Catalogue {
        let mut functions: HashMap<String, Vec<_>> = HashMap::new();
        for function in all {
            functions.entry(function.name.to_lowercase()).or_default().push(function);
        }
        Catalogue { functions, nodes, ..Catalogue::default() }
    }

    /// The tables that lack rows, or may when a definition runs, among those that a text may name.
    pub fn partial_in(&self, text: &str, database: &str) -> BTreeMap<String, Partial> {
        if self.partial.is_empty() {
            return BTreeMap::new();
        }
        let text = text.to_lowercase();
        let defines = ["create", "alter"].iter().any(|word| text.contains(word));
        let is_named = |table: &str| match table.trim_matches('"').split_once("\".\"") {
            Some((schema, name)) => {
                (schema == database || text.contains(schema)) && text.contains(&name.to_lowercase())
            }
            None => false,
        };
        let found = self.partial.iter().filter(|(table, of)| (of.is_now || defines) && is_named(table));
        found.map(|(table, of)| (table.clone(), of.clone())).collect()
    }

    pub fn databases(&self) -> Arc<Databases> {
        self.databases.clone()
    }

    fn by_oid(&self) -> HashMap<u32, &Arc<Function>> {
        self.functions.values().flatten().map(|function| (function.oid, function)).collect()
    }

    /// The node for a call of `function` with these values of a Bind message; None: this server.
    pub fn node_of<'a>(&'a self, function: &'a Function, values: &[u8]) -> Option<&'a Arc<str>> {
        if function.node.is_some() || self.nodes.is_empty() || !function.goes_by_table() {
            return function.node.as_ref();
        }
        let (length, rest) = values.split_first_chunk()?;
        let name = rest.get(..usize::try_from(i32::from_be_bytes(*length)).ok()?)?;
        self.nodes.get(std::str::from_utf8(name).ok()?)
    }

    /// The node that may have the table with this name in SQL; None: no node.
    pub fn node_of_table(&self, table: &str) -> Option<&Arc<str>> {
        let name = table.strip_suffix('"')?;
        let name = name.rfind('"').and_then(|quote| name.get(quote + 1..))?;
        self.nodes.get(name)
    }

    /// The function that `name` refers to for a client of `dialect`, in the named database (schema) or else in `path`.
    /// Other databases are not searched; system procedures and ringlog's own exist in all of them. Precedence: a system
    /// procedure, then the schema's own, then the database's with the schema in it, then the first in the path; an exact
    /// spelling before one that differs in case; among overloads the one whose parameters fit the call.
    pub fn find(
        &self,
        schema: Option<&str>,
        name: &str,
        path: SearchPath<'_>,
        dialect: &Dialect,
        fits: impl Fn(&Function) -> bool,
    ) -> Result<Arc<Function>, Unresolved> {
        let all = self.functions.get(&stored(name)).map_or(&[][..], Vec::as_slice);
        let is_there = |function: &Function| match schema {
            Some(schema) => function.schema.eq_ignore_ascii_case(schema),
            None => function.schema == path.database,
        };
        let around = self.databases.of_schema(path.database).filter(|_| schema.is_none());
        let is_around = |function: &Function| Some(function.schema.as_str()) == around;
        let in_path = |function: &Function| match schema {
            Some(_) => None,
            None => path.schemas.iter().rev().position(|schema| *schema == function.schema),
        };
        let may_be_meant = |function: &Function| match function.schema.as_str() {
            OF_SYBASE => !dialect.is_tds7(),
            SYSTEM | OWN => true,
            _ => is_there(function) || is_around(function) || in_path(function).is_some(),
        };
        let all: Vec<_> = all.iter().filter(|function| may_be_meant(function)).collect();
        let rank = |function: &Function| {
            (
                function.schema == OF_SYBASE,
                function.is_system(),
                is_there(function),
                is_around(function),
                in_path(function),
                function.name == name,
            )
        };
        let Some(best) = all.iter().map(|function| rank(function)).max() else {
            return Err(Unresolved::Missing);
        };
        let candidates: Vec<_> = all.into_iter().filter(|function| rank(function) == best).collect();
        if let [only] = candidates.as_slice() {
            return Ok((*only).clone());
        }
        let fitting: Vec<_> = candidates.iter().filter(|function| fits(function)).collect();
        match fitting.as_slice() {
            [only] => Ok((**only).clone()),
            [] => Err(Unresolved::Ambiguous(candidates.iter().map(|found| found.shown()).collect())),
            several => Err(Unresolved::Ambiguous(several.iter().map(|found| found.shown()).collect())),
        }
    }
}
