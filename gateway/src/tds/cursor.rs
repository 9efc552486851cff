//! Cursors of TDS 5.0: CURDECLARE, CURINFO, CUROPEN, CURFETCH, CURCLOSE, CURUPDATE and CURDELETE (SAP/go-dblib
//! tds/packageCur*.go; FreeTDS src/tds/query.c, tds_cursor_*).

use super::call::{decode_arguments, Param};
use super::dialect::Dialect;
use super::tokens::text::put_token;
use super::wire::{Put, Reader, Result, WireError};
use bytes::{BufMut, BytesMut};

const CLOSE: u8 = 0x80;
const FETCH: u8 = 0x82;
const INFO: u8 = 0x83;
const OPEN: u8 = 0x84;
const DECLARE: u8 = 0x86;
const INFO3: u8 = 0x88;
const DECLARE3: u8 = 0x10;

/// The cursor of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor<'a> {
    /// The number that the server has assigned.
    Number(i32),
    /// In the client's character set.
    Name(&'a [u8]),
}

#[derive(Debug)]
pub struct CursorRequest<'a> {
    pub cursor: Cursor<'a>,
    pub operation: Operation<'a>,
}

#[derive(Debug)]
pub enum Operation<'a> {
    /// `text`: of a select or, where it `is_dynamic`, the name of a dynamic statement.
    Declare {
        text: &'a [u8],
        is_dynamic: bool,
        scrolls: bool,
        has_params: bool,
    },
    Open {
        params: Vec<Param<'a>>,
    },
    /// The rows of each fetch.
    SetRows(u32),
    /// Requests its state.
    Inquire,
    /// 1 to 6: next, previous, first, last, absolute, relative. `row`: for the last two.
    Fetch {
        direction: u8,
        row: i32,
    },
    Close {
        deallocates: bool,
    },
    Change,
}

/// Reads a request about a cursor. None if another token follows.
pub fn decode<'a>(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<Option<CursorRequest<'a>>> {
    let token = match reader.peek() {
        Some(token @ (CLOSE..=DECLARE | INFO3 | DECLARE3)) => token,
        _ => return Ok(None),
    };
    reader.u8("cursor")?;
    let length = if token == DECLARE3 {
        reader.u32("cursor length")? as usize
    } else {
        usize::from(reader.u16("cursor length")?)
    };
    let mut body = Reader::new(reader.take(length, "cursor")?, reader.endian());
    if let DECLARE | DECLARE3 = token {
        return decode_declare(&mut body, reader, token == DECLARE3).map(Some);
    }
    let cursor = decode_cursor(&mut body)?;
    let operation = match token {
        OPEN => {
            const HAS_ARGUMENTS: u8 = 1;
            let status = body.u8("cursor status")?;
            let params =
                if status & HAS_ARGUMENTS == 0 { Vec::new() } else { decode_arguments(reader, dialect)? };
            Operation::Open { params }
        }
        FETCH => {
            let direction = body.u8("fetch type")?;
            let row = if let 5 | 6 = direction { body.u32("row number")? as i32 } else { 0 };
            Operation::Fetch { direction, row }
        }
        CLOSE => Operation::Close { deallocates: body.u8("close option")? & 1 != 0 },
        INFO | INFO3 => decode_info(&mut body, token == INFO3)?,
        // CURDELETE and CURUPDATE, whose values may follow
        _ => {
            reader.take(reader.remaining(), "cursor")?;
            Operation::Change
        }
    };
    Ok(Some(CursorRequest { cursor, operation }))
}

fn decode_cursor<'a>(body: &mut Reader<'a>) -> Result<Cursor<'a>> {
    Ok(match body.u32("cursor number")? as i32 {
        0 => {
            let length = usize::from(body.u8("cursor name")?);
            Cursor::Name(body.take(length, "cursor name")?)
        }
        number => Cursor::Number(number),
    })
}

fn decode_declare<'a>(
    body: &mut Reader<'a>,
    reader: &mut Reader<'a>,
    wide: bool,
) -> Result<CursorRequest<'a>> {
    const DYNAMIC: u32 = 0x08;
    /// INSENSITIVE and SEMISENSITIVE are scrollable only together with this bit.
    const SCROLLABLE: u32 = 0x100;
    const HAS_ARGUMENTS: u8 = 1;
    let length = usize::from(body.u8("cursor name")?);
    let cursor = Cursor::Name(body.take(length, "cursor name")?);
    let options = if wide { body.u32("cursor options")? } else { u32::from(body.u8("cursor options")?) };
    let has_params = body.u8("cursor status")? & HAS_ARGUMENTS != 0;
    let length = if wide { body.u32("cursor text")? as usize } else { usize::from(body.u16("cursor text")?) };
    let text = body.take(length, "cursor text")?;
    if has_params {
        // the types of the parameters; those sent with the values at the opening count
        super::call::skip_formats(reader)?;
    }
    // the columns that could be updated follow
    let (is_dynamic, scrolls) = (options & DYNAMIC != 0, options & SCROLLABLE != 0);
    Ok(CursorRequest { cursor, operation: Operation::Declare { text, is_dynamic, scrolls, has_params } })
}

fn decode_info<'a>(body: &mut Reader<'a>, wide: bool) -> Result<Operation<'a>> {
    const SET_ROWS: u8 = 1;
    let command = body.u8("cursor command")?;
    if wide {
        body.take(12, "cursor status")?;
    } else {
        body.take(2, "cursor status")?;
    }
    Ok(match command {
        SET_ROWS => Operation::SetRows(body.u32("cursor rows")?),
        2..=4 => Operation::Inquire,
        other => return Err(WireError::Malformed(format!("cursor command {other} is not served"))),
    })
}

/// The state of a cursor: bits of CURINFO's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

impl Status {
    pub const DECLARED: Status = Status(0x01);
    pub const OPEN: Status = Status(0x02);
    pub const CLOSED: Status = Status(0x04);
    pub const READ_ONLY: Status = Status(0x08);
    pub const ROWS: Status = Status(0x20);
    pub const DEALLOCATED: Status = Status(0x40);
    pub const SCROLLABLE: Status = Status(0x80);

    pub fn and(self, other: Status) -> Status {
        Status(self.0 | other.0)
    }

    fn has(self, other: Status) -> bool {
        self.0 & other.0 != 0
    }
}

/// CURINFO: the state of a cursor. `rows`: the number of rows a fetch returns, sent if the status has [`Status::ROWS`].
pub fn put_info(out: &mut BytesMut, number: i32, status: Status, rows: u32, dialect: &Dialect) {
    const INFORM: u8 = 3;
    // a few bytes always fit
    let _ = put_token(out, INFO, dialect, |out| {
        out.put_u32_as(number as u32, dialect.endian);
        out.put_u8(INFORM);
        out.put_u16_as(status.0, dialect.endian);
        if status.has(Status::ROWS) {
            out.put_u32_as(rows, dialect.endian);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::{Endian, Version};
    use proptest::prelude::*;

    fn decoded(bytes: &[u8]) -> String {
        let mut reader = Reader::new(bytes, Endian::Little);
        match decode(&mut reader, &Dialect::new(Version::Tds50)) {
            Ok(Some(request)) => format!("{:?}, {} bytes left", request, reader.remaining()),
            Ok(None) => String::from("none"),
            Err(error) => error.to_string(),
        }
    }

    /// As sent by FreeTDS (src/tds/query.c, tds_cursor_declare and following).
    #[test]
    fn requests_of_freetds() {
        let declare = b"\x86\x12\0\x02c1\x01\0\x0a\0select a,b\0";
        assert!(decoded(declare).contains("Name([99, 49]), operation: Declare { text: [115, 101"));
        assert!(decoded(declare).ends_with("has_params: false } }, 0 bytes left"));
        let rows = b"\x83\x0e\0\0\0\0\0\x02c1\x01\0\x20\x05\0\0\0";
        assert!(decoded(rows).contains("SetRows(5)"), "{}", decoded(rows));
        let open = b"\x84\x08\0\0\0\0\0\x02c1\0";
        assert!(decoded(open).contains("Open { params: [] }"));
        let fetch = b"\x82\x0c\0\0\0\0\0\x02c1\x05\xfe\xff\xff\xff";
        assert!(decoded(fetch).contains("Fetch { direction: 5, row: -2 }"), "{}", decoded(fetch));
        let close = b"\x80\x05\0\x07\0\0\0\x01\x21";
        assert!(decoded(close).ends_with("Number(7), operation: Close { deallocates: true } }, 1 bytes left"));
        assert_eq!(decoded(b"\x21"), "none");
    }

    #[test]
    fn how_a_cursor_stands() {
        let mut out = BytesMut::new();
        let dialect = Dialect::new(Version::Tds50);
        put_info(&mut out, 3, Status::OPEN.and(Status::READ_ONLY), 5, &dialect);
        put_info(&mut out, 3, Status::DECLARED.and(Status::ROWS), 5, &dialect);
        assert_eq!(&out[..], b"\x83\x07\0\x03\0\0\0\x03\x0a\0\x83\x0b\0\x03\0\0\0\x03\x21\0\x05\0\0\0");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(token in 0x80..=0x88u8, bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            decoded(&[&[token][..], &bytes].concat());
            decoded(&[&[DECLARE3][..], &bytes].concat());
        }
    }
}
