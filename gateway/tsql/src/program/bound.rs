//! Statements that depend on the declarations of their tables. One whose tables do not exist yet, or have changed, is
//! written when it runs (`compile/written.rs`).

use super::Query;
use crate::bind::ListItem;
use crate::facts::types::Type;
use crate::resolve::Scope;
use crate::schema::{is_table, Object, Schema};
use crate::tree::{Expression, Position, StatementKind};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

/// The source of written SQL.
#[derive(Debug)]
pub enum Tree {
    Statement(StatementKind),
    /// A condition of IF or WHILE.
    Condition(Expression),
    /// A value, converted to this type.
    Value(Expression, Option<Type>),
}

/// The source of SQL that depends on declarations.
#[derive(Debug)]
pub struct Source {
    pub(crate) tree: Tree,
    pub(crate) scope: Scope,
    pub(crate) line: u32,
    pub(crate) digest: u64,
    /// Its approximate bytes.
    size: usize,
    /// As written for the schemas in which it has run.
    written: RwLock<Vec<Arc<Query>>>,
}

/// The declarations that SQL depends on, and its source.
#[derive(Debug)]
pub struct Bound {
    /// None for a query that its source keeps.
    pub source: Option<Arc<Source>>,
    pub uses: Uses,
    /// The items of its list, if it returns rows.
    pub items: Vec<ListItem>,
    /// Two with the same digest are written alike.
    pub digest: u64,
}

/// Tables and columns whose declarations were used, with these declarations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses(Vec<Use>);

/// An object by its key (`Schema::object`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    pub name: String,
    /// None: it was unknown.
    pub object: Option<Object>,
    /// The names of its columns whose types were used.
    pub columns: Vec<String>,
}

impl PartialEq for Bound {
    fn eq(&self, other: &Bound) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Bound {}

impl Uses {
    pub fn new(noted: BTreeMap<String, BTreeSet<String>>, scope: &Scope) -> Uses {
        let used = |(name, columns): (String, BTreeSet<String>)| Use {
            object: scope.object(&name),
            columns: columns.into_iter().collect(),
            name,
        };
        Uses(noted.into_iter().map(used).collect())
    }

    /// Adds the use of a table that is not among them.
    pub(super) fn add(&mut self, one: &Use) {
        if !self.0.iter().any(|known| known.name == one.name) {
            self.0.push(one.clone());
        }
    }

    /// Adds names whose whole declarations are used.
    pub(crate) fn note(&mut self, names: impl IntoIterator<Item = String>, schema: &dyn Schema) {
        let used = |name: String| Use { object: schema.object(&name), columns: Vec::new(), name };
        self.0.extend(names.into_iter().map(used));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Use> {
        self.0.iter()
    }

    /// Whether a table did not exist.
    pub fn lack_a_table(&self) -> bool {
        self.0.iter().any(|one| one.object.is_none() && is_table(&one.name))
    }

    /// The first table that a schema lacks.
    pub fn missing_in(&self, schema: &dyn Schema) -> Option<&str> {
        let mut names = self.0.iter().map(|one| one.name.as_str());
        names.find(|name| is_table(name) && schema.object(name).is_none())
    }

    /// Whether the schema still has these declarations.
    pub fn hold_in(&self, schema: &dyn Schema) -> bool {
        self.0.iter().all(|one| one.object == schema.object(&one.name))
    }
}

impl Source {
    /// `text`: the batch, which contains `tree`.
    pub(crate) fn new(tree: Tree, (text, at): (&str, Position), scope: &Scope) -> Source {
        let mut variables: Vec<_> = scope.variables.iter().collect();
        variables.sort_unstable_by_key(|(name, _)| *name);
        let mut hasher = DefaultHasher::new();
        (text, at.start, variables, scope.dialect.name, scope.nulls_equal).hash(&mut hasher);
        Source {
            tree,
            scope: Scope { schema: None, changing: Default::default(), ..scope.clone() },
            line: at.line,
            digest: hasher.finish(),
            // a tree is much larger than its text
            size: 16 * at.range().len(),
            written: RwLock::default(),
        }
    }

    /// The query as written for these declarations.
    pub fn written_for(&self, schema: &dyn Schema) -> Option<Arc<Query>> {
        let written = self.written.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant =
            |query: &&Arc<Query>| query.sql.bound.as_ref().is_none_or(|bound| bound.uses.hold_in(schema));
        written.iter().rev().find(is_meant).cloned()
    }

    pub fn keep(&self, query: &Arc<Query>) {
        let mut written = self.written.write().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MOST_WRITTEN {
            written.remove(0);
        }
        written.push(query.clone());
    }
}

impl Bound {
    pub fn size(&self) -> usize {
        self.source.as_ref().map_or(0, |source| source.size)
    }
}

/// The most queries kept of one source.
const MOST_WRITTEN: usize = 8;
