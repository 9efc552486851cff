//! The data types of TDS: how they are described, framed, decoded and encoded.
//!
//! A value has three forms. On the wire it is framed by its type ([`take_value`] splits it off without decoding); raw,
//! it is the bytes inside the frame; decoded, it is a [`Value`].
//!
//! Sources: MS-TDS 2.2.5.4–2.2.5.6; FreeTDS src/tds/data.c, include/freetds/proto.h.

pub mod token;
pub mod value;

mod binaries;
mod characters;
pub(crate) mod clock;
mod collation;
mod dates;
mod decimals;
mod floats;
mod framing;
mod info;
mod integers;
pub(crate) mod numerals;
mod rendering;
mod time_size;
mod times;
mod variants;

#[cfg(test)]
mod properties;

use super::dialect::Dialect;
use bytes::BytesMut;

pub(crate) use collation::{DEFAULT as DEFAULT_COLLATION, UTF8 as UTF8_COLLATION};
pub(crate) use decimals::{bytes_at_7, bytes_of_precision};
pub use framing::{put_number, take_row_value, take_value};
pub use info::{TypeInfo, MAX};
pub use times::nanoseconds;
pub use token::{Layout, TypeToken};
pub use value::{ConvertError, Decimal, ErrorKind, Value, Variant};
pub use variants::{as_variant, LONGEST as LONGEST_VARIANT};

/// Reads the bytes of one value, as [`take_value`] returned them, by its type.
///
/// Rounding: 1/300 s becomes the millisecond that Sybase and Microsoft display for it (.000, .003,
/// .007), 100 ns becomes the nearest microsecond.
#[inline]
pub fn decode_value<'a>(raw: Option<&'a [u8]>, t: &TypeInfo, d: &Dialect) -> value::Result<Value<'a>> {
    use TypeToken::*;
    let Some(raw) = raw else { return Ok(Value::Null) };
    match t.token {
        Null => Ok(Value::Null),
        Int1 | SInt1 | UInt1 | Int2 | UInt2 | Int4 | UInt4 | Int8 | UInt8 | IntN | UIntN | Bit | BitN => {
            integers::decode(raw, t, d)
        }
        Real | Float | FloatN => floats::decode(raw, t, d),
        Decimal | Numeric | SmallMoney | Money | MoneyN => decimals::decode(raw, t, d),
        Char | VarChar | LongChar | BigChar | BigVarChar | NChar | NVarChar | Text | NText | UniText
        | BlobText | BlobUniText | Xml => characters::decode(raw, t, d),
        LongBinary | BlobBinary if t.is_unichar() => characters::decode(raw, t, d),
        Binary | VarBinary | LongBinary | BigBinary | BigVarBinary | Image | BlobBinary | Guid => {
            binaries::decode(raw, t)
        }
        SmallDateTime | DateTime | DateTimeN | SybDate | SybDateN | SybTime | SybTimeN | BigDateTimeN
        | BigTimeN => dates::decode(raw, t, d),
        DateN | TimeN | DateTime2N | DateTimeOffset => times::decode(raw, t),
        TypeToken::Variant => variants::decode(raw, d),
        Udt => Err(ConvertError::unsupported(t.token.name())),
    }
}

/// Writes one value of a result row or an output parameter: its length prefix and its bytes, or the NULL of its type.
/// On an error nothing is written.
///
/// A value is rounded only if the type has a coarser unit of time (1/300 s, minutes, a lower scale of a 7.3 time); any
/// other value that does not fit is an error.
#[inline]
pub fn encode_value(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> value::Result<()> {
    let before = out.len();
    let result = match v {
        Value::Null => framing::put_null(t, d, out),
        _ => encode_present(v, t, d, out),
    };
    if result.is_err() {
        out.truncate(before);
    }
    result
}

/// The part of a text or byte string that fits into a type's size; None: it is neither, or has no size.
pub fn cut<'v>(v: &'v Value<'_>, t: &TypeInfo, d: &Dialect) -> Option<Value<'v>> {
    match v {
        _ if t.size == 0 => None,
        Value::Text(text) => Some(Value::Text(characters::cut(text, t, d).into())),
        Value::Binary(bytes) => Some(Value::Binary(bytes.get(..t.size as usize).unwrap_or(bytes).into())),
        _ => None,
    }
}

#[inline]
fn encode_present(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> value::Result<()> {
    use TypeToken::*;
    if matches!(v, Value::Variant(_)) && t.token != Variant {
        let what = "sql_variant has no type in this client's version of TDS: convert it, which";
        return Err(ConvertError::unsupported(what));
    }
    match t.token {
        Int1 | SInt1 | UInt1 | Int2 | UInt2 | Int4 | UInt4 | Int8 | UInt8 | IntN | UIntN | Bit | BitN => {
            integers::encode(v, t, d, out)
        }
        Real | Float | FloatN => floats::encode(v, t, d, out),
        Decimal | Numeric | SmallMoney | Money | MoneyN => decimals::encode(v, t, d, out),
        Char | VarChar | LongChar | BigChar | BigVarChar | NChar | NVarChar | Text | NText | UniText
        | BlobText | BlobUniText | Xml => characters::encode(v, t, d, out),
        LongBinary | BlobBinary if t.is_unichar() => characters::encode(v, t, d, out),
        Binary | VarBinary | LongBinary | BigBinary | BigVarBinary | Image | BlobBinary | Guid => {
            binaries::encode(v, t, d, out)
        }
        SmallDateTime | DateTime | DateTimeN | SybDate | SybDateN | SybTime | SybTimeN | BigDateTimeN
        | BigTimeN => dates::encode(v, t, d, out),
        DateN | TimeN | DateTime2N | DateTimeOffset => times::encode(v, t, out),
        Null => Err(ConvertError::conversion(v.kind(), t.token.name())),
        TypeToken::Variant => variants::encode(v, t, d, out),
        Udt => Err(ConvertError::unsupported(t.token.name())),
    }
}
