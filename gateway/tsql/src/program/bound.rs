//! Statements that depend on the declarations of their tables. After a change of a declaration the statement is written
//! again from its tree (`compile/again.rs`).

use crate::facts::types::Type;
use crate::resolve::Scope;
use crate::schema::{Object, Schema};
use crate::translate::{Clock, ListItem, Numbered};
use crate::tree::{Expression, Position, StatementKind};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// The source of written SQL.
#[derive(Debug)]
pub enum Tree {
    Statement(StatementKind),
    /// A condition of IF or WHILE.
    Condition(Expression),
    /// A value, converted to this type.
    Value(Expression, Option<Type>),
}

/// The declarations that SQL depends on, and its source.
#[derive(Debug)]
pub struct Bound {
    pub(crate) tree: Tree,
    pub(crate) scope: Scope,
    /// Times are variables.
    pub(crate) is_clocked: bool,
    uses: Uses,
    /// The items of its list, if it returns rows.
    pub items: Vec<ListItem>,
    /// Two with the same digest are written alike.
    digest: u64,
    /// Its approximate bytes.
    size: usize,
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

    /// Whether the schema still has these declarations.
    pub fn hold_in(&self, schema: &dyn Schema) -> bool {
        self.0.iter().all(|one| one.object == schema.object(&one.name))
    }
}

impl Bound {
    /// `text`: the batch, which contains `tree`.
    pub fn new(
        tree: Tree,
        (text, at): (&str, Position),
        scope: &Scope,
        numbered: &Numbered,
        uses: Uses,
        items: Vec<ListItem>,
    ) -> Bound {
        let types: Vec<_> = numbered.names.iter().map(|name| scope.variables.get(name)).collect();
        let mut hasher = DefaultHasher::new();
        (text, at.start, types, scope.dialect.name, scope.nulls_equal).hash(&mut hasher);
        let scope = Scope { schema: None, changing: Default::default(), ..scope.clone() };
        Bound {
            tree,
            scope,
            is_clocked: numbered.clock == Clock::Variables,
            uses,
            items,
            digest: hasher.finish(),
            // a tree is much larger than its text
            size: 16 * at.range().len(),
        }
    }

    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn size(&self) -> usize {
        self.size
    }
}
