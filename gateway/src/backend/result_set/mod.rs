//! Streams rows from PostgreSQL to the client.

pub mod columns;
pub(super) mod cursors;
mod interruption;

use super::notices::Meaning;
use super::open::Open;
use super::unfinished::{Completed, Unfinished};
use crate::backend::open::declarations::Declarations;
use crate::backend::open::described::Described;
use crate::client::{unsendable, Client, TextSize};
use crate::convert::Zone;
use crate::limits::turns::Turn;
use crate::postgres::commit::Outcome;
use crate::postgres::message::{row_count, row_values, server_error, server_notice, Message, PgColumn};
use crate::postgres::{Canceller, Cancelling, Connection, Notice, PgError};
use crate::program::Title;
use crate::tds::tokens::columns::ROW;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::wire::Put;
use bytes::{BufMut, Bytes};
use columns::{put_browsed_columns, put_columns, put_cursor_columns, BrowsedColumns, Fetched, SentAs};
use interruption::{event, server_stops, stopped, Event, Stopping};
use std::pin::pin;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The status of a row that a server cursor has fetched (sp_cursorfetch, RPC Considerations).
const FETCH_SUCCEEDED: u32 = 1;
/// The status of a deleted row.
const FETCH_MISSING: u32 = 2;
/// The most bytes of a procedure's messages after its first result set, whose rows follow its return.
const MOST_HELD: usize = 4 << 20;

/// The destination of a statement's rows.
#[derive(Clone, Copy)]
pub enum Rows<'a> {
    /// A result set, with other column names than PostgreSQL's if given.
    ToClient(Option<&'a [Title]>),
    /// A result set with the key columns by which the client finds the rows again.
    Browsed(Option<&'a [Title]>, &'a BrowsedColumns),
    /// Rows of a server cursor.
    OfCursor(Fetched<'a>),
    /// A result set whose last row is kept; the given number of last columns is not sent.
    AndVersions(Option<&'a [Title]>, usize),
    /// None: only the last row is kept.
    Kept,
    /// Variables, to which the last row within SET ROWCOUNT is assigned.
    Assigned,
}

/// The rows of one statement.
pub struct RowStream<'a> {
    client: &'a mut Client,
    connection: &'a mut Connection,
    zone: &'a Zone,
    declarations: &'a mut Declarations,
    turn: Turn,
    /// The running statement.
    described: Arc<Described>,
    columns: Arc<[PgColumn]>,
    /// The encoding of the columns for the client, if they are sent.
    sent_as: Option<Arc<[SentAs]>>,
    /// Each row ends with its status.
    has_status: bool,
    /// Each row of PostgreSQL's ends with its version.
    has_version: bool,
    outcome: Outcome,
    /// The number of rows sent.
    rows: u64,
    /// The number of rows sent in all result sets, and its limit.
    sent: u64,
    most_rows: Option<u64>,
    /// Rows were sent, or the statement may have written.
    has_effects: bool,
    only_reads: bool,
    /// The Sync at the end of the statement is sent.
    is_synced: bool,
    /// The function's messages since its first result set, whose rows follow its return.
    held: Vec<Meaning>,
    held_bytes: usize,
    text_size: TextSize,
    /// The reason to discard further rows.
    end: Option<Unfinished>,
    /// No row and no message was discarded.
    is_whole: bool,
    /// It commits by itself, and may have written.
    is_lasting: bool,
    cancelling: Option<Cancelling>,
    /// Completes when the gateway stops and no longer waits.
    stopping: Option<Stopping>,
}

fn too_many_messages() -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "54000".into(),
        message: format!(
            "A procedure may send messages of at most {} MiB after its first result set: the call was rolled back.",
            MOST_HELD >> 20
        ),
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

impl Drop for RowStream<'_> {
    fn drop(&mut self) {
        // of a statement that did not complete
        self.connection.take_row();
    }
}

impl<'a> RowStream<'a> {
    pub fn new(
        client: &'a mut Client,
        open: &'a mut Open,
        zone: &'a Zone,
        described: Arc<Described>,
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
            columns: described.columns.clone(),
            described,
            sent_as: None,
            has_status: false,
            has_version: false,
            outcome: Outcome::default(),
            rows: 0,
            sent: 0,
            most_rows: None,
            has_effects: false,
            only_reads: false,
            is_synced: true,
            held: Vec::new(),
            held_bytes: 0,
            end: None,
            is_whole: true,
            is_lasting: false,
            cancelling: None,
            stopping: Some(Box::pin(stopped(stopping))),
        }
    }

    /// Limits the rows that the login may read by one statement.
    pub fn most_rows(&mut self, most: Option<u64>) {
        self.most_rows = most;
    }

    /// For a function without result sets.
    pub fn only_reads(&mut self, only_reads: bool) {
        self.only_reads = only_reads;
    }

    /// For a statement outside of a transaction that may write.
    pub fn is_lasting(&mut self, is_lasting: bool) {
        self.is_lasting = is_lasting;
    }

    /// For a procedure whose cursors are fetched before its transaction ends: the Sync is not sent yet.
    pub fn may_open_cursors(&mut self, may: bool) {
        self.is_synced = !may;
    }

    /// Handles PostgreSQL's messages up to the end of the statement.
    pub async fn run(&mut self, rows: Rows<'_>) -> Result<Completed, Unfinished> {
        let mut error = None;
        let mut kept = 0;
        loop {
            let message = match self.next_message().await {
                Err(Unfinished::Failed(PgError::Unconfirmed)) => {
                    error = Some(PgError::Unconfirmed);
                    break;
                }
                message => message?,
            };
            match message {
                Message::BindComplete => {
                    self.has_effects = !self.only_reads;
                    let reply = &mut self.client.reply;
                    match rows {
                        Rows::ToClient(names) if !self.columns.is_empty() => {
                            let last = &self.described.last_description;
                            self.sent_as = Some(last.put_columns(&self.columns, names, reply));
                        }
                        Rows::Browsed(names, browsed) => {
                            let sent_as = put_browsed_columns(&self.columns, names, browsed, reply);
                            self.sent_as = Some(sent_as);
                        }
                        // no columns: the cursor is no longer open
                        Rows::AndVersions(names, hidden) if !self.columns.is_empty() => {
                            let shown = self.columns.len().saturating_sub(hidden);
                            let columns = self.columns.get(..shown).unwrap_or_default();
                            self.sent_as = Some(put_columns(columns, names, reply));
                        }
                        Rows::OfCursor(fetched) => {
                            self.sent_as = Some(put_cursor_columns(&self.columns, fetched, reply));
                            self.has_status = reply.dialect.is_tds7();
                            self.has_version = fetched.keyed.is_some();
                        }
                        _ => {}
                    }
                }
                Message::DataRow(body) => {
                    if self.sent_as.is_some() && self.end.is_some() {
                        self.is_whole = false;
                    } else if self.sent_as.is_some() {
                        self.has_effects = true;
                        self.rows += 1;
                        self.row(body.buffer_bytes());
                        if matches!(rows, Rows::AndVersions(..)) {
                            self.connection.keep_row(&body);
                        }
                        drop(body);
                        self.flush_gathered().await?;
                    } else {
                        kept += 1;
                        self.connection.keep_row(&body);
                    }
                }
                Message::CommandComplete(body) => {
                    self.outcome.count = row_count(body.tag()?);
                    self.report_wait();
                    match self.send_held().await {
                        Err(Unfinished::Failed(failure)) if !failure.is_fatal() => error = Some(failure),
                        sent => sent?,
                    }
                    self.sync().await?;
                }
                // the limit of rows is reached
                Message::PortalSuspended => self.outcome.count = Some(self.rows + kept),
                Message::NoticeResponse(body) => {
                    self.notice(&server_notice(&body)?);
                    self.flush_gathered().await?;
                }
                Message::ErrorResponse(body) => {
                    let mut failure = server_error(&body)?;
                    if failure.is_fatal() {
                        return Err(failure.into());
                    }
                    if let PgError::Server(notice) = &mut failure {
                        notice.lost_rows =
                            self.held.iter().any(|meaning| matches!(meaning, Meaning::ResultSet { .. }));
                    }
                    error = Some(failure);
                    // the cursors are closed
                    for held in self.held.drain(..) {
                        if let Meaning::Message(message) = held {
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
        if let Some(rows) = &mut self.client.reply.open_rows {
            *rows = self.rows;
        }
        if let (true, Some(gathering)) = (
            self.sent_as.is_some() && (self.end.is_some() || error.is_some()),
            &mut self.client.reply.gathering,
        ) {
            gathering.abandon_set();
        }
        match (self.end.take(), error) {
            (Some(Unfinished::Cancelled), Some(PgError::Unconfirmed)) => Err(PgError::Unconfirmed.into()),
            // the cancel came too late
            (Some(Unfinished::Cancelled), None) if self.is_whole => Ok(self.completed()),
            (Some(Unfinished::Cancelled), None) if self.is_lasting => {
                let text = "The cancel came too late: the statement took effect. The rest of its answer is left out.";
                self.client.reply.message(&ServerMessage::info(0, text));
                Err(Unfinished::Cancelled)
            }
            (Some(end), _) => Err(end),
            (None, Some(error)) if self.has_effects => Err(Unfinished::Failed(error)),
            (None, Some(error)) => Err(Unfinished::Refused(error)),
            (None, None) => Ok(self.completed()),
        }
    }

    fn completed(&mut self) -> Completed {
        let outcome = Outcome { row: self.connection.take_row(), ..std::mem::take(&mut self.outcome) };
        Completed { outcome, columns: self.columns.clone() }
    }

    /// Runs after `run`.
    pub async fn finish_cancelling(&mut self) {
        if let Some(cancelling) = self.cancelling.take() {
            cancelling.finish().await;
        }
    }

    /// PostgreSQL's next message. Handles the client's cancel meanwhile.
    async fn next_message(&mut self) -> Result<Message, Unfinished> {
        loop {
            if let Some(message) = self.connection.arrived()? {
                return Ok(message);
            }
            if self.is_left() {
                return Ok(self.connection.receive().await?);
            }
            tokio::select! {
                message = self.connection.receive() => return Ok(message?),
                () = self.turn.is_over() => self.turn.give_back(),
                event = event(self.client, &mut self.stopping) => self.interrupt(event),
            }
        }
    }

    /// Whether the client no longer wants rows of this statement.
    fn is_left(&self) -> bool {
        matches!(self.end, Some(Unfinished::Cancelled | Unfinished::Session(_)))
    }

    /// Waits until rows may be sent or the client cancels.
    async fn wait_for_turn(&mut self) {
        tokio::select! {
            biased;
            () = self.turn.take() => {}
            event = event(self.client, &mut self.stopping) => self.interrupt(event),
        }
    }

    fn interrupt(&mut self, event: Event) {
        self.stop(match event {
            Event::Stopping => Unfinished::Failed(server_stops()),
            Event::Attention(Ok(())) => Unfinished::Cancelled,
            // PostgreSQL does not notice that the client has disconnected
            Event::Attention(Err(gone)) => gone.into(),
        });
    }

    /// Sends the Sync, if it is not sent.
    async fn sync(&mut self) -> Result<(), PgError> {
        if self.is_synced {
            return Ok(());
        }
        self.is_synced = true;
        self.connection.put_sync();
        self.connection.flush().await
    }

    /// Sends a notice at once, or after the result set that it follows.
    fn notice(&mut self, notice: &Notice) {
        let meaning =
            if self.is_synced { Meaning::outside_of_call(notice) } else { Some(Meaning::of(notice)) };
        let is_left = self.is_left();
        let reply = &mut self.client.reply;
        match meaning {
            Some(Meaning::Message(_) | Meaning::Ended { .. }) if is_left => self.is_whole = false,
            Some(Meaning::Nothing) => {}
            Some(Meaning::Doomed) => reply.dooms = true,
            Some(Meaning::LeftError(_) | Meaning::HandedOver) => self.outcome.notices.push(notice.clone()),
            Some(Meaning::Message(message)) if self.held.is_empty() => reply.message(&message),
            Some(Meaning::Ended { failed }) if self.held.is_empty() => reply.ended_inside(failed),
            Some(meaning) => {
                self.held_bytes += notice.size();
                if self.held_bytes <= MOST_HELD {
                    self.held.push(meaning);
                } else if self.end.is_none() {
                    self.stop(Unfinished::Failed(too_many_messages()));
                }
            }
            None => {}
        }
    }

    /// Sends the buffered rows when they are worth a system call. Large results take turns.
    async fn flush_gathered(&mut self) -> Result<(), Unfinished> {
        if !self.client.has_gathered() {
            return Ok(());
        }
        self.wait_for_turn().await;
        if self.end.is_some() {
            return Ok(());
        }
        // rows that the client has received cannot be revoked
        self.has_effects = true;
        let mut sending = pin!(self.client.flush_gathered());
        let is_sent = tokio::select! {
            biased;
            sent = &mut sending => sent.map(|()| true)?,
            () = std::future::ready(()) => false,
        };
        if is_sent {
            self.turn.give_way();
        } else {
            // a slow reader gives up its turn meanwhile
            self.turn.give_back();
            sending.await?;
        }
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Reports how long the rows have waited, if that was long.
    fn report_wait(&mut self) {
        if let Some(text) = self.turn.wait_message() {
            self.client.reply.message(&ServerMessage::info(0, text));
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
        if let Some(gathering) = &mut self.client.reply.gathering {
            let values =
                sent_as.iter().zip(row_values(row)).map(|(sent_as, raw)| sent_as.value(raw, self.zone));
            let values = values.collect::<Result<Vec<_>, _>>();
            let values = values.map_err(|error| unsendable("A column", &error));
            if let Err(message) = values.and_then(|values| gathering.row(values)) {
                self.stop(Unfinished::Unsendable(message));
            }
            return;
        }
        let out = &mut self.client.reply.tokens;
        let start = out.len();
        out.put_u8(ROW);
        let mut values = row_values(row);
        let versions: Vec<_> = match self.described.versions {
            0 => Vec::new(),
            _ => row_values(row).skip(sent_as.len()).collect(),
        };
        for (index, sent_as) in sent_as.iter().enumerate() {
            let value = values.next().flatten();
            let value_start = out.len();
            let encoded = sent_as.put(value, self.zone, self.text_size, &dialect, out);
            if let Err(error) = encoded {
                out.truncate(start);
                let name = self.columns.get(index).map_or("", |column| column.name.as_str());
                self.stop(Unfinished::Unsendable(unsendable(&format!("Column '{name}'"), &error)));
                return;
            }
            if value.is_some() && !versions.is_empty() {
                sent_as.point(value_start, &versions, out);
            }
        }
        let mut status = FETCH_SUCCEEDED;
        if self.has_version {
            let version = values.next().flatten().map(|raw| String::from_utf8_lossy(raw).into_owned());
            if version.is_none() {
                status = FETCH_MISSING;
            }
            self.outcome.versions.push(version);
        }
        if self.has_status {
            out.put_u32_as(status, dialect.endian);
        }
    }

    fn stop(&mut self, end: Unfinished) {
        self.is_whole &= matches!(end, Unfinished::Cancelled);
        self.end = Some(end);
        if self.cancelling.is_none() {
            self.cancelling = Some(Cancelling::of(Canceller::of(self.connection)));
        }
    }
}
