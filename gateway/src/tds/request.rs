//! A client's requests after login: a message is decoded into requests before any of them runs.
//!
//! A 7.x message contains one request, or several calls; a 5.0 message is a stream of tokens. Requests are decoded one
//! after another, so that those before a malformed one are answered.

use super::call::{self, decode_arguments, Call, Param};
use super::cursor::{self, CursorRequest};
use super::dialect::Dialect;
use super::dynamic::{self, Dynamic};
use super::option::{self, OptionCommand};
use super::packet::{Message, MessageKind};
use super::transaction::TransactionRequest;
use super::wire::{Reader, Result, WireError};

#[derive(Debug)]
pub enum Request<'a> {
    /// Text of T-SQL at 7.x.
    Batch(String),
    /// A call at 7.x.
    Rpc(Call<'a>),
    /// A call at 5.0.
    Dbrpc(Call<'a>),
    /// Text of T-SQL at 5.0, in the client's character set, with the values of its variables.
    Language {
        text: &'a [u8],
        params: Vec<Param<'a>>,
    },
    Dynamic(Dynamic<'a>),
    Option(OptionCommand<'a>),
    Transaction(TransactionRequest),
    /// A server cursor of 5.0.
    Cursor(CursorRequest<'a>),
    Attention,
    BulkLoad,
    Logout,
}

const LANGUAGE: u8 = 0x21;
const LOGOUT: u8 = 0x71;

/// The requests of one message.
#[derive(Debug)]
pub struct Requests<'a> {
    kind: MessageKind,
    dialect: Dialect,
    body: &'a [u8],
    reader: Reader<'a>,
    is_done: bool,
}

impl<'a> Requests<'a> {
    /// Skips the headers that begin each 7.2 message (MS-TDS 2.2.5.3).
    pub fn of(message: &'a Message, dialect: &Dialect) -> Result<Requests<'a>> {
        let mut reader = call::reader(&message.body, dialect);
        match message.kind {
            MessageKind::Batch if !dialect.is_tds7() => {}
            MessageKind::Batch | MessageKind::Rpc | MessageKind::Transaction => {
                call::skip_headers(&mut reader, dialect)?
            }
            MessageKind::Normal | MessageKind::Attention | MessageKind::BulkLoad => {}
            other => return Err(WireError::Malformed(format!("a {other:?} message after login"))),
        }
        let body = message.body.get(reader.position()..).unwrap_or(&[]);
        let reader = call::reader(body, dialect);
        Ok(Requests { kind: message.kind, dialect: *dialect, body, reader, is_done: false })
    }

    /// The message without its headers.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The next request. None at the end.
    pub fn next_request(&mut self) -> Result<Option<Request<'a>>> {
        let dialect = self.dialect;
        match self.kind {
            MessageKind::Rpc => Ok(call::decode_rpc(&mut self.reader, &dialect)?.map(Request::Rpc)),
            MessageKind::Normal if self.reader.is_empty() => Ok(None),
            MessageKind::Normal => decode_token(&mut self.reader, &dialect).map(Some),
            _ if std::mem::replace(&mut self.is_done, true) => Ok(None),
            MessageKind::Batch if dialect.is_tds7() => decode_batch(&mut self.reader).map(Some),
            // FreeTDS sends several queries in one text this way
            MessageKind::Batch => Ok(Some(Request::Language { text: self.body, params: Vec::new() })),
            MessageKind::Transaction => {
                Ok(Some(Request::Transaction(TransactionRequest::decode(&mut self.reader)?)))
            }
            MessageKind::Attention => Ok(Some(Request::Attention)),
            MessageKind::BulkLoad => Ok(Some(Request::BulkLoad)),
            _ => Ok(None),
        }
    }
}

fn decode_batch<'a>(reader: &mut Reader<'a>) -> Result<Request<'a>> {
    if !reader.remaining().is_multiple_of(2) {
        return Err(WireError::Malformed("a batch of an odd number of bytes".into()));
    }
    Ok(Request::Batch(reader.utf16(reader.remaining() / 2, "batch text")?))
}

/// One token of a 5.0 message.
fn decode_token<'a>(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<Request<'a>> {
    if let Some(call) = call::decode_dbrpc(reader, dialect)? {
        return Ok(Request::Dbrpc(call));
    }
    if let Some(dynamic) = dynamic::decode(reader, dialect)? {
        return Ok(Request::Dynamic(dynamic));
    }
    if let Some(request) = cursor::decode(reader, dialect)? {
        return Ok(Request::Cursor(request));
    }
    match reader.u8("token")? {
        LANGUAGE => decode_language(reader, dialect),
        option::TOKEN => Ok(Request::Option(OptionCommand::decode(reader)?)),
        LOGOUT => Ok(Request::Logout),
        // its length is unknown, so the tokens after it cannot be read
        other => Err(WireError::Malformed(format!("token 0x{other:02x} is not served"))),
    }
}

/// LANGUAGE (SAP/go-dblib tds/packageLanguage.go).
fn decode_language<'a>(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<Request<'a>> {
    /// the status bit for parameters that follow
    const HAS_PARAMETERS: u8 = 1;
    let length = reader.u32("command length")? as usize;
    let body = reader.take(length, "command")?;
    let (status, text) = body.split_first().ok_or(WireError::Truncated("command"))?;
    let params = if status & HAS_PARAMETERS == 0 { Vec::new() } else { decode_arguments(reader, dialect)? };
    Ok(Request::Language { text, params })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Version;
    use crate::tds::packet::Status;
    use bytes::Bytes;

    fn message(kind: MessageKind, body: &[u8]) -> Message {
        Message { kind, status: Status::LAST, body: Bytes::copy_from_slice(body) }
    }

    fn requests(
        kind: MessageKind,
        body: &[u8],
        version: Version,
    ) -> Vec<std::result::Result<String, WireError>> {
        let message = message(kind, body);
        let dialect = Dialect::new(version);
        let mut requests = match Requests::of(&message, &dialect) {
            Ok(requests) => requests,
            Err(error) => return vec![Err(error)],
        };
        let mut found = Vec::new();
        loop {
            match requests.next_request() {
                Ok(Some(request)) => found.push(Ok(format!("{request:?}"))),
                Ok(None) => return found,
                Err(error) => {
                    found.push(Err(error));
                    return found;
                }
            }
        }
    }

    #[test]
    fn a_batch_has_headers_from_7_2_on() {
        let text = b"a\0b\0";
        let with_headers = [&b"\x08\0\0\0\x04\0\0\0"[..], text].concat();
        let batch = vec![Ok("Batch(\"ab\")".to_owned())];
        assert_eq!(requests(MessageKind::Batch, &with_headers, Version::Tds74), batch);
        assert_eq!(requests(MessageKind::Batch, text, Version::Tds71), batch);
        let odd = requests(MessageKind::Batch, b"a\0b", Version::Tds71);
        assert!(matches!(odd.as_slice(), [Err(WireError::Malformed(_))]), "{odd:?}");
        let five = requests(MessageKind::Batch, b"ab", Version::Tds50);
        assert_eq!(five, [Ok("Language { text: [97, 98], params: [] }".to_owned())]);
    }

    #[test]
    fn tokens_before_a_malformed_one_are_requests() {
        let bytes = b"\x21\x03\0\0\0\0hi\xa6\x04\0\x01\x19\x01\x01\x71\x00\x99";
        let found = requests(MessageKind::Normal, bytes, Version::Tds50);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].as_ref().unwrap().starts_with("Language { text: [104, 105]"), "{found:?}");
        assert!(found[1].as_ref().unwrap().starts_with("Option("), "{found:?}");
        assert_eq!(found[2], Ok("Logout".to_owned()));
        assert!(found[3].is_err());
        let close = requests(MessageKind::Normal, b"\x80\x05\0\x01\0\0\0\x01", Version::Tds50);
        assert!(close.len() == 1 && close[0].as_ref().unwrap().starts_with("Cursor"), "{close:?}");
        let cut = requests(MessageKind::Normal, b"\x80\x01\x02", Version::Tds50);
        assert!(matches!(cut.as_slice(), [Err(WireError::Truncated("cursor"))]), "{cut:?}");
        assert!(requests(MessageKind::Normal, b"", Version::Tds50).is_empty());
    }

    #[test]
    fn what_no_client_sends_after_its_login_is_refused() {
        for kind in [MessageKind::Login7, MessageKind::Prelogin, MessageKind::Sspi, MessageKind::Reply] {
            let found = requests(kind, b"", Version::Tds74);
            assert!(matches!(found.as_slice(), [Err(WireError::Malformed(_))]), "{found:?}");
        }
    }
}
