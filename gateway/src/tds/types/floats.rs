//! IEEE floats (MS-TDS 2.2.5.5.1.3), in the client's byte order. NaN and infinities remain unchanged.

use super::super::dialect::{Dialect, Endian};
use super::framing::put_short;
use super::info::TypeInfo;
use super::integers::{ordered, wrong_length};
use super::value::{ConvertError, Result, Value};
use bytes::BytesMut;

#[inline]
pub(super) fn decode(raw: &[u8], t: &TypeInfo, d: &Dialect) -> Result<Value<'static>> {
    if let Some(bytes) = ordered::<4>(raw, d) {
        return Ok(Value::Real(f32::from_le_bytes(bytes)));
    }
    let bytes = ordered::<8>(raw, d).ok_or_else(|| wrong_length(t))?;
    Ok(Value::Float(f64::from_le_bytes(bytes)))
}

#[inline]
pub(super) fn encode(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    let name = t.token.name();
    match t.size {
        4 => {
            let bits = v.to_real(name)?.to_bits();
            put_short(t, &if d.endian == Endian::Big { bits.to_be_bytes() } else { bits.to_le_bytes() }, out);
        }
        8 => {
            let bits = v.to_float(name)?.to_bits();
            put_short(t, &if d.endian == Endian::Big { bits.to_be_bytes() } else { bits.to_le_bytes() }, out);
        }
        _ => return Err(wrong_length(t)),
    }
    Ok(())
}

impl Value<'_> {
    /// This number as the nearest double.
    #[inline]
    pub(crate) fn to_float(&self, to: &str) -> Result<f64> {
        match self {
            Value::Float(float) => Ok(*float),
            Value::Real(real) => Ok(f64::from(*real)),
            Value::Int(int) => Ok(*int as f64),
            Value::Bit(bit) => Ok(f64::from(u8::from(*bit))),
            Value::Decimal(_) | Value::Money(_) => Ok(self.to_decimal(to)?.to_f64()),
            _ => Err(ConvertError::conversion(&format!("a value of type {}", self.kind()), to)),
        }
    }

    /// This number as the nearest float of 4 bytes. As in PostgreSQL's cast, a finite number that would become
    /// infinite, or zero without being zero, is out of range.
    #[inline]
    pub(crate) fn to_real(&self, to: &str) -> Result<f32> {
        if let Value::Real(real) = self {
            return Ok(*real);
        }
        let float = match self {
            // converted directly, not through a double: rounded once
            Value::Int(int) => return Ok(*int as f32),
            Value::Decimal(_) | Value::Money(_) => return Ok(self.to_decimal(to)?.to_f32()),
            _ => self.to_float(to)?,
        };
        let real = float as f32;
        if (real.is_infinite() && float.is_finite()) || (real == 0.0 && float != 0.0) {
            return Err(ConvertError::overflow(self.kind(), to));
        }
        Ok(real)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{decode_value, encode_value, ErrorKind, TypeToken};
    use super::*;
    use crate::tds::dialect::Version;

    #[test]
    fn a_real_in_both_byte_orders() {
        // 1.5f = 0x3FC00000
        let t = TypeInfo::new(TypeToken::FloatN, 4);
        let little = Dialect::new(Version::Tds74);
        let big = Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) };
        assert_eq!(decode_value(Some(&[0, 0, 0xC0, 0x3F]), &t, &little), Ok(Value::Real(1.5)));
        assert_eq!(decode_value(Some(&[0x3F, 0xC0, 0, 0]), &t, &big), Ok(Value::Real(1.5)));
        let mut out = BytesMut::new();
        encode_value(&Value::Real(1.5), &t, &big, &mut out).unwrap();
        assert_eq!(&out[..], [4, 0x3F, 0xC0, 0, 0]);
    }

    #[test]
    fn narrowing_rounds_but_never_overflows() {
        assert_eq!(Value::Float(0.1).to_real("real"), Ok(0.1f32));
        assert_eq!(Value::Float(f64::INFINITY).to_real("real"), Ok(f32::INFINITY));
        for out_of_range in [1e39, -1e300, 1e-60] {
            assert_eq!(Value::Float(out_of_range).to_real("real").unwrap_err().kind, ErrorKind::Overflow);
        }
    }
}
