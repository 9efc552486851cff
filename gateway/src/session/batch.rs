//! Text: the statements of a batch one after another, and the transaction requests that drivers send
//! instead of text.

use super::results::{Ran, Source};
use super::settings::{self, State};
use super::{Form, Session, SessionError};
use crate::convert::{column_type, PgType};
use crate::tds::call as wire_call;
use crate::tds::tokens::columns::{self, Column};
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::envchange::{self, Transaction as Change};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{encode_value, Value};
use crate::tds::wire::WireError;
use crate::text::batch::{self, Statement};
use bytes::BufMut;
use std::borrow::Cow;
use tokio::io::{AsyncRead, AsyncWrite};

/// After these errors T-SQL goes on with the next statement of the batch.
const STATEMENT_ONLY: [i32; 3] = [515, 547, 2601];

/// A varchar(255) in PostgreSQL's type modifier.
const VARCHAR_255: i32 = 255 + 4;

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs a batch that is a request of its own.
    pub(super) async fn run_batch(&mut self, text: &str) -> Result<(), SessionError> {
        self.run_statements(text).await?;
        Ok(())
    }

    /// Runs the statements of `text` up to the first error that ends a batch.
    pub(super) async fn run_statements(&mut self, text: &str) -> Result<(), SessionError> {
        self.error = 0;
        let statements = match batch::parse(text, self.settings.quoted_identifiers) {
            Ok(statements) => statements,
            Err(message) => {
                self.refuse(&message);
                return Ok(());
            }
        };
        if statements.is_empty() {
            self.client.done(Done::Statement, self.done_status(0), None);
        }
        let mut rest = statements.into_iter().peekable();
        while let Some(statement) = rest.next() {
            let more = rest.peek().is_some();
            self.error = 0;
            if !self.run_one(statement, more).await? {
                break;
            }
        }
        Ok(())
    }

    /// Runs one statement. False: the batch ends here.
    async fn run_one(&mut self, statement: Statement, more: bool) -> Result<bool, SessionError> {
        let mut statement = statement;
        while let Statement::IfInTransaction(inner) = statement {
            if !self.transaction.is_open() {
                self.end(0, None, more);
                return Ok(true);
            }
            statement = *inner;
        }
        match statement {
            Statement::Execute(call) => {
                self.run_call(&call.procedure, &call.params, Form::Text, more).await?;
                return Ok(self.error == 0 || self.go_on(more));
            }
            Statement::Query(sql) => return self.run_query(&sql, more).await,
            Statement::Variables(names) => {
                if let Err(message) = self.put_variables(&names) {
                    return Ok(self.fail(&message, more));
                }
                self.end(0, Some(1), more);
            }
            Statement::Set(words) => match settings::apply(&mut self.settings, &words) {
                Ok(()) => self.end(0, None, more),
                Err(message) => return Ok(self.fail(&message, more)),
            },
            Statement::Print(text) => {
                self.client.message(&ServerMessage::info(0, text));
                self.end(0, None, more);
            }
            Statement::Use(name) => {
                if let Err(message) = self.use_database(&name).await {
                    return Ok(self.fail(&message, more));
                }
                self.end(0, None, more);
            }
            Statement::Begin => {
                self.begin();
                self.end(0, None, more);
            }
            Statement::Commit => match self.commit().await {
                Ok(()) => self.end(0, None, more),
                Err(message) => return Ok(self.fail(&message, more)),
            },
            Statement::Rollback(name) => match self.rollback(&name).await {
                Ok(()) => self.end(0, None, more),
                Err(message) => return Ok(self.fail(&message, more)),
            },
            Statement::Save(name) => match self.save(&name).await {
                Ok(()) => self.end(0, None, more),
                Err(message) => return Ok(self.fail(&message, more)),
            },
            Statement::IfInTransaction(_) => {}
        }
        Ok(true)
    }

    fn end(&mut self, status: u16, count: Option<u64>, more: bool) {
        let status = if more { status | done::MORE } else { status };
        self.client.done(Done::Statement, self.done_status(status), count);
    }

    /// Tells the error and ends the statement. Whether the batch goes on.
    fn fail(&mut self, message: &ServerMessage, more: bool) -> bool {
        self.error = message.number;
        self.row_count = 0;
        self.client.message(message);
        let goes_on = more && STATEMENT_ONLY.contains(&message.number);
        self.end(done::ERROR, None, goes_on);
        goes_on
    }

    /// After a call that failed and has told so with MORE: whether the batch goes on, else its end.
    fn go_on(&mut self, more: bool) -> bool {
        let goes_on = more && STATEMENT_ONLY.contains(&self.error);
        if more && !goes_on {
            self.end(done::ERROR, None, false);
        }
        goes_on
    }

    async fn run_query(&mut self, sql: &str, more: bool) -> Result<bool, SessionError> {
        self.backend.pin();
        Ok(match self.run(Source::Text(sql), true).await? {
            Ran::Completed(outcome) => {
                self.row_count = outcome.count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
                self.end(0, outcome.count, more);
                true
            }
            Ran::Failed(error) => self.fail(&Self::pg_error(&error, None), more),
            Ran::Untellable(message) => self.fail(&message, more),
            Ran::Cancelled => {
                self.client.done(Done::Statement, done::ATTENTION, None);
                false
            }
        })
    }

    /// The one row of `select @@a, @@b`.
    fn put_variables(&mut self, names: &[(String, String)]) -> Result<(), ServerMessage> {
        let dialect = self.client.dialect;
        let state = State {
            dialect: &dialect,
            settings: &self.settings,
            spid: self.spid,
            row_count: self.row_count,
            error: self.error,
            transactions: self.transaction.depth,
            charset: &self.login.charset,
            packet_size: self.client.packet_size(),
        };
        let mut columns = Vec::with_capacity(names.len());
        let mut values = Vec::with_capacity(names.len());
        for (name, alias) in names {
            let (pg_type, text) = settings::variable(&state, name).ok_or_else(|| {
                ServerMessage::error(137, 15, format!("Must declare the scalar variable \"{name}\"."))
            })?;
            let typmod = if pg_type == PgType::Varchar { VARCHAR_255 } else { -1 };
            let type_info = column_type(pg_type, typmod, &dialect);
            columns.push(Column { name: alias.clone(), type_info });
            values.push(match text.parse() {
                Ok(number) if pg_type != PgType::Varchar => Value::Int(number),
                _ => Value::Text(Cow::Owned(text)),
            });
        }
        let out = &mut self.client.reply;
        columns::put(out, &columns, &dialect);
        out.put_u8(columns::ROW);
        for (column, value) in columns.iter().zip(&values) {
            encode_value(value, &column.type_info, &dialect, out)
                .map_err(|error| super::results::untellable("The variable", &error))?;
        }
        Ok(())
    }

    async fn use_database(&mut self, name: &str) -> Result<(), ServerMessage> {
        if self.gateway.is_default_database(name) {
            self.first_database.clone_into(&mut self.database);
        } else {
            let open = self.backend.open(&self.database).await.map_err(|error| error.to_message())?;
            if let Err(error) = open.use_schema(name).await {
                return Err(error.to_message());
            }
            name.clone_into(&mut self.database);
        }
        self.put_database();
        Ok(())
    }

    fn begin(&mut self) {
        self.transaction.depth += 1;
        if self.transaction.depth == 1 {
            self.put_transaction(Change::Begun);
        }
    }

    async fn commit(&mut self) -> Result<(), ServerMessage> {
        match self.transaction.depth {
            0 if self.client.dialect.is_tds7() && !self.settings.implicit_transactions => {
                return Err(ServerMessage::error(
                    3902,
                    16,
                    "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                ));
            }
            0 => return Ok(()),
            1 => {}
            _ => {
                self.transaction.depth -= 1;
                return Ok(());
            }
        }
        self.end_transaction("commit", Change::Committed).await
    }

    async fn rollback(&mut self, name: &str) -> Result<(), ServerMessage> {
        if !self.transaction.is_open() {
            if self.client.dialect.is_tds7() && !self.settings.implicit_transactions {
                return Err(ServerMessage::error(
                    3903,
                    16,
                    "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.",
                ));
            }
            return Ok(());
        }
        if self.transaction.savepoints.iter().any(|savepoint| savepoint == name) {
            let sql = format!("rollback to savepoint {}", savepoint(name));
            return self.on_backend(&sql).await;
        }
        if !name.is_empty() {
            return Err(ServerMessage::error(
                6401,
                16,
                format!("Cannot roll back {name}. No transaction or savepoint of that name was found."),
            ));
        }
        self.end_transaction("rollback", Change::RolledBack).await
    }

    async fn save(&mut self, name: &str) -> Result<(), ServerMessage> {
        if !self.transaction.is_open() {
            return Err(ServerMessage::error(
                628,
                16,
                "Cannot issue SAVE TRANSACTION when there is no active transaction.",
            ));
        }
        if !self.transaction.started {
            self.on_backend("begin").await?;
            self.transaction.started = true;
        }
        self.on_backend(&format!("savepoint {}", savepoint(name))).await?;
        self.transaction.savepoints.push(name.to_owned());
        Ok(())
    }

    /// COMMIT or ROLLBACK in PostgreSQL when the transaction got there. It is over either way.
    async fn end_transaction(&mut self, sql: &str, change: Change) -> Result<(), ServerMessage> {
        let started = self.transaction.started;
        self.transaction.end();
        self.put_transaction(change);
        if started {
            self.on_backend(sql).await?;
        }
        Ok(())
    }

    async fn on_backend(&mut self, sql: &str) -> Result<(), ServerMessage> {
        let open = self.backend.open(&self.database).await.map_err(|error| error.to_message())?;
        match open.connection.query_text(sql).await {
            Ok(_) => Ok(()),
            Err(error) => {
                if error.is_fatal() {
                    self.backend.forget();
                    self.transaction.end();
                }
                Err(error.to_message())
            }
        }
    }

    fn put_transaction(&mut self, change: Change) {
        let dialect = self.client.dialect;
        if dialect.version >= crate::tds::dialect::Version::Tds72 {
            envchange::put_transaction(&mut self.client.reply, change, u64::from(self.spid) + 1, &dialect);
        }
    }

    /// A transaction manager request (MS-TDS 2.2.6.9).
    pub(super) async fn answer_transaction_request(&mut self, body: &[u8]) -> Result<(), SessionError> {
        const BEGIN: u16 = 5;
        const COMMIT: u16 = 7;
        const ROLLBACK: u16 = 8;
        const SAVE: u16 = 9;
        /// commit and rollback: begin another transaction at once
        const BEGIN_AGAIN: u8 = 1;
        self.error = 0;
        let dialect = self.client.dialect;
        let mut reader = wire_call::reader(body, &dialect);
        wire_call::skip_headers(&mut reader, &dialect)?;
        let request = reader.u16("transaction request")?;
        if request == BEGIN {
            reader.u8("isolation level")?;
        }
        let length = usize::from(reader.u8("transaction name")?);
        if !length.is_multiple_of(2) {
            return Err(WireError::Malformed("a transaction name of an odd number of bytes".into()).into());
        }
        let name = reader.utf16(length / 2, "transaction name")?;
        let done = match request {
            BEGIN => {
                self.begin();
                Ok(())
            }
            COMMIT => self.commit().await,
            ROLLBACK => self.rollback(&name).await,
            SAVE => self.save(&name).await,
            other => {
                Err(ServerMessage::error(4002, 16, format!("Transaction request {other} is not served.")))
            }
        };
        match done {
            Ok(()) => {
                if matches!(request, COMMIT | ROLLBACK) && !reader.is_empty() {
                    let flags = reader.u8("transaction flags")?;
                    if flags & BEGIN_AGAIN != 0 {
                        self.begin();
                    }
                }
                self.end(0, None, false);
            }
            Err(message) => {
                self.fail(&message, false);
            }
        }
        Ok(())
    }
}

/// A client's savepoint by a name that cannot be one of the gateway's own.
fn savepoint(name: &str) -> String {
    crate::catalogue::quoted(&format!("client {name}"))
}
