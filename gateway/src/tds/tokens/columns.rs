//! The description of a result set: COLMETADATA at 7.x (MS-TDS 2.2.7.4), ROWFMT and for wide ones ROWFMT2
//! at 5.0 (FreeTDS src/tds/token.c, tds5_process_result, tds5_process_result2).

use super::text::{put_short, put_token};
use crate::tds::dialect::{Dialect, Version};
use crate::tds::types::TypeInfo;
use crate::tds::wire::Put;
use bytes::{BufMut, BytesMut};

/// The token before each row.
pub const ROW: u8 = 0xD1;

#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub type_info: TypeInfo,
}

/// MS-TDS flag and 5.0 status: may be NULL.
const NULLABLE_7: u16 = 0x0001;
const NULLABLE_5: u8 = 0x20;

pub fn put(out: &mut BytesMut, columns: &[Column], dialect: &Dialect) {
    if dialect.is_tds7() {
        put_colmetadata(out, columns, dialect);
    } else if put_rowfmt(out, columns, dialect).is_none() {
        put_rowfmt2(out, columns, dialect);
    }
}

fn put_colmetadata(out: &mut BytesMut, columns: &[Column], dialect: &Dialect) {
    out.put_u8(0x81);
    out.put_u16_as(columns.len() as u16, dialect.endian);
    for column in columns {
        put_user_type_7(out, dialect);
        out.put_u16_as(NULLABLE_7, dialect.endian);
        column.type_info.encode(out, dialect);
        if column.type_info.has_table_name() {
            put_no_table(out, dialect);
        }
        put_short(out, &column.name, dialect);
    }
}

/// User type 0, which is four bytes wide since 7.2.
pub fn put_user_type_7(out: &mut BytesMut, dialect: &Dialect) {
    if dialect.version >= Version::Tds72 {
        out.put_u32_as(0, dialect.endian);
    } else {
        out.put_u16_as(0, dialect.endian);
    }
}

/// The table name text columns carry: none. Counted by parts since 7.2.
fn put_no_table(out: &mut BytesMut, dialect: &Dialect) {
    if dialect.version >= Version::Tds72 {
        out.put_u8(0);
    } else {
        out.put_u16_as(0, dialect.endian);
    }
}

fn put_rowfmt(out: &mut BytesMut, columns: &[Column], dialect: &Dialect) -> Option<()> {
    put_token(out, 0xEE, dialect, |out| {
        out.put_u16_as(columns.len() as u16, dialect.endian);
        for column in columns {
            put_short(out, &column.name, dialect);
            out.put_u8(NULLABLE_5);
            put_type_5(out, &column.type_info, dialect);
        }
    })
}

fn put_rowfmt2(out: &mut BytesMut, columns: &[Column], dialect: &Dialect) {
    out.put_u8(0x61);
    let at = out.len();
    out.put_u32(0);
    out.put_u16_as(columns.len() as u16, dialect.endian);
    for column in columns {
        put_short(out, &column.name, dialect);
        // catalogue, schema, table, column: not told
        out.put_slice(&[0; 4]);
        out.put_u32_as(u32::from(NULLABLE_5), dialect.endian);
        put_type_5(out, &column.type_info, dialect);
    }
    let length = (out.len() - at - 4) as u32;
    let length = match dialect.endian {
        crate::tds::dialect::Endian::Little => length.to_le_bytes(),
        crate::tds::dialect::Endian::Big => length.to_be_bytes(),
    };
    out[at..at + 4].copy_from_slice(&length);
}

/// User type, type, empty locale.
pub fn put_type_5(out: &mut BytesMut, type_info: &TypeInfo, dialect: &Dialect) {
    out.put_u32_as(type_info.user_type, dialect.endian);
    type_info.encode(out, dialect);
    out.put_u8(0);
}
