//! Messages to and from PostgreSQL as bytes, without a connection.

use super::error::{Notice, PgError};
use crate::convert::Declaration;
use bytes::{BufMut, Bytes, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend;
use postgres_protocol::IsNull;
use std::borrow::Cow;

pub use backend::Message;

type Result<T> = std::result::Result<T, PgError>;

/// A column of a RowDescription.
#[derive(Clone, Debug)]
pub struct PgColumn {
    pub name: String,
    pub oid: u32,
    pub typmod: i32,
    /// The table column that it is, by the table's oid and the column's number; zeros for none.
    pub origin: (u32, i16),
    /// The T-SQL declaration that PostgreSQL does not keep.
    pub declared: Declaration,
}

/// Appends a message; its length is inserted afterwards. Lengths stay far below 2 GiB: requests are bounded.
pub fn put_message(out: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(kind);
    let at = out.len();
    out.put_u32(0);
    body(out);
    let length = ((out.len() - at) as u32).to_be_bytes();
    out[at..at + 4].copy_from_slice(&length);
}

pub fn put_formats(out: &mut BytesMut, formats: &[i16]) {
    out.put_u16(formats.len() as u16);
    for format in formats {
        out.put_i16(*format);
    }
}

pub fn read_columns(body: &backend::RowDescriptionBody) -> Result<Vec<PgColumn>> {
    let mut columns = Vec::new();
    let mut fields = body.fields();
    while let Some(field) = fields.next()? {
        columns.push(PgColumn {
            name: field.name().to_owned(),
            oid: field.type_oid(),
            typmod: field.type_modifier(),
            origin: (field.table_oid(), field.column_id()),
            declared: Declaration::default(),
        });
    }
    Ok(columns)
}

pub fn server_error(body: &backend::ErrorResponseBody) -> Result<PgError> {
    Ok(PgError::Server(Box::new(Notice::read(body.fields())?)))
}

/// An error after which the connection continues; a fatal one is returned as Err.
pub fn survived(body: &backend::ErrorResponseBody) -> Result<PgError> {
    match server_error(body)? {
        fatal if fatal.is_fatal() => Err(fatal),
        error => Ok(error),
    }
}

pub fn server_notice(body: &backend::NoticeResponseBody) -> Result<Notice> {
    Ok(Notice::read(body.fields())?)
}

/// SQLSTATE crash_shutdown: the warning of a server process that ends because another has crashed.
const CRASH_SHUTDOWN: &[u8] = b"57P02";

/// Whether a message to an idle connection does not concern it, so that the connection continues.
pub fn is_aside(message: &Message) -> Result<bool> {
    Ok(match message {
        Message::NotificationResponse(_) => true,
        Message::NoticeResponse(body) => {
            !body.fields().any(|field| Ok(field.type_() == b'C' && field.value_bytes() == CRASH_SHUTDOWN))?
        }
        _ => false,
    })
}

/// The function in PostgreSQL's source that reports that a commit no longer waits for its synchronous standby, which is
/// not an error for PostgreSQL (src/backend/replication/syncrep.c). The text is in the server's language and has no
/// SQLSTATE of its own.
const WAITS_FOR_STANDBY: &[u8] = b"SyncRepWaitForLSN";

/// Whether a notice reports that a commit no longer waits for its standby, so that a failover may lose it.
pub fn gives_up_standby(body: &backend::NoticeResponseBody) -> Result<bool> {
    Ok(body.fields().any(|field| Ok(field.type_() == b'R' && field.value_bytes() == WAITS_FOR_STANDBY))?)
}

/// The count in a command tag such as `INSERT 0 5`; None for commands that count nothing.
pub fn row_count(tag: &str) -> Option<u64> {
    tag.rsplit(' ').next()?.parse().ok()
}

pub fn unexpected(during: &str) -> PgError {
    PgError::Protocol(format!("an unexpected message during {during}"))
}

/// One value of a Bind: its length and bytes, or NULL.
pub fn put_value<E>(
    out: &mut BytesMut,
    value: impl FnOnce(&mut BytesMut) -> std::result::Result<IsNull, E>,
) -> std::result::Result<(), E> {
    let at = out.len();
    out.put_i32(-1);
    if let IsNull::No = value(out)? {
        let length = ((out.len() - at - 4) as i32).to_be_bytes();
        out[at..at + 4].copy_from_slice(&length);
    }
    Ok(())
}

/// The values of a data row, each None for NULL.
pub fn row_values(row: &Bytes) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = &row[..];
    std::iter::from_fn(move || {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        let Ok(length) = usize::try_from(length) else {
            rest = tail;
            return Some(None);
        };
        let (value, next) = tail.split_at_checked(length)?;
        rest = next;
        Some(Some(value))
    })
}

/// A row of texts, NULL as an empty one. Invalid UTF-8 is replaced.
pub struct TextRow<'a>(Vec<Cow<'a, str>>);

impl<'a> TextRow<'a> {
    pub fn of(row: &'a Bytes) -> TextRow<'a> {
        TextRow(row_values(row).map(|raw| String::from_utf8_lossy(raw.unwrap_or_default())).collect())
    }

    pub fn text(&self, column: usize) -> &str {
        self.0.get(column).map_or("", Cow::as_ref)
    }

    pub fn is_true(&self, column: usize) -> bool {
        self.text(column) == "t"
    }

    pub fn number(&self, column: usize) -> Result<u32> {
        self.text(column)
            .parse()
            .map_err(|_| PgError::Protocol(format!("a catalogue row without a number in column {column}")))
    }
}
