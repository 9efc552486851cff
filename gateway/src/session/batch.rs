//! Text: the statements of a batch one after another, and the transaction requests that drivers send
//! instead of text.

use super::parameters::Parameter;
use super::results::{Ran, Source};
use super::settings::{self, State};
use super::variables::Variables;
use super::{Ended, Session, SessionError};
use crate::convert::{column_type, from_pg, PgType, SqlType};
use crate::postgres::commit::Outcome;
use crate::postgres::connection::{row_values, PgColumn};
use crate::postgres::PgError;
use crate::tds::call as wire_call;
use crate::tds::tokens::columns::{self, Column};
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::envchange::{self, Transaction as Change};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{encode_value, Value};
use crate::tds::wire::WireError;
use crate::text::batch::{self, undeclared, Statement};
use crate::text::declaration::Declaration;
use crate::text::literal::Scalar;
use crate::text::query::Query;
use bytes::BufMut;
use std::borrow::Cow;
use tokio::io::{AsyncRead, AsyncWrite};

/// Whether T-SQL goes on with the next statement of a batch after an error of this number.
fn goes_on_after(number: i32) -> bool {
    matches!(number, 515 | 547 | 2601)
}

/// The client's savepoints have numbers in PostgreSQL, where a long name would be cut.
const SAVEPOINT: &str = "client_savepoint_";

/// A varchar(255) in PostgreSQL's type modifier.
const VARCHAR_255: i32 = 255 + 4;

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs the statements of `text` up to the first error that ends a batch. How the last one ended.
    pub(super) async fn run_batch(
        &mut self,
        text: &str,
        variables: &mut Variables<'_>,
    ) -> Result<Ended, SessionError> {
        match batch::parse(text, self.syntax(), variables.names()) {
            Ok(batch) => self.run_statements(&batch.statements, variables, false).await,
            Err(message) => {
                self.refuse(&message);
                Ok(Ended::Failed)
            }
        }
    }

    /// Runs statements up to the first error that ends a batch; `more` says that others follow them.
    pub(super) async fn run_statements(
        &mut self,
        statements: &[Statement],
        variables: &mut Variables<'_>,
        more: bool,
    ) -> Result<Ended, SessionError> {
        if statements.is_empty() {
            self.end(0, None, more);
        }
        // SET FMTONLY OFF behind others has no end of its own, at which FreeTDS's bulk copy would forget the
        // columns it has just asked for (freebcp.c, file_native; dblib.c, _dbresults)
        let (statements, ends_formats) = match statements {
            [before @ .., Statement::Set(words)] if !before.is_empty() && *words == ["fmtonly", "off"] => {
                (before, true)
            }
            _ => (statements, false),
        };
        let mut ended = Ended::Well;
        let mut rest = statements.iter().peekable();
        while let Some(statement) = rest.next() {
            let more = more || rest.peek().is_some();
            ended = self.run_one(statement, variables, more).await?;
            let goes_on = match ended {
                Ended::Well => !more || !self.cancelled_meanwhile().await?,
                Ended::Failed => goes_on_after(self.error),
                Ended::Cancelled => false,
            };
            if !goes_on {
                return Ok(ended);
            }
        }
        if ends_formats {
            self.settings.only_formats = false;
        }
        Ok(ended)
    }

    /// Whether the client has cancelled between two statements; it is told that nothing more will come.
    async fn cancelled_meanwhile(&mut self) -> Result<bool, SessionError> {
        tokio::select! {
            biased;
            attention = self.client.attention() => attention?,
            () = std::future::ready(()) => return Ok(false),
        }
        self.client.acknowledge_cancel();
        Ok(true)
    }

    /// Runs one statement; `more` says that another follows.
    async fn run_one(
        &mut self,
        statement: &Statement,
        variables: &mut Variables<'_>,
        more: bool,
    ) -> Result<Ended, SessionError> {
        let mut statement = statement;
        while let Statement::IfInTransaction(inner) = statement {
            if !self.transaction.is_open() {
                self.end(0, None, more);
                return Ok(Ended::Well);
            }
            statement = inner;
        }
        match statement {
            Statement::Execute(execute) => {
                let ended = self.run_execute(execute, variables, more).await?;
                if ended == Ended::Failed && more && self.nesting == 0 && !goes_on_after(self.error) {
                    self.end(done::ERROR, None, false);
                }
                return Ok(ended);
            }
            Statement::ExecuteText(parts) => return self.execute_text(parts, variables, more).await,
            Statement::Query(query) => return self.run_query(query, variables, more).await,
            Statement::InsertBulk(bulk) => return self.open_bulk(bulk, more).await,
            Statement::Variables(names) => {
                if let Err(message) = self.put_variables(names, variables) {
                    return Ok(self.fail(&message, more));
                }
                self.end(0, Some(1), more);
            }
            Statement::Declare(declarations) => {
                if let Err(message) = self.declare(declarations, variables) {
                    return Ok(self.fail(&message, more));
                }
                self.end(0, None, more);
            }
            Statement::Assign(name, scalar) => {
                let zone = self.gateway.zone();
                let value = self.scalar(scalar, variables);
                if let Err(message) = value.and_then(|value| variables.set(name, &value, &zone)) {
                    return Ok(self.fail(&message, more));
                }
                self.end(0, None, more);
            }
            Statement::Set(words) => match settings::apply(&mut self.settings, words) {
                Ok(()) => {
                    self.announce_text_size();
                    self.end(0, None, more);
                }
                Err(message) => return Ok(self.fail(&message, more)),
            },
            Statement::Print(scalar) => {
                match self.scalar(scalar, variables).and_then(|value| printed(&value)) {
                    Ok(text) => self.client.message(&ServerMessage::info(0, text)),
                    Err(message) => return Ok(self.fail(&message, more)),
                }
                self.end(0, None, more);
            }
            Statement::Use(name) => {
                if let Err(message) = self.use_database(name).await {
                    return Ok(self.fail(&message, more));
                }
                self.end(0, None, more);
            }
            Statement::Begin(name) => {
                self.begin(name);
                self.end(0, None, more);
            }
            Statement::Commit => match self.commit().await {
                Ok(()) => self.end(0, None, more),
                Err(message) => return Ok(self.fail(&message, more)),
            },
            Statement::Rollback(name) => match self.rollback(name).await {
                Ok(()) => self.end(0, None, more),
                Err(message) => return Ok(self.fail(&message, more)),
            },
            Statement::Save(name) => match self.save(name).await {
                Ok(()) => self.end(0, None, more),
                Err(message) => return Ok(self.fail(&message, more)),
            },
            Statement::IfInTransaction(_) => {}
        }
        Ok(Ended::Well)
    }

    /// A text size that the client has set is announced to it from now on.
    pub(super) fn announce_text_size(&mut self) {
        self.client.dialect.text_size = self.settings.text_size.unwrap_or(self.login.dialect.text_size);
    }

    pub(super) fn end(&mut self, status: u16, count: Option<u64>, more: bool) {
        if status & done::ERROR == 0 {
            self.error = 0;
        }
        if self.nesting > 0 {
            // a statement of a procedure ends by a token of its own only when that has something to say
            if count.is_some() || status & done::ERROR != 0 {
                self.client.done(Done::InProcedure, self.done_status(status | done::MORE), count);
            }
            return;
        }
        let status = if more || self.followed { status | done::MORE } else { status };
        self.client.done(Done::Statement, self.done_status(status), count);
    }

    /// Tells the error and ends the statement.
    pub(super) fn fail(&mut self, message: &ServerMessage, more: bool) -> Ended {
        self.error = message.number;
        self.row_count = 0;
        self.client.message(message);
        self.end(done::ERROR, None, more && goes_on_after(message.number));
        Ended::Failed
    }

    async fn run_query(
        &mut self,
        query: &Query,
        variables: &mut Variables<'_>,
        more: bool,
    ) -> Result<Ended, SessionError> {
        let ran = {
            let parameters = match self.parameters(query, variables) {
                Ok(parameters) => parameters,
                Err(message) => return Ok(self.fail(&message, more)),
            };
            if self.settings.only_formats {
                let types: Vec<_> = parameters.iter().map(|parameter| parameter.sql_type).collect();
                return self.describe_query(query, &types, more).await;
            }
            self.backend.pin();
            self.run(Source::Query { query, parameters: &parameters }, query.assigns.is_empty()).await?
        };
        Ok(match ran {
            Ran::Completed(outcome, columns) => {
                self.row_count = outcome.count.and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
                if query.assigns.is_empty() {
                    self.end(0, outcome.count, more);
                    return Ok(Ended::Well);
                }
                if let Err(message) = self.assign_row(query, variables, &outcome, &columns) {
                    return Ok(self.fail(&message, more));
                }
                self.end(0, None, more);
                Ended::Well
            }
            Ran::Refused(error) | Ran::Failed(error) => self.fail(&error.to_message(), more),
            Ran::Untellable(message) => self.fail(&message, more),
            Ran::Cancelled => {
                self.client.acknowledge_cancel();
                Ended::Cancelled
            }
        })
    }

    /// Under `set fmtonly on` a query tells its columns and does nothing.
    async fn describe_query(
        &mut self,
        query: &Query,
        types: &[SqlType],
        more: bool,
    ) -> Result<Ended, SessionError> {
        match self.describe(query, types).await {
            Ok(described) => {
                if !described.columns.is_empty() && query.assigns.is_empty() {
                    self.put_description(&described.columns);
                }
                self.end(0, None, more);
                Ok(Ended::Well)
            }
            Err(error) => {
                let message = self.told(&error);
                Ok(self.fail(&message, more))
            }
        }
    }

    /// What the query's variables stand for.
    fn parameters<'v>(
        &self,
        query: &'v Query,
        variables: &'v Variables<'_>,
    ) -> Result<Vec<Parameter<'v>>, ServerMessage> {
        let parameter = |name: &'v String| {
            if let Some(variable) = variables.get(name) {
                let value = Cow::Borrowed(&variable.value);
                return Ok(Parameter { name, sql_type: variable.sql_type, value });
            }
            let (pg_type, value) = self.session_variable(name)?;
            let sql_type = if pg_type == PgType::Varchar { SqlType::TEXT } else { SqlType::INT4 };
            Ok(Parameter { name, sql_type, value: Cow::Owned(value) })
        };
        query.variables.iter().map(parameter).collect()
    }

    /// The value of an `@@` variable and its type: an integer's or varchar.
    fn session_variable(&self, name: &str) -> Result<(PgType, Value<'static>), ServerMessage> {
        let state = State {
            dialect: &self.client.dialect,
            settings: &self.settings,
            spid: self.spid,
            row_count: self.row_count,
            error: self.error,
            transactions: self.transaction.depth,
            charset: &self.login.charset,
            packet_size: self.client.packet_size(),
        };
        let (pg_type, text) = settings::variable(&state, name).ok_or_else(|| undeclared(name))?;
        Ok(match text.parse() {
            Ok(number) if pg_type != PgType::Varchar => (pg_type, Value::Int(number)),
            _ => (pg_type, Value::Text(Cow::Owned(text))),
        })
    }

    /// A value named in the text.
    fn scalar<'a>(&self, scalar: &Scalar, variables: &Variables<'a>) -> Result<Value<'a>, ServerMessage> {
        match scalar {
            Scalar::Variable(name) if name.starts_with("@@") => {
                self.session_variable(name).map(|(_, value)| value)
            }
            _ => variables.value(scalar),
        }
    }

    fn declare(
        &mut self,
        declarations: &[Declaration],
        variables: &mut Variables<'_>,
    ) -> Result<(), ServerMessage> {
        let zone = self.gateway.zone();
        for declaration in declarations {
            variables.declare(&declaration.name, declaration.sql_type);
            if let Some(scalar) = &declaration.value {
                let value = self.scalar(scalar, variables)?;
                variables.set(&declaration.name, &value, &zone)?;
            }
        }
        Ok(())
    }

    /// `select @a = …`: the last row's values; without a row the variables keep theirs.
    fn assign_row(
        &mut self,
        query: &Query,
        variables: &mut Variables<'_>,
        outcome: &Outcome,
        columns: &[PgColumn],
    ) -> Result<(), ServerMessage> {
        let zone = self.gateway.zone();
        let Some(row) = &outcome.row else { return Ok(()) };
        for ((name, column), raw) in query.assigns.iter().zip(columns).zip(row_values(row)) {
            let value = match raw {
                None => Value::Null,
                Some(raw) => from_pg(PgType::from_oid(column.oid), raw, &zone).map_err(|error| {
                    ServerMessage::error(error.number(), 16, format!("Variable '{name}': {error}"))
                })?,
            };
            variables.set(name, &value, &zone)?;
        }
        Ok(())
    }

    /// `exec ('…')`: the statements of the text as if they stood here, with variables of their own.
    async fn execute_text(
        &mut self,
        parts: &[Scalar],
        variables: &Variables<'_>,
        more: bool,
    ) -> Result<Ended, SessionError> {
        let mut text = String::new();
        for part in parts {
            match self.scalar(part, variables).and_then(|value| printed(&value)) {
                Ok(part) => text.push_str(&part),
                Err(message) => return Ok(self.fail(&message, more)),
            }
        }
        match batch::parse(&text, self.syntax(), []) {
            Ok(batch) => {
                let mut variables = Variables::default();
                Box::pin(self.run_statements(&batch.statements, &mut variables, more)).await
            }
            Err(message) => Ok(self.fail(&message, more)),
        }
    }

    /// The one row of `select @a, @@b`.
    fn put_variables(
        &mut self,
        names: &[(String, String)],
        variables: &Variables<'_>,
    ) -> Result<(), ServerMessage> {
        let mut columns = Vec::with_capacity(names.len());
        let mut values = Vec::with_capacity(names.len());
        for (name, alias) in names {
            let (pg_type, typmod, value) = match variables.get(name) {
                Some(variable) => {
                    let SqlType { oid, typmod } = variable.sql_type;
                    (PgType::from_oid(oid), typmod, variable.value.clone().into_owned())
                }
                None => {
                    let (pg_type, value) = self.session_variable(name)?;
                    (pg_type, if pg_type == PgType::Varchar { VARCHAR_255 } else { -1 }, value)
                }
            };
            columns.push((alias.clone(), pg_type, typmod));
            values.push(value);
        }
        self.put_rows(&columns, &[values])
    }

    /// A result set that PostgreSQL has no part in: names, types and type modifiers of its columns, and rows.
    pub(super) fn put_rows(
        &mut self,
        columns: &[(String, PgType, i32)],
        rows: &[Vec<Value<'_>>],
    ) -> Result<(), ServerMessage> {
        let dialect = self.client.dialect;
        let columns: Vec<Column> = columns
            .iter()
            .map(|(name, pg_type, typmod)| Column {
                name: name.clone(),
                type_info: column_type(*pg_type, *typmod, &dialect),
            })
            .collect();
        let out = &mut self.client.reply;
        let before = out.len();
        columns::put(out, &columns, &dialect);
        for row in rows {
            out.put_u8(columns::ROW);
            for (column, value) in columns.iter().zip(row) {
                if let Err(error) = encode_value(value, &column.type_info, &dialect, out) {
                    out.truncate(before);
                    return Err(super::results::untellable(&format!("Column '{}'", column.name), &error));
                }
            }
        }
        Ok(())
    }

    async fn use_database(&mut self, name: &str) -> Result<(), ServerMessage> {
        if self.gateway.is_default_database(name) {
            self.first_database.clone_into(&mut self.database);
        } else {
            let used = match self.backend.open(&self.database).await {
                Ok(open) => open.use_schema(name).await,
                Err(error) => Err(error),
            };
            used.map_err(|error| self.told(&error))?;
            name.clone_into(&mut self.database);
        }
        // an unqualified name may mean another procedure now
        self.plans.clear();
        self.put_database();
        Ok(())
    }

    /// `name` is "" for none.
    pub(super) fn begin(&mut self, name: &str) {
        self.transaction.begin(name);
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
        let started = self.transaction.started;
        self.transaction.end();
        self.put_transaction(Change::Committed);
        if !started {
            return Ok(());
        }
        let committed = match self.backend.open(&self.database).await {
            Ok(open) => open.connection.commit().await,
            Err(error) => Err(error),
        };
        match committed {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.backend.rolled_back();
                Err(ServerMessage::error(
                    3930,
                    16,
                    "The transaction had failed and could not be committed: it was rolled back.",
                ))
            }
            Err(error) => {
                self.backend.rolled_back();
                Err(self.told(&error))
            }
        }
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
        if let Some(number) = self.transaction.savepoint(name) {
            self.on_backend(&format!("rollback to savepoint {SAVEPOINT}{number}")).await?;
            self.transaction.went_back_to(number);
            self.backend.rolled_back();
            return Ok(());
        }
        if !self.transaction.is_named(name) {
            return Err(ServerMessage::error(
                6401,
                16,
                format!("Cannot roll back {name}. No transaction or savepoint of that name was found."),
            ));
        }
        let started = self.transaction.started;
        self.transaction.end();
        self.put_transaction(Change::RolledBack);
        if started {
            self.on_backend("rollback").await?;
            self.backend.rolled_back();
        }
        Ok(())
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
        let number = self.transaction.next_savepoint();
        self.on_backend(&format!("savepoint {SAVEPOINT}{number}")).await?;
        self.transaction.saved(name);
        Ok(())
    }

    async fn on_backend(&mut self, sql: &str) -> Result<(), ServerMessage> {
        let done = match self.backend.open(&self.database).await {
            Ok(open) => open.connection.query_text(sql).await,
            Err(error) => Err(error),
        };
        done.map(|_| ()).map_err(|error| self.told(&error))
    }

    /// An error of the session's own connection as the client hears it. What a lost one held is gone.
    pub(super) fn told(&mut self, error: &PgError) -> ServerMessage {
        if error.is_fatal() {
            self.backend.forget();
            self.transaction.end();
        }
        error.to_message()
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
                self.begin(&name);
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
                        self.begin("");
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

/// A value as `print` shows it; NULL is nothing.
fn printed(value: &Value<'_>) -> Result<String, ServerMessage> {
    match value {
        Value::Null => Ok(String::new()),
        Value::Text(text) => Ok(text.clone().into_owned()),
        other => other
            .to_text("text")
            .map(Cow::into_owned)
            .map_err(|error| ServerMessage::error(error.number(), 16, error.text)),
    }
}
