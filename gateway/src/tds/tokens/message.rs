//! Messages and errors: INFO and ERROR at 7.x (MS-TDS 2.2.7.10–13), EED at 5.0
//! (SAP/go-dblib tds/packageEED.go).

use super::text::{put_long, put_short, put_token, take_long, take_short, take_token};
use crate::tds::dialect::{Dialect, Version};
use crate::tds::types::{ConvertError, ErrorKind};
use crate::tds::wire::{Put, Reader, Result};
use bytes::{BufMut, BytesMut};

/// A message to the client. A severity (class) above 10 makes it an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMessage {
    pub number: i32,
    pub state: u8,
    pub severity: u8,
    pub text: String,
    /// The procedure that it came from, or "".
    pub procedure: String,
    pub line: u32,
    /// The SQLSTATE, sent at 5.0 only; "" if there is none.
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
    /// The number by which legacy clients know it.
    pub fn number(&self) -> i32 {
        match self.kind {
            ErrorKind::Overflow => 8115,
            ErrorKind::Truncation => 8152,
            ErrorKind::Conversion | ErrorKind::Unsupported => 8114,
            ErrorKind::NoNumber => 8023,
            // ASE: character set conversion between client and server failed
            ErrorKind::Charset => 2402,
        }
    }
}

/// The most units of a message text: those of a PRINT ("PRINT (Transact-SQL)"); they always fit into a token.
const LONGEST_TEXT: usize = 8000;

const SERVER: &str = "ringlog";
/// The SQLSTATE of a message without one.
const NO_SQLSTATE: &str = "ZZZZZ";

pub const ERROR: u8 = 0xAA;
pub const INFO: u8 = 0xAB;
pub const EED: u8 = 0xE5;

pub fn put(out: &mut BytesMut, message: &ServerMessage, dialect: &Dialect) {
    let token = match (dialect.version, message.is_error()) {
        (Version::Tds50, _) => EED,
        (_, true) => ERROR,
        (_, false) => INFO,
    };
    // SQL Server sends severity 10 as 0, and pymssql treats 10 as an error
    let severity = if dialect.is_tds7() && message.severity == 10 { 0 } else { message.severity };
    let _ = put_token(out, token, dialect, |out| {
        out.put_u32_as(message.number as u32, dialect.endian);
        out.put_u8(message.state);
        out.put_u8(severity);
        if !dialect.is_tds7() {
            put_short(
                out,
                if message.sqlstate.is_empty() { NO_SQLSTATE } else { &message.sqlstate },
                dialect,
            );
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

/// Reads the body of a message token. Returns also whether parameters of the message follow.
pub fn decode(reader: &mut Reader<'_>, token: u8, dialect: &Dialect) -> Result<(ServerMessage, bool)> {
    const HAS_PARAMETERS: u8 = 1;
    let mut body = take_token(reader, "message")?;
    let number = body.i32("message number")?;
    let state = body.u8("message state")?;
    let severity = body.u8("message severity")?;
    let (mut sqlstate, mut status) = (String::new(), 0);
    if token == EED {
        sqlstate = take_short(&mut body, "SQLSTATE", dialect)?;
        status = body.u8("message status")?;
        body.u16("transaction state")?;
    }
    let text = take_long(&mut body, "message text", dialect)?;
    take_short(&mut body, "server name", dialect)?;
    let procedure = take_short(&mut body, "procedure name", dialect)?;
    let line = if dialect.version >= Version::Tds72 {
        body.u32("line number")?
    } else {
        u32::from(body.u16("line number")?)
    };
    if sqlstate == NO_SQLSTATE {
        sqlstate.clear();
    }
    let message = ServerMessage { number, state, severity, text, procedure, line, sqlstate };
    Ok((message, status & HAS_PARAMETERS != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Endian;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let big = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
        for dialect in [Dialect::new(Version::Tds74), Dialect::new(Version::Tds71), big] {
            let error =
                ServerMessage { line: 7, ..ServerMessage::error(547, 16, "beam lost").in_procedure("put") };
            for message in [error, ServerMessage::info(0, "größer")] {
                let mut out = BytesMut::new();
                put(&mut out, &message, &dialect);
                let mut reader = Reader::new(&out, dialect.endian);
                let token = reader.u8("token").unwrap();
                assert_eq!(decode(&mut reader, token, &dialect), Ok((message, false)));
                assert!(reader.is_empty());
            }
        }
    }
}
