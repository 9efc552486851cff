//! The state of the compilation of a batch, and SQL with its variables.

use crate::program::{Bound, ListItem, Settings, Sql, Tree, Uses};
use crate::resolve::Scope;
use crate::translate::Numbered;
use crate::tree::{self, Position};
use std::collections::HashMap;
use std::sync::Arc;

/// The labels of one list of statements, with their numbers.
pub type Labels = HashMap<String, u32>;

pub struct Compiler<'t> {
    pub scope: Scope,
    pub settings: &'t Settings,
    pub text: &'t str,
    pub batch: &'t [tree::Statement],
    /// The number of CATCH blocks around the statement.
    pub catches: usize,
    pub length: usize,
    /// The tables whose declarations a definition was written with.
    pub asked: Vec<String>,
    /// It creates temporary tables.
    pub makes_temporary: bool,
    /// The labels of the lists of statements around the current one, innermost last.
    pub labels: Vec<Labels>,
    pub last_label: u32,
}

impl Compiler<'_> {
    /// SQL with its dependencies. `at`: the position in the text of `tree`'s result.
    pub fn bound(
        &self,
        sql: &str,
        mut numbered: Numbered,
        (at, items): (Position, Vec<ListItem>),
        tree: impl FnOnce() -> Tree,
    ) -> Sql {
        let uses = Uses::new(std::mem::take(&mut numbered.uses), &self.scope);
        let of = (self.text, at);
        let bound = (!uses.is_empty()).then(|| Bound::new(tree(), of, &self.scope, &numbered, uses, items));
        Sql { bound: bound.map(Arc::new), ..numbered_sql(sql, numbered) }
    }
}

/// `select …` of the variables written so far.
pub fn selected(sql: &str, numbered: Numbered) -> Sql {
    numbered_sql(&format!("select {sql}"), numbered)
}

pub fn numbered_sql(sql: &str, numbered: Numbered) -> Sql {
    Sql { facts: Box::new(numbered.facts), ..Sql::written(sql, numbered.names) }
}
