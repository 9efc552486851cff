//! The state of the compilation of a batch, and SQL with its variables.

use crate::error::Error;
use crate::program::{keeps, Settings, Sql};
use crate::resolve::Scope;
use crate::translate::Numbered;
use crate::tree;
use std::collections::HashMap;

/// The labels of one list of statements, with their numbers.
pub type Labels = HashMap<String, u32>;

pub struct Compiler<'t> {
    pub scope: Scope,
    pub settings: &'t Settings,
    pub text: &'t str,
    pub batch: &'t [tree::Statement],
    /// How many CATCH blocks stand around the statement.
    pub catches: usize,
    pub length: usize,
    /// See `Program::unlisted`.
    pub unlisted: Vec<String>,
    /// It makes temporary tables.
    pub makes_temporary: bool,
    /// Of the lists of statements around the one that is compiled, the innermost last.
    pub labels: Vec<Labels>,
    pub last_label: u32,
}

/// `select …` of the variables that have been written.
pub fn selected(sql: &str, numbered: Numbered) -> Result<Sql, Error> {
    numbered_sql(&format!("select {sql}"), numbered)
}

pub fn numbered_sql(sql: &str, numbered: Numbered) -> Result<Sql, Error> {
    let Numbered { names, calls, tables, guards, locks, .. } = numbered;
    let mut read =
        Sql::read(sql, names).map_err(|problem| Error::new(8623, problem, 1u32).with_severity(16))?;
    (read.calls, read.tables, read.guards, read.locks) = (calls, tables, guards, locks);
    read.keeps = keeps(sql);
    Ok(read)
}
