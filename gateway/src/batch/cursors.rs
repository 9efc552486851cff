//! The cursors that a session has declared, and the result of the last fetch.

use crate::convert::SqlType;
use crate::interrupt::Interrupt;
use crate::memory::Kept;
use crate::program::{Changes, Sql, Title};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of 34000, invalid_cursor_name, in `facts::errors`: of a cursor that a rollback has taken.
pub const NOT_OPEN: i32 = 16917;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// What the last fetch came to.
#[derive(Clone, Copy, Debug, Default)]
pub enum Fetched {
    #[default]
    Row,
    NoRow,
    Error,
}

#[derive(Debug, Default)]
pub struct Cursors {
    pub(super) known: HashMap<String, Cursor>,
    pub(super) fetched: Fetched,
    /// The name in PostgreSQL of the cursor opened last, while it is open, and @@cursor_rows of it.
    pub(super) last: Option<(String, i64)>,
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

    pub(super) fn cursor(&mut self, name: &str) -> Result<&mut Cursor, ServerMessage> {
        self.known.get_mut(name).ok_or_else(|| no_such_cursor(name))
    }
}

#[derive(Debug)]
pub struct Cursor {
    pub(super) query: Sql,
    pub(super) columns: Option<Vec<Title>>,
    pub(super) scrolls: bool,
    /// Its rows are counted when it is opened.
    pub(super) is_filled: bool,
    /// The variables of the query, as they were when it was declared.
    pub(super) values: Vec<(String, SqlType, Value<'static>)>,
    pub(super) _kept: Kept,
    pub(super) changes: Changes,
    /// Its name in PostgreSQL while it is open.
    pub(super) open: Option<String>,
    /// The tables, in SQL, of which its rows say their places behind the columns, while it is open.
    pub(super) tables: Vec<String>,
    /// Where the row fetched last is in each of them.
    pub(super) places: Vec<Option<String>>,
    /// The one of them that the latest `where current of` is about.
    pub(super) changed: usize,
}

impl Cursor {
    /// Closes it but for PostgreSQL, which knows it by the name that is returned unless a rollback has taken it.
    pub(super) fn close(&mut self) -> Option<String> {
        (self.tables, self.places) = (Vec::new(), Vec::new());
        self.open.take()
    }
}

/// Whether PostgreSQL has the cursor no more.
pub fn is_taken(interrupt: &Interrupt) -> bool {
    matches!(interrupt, Interrupt::Failed(failure) if failure.message.number == NOT_OPEN)
}

/// A name for a cursor in PostgreSQL, which no other has.
pub fn new_name() -> String {
    format!("ringlog_cursor_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn no_such_cursor(name: &str) -> ServerMessage {
    ServerMessage::error(16916, 16, format!("A cursor with the name '{name}' does not exist."))
}
