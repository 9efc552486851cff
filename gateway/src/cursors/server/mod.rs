//! Server cursors, which clients open and fetch by calls. PostgreSQL keeps their rows, as of the time they are opened,
//! until they are closed or rolled back.

mod calls;
mod fetch;
mod keyed;
mod keyset;
mod named;
mod options;
mod position;
mod rows;

use crate::cursors::postgres::no_such_cursor;
use crate::program::{Action, CursorAction, Program, Sql, Statement, Title};
use crate::rpc::Prepared;
use crate::tds::cursor::Status;
use crate::tds::tokens::message::ServerMessage;
use keyset::Keyset;
use options::Given;
use position::Position;
use std::collections::HashMap;
use std::sync::Arc;
use tsql::fragments::variable;

pub use calls::{call_cursor, CursorCall};
pub use named::answer_cursor;

/// The most cursors of one session.
const MOST: usize = 1000;

/// The server cursors of a session, by the numbers that the client has received.
#[derive(Debug, Default)]
pub struct ServerCursors {
    last: i32,
    open: HashMap<i32, ServerCursor>,
    /// The cursors of TDS 5.0.
    named: HashMap<i32, NamedCursor>,
}

#[derive(Debug)]
struct ServerCursor {
    rows: HeldRows,
    given: Given,
    position: Position,
}

/// A cursor that a client of TDS 5.0 has declared.
#[derive(Debug)]
struct NamedCursor {
    name: String,
    text: Text,
    scrolls: bool,
    /// Rows per fetch.
    rows: u32,
    open: Option<ServerCursor>,
}

#[derive(Clone, Debug)]
enum Text {
    Select(Arc<Prepared>),
    /// With parameters whose types are known only when the cursor is opened.
    Typed(String),
    /// A dynamic statement, by its name.
    Dynamic(String),
}

impl NamedCursor {
    fn status(&self) -> Status {
        let status = match self.open {
            Some(_) => Status::OPEN,
            None => Status::DECLARED.and(Status::CLOSED),
        };
        let status = if self.scrolls { status.and(Status::SCROLLABLE) } else { status };
        status.and(Status::READ_ONLY)
    }
}

/// The rows of a cursor, which PostgreSQL keeps.
#[derive(Debug)]
pub(super) struct HeldRows {
    /// The name of the cursor in PostgreSQL.
    name: String,
    titles: Option<Vec<Title>>,
    /// None: rows are counted only as they are fetched.
    total: Option<i64>,
    /// The number of PostgreSQL's current row.
    at: i64,
    /// The limit of SET ROWCOUNT when it was opened; 0 for none.
    limit: i64,
    /// PostgreSQL's cursor contains the rows' keys, and rows are read when they are fetched.
    keyset: Option<Box<Keyset>>,
}

impl HeldRows {
    /// The number of rows among the next `rows` that can exist.
    fn left(&self, rows: i64) -> i64 {
        if self.limit == 0 {
            rows
        } else {
            rows.min(self.limit - self.at)
        }
    }
}

impl ServerCursors {
    fn admit(&mut self) -> Result<i32, ServerMessage> {
        if self.open.len() + self.named.len() >= MOST {
            let text = format!("This session has {MOST} server cursors: close some.");
            return Err(ServerMessage::error(8623, 16, text));
        }
        while {
            self.last = self.last.checked_add(1).unwrap_or(1);
            self.open.contains_key(&self.last) || self.named.contains_key(&self.last)
        } {}
        Ok(self.last)
    }

    /// Closes all here. Returns their names in PostgreSQL; those of TDS 5.0 remain declared.
    pub fn let_go(&mut self) -> impl Iterator<Item = String> + '_ {
        let named = self.named.values_mut().filter_map(|cursor| cursor.open.take());
        self.open.drain().map(|(_, cursor)| cursor).chain(named).map(|cursor| cursor.rows.name)
    }

    /// The names in PostgreSQL of the static ones.
    pub fn of_static(&self) -> impl Iterator<Item = &str> {
        let named = self.named.values().filter_map(|cursor| cursor.open.as_ref());
        let open = self.open.values().chain(named).filter(|cursor| cursor.given.is_static());
        open.map(|cursor| cursor.rows.name.as_str())
    }

    /// Gives the columns of a cursor, by its name in PostgreSQL, other titles.
    pub fn rename(&mut self, name: &str, titles: impl Fn(Option<&[Title]>) -> Vec<Title>) {
        let named = self.named.values_mut().filter_map(|cursor| cursor.open.as_mut());
        if let Some(cursor) = self.open.values_mut().chain(named).find(|cursor| cursor.rows.name == name) {
            cursor.rows.titles = Some(titles(cursor.rows.titles.as_deref()));
        }
    }

    fn number_of(&self, name: &str) -> Option<i32> {
        self.named.iter().find(|(_, cursor)| cursor.name == name).map(|(number, _)| *number)
    }

    fn named(&mut self, number: i32) -> Result<&mut NamedCursor, ServerMessage> {
        self.named.get_mut(&number).ok_or_else(|| no_such_cursor(&number.to_string()))
    }
}

/// A statement on which a cursor can be opened.
pub(super) struct Selection {
    sql: Sql,
    titles: Option<Vec<Title>>,
}

impl Selection {
    /// The select of a program that consists only of it. None for other programs.
    pub(super) fn of(program: &Program) -> Option<Selection> {
        let [Statement { action, .. }] = program.statements.as_slice() else { return None };
        match action {
            Action::Query(query) if query.only_reads() && query.assigns.is_empty() && !query.browses => {
                Some(Selection { sql: query.sql.clone(), titles: query.columns.clone() })
            }
            Action::Cursor(CursorAction::Declare { query, .. }) => {
                Some(Selection { sql: query.sql.clone(), titles: query.columns.clone() })
            }
            Action::Variables(names) => {
                let parameters: Vec<_> = (0..names.len()).map(variable).collect();
                let variables = names.iter().map(|(variable, _)| variable.clone()).collect();
                let sql = Sql::written(&format!("select {}", parameters.join(", ")), variables);
                let titles = names.iter().map(|(_, title)| Title::given(title)).collect();
                Some(Selection { sql, titles: Some(titles) })
            }
            _ => None,
        }
    }
}
