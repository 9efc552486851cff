//! The cursors that a session has declared, and the result of the last fetch.

use super::postgres::no_such_cursor;
use super::server::ServerCursors;
use crate::convert::SqlType;
use crate::limits::memory::Kept;
use crate::program::{Changes, Sql, Title};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::collections::HashMap;

/// The result of the last fetch.
#[derive(Clone, Copy, Debug, Default)]
pub enum Fetched {
    #[default]
    Row,
    NoRow,
    Error,
}

#[derive(Debug, Default)]
pub struct Cursors {
    pub known: HashMap<String, Cursor>,
    pub fetched: Fetched,
    /// The name in PostgreSQL of the cursor opened last, while it is open, and @@cursor_rows of it.
    pub last: Option<(String, i64)>,
    /// Those that the client opens by calls.
    pub server: ServerCursors,
}

impl Cursors {
    /// @@fetch_status (SQL Server: -1, "The FETCH statement failed or the row was beyond the result set").
    pub fn status(&self) -> i64 {
        match self.fetched {
            Fetched::Row => 0,
            Fetched::NoRow | Fetched::Error => -1,
        }
    }

    /// @@sqlstatus (ASE Reference Manual: Building Blocks, "Global variables").
    pub fn sybase_status(&self) -> i64 {
        match self.fetched {
            Fetched::Row => 0,
            Fetched::Error => 1,
            Fetched::NoRow => 2,
        }
    }

    pub fn rows(&self) -> i64 {
        self.last.as_ref().map_or(0, |(_, rows)| *rows)
    }

    pub fn cursor(&mut self, name: &str) -> Result<&mut Cursor, ServerMessage> {
        self.known.get_mut(name).ok_or_else(|| no_such_cursor(name))
    }
}

#[derive(Debug)]
pub struct Cursor {
    pub query: Sql,
    pub columns: Option<Vec<Title>>,
    pub scrolls: bool,
    /// Its rows are counted when it is opened.
    pub is_filled: bool,
    /// A rollback leaves it open.
    pub is_static: bool,
    /// For a local cursor the depth of its text, with which it ends.
    pub depth: Option<u8>,
    /// The values of the query's variables at its declaration.
    pub values: Vec<(String, SqlType, Value<'static>)>,
    pub _kept: Kept,
    pub changes: Changes,
    /// Its name in PostgreSQL while it is open.
    pub open: Option<String>,
    /// The titles of its columns if its rows have outlived a rollback.
    pub titles: Option<Vec<Title>>,
    /// While it is open: the tables, in SQL, whose ctid and xmin follow the columns of its rows.
    pub tables: Vec<String>,
    /// Ctid and xmin of the row fetched last in each of them.
    pub versions: Vec<Option<String>>,
    /// The index of the table that the latest `where current of` changed.
    pub changed: usize,
}

impl Cursor {
    /// Closes it here. Returns its name in PostgreSQL, unless a rollback has closed it there.
    pub fn close(&mut self) -> Option<String> {
        (self.titles, self.tables, self.versions) = (None, Vec::new(), Vec::new());
        self.open.take()
    }
}
