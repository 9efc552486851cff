//! Messages and errors: INFO and ERROR at 7.x (MS-TDS 2.2.7.10–13), EED at 5.0
//! (SAP/go-dblib tds/packageEED.go).

use super::text::{put_long, put_short, put_token};
use crate::tds::dialect::{Dialect, Version};
use crate::tds::types::{ConvertError, ErrorKind};
use crate::tds::wire::Put;
use bytes::{BufMut, BytesMut};

/// A message to the client. Severity (class) over 10 makes it an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMessage {
    pub number: i32,
    pub state: u8,
    pub severity: u8,
    pub text: String,
    /// The procedure it came from, or "".
    pub procedure: String,
    pub line: u32,
    /// The SQLSTATE, told at 5.0 only; "" when there is none.
    pub sqlstate: String,
}

impl ServerMessage {
    pub fn error(number: i32, severity: u8, text: impl Into<String>) -> ServerMessage {
        ServerMessage {
            number,
            state: 1,
            severity,
            text: text.into(),
            procedure: String::new(),
            line: 1,
            sqlstate: String::new(),
        }
    }

    pub fn info(number: i32, text: impl Into<String>) -> ServerMessage {
        ServerMessage::error(number, if number == 0 { 0 } else { 10 }, text)
    }

    pub fn is_error(&self) -> bool {
        self.severity > 10
    }

    pub fn in_procedure(mut self, procedure: &str) -> ServerMessage {
        if self.procedure.is_empty() {
            procedure.clone_into(&mut self.procedure);
        }
        self
    }
}

impl ConvertError {
    /// The number legacy clients know it by.
    pub fn number(&self) -> i32 {
        match self.kind {
            ErrorKind::Overflow => 8115,
            ErrorKind::Truncation => 8152,
            ErrorKind::Conversion | ErrorKind::Unsupported => 8114,
            // ASE: character set conversion between client and server failed
            ErrorKind::Charset => 2402,
        }
    }
}

/// The longest message text in units: any client's buffer holds it, and a token always does.
const LONGEST_TEXT: usize = 4000;

const SERVER: &str = "ringlog";

pub fn put(out: &mut BytesMut, message: &ServerMessage, dialect: &Dialect) {
    let token = match (dialect.version, message.is_error()) {
        (Version::Tds50, _) => 0xE5,
        (_, true) => 0xAA,
        (_, false) => 0xAB,
    };
    // SQL Server tells severity 10 as 0, and pymssql takes a 10 for an error
    let severity = if dialect.is_tds7() && message.severity == 10 { 0 } else { message.severity };
    let _ = put_token(out, token, dialect, |out| {
        out.put_u32_as(message.number as u32, dialect.endian);
        out.put_u8(message.state);
        out.put_u8(severity);
        if !dialect.is_tds7() {
            put_short(out, if message.sqlstate.is_empty() { "ZZZZZ" } else { &message.sqlstate }, dialect);
            // no parameters follow; transaction state as in DONE
            out.put_u8(0);
            out.put_u16_as(0, dialect.endian);
        }
        put_long(out, &message.text, LONGEST_TEXT, dialect);
        put_short(out, SERVER, dialect);
        put_short(out, &message.procedure, dialect);
        if dialect.version >= Version::Tds72 {
            out.put_u32_as(message.line, dialect.endian);
        } else {
            out.put_u16_as(u16::try_from(message.line).unwrap_or(u16::MAX), dialect.endian);
        }
    });
}
