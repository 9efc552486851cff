//! Character data. TDS 7.x: NCHAR, NVARCHAR and NTEXT in UTF-16LE, the single-byte types in their collation's code
//! page. TDS 5.0: everything in the login's character set, except unichar, univarchar and unitext in UTF-16 of the
//! client's byte order (FreeTDS src/tds/token.c adjust_character_column_size).

use super::super::charset::{self, Charset};
use super::super::dialect::{Dialect, Endian};
use super::collation;
use super::framing::put_framed;
use super::info::TypeInfo;
use super::token::TypeToken;
use super::value::{ConvertError, Result, Value};
use bytes::{BufMut, BytesMut};
use std::borrow::Cow;

enum Form {
    Utf16(Endian),
    Charset(&'static Charset),
}

fn form(t: &TypeInfo, d: &Dialect) -> Form {
    use TypeToken::*;
    match t.token {
        NChar | NVarChar | NText | Xml => Form::Utf16(Endian::Little),
        UniText | LongBinary | BlobBinary | BlobUniText => Form::Utf16(d.endian),
        BigChar | BigVarChar | Text if d.is_tds7() => {
            Form::Charset(collation::charset(t.collation, d).unwrap_or(&charset::ASCII))
        }
        _ => Form::Charset(d.charset),
    }
}

pub(super) fn decode<'a>(raw: &'a [u8], t: &TypeInfo, d: &Dialect) -> Result<Value<'a>> {
    let form = form(t, d);
    let text = match form {
        Form::Utf16(endian) => {
            // XML may begin with a byte order mark
            let raw = match (t.token, raw) {
                (TypeToken::Xml, [0xFF, 0xFE, rest @ ..]) => rest,
                _ => raw,
            };
            let encoding = if endian == Endian::Big { encoding_rs::UTF_16BE } else { encoding_rs::UTF_16LE };
            encoding.decode_without_bom_handling_and_without_replacement(raw)
        }
        Form::Charset(charset) => charset.decode(raw),
    };
    match text {
        Some(text) => Ok(Value::Text(text)),
        None => {
            let name = match form {
                Form::Utf16(_) => "UTF-16",
                Form::Charset(charset) => charset.name(),
            };
            let text = format!("a value of type {} holds bytes that are not {name}", t.token.name());
            Err(ConvertError::charset(text))
        }
    }
}

pub(super) fn encode(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    let text = v.to_text(t.token.name())?;
    // TDS 5.0 cannot distinguish an empty text from NULL: ASE stores and sends it as one blank
    let text = if text.is_empty() && !d.is_tds7() { Cow::Borrowed(" ") } else { text };
    let text = without_padding(&text, t, d);
    put_framed(v.kind(), t, d, out, |out| match form(t, d) {
        Form::Utf16(endian) => {
            out.reserve(text.len() * 2);
            for unit in text.encode_utf16() {
                match endian {
                    Endian::Little => out.put_u16_le(unit),
                    Endian::Big => out.put_u16(unit),
                }
            }
            Ok(())
        }
        Form::Charset(charset) => {
            let bytes = charset.encode(text).map_err(|character| no_equivalent(character, charset))?;
            out.put_slice(&bytes);
            Ok(())
        }
    })
}

/// A text of nchar(n) without the blanks for which the type has no room: PostgreSQL pads by characters, some of which
/// are two UTF-16 units.
fn without_padding<'v>(text: &'v str, t: &TypeInfo, d: &Dialect) -> &'v str {
    let fits = t.token != TypeToken::NChar || text.len() * 2 <= t.size as usize;
    if fits || !text.ends_with(' ') {
        return text;
    }
    let kept = cut(text, t, d);
    match text.get(kept.len()..) {
        Some(rest) if rest.bytes().all(|byte| byte == b' ') => kept,
        _ => text,
    }
}

/// The part of a text that fits into a type's size.
pub(super) fn cut<'v>(text: &'v str, t: &TypeInfo, d: &Dialect) -> &'v str {
    let form = form(t, d);
    let length = |character: char| match form {
        Form::Utf16(_) => character.len_utf16() * 2,
        Form::Charset(charset) => {
            charset.encode(character.encode_utf8(&mut [0; 4])).map_or(1, |bytes| bytes.len())
        }
    };
    let mut left = t.size as usize;
    let fits = |(_, character): &(usize, char)| {
        let rest = left.checked_sub(length(*character));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let end = text.char_indices().take_while(fits).last();
    end.map_or("", |(at, character)| text.get(..at + character.len_utf8()).unwrap_or(text))
}

fn no_equivalent(character: char, charset: &Charset) -> ConvertError {
    let code = u32::from(character);
    ConvertError::charset(format!(
        "the character '{character}' (U+{code:04X}) does not exist in {}",
        charset.name()
    ))
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
    fn cut_texts_end_with_a_whole_character() {
        let d = Dialect::new(Version::Tds74);
        let cut = |text, token, size| {
            let t = TypeInfo::new(token, size).with_collation(super::super::UTF8_COLLATION);
            super::cut(text, &t, &d)
        };
        assert_eq!(cut("abc", TypeToken::NVarChar, 4), "ab");
        assert_eq!(cut("a😸", TypeToken::NVarChar, 4), "a");
        assert_eq!(cut("aéb", TypeToken::BigVarChar, 2), "a");
        assert_eq!(cut("aéb", TypeToken::BigVarChar, 3), "aé");
        assert_eq!(cut("ab", TypeToken::BigVarChar, 3), "ab");
        assert_eq!(cut("é", TypeToken::BigVarChar, 1), "");
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
    fn a_padded_text_has_the_units_of_its_type() {
        let (t, d) = (TypeInfo::new(TypeToken::NChar, 6), Dialect::new(Version::Tds74));
        // three characters, four units
        assert_eq!(encoded("😸  ", &t, &d).unwrap(), [6, 0, 0x3D, 0xD8, 0x38, 0xDE, 0x20, 0]);
        assert_eq!(encoded("a  ", &t, &d).unwrap(), [6, 0, 0x61, 0, 0x20, 0, 0x20, 0]);
        assert_eq!(encoded("😸😸 ", &t, &d).unwrap_err().kind, ErrorKind::Truncation);
        let varying = TypeInfo::new(TypeToken::NVarChar, 2);
        assert_eq!(encoded("a ", &varying, &d).unwrap_err().kind, ErrorKind::Truncation);
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
    fn a_code_page_of_dos() {
        let d = Dialect::new(Version::Tds74);
        let t = TypeInfo::new(TypeToken::BigVarChar, 20).with_collation([0x09, 0x04, 0xD0, 0x00, 42]);
        assert_eq!(decode_value(Some(&[0x82]), &t, &d), Ok(Value::Text("é".into())));
        let error = encoded("π", &t, &d).unwrap_err();
        assert_eq!(error.text, "the character 'π' (U+03C0) does not exist in cp850");
    }

    #[test]
    fn a_code_page_without_a_table_takes_ascii_only() {
        let d = Dialect::new(Version::Tds74);
        // Hindi has no code page
        let t = TypeInfo::new(TypeToken::BigVarChar, 20).with_collation([0x39, 0x04, 0xD0, 0x00, 0]);
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
