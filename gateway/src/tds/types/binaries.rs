//! Byte strings (MS-TDS 2.2.5.5.3) and GUIDs, whose first three groups are little-endian on the wire
//! (2.2.5.5.4).

use super::super::dialect::Dialect;
use super::framing::{put_framed, put_short};
use super::info::TypeInfo;
use super::integers::wrong_length;
use super::token::TypeToken;
use super::value::{ConvertError, Result, Value};
use bytes::{BufMut, BytesMut};
use std::borrow::Cow;

/// Converts between the wire's byte order and RFC 4122's; its own inverse.
fn swap_guid(mut bytes: [u8; 16]) -> [u8; 16] {
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

pub(super) fn decode<'a>(raw: &'a [u8], t: &TypeInfo) -> Result<Value<'a>> {
    if t.token == TypeToken::Guid {
        let bytes = raw.try_into().map_err(|_| wrong_length(t))?;
        return Ok(Value::Guid(swap_guid(bytes)));
    }
    Ok(Value::Binary(Cow::Borrowed(raw)))
}

pub(super) fn encode(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    match (t.token, v) {
        (TypeToken::Guid, Value::Guid(bytes)) => {
            put_short(t, &swap_guid(*bytes), out);
            Ok(())
        }
        (token, Value::Binary(bytes)) if token != TypeToken::Guid => put_framed(v.kind(), t, d, out, |out| {
            out.put_slice(bytes);
            Ok(())
        }),
        _ => Err(ConvertError::conversion(&format!("a value of type {}", v.kind()), t.token.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{decode_value, encode_value};
    use super::*;
    use crate::tds::dialect::Version;

    #[test]
    fn guids_swap_their_first_three_groups() {
        // MS-DTYP 2.3.4.2: {00112233-4455-6677-8899-AABBCCDDEEFF}
        let wire =
            [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF];
        let rfc =
            [0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF];
        let (t, d) = (TypeInfo::new(TypeToken::Guid, 16), Dialect::new(Version::Tds74));
        assert_eq!(decode_value(Some(&wire), &t, &d), Ok(Value::Guid(rfc)));
        let mut out = BytesMut::new();
        encode_value(&Value::Guid(rfc), &t, &d, &mut out).unwrap();
        assert_eq!(out[0], 16);
        assert_eq!(out[1..], wire);
    }

    #[test]
    fn an_empty_binary_of_tds_5_would_be_null() {
        let (t, d) = (TypeInfo::new(TypeToken::VarBinary, 255), Dialect::new(Version::Tds50));
        let mut out = BytesMut::new();
        assert!(encode_value(&Value::Binary(Cow::Borrowed(&[])), &t, &d, &mut out).is_err());
        let image = TypeInfo::new(TypeToken::Image, 1000);
        encode_value(&Value::Binary(Cow::Borrowed(&[])), &image, &d, &mut out).unwrap();
        assert_eq!(out.len(), 1 + 16 + 8 + 4);
    }
}
