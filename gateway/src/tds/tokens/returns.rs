//! What a procedure returns: RETURNSTATUS, and output parameters as RETURNVALUE at 7.x (MS-TDS 2.2.7.18–19)
//! or PARAMFMT and PARAMS at 5.0.

use super::columns::{put_type_5, put_user_type_7};
use super::text::{put_short, put_token};
use crate::tds::dialect::Dialect;
use crate::tds::types::TypeInfo;
use crate::tds::wire::Put;
use bytes::{BufMut, BytesMut};

pub fn put_status(out: &mut BytesMut, status: i32, dialect: &Dialect) {
    out.put_u8(0x79);
    out.put_u32_as(status as u32, dialect.endian);
}

/// An output parameter with its value as encoded for `type_info`, length included.
#[derive(Clone, Debug)]
pub struct Output {
    /// With its @.
    pub name: String,
    pub ordinal: u16,
    pub type_info: TypeInfo,
    pub value: BytesMut,
}

/// MS-TDS: the value of an OUTPUT parameter; at 5.0 the same bit says return parameter.
const OUTPUT: u8 = 0x01;
/// 5.0: may be NULL.
const NULLABLE_5: u8 = 0x20;

pub fn put_outputs(out: &mut BytesMut, outputs: &[Output], dialect: &Dialect) {
    if outputs.is_empty() {
        return;
    }
    if dialect.is_tds7() {
        for output in outputs {
            out.put_u8(0xAC);
            out.put_u16_as(output.ordinal, dialect.endian);
            put_short(out, &output.name, dialect);
            out.put_u8(OUTPUT);
            put_user_type_7(out, dialect);
            out.put_u16_as(1, dialect.endian);
            output.type_info.encode(out, dialect);
            out.put_slice(&output.value);
        }
        return;
    }
    let formats: Vec<_> = outputs.iter().map(|output| (output.name.as_str(), output.type_info)).collect();
    put_formats(out, &formats, OUTPUT, dialect);
    out.put_u8(0xD7);
    for output in outputs {
        out.put_slice(&output.value);
    }
}

/// What a statement of TDS 5.0 takes: PARAMFMT.
pub fn put_inputs(out: &mut BytesMut, types: &[TypeInfo], dialect: &Dialect) {
    let formats: Vec<_> = types.iter().map(|type_info| ("", *type_info)).collect();
    put_formats(out, &formats, 0, dialect);
}

fn put_formats(out: &mut BytesMut, formats: &[(&str, TypeInfo)], status: u8, dialect: &Dialect) {
    // a table has at most 1,600 columns and a name at most 63 bytes: always within 65,535 bytes unless
    // a procedure has hundreds of long-named outputs, which a client of 5.0 could not declare either
    let _ = put_token(out, 0xEC, dialect, |out| {
        out.put_u16_as(formats.len() as u16, dialect.endian);
        for (name, type_info) in formats {
            put_short(out, name, dialect);
            out.put_u8(status | NULLABLE_5);
            put_type_5(out, type_info, dialect);
        }
    });
}
