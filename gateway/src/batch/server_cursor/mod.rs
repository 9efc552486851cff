//! Server cursors, which clients open and fetch by calls. PostgreSQL keeps their rows, as of the moment they are
//! opened, until they are closed or rolled back.

mod calls;
mod keyset;
mod named;
mod options;
mod position;

use super::interpreter::Interpreter;
use super::variables::Variables;
use crate::backend::{Completed, Fetched, Rows, Source};
use crate::client::Client;
use crate::interrupt::Interrupt;
use crate::program::{Action, CursorAction, Program, Sql, Statement, Title};
use crate::tds::tokens::message::ServerMessage;
pub use calls::CursorProcedure;
use position::Position;
use std::collections::HashMap;

/// Cursors of one session at a time.
const MOST: usize = 1000;

/// The server cursors of a session, by the numbers their clients have of them.
#[derive(Debug, Default)]
pub struct ServerCursors {
    last: i32,
    open: HashMap<i32, ServerCursor>,
    /// The cursors of TDS 5.0.
    named: HashMap<i32, named::NamedCursor>,
}

#[derive(Debug)]
struct ServerCursor {
    rows: HeldRows,
    given: options::Given,
    position: Position,
}

/// Rows that PostgreSQL keeps.
#[derive(Debug)]
pub(super) struct HeldRows {
    /// The name of the cursor in PostgreSQL.
    name: String,
    titles: Option<Vec<Title>>,
    /// None: they are only counted as they are fetched.
    total: Option<i64>,
    /// The number of the row that PostgreSQL stands on.
    at: i64,
    /// Rows that SET ROWCOUNT let it have when it was opened; 0 for all.
    limit: i64,
    /// PostgreSQL's cursor has the rows' keys, and they are read as they are fetched.
    keyset: Option<Box<keyset::Keyset>>,
}

impl HeldRows {
    /// The number of the next `rows` rows that exist at most.
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
}

/// A statement on which a cursor can be opened.
pub(super) struct Selection {
    sql: Sql,
    titles: Option<Vec<Title>>,
}

impl Selection {
    /// The select of a program that is nothing else. None: it is another program.
    pub(super) fn of(program: &Program) -> Option<Selection> {
        let [Statement { action, .. }] = program.statements.as_slice() else { return None };
        match action {
            Action::Query(query) if query.only_reads() && query.assigns.is_empty() => {
                Some(Selection { sql: query.sql.clone(), titles: query.columns.clone() })
            }
            Action::Cursor(CursorAction::Declare { query, columns, .. }) => {
                Some(Selection { sql: query.clone(), titles: columns.clone() })
            }
            Action::Variables(names) => {
                let places: Vec<_> = (1..=names.len()).map(|place| format!("${place}")).collect();
                let variables = names.iter().map(|(variable, _)| variable.clone()).collect();
                let sql = Sql::read(&format!("select {}", places.join(", ")), variables).ok()?;
                let titles = names.iter().map(|(_, title)| Title::given(title)).collect();
                Some(Selection { sql, titles: Some(titles) })
            }
            _ => None,
        }
    }
}

impl Interpreter {
    /// Has PostgreSQL keep the rows of a select. `scrolls`: in any order, and counted.
    pub(super) async fn hold_rows(
        &mut self,
        client: &mut Client,
        selection: &Selection,
        variables: &Variables<'_>,
        scrolls: bool,
    ) -> Result<HeldRows, Interrupt> {
        let name = super::cursor::new_name();
        let scroll = if scrolls { "scroll" } else { "no scroll" };
        let sql = selection.sql.following(&format!("declare {name} {scroll} cursor with hold for "));
        let parameters = self.parameters(client, &sql, variables).await?;
        let source = Source::Query { sql: &sql, parameters: &parameters, only_reads: false };
        let backend = &mut self.procedures.backend;
        backend.pin();
        backend.run(client, source, Rows::Kept).await?;
        let limit = i64::from(client.settings().row_limit);
        let mut rows =
            HeldRows { name, titles: selection.titles.clone(), total: None, at: 0, limit, keyset: None };
        if scrolls {
            let all = self.moved(client, &rows, "forward all").await?;
            rows.total = Some(rows.left(all));
            self.moved(client, &rows, "absolute 0").await?;
        }
        Ok(rows)
    }

    /// Sends at most `count` rows from number `first` on, where that is given. Returns how many there were.
    pub(super) async fn send_rows(
        &mut self,
        client: &mut Client,
        rows: &mut HeldRows,
        first: Option<i64>,
        count: i64,
        described: bool,
    ) -> Result<i64, Interrupt> {
        if rows.keyset.is_some() {
            return self.send_keyed(client, rows, first, count, described).await;
        }
        if let Some(before) = first.map(|first| first - 1).filter(|before| *before != rows.at) {
            self.moved(client, rows, &format!("absolute {before}")).await?;
            rows.at = before;
        }
        let sql = Sql::plain(format!("fetch forward {count} from {}", rows.name));
        let source = Source::Query { sql: &sql, parameters: &[], only_reads: true };
        let fetched = Rows::OfCursor(Fetched { titles: rows.titles.as_deref(), described, keyed: None });
        let Completed { outcome, .. } = self.procedures.backend.run(client, source, fetched).await?;
        let found = outcome.count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
        rows.at += found;
        Ok(found)
    }

    /// Moves PostgreSQL's cursor. Returns how many rows it has passed.
    async fn moved(&mut self, client: &mut Client, rows: &HeldRows, to: &str) -> Result<i64, Interrupt> {
        let sql = Sql::plain(format!("move {to} in {}", rows.name));
        let source = Source::Query { sql: &sql, parameters: &[], only_reads: true };
        let Completed { outcome, .. } = self.procedures.backend.run(client, source, Rows::Kept).await?;
        Ok(outcome.count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0))
    }

    pub(super) async fn let_go(&mut self, client: &mut Client, rows: &HeldRows) -> Result<(), Interrupt> {
        self.close_in_postgres(client, &rows.name).await
    }
}
