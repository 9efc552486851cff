//! The cursors that a procedure has declared, and the variables with the result of the last fetch.

use crate::bind::Changes;
use crate::error::Error;
use crate::tree::{self, Query, Statement, StatementKind as Tree, Where};
use std::collections::{HashMap, HashSet};

/// SQL Server's and ASE's variable: 0 after a row; -1 and 2 after the last one.
pub const FETCH_STATUS: [&str; 2] = ["@@fetch_status", "@@sqlstatus"];

/// A declared cursor.
pub struct Cursor<'t> {
    pub variable: String,
    pub query: &'t Query,
    /// The variables that its query names, and those that hold their values at the declaration.
    pub copies: HashMap<String, String>,
    /// The number of its columns, once it is opened.
    pub columns: Option<usize>,
    pub scrolls: bool,
    pub is_static: bool,
    /// The changes by `where current of` that it allows; None: there is no such statement.
    pub changes: Option<Changes>,
    /// Once it is opened: the tables, in SQL, whose ctid and xmin its rows contain, and the variables that hold these.
    pub locations: Vec<(String, String)>,
}

/// The cursors whose rows are changed by the statements.
pub fn changed_cursors(body: &[Statement]) -> HashSet<String> {
    let condition = |statement: &'_ Statement| match &statement.kind {
        Tree::Update(update) => update.condition.clone(),
        Tree::Delete(delete) => delete.condition.clone(),
        _ => None,
    };
    let cursors = tree::every(body).filter_map(|statement| match condition(statement)? {
        Where::CurrentOf(cursor) => Some(cursor.known()),
        Where::Condition(_) => None,
    });
    cursors.collect()
}

/// The variable with ctid and xmin of a cursor's row in a table.
pub fn location_in(
    cursors: &HashMap<String, Cursor<'_>>,
    cursor: &str,
    table: &str,
    line: u32,
) -> Result<String, Error> {
    let known = cursors.get(cursor).ok_or_else(|| missing(cursor, line))?;
    let mut same = known.locations.iter().filter(|(of, _)| of == table);
    match (same.next(), same.next()) {
        (Some((_, variable)), None) => Ok(variable.clone()),
        // no such table, or two
        _ => {
            let text = "The cursor does not include the table being modified or the table is not updatable \
                        through the cursor.";
            Err(Error::new(16933, text, line).with_severity(16))
        }
    }
}

pub fn missing(name: &str, line: u32) -> Error {
    Error::new(16916, format!("A cursor with the name '{name}' does not exist."), line).with_severity(16)
}
