//! Integers and bits (MS-TDS 2.2.5.5.1; FreeTDS proto.h). INT1 is unsigned in both dialects; only TDS 5.0 has the other
//! unsigned types and SINT1.

use super::super::dialect::{Dialect, Endian};
use super::framing::put_short;
use super::info::TypeInfo;
use super::token::TypeToken;
use super::value::{self, ConvertError, Result, Value};
use bytes::BytesMut;

const TWO_POW_127: f64 = 170141183460469231731687303715884105728.0;

/// `N` bytes in the client's byte order as little-endian ones.
#[inline]
pub(super) fn ordered<const N: usize>(raw: &[u8], d: &Dialect) -> Option<[u8; N]> {
    let mut bytes: [u8; N] = raw.try_into().ok()?;
    if d.endian == Endian::Big {
        bytes.reverse();
    }
    Some(bytes)
}

pub(super) fn wrong_length(t: &TypeInfo) -> ConvertError {
    ConvertError::conversion("a value of the wrong length", t.token.name())
}

pub(super) fn decode(raw: &[u8], t: &TypeInfo, d: &Dialect) -> Result<Value<'static>> {
    use TypeToken::*;
    let int = match (t.token, raw) {
        (Bit | BitN, [byte]) => return Ok(Value::Bit(*byte != 0)),
        (SInt1, [byte]) => i64::from(*byte as i8),
        (_, [byte]) => i64::from(*byte),
        (UInt2 | UIntN, [_, _]) => {
            i64::from(u16::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?))
        }
        (_, [_, _]) => i64::from(i16::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?)),
        (UInt4 | UIntN, [_, _, _, _]) => {
            i64::from(u32::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?))
        }
        (_, [_, _, _, _]) => i64::from(i32::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?)),
        (UInt8 | UIntN, _) => {
            let unsigned = u64::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?);
            match i64::try_from(unsigned) {
                Ok(int) => int,
                Err(_) => {
                    let magnitude = u128::from(unsigned);
                    return Ok(Value::Decimal(value::Decimal { negative: false, magnitude, scale: 0 }));
                }
            }
        }
        (_, _) => i64::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?),
    };
    // go-ase sends the bytes of Go's uint32 for a bigint, and those of uint16 for an int
    let may_be_unsigned = t.token == IntN && raw.len() < t.size as usize && !d.is_tds7();
    if int < 0 && may_be_unsigned {
        let of = "a value that is shorter than its type and may be negative or unsigned";
        return Err(ConvertError::conversion(of, t.token.name()));
    }
    Ok(Value::Int(int))
}

pub(super) fn encode(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    use TypeToken::*;
    let name = t.token.name();
    if matches!(t.token, Bit | BitN) {
        put_short(t, &[u8::from(v.to_bit(name)?)], out);
        return Ok(());
    }
    let int = v.to_integer(name)?;
    let unsigned = matches!(t.token, UInt1 | UInt2 | UInt4 | UInt8 | UIntN);
    let fits = match (t.size, unsigned) {
        (1, _) if t.token == SInt1 => i8::try_from(int).is_ok(),
        (1, _) => u8::try_from(int).is_ok(),
        (2, true) => u16::try_from(int).is_ok(),
        (2, false) => i16::try_from(int).is_ok(),
        (4, true) => u32::try_from(int).is_ok(),
        (4, false) => i32::try_from(int).is_ok(),
        (8, true) => u64::try_from(int).is_ok(),
        (8, false) => i64::try_from(int).is_ok(),
        _ => return Err(wrong_length(t)),
    };
    if !fits {
        return Err(ConvertError::overflow(v.kind(), &format!("{name} of {} bytes", t.size)));
    }
    let size = t.size as usize;
    match d.endian {
        Endian::Little => put_short(t, &int.to_le_bytes()[..size], out),
        Endian::Big => put_short(t, &int.to_be_bytes()[16 - size..], out),
    }
    Ok(())
}

impl Value<'_> {
    /// This number as an integer, if exact. `to` names the target in errors.
    #[inline]
    pub(crate) fn to_integer(&self, to: &str) -> Result<i128> {
        match self {
            Value::Int(int) => Ok(i128::from(*int)),
            Value::Bit(bit) => Ok(i128::from(*bit)),
            Value::Real(real) => integral(f64::from(*real), self.kind(), to),
            Value::Float(float) => integral(*float, self.kind(), to),
            Value::Decimal(_) | Value::Money(_) => {
                let whole = self.to_decimal(to)?.rescaled(0);
                let whole = whole.ok_or_else(|| fraction(self.kind(), to))?;
                let magnitude = i128::try_from(whole.magnitude);
                let magnitude = magnitude.map_err(|_| ConvertError::overflow(self.kind(), to))?;
                Ok(if whole.negative { -magnitude } else { magnitude })
            }
            _ => Err(ConvertError::conversion(&format!("a value of type {}", self.kind()), to)),
        }
    }

    /// T-SQL's bit: any number except zero is 1.
    pub(crate) fn to_bit(&self, to: &str) -> Result<bool> {
        match self {
            Value::Bit(bit) => Ok(*bit),
            Value::Int(int) => Ok(*int != 0),
            Value::Money(money) => Ok(*money != 0),
            Value::Decimal(decimal) => Ok(decimal.magnitude != 0),
            Value::Real(real) if !real.is_nan() => Ok(*real != 0.0),
            Value::Float(float) if !float.is_nan() => Ok(*float != 0.0),
            _ => Err(ConvertError::conversion(&format!("a value of type {}", self.kind()), to)),
        }
    }
}

fn fraction(from: &str, to: &str) -> ConvertError {
    ConvertError::conversion(&format!("a value of type {from} with a fraction"), to)
}

fn integral(float: f64, from: &str, to: &str) -> Result<i128> {
    if float.is_nan() || float.abs() >= TWO_POW_127 {
        return Err(ConvertError::overflow(from, to));
    }
    if float.fract() != 0.0 {
        return Err(fraction(from, to));
    }
    Ok(float as i128)
}

#[cfg(test)]
mod tests {
    use super::super::{decode_value, encode_value};
    use super::*;
    use crate::tds::dialect::Version;

    fn big() -> Dialect {
        Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) }
    }

    #[test]
    fn tinyint_is_unsigned() {
        let d = Dialect::new(Version::Tds74);
        let t = TypeInfo::new(TypeToken::IntN, 1);
        assert_eq!(decode_value(Some(&[0xFF]), &t, &d), Ok(Value::Int(255)));
        let mut out = BytesMut::new();
        let refused = encode_value(&Value::Int(-1), &t, &d, &mut out).unwrap_err();
        assert_eq!(refused.kind, super::super::ErrorKind::Overflow);
        assert!(out.is_empty());
    }

    #[test]
    fn byte_order_is_the_clients() {
        let t = TypeInfo::new(TypeToken::IntN, 4);
        let little = Dialect::new(Version::Tds50);
        assert_eq!(decode_value(Some(&[1, 2, 3, 4]), &t, &little), Ok(Value::Int(0x04030201)));
        assert_eq!(decode_value(Some(&[1, 2, 3, 4]), &t, &big()), Ok(Value::Int(0x01020304)));
        let mut out = BytesMut::new();
        encode_value(&Value::Int(-2), &t, &big(), &mut out).unwrap();
        assert_eq!(&out[..], [4, 0xFF, 0xFF, 0xFF, 0xFE]);
    }

    #[test]
    fn uint8_above_bigint_becomes_a_decimal() {
        let t = TypeInfo::new(TypeToken::UInt8, 8);
        let value = decode_value(Some(&[0xFF; 8]), &t, &big()).unwrap();
        assert_eq!(value.to_integer("").unwrap(), i128::from(u64::MAX));
    }

    #[test]
    fn only_whole_numbers_are_integers() {
        assert_eq!(Value::Float(3.0).to_integer("int"), Ok(3));
        assert_eq!(Value::Money(20000).to_integer("int"), Ok(2));
        for refused in [Value::Float(3.5), Value::Float(f64::NAN), Value::Money(1), Value::Text("3".into())] {
            assert!(refused.to_integer("int").is_err(), "{refused:?}");
        }
    }
}
