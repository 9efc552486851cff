//! The results of a procedure: RETURNSTATUS, and output parameters as RETURNVALUE at 7.x (MS-TDS 2.2.7.18–19) or
//! PARAMFMT and PARAMS at 5.0.

use super::columns::{decode_formats, put_type_5, put_user_type_7, take_user_type_7, Column, Traits};
use super::text::{put_short, put_token, take_short};
use crate::tds::dialect::Dialect;
use crate::tds::types::TypeInfo;
use crate::tds::wire::{Put, Reader, Result};
use bytes::{BufMut, BytesMut};

pub const RETURNSTATUS: u8 = 0x79;
pub const RETURNVALUE: u8 = 0xAC;
pub const PARAMFMT: u8 = 0xEC;
pub const PARAMFMT2: u8 = 0x20;
pub const PARAMS: u8 = 0xD7;

pub fn put_status(out: &mut BytesMut, status: i32, dialect: &Dialect) {
    out.put_u8(RETURNSTATUS);
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
    /// The value of a user-defined function, which is single and not a parameter.
    pub of_function: bool,
}

/// MS-TDS: the value of an OUTPUT parameter; at 5.0 the same bit marks a return parameter.
const OUTPUT: u8 = 0x01;
/// MS-TDS: the return value of a user-defined function.
const OF_FUNCTION: u8 = 0x02;
/// 5.0: may be NULL.
const NULLABLE_5: u8 = 0x20;

pub fn put_outputs(out: &mut BytesMut, outputs: &[Output], dialect: &Dialect) {
    if outputs.is_empty() {
        return;
    }
    if dialect.is_tds7() {
        for output in outputs {
            out.put_u8(RETURNVALUE);
            out.put_u16_as(output.ordinal, dialect.endian);
            put_short(out, &output.name, dialect);
            out.put_u8(if output.of_function { OF_FUNCTION } else { OUTPUT });
            put_user_type_7(out, output.type_info.user_type, dialect);
            out.put_u16_as(1, dialect.endian);
            output.type_info.encode(out, dialect);
            out.put_slice(&output.value);
        }
        return;
    }
    let formats: Vec<_> = outputs.iter().map(|output| (output.name.as_str(), output.type_info)).collect();
    put_formats(out, &formats, OUTPUT, dialect);
    out.put_u8(PARAMS);
    for output in outputs {
        out.put_slice(&output.value);
    }
}

/// The parameters of a statement of TDS 5.0: PARAMFMT.
pub fn put_inputs(out: &mut BytesMut, types: &[TypeInfo], dialect: &Dialect) {
    let formats: Vec<_> = types.iter().map(|type_info| ("", *type_info)).collect();
    put_formats(out, &formats, 0, dialect);
}

fn put_formats(out: &mut BytesMut, formats: &[(&str, TypeInfo)], status: u8, dialect: &Dialect) {
    // a table has at most 1,600 columns and a name at most 63 bytes: always within 65,535 bytes unless
    // a procedure has hundreds of long-named outputs, which a client of 5.0 could not declare either
    let _ = put_token(out, PARAMFMT, dialect, |out| {
        out.put_u16_as(formats.len() as u16, dialect.endian);
        for (name, type_info) in formats {
            put_short(out, name, dialect);
            out.put_u8(status | NULLABLE_5);
            put_type_5(out, type_info, dialect);
        }
    });
}

/// Reads the body of RETURNSTATUS.
pub fn decode_status(reader: &mut Reader<'_>) -> Result<i32> {
    reader.i32("return status")
}

/// Reads RETURNVALUE up to the value, which is encoded as in a row.
pub fn decode_returned(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<Column> {
    reader.u16("parameter ordinal")?;
    let name = take_short(reader, "parameter name", dialect)?;
    reader.u8("parameter status")?;
    take_user_type_7(reader, dialect)?;
    reader.u16("parameter flags")?;
    Ok(Column { name, type_info: TypeInfo::decode(reader, dialect)?, traits: Traits::default(), table: None })
}

/// Reads the body of PARAMFMT, or of PARAMFMT2 if `wide`.
pub fn decode_paramfmt(reader: &mut Reader<'_>, wide: bool, dialect: &Dialect) -> Result<Vec<Column>> {
    decode_formats(reader, wide, false, dialect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::{Endian, Version};
    use crate::tds::types::{encode_value, take_row_value, TypeToken, Value};

    #[test]
    fn outputs_are_read_as_they_were_written() {
        let big = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
        for dialect in [Dialect::new(Version::Tds74), Dialect::new(Version::Tds71), big] {
            let type_info = TypeInfo::new(TypeToken::IntN, 4);
            let mut value = BytesMut::new();
            encode_value(&Value::Int(8), &type_info, &dialect, &mut value).unwrap();
            let mut out = BytesMut::new();
            let output = Output { name: "@v".into(), ordinal: 0, type_info, value, of_function: false };
            put_outputs(&mut out, &[output], &dialect);
            put_status(&mut out, -4, &dialect);
            let mut reader = Reader::new(&out, dialect.endian);
            let returned = match reader.u8("token").unwrap() {
                RETURNVALUE => decode_returned(&mut reader, &dialect).unwrap(),
                _ => {
                    let formats = decode_paramfmt(&mut reader, false, &dialect).unwrap();
                    assert_eq!((formats.len(), reader.u8("token")), (1, Ok(PARAMS)));
                    formats[0].clone()
                }
            };
            assert_eq!(returned.name, "@v");
            let raw = take_row_value(&mut reader, &returned.type_info, &dialect).unwrap();
            let expected =
                [8i32.to_le_bytes(), 8i32.to_be_bytes()][usize::from(dialect.endian == Endian::Big)];
            assert_eq!(raw.as_deref(), Some(&expected[..]));
            assert_eq!(reader.u8("token"), Ok(RETURNSTATUS));
            assert_eq!(decode_status(&mut reader), Ok(-4));
            assert!(reader.is_empty());
        }
    }
}
