//! Waveforms: arrays of numbers, which clients send and get as packed binary, and may send as text.
//!
//! Packed: the elements one after another in the array's own type (IEEE 754 for floats, two's complement for
//! integers, one byte 0 or 1 for a bit), little-endian unless the database's setting tsql.byte_order is big. As text:
//! `1.5,2.5` or `{1.5,2.5}`. A waveform has one dimension and no NULL in it; a missing point is NaN.
//!
//! PostgreSQL's binary array (array_recv and array_send in arrayfuncs.c): number of dimensions, whether there are
//! NULLs, the element's oid, size and lower bound of each dimension, then length and bytes of each element.

use super::{ConvertError, Element, ErrorKind, Value};
use bytes::{BufMut, Bytes, BytesMut};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// The byte order of packed elements: one for the process, which serves one database.
static BIG_ENDIAN: AtomicBool = AtomicBool::new(false);

/// Sets the byte order of packed elements.
pub fn set_big_endian(is_big: bool) {
    BIG_ENDIAN.store(is_big, Ordering::Relaxed);
}

/// The most elements of an array: PostgreSQL's values end at 1 GB, of which each element takes its width and 4 bytes
/// more.
const MOST: usize = 1 << 26;

/// Packed bytes converted at a time: the result stays in a core's cache until it is sent.
const PIECE: usize = 64 << 10;

/// A packed waveform as the client sent it, to be converted to PostgreSQL's binary array piece by piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    elements: Bytes,
    element: Element,
    is_big: bool,
}

impl Packed {
    pub fn new(elements: Bytes, element: Element) -> Result<Packed, ConvertError> {
        count(&elements, element)?;
        Ok(Packed { elements, element, is_big: BIG_ENDIAN.load(Ordering::Relaxed) })
    }

    /// Bytes of the array.
    pub fn array_len(&self) -> usize {
        let count = self.elements.len() / self.element.width();
        header_len(count) + count * (4 + self.element.width())
    }

    /// Appends the header before the elements.
    pub fn put_header(&self, out: &mut BytesMut) {
        put_header(self.elements.len() / self.element.width(), self.element, out);
    }

    /// Its elements, for [`Packed::put`].
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.elements.chunks(PIECE)
    }

    /// Appends one of its pieces.
    pub fn put(&self, piece: &[u8], out: &mut BytesMut) {
        put_elements(piece, self.element, self.is_big, out);
    }
}

/// Appends a waveform as PostgreSQL's binary array. `put_element` appends an element received as text.
pub(super) fn put(
    v: &Value,
    element: Element,
    out: &mut BytesMut,
    put_element: impl Fn(&Value, &mut BytesMut) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    match v {
        Value::Binary(packed) => put_packed(packed, element, BIG_ENDIAN.load(Ordering::Relaxed), out),
        Value::Text(text) => put_text(text, element, out, put_element),
        _ => Err(ConvertError::conversion(&format!("a value of type {}", v.kind()), element.name())),
    }
}

fn check_count(count: usize, element: Element) -> Result<(), ConvertError> {
    if count > MOST {
        let text = format!("{count} elements are more than the {MOST} that {} may have", element.name());
        return Err(ConvertError::new(ErrorKind::Overflow, text));
    }
    Ok(())
}

fn header_len(count: usize) -> usize {
    if count > 0 {
        20
    } else {
        12
    }
}

fn put_header(count: usize, element: Element, out: &mut BytesMut) {
    // an empty array has no dimension
    out.put_i32(i32::from(count > 0));
    out.put_i32(0);
    out.put_u32(element.oid());
    if count > 0 {
        out.put_i32(count as i32);
        out.put_i32(1);
    }
}

/// The number of elements.
fn count(packed: &[u8], element: Element) -> Result<usize, ConvertError> {
    let width = element.width();
    if !packed.len().is_multiple_of(width) {
        let text = format!(
            "{} bytes are not a whole number of the {width}-byte elements of {}",
            packed.len(),
            element.name()
        );
        return Err(ConvertError::new(ErrorKind::Conversion, text));
    }
    if let (Element::Bool, Some(byte)) = (element, packed.iter().find(|byte| **byte > 1)) {
        let text = format!("the byte {byte} is not an element of boolean[] (0 or 1)");
        return Err(ConvertError::new(ErrorKind::Conversion, text));
    }
    let count = packed.len() / width;
    check_count(count, element)?;
    Ok(count)
}

fn put_packed(packed: &[u8], element: Element, is_big: bool, out: &mut BytesMut) -> Result<(), ConvertError> {
    put_header(count(packed, element)?, element, out);
    put_elements(packed, element, is_big, out);
    Ok(())
}

fn put_elements(packed: &[u8], element: Element, is_big: bool, out: &mut BytesMut) {
    match element {
        Element::Bool => put_wide::<1>(packed, is_big, out),
        Element::Int2 => put_wide::<2>(packed, is_big, out),
        Element::Int4 | Element::Float4 => put_wide::<4>(packed, is_big, out),
        Element::Int8 | Element::Float8 => put_wide::<8>(packed, is_big, out),
    }
}

fn put_wide<const WIDTH: usize>(packed: &[u8], is_big: bool, out: &mut BytesMut) {
    let (elements, _) = packed.as_chunks::<WIDTH>();
    let begin = out.len();
    // written in place: appending checks the capacity each time, which takes longer than all the rest
    out.resize(begin + elements.len() * (4 + WIDTH), 0);
    let framed = out.get_mut(begin..).unwrap_or_default().chunks_exact_mut(4 + WIDTH);
    for (element, framed) in elements.iter().zip(framed) {
        let mut big_endian = *element;
        if !is_big {
            big_endian.reverse();
        }
        let (length, value) = framed.split_at_mut(4);
        length.copy_from_slice(&(WIDTH as u32).to_be_bytes());
        value.copy_from_slice(&big_endian);
    }
}

fn put_text(
    text: &str,
    element: Element,
    out: &mut BytesMut,
    put_element: impl Fn(&Value, &mut BytesMut) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let text = text.trim_ascii();
    let bare = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text).trim_ascii();
    if bare.is_empty() {
        put_header(0, element, out);
        return Ok(());
    }
    let count = bare.split(',').count();
    check_count(count, element)?;
    put_header(count, element, out);
    for (index, part) in bare.split(',').enumerate() {
        let value = Value::Text(Cow::Borrowed(part.trim_ascii()));
        out.put_u32(element.width() as u32);
        put_element(&value, out).map_err(|error| {
            ConvertError::new(error.kind, format!("element {} of {}: {error}", index + 1, element.name()))
        })?;
    }
    Ok(())
}

/// The packed form of PostgreSQL's binary array; several dimensions are packed row by row.
pub(super) fn read(raw: &[u8], element: Element) -> Result<Value<'static>, ConvertError> {
    let malformed = || ConvertError::conversion("a malformed value of PostgreSQL", element.name());
    let word = |at: usize| {
        let bytes = raw.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map(i32::from_be_bytes).ok_or_else(malformed)
    };
    let dimensions = usize::try_from(word(0)?).map_err(|_| malformed())?;
    if word(4)? != 0 {
        let text = format!("a NULL in {} has no packed form: cast the array to text", element.name());
        return Err(ConvertError::new(ErrorKind::Unsupported, text));
    }
    if dimensions == 0 {
        return Ok(Value::Binary(Cow::Borrowed(&[])));
    }
    let elements = raw.get(12 + 8 * dimensions..).ok_or_else(malformed)?;
    let is_big = BIG_ENDIAN.load(Ordering::Relaxed);
    let packed = match element {
        Element::Bool => packed::<1>(elements, is_big),
        Element::Int2 => packed::<2>(elements, is_big),
        Element::Int4 | Element::Float4 => packed::<4>(elements, is_big),
        Element::Int8 | Element::Float8 => packed::<8>(elements, is_big),
    };
    packed.map(|packed| Value::Binary(Cow::Owned(packed))).ok_or_else(malformed)
}

/// None unless each element has `WIDTH` bytes, preceded by their length.
fn packed<const WIDTH: usize>(elements: &[u8], is_big: bool) -> Option<Vec<u8>> {
    let framed = elements.chunks_exact(4 + WIDTH);
    if !framed.remainder().is_empty() {
        return None;
    }
    let mut packed = vec![0; framed.len() * WIDTH];
    let (values, _) = packed.as_chunks_mut::<WIDTH>();
    let mut are_whole = true;
    for (framed, value) in framed.zip(values) {
        let (length, big_endian) = framed.split_first_chunk::<4>()?;
        are_whole &= u32::from_be_bytes(*length) == WIDTH as u32;
        *value = big_endian.try_into().ok()?;
        if !is_big {
            value.reverse();
        }
    }
    are_whole.then_some(packed)
}

#[cfg(test)]
mod tests {
    use super::super::{to_pg, PgType, Zone};
    use super::*;
    use proptest::prelude::*;

    const ALL: [Element; 6] =
        [Element::Bool, Element::Int2, Element::Int4, Element::Int8, Element::Float4, Element::Float8];

    fn there_and_back(v: Value<'static>, element: Element) -> Result<Value<'static>, ConvertError> {
        let mut out = BytesMut::new();
        to_pg(&v, PgType::Array(element), &Zone::UTC, &mut out)?;
        read(&out, element)
    }

    fn binary(bytes: &[u8]) -> Value<'static> {
        Value::Binary(Cow::Owned(bytes.to_vec()))
    }

    fn text(text: &'static str) -> Value<'static> {
        Value::Text(Cow::Borrowed(text))
    }

    /// The bytes that PostgreSQL 18 sends for `'{1.5,-2}'::real[]` (select array_send(…)).
    const TWO_REALS: &[u8] =
        b"\0\0\0\x01\0\0\0\0\0\0\x02\xbc\0\0\0\x02\0\0\0\x01\0\0\0\x04\x3f\xc0\0\0\0\0\0\x04\xc0\0\0\0";

    #[test]
    fn as_postgresql_has_them() {
        for v in [text("1.5,-2"), text(" { 1.5 , -2 } "), binary(&[0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0])] {
            let mut out = BytesMut::new();
            to_pg(&v, PgType::Array(Element::Float4), &Zone::UTC, &mut out).unwrap();
            assert_eq!(&out[..], TWO_REALS);
        }
        let mut out = BytesMut::new();
        put_packed(&[0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0], Element::Float4, true, &mut out).unwrap();
        assert_eq!(&out[..], TWO_REALS);
        assert_eq!(packed::<4>(&TWO_REALS[20..], true).unwrap(), [0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0]);
        let empty = b"\0\0\0\0\0\0\0\0\0\0\x02\xbc";
        let mut out = BytesMut::new();
        to_pg(&text("{}"), PgType::Array(Element::Float4), &Zone::UTC, &mut out).unwrap();
        assert_eq!(&out[..], empty);
        assert_eq!(read(empty, Element::Float4), Ok(binary(&[])));
    }

    #[test]
    fn refused_by_name() {
        let why = |v, element| there_and_back(v, element).unwrap_err().to_string();
        assert!(why(binary(&[1, 2, 3]), Element::Int2).contains("3 bytes are not a whole number"));
        assert!(why(binary(&[0, 7]), Element::Bool).contains("the byte 7 is not an element of boolean[]"));
        assert!(why(text("1,x,3"), Element::Float8).contains("element 2 of double precision[]"));
        assert!(why(text("1,,3"), Element::Float8).contains("element 2"));
        assert!(why(text("40000"), Element::Int2).contains("element 1 of smallint[]"));
        assert!(why(Value::Int(1), Element::Int2).contains("smallint[]"));
        let with_null = b"\0\0\0\x01\0\0\0\x01\0\0\0\x15\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff";
        assert!(read(with_null, Element::Int2).unwrap_err().to_string().contains("NULL"));
    }

    #[test]
    fn in_pieces_as_at_once() {
        // the values of the elements do not matter: a bit may be 1
        let bytes: Vec<u8> = (0..3 * PIECE + 8).map(|at| u8::from(at % 3 == 0)).collect();
        for element in ALL {
            for length in [0, 8, PIECE, 3 * PIECE + 8] {
                for is_big in [false, true] {
                    let elements = Bytes::copy_from_slice(&bytes[..length]);
                    let packed = Packed { elements, element, is_big };
                    let (mut pieces, mut whole) = (BytesMut::new(), BytesMut::new());
                    packed.put_header(&mut pieces);
                    packed.pieces().for_each(|piece| packed.put(piece, &mut pieces));
                    put_packed(&bytes[..length], element, is_big, &mut whole).unwrap();
                    assert_eq!((pieces.len(), pieces), (packed.array_len(), whole));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn packed_goes_there_and_back(bytes: Vec<u8>) {
            for element in ALL {
                let whole = bytes.len() / element.width() * element.width();
                let mut given = bytes[..whole].to_vec();
                if element == Element::Bool {
                    given.iter_mut().for_each(|byte| *byte &= 1);
                }
                prop_assert_eq!(there_and_back(binary(&given), element), Ok(binary(&given)));
            }
        }

        #[test]
        fn whatever_comes_is_read_or_refused(raw: Vec<u8>) {
            for element in ALL {
                let _ = read(&raw, element);
            }
        }
    }
}
