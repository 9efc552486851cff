//! Rows on their way from PostgreSQL to the client, as they come.

use super::declarations::{nullable, Declarations};
use super::notices::{left_error_of, row_count_of, RESULT_SET};
use super::open::Open;
use super::unfinished::{Completed, Unfinished};
use crate::catalogue::quoted;
use crate::client::{unsendable, Client, Reply, SessionError, TextSize};
use crate::convert::{from_pg, told_type, PgType, Zone};
use crate::postgres::commit::Outcome;
use crate::postgres::connection::{
    read_columns, row_count, row_values, server_error, server_notice, Message, PgColumn,
};
use crate::postgres::{Connection, Notice, PgError};
use crate::program::Title;
use crate::tds::tokens::columns::{self, Column};
use crate::tds::tokens::done::{Command, Scope, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{encode_value, ConvertError, TypeInfo, Value};
use crate::turns::Turn;
use bytes::{BufMut, Bytes};
use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long PostgreSQL may take to accept a cancel.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a statement may still run when the gateway stops.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// What becomes of the rows of a statement.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    /// They are a result set, whose columns may have other names than PostgreSQL's.
    ToClient(Option<&'a [Title]>),
    /// The last one is kept.
    Kept,
}

fn titles(detail: &str) -> Option<Vec<Title>> {
    use serde_json::Value;
    let title = |value: Value| match value {
        Value::String(name) => Some(Title::Given(name)),
        Value::Array(own) => own.first().and_then(Value::as_str).map(|name| Title::Own(name.to_owned())),
        _ => None,
    };
    serde_json::from_str::<Vec<Value>>(detail).ok()?.into_iter().map(title).collect()
}

/// What a function has told since its first result set, whose rows come when it has returned.
enum Held {
    Message(ServerMessage),
    ResultSet { cursor: String, columns: Option<Vec<Title>> },
    Count(u64),
}

/// One result column: how PostgreSQL sends it and how the client gets it.
struct SentAs {
    pg_type: PgType,
    type_info: TypeInfo,
    /// Of any length, which `set textsize` limits.
    is_long: bool,
}

impl SentAs {
    fn value<'r>(&self, raw: &'r [u8], zone: &Zone, limit: TextSize) -> Result<Value<'r>, ConvertError> {
        let value = from_pg(self.pg_type, raw, zone)?;
        Ok(if self.is_long { limit.cut(value) } else { value })
    }
}

/// The rows of one statement.
pub struct RowStream<'a> {
    client: &'a mut Client,
    connection: &'a mut Connection,
    zone: &'a Zone,
    declarations: &'a mut Declarations,
    turn: Turn,
    columns: Arc<[PgColumn]>,
    /// How the columns go to the client, when they do.
    sent_as: Option<Vec<SentAs>>,
    outcome: Outcome,
    /// How many rows were sent.
    rows: u64,
    /// How many rows were sent in all result sets, and may be.
    sent: u64,
    most_rows: Option<u64>,
    /// Rows were sent, or something may have been written.
    has_effects: bool,
    only_reads: bool,
    /// The Sync that ends the statement is sent.
    is_synced: bool,
    held: Vec<Held>,
    text_size: TextSize,
    /// Why rows are no longer wanted: the rest is read and dropped.
    end: Option<Unfinished>,
    /// PostgreSQL is being asked to cancel.
    cancelling: Option<JoinHandle<()>>,
    /// Comes when the gateway stops and waits no longer.
    stopping: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

fn server_stops() -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "57P01".into(),
        message: "The server is stopping: this statement was ended.".into(),
        ..Notice::default()
    }))
}

fn too_many_rows(most: u64) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "54000".into(),
        message: format!("This login may read {most} rows by one statement: these are the first of more."),
        hint: "Ask for less at a time; the administrator sets the limit.".into(),
        ..Notice::default()
    }))
}

/// What may come while a statement runs.
enum Event {
    Stopping,
    Attention(Result<(), SessionError>),
}

/// Waits for one; for ever once the gateway has stopped.
async fn event(
    client: &mut Client,
    stopping: &mut Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
) -> Event {
    let Some(stops) = stopping.as_mut() else {
        return std::future::pending().await;
    };
    tokio::select! {
        () = stops => {
            *stopping = None;
            Event::Stopping
        }
        attention = client.attention() => Event::Attention(attention),
    }
}

async fn stopped(stopping: CancellationToken) {
    stopping.cancelled().await;
    tokio::time::sleep(STOP_PATIENCE).await;
}

impl<'a> RowStream<'a> {
    pub fn new(
        client: &'a mut Client,
        open: &'a mut Open,
        zone: &'a Zone,
        columns: Arc<[PgColumn]>,
        turn: Turn,
        stopping: CancellationToken,
    ) -> RowStream<'a> {
        RowStream {
            text_size: client.settings().text_size,
            client,
            connection: &mut open.connection,
            zone,
            declarations: &mut open.declarations,
            turn,
            columns,
            sent_as: None,
            outcome: Outcome::default(),
            rows: 0,
            sent: 0,
            most_rows: None,
            has_effects: false,
            only_reads: false,
            is_synced: true,
            held: Vec::new(),
            end: None,
            cancelling: None,
            stopping: Some(Box::pin(stopped(stopping))),
        }
    }

    /// The login may read no more rows by one statement.
    pub fn most_rows(&mut self, most: Option<u64>) {
        self.most_rows = most;
    }

    /// A function that leaves nothing behind.
    pub fn only_reads(&mut self, only_reads: bool) {
        self.only_reads = only_reads;
    }

    /// A procedure whose cursors are fetched before its transaction ends: the Sync was not sent yet.
    pub fn may_open_cursors(&mut self, may: bool) {
        self.is_synced = !may;
    }

    /// Takes what PostgreSQL sends, up to the end of the statement.
    pub async fn run(&mut self, rows: Rows<'_>) -> Result<Completed, Unfinished> {
        let mut error = None;
        loop {
            match self.next_message().await? {
                Message::BindComplete => {
                    self.has_effects = !self.only_reads;
                    if let Rows::ToClient(names) = rows {
                        if !self.columns.is_empty() {
                            self.sent_as = Some(put_columns(&self.columns, names, &mut self.client.reply));
                        }
                    }
                }
                Message::DataRow(body) if self.end.is_none() => {
                    if self.sent_as.is_some() {
                        self.has_effects = true;
                        self.rows += 1;
                        self.row(body.buffer_bytes());
                        self.flush_gathered().await?;
                    } else {
                        self.outcome.row = Some(body.buffer_bytes().clone());
                    }
                }
                Message::CommandComplete(body) => {
                    self.outcome.count = row_count(body.tag()?);
                    self.tell_waiting();
                    match self.send_held().await {
                        Err(Unfinished::Failed(failure)) if !failure.is_fatal() => error = Some(failure),
                        sent => sent?,
                    }
                    self.sync().await?;
                }
                // the limit of rows is reached
                Message::PortalSuspended => self.outcome.count = Some(self.rows),
                Message::NoticeResponse(body) => self.notice(&server_notice(&body)?),
                Message::ErrorResponse(body) => {
                    let failure = server_error(&body)?;
                    if failure.is_fatal() {
                        return Err(failure.into());
                    }
                    error = Some(failure);
                    // the cursors are gone
                    for held in self.held.drain(..) {
                        if let Held::Message(message) = held {
                            self.client.reply.message(&message);
                        }
                    }
                    self.sync().await?;
                }
                Message::ReadyForQuery(_) => break,
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => {
                    return Err(PgError::Protocol("a copy, which is not served".into()).into());
                }
                _ => {}
            }
        }
        match (self.end.take(), error) {
            (Some(end), _) => Err(end),
            (None, Some(error)) if self.has_effects => Err(Unfinished::Failed(error)),
            (None, Some(error)) => Err(Unfinished::Refused(error)),
            (None, None) => {
                let outcome = std::mem::take(&mut self.outcome);
                Ok(Completed { outcome, columns: self.columns.clone() })
            }
        }
    }

    /// A cancel still on its way would hit the next statement.
    pub async fn finish_cancelling(&mut self) {
        if let Some(cancelling) = self.cancelling.take() {
            let _ = cancelling.await;
        }
    }

    /// What PostgreSQL sends next. Meanwhile the client may cancel.
    async fn next_message(&mut self) -> Result<Message, Unfinished> {
        loop {
            if let Some(message) = self.connection.arrived()? {
                return Ok(message);
            }
            if matches!(self.end, Some(Unfinished::Cancelled)) {
                return Ok(self.connection.receive().await?);
            }
            tokio::select! {
                message = self.connection.receive() => return Ok(message?),
                () = self.turn.is_over() => self.turn.give_back(),
                event = event(self.client, &mut self.stopping) => self.heed(event)?,
            }
        }
    }

    /// Waits until rows may go on, or need not.
    async fn wait_for_turn(&mut self) -> Result<(), Unfinished> {
        tokio::select! {
            biased;
            () = self.turn.take() => Ok(()),
            event = event(self.client, &mut self.stopping) => self.heed(event),
        }
    }

    fn heed(&mut self, event: Event) -> Result<(), Unfinished> {
        match event {
            Event::Stopping => self.stop(Unfinished::Failed(server_stops())),
            Event::Attention(Ok(())) => self.stop(Unfinished::Cancelled),
            Event::Attention(Err(gone)) => {
                // nobody is left to read the rows
                self.cancel();
                return Err(gone.into());
            }
        }
        Ok(())
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
        if left_error_of(notice).is_some() {
            self.outcome.notices.push(notice.clone());
            return;
        }
        let held = match notice.sqlstate.as_str() {
            RESULT_SET if !self.is_synced => {
                Held::ResultSet { cursor: notice.message.clone(), columns: titles(&notice.detail) }
            }
            _ => match row_count_of(notice).filter(|_| !self.is_synced) {
                Some(count) => Held::Count(count),
                None => Held::Message(notice.to_message()),
            },
        };
        match held {
            Held::Message(message) if self.held.is_empty() => self.client.reply.message(&message),
            held => self.held.push(held),
        }
    }

    /// Sends what the function has beside what it returns, in its order.
    async fn send_held(&mut self) -> Result<(), Unfinished> {
        for held in std::mem::take(&mut self.held) {
            let mut command = Command::Select;
            let count = match held {
                Held::Message(message) => {
                    self.client.reply.message(&message);
                    continue;
                }
                Held::Count(_) if self.client.settings().no_count => continue,
                Held::Count(count) => {
                    command = Command::Update;
                    count
                }
                Held::ResultSet { cursor, columns } => self.cursor(&cursor, columns.as_deref()).await?,
            };
            if self.end.is_some() {
                break;
            }
            self.client.reply.command = command;
            self.client.reply.done(Scope::InProcedure, Status::empty(), Some(count));
        }
        Ok(())
    }

    /// Sends the rows of an open cursor. Returns their number.
    async fn cursor(&mut self, cursor: &str, names: Option<&[Title]>) -> Result<u64, Unfinished> {
        let fetch = format!("fetch all from {}", quoted(cursor));
        self.connection.put_parse(&fetch).await?;
        let mut sent_as = Vec::new();
        let mut count = 0;
        let mut is_gone = false;
        loop {
            match self.next_message().await? {
                Message::RowDescription(body) => {
                    let mut columns = read_columns(&body)?;
                    let unknown = self.declarations.lack(&columns);
                    if !unknown.is_empty() {
                        // asked in the same transaction; then the cursor's turn comes again
                        self.ask_declarations(&unknown).await?;
                        self.connection.put_parse(&fetch).await?;
                        continue;
                    }
                    self.declarations.tell(&mut columns);
                    nullable(&mut columns);
                    self.columns = columns.into();
                    sent_as = put_columns(&self.columns, names, &mut self.client.reply);
                    self.connection.put_execute("", &[], &[], &formats(&self.columns), 0);
                    self.connection.put_flush();
                    self.connection.flush().await?;
                }
                Message::NoData => {
                    // a CATCH has undone the cursor with the rows it was to give: so is the whole call
                    is_gone = true;
                    self.connection.put_execute("", &[], &[], &[], 0);
                    self.connection.put_flush();
                    self.connection.flush().await?;
                }
                Message::DataRow(body) if self.end.is_none() => {
                    count += 1;
                    self.sent_as = Some(sent_as);
                    self.row(body.buffer_bytes());
                    sent_as = self.sent_as.take().unwrap_or_default();
                    self.flush_gathered().await?;
                }
                Message::CommandComplete(_) => {
                    self.tell_waiting();
                    // it would stay open to the end of the client's transaction
                    self.connection.put_close_cursor(cursor)?;
                    return Ok(count);
                }
                Message::ErrorResponse(body) => {
                    let error = server_error(&body)?;
                    return Err(Unfinished::Failed(if is_gone { rows_are_lost() } else { error }));
                }
                _ => {}
            }
        }
    }

    /// Learns what T-SQL declares of the columns of `tables`, while the statement goes on.
    async fn ask_declarations(&mut self, tables: &[u32]) -> Result<(), PgError> {
        self.connection.put_parse(&Declarations::question(tables)).await?;
        let mut rows = Vec::new();
        loop {
            match self.connection.receive().await? {
                Message::RowDescription(_) => {
                    self.connection.put_execute("", &[], &[], &[], 0);
                    self.connection.put_flush();
                    self.connection.flush().await?;
                }
                Message::DataRow(body) => {
                    let text = |raw: Option<&[u8]>| raw.map(|raw| String::from_utf8_lossy(raw).into_owned());
                    rows.push(row_values(body.buffer_bytes()).map(text).collect());
                }
                Message::CommandComplete(_) => break,
                Message::ErrorResponse(body) => return Err(server_error(&body)?),
                _ => {}
            }
        }
        self.declarations.read(tables, rows);
        Ok(())
    }

    /// Sends what has gathered when it is worth a system call. Rows that come to so much are sent in turns.
    async fn flush_gathered(&mut self) -> Result<(), Unfinished> {
        if !self.client.has_gathered() {
            return Ok(());
        }
        self.wait_for_turn().await?;
        if self.end.is_some() {
            return Ok(());
        }
        let mut sending = pin!(self.client.flush_gathered());
        let is_sent = tokio::select! {
            biased;
            sent = &mut sending => sent.map(|()| true)?,
            () = std::future::ready(()) => false,
        };
        if is_sent {
            self.turn.give_way();
        } else {
            // who reads slowly needs no place meanwhile
            self.turn.give_back();
            sending.await?;
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Says how long the rows have waited, where that was long.
    fn tell_waiting(&mut self) {
        if let Some(told) = self.turn.told() {
            self.client.reply.message(&ServerMessage::info(0, told));
        }
    }

    fn row(&mut self, row: &Bytes) {
        if self.most_rows.is_some_and(|most| self.sent == most) {
            self.stop(Unfinished::Failed(too_many_rows(self.sent)));
            return;
        }
        self.sent += 1;
        let dialect = self.client.dialect();
        let Some(sent_as) = &self.sent_as else { return };
        let out = &mut self.client.reply.tokens;
        let start = out.len();
        out.put_u8(columns::ROW);
        for (index, (value, sent_as)) in row_values(row).zip(sent_as).enumerate() {
            let encoded = match value {
                None => encode_value(&Value::Null, &sent_as.type_info, &dialect, out),
                Some(raw) => sent_as
                    .value(raw, self.zone, self.text_size)
                    .and_then(|value| encode_value(&value, &sent_as.type_info, &dialect, out)),
            };
            if let Err(error) = encoded {
                out.truncate(start);
                let name = self.columns.get(index).map_or("", |column| column.name.as_str());
                self.stop(Unfinished::Unsendable(unsendable(&format!("Column '{name}'"), &error)));
                return;
            }
        }
    }

    fn stop(&mut self, end: Unfinished) {
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

/// The error for rows that a procedure selected before it failed.
fn rows_are_lost() -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "0A000".into(),
        message:
            "A procedure called inside TRY has selected rows and then failed, which takes its rows back: \
                  select outside of TRY. The whole call was undone."
                .into(),
        ..Notice::default()
    }))
}

/// Describes a result set that will have these columns.
pub fn put_description(columns: &[PgColumn], names: Option<&[Title]>, reply: &mut Reply) {
    put_columns(columns, names, reply);
}

/// Puts the description of a result set of these columns.
fn put_columns(pg_columns: &[PgColumn], names: Option<&[Title]>, reply: &mut Reply) -> Vec<SentAs> {
    let dialect = reply.dialect;
    let mut sent_as = Vec::with_capacity(pg_columns.len());
    let mut columns = Vec::with_capacity(pg_columns.len());
    for (index, column) in pg_columns.iter().enumerate() {
        let mut pg_type = PgType::from_oid(column.oid);
        let mut typmod = column.typmod;
        if pg_type.wants_text() {
            (pg_type, typmod) = (PgType::Text, -1);
        }
        let type_info = told_type(pg_type, typmod, column.declared.of, &dialect);
        // a derived table's column has its own name, and the table behind it another
        let shown = column.declared.shown.as_ref().filter(|shown| shown.to_lowercase() == column.name);
        let name = match (names.and_then(|names| names.get(index)), shown) {
            (Some(Title::Given(name)), _) | (Some(Title::Own(name)), None) => name.clone(),
            (_, Some(shown)) => shown.to_string(),
            // what PostgreSQL calls a column without a name has none in T-SQL
            (None, None) if column.name == "?column?" => String::new(),
            (None, None) => column.name.clone(),
        };
        columns.push(Column { name, type_info, traits: column.declared.traits });
        let is_long = matches!(pg_type, PgType::Text | PgType::Bytea | PgType::Array(_));
        sent_as.push(SentAs { pg_type, type_info, is_long });
    }
    columns::put(&mut reply.tokens, &columns, &dialect);
    reply.rows_open = true;
    sent_as
}

/// How PostgreSQL is to send these columns, 0 for text and 1 for binary.
pub fn formats(columns: &[PgColumn]) -> Vec<i16> {
    columns.iter().map(|column| i16::from(!PgType::from_oid(column.oid).wants_text())).collect()
}
