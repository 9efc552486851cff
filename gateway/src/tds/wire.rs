//! Reads and writes the primitive fields of both dialects, and checks every length.

use super::dialect::Endian;
use bytes::{BufMut, BytesMut};
use encoding_rs::UTF_16LE;
use std::borrow::Cow;

/// A message that violates its format. Fatal for the connection, except for a known but unsupported form of a call's
/// parameter: the call has been read to its end.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WireError {
    #[error("message ends inside {0}")]
    Truncated(&'static str),
    #[error("{0}")]
    Malformed(String),
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

pub type Result<T> = std::result::Result<T, WireError>;

/// A cursor over one complete message. Multi-byte integers are in the client's byte order unless a method specifies
/// otherwise.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    endian: Endian,
}

macro_rules! read_integer {
    ($($name:ident $type:ty),*) => {$(
        pub fn $name(&mut self, what: &'static str) -> Result<$type> {
            let raw = self.array(what)?;
            Ok(match self.endian {
                Endian::Little => <$type>::from_le_bytes(raw),
                Endian::Big => <$type>::from_be_bytes(raw),
            })
        }
    )*};
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], endian: Endian) -> Reader<'a> {
        Reader { bytes, at: 0, endian }
    }

    /// Offset of the next byte from the start of the message.
    pub fn position(&self) -> usize {
        self.at
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    pub fn endian(&self) -> Endian {
        self.endian
    }

    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).ok_or(WireError::Truncated(what))?;
        let slice = self.bytes.get(self.at..end).ok_or(WireError::Truncated(what))?;
        self.at = end;
        Ok(slice)
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8> {
        Ok(self.array::<1>(what)?[0])
    }

    read_integer!(u16 u16, u32 u32, u64 u64, i16 i16, i32 i32, i64 i64);

    /// A text of `units` UTF-16LE code units; a lone surrogate is malformed.
    pub fn utf16(&mut self, units: usize, what: &'static str) -> Result<String> {
        let raw = self.take(units.checked_mul(2).ok_or(WireError::Truncated(what))?, what)?;
        utf16_text(raw).ok_or_else(|| WireError::Malformed(format!("{what} is not valid UTF-16")))
    }
}

/// Decodes UTF-16LE bytes; None for an odd length or a lone surrogate.
pub fn utf16_text(raw: &[u8]) -> Option<String> {
    UTF_16LE.decode_without_bom_handling_and_without_replacement(raw).map(Cow::into_owned)
}

/// Writing in the client's byte order.
pub trait Put {
    fn put_u16_as(&mut self, value: u16, endian: Endian);
    fn put_u32_as(&mut self, value: u32, endian: Endian);
    fn put_u64_as(&mut self, value: u64, endian: Endian);
    /// The UTF-16LE code units of `text`, without a length. Returns their number.
    fn put_utf16(&mut self, text: &str) -> usize;
}

impl Put for BytesMut {
    fn put_u16_as(&mut self, value: u16, endian: Endian) {
        match endian {
            Endian::Little => self.put_u16_le(value),
            Endian::Big => self.put_u16(value),
        }
    }

    fn put_u32_as(&mut self, value: u32, endian: Endian) {
        match endian {
            Endian::Little => self.put_u32_le(value),
            Endian::Big => self.put_u32(value),
        }
    }

    fn put_u64_as(&mut self, value: u64, endian: Endian) {
        match endian {
            Endian::Little => self.put_u64_le(value),
            Endian::Big => self.put_u64(value),
        }
    }

    fn put_utf16(&mut self, text: &str) -> usize {
        let before = self.len();
        for unit in text.encode_utf16() {
            self.put_u16_le(unit);
        }
        (self.len() - before) / 2
    }
}
