//! The description of a result set: COLMETADATA at 7.x (MS-TDS 2.2.7.4), ROWFMT and for wide ones ROWFMT2 at 5.0
//! (FreeTDS src/tds/token.c, tds5_process_result, tds5_process_result2).

use super::text::{put_long, put_short, put_token, take_short};
use crate::tds::dialect::{Dialect, Version};
use crate::tds::types::TypeInfo;
use crate::tds::wire::{Put, Reader, Result};
use bytes::{BufMut, BytesMut};
use std::sync::Arc;

pub const COLMETADATA: u8 = 0x81;
pub const ROWFMT: u8 = 0xEE;
pub const ROWFMT2: u8 = 0x61;
/// The token before each row.
pub const ROW: u8 = 0xD1;

/// The most parts of a table's name: database, owner and name.
const MOST_PARTS: usize = 3;

/// The most UTF-16 units of a name.
const LONGEST_NAME: usize = 128;

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub type_info: TypeInfo,
    pub traits: Traits,
    /// The table, as the query names it, of a text or image with a pointer.
    pub table: Option<Arc<str>>,
}

/// Properties of a column in addition to its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    pub not_null: bool,
    /// The server generates its values: bulk copies of most clients omit it.
    pub identity: bool,
    /// Likewise.
    pub computed: bool,
    /// Not a column of the query: it contains information about the row.
    pub hidden: bool,
    /// Part of the key by which a client finds the row again.
    pub key: bool,
    pub changes: Changes,
}

/// Whether a client may change a column's values (MS-TDS 2.2.7.4, usUpdateable).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Changes {
    /// An expression, or a value that the server generates.
    #[default]
    No = 0,
    /// By the cursor to which the column belongs.
    Yes = 1,
    /// A table's column: the client's rights are unknown. mssql-jdbc copies only such columns in bulk.
    Unknown = 2,
}

impl Traits {
    /// fNullable, usUpdateable, fIdentity and, since 7.2, fComputed, fHidden and fKey.
    fn flags_7(self, dialect: &Dialect) -> u16 {
        let since_7_2 = |is: bool, bit: u16| u16::from(is && dialect.version >= Version::Tds72) << bit;
        u16::from(!self.not_null)
            | (self.changes as u16) << 2
            | u16::from(self.identity) << 4
            | since_7_2(self.computed, 5)
            | since_7_2(self.hidden, 13)
            | since_7_2(self.key, 14)
    }

    fn of_flags_7(flags: u16) -> Traits {
        let is = |bit: u16| flags & 1 << bit != 0;
        let changes = match flags >> 2 & 3 {
            0 => Changes::No,
            1 => Changes::Yes,
            _ => Changes::Unknown,
        };
        Traits { not_null: !is(0), changes, identity: is(4), computed: is(5), hidden: is(13), key: is(14) }
    }

    /// TDS_ROW_HIDDEN, TDS_ROW_KEY, TDS_ROW_UPDATABLE, TDS_ROW_NULLALLOWED and TDS_ROW_IDENTITY.
    fn status_5(self) -> u8 {
        u8::from(self.hidden)
            | u8::from(self.key) << 1
            | u8::from(self.changes != Changes::No) << 4
            | u8::from(!self.not_null) << 5
            | u8::from(self.identity) << 6
    }

    fn of_status_5(status: u32) -> Traits {
        let is = |bit: u32| status & 1 << bit != 0;
        let changes = if is(4) { Changes::Unknown } else { Changes::No };
        Traits { not_null: !is(5), identity: is(6), changes, hidden: is(0), key: is(1), ..Traits::default() }
    }
}

pub fn put(out: &mut BytesMut, columns: &[Column], dialect: &Dialect) {
    if dialect.is_tds7() {
        put_colmetadata(out, columns, dialect);
    } else if dialect.takes.wide_tables || put_rowfmt(out, columns, dialect).is_none() {
        put_rowfmt2(out, columns, dialect);
    }
}

fn put_colmetadata(out: &mut BytesMut, columns: &[Column], dialect: &Dialect) {
    out.put_u8(COLMETADATA);
    out.put_u16_as(columns.len() as u16, dialect.endian);
    for column in columns {
        put_user_type_7(out, column.type_info.user_type, dialect);
        out.put_u16_as(column.traits.flags_7(dialect), dialect.endian);
        column.type_info.encode(out, dialect);
        if column.type_info.has_table_name() {
            put_table_name(out, column.table.as_deref().unwrap_or_default(), dialect);
        }
        put_short(out, &column.name, dialect);
    }
}

/// The user type, of four bytes since 7.2: that of a timestamp, or 0.
pub fn put_user_type_7(out: &mut BytesMut, user_type: u32, dialect: &Dialect) {
    if dialect.version >= Version::Tds72 {
        out.put_u32_as(user_type, dialect.endian);
    } else {
        out.put_u16_as(user_type as u16, dialect.endian);
    }
}

/// The table name of text columns, which may be empty. Since 7.2 it has one to four parts, and mssql-jdbc accepts no
/// fewer.
fn put_table_name(out: &mut BytesMut, table: &str, dialect: &Dialect) {
    if dialect.version < Version::Tds72 {
        put_long(out, table, LONGEST_NAME, dialect);
        return;
    }
    let parts: Vec<&str> = table.splitn(MOST_PARTS, '.').collect();
    out.put_u8(parts.len() as u8);
    for part in parts {
        put_long(out, part, LONGEST_NAME, dialect);
    }
}

/// No columns are described: they are those of the previous rows.
const NO_COLUMNS: u16 = 0xFFFF;

/// COLMETADATA of rows whose columns the client knows.
pub fn put_none(out: &mut BytesMut, dialect: &Dialect) {
    out.put_u8(COLMETADATA);
    out.put_u16_as(NO_COLUMNS, dialect.endian);
}

/// The table columns from which a result's columns come.
#[derive(Debug, Default)]
pub struct Origins {
    pub tables: Vec<String>,
    /// None for an expression. Columns after them are omitted.
    pub columns: Vec<Option<Origin>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its table's position in TABNAME, from 1.
    pub table: u8,
    pub name: String,
}

/// COLINFO (MS-TDS 2.2.7.3): number, table and status of each column, after TABNAME (2.2.7.23) if there are tables.
pub fn put_colinfo(out: &mut BytesMut, columns: &[Column], origins: &Origins, dialect: &Dialect) {
    const TABNAME: u8 = 0xA4;
    const COLINFO: u8 = 0xA5;
    const EXPRESSION: u8 = 0x04;
    const KEY: u8 = 0x08;
    const HIDDEN: u8 = 0x10;
    const DIFFERENT_NAME: u8 = 0x20;
    if !origins.tables.is_empty() {
        let _ = put_token(out, TABNAME, dialect, |out| {
            origins.tables.iter().for_each(|table| put_named(out, table, dialect));
        });
    }
    let _ = put_token(out, COLINFO, dialect, |out| {
        for (index, column) in columns.iter().enumerate() {
            let flag = |is: bool, flag: u8| if is { flag } else { 0 };
            let status = flag(column.traits.hidden, HIDDEN) | flag(column.traits.key, KEY);
            // clients count the columns themselves: there may be more than 255
            let number = (index + 1) as u8;
            match origins.columns.get(index) {
                None => out.put_slice(&[number, 0, status]),
                Some(None) => out.put_slice(&[number, 0, status | EXPRESSION]),
                Some(Some(own)) if own.name == column.name => out.put_slice(&[number, own.table, status]),
                Some(Some(own)) => {
                    out.put_slice(&[number, own.table, status | DIFFERENT_NAME]);
                    put_short(out, &own.name, dialect);
                }
            }
        }
    });
}

/// A table in TABNAME: in parts since revision 1 of 7.1, but in COLMETADATA since 7.2 only.
fn put_named(out: &mut BytesMut, table: &str, dialect: &Dialect) {
    if !dialect.is_tds7() {
        return put_short(out, table, dialect);
    }
    out.put_u8(1);
    put_long(out, table, LONGEST_NAME, dialect);
}

/// Reads the body of COLMETADATA.
pub fn decode_colmetadata(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<Vec<Column>> {
    let count = match reader.u16("column count")? {
        NO_COLUMNS => 0,
        count => count,
    };
    let mut columns = Vec::new();
    for _ in 0..count {
        take_user_type_7(reader, dialect)?;
        let traits = Traits::of_flags_7(reader.u16("column flags")?);
        let type_info = TypeInfo::decode(reader, dialect)?;
        if type_info.has_table_name() {
            let parts = if dialect.version >= Version::Tds72 { reader.u8("table name parts")? } else { 1 };
            for _ in 0..parts {
                let units = usize::from(reader.u16("table name")?);
                reader.take(2 * units, "table name")?;
            }
        }
        columns.push(Column {
            name: take_short(reader, "column name", dialect)?,
            type_info,
            traits,
            table: None,
        });
    }
    Ok(columns)
}

pub fn take_user_type_7(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<()> {
    let bytes = if dialect.version >= Version::Tds72 { 4 } else { 2 };
    reader.take(bytes, "user type").map(|_| ())
}

fn put_rowfmt(out: &mut BytesMut, columns: &[Column], dialect: &Dialect) -> Option<()> {
    put_token(out, ROWFMT, dialect, |out| {
        out.put_u16_as(columns.len() as u16, dialect.endian);
        for column in columns {
            put_short(out, &column.name, dialect);
            out.put_u8(column.traits.status_5());
            put_column_type_5(out, column, dialect);
        }
    })
}

fn put_rowfmt2(out: &mut BytesMut, columns: &[Column], dialect: &Dialect) {
    out.put_u8(ROWFMT2);
    let at = out.len();
    out.put_u32(0);
    out.put_u16_as(columns.len() as u16, dialect.endian);
    for column in columns {
        put_short(out, &column.name, dialect);
        // catalogue, schema, table: empty; the column's own name
        out.put_slice(&[0; 3]);
        put_short(out, &column.name, dialect);
        out.put_u32_as(u32::from(column.traits.status_5()), dialect.endian);
        put_column_type_5(out, column, dialect);
    }
    let length = (out.len() - at - 4) as u32;
    let length = match dialect.endian {
        crate::tds::dialect::Endian::Little => length.to_le_bytes(),
        crate::tds::dialect::Endian::Big => length.to_be_bytes(),
    };
    out[at..at + 4].copy_from_slice(&length);
}

/// Reads the body of ROWFMT, or of ROWFMT2 if `wide`.
pub fn decode_rowfmt(reader: &mut Reader<'_>, wide: bool, dialect: &Dialect) -> Result<Vec<Column>> {
    decode_formats(reader, wide, true, dialect)
}

/// ROWFMT and PARAMFMT, or the wider forms of both.
pub(super) fn decode_formats(
    reader: &mut Reader<'_>,
    wide: bool,
    of_rows: bool,
    dialect: &Dialect,
) -> Result<Vec<Column>> {
    let length =
        if wide { reader.u32("format length")? as usize } else { usize::from(reader.u16("format length")?) };
    let mut body = Reader::new(reader.take(length, "format")?, dialect.endian);
    let mut columns = Vec::new();
    for _ in 0..body.u16("column count")? {
        let name = take_short(&mut body, "column name", dialect)?;
        if wide && of_rows {
            for what in ["catalogue name", "schema name", "table name", "column name"] {
                take_short(&mut body, what, dialect)?;
            }
        }
        let status = if wide { body.u32("column status")? } else { u32::from(body.u8("column status")?) };
        // the bits of a parameter's status have other meanings
        let traits = if of_rows { Traits::of_status_5(status) } else { Traits::default() };
        columns.push(Column { name, type_info: take_type_5(&mut body, dialect)?, traits, table: None });
    }
    Ok(columns)
}

fn take_type_5(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<TypeInfo> {
    let user_type = reader.u32("user type")?;
    let type_info = TypeInfo::decode(reader, dialect)?.with_user_type(user_type);
    take_short(reader, "locale", dialect)?;
    Ok(type_info)
}

/// User type, type, empty locale.
pub fn put_type_5(out: &mut BytesMut, type_info: &TypeInfo, dialect: &Dialect) {
    out.put_u32_as(type_info.user_type, dialect.endian);
    type_info.encode(out, dialect);
    out.put_u8(0);
}

fn put_column_type_5(out: &mut BytesMut, column: &Column, dialect: &Dialect) {
    let Some(table) = column.table.as_deref().filter(|_| column.type_info.has_table_name()) else {
        return put_type_5(out, &column.type_info, dialect);
    };
    out.put_u32_as(column.type_info.user_type, dialect.endian);
    column.type_info.encode(out, dialect);
    // the type of a text ends without a name
    out.truncate(out.len() - 2);
    put_table_name(out, table, dialect);
    out.put_u8(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::types::TypeToken;

    #[test]
    fn who_takes_wide_tables_gets_no_others() {
        let column = Column {
            name: "n".into(),
            type_info: TypeInfo::new(TypeToken::IntN, 4),
            traits: Traits::default(),
            table: None,
        };
        let mut dialect = Dialect::new(Version::Tds50);
        for (wide_tables, token) in [(false, ROWFMT), (true, ROWFMT2)] {
            dialect.takes.wide_tables = wide_tables;
            let mut out = BytesMut::new();
            put(&mut out, std::slice::from_ref(&column), &dialect);
            assert_eq!(out[0], token);
        }
    }

    #[test]
    fn the_table_of_a_cursor_has_one_part() {
        let column = Column {
            name: "a".into(),
            type_info: TypeInfo::new(TypeToken::IntN, 4),
            traits: Traits::default(),
            table: None,
        };
        for version in [Version::Tds71, Version::Tds74] {
            let mut out = BytesMut::new();
            let own = Origin { table: 1, name: "a".into() };
            let origins = Origins { tables: vec!["t".into()], columns: vec![Some(own)] };
            put_colinfo(&mut out, std::slice::from_ref(&column), &origins, &Dialect::new(version));
            // jTDS's TdsCore.tdsTableNameToken, FreeTDS's tds71_read_table_names
            assert_eq!(out[..], [0xA4, 5, 0, 1, 1, 0, b't', 0, 0xA5, 3, 0, 1, 1, 0], "{version:?}");
        }
    }

    #[test]
    fn columns_are_read_as_they_were_written() {
        let column = |name: &str, token, size, traits| Column {
            name: name.into(),
            type_info: TypeInfo::new(token, size),
            traits,
            table: None,
        };
        let identity = Traits { not_null: true, identity: true, ..Traits::default() };
        let columns = [
            column("n", TypeToken::IntN, 4, identity),
            column("größe", TypeToken::VarChar, 30, Traits::default()),
        ];
        // more than ROWFMT's two-byte length can express
        let many: Vec<_> =
            (0..1600).map(|n| column(&format!("{n:060}"), TypeToken::VarChar, 30, identity)).collect();
        for version in [Version::Tds50, Version::Tds71, Version::Tds74] {
            let dialect = Dialect::new(version);
            for written in [&columns[..], &many] {
                let mut out = BytesMut::new();
                put(&mut out, written, &dialect);
                let mut reader = Reader::new(&out, dialect.endian);
                let read = match reader.u8("token").unwrap() {
                    COLMETADATA => decode_colmetadata(&mut reader, &dialect),
                    token => decode_rowfmt(&mut reader, token == ROWFMT2, &dialect),
                };
                let seen = |columns: &[Column]| -> Vec<_> {
                    columns.iter().map(|c| (c.name.clone(), c.type_info.token, c.traits)).collect()
                };
                assert_eq!(seen(&read.unwrap()), seen(written), "{version:?}");
                assert!(reader.is_empty());
            }
        }
    }
}
