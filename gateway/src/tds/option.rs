//! OPTIONCMD: a setting of a TDS 5.0 session as a token (SAP/go-dblib tds/packageOptionCmd.go).

use super::dialect::Dialect;
use super::tokens::text::put_token;
use super::wire::{Put, Reader, Result, WireError};
use bytes::{BufMut, BytesMut};

pub(super) const TOKEN: u8 = 0xA6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Set,
    /// Resets it to the default.
    Default,
    /// Requests its value.
    List,
    Other(u8),
}

#[derive(Clone, Copy, Debug)]
pub struct OptionCommand<'a> {
    pub operation: Operation,
    /// Its number (FreeTDS include/freetds/proto.h, TDS_OPT_*).
    pub option: u8,
    /// In the client's byte order.
    pub value: &'a [u8],
}

impl<'a> OptionCommand<'a> {
    /// Reads the body of the token.
    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<OptionCommand<'a>> {
        let length = usize::from(reader.u16("option length")?);
        let body = reader.take(length, "option")?;
        let [operation, option, size, value @ ..] = body else {
            return Err(WireError::Truncated("option"));
        };
        let operation = match *operation {
            1 => Operation::Set,
            2 => Operation::Default,
            3 => Operation::List,
            other => Operation::Other(other),
        };
        let value = value.get(..usize::from(*size)).ok_or(WireError::Truncated("option"))?;
        Ok(OptionCommand { operation, option: *option, value })
    }
}

/// The answer to a List, with a value of one byte, or of four if `is_wide`.
pub fn put_info(out: &mut BytesMut, option: u8, value: u32, is_wide: bool, dialect: &Dialect) {
    const INFO: u8 = 4;
    // a few bytes always fit
    let _ = put_token(out, TOKEN, dialect, |out| {
        out.put_u8(INFO);
        out.put_u8(option);
        if is_wide {
            out.put_u8(4);
            out.put_u32_as(value, dialect.endian);
        } else {
            out.put_u8(1);
            out.put_u8(value as u8);
        }
    });
}
