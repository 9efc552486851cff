//! The boundaries of values: TYPE_VARBYTE of MS-TDS 2.2.5.2.3, FreeTDS tds_generic_get and tds_generic_put in
//! src/tds/data.c.

use super::super::dialect::{Dialect, Endian};
use super::super::wire::{Put, Reader, Result, WireError};
use super::info::TypeInfo;
use super::token::Layout;
use super::value::{self, ConvertError};
use bytes::{BufMut, BytesMut};
use std::borrow::Cow;

const PARTIAL_NULL: u64 = u64::MAX;
const PARTIAL_UNKNOWN_LENGTH: u64 = u64::MAX - 1;

/// Splits a parameter's value off the message without decoding it; None = NULL. Chunked values are joined, all others
/// borrowed.
#[inline]
pub fn take_value<'a>(r: &mut Reader<'a>, t: &TypeInfo, d: &Dialect) -> Result<Option<Cow<'a, [u8]>>> {
    // MS-TDS 2.2.5.2.3: only rows contain text pointer and timestamp
    if d.is_tds7() && t.token.layout() == Layout::TextPointer && !t.is_max() {
        let length = r.u32("value length")?;
        return if length == u32::MAX { Ok(None) } else { borrow(r, length as usize) };
    }
    take_row_value(r, t, d)
}

/// Like [`take_value`], for the values of a row (results; bulk copy at TDS 7.x).
#[inline]
pub fn take_row_value<'a>(r: &mut Reader<'a>, t: &TypeInfo, _d: &Dialect) -> Result<Option<Cow<'a, [u8]>>> {
    if t.is_max() {
        return take_partial(r);
    }
    let length = match t.token.layout() {
        Layout::Fixed(0) => return Ok(None),
        Layout::Fixed(bytes) => usize::from(bytes),
        Layout::ByteLength => match r.u8("value length")? {
            0 => return Ok(None),
            length => usize::from(length),
        },
        Layout::ShortLength => match r.u16("value length")? {
            u16::MAX => return Ok(None),
            length => usize::from(length),
        },
        Layout::LongLength => match r.u32("value length")? {
            0 => return Ok(None),
            length => length as usize,
        },
        Layout::TextPointer => {
            let pointer = r.u8("text pointer length")?;
            if pointer == 0 {
                return Ok(None);
            }
            r.take(usize::from(pointer) + TIMESTAMP_BYTES, "text pointer")?;
            r.u32("value length")? as usize
        }
        Layout::Partial => return take_partial(r),
        Layout::Stream => return take_blob(r, t),
    };
    borrow(r, length)
}

const TIMESTAMP_BYTES: usize = 8;

fn borrow<'a>(r: &mut Reader<'a>, length: usize) -> Result<Option<Cow<'a, [u8]>>> {
    Ok(Some(Cow::Borrowed(r.take(length, "value")?)))
}

/// PLP_BODY of MS-TDS 2.2.5.2.3: a total length or "unknown", then chunks until an empty one. A value of one chunk is
/// borrowed.
fn take_partial<'a>(r: &mut Reader<'a>) -> Result<Option<Cow<'a, [u8]>>> {
    let total = r.u64("value length")?;
    if total == PARTIAL_NULL {
        return Ok(None);
    }
    let mut value = Cow::Borrowed(&[][..]);
    loop {
        let length = r.u32("chunk length")? as usize;
        if length == 0 {
            break;
        }
        let chunk = r.take(length, "chunk")?;
        if value.is_empty() {
            value = Cow::Borrowed(chunk);
        } else {
            value.to_mut().extend_from_slice(chunk);
        }
    }
    if total != PARTIAL_UNKNOWN_LENGTH && total != value.len() as u64 {
        return Err(WireError::Malformed(format!("chunks of {} bytes in a value of {total}", value.len())));
    }
    Ok(Some(value))
}

/// More chunks follow a chunk whose length has this bit.
const MORE_CHUNKS: u32 = 1 << 31;

/// A BLOB of TDS 5.0: its serialization and class, then chunks up to one without the bit (jTDS TdsData.java,
/// writeTds5Param). An empty one is NULL, as for the other long types of 5.0.
fn take_blob<'a>(r: &mut Reader<'a>, t: &TypeInfo) -> Result<Option<Cow<'a, [u8]>>> {
    let serialization = r.u8("BLOB serialization")?;
    if serialization != 0 {
        let text = format!("a BLOB of serialization {serialization}: only 0, bytes as they are, is served");
        return Err(WireError::Malformed(text));
    }
    let class = r.u16("BLOB class")?;
    if class != 0 {
        return Err(WireError::Malformed(format!("a class in a {} that is not an object", t.token.name())));
    }
    let mut value = Cow::Borrowed(&[][..]);
    loop {
        let length = r.u32("chunk length")?;
        let chunk = r.take((length & !MORE_CHUNKS) as usize, "chunk")?;
        if value.is_empty() {
            value = Cow::Borrowed(chunk);
        } else {
            value.to_mut().extend_from_slice(chunk);
        }
        if length & MORE_CHUNKS == 0 {
            return Ok((!value.is_empty()).then_some(value));
        }
    }
}

/// The NULL of a type; an error for types without NULL.
pub(super) fn put_null(t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> value::Result<()> {
    if t.is_max() {
        out.put_u64_le(PARTIAL_NULL);
        return Ok(());
    }
    match t.token.layout() {
        Layout::Fixed(0) => {}
        Layout::Fixed(_) => return Err(ConvertError::conversion("NULL", t.token.name())),
        Layout::ByteLength | Layout::TextPointer => out.put_u8(0),
        Layout::ShortLength => out.put_u16_as(u16::MAX, d.endian),
        Layout::LongLength => out.put_u32_as(0, d.endian),
        Layout::Partial => out.put_u64_le(PARTIAL_NULL),
        Layout::Stream => put_blob_head(0, d, out),
    }
    Ok(())
}

/// The header before the only chunk of a BLOB.
fn put_blob_head(length: u32, d: &Dialect, out: &mut BytesMut) {
    out.put_bytes(0, 3);
    out.put_u32_as(length, d.endian);
}

/// Writes the frame of a value around the bytes written by `body`, and checks the length against the type's size.
/// `kind` names the value in errors. On an error the output is left incomplete.
pub(super) fn put_framed(
    kind: &str,
    t: &TypeInfo,
    d: &Dialect,
    out: &mut BytesMut,
    body: impl FnOnce(&mut BytesMut) -> value::Result<()>,
) -> value::Result<()> {
    // room for the longest prefix of the layout, whose length is inserted afterwards
    let start = out.len();
    if t.is_max() {
        out.put_bytes(0, 12);
    } else {
        match t.token.layout() {
            Layout::Fixed(_) => {}
            Layout::ByteLength => out.put_u8(0),
            Layout::ShortLength => out.put_u16(0),
            Layout::LongLength => out.put_u32(0),
            Layout::TextPointer => {
                // a dummy text pointer; a real one is inserted afterwards
                out.put_u8(16);
                out.put_bytes(0xFF, 16 + TIMESTAMP_BYTES);
                out.put_u32(0);
            }
            Layout::Partial => out.put_bytes(0, 12),
            Layout::Stream => put_blob_head(0, d, out),
        }
    }
    let body_start = out.len();
    body(out)?;
    let length = out.len() - body_start;
    // the described length of a TEXT is only an expectation for clients
    if length as u64 > u64::from(t.size) && t.token.layout() != Layout::TextPointer {
        return Err(ConvertError::truncation(kind, t.token.name()));
    }
    if t.is_max() {
        let Ok(chunk) = u32::try_from(length) else {
            return Err(ConvertError::truncation(kind, t.token.name()));
        };
        patch(out, start, &u64::from(chunk).to_le_bytes());
        if length == 0 {
            // the reserved bytes are the empty chunk that ends the value
            return Ok(());
        }
        patch(out, start + 8, &chunk.to_le_bytes());
        out.put_u32_le(0);
        return Ok(());
    }
    // NULL if a length of 0 means NULL: an empty value has the same form
    let ends_in_null = match t.token.layout() {
        Layout::ByteLength | Layout::LongLength | Layout::Stream => length == 0,
        _ => false,
    };
    if ends_in_null {
        return Err(ConvertError::conversion(&format!("an empty {kind} value"), t.token.name()));
    }
    let big = d.endian == super::super::dialect::Endian::Big;
    let word = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
    let too_long = || ConvertError::truncation(kind, t.token.name());
    match t.token.layout() {
        Layout::ByteLength => patch(out, start, &[u8::try_from(length).map_err(|_| too_long())?]),
        Layout::ShortLength => {
            let length = u16::try_from(length).ok().filter(|n| *n != u16::MAX).ok_or_else(too_long)?;
            patch(out, start, &if big { length.to_be_bytes() } else { length.to_le_bytes() });
        }
        Layout::LongLength => patch(out, start, &word(u32::try_from(length).map_err(|_| too_long())?)),
        Layout::TextPointer => {
            let length = u32::try_from(length).map_err(|_| too_long())?;
            patch(out, body_start - 4, &word(length));
        }
        Layout::Stream => {
            let length = u32::try_from(length).ok().filter(|n| n & MORE_CHUNKS == 0).ok_or_else(too_long)?;
            patch(out, body_start - 4, &word(length));
        }
        Layout::Fixed(_) | Layout::Partial => {}
    }
    Ok(())
}

fn patch(out: &mut BytesMut, at: usize, bytes: &[u8]) {
    if let Some(target) = out.get_mut(at..at + bytes.len()) {
        target.copy_from_slice(bytes);
    }
}

/// Writes a short value with its length, for layouts Fixed and ByteLength.
#[inline]
pub(super) fn put_short(t: &TypeInfo, bytes: &[u8], out: &mut BytesMut) {
    if t.token.layout() == Layout::ByteLength {
        out.put_u8(bytes.len() as u8);
    }
    out.put_slice(bytes);
}

/// A number of 2, 4 or 8 bytes, highest byte first, for layouts Fixed and ByteLength.
#[inline]
pub fn put_number(t: &TypeInfo, big_endian: &[u8], d: &Dialect, out: &mut BytesMut) {
    if let Some(bytes) = big_endian.first_chunk::<8>() {
        put_ordered(t, *bytes, d, out);
    } else if let Some(bytes) = big_endian.first_chunk::<4>() {
        put_ordered(t, *bytes, d, out);
    } else if let Some(bytes) = big_endian.first_chunk::<2>() {
        put_ordered(t, *bytes, d, out);
    }
}

#[inline]
fn put_ordered<const N: usize>(t: &TypeInfo, mut bytes: [u8; N], d: &Dialect, out: &mut BytesMut) {
    if d.endian == Endian::Little {
        bytes.reverse();
    }
    put_short(t, &bytes, out);
}

#[cfg(test)]
mod tests {
    use super::super::{encode_value, TypeToken, Value, MAX};
    use super::*;
    use crate::tds::dialect::{Endian, Version};

    fn taken(wire: &[u8], t: &TypeInfo, d: &Dialect) -> Result<Option<Vec<u8>>> {
        let mut r = Reader::new(wire, d.endian);
        let value = take_value(&mut r, t, d)?.map(Cow::into_owned);
        assert!(r.is_empty());
        Ok(value)
    }

    fn taken_part(wire: &[u8], t: &TypeInfo, d: &Dialect) -> Result<Option<Vec<u8>>> {
        take_value(&mut Reader::new(wire, d.endian), t, d).map(|value| value.map(Cow::into_owned))
    }

    fn malformed<T: std::fmt::Debug>(result: Result<T>) -> bool {
        matches!(result.unwrap_err(), WireError::Malformed(_))
    }

    const UNKNOWN: [u8; 8] = [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];

    #[test]
    fn chunks_of_unknown_length_are_joined() {
        let (t, d) = (TypeInfo::new(TypeToken::BigVarBinary, MAX), Dialect::new(Version::Tds74));
        let chunks = [&UNKNOWN[..], &[2, 0, 0, 0, 1, 2], &[1, 0, 0, 0, 3], &[0, 0, 0, 0]].concat();
        assert_eq!(taken(&chunks, &t, &d), Ok(Some(vec![1, 2, 3])));
        assert_eq!(taken(&[0xFF; 8], &t, &d), Ok(None));
        let empty = [&[0; 8][..], &[0; 4]].concat();
        assert_eq!(taken(&empty, &t, &d), Ok(Some(vec![])));
    }

    #[test]
    fn chunks_must_add_up_and_end() {
        let (t, d) = (TypeInfo::new(TypeToken::BigVarBinary, MAX), Dialect::new(Version::Tds74));
        let wrong_total = [&[3, 0, 0, 0, 0, 0, 0, 0][..], &[1, 0, 0, 0, 9], &[0; 4]].concat();
        assert!(malformed(taken(&wrong_total, &t, &d)));
        let endless = [&UNKNOWN[..], &[1, 0, 0, 0, 9]].concat();
        assert_eq!(taken(&endless, &t, &d), Err(WireError::Truncated("chunk length")));
        let too_long = [&UNKNOWN[..], &[0xFF; 4]].concat();
        assert_eq!(taken(&too_long, &t, &d), Err(WireError::Truncated("chunk")));
    }

    #[test]
    fn one_chunk_is_borrowed() {
        let (t, d) = (TypeInfo::new(TypeToken::BigVarBinary, MAX), Dialect::new(Version::Tds74));
        let mut out = BytesMut::new();
        encode_value(&Value::Binary(Cow::Borrowed(b"ring")), &t, &d, &mut out).unwrap();
        let mut r = Reader::new(&out, Endian::Little);
        assert!(matches!(take_value(&mut r, &t, &d).unwrap(), Some(Cow::Borrowed(b"ring"))));
        assert!(r.is_empty());
    }

    #[test]
    fn text_has_a_pointer_in_rows_only_at_tds_7() {
        let (t, d) = (TypeInfo::new(TypeToken::Text, 100), Dialect::new(Version::Tds71));
        assert_eq!(taken(&[2, 0, 0, 0, b'o', b'k'], &t, &d), Ok(Some(b"ok".to_vec())));
        assert_eq!(taken(&[0xFF; 4], &t, &d), Ok(None));
        let pointer = [&[16][..], &[0; 24], &[2, 0, 0, 0, b'o', b'k']].concat();
        let mut r = Reader::new(&pointer, Endian::Little);
        assert_eq!(take_row_value(&mut r, &t, &d).unwrap().as_deref(), Some(&b"ok"[..]));
        // TDS 5.0: in any position
        let five = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
        let pointer = [&[16][..], &[0; 24], &[0, 0, 0, 2, b'o', b'k']].concat();
        assert_eq!(taken(&pointer, &t, &five), Ok(Some(b"ok".to_vec())));
        assert_eq!(taken(&[0], &t, &five), Ok(None));
    }

    #[test]
    fn chunks_of_a_blob_are_joined() {
        for endian in [Endian::Little, Endian::Big] {
            let (t, d) = (
                TypeInfo::new(TypeToken::BlobBinary, MAX - 1),
                Dialect { endian, ..Dialect::new(Version::Tds50) },
            );
            let word = |n: u32| if endian == Endian::Big { n.to_be_bytes() } else { n.to_le_bytes() };
            let blob = |parts: &[&[u8]]| [&[0; 3][..], &parts.concat()].concat();
            // as jTDS ends it, with an empty chunk, and with a full last one
            let jtds = blob(&[&word(MORE_CHUNKS | 2), b"ri", &word(MORE_CHUNKS | 2), b"ng", &word(0)]);
            let full = blob(&[&word(MORE_CHUNKS | 3), b"rin", &word(1), b"g"]);
            for wire in [&jtds, &full] {
                assert_eq!(taken(wire, &t, &d), Ok(Some(b"ring".to_vec())));
                for length in 0..wire.len() {
                    assert!(taken_part(&wire[..length], &t, &d).is_err());
                }
            }
            assert_eq!(taken(&blob(&[&word(0)]), &t, &d), Ok(None));
            assert!(malformed(taken(&[1, 0, 0], &t, &d)));
            let mut out = BytesMut::new();
            encode_value(&Value::Binary(Cow::Borrowed(b"ring")), &t, &d, &mut out).unwrap();
            assert_eq!(taken(&out, &t, &d), Ok(Some(b"ring".to_vec())));
        }
    }

    #[test]
    fn fixed_types_have_no_null() {
        let (t, d) = (TypeInfo::new(TypeToken::Int4, 4), Dialect::new(Version::Tds74));
        assert!(encode_value(&Value::Null, &t, &d, &mut BytesMut::new()).is_err());
    }
}
