//! The fields of a message of Protocol Buffers. The bytes are not trusted.

use crate::pb::Result;

const CUT_SHORT: &str = "a message is cut short";

/// The wire type of texts, messages and packed points.
pub const BYTES: u64 = 2;

/// The number of a field with its wire type.
pub const fn tag(number: u64, wire_type: u64) -> u64 {
    number << 3 | wire_type
}

/// The fields of a message: their numbers and values. Writers of Protocol Buffers order fields by their numbers; a
/// crash leaves the begin of a message with the next message behind it, whose fields are out of order or repeated.
pub struct Fields<'a> {
    bytes: &'a [u8],
    /// The tags of fields that may be repeated.
    repeated: [u64; 2],
    last: u64,
}

#[derive(Clone, Copy)]
pub enum Field<'a> {
    Number(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let found = self.field();
        if found.is_err() {
            self.bytes = &[];
        }
        Some(found)
    }
}

impl<'a> Fields<'a> {
    pub fn new(bytes: &'a [u8], repeated: [u64; 2]) -> Fields<'a> {
        Fields { bytes, repeated, last: 0 }
    }

    #[inline]
    fn field(&mut self) -> Result<(u64, Field<'a>)> {
        let tag = varint(&mut self.bytes)?;
        if tag >> 3 <= self.last >> 3 && !(tag == self.last && self.repeated.contains(&tag)) {
            return Err("a message has a field that is repeated or out of order");
        }
        self.last = tag;
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut self.bytes)?),
            1 => Field::Fixed64(*self.bytes.split_off(..8).and_then(<[u8]>::first_chunk).ok_or(CUT_SHORT)?),
            BYTES => {
                let length = usize::try_from(varint(&mut self.bytes)?).map_err(|_| CUT_SHORT)?;
                Field::Bytes(self.bytes.split_off(..length).ok_or(CUT_SHORT)?)
            }
            5 => Field::Fixed32(*self.bytes.split_off(..4).and_then(<[u8]>::first_chunk).ok_or(CUT_SHORT)?),
            _ => return Err("a message has a field of an unknown form"),
        };
        Ok((tag >> 3, field))
    }
}

#[inline]
pub fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for group in 0..10 {
        let byte = *bytes.split_off_first().ok_or(CUT_SHORT)?;
        number |= u64::from(byte & 0x7f) << (7 * group);
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number has more than 64 bits")
}
