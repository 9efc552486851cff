//! The state of the compilation of a batch, and SQL with its variables.

use crate::bind::Numbered;
use crate::postgres::{Joined, Scalar};
use crate::program::{Settings, Sql};
use crate::resolve::Scope;
use crate::tree;
use std::collections::HashMap;

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

/// `select …` of the variables written so far.
pub fn selected(list: &[Scalar], numbered: Numbered) -> Sql {
    numbered_sql(&format!("select {}", Joined(list, ", ")), numbered)
}

pub fn numbered_sql(sql: &str, numbered: Numbered) -> Sql {
    Sql { facts: Box::new(numbered.facts), ..Sql::written(sql, numbered.names) }
}
