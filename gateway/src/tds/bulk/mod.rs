//! The rows of a bulk copy from the client: at 7.x COLMETADATA and rows (MS-TDS 2.2.6.1), at 5.0 rows in ASE's
//! storage layout (FreeTDS src/tds/bulk.c tds5_send_record). Both are streams of packets of any length, so each row
//! is decoded as soon as it has arrived.

pub mod stored_row;

use super::dialect::{Dialect, Endian, Version};
use super::types::{take_row_value, TypeInfo};
use super::wire::{Reader, Result, WireError};
use bytes::{Buf, BytesMut};
use std::borrow::Cow;

const COLMETADATA: u8 = 0x81;
const ROW: u8 = 0xD1;
const NBCROW: u8 = 0xD2;
const DONE: u8 = 0xFD;
/// The longest row, and the longest description of columns.
const LONGEST: usize = 64 * 1024 * 1024;

/// A column as the client sends it.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub type_info: TypeInfo,
}

/// The values of one row in wire form, None for NULL.
pub type Row<'a> = Vec<Option<Cow<'a, [u8]>>>;

/// The bytes of a bulk copy that have not been decoded yet.
#[derive(Debug)]
pub struct Rows {
    dialect: Dialect,
    input: BytesMut,
    columns: Option<Vec<Column>>,
    /// The bytes that must have arrived before more can be decoded.
    wanted: usize,
    is_done: bool,
}

impl Rows {
    /// Rows of a 7.x client, which describes them itself.
    pub fn described(dialect: Dialect) -> Rows {
        Rows { dialect, input: BytesMut::new(), columns: None, wanted: 0, is_done: false }
    }

    /// Rows of a 5.0 client, which has received the descriptions of these columns.
    pub fn stored(dialect: Dialect, columns: Vec<Column>) -> Rows {
        Rows { columns: Some(columns), ..Rows::described(dialect) }
    }

    /// Adds the body of a packet.
    pub fn push(&mut self, body: &[u8]) {
        self.input.extend_from_slice(body);
    }

    /// The columns, once they are known; `is_last`: no more bytes follow.
    pub fn columns(&mut self, is_last: bool) -> Result<Option<&[Column]>> {
        if self.columns.is_none() && !self.waits(is_last) {
            let mut reader = Reader::new(&self.input, Endian::Little);
            match decode_columns(&mut reader, &self.dialect) {
                Ok(columns) => {
                    let read = reader.position();
                    self.input.advance(read);
                    self.columns = Some(columns);
                }
                Err(error) => self.more(error, is_last)?,
            }
        }
        Ok(self.columns.as_deref())
    }

    /// Passes the next row and its columns to `take`. None: more bytes are needed, or there are no more rows.
    pub fn next<T>(
        &mut self,
        is_last: bool,
        take: impl FnOnce(&[Column], &Row<'_>) -> T,
    ) -> Result<Option<T>> {
        if self.is_done || self.input.is_empty() || self.waits(is_last) || self.columns(is_last)?.is_none() {
            return Ok(None);
        }
        let Some(columns) = self.columns.as_ref().filter(|_| !self.input.is_empty()) else { return Ok(None) };
        let mut reader = Reader::new(
            &self.input,
            if self.dialect.is_tds7() { Endian::Little } else { self.dialect.endian },
        );
        let row = if self.dialect.is_tds7() {
            decode_row(&mut reader, columns, &self.dialect)
        } else {
            stored_row::decode(&mut reader, columns, is_last).map(Some)
        };
        match row {
            Ok(Some(row)) => {
                let taken = take(columns, &row);
                let read = reader.position();
                drop(row);
                self.input.advance(read);
                self.wanted = 0;
                Ok(Some(taken))
            }
            Ok(None) => {
                self.is_done = true;
                Ok(None)
            }
            Err(error) => self.more(error, is_last).map(|()| None),
        }
    }

    fn waits(&self, is_last: bool) -> bool {
        !is_last && self.input.len() < self.wanted
    }

    /// Data cut off may continue in the next packet. A long row is decoded again only after it has grown by a fraction,
    /// so that the time is not quadratic in its length.
    fn more(&mut self, error: WireError, is_last: bool) -> Result<()> {
        if is_last || !matches!(error, WireError::Truncated(_)) {
            return Err(error);
        }
        if self.input.len() > LONGEST {
            return Err(WireError::Malformed(format!("a row is longer than {LONGEST} bytes")));
        }
        self.wanted = self.input.len() + self.input.len() / 4 + 1;
        Ok(())
    }
}

/// COLMETADATA of a client: as a server's, except that a table name is one name (FreeTDS tds7_bcp_send_colmetadata).
fn decode_columns(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<Vec<Column>> {
    let token = reader.u8("column description")?;
    if token != COLMETADATA {
        return Err(WireError::Malformed(format!(
            "token 0x{token:02x} where a bulk copy describes its columns"
        )));
    }
    let count = usize::from(reader.u16("column count")?);
    if count == usize::from(u16::MAX) {
        return Ok(Vec::new());
    }
    let mut columns = Vec::with_capacity(count.min(reader.remaining()));
    for _ in 0..count {
        let user_type = if dialect.version >= Version::Tds72 { 4 } else { 2 };
        reader.take(user_type, "user type")?;
        reader.u16("column flags")?;
        let type_info = TypeInfo::decode(reader, dialect)?;
        if type_info.has_table_name() {
            let units = usize::from(reader.u16("table name")?);
            reader.take(units * 2, "table name")?;
        }
        let units = usize::from(reader.u8("column name")?);
        columns.push(Column { name: reader.utf16(units, "column name")?, type_info });
    }
    Ok(columns)
}

/// A row of 7.x; None: the final DONE.
fn decode_row<'a>(reader: &mut Reader<'a>, columns: &[Column], dialect: &Dialect) -> Result<Option<Row<'a>>> {
    let nulls = match reader.u8("row")? {
        ROW => None,
        NBCROW => Some(reader.take(columns.len().div_ceil(8), "row")?),
        DONE => {
            // Microsoft's own clients write a count of four bytes, from TDS 7.2 on too (SqlClient, WriteBulkCopyDone)
            reader.take(8, "end of the rows")?;
            return Ok(None);
        }
        other => {
            return Err(WireError::Malformed(format!("token 0x{other:02x} among the rows of a bulk copy")))
        }
    };
    let mut row = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let is_null =
            nulls.and_then(|bits| bits.get(index / 8)).is_some_and(|byte| byte >> (index % 8) & 1 != 0);
        row.push(if is_null { None } else { take_row_value(reader, &column.type_info, dialect)? });
    }
    Ok(Some(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::types::{decode_value, Value};
    use proptest::prelude::*;

    /// COLMETADATA of `a int, b nvarchar(20)` at 7.4.
    const COLUMNS: &[u8] = b"\x81\x02\0\0\0\0\0\x09\0\x26\x04\x01a\0\
        \0\0\0\0\x09\0\xe7\x28\0\x09\x04\xd0\0\x34\x01b\0";
    const ONE: &[u8] = b"\xd1\x04\x05\0\0\0\x04\0h\0i\0";
    const NONE: &[u8] = b"\xd1\0\xff\xff";
    const BITMAP: &[u8] = b"\xd2\x01\x02\0x\0";
    const DONE: &[u8] = b"\xfd\0\0\0\0\0\0\0\0\0\0\0\0";

    fn seven() -> Dialect {
        Dialect::new(Version::Tds74)
    }

    /// The rows decoded from `bytes` in packets of `size`.
    fn read(bytes: &[u8], size: usize) -> Result<Vec<Vec<Value<'static>>>> {
        let dialect = seven();
        let mut rows = Rows::described(dialect);
        let mut found = Vec::new();
        let mut packets = bytes.chunks(size).peekable();
        while let Some(packet) = packets.next() {
            rows.push(packet);
            let is_last = packets.peek().is_none();
            let values = |columns: &[Column], row: &Row<'_>| -> Vec<_> {
                let value = |(column, raw): (&Column, &Option<Cow<'_, [u8]>>)| {
                    decode_value(raw.as_deref(), &column.type_info, &dialect).unwrap().into_owned()
                };
                columns.iter().zip(row).map(value).collect()
            };
            while let Some(row) = rows.next(is_last, values)? {
                found.push(row);
            }
        }
        Ok(found)
    }

    #[test]
    fn rows_in_packets_of_any_size() {
        let bytes = [COLUMNS, ONE, NONE, BITMAP, DONE].concat();
        let text = |text: &'static str| Value::Text(text.into());
        let expected = vec![
            vec![Value::Int(5), text("hi")],
            vec![Value::Null, Value::Null],
            vec![Value::Null, text("x")],
        ];
        for size in 1..=bytes.len() {
            assert_eq!(read(&bytes, size), Ok(expected.clone()), "{size}");
        }
        // SqlClient counts in four bytes
        assert_eq!(read(&bytes[..bytes.len() - 4], 7), Ok(expected.clone()));
        // FreeTDS ends with its last row
        assert_eq!(read(&bytes[..bytes.len() - DONE.len()], 7), Ok(expected));
        assert_eq!(read(COLUMNS, 5), Ok(vec![]));
    }

    #[test]
    fn what_ends_inside_a_row_or_is_none_is_refused() {
        let bytes = [COLUMNS, ONE].concat();
        for length in 1..bytes.len() {
            let whole = length == COLUMNS.len();
            assert_eq!(read(&bytes[..length], 8).is_ok(), whole, "{length}");
        }
        assert!(matches!(read(&[COLUMNS, b"\xaa"].concat(), 64), Err(WireError::Malformed(_))));
        assert!(matches!(read(ONE, 64), Err(WireError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(
            changes in proptest::collection::vec((0usize..90, any::<u8>()), 1..6),
            size in 1usize..90,
        ) {
            let mut bytes = [COLUMNS, ONE, NONE, BITMAP, ONE, DONE].concat();
            for (at, byte) in changes {
                if let Some(damaged) = bytes.get_mut(at) { *damaged = byte; }
            }
            let mut rows = Rows::described(seven());
            for packet in bytes.chunks(size) {
                rows.push(packet);
                while let Ok(Some(())) = rows.next(false, |_, _| ()) {}
            }
            let _ = rows.next(true, |_, _| ());
        }
    }
}
