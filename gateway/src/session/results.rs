//! A statement run on the session's own connection, its rows streamed to the client as they come.

use super::client::Client;
use super::{Session, SessionError};
use crate::convert::{column_type, from_pg, PgType, Zone};
use crate::postgres::commit::{Outcome, Statement};
use crate::postgres::connection::{row_count, row_values, server_error, server_notice, Message, PgColumn};
use crate::postgres::{Connection, PgError};
use crate::tds::tokens::columns::{self, Column};
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
    Text(&'a str),
}

/// How it ended.
pub enum Ran {
    /// With the row kept when rows were not for the client.
    Completed(Outcome),
    /// PostgreSQL refused the statement and nothing has come of it: it could be tried again.
    Refused(PgError),
    Failed(PgError),
    /// A value cannot be told to this client; the statement was given up.
    Untellable(ServerMessage),
    /// The client cancelled.
    Cancelled,
}

/// One result column: how PostgreSQL sends it and how the client gets it.
struct Told {
    pg_type: PgType,
    type_info: TypeInfo,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs `source`. With `rows_to_client` its rows are a result set, otherwise its one row is kept.
    pub(super) async fn run(
        &mut self,
        source: Source<'_>,
        rows_to_client: bool,
    ) -> Result<Ran, SessionError> {
        if self.settings.implicit_transactions && !self.transaction.is_open() {
            self.begin("");
        }
        let in_transaction = self.transaction.is_open();
        if let Err(error) = self.start_transaction().await {
            return Ok(self.failed(error));
        }
        let ran = self.run_statement(source, rows_to_client).await?;
        if let Ran::Failed(error) | Ran::Refused(error) = &ran {
            if error.is_fatal() {
                self.backend.forget();
                self.transaction.end();
                return Ok(ran);
            }
        }
        if in_transaction {
            // T-SQL undoes the statement that failed and keeps the transaction
            let after = match &ran {
                Ran::Completed(_) => "release savepoint ringlog_statement",
                _ => "rollback to savepoint ringlog_statement; release savepoint ringlog_statement",
            };
            if let Some(open) = self.backend.opened() {
                if let Err(error) = open.connection.query_text(after).await {
                    return Ok(self.failed(error));
                }
            }
        }
        Ok(ran)
    }

    fn failed(&mut self, error: PgError) -> Ran {
        if error.is_fatal() {
            self.backend.forget();
            self.transaction.end();
        }
        Ran::Failed(error)
    }

    /// BEGIN when the client's transaction has not reached PostgreSQL yet, and a savepoint for the statement.
    async fn start_transaction(&mut self) -> Result<(), PgError> {
        let open = self.backend.open(&self.database).await?;
        if self.transaction.is_open() {
            if !self.transaction.started {
                open.connection.query_text("begin").await?;
                self.transaction.started = true;
            }
            open.connection.query_text("savepoint ringlog_statement").await?;
        }
        Ok(())
    }

    async fn run_statement(&mut self, source: Source<'_>, rows_to_client: bool) -> Result<Ran, SessionError> {
        let open = match self.backend.open(&self.database).await {
            Ok(open) => open,
            Err(error) => return Ok(Ran::Failed(error)),
        };
        let zone = match open.zone() {
            Ok(zone) => zone,
            Err(error) => return Ok(Ran::Failed(error)),
        };
        let prepared = match &source {
            Source::Call { statement, .. } => open.prepare(statement).await,
            Source::Text(sql) => {
                open.connection.prepare("", sql, &[]).await.map(|columns| (String::new(), columns.into()))
            }
        };
        let (name, columns) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Ran::Refused(error)),
        };
        let formats: Vec<i16> =
            columns.iter().map(|column| i16::from(!PgType::from_oid(column.oid).wants_text())).collect();
        match &source {
            Source::Call { statement, values, .. } => {
                open.connection.put_execute(&name, &statement.parameter_formats, values, &formats);
            }
            Source::Text(_) => open.connection.put_execute(&name, &[], &[], &formats),
        }
        open.connection.put_sync();
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
            has_effects: false,
            only_reads: matches!(source, Source::Call { only_reads: true, .. }),
            end: None,
            cancelling: None,
        };
        let ran = stream.run(rows_to_client).await;
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
    /// Rows were told, or something may have been written.
    has_effects: bool,
    only_reads: bool,
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
    async fn run(&mut self, rows_to_client: bool) -> Result<Ran, SessionError> {
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
                    if rows_to_client && !self.columns.is_empty() {
                        self.announce();
                    }
                }
                Message::DataRow(body) if self.end.is_none() => {
                    if self.told.is_some() {
                        self.has_effects = true;
                        self.row(body.buffer_bytes());
                        self.client.flush_gathered().await?;
                    } else {
                        self.outcome.row = Some(body.buffer_bytes().clone());
                    }
                }
                Message::CommandComplete(body) => match body.tag() {
                    Ok(tag) => self.outcome.count = row_count(tag),
                    Err(error) => return Ok(Ran::Failed(error.into())),
                },
                Message::NoticeResponse(body) => match server_notice(&body) {
                    Ok(notice) => self.client.message(&notice.to_message()),
                    Err(error) => return Ok(Ran::Failed(error)),
                },
                Message::ErrorResponse(body) => match server_error(&body) {
                    Ok(failure) if failure.is_fatal() => return Ok(Ran::Failed(failure)),
                    Ok(failure) => error = Some(failure),
                    Err(error) => return Ok(Ran::Failed(error)),
                },
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
            (None, None) => Ran::Completed(outcome),
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

    fn announce(&mut self) {
        let dialect = self.client.dialect;
        let mut told = Vec::with_capacity(self.columns.len());
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in self.columns.iter() {
            let mut pg_type = PgType::from_oid(column.oid);
            let mut typmod = column.typmod;
            if pg_type.wants_text() {
                (pg_type, typmod) = (PgType::Text, -1);
            }
            let type_info = column_type(pg_type, typmod, &dialect);
            columns.push(Column { name: column.name.clone(), type_info });
            told.push(Told { pg_type, type_info });
        }
        columns::put(&mut self.client.reply, &columns, &dialect);
        self.told = Some(told);
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
                Some(raw) => from_pg(told.pg_type, raw, self.zone)
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

/// The error for a value that has no form in the client's dialect.
pub fn untellable(what: &str, error: &ConvertError) -> ServerMessage {
    ServerMessage::error(error.number(), 16, format!("{what} cannot be told to this client: {error}"))
}
