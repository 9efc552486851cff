//! The reply under construction: its tokens, and the state that decides their form.

use super::gathering::Gathering;
use crate::backend::Counted;
use crate::convert::{column_type, PgType};
use crate::tds::dialect::Dialect;
use crate::tds::tokens::columns::{self, Column, Traits};
use crate::tds::tokens::done::{self, Command, Done, Scope, Status};
use crate::tds::tokens::message::{self, ServerMessage};
use crate::tds::types::{encode_value, ConvertError, Value};
use bytes::{BufMut, BytesMut};
use tracing::Span;
use tsql::facts::errors::in_ase;

/// The end of PostgreSQL's message for a missing right.
const DENIED: &str = " (SQLSTATE 42501)";

pub struct Reply {
    /// Tokens that are not sent yet.
    pub tokens: BytesMut,
    pub dialect: Dialect,
    /// `set nocount on`: row counts are not sent.
    pub(super) no_count: bool,
    /// Nesting depth of procedures around the running text (sp_executesql in sp_executesql): their ends
    /// follow those of its statements.
    pub nesting: u8,
    pub in_transaction: bool,
    /// A procedure has caught an error that leaves its caller's transaction uncommittable.
    pub dooms: bool,
    /// @@error: the number of the last statement's error, otherwise 0.
    pub error: i32,
    /// @@rowcount
    pub row_count: i64,
    /// The number of sent rows of a result set whose end is not sent yet.
    pub open_rows: Option<u64>,
    /// The kind of the next DONE.
    pub command: Command,
    /// INSERT … EXECUTE keeps the rows: neither rows nor ends of statements are sent.
    pub gathering: Option<Gathering>,
    /// The session's span in the log.
    pub span: Span,
    /// Its login, once it has logged in; refusals name it.
    pub login: String,
    /// The end of the latest DONE in `tokens`.
    done: Option<usize>,
}

impl Reply {
    pub fn new(dialect: Dialect) -> Reply {
        Reply {
            tokens: BytesMut::new(),
            dialect,
            no_count: false,
            nesting: 0,
            in_transaction: false,
            dooms: false,
            error: 0,
            row_count: 0,
            open_rows: None,
            command: Command::Other,
            gathering: None,
            span: Span::none(),
            login: String::new(),
            done: None,
        }
    }

    pub fn message(&mut self, message: &ServerMessage) {
        // without its text, which may contain values
        tracing::debug!(
            parent: &self.span,
            number = message.number,
            severity = message.severity,
            state = message.state,
            "message"
        );
        let mut message = self.numbered(message.clone());
        if let Some(denied) = message.text.strip_suffix(DENIED).filter(|_| !self.login.is_empty()) {
            message.text = format!("{denied} (login {}, SQLSTATE 42501)", self.login);
        }
        message::put(&mut self.tokens, &message, &self.dialect);
    }

    /// The number of an error in the client's dialect.
    pub fn number(&self, number: i32) -> i32 {
        if self.dialect.is_tds7() {
            number
        } else {
            in_ase(number)
        }
    }

    pub fn numbered(&self, message: ServerMessage) -> ServerMessage {
        ServerMessage { number: self.number(message.number), ..message }
    }

    /// An error, followed by T-SQL's message that the statement has been terminated, if the error undoes the
    /// statement.
    pub fn error_message(&mut self, message: &ServerMessage) {
        self.message(message);
        if matches!(message.number, 233 | 515 | 546 | 547 | 548 | 550 | 2601 | 2627 | 8152) {
            self.message(&ServerMessage::info(3621, "The statement has been terminated."));
        }
    }

    /// An error and the end of its statement.
    pub fn refuse(&mut self, message: &ServerMessage) {
        self.error = self.number(message.number);
        self.row_count = 0;
        self.message(message);
        self.end(Status::ERROR, None);
    }

    /// The end of a statement that reports rows, their number or an error.
    pub fn end(&mut self, status: Status, count: Option<u64>) {
        if self.nesting > 0 {
            self.end_inside(status, count);
        } else {
            self.done(Scope::Statement, status, count);
        }
    }

    /// The same inside a procedure. SQL Server, SET NOCOUNT: no DONEINPROC for its statements.
    fn end_inside(&mut self, status: Status, count: Option<u64>) {
        let is_silent = self.no_count && self.dialect.is_tds7();
        if is_silent && status.is_empty() && self.open_rows.is_none() {
            self.command = Command::default();
        } else {
            self.done(Scope::InProcedure, status, count);
        }
    }

    /// Ends an assignment of variables from this many rows: SQL Server reports a SELECT (microsoft/mssql-rs, #372), and
    /// ASE counts it outside of procedures (FreeTDS, src/odbc/unittests/moreandcount.c).
    pub fn assigned(&mut self, rows: Option<u64>) {
        self.command = Command::Select;
        let is_inside = self.nesting > 0;
        let sent = |rows| if is_inside { self.count_sent(rows, Command::Select) } else { Some(rows) };
        self.end(Status::empty(), rows.and_then(sent));
    }

    /// Ends a statement of a procedure or trigger that PostgreSQL has run: SQL Server sends the row counts of triggers'
    /// statements too (microsoft/go-mssqldb, #204).
    pub fn counted(&mut self, counted: Counted) {
        if counted.is_silent || counted.in_trigger && !self.dialect.is_tds7() {
            return;
        }
        self.command = counted.command;
        self.end_inside(Status::empty(), self.count_sent(counted.rows, counted.command));
    }

    /// Ends a statement of a procedure that PostgreSQL has run, without a row count.
    pub fn ended_inside(&mut self, failed: bool) {
        self.end_inside(if failed { Status::ERROR } else { Status::empty() }, None);
    }

    /// The number of rows that a statement of a procedure has changed or assigned to variables.
    fn count_sent(&self, rows: u64, command: Command) -> Option<u64> {
        (command != Command::Select || self.dialect.is_tds7()).then_some(rows)
    }

    /// Ends a statement. `rows`: its @@rowcount, if it sets one.
    pub fn passed(&mut self, rows: Option<i64>) {
        self.error = 0;
        if let Some(rows) = rows {
            self.row_count = rows;
        }
    }

    /// The same for a statement with neither rows nor a row count, whose end is sent nevertheless.
    pub fn finished(&mut self, rows: i64) {
        self.end(Status::empty(), None);
        self.passed(Some(rows));
    }

    /// A DONE after which more may follow.
    pub fn done(&mut self, scope: Scope, status: Status, count: Option<u64>) {
        let mut status = status | Status::MORE;
        // 7.x clients learn of the transaction from ENVCHANGE and ignore the bit; 5.0 clients read it
        if self.in_transaction && !self.dialect.is_tds7() {
            status |= Status::IN_TRANSACTION;
        }
        let count = count.filter(|_| !self.no_count);
        self.put_done(scope, status, count);
    }

    /// The DONE that ends the reply.
    pub fn close(&mut self, status: Status) {
        self.put_done(Scope::Statement, status, None);
    }

    fn put_done(&mut self, scope: Scope, status: Status, count: Option<u64>) {
        let command = std::mem::take(&mut self.command);
        self.open_rows = None;
        if self.gathering.is_some() {
            return;
        }
        let command = if scope == Scope::Procedure { Command::Execute } else { command };
        Done::new(scope, status, command, count, &self.dialect).encode(&mut self.tokens, &self.dialect);
        self.done = Some(self.tokens.len());
    }

    /// Begins the answer to the next command.
    pub fn begin_answer(&mut self) {
        self.done = None;
    }

    /// Ends an answer, with a DONE if it lacks one.
    pub fn end_answer(&mut self) {
        if !self.is_done() {
            self.done(Scope::Statement, Status::empty(), None);
        }
    }

    /// Whether the answer ends with a DONE so far.
    pub(super) fn is_done(&self) -> bool {
        self.done == Some(self.tokens.len())
    }

    /// Clears the MORE flag of the latest DONE.
    pub fn make_last(&mut self) {
        if self.is_done() {
            done::make_last(&mut self.tokens, &self.dialect);
        }
    }

    /// Removes a DONE at the end, which may be the last one; [`Reply::put_back`] appends it again.
    pub(super) fn take_done(&mut self) -> BytesMut {
        if self.is_done() {
            self.tokens.split_off(self.tokens.len() - Done::length(&self.dialect))
        } else {
            BytesMut::new()
        }
    }

    pub(super) fn put_back(&mut self, done: &BytesMut) {
        self.tokens.extend_from_slice(done);
        self.done = (!done.is_empty()).then_some(self.tokens.len());
    }

    /// A result set that does not come from PostgreSQL: names, types and type modifiers of its columns, and
    /// rows.
    pub fn result_set(
        &mut self,
        columns: &[(String, PgType, i32)],
        rows: &[Vec<Value<'_>>],
    ) -> Result<(), ServerMessage> {
        let column = |(name, pg_type, typmod): &(String, PgType, i32)| Column {
            name: name.clone(),
            type_info: column_type(*pg_type, *typmod, &self.dialect),
            traits: Traits::default(),
            table: None,
        };
        if self.gathering.is_some() {
            let text = "'insert … execute' of this procedure is not supported: the gateway makes its rows.";
            return Err(ServerMessage::error(102, 15, text));
        }
        let columns: Vec<Column> = columns.iter().map(column).collect();
        self.rows_of(&columns, rows)
    }

    /// A result set of described columns.
    pub fn rows_of(&mut self, columns: &[Column], rows: &[Vec<Value<'_>>]) -> Result<(), ServerMessage> {
        let dialect = self.dialect;
        let out = &mut self.tokens;
        let before = out.len();
        columns::put(out, columns, &dialect);
        self.open_rows = Some(0);
        for row in rows {
            out.put_u8(columns::ROW);
            for (column, value) in columns.iter().zip(row) {
                if let Err(error) = encode_value(value, &column.type_info, &dialect, out) {
                    out.truncate(before);
                    self.open_rows = None;
                    return Err(unsendable(&format!("Column '{}'", column.name), &error));
                }
            }
        }
        Ok(())
    }
}

/// The error for a value that cannot be represented in the client's dialect.
pub fn unsendable(what: &str, error: &ConvertError) -> ServerMessage {
    ServerMessage::error(error.number(), 16, format!("{what} cannot be sent to this client: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Version;
    use crate::tds::wire::Reader;

    fn dones(reply: &Reply) -> Vec<Done> {
        let mut reader = Reader::new(&reply.tokens, reply.dialect.endian);
        std::iter::from_fn(|| Done::decode(&mut reader, &reply.dialect).ok()).collect()
    }

    #[test]
    fn only_the_last_done_says_that_nothing_follows() {
        let mut reply = Reply::new(Dialect::new(Version::Tds50));
        reply.in_transaction = true;
        reply.end(Status::empty(), Some(3));
        reply.no_count = true;
        reply.end(Status::ERROR, Some(3));
        reply.make_last();
        let state = Status::IN_TRANSACTION;
        let found = dones(&reply);
        assert_eq!((found[0].status, found[0].count), (Status::MORE | state, Some(3)));
        assert_eq!((found[1].status, found[1].count), (Status::ERROR | state, None));
    }

    #[test]
    fn nocount_leaves_out_the_ends_of_statements_in_a_procedure() {
        let mut reply = Reply::new(Dialect::new(Version::Tds74));
        (reply.nesting, reply.no_count) = (1, true);
        reply.end(Status::empty(), Some(3));
        assert!(reply.tokens.is_empty());
        reply.end(Status::ERROR, None);
        reply.open_rows = Some(0);
        reply.end(Status::empty(), Some(3));
        let found: Vec<_> = dones(&reply).iter().map(|done| (done.status, done.count)).collect();
        assert_eq!(found, [(Status::ERROR | Status::MORE, None), (Status::MORE, None)]);
    }

    #[test]
    fn a_statement_in_a_procedure_does_not_end_the_answer() {
        let mut reply = Reply::new(Dialect::new(Version::Tds74));
        reply.nesting = 1;
        reply.finished(0);
        reply.nesting = 0;
        reply.done(Scope::Procedure, Status::empty(), None);
        let scopes: Vec<_> = dones(&reply).iter().map(|done| done.scope).collect();
        assert_eq!(scopes, [Scope::InProcedure, Scope::Procedure]);
    }
}
