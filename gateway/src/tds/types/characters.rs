//! Character data. TDS 7.x: NCHAR and its like in UTF-16LE, the single-byte types in their collation's
//! code page. TDS 5.0: everything in the login's character set, except unichar, univarchar and unitext
//! in UTF-16 of the client's byte order (FreeTDS src/tds/token.c adjust_character_column_size).

use super::super::dialect::{Dialect, Endian};
use super::collation;
use super::framing::put_framed;
use super::info::TypeInfo;
use super::token::TypeToken;
use super::value::{ConvertError, Result, Value};
use bytes::{BufMut, BytesMut};
use encoding_rs::Encoding;
use std::borrow::Cow;

enum Charset {
    Utf16(Endian),
    Encoding(&'static Encoding),
    /// A code page of which only the common half is known.
    Ascii,
}

fn charset(t: &TypeInfo, d: &Dialect) -> Charset {
    use TypeToken::*;
    match t.token {
        NChar | NVarChar | NText | Xml => Charset::Utf16(Endian::Little),
        UniText | LongBinary => Charset::Utf16(d.endian),
        BigChar | BigVarChar | Text if d.is_tds7() => {
            collation::encoding(t.collation, d).map_or(Charset::Ascii, Charset::Encoding)
        }
        _ => Charset::Encoding(d.charset),
    }
}

impl Charset {
    fn name(&self) -> &'static str {
        match self {
            Charset::Utf16(_) => "UTF-16",
            Charset::Encoding(encoding) => encoding.name(),
            Charset::Ascii => "the ASCII part of its code page",
        }
    }
}

/// Most bytes a character takes, to size columns of this encoding by.
pub fn max_bytes_per_char(encoding: &'static Encoding) -> u32 {
    if encoding.is_single_byte() {
        return 1;
    }
    let two = [encoding_rs::SHIFT_JIS, encoding_rs::EUC_KR, encoding_rs::BIG5, encoding_rs::GBK];
    match encoding {
        _ if two.contains(&encoding) => 2,
        _ if encoding == encoding_rs::EUC_JP => 3,
        // escape sequences to a character and back
        _ if encoding == encoding_rs::ISO_2022_JP => 8,
        _ => 4,
    }
}

pub(super) fn decode<'a>(raw: &'a [u8], t: &TypeInfo, d: &Dialect) -> Result<Value<'a>> {
    let charset = charset(t, d);
    let text = match charset {
        Charset::Utf16(endian) => {
            // XML may begin with a byte order mark
            let raw = match (t.token, raw) {
                (TypeToken::Xml, [0xFF, 0xFE, rest @ ..]) => rest,
                _ => raw,
            };
            let encoding = if endian == Endian::Big { encoding_rs::UTF_16BE } else { encoding_rs::UTF_16LE };
            encoding.decode_without_bom_handling_and_without_replacement(raw)
        }
        Charset::Encoding(encoding) => encoding.decode_without_bom_handling_and_without_replacement(raw),
        Charset::Ascii if raw.is_ascii() => std::str::from_utf8(raw).ok().map(Cow::Borrowed),
        Charset::Ascii => None,
    };
    match text {
        Some(text) => Ok(Value::Text(text)),
        None => {
            let text =
                format!("a value of type {} holds bytes that are not {}", t.token.name(), charset.name());
            Err(ConvertError::charset(text))
        }
    }
}

pub(super) fn encode(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    let text = v.to_text(t.token.name())?;
    // TDS 5.0 cannot tell an empty text from NULL: ASE keeps and sends it as one blank
    let text = if text.is_empty() && !d.is_tds7() { Cow::Borrowed(" ") } else { text };
    put_framed(v.kind(), t, d, out, |out| match charset(t, d) {
        Charset::Utf16(endian) => {
            out.reserve(text.len() * 2);
            for unit in text.encode_utf16() {
                match endian {
                    Endian::Little => out.put_u16_le(unit),
                    Endian::Big => out.put_u16(unit),
                }
            }
            Ok(())
        }
        Charset::Encoding(encoding) => {
            let (bytes, _, unmappable) = encoding.encode(&text);
            // encoding_rs would write UTF-8 for encodings that are only ever read
            if unmappable || encoding.output_encoding() != encoding {
                return Err(no_equivalent(encoding.name()));
            }
            out.put_slice(&bytes);
            Ok(())
        }
        Charset::Ascii if text.is_ascii() => {
            out.put_slice(text.as_bytes());
            Ok(())
        }
        Charset::Ascii => Err(no_equivalent(Charset::Ascii.name())),
    })
}

fn no_equivalent(charset: &str) -> ConvertError {
    ConvertError::charset(format!("a text holds a character that does not exist in {charset}"))
}

#[cfg(test)]
mod tests {
    use super::super::{decode_value, encode_value, ErrorKind};
    use super::*;
    use crate::tds::dialect::Version;

    fn encoded(text: &str, t: &TypeInfo, d: &Dialect) -> Result<Vec<u8>> {
        let mut out = BytesMut::new();
        encode_value(&Value::Text(text.into()), t, d, &mut out)?;
        Ok(out.to_vec())
    }

    #[test]
    fn nvarchar_is_utf16le() {
        let (t, d) = (TypeInfo::new(TypeToken::NVarChar, 8), Dialect::new(Version::Tds71));
        assert_eq!(encoded("Aé", &t, &d).unwrap(), [4, 0, 0x41, 0, 0xE9, 0]);
        assert_eq!(decode_value(Some(&[0x41, 0, 0xE9, 0]), &t, &d), Ok(Value::Text("Aé".into())));
        let lone_surrogate = decode_value(Some(&[0x00, 0xD8]), &t, &d).unwrap_err();
        assert_eq!(lone_surrogate.kind, ErrorKind::Charset);
        assert_eq!(encoded("12345", &t, &d).unwrap_err().kind, ErrorKind::Truncation);
    }

    #[test]
    fn single_byte_text_is_in_the_collations_code_page() {
        let d = Dialect::new(Version::Tds74);
        let cyrillic = [0x19, 0x04, 0xD0, 0x00, 0x00];
        let t = TypeInfo::new(TypeToken::BigVarChar, 20).with_collation(cyrillic);
        assert_eq!(decode_value(Some(&[0xC4, 0xE0]), &t, &d), Ok(Value::Text("Да".into())));
        assert_eq!(encoded("Да", &t, &d).unwrap(), [2, 0, 0xC4, 0xE0]);
        assert_eq!(encoded("é", &t, &d).unwrap_err().kind, ErrorKind::Charset);
    }

    #[test]
    fn a_code_page_without_a_table_takes_ascii_only() {
        let d = Dialect::new(Version::Tds74);
        let t = TypeInfo::new(TypeToken::BigVarChar, 20).with_collation([0x09, 0x04, 0xD0, 0x00, 42]);
        assert_eq!(decode_value(Some(b"ring"), &t, &d), Ok(Value::Text("ring".into())));
        assert_eq!(decode_value(Some(&[0x82]), &t, &d).unwrap_err().kind, ErrorKind::Charset);
    }

    #[test]
    fn an_empty_text_of_tds_5_is_one_blank() {
        let d = Dialect::new(Version::Tds50);
        assert_eq!(encoded("", &TypeInfo::new(TypeToken::VarChar, 255), &d).unwrap(), [1, b' ']);
        assert_eq!(encoded("", &TypeInfo::new(TypeToken::LongChar, 255), &d).unwrap(), [1, 0, 0, 0, b' ']);
        let t = TypeInfo::new(TypeToken::BigVarChar, 20);
        assert_eq!(encoded("", &t, &Dialect::new(Version::Tds74)).unwrap(), [0, 0]);
    }

    #[test]
    fn univarchar_follows_the_clients_byte_order() {
        let t = TypeInfo::new(TypeToken::LongBinary, 20).with_user_type(35);
        let little = Dialect::new(Version::Tds50);
        let big = Dialect { endian: Endian::Big, ..little };
        assert_eq!(decode_value(Some(&[0x41, 0]), &t, &little), Ok(Value::Text("A".into())));
        assert_eq!(decode_value(Some(&[0, 0x41]), &t, &big), Ok(Value::Text("A".into())));
        assert_eq!(encoded("A", &t, &big).unwrap(), [0, 0, 0, 2, 0, 0x41]);
    }
}
