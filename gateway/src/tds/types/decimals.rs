//! Decimals (MS-TDS 2.2.5.5.1.6; FreeTDS src/tds/numeric.c) and money (2.2.5.5.1.2).
//!
//! A decimal is a sign byte and a magnitude. TDS 7.x: 1 is positive, little-endian. TDS 5.0: 0 is positive, big-endian
//! for every client. Money counts 1/10000; its 8-byte form has the more significant four bytes first.

use super::super::dialect::{Dialect, Endian};
use super::framing::put_short;
use super::info::TypeInfo;
use super::integers::{ordered, wrong_length};
use super::numerals::{Digits, Numeral};
use super::token::TypeToken;
use super::value::{self, ConvertError, Decimal, Result, Value};
use bytes::BytesMut;

/// The first number of 39 digits.
const LIMIT: u128 = 10u128.pow(38);

/// Bytes of a decimal at TDS 5.0 by its precision, sign included (FreeTDS tds_numeric_bytes_per_prec).
const SYBASE_BYTES: [u8; 39] = [
    1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 9, 9, 10, 10, 11, 11, 11, 12, 12, 13, 13, 14, 14,
    14, 15, 15, 16, 16, 16, 17, 17,
];

/// Bytes of a value of `precision` digits, sign included: TDS 7.x has only four lengths.
pub(crate) fn bytes_of_precision(precision: u8, d: &Dialect) -> u8 {
    match d.is_tds7() {
        true => bytes_at_7(precision),
        false => SYBASE_BYTES.get(usize::from(precision)).copied().unwrap_or(17),
    }
}

/// The same for TDS 7 in any dialect.
pub(crate) fn bytes_at_7(precision: u8) -> u8 {
    match precision {
        0..=9 => 5,
        10..=19 => 9,
        20..=28 => 13,
        _ => 17,
    }
}

pub(super) fn decode(raw: &[u8], t: &TypeInfo, d: &Dialect) -> Result<Value<'static>> {
    use TypeToken::*;
    if matches!(t.token, Money | SmallMoney | MoneyN) {
        return decode_money(raw, t, d);
    }
    let (sign, digits) = raw.split_first().ok_or_else(|| wrong_length(t))?;
    let mut bytes = [0; 16];
    if digits.len() > bytes.len() {
        return Err(ConvertError::overflow("a decimal of more than 38 digits", t.token.name()));
    }
    for (target, byte) in bytes.iter_mut().zip(digits) {
        *target = *byte;
    }
    if !d.is_tds7() {
        // big-endian: the first byte is the most significant
        if let Some(used) = bytes.get_mut(..digits.len()) {
            used.reverse();
        }
    }
    let magnitude = u128::from_le_bytes(bytes);
    if magnitude >= LIMIT {
        return Err(ConvertError::overflow("a decimal of more than 38 digits", t.token.name()));
    }
    let negative = if d.is_tds7() { *sign == 0 } else { *sign != 0 } && magnitude != 0;
    Ok(Value::Decimal(value::Decimal { negative, magnitude, scale: t.scale }))
}

fn decode_money(raw: &[u8], t: &TypeInfo, d: &Dialect) -> Result<Value<'static>> {
    if let Some(bytes) = ordered::<4>(raw, d) {
        return Ok(Value::Money(i64::from(i32::from_le_bytes(bytes))));
    }
    let (high, low) = raw.split_at_checked(4).ok_or_else(|| wrong_length(t))?;
    let high = i32::from_le_bytes(ordered(high, d).ok_or_else(|| wrong_length(t))?);
    let low = u32::from_le_bytes(ordered(low, d).ok_or_else(|| wrong_length(t))?);
    Ok(Value::Money((i64::from(high) << 32) | i64::from(low)))
}

pub(super) fn encode(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    use TypeToken::*;
    if matches!(t.token, Money | SmallMoney | MoneyN) {
        return encode_money(v, t, d, out);
    }
    let name = || format!("{}({}, {})", t.token.name(), t.precision, t.scale);
    let exact = v.to_decimal(t.token.name())?;
    let fits = exact.rescaled(t.scale).filter(|n| n.digits() <= t.precision);
    let number = fits.ok_or_else(|| {
        let text = format!("a value of type {} needs more digits than {} has: cast it", v.kind(), name());
        ConvertError::new(super::ErrorKind::Overflow, text)
    })?;
    let size = usize::from(bytes_of_precision(t.precision, d));
    let mut bytes = [0; 17];
    let sign_when_negative = u8::from(!d.is_tds7());
    bytes[0] = if number.negative { sign_when_negative } else { 1 - sign_when_negative };
    let little = number.magnitude.to_le_bytes();
    bytes[1..].copy_from_slice(&little);
    if !d.is_tds7() {
        bytes[1..size].reverse();
    }
    put_short(t, &bytes[..size], out);
    Ok(())
}

fn encode_money(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    let overflow = || ConvertError::overflow(v.kind(), t.token.name());
    let money = match v {
        Value::Money(money) => *money,
        _ => {
            let number = v.to_decimal(t.token.name())?.rescaled(4).ok_or_else(overflow)?;
            let magnitude = i128::try_from(number.magnitude).map_err(|_| overflow())?;
            i64::try_from(if number.negative { -magnitude } else { magnitude }).map_err(|_| overflow())?
        }
    };
    match (t.size, d.endian) {
        (4, endian) => {
            let money = i32::try_from(money).map_err(|_| overflow())?;
            let bytes = if endian == Endian::Big { money.to_be_bytes() } else { money.to_le_bytes() };
            put_short(t, &bytes, out);
        }
        (8, Endian::Big) => put_short(t, &money.to_be_bytes(), out),
        // each half in the client's order, the higher half first
        (8, Endian::Little) => put_short(t, &money.rotate_left(32).to_le_bytes(), out),
        _ => return Err(wrong_length(t)),
    }
    Ok(())
}

impl Decimal {
    pub const ZERO: Decimal = Decimal { negative: false, magnitude: 0, scale: 0 };

    pub(crate) fn from_int(int: i64) -> Decimal {
        Decimal { negative: int < 0, magnitude: u128::from(int.unsigned_abs()), scale: 0 }
    }

    /// The same number with `scale` decimals; None if digits would be lost or do not fit.
    pub fn rescaled(self, scale: u8) -> Option<Decimal> {
        let mut number = self;
        if scale >= self.scale {
            let factor = 10u128.checked_pow(u32::from(scale - self.scale));
            number.magnitude = match factor {
                Some(factor) => number.magnitude.checked_mul(factor)?,
                None if number.magnitude == 0 => 0,
                None => return None,
            };
        } else {
            let factor = 10u128.checked_pow(u32::from(self.scale - scale))?;
            let (whole, lost) = (number.magnitude / factor, number.magnitude % factor);
            if lost != 0 {
                return None;
            }
            number.magnitude = whole;
        }
        number.scale = scale;
        Some(number)
    }

    /// The number with fewer decimals, the others truncated.
    pub fn truncated(self, scale: u8) -> Decimal {
        let factor = 10u128.checked_pow(u32::from(self.scale.saturating_sub(scale)));
        Decimal { magnitude: factor.map_or(0, |factor| self.magnitude / factor), scale, ..self }
    }

    /// The same, rounded half away from zero.
    pub fn rounded(self, scale: u8) -> Decimal {
        let longer = self.truncated(scale.saturating_add(1));
        Decimal { magnitude: longer.magnitude.saturating_add(5) / 10, scale, ..self }
    }

    /// Decimal digits of the magnitude, at least 1.
    pub fn digits(self) -> u8 {
        self.magnitude.checked_ilog10().map_or(1, |log| log as u8 + 1)
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        self.parse_as()
    }

    /// The nearest float of 4 bytes, rounded once.
    pub fn to_f32(self) -> f32 {
        self.parse_as()
    }

    // the standard library's parser rounds correctly for any number of digits
    fn parse_as<T: std::str::FromStr + Default>(self) -> T {
        let mut text = Digits::new();
        text.put_decimal(self);
        text.as_str().parse().unwrap_or_default()
    }
}

impl Value<'_> {
    /// This number as a decimal of at most 38 digits; a float by its shortest decimal that reads back as the same
    /// float.
    pub(crate) fn to_decimal(&self, to: &str) -> Result<Decimal> {
        match self {
            Value::Decimal(decimal) => Ok(*decimal),
            Value::Int(int) => Ok(Decimal::from_int(*int)),
            Value::Bit(bit) => Ok(Decimal::from_int(i64::from(*bit))),
            Value::Money(money) => Ok(Decimal { scale: 4, ..Decimal::from_int(*money) }),
            Value::Real(_) | Value::Float(_) => {
                let mut text = Digits::new();
                text.put_number(self);
                // NaN and infinities are not numerals
                let numeral = Numeral::read(text.as_str());
                let decimal = numeral.and_then(|numeral| numeral.to_decimal());
                decimal.ok_or_else(|| ConvertError::overflow(self.kind(), to))
            }
            _ => Err(ConvertError::conversion(&format!("a value of type {}", self.kind()), to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{decode_value, encode_value, ErrorKind};
    use super::*;
    use crate::tds::dialect::Version;

    fn numeric(precision: u8, scale: u8, d: &Dialect) -> TypeInfo {
        let size = u32::from(bytes_of_precision(precision, d));
        TypeInfo::new(TypeToken::Numeric, size).with_scale(precision, scale)
    }

    fn of(negative: bool, magnitude: u128, scale: u8) -> Value<'static> {
        Value::Decimal(Decimal { negative, magnitude, scale })
    }

    #[test]
    fn sybase_lengths_hold_their_digits() {
        for precision in 1..=38u32 {
            let largest = 10u128.pow(precision) - 1;
            let bytes = (128 - largest.leading_zeros()).div_ceil(8) + 1;
            assert_eq!(u32::from(SYBASE_BYTES[precision as usize]), bytes);
        }
    }

    /// CS_NUMERIC as filled by cs_convert of FreeTDS 1.3.17, which is TDS 5.0's form.
    #[test]
    fn the_bytes_of_freetds() {
        let d = Dialect::new(Version::Tds50);
        let largest = 10u128.pow(38) - 1;
        let vectors: [(u8, u8, &[u8], Value); 3] = [
            (8, 2, &[0x00, 0x05, 0xA6, 0x68, 0xF5], of(false, 94_791_925, 2)),
            (18, 4, &[0x01, 0, 0, 0, 0, 0x07, 0x9B, 0xE6, 0x8C], of(true, 127_657_612, 4)),
            (
                38,
                18,
                &[
                    0x01, 0x4B, 0x3B, 0x4C, 0xA8, 0x5A, 0x86, 0xC4, 0x7A, 0x09, 0x8A, 0x22, 0x3F, 0xFF, 0xFF,
                    0xFF, 0xFF,
                ],
                of(true, largest, 18),
            ),
        ];
        for (precision, scale, wire, value) in vectors {
            let t = numeric(precision, scale, &d);
            assert_eq!(decode_value(Some(wire), &t, &d), Ok(value.clone()));
            let mut out = BytesMut::new();
            encode_value(&value, &t, &d, &mut out).unwrap();
            assert_eq!(out[1..], *wire);
        }
    }

    /// MS-TDS 2.2.5.5.1.6: sign 1 is positive, then 4, 8, 12 or 16 bytes, the lowest first. FreeTDS
    /// sends fewer, by its own table.
    #[test]
    fn microsofts_decimals() {
        let d = Dialect::new(Version::Tds74);
        let t = numeric(8, 2, &d);
        let mut out = BytesMut::new();
        encode_value(&of(false, 94_791_925, 2), &t, &d, &mut out).unwrap();
        assert_eq!(out[..], [5, 0x01, 0xF5, 0x68, 0xA6, 0x05]);
        let short = decode_value(Some(&[0x00, 0xF5, 0x68]), &t, &d);
        assert_eq!(short, Ok(of(true, 0x68F5, 2)));
    }

    /// CS_MONEY and CS_MONEY4 as filled by cs_convert of FreeTDS 1.3.17.
    #[test]
    fn money_sends_its_high_half_first() {
        let little = Dialect::new(Version::Tds50);
        let big = Dialect { endian: Endian::Big, ..little };
        let (money, small) = (TypeInfo::new(TypeToken::MoneyN, 8), TypeInfo::new(TypeToken::MoneyN, 4));
        for (t, d, wire, amount) in [
            (&money, &little, &[0xFF, 0xFF, 0xFF, 0xFF, 0xD6, 0x2D, 0xED, 0xFF][..], -1_233_450),
            (&money, &little, &[0xF4, 0x10, 0x22, 0x11, 0xBC, 0x80, 0xE9, 0x7D], 1_234_567_890_123_456_700),
            (&money, &big, &[0x11, 0x22, 0x10, 0xF4, 0x7D, 0xE9, 0x80, 0xBC], 1_234_567_890_123_456_700),
            (&small, &little, &[0, 0, 0, 0x80], -2_147_483_648),
            (&small, &big, &[0x80, 0, 0, 0], -2_147_483_648),
        ] {
            assert_eq!(decode_value(Some(wire), t, d), Ok(Value::Money(amount)));
            let mut out = BytesMut::new();
            encode_value(&Value::Money(amount), t, d, &mut out).unwrap();
            assert_eq!(out[1..], *wire);
        }
    }

    #[test]
    fn digits_are_never_dropped() {
        let d = Dialect::new(Version::Tds74);
        let mut out = BytesMut::new();
        for refused in [of(false, 1234, 3), of(false, 1_000_000_000, 2), Value::Float(0.125)] {
            let error = encode_value(&refused, &numeric(9, 2, &d), &d, &mut out).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Overflow, "{refused:?}");
            assert!(error.text.contains("NUMERICN(9, 2)"), "{}", error.text);
        }
        encode_value(&of(false, 1230, 3), &numeric(9, 2, &d), &d, &mut out).unwrap();
        assert_eq!(of(false, 123, 2).to_decimal("").unwrap().to_f64(), 1.23);
    }
}
