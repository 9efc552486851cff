//! The cursors that a procedure has declared, and the variables with the result of the last fetch.

use crate::translate::Changes;
use crate::tree::Query;
use std::collections::HashMap;

/// SQL Server's and ASE's: 0 after a row; -1 and 2 after the last one.
pub const FETCH_STATUS: [&str; 2] = ["@@fetch_status", "@@sqlstatus"];

/// A cursor that is declared.
pub struct Cursor<'t> {
    pub variable: String,
    pub query: &'t Query,
    /// The variables its query names, and those that hold the values they had when it was declared.
    pub copies: HashMap<String, String>,
    /// Of its rows, once it is opened.
    pub columns: Option<usize>,
    pub scrolls: bool,
    /// Of its rows by `where current of`; None: there is no such statement.
    pub changes: Option<Changes>,
    /// The tables, in SQL, of which its rows say their places, once it is opened, and the variables that hold these.
    pub places: Vec<(String, String)>,
}
