//! Names and messages inside tokens: UTF-16 counted in code units at 7.x, the client's character set counted in bytes
//! at 5.0. Texts that are too long are cut between characters; a character that the character set lacks becomes `?`
//! (data is never encoded here).

use crate::tds::dialect::Dialect;
use crate::tds::wire::{Put, Reader, Result};
use bytes::{BufMut, BytesMut};

/// With a length of one byte (B_VARCHAR).
pub fn put_short(out: &mut BytesMut, text: &str, dialect: &Dialect) {
    let at = out.len();
    out.put_u8(0);
    let count = put_at_most(out, text, 255, dialect);
    out[at] = count as u8;
}

/// With a length of two bytes (US_VARCHAR).
pub fn put_long(out: &mut BytesMut, text: &str, longest: usize, dialect: &Dialect) {
    let at = out.len();
    out.put_u16(0);
    let count = put_at_most(out, text, longest, dialect) as u16;
    let length = match dialect.endian {
        crate::tds::dialect::Endian::Little => count.to_le_bytes(),
        crate::tds::dialect::Endian::Big => count.to_be_bytes(),
    };
    out[at..at + 2].copy_from_slice(&length);
}

/// Reads a text written by [`put_short`].
pub fn take_short(reader: &mut Reader<'_>, what: &'static str, dialect: &Dialect) -> Result<String> {
    let length = usize::from(reader.u8(what)?);
    take(reader, length, what, dialect)
}

/// Reads a text written by [`put_long`].
pub fn take_long(reader: &mut Reader<'_>, what: &'static str, dialect: &Dialect) -> Result<String> {
    let length = usize::from(reader.u16(what)?);
    take(reader, length, what, dialect)
}

fn take(reader: &mut Reader<'_>, length: usize, what: &'static str, dialect: &Dialect) -> Result<String> {
    if dialect.is_tds7() {
        reader.utf16(length, what)
    } else {
        Ok(dialect.charset.decode_lossily(reader.take(length, what)?))
    }
}

/// Returns the number of units written, at most `longest`.
fn put_at_most(out: &mut BytesMut, text: &str, longest: usize, dialect: &Dialect) -> usize {
    let mut count = 0;
    let mut units = [0u8; 4];
    for character in text.chars() {
        if dialect.is_tds7() {
            let width = character.len_utf16();
            if count + width > longest {
                break;
            }
            out.put_utf16(character.encode_utf8(&mut units));
            count += width;
        } else {
            let bytes = dialect.charset.encode(character.encode_utf8(&mut units));
            let bytes = bytes.as_deref().unwrap_or(b"?");
            if count + bytes.len() > longest {
                break;
            }
            out.put_slice(bytes);
            count += bytes.len();
        }
    }
    count
}

/// The body of a token that is preceded by its length in two bytes.
pub fn take_token<'a>(reader: &mut Reader<'a>, what: &'static str) -> Result<Reader<'a>> {
    let length = usize::from(reader.u16(what)?);
    Ok(Reader::new(reader.take(length, what)?, reader.endian()))
}

/// Writes a token whose body is preceded by its length in two bytes. None if the body has more than 65,535 bytes: `out`
/// then remains unchanged.
pub fn put_token(
    out: &mut BytesMut,
    token: u8,
    dialect: &Dialect,
    body: impl FnOnce(&mut BytesMut),
) -> Option<()> {
    let start = out.len();
    out.put_u8(token);
    out.put_u16(0);
    body(out);
    let Ok(length) = u16::try_from(out.len() - start - 3) else {
        out.truncate(start);
        return None;
    };
    let length = match dialect.endian {
        crate::tds::dialect::Endian::Little => length.to_le_bytes(),
        crate::tds::dialect::Endian::Big => length.to_be_bytes(),
    };
    out[start + 1..start + 3].copy_from_slice(&length);
    Some(())
}
