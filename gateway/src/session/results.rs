//! A statement run on the session's own connection, its rows streamed to the client as they come.

use super::client::Client;
use super::parameters::{self, Parameter, Typing};
use super::settings::TextSize;
use super::{Session, SessionError};
use crate::catalogue::quoted;
use crate::convert::{column_type, from_pg, PgType, SqlType, Zone};
use crate::postgres::commit::{Outcome, Statement};
use crate::postgres::connection::{
    read_columns, row_count, row_values, server_error, server_notice, Message, PgColumn,
};
use crate::postgres::{Connection, Notice, PgError};
use crate::program::Sql;
use crate::tds::tokens::columns::{self, Column};
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{encode_value, ConvertError, TypeInfo, Value};
use bytes::{BufMut, Bytes};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

/// How long PostgreSQL may take to accept a cancel.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);

/// What to run.
pub enum Source<'a> {
    Call { statement: &'a Statement, values: &'a Bytes, only_reads: bool },
    Query { sql: &'a Sql, parameters: &'a [Parameter<'a>] },
}

/// What becomes of the rows of a statement.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    /// They are a result set, whose columns may have other names than PostgreSQL's.
    ToClient(Option<&'a [String]>),
    /// The last one is kept.
    Kept,
}

/// A notice that names a cursor, whose rows are a result set; the detail may be a JSON list of names for its
/// columns.
const RESULT_SET: &str = "01R01";
/// A notice that tells a number of rows.
const ROW_COUNT: &str = "01R02";

/// The number of rows that a notice of a procedure tells.
pub(super) fn row_count_told(notice: &Notice) -> Option<u64> {
    if notice.sqlstate == ROW_COUNT {
        notice.message.parse().ok()
    } else {
        None
    }
}

/// A notice that tells the error that a procedure leaves behind: @@error after its call.
const LEFT_ERROR: &str = "01R04";

/// The number of the error that a notice says a procedure leaves.
pub(super) fn left_error_told(notice: &Notice) -> Option<i32> {
    if notice.sqlstate == LEFT_ERROR {
        notice.message.parse().ok()
    } else {
        None
    }
}

/// What a function has told since its first result set, whose rows come when it has returned.
enum Held {
    Message(ServerMessage),
    ResultSet { cursor: String, columns: Option<Vec<String>> },
    Count(u64),
}

/// A statement as PostgreSQL has it prepared.
#[derive(Debug)]
pub struct Described {
    pub name: String,
    /// The types it has found for the parameters.
    pub parameters: Vec<u32>,
    pub columns: Arc<[PgColumn]>,
}

/// How it ended.
pub enum Ran {
    /// With the last row, when rows were not for the client, and its columns.
    Completed(Outcome, Arc<[PgColumn]>),
    /// PostgreSQL refused the statement and nothing has come of it: it could be tried again.
    Refused(PgError),
    Failed(PgError),
    /// A value cannot be told to PostgreSQL or to this client; the statement was given up.
    Untellable(ServerMessage),
    /// The client cancelled.
    Cancelled,
}

/// One result column: how PostgreSQL sends it and how the client gets it.
struct Told {
    pg_type: PgType,
    type_info: TypeInfo,
    /// Of any length, which `set textsize` limits.
    is_long: bool,
}

impl Told {
    fn value<'r>(&self, raw: &'r [u8], zone: &Zone, limit: TextSize) -> Result<Value<'r>, ConvertError> {
        let value = from_pg(self.pg_type, raw, zone)?;
        Ok(if self.is_long { limit.cut(value) } else { value })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs `source`.
    pub(super) async fn run(&mut self, source: Source<'_>, rows: Rows<'_>) -> Result<Ran, SessionError> {
        if self.settings.implicit_transactions && !self.transaction.is_open() {
            self.begin("");
        }
        let in_transaction = self.transaction.is_open();
        if !in_transaction {
            self.backend.let_go_if_ended().await;
        }
        let in_try = matches!(source, Source::Call { only_reads: false, .. }) && self.tries.are_open();
        let mut begun = self.start_transaction().await;
        if begun.is_ok() && in_try {
            // what compiled procedures do with an error that ends nothing by itself
            begun = self.set("set tsql.try = on").await;
        }
        if let Err(error) = begun {
            return Ok(self.failed(error));
        }
        let mut typing = Typing::Declared;
        let mut refusal = None;
        let ran = loop {
            let ran = self.run_once(&source, typing, rows).await?;
            if let Ran::Failed(error) | Ran::Refused(error) = &ran {
                if error.is_fatal() {
                    self.backend.forget();
                    self.transaction.end();
                    return Ok(ran);
                }
            }
            match (ran, refusal.take()) {
                (Ran::Refused(error), None) => match self.again(&source, &mut typing, &error).await {
                    Ok(true) => refusal = Some(error),
                    Ok(false) => break Ran::Refused(error),
                    Err(error) => return Ok(self.failed(error)),
                },
                // the second try's refusal says less than the first's
                (Ran::Refused(_) | Ran::Untellable(_), Some(error)) => break Ran::Refused(error),
                (ran, _) => break ran,
            }
        };
        if in_transaction {
            if let Err(error) = self.settle_statement(matches!(ran, Ran::Completed(..))).await {
                return Ok(self.failed(error));
            }
        }
        if in_try {
            if let Err(error) = self.set("set tsql.try = off").await {
                return Ok(self.failed(error));
            }
        }
        Ok(ran)
    }

    async fn set(&mut self, sql: &str) -> Result<(), PgError> {
        match self.backend.opened() {
            Some(open) => open.connection.query_text(sql).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Whether a refused query is to be tried once more: with other types for its parameters, or because
    /// what was prepared is out of date.
    async fn again(
        &mut self,
        source: &Source<'_>,
        typing: &mut Typing,
        error: &PgError,
    ) -> Result<bool, PgError> {
        let Source::Query { parameters, .. } = source else { return Ok(false) };
        let Some(open) = self.backend.opened().filter(|_| !parameters.is_empty()) else { return Ok(false) };
        // feature_not_supported: cached plan must not change result type; invalid_sql_statement_name
        if matches!(error.sqlstate(), Some("0A000" | "26000")) {
            open.forget_prepared()?;
        } else {
            let Some(next) = typing.after(error) else { return Ok(false) };
            *typing = next;
        }
        if self.transaction.started {
            open.connection.query_text("rollback to savepoint ringlog_statement").await?;
        }
        Ok(true)
    }

    /// Ends a statement of a transaction. T-SQL undoes the one that failed and keeps the transaction.
    pub(super) async fn settle_statement(&mut self, completed: bool) -> Result<(), PgError> {
        let after = if completed {
            "release savepoint ringlog_statement"
        } else {
            "rollback to savepoint ringlog_statement; release savepoint ringlog_statement"
        };
        match self.backend.opened() {
            Some(open) => open.connection.query_text(after).await.map(|_| ()),
            None => Ok(()),
        }
    }

    fn failed(&mut self, error: PgError) -> Ran {
        if error.is_fatal() {
            self.backend.forget();
            self.transaction.end();
        }
        Ran::Failed(error)
    }

    /// What PostgreSQL finds for a query before it runs: the types of its parameters and its columns.
    pub(super) async fn describe(&mut self, sql: &Sql, types: &[SqlType]) -> Result<Arc<Described>, PgError> {
        let started = self.transaction.started;
        let open = self.backend.open(&self.database).await?;
        if started {
            open.connection.query_text("savepoint ringlog_statement").await?;
        }
        let mut typing = Typing::Declared;
        let mut refusal = None;
        let described = loop {
            let (text, oids) = parameters::statement(sql, types, typing);
            let error = match open.prepare_query(text, oids).await {
                Ok(described) => break Ok(described),
                Err(error) => error,
            };
            if started && !error.is_fatal() {
                open.connection.query_text("rollback to savepoint ringlog_statement").await?;
            }
            match typing.after(&error) {
                Some(next) => typing = next,
                None => break Err(refusal.unwrap_or(error)),
            }
            refusal = Some(error);
        };
        if started {
            open.connection.query_text("release savepoint ringlog_statement").await?;
        }
        described
    }

    /// Asks PostgreSQL something by the way. A transaction bears that it refuses.
    pub(super) async fn ask(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, PgError> {
        let started = self.transaction.started;
        let connection = &mut self.backend.open(&self.database).await?.connection;
        if !started {
            return connection.query_text(sql).await;
        }
        connection.query_text("savepoint ringlog_statement").await?;
        let answer = connection.query_text(sql).await;
        if answer.is_err() {
            connection.query_text("rollback to savepoint ringlog_statement").await?;
        }
        connection.query_text("release savepoint ringlog_statement").await?;
        answer
    }

    /// Tells the client of a result set that will have these columns.
    pub(super) fn put_description(&mut self, columns: &[PgColumn], names: Option<&[String]>) {
        announce(columns, names, &mut self.client);
    }

    /// BEGIN when the client's transaction has not reached PostgreSQL yet, and a savepoint for the statement.
    pub(super) async fn start_transaction(&mut self) -> Result<(), PgError> {
        let open = self.backend.open(&self.database).await?;
        if self.transaction.is_open() {
            let begin = if self.transaction.started { "" } else { "begin; " };
            // what procedures compiled from T-SQL take for @@trancount
            let depth = match self.transaction.depth {
                depth if depth == self.transaction.told => String::new(),
                depth => format!("set local tsql.trancount = {depth}; "),
            };
            open.connection.query_text(&format!("{begin}{depth}savepoint ringlog_statement")).await?;
            self.transaction.started = true;
            self.transaction.told = self.transaction.depth;
        }
        Ok(())
    }

    async fn run_once(
        &mut self,
        source: &Source<'_>,
        typing: Typing,
        rows: Rows<'_>,
    ) -> Result<Ran, SessionError> {
        let more = self.done_status(done::MORE);
        let open = match self.backend.open(&self.database).await {
            Ok(open) => open,
            Err(error) => return Ok(Ran::Failed(error)),
        };
        let zone = match open.zone() {
            Ok(zone) => zone,
            Err(error) => return Ok(Ran::Failed(error)),
        };
        let prepared = match source {
            Source::Call { statement, .. } => open.prepare(statement).await,
            Source::Query { sql, parameters } => {
                let types: Vec<_> = parameters.iter().map(|parameter| parameter.sql_type).collect();
                let (sql, oids) = parameters::statement(sql, &types, typing);
                open.prepare_query(sql, oids).await
            }
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Ran::Refused(error)),
        };
        let columns = prepared.columns.clone();
        let formats = formats(&columns);
        let limit = match rows {
            Rows::ToClient(_) => self.settings.row_limit,
            Rows::Kept => 0,
        };
        match source {
            Source::Call { statement, values, .. } => {
                let sent = &statement.parameter_formats;
                open.connection.put_execute(&prepared.name, sent, values, &formats, limit);
            }
            Source::Query { parameters, .. } => {
                match parameters::bind(parameters, &prepared.parameters, &zone) {
                    Ok((sent, values)) => {
                        open.connection.put_execute(&prepared.name, &sent, &values, &formats, limit);
                    }
                    Err(message) => return Ok(Ran::Untellable(message)),
                }
            }
        }
        let only_reads = matches!(source, Source::Call { only_reads: true, .. });
        // cursors end with the transaction, which is the statement's own unless the client has begun one
        let may_open_cursors = matches!(source, Source::Call { only_reads: false, .. });
        if may_open_cursors {
            open.connection.put_flush();
        } else {
            open.connection.put_sync();
        }
        if let Err(error) = open.connection.flush().await {
            return Ok(Ran::Failed(error));
        }
        let mut stream = RowStream {
            client: &mut self.client,
            connection: &mut open.connection,
            zone: &zone,
            columns,
            told: None,
            outcome: Outcome::default(),
            rows: 0,
            has_effects: false,
            only_reads,
            is_synced: !may_open_cursors,
            held: Vec::new(),
            more,
            no_count: self.settings.no_count,
            text_size: self.settings.text_size,
            end: None,
            cancelling: None,
        };
        let ran = stream.run(rows).await;
        if let Some(cancelling) = stream.cancelling.take() {
            // a cancel still on its way would hit the next statement
            let _ = cancelling.await;
        }
        ran
    }
}

/// Rows on their way from PostgreSQL to the client.
struct RowStream<'a, S> {
    client: &'a mut Client<S>,
    connection: &'a mut Connection,
    zone: &'a Zone,
    columns: Arc<[PgColumn]>,
    /// The result set as announced to the client.
    told: Option<Vec<Told>>,
    outcome: Outcome,
    /// How many rows were told.
    rows: u64,
    /// Rows were told, or something may have been written.
    has_effects: bool,
    only_reads: bool,
    /// The Sync that ends the statement is sent.
    is_synced: bool,
    held: Vec<Held>,
    /// The status of a DONE that is not the last.
    more: u16,
    no_count: bool,
    text_size: TextSize,
    /// Why rows are no longer wanted: the rest is read and dropped.
    end: Option<Ran>,
    /// PostgreSQL is being asked to cancel.
    cancelling: Option<JoinHandle<()>>,
}

enum Event {
    Message(Message),
    Attention,
}

impl<S: AsyncRead + AsyncWrite + Unpin> RowStream<'_, S> {
    async fn run(&mut self, rows: Rows<'_>) -> Result<Ran, SessionError> {
        let mut error = None;
        loop {
            let message = match self.event().await? {
                Ok(Event::Message(message)) => message,
                Ok(Event::Attention) => {
                    self.stop(Ran::Cancelled);
                    continue;
                }
                Err(error) => return Ok(Ran::Failed(error)),
            };
            match message {
                Message::BindComplete => {
                    self.has_effects = !self.only_reads;
                    if let Rows::ToClient(names) = rows {
                        if !self.columns.is_empty() {
                            self.told = Some(announce(&self.columns, names, self.client));
                        }
                    }
                }
                Message::DataRow(body) if self.end.is_none() => {
                    if self.told.is_some() {
                        self.has_effects = true;
                        self.rows += 1;
                        self.row(body.buffer_bytes());
                        self.client.flush_gathered().await?;
                    } else {
                        self.outcome.row = Some(body.buffer_bytes().clone());
                    }
                }
                Message::CommandComplete(body) => {
                    match body.tag() {
                        Ok(tag) => self.outcome.count = row_count(tag),
                        Err(error) => return Ok(Ran::Failed(error.into())),
                    }
                    match self.tell_held().await? {
                        Ok(()) => {}
                        Err(failure) if failure.is_fatal() => return Ok(Ran::Failed(failure)),
                        Err(failure) => error = Some(failure),
                    }
                    if let Err(error) = self.sync().await {
                        return Ok(Ran::Failed(error));
                    }
                }
                // the limit of rows is reached
                Message::PortalSuspended => self.outcome.count = Some(self.rows),
                Message::NoticeResponse(body) => match server_notice(&body) {
                    Ok(notice) => self.notice(&notice),
                    Err(error) => return Ok(Ran::Failed(error)),
                },
                Message::ErrorResponse(body) => {
                    match server_error(&body) {
                        Ok(failure) if failure.is_fatal() => return Ok(Ran::Failed(failure)),
                        Ok(failure) => error = Some(failure),
                        Err(error) => return Ok(Ran::Failed(error)),
                    }
                    // the cursors are gone
                    for held in self.held.drain(..) {
                        if let Held::Message(message) = held {
                            self.client.message(&message);
                        }
                    }
                    if let Err(error) = self.sync().await {
                        return Ok(Ran::Failed(error));
                    }
                }
                Message::ReadyForQuery(_) => break,
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Ok(Ran::Failed(PgError::Protocol("a copy, which is not served".into())));
                }
                _ => {}
            }
        }
        let outcome = std::mem::take(&mut self.outcome);
        Ok(match (self.end.take(), error) {
            (Some(end), _) => end,
            (None, Some(error)) if self.has_effects => Ran::Failed(error),
            (None, Some(error)) => Ran::Refused(error),
            (None, None) => Ran::Completed(outcome, self.columns.clone()),
        })
    }

    /// What happens next: PostgreSQL says something, or the client cancels.
    async fn event(&mut self) -> Result<Result<Event, PgError>, SessionError> {
        match self.connection.arrived() {
            Ok(Some(message)) => return Ok(Ok(Event::Message(message))),
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
        if matches!(self.end, Some(Ran::Cancelled)) {
            return Ok(self.connection.receive().await.map(Event::Message));
        }
        tokio::select! {
            message = self.connection.receive() => Ok(message.map(Event::Message)),
            attention = self.client.attention() => match attention {
                Ok(()) => Ok(Ok(Event::Attention)),
                Err(gone) => {
                    // nobody is left to read the rows
                    self.cancel();
                    Err(gone)
                }
            },
        }
    }

    /// Ends the statement, if that has not been done.
    async fn sync(&mut self) -> Result<(), PgError> {
        if self.is_synced {
            return Ok(());
        }
        self.is_synced = true;
        self.connection.put_sync();
        self.connection.flush().await
    }

    /// What PostgreSQL remarks goes to the client at once, but not before a result set it comes after.
    fn notice(&mut self, notice: &Notice) {
        if left_error_told(notice).is_some() {
            self.outcome.notices.push(notice.clone());
            return;
        }
        let held = match notice.sqlstate.as_str() {
            RESULT_SET if !self.is_synced => Held::ResultSet {
                cursor: notice.message.clone(),
                columns: serde_json::from_str(&notice.detail).ok(),
            },
            _ => match row_count_told(notice).filter(|_| !self.is_synced) {
                Some(count) => Held::Count(count),
                None => Held::Message(notice.to_message()),
            },
        };
        match held {
            Held::Message(message) if self.held.is_empty() => self.client.message(&message),
            held => self.held.push(held),
        }
    }

    /// Tells what the function has to tell beside what it returns, in its order.
    async fn tell_held(&mut self) -> Result<Result<(), PgError>, SessionError> {
        for held in std::mem::take(&mut self.held) {
            let count = match held {
                Held::Message(message) => {
                    self.client.message(&message);
                    continue;
                }
                Held::Count(_) if self.no_count => continue,
                Held::Count(count) => count,
                Held::ResultSet { cursor, columns } => {
                    match self.result_set(&cursor, columns.as_deref()).await? {
                        Ok(count) => count,
                        Err(error) => return Ok(Err(error)),
                    }
                }
            };
            if self.end.is_some() {
                break;
            }
            self.client.done(Done::InProcedure, self.more, Some(count).filter(|_| !self.no_count));
        }
        Ok(Ok(()))
    }

    /// The rows of an open cursor. Returns their number.
    async fn result_set(
        &mut self,
        cursor: &str,
        names: Option<&[String]>,
    ) -> Result<Result<u64, PgError>, SessionError> {
        let fetch = format!("fetch all from {}", quoted(cursor));
        if let Err(error) = self.connection.put_parse(&fetch).await {
            return Ok(Err(error));
        }
        let mut told = Vec::new();
        let mut count = 0;
        loop {
            let message = match self.event().await? {
                Ok(Event::Message(message)) => message,
                Ok(Event::Attention) => {
                    self.stop(Ran::Cancelled);
                    continue;
                }
                Err(error) => return Ok(Err(error)),
            };
            match message {
                Message::RowDescription(body) => {
                    match read_columns(&body) {
                        Ok(columns) => self.columns = columns.into(),
                        Err(error) => return Ok(Err(error)),
                    }
                    told = announce(&self.columns, names, self.client);
                    let formats = formats(&self.columns);
                    self.connection.put_execute("", &[], &[], &formats, 0);
                    self.connection.put_flush();
                    if let Err(error) = self.connection.flush().await {
                        return Ok(Err(error));
                    }
                }
                Message::DataRow(body) if self.end.is_none() => {
                    count += 1;
                    self.told = Some(told);
                    self.row(body.buffer_bytes());
                    told = self.told.take().unwrap_or_default();
                    self.client.flush_gathered().await?;
                }
                Message::CommandComplete(_) => {
                    // it would stay open to the end of the client's transaction
                    return Ok(self.connection.put_close_cursor(cursor).map(|()| count));
                }
                Message::ErrorResponse(body) => {
                    return Ok(Err(server_error(&body).unwrap_or_else(|error| error)))
                }
                _ => {}
            }
        }
    }

    fn row(&mut self, row: &Bytes) {
        let dialect = self.client.dialect;
        let Some(told) = &self.told else { return };
        let out = &mut self.client.reply;
        let start = out.len();
        out.put_u8(columns::ROW);
        for (index, (value, told)) in row_values(row).zip(told).enumerate() {
            let encoded = match value {
                None => encode_value(&Value::Null, &told.type_info, &dialect, out),
                Some(raw) => told
                    .value(raw, self.zone, self.text_size)
                    .and_then(|value| encode_value(&value, &told.type_info, &dialect, out)),
            };
            if let Err(error) = encoded {
                out.truncate(start);
                let name = self.columns.get(index).map_or("", |column| column.name.as_str());
                self.stop(Ran::Untellable(untellable(&format!("Column '{name}'"), &error)));
                return;
            }
        }
    }

    fn stop(&mut self, end: Ran) {
        self.end = Some(end);
        self.cancel();
    }

    fn cancel(&mut self) {
        if self.cancelling.is_some() {
            return;
        }
        let canceller = self.connection.canceller();
        self.cancelling = Some(tokio::spawn(async move {
            let _ = tokio::time::timeout(CANCEL_TIMEOUT, canceller.cancel()).await;
        }));
    }
}

/// Puts the description of a result set of these columns.
fn announce<S>(pg_columns: &[PgColumn], names: Option<&[String]>, client: &mut Client<S>) -> Vec<Told> {
    let dialect = client.dialect;
    let mut told = Vec::with_capacity(pg_columns.len());
    let mut columns = Vec::with_capacity(pg_columns.len());
    for (index, column) in pg_columns.iter().enumerate() {
        let mut pg_type = PgType::from_oid(column.oid);
        let mut typmod = column.typmod;
        if pg_type.wants_text() {
            (pg_type, typmod) = (PgType::Text, -1);
        }
        let type_info = column_type(pg_type, typmod, &dialect);
        let name = match names.and_then(|names| names.get(index)) {
            Some(name) => name.clone(),
            // what PostgreSQL calls a column without a name has none in T-SQL
            None if column.name == "?column?" => String::new(),
            None => column.name.clone(),
        };
        columns.push(Column { name, type_info });
        let is_long = matches!(pg_type, PgType::Text | PgType::Bytea);
        told.push(Told { pg_type, type_info, is_long });
    }
    columns::put(&mut client.reply, &columns, &dialect);
    client.rows_open = true;
    told
}

/// How PostgreSQL is to send these columns, 0 for text and 1 for binary.
fn formats(columns: &[PgColumn]) -> Vec<i16> {
    columns.iter().map(|column| i16::from(!PgType::from_oid(column.oid).wants_text())).collect()
}

/// The error for a value that has no form in the client's dialect.
pub fn untellable(what: &str, error: &ConvertError) -> ServerMessage {
    ServerMessage::error(error.number(), 16, format!("{what} cannot be told to this client: {error}"))
}
