//! Bulk copy in: rows from the client go as they come into PostgreSQL's binary COPY, under the client's own
//! role. All rows of one message are stored, or none.

use super::failure::{Failure, Stop};
use super::{Session, SessionError};
use crate::convert::{column_type, to_pg, ConvertError, PgType, SqlType, Value, Zone};
use crate::postgres::connection::{put_value, row_count, server_error, server_notice, Message, PgColumn};
use crate::postgres::{Connection, Notice, PgError};
use crate::tds::bulk::{Column, Row, Rows};
use crate::tds::packet::{self, Kind};
use crate::tds::stored_row;
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::decode_value;
use crate::tds::wire::WireError;
use crate::text::bulk::{self, InsertBulk};
use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

/// Bytes of converted rows gathered before they are sent.
const FLUSH: usize = 64 * 1024;
/// Messages of triggers that are told to the client, which listens only when it has sent its rows.
const MOST_NOTICES: usize = 1000;
/// The file header of a binary COPY: signature, flags, no extension.
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A COPY that waits for rows.
pub struct Bulk {
    columns: Arc<[PgColumn]>,
    /// Those of the columns that would take a default for a NULL.
    with_default: Vec<String>,
    rows: Rows,
    zone: Zone,
    /// Rows so far.
    count: u64,
    notices: Vec<Notice>,
    left_out: usize,
    /// Why nothing will be stored.
    failure: Option<ServerMessage>,
    /// PostgreSQL waits for rows.
    is_copying: bool,
    /// The connection to PostgreSQL is gone.
    is_lost: bool,
    stored: Option<u64>,
}

/// The columns of the result that tells clients of TDS 5.0 how to lay out rows (FreeTDS src/tds/bulk.c,
/// tds5_bulk_insert_column).
const LAYOUT: [&str; 7] = ["colcnt", "colid", "type", "length", "status", "offset", "dflt"];

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// `insert bulk`: PostgreSQL begins a COPY, so whatever it has against that is told at once.
    pub(super) async fn open_bulk(&mut self, bulk: &InsertBulk) -> Result<(), Stop> {
        if self.depth > 1 || self.settings.only_formats {
            return Err(bulk::alone().into());
        }
        if self.settings.implicit_transactions && !self.transaction.is_open() {
            self.begin("");
        }
        if !self.transaction.is_open() {
            self.backend.let_go_if_ended().await;
        }
        // a trigger may leave anything
        self.backend.pin();
        if let Err(error) = self.start_transaction().await {
            self.told(&error);
            return Err((&error).into());
        }
        match self.begin_bulk(bulk).await {
            Ok(opened) => {
                self.put_layout(&opened);
                self.bulk = Some(opened);
                self.passed(Some(0));
                Ok(())
            }
            Err(refused) => {
                let failure = match refused {
                    Refused::Postgres(error) => {
                        self.told(&error);
                        Failure::from(&error)
                    }
                    Refused::Here(message) => Failure::of_statement(message),
                };
                if self.transaction.is_open() {
                    if let Err(error) = self.settle_statement(false).await {
                        self.told(&error);
                    }
                }
                Err(failure.into())
            }
        }
    }

    async fn begin_bulk(&mut self, bulk: &InsertBulk) -> Result<Bulk, Refused> {
        let dialect = self.client.dialect;
        let open = self.backend.open(&self.database).await?;
        let zone = open.zone()?;
        let connection = &mut open.connection;
        let table = &bulk.table;
        let names = match bulk.columns.as_slice() {
            [] => "*".to_owned(),
            columns => columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
        };
        let (_, columns) = connection.prepare("", &format!("select {names} from {table}"), &[]).await?;
        if let Some(column) = columns.iter().find(|column| PgType::from_oid(column.oid).wants_text()) {
            return Err(Refused::Here(ServerMessage::error(
                4816,
                16,
                format!(
                    "Column '{}' is of a type that no bulk copy can fill: insert such rows.",
                    column.name
                ),
            )));
        }
        let mut with_default = Vec::new();
        if dialect.is_tds7() && !bulk.keep_nulls {
            let literal = table.replace('\'', "''");
            let sql = format!(
                "select attname from pg_catalog.pg_attribute \
                 where attrelid = '{literal}'::pg_catalog.regclass and attnum > 0 and not attisdropped \
                 and (atthasdef or attidentity <> '')"
            );
            with_default = connection.query_text(&sql).await?.into_iter().flatten().flatten().collect();
        }
        let rows = if dialect.is_tds7() {
            Rows::described(dialect)
        } else if columns.len() > stored_row::MOST_COLUMNS {
            return Err(Refused::Here(ServerMessage::error(
                4816,
                16,
                format!(
                    "A bulk copy of TDS 5.0 has at most {} columns: use TDS 7.x for '{table}'.",
                    stored_row::MOST_COLUMNS
                ),
            )));
        } else {
            let told = |column: &PgColumn| Column {
                name: column.name.clone(),
                type_info: column_type(PgType::from_oid(column.oid), column.typmod, &dialect),
            };
            Rows::stored(dialect, columns.iter().map(told).collect())
        };
        let names: Vec<_> = columns.iter().map(|column| quoted(&column.name)).collect();
        connection
            .begin_copy(&format!("copy {table} ({}) from stdin (format binary)", names.join(", ")))
            .await?;
        let Ok(()) = connection.put_copy_data::<Infallible>(|out| {
            out.put_slice(COPY_HEADER);
            Ok(())
        });
        Ok(Bulk {
            columns: columns.into(),
            with_default,
            rows,
            zone,
            count: 0,
            notices: Vec::new(),
            left_out: 0,
            failure: None,
            is_copying: true,
            is_lost: false,
            stored: None,
        })
    }

    /// At TDS 5.0: how rows are to be laid out. All columns are variable, which a negative offset says.
    fn put_layout(&mut self, bulk: &Bulk) {
        let dialect = self.client.dialect;
        if dialect.is_tds7() {
            return;
        }
        let columns: Vec<_> = LAYOUT.iter().map(|name| ((*name).to_owned(), PgType::Int4, -1)).collect();
        let count = i64::try_from(bulk.columns.len()).unwrap_or(0);
        let row = |(index, column): (usize, &PgColumn)| {
            let told = column_type(PgType::from_oid(column.oid), column.typmod, &dialect);
            let place = i64::try_from(index).unwrap_or(0) + 1;
            let token = i64::from(told.token.to_wire(&dialect).unwrap_or(0));
            let nullable = 8;
            [count, place, token, i64::from(told.size), nullable, -place, 0].map(Value::Int).to_vec()
        };
        let rows: Vec<_> = bulk.columns.iter().enumerate().map(row).collect();
        // integers fit everywhere
        let _ = self.put_rows(&columns, &rows);
    }

    /// Takes the rows that follow an `insert bulk` and answers. False: the client has left.
    pub(super) async fn take_bulk(&mut self, bulk: Bulk) -> Result<bool, SessionError> {
        match self.take_rows(bulk).await {
            Ok(Taken::Answered) => self.conclude(Ok(true)).await,
            Ok(Taken::GivenUp) => Ok(true),
            Ok(Taken::Left) => Ok(false),
            Err(error) => self.conclude(Err(error)).await,
        }
    }

    async fn take_rows(&mut self, mut bulk: Bulk) -> Result<Taken, SessionError> {
        let mut stopping = self.gateway.stopping.clone();
        let kind = tokio::select! {
            kind = self.client.next_kind() => kind?,
            () = stopped(&mut stopping) => return Ok(Taken::Left),
        };
        match kind {
            None => return Ok(Taken::Left),
            Some(Kind::BulkLoad) => {}
            Some(_) => {
                // another request, which has its own answer
                self.give_up(&mut bulk).await?;
                return Ok(Taken::GivenUp);
            }
        }
        loop {
            let Some(open) = self.backend.opened() else { return Err(no_connection()) };
            let part = tokio::select! {
                biased;
                message = open.connection.receive(), if bulk.is_copying => {
                    bulk.hear(message);
                    continue;
                }
                part = self.client.part() => part?,
                () = stopped(&mut stopping) => return Ok(Taken::Left),
            };
            match part.kind {
                Kind::BulkLoad if part.status & packet::status::IGNORE != 0 => {
                    // the client has thought better of it, and says so by an attention
                    self.give_up(&mut bulk).await?;
                    return Ok(Taken::GivenUp);
                }
                Kind::BulkLoad => {}
                Kind::Attention => {
                    self.give_up(&mut bulk).await?;
                    self.client.done(Done::Statement, done::ATTENTION, None);
                    return Ok(Taken::Answered);
                }
                other => {
                    let text = format!("a {other:?} message amid the rows of a bulk copy");
                    return Err(WireError::Malformed(text).into());
                }
            }
            let is_last = part.status & packet::status::LAST != 0;
            if bulk.failure.is_none() {
                bulk.rows.push(part.body);
                self.pass_on(&mut bulk, is_last).await?;
            }
            if is_last {
                break;
            }
        }
        let cancelled = self.finish_bulk(&mut bulk).await?;
        self.settle_bulk(&mut bulk).await;
        for notice in &bulk.notices {
            self.client.message(&notice.to_message());
        }
        if bulk.left_out > 0 {
            let text = format!("{} more messages came during the bulk copy.", bulk.left_out);
            self.client.message(&ServerMessage::info(0, text));
        }
        match bulk.failure.take() {
            Some(_) if cancelled => self.client.acknowledge_cancel(),
            Some(message) => self.refuse(&message),
            None => {
                self.row_count = bulk.stored.and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
                self.end(0, bulk.stored);
                if cancelled {
                    self.client.answer_attention_later();
                }
            }
        }
        Ok(Taken::Answered)
    }

    /// Converts the rows that are there and sends them to PostgreSQL.
    async fn pass_on(&mut self, bulk: &mut Bulk, is_last: bool) -> Result<(), SessionError> {
        let dialect = self.client.dialect;
        let Some(open) = self.backend.opened() else { return Err(no_connection()) };
        let connection = &mut open.connection;
        if let Some(columns) = bulk.rows.columns(is_last)? {
            if let Err(message) = fit(columns, &bulk.columns) {
                bulk.failure = Some(message);
                return Ok(());
            }
        }
        loop {
            let number = bulk.count + 1;
            let (columns, with_default, zone) = (&bulk.columns, &bulk.with_default, &bulk.zone);
            let put = |told: &[Column], row: &Row<'_>| {
                connection.put_copy_data(|out| {
                    put_row(out, told, row, columns, with_default, zone, &dialect)
                        .map_err(|error| error.in_row(number))
                })
            };
            match bulk.rows.next(is_last, put)? {
                None => break,
                Some(Ok(())) => bulk.count = number,
                Some(Err(message)) => {
                    bulk.failure = Some(message);
                    return Ok(());
                }
            }
            if connection.unsent() >= FLUSH {
                bulk.send(connection).await;
                if bulk.failure.is_some() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Ends the COPY. Whether the client has cancelled meanwhile, which may have come too late.
    async fn finish_bulk(&mut self, bulk: &mut Bulk) -> Result<bool, SessionError> {
        let Some(open) = self.backend.opened() else { return Err(no_connection()) };
        let connection = &mut open.connection;
        if bulk.is_copying {
            if bulk.failure.is_none() {
                let Ok(()) = connection.put_copy_data::<Infallible>(|out| {
                    out.put_i16(-1);
                    Ok(())
                });
                connection.put_copy_done();
            } else if let Err(error) = connection.put_copy_fail("a row could not be converted") {
                bulk.lost(&error);
            }
            bulk.send(connection).await;
        }
        let mut cancelling = None;
        while bulk.is_copying {
            tokio::select! {
                biased;
                message = connection.receive() => bulk.hear(message),
                attention = self.client.attention(), if cancelling.is_none() => {
                    attention?;
                    let canceller = connection.canceller();
                    cancelling = Some(tokio::spawn(async move { canceller.cancel().await }));
                }
            }
        }
        let cancelled = cancelling.is_some();
        if let Some(cancelling) = cancelling {
            // a cancel still on its way would hit the next statement
            let _ = cancelling.await;
        }
        Ok(cancelled)
    }

    /// Undoes the COPY, about which nobody wants to hear.
    async fn give_up(&mut self, bulk: &mut Bulk) -> Result<(), SessionError> {
        let Some(open) = self.backend.opened() else { return Err(no_connection()) };
        let connection = &mut open.connection;
        if bulk.is_copying {
            if let Err(error) = connection.put_copy_fail("the client gave up") {
                bulk.lost(&error);
            }
            bulk.send(connection).await;
        }
        while bulk.is_copying {
            bulk.hear(connection.receive().await);
        }
        bulk.stored = None;
        self.settle_bulk(bulk).await;
        Ok(())
    }

    /// Ends the statement for the transaction it is in.
    async fn settle_bulk(&mut self, bulk: &mut Bulk) {
        if bulk.failure.is_none() && bulk.stored.is_none() {
            bulk.failure = Some(ServerMessage::error(3617, 11, "The bulk copy was given up."));
        }
        if bulk.is_lost {
            self.backend.forget();
            self.transaction.end();
        } else if self.transaction.is_open() {
            if let Err(error) = self.settle_statement(bulk.failure.is_none()).await {
                bulk.failure = Some(self.told(&error));
            }
        }
    }
}

impl Bulk {
    /// Sends what is converted, and hears what PostgreSQL says to it.
    async fn send(&mut self, connection: &mut Connection) {
        while self.is_copying {
            match connection.flush_or_receive().await {
                Ok(None) => return,
                Ok(Some(message)) => self.hear(Ok(message)),
                Err(error) => self.hear(Err(error)),
            }
        }
    }

    fn hear(&mut self, message: Result<Message, PgError>) {
        let heard = match message {
            Ok(Message::NoticeResponse(body)) => server_notice(&body).map(|notice| {
                if self.notices.len() < MOST_NOTICES {
                    self.notices.push(notice);
                } else {
                    self.left_out += 1;
                }
            }),
            Ok(Message::ErrorResponse(body)) => match server_error(&body) {
                Ok(error) if error.is_fatal() => Err(error),
                Ok(error) => {
                    // after a failure of ours PostgreSQL only says that it gave up
                    self.failure.get_or_insert_with(|| told(&error));
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Ok(Message::CommandComplete(body)) => match body.tag() {
                Ok(tag) => {
                    self.stored = row_count(tag);
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
            Ok(Message::ReadyForQuery(_)) => {
                self.is_copying = false;
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = heard {
            self.lost(&error);
        }
    }

    /// The connection to PostgreSQL can be used no further.
    fn lost(&mut self, error: &PgError) {
        self.failure = Some(error.to_message());
        self.is_copying = false;
        self.is_lost = true;
        self.stored = None;
    }
}

/// What became of the rows' message.
enum Taken {
    Answered,
    /// The client has something else to say and waits for no answer.
    GivenUp,
    Left,
}

/// Why no COPY has begun.
enum Refused {
    Postgres(PgError),
    Here(ServerMessage),
}

impl From<PgError> for Refused {
    fn from(error: PgError) -> Refused {
        Refused::Postgres(error)
    }
}

/// Waits until the gateway stops.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

fn no_connection() -> SessionError {
    SessionError::Io(std::io::ErrorKind::NotConnected.into())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether the client sends the columns it has named.
fn fit(sent: &[Column], wanted: &[PgColumn]) -> Result<(), ServerMessage> {
    if sent.len() != wanted.len() {
        return Err(ServerMessage::error(
            213,
            16,
            format!("The bulk copy has {} columns where {} were named.", sent.len(), wanted.len()),
        ));
    }
    for (sent, wanted) in sent.iter().zip(wanted) {
        if !sent.name.is_empty() && !sent.name.eq_ignore_ascii_case(&wanted.name) {
            return Err(ServerMessage::error(
                213,
                16,
                format!("The bulk copy has a column '{}' where '{}' was named.", sent.name, wanted.name),
            ));
        }
    }
    Ok(())
}

/// A value that cannot be stored, and the column it is for.
struct Misfit {
    column: String,
    error: ConvertError,
}

impl Misfit {
    fn in_row(self, number: u64) -> ServerMessage {
        let text = format!("Row {number}, column '{}': {}", self.column, self.error);
        ServerMessage::error(self.error.number(), 16, text)
    }
}

/// Puts a tuple of a binary COPY.
fn put_row(
    out: &mut BytesMut,
    told: &[Column],
    row: &Row<'_>,
    columns: &[PgColumn],
    with_default: &[String],
    zone: &Zone,
    dialect: &crate::tds::dialect::Dialect,
) -> Result<(), Misfit> {
    let dialect = if dialect.is_tds7() { *dialect } else { stored_row::dialect(dialect) };
    // a table has at most 1,600 columns
    out.put_i16(columns.len() as i16);
    for ((column, told), raw) in columns.iter().zip(told).zip(row) {
        let put = |out: &mut BytesMut| {
            let value = decode_value(raw.as_deref(), &told.type_info, &dialect)?;
            match &value {
                Value::Null if with_default.contains(&column.name) => Err(ConvertError::conversion(
                    "NULL where the column has a default (leave the column out, or ask for KEEP_NULLS)",
                    "that default",
                )),
                Value::Null => Ok(IsNull::Yes),
                Value::Decimal(decimal) if !keeps_digits(decimal, column) => {
                    Err(ConvertError::overflow("decimal", "the digits of the column"))
                }
                _ => to_pg(&value, PgType::from_oid(column.oid), zone, out).map(|()| IsNull::No),
            }
        };
        put_value(out, put).map_err(|error| Misfit { column: column.name.clone(), error })?;
    }
    Ok(())
}

/// Whether a numeric column has all decimals of the value: PostgreSQL would round it.
fn keeps_digits(decimal: &crate::tds::types::Decimal, column: &PgColumn) -> bool {
    match (SqlType { oid: column.oid, typmod: column.typmod }).digits() {
        Some((_, scale @ ..=38)) => decimal.rescaled(scale).is_some(),
        _ => true,
    }
}

/// PostgreSQL's error with the place it names: `COPY t, line 3, column b`.
fn told(error: &PgError) -> ServerMessage {
    let mut message = error.to_message();
    if let PgError::Server(notice) = error {
        if let Some(place) = place(&notice.context) {
            message.text = format!("{place}: {}", message.text);
        }
    }
    message
}

fn place(context: &str) -> Option<String> {
    let (_, place) = context.lines().find_map(|line| line.strip_prefix("COPY ")?.split_once(", line "))?;
    let (row, column) = match place.split_once(", column ") {
        Some((row, column)) => (row, Some(column)),
        None => (place, None),
    };
    let row: u64 = row.split(':').next()?.parse().ok()?;
    Some(match column {
        Some(column) => format!("Row {row}, column '{column}'"),
        None => format!("Row {row}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_copy_failed() {
        assert_eq!(place("COPY mine, line 3, column b"), Some("Row 3, column 'b'".into()));
        let nested = "PL/pgSQL function f() line 3 at RAISE\nCOPY my t, line 12";
        assert_eq!(place(nested), Some("Row 12".into()));
        assert_eq!(place(""), None);
    }

    #[test]
    fn columns_must_be_those_that_were_named() {
        let sent = |name: &str| Column {
            name: name.into(),
            type_info: crate::tds::types::TypeInfo::new(crate::tds::types::TypeToken::IntN, 4),
        };
        let wanted = |name: &str| PgColumn { name: name.into(), oid: 23, typmod: -1 };
        assert!(fit(&[sent("A"), sent("")], &[wanted("a"), wanted("b")]).is_ok());
        assert!(fit(&[sent("b")], &[wanted("a")]).unwrap_err().text.contains("'b' where 'a'"));
        assert!(fit(&[sent("a")], &[wanted("a"), wanted("b")]).is_err());
    }
}
