//! SSVARIANT of TDS 7.x: a base type, its properties and the value (MS-TDS 2.2.5.5.4).

use super::super::dialect::{Dialect, Version};
use super::collation::{DEFAULT, UTF8};
use super::decimals::bytes_of_precision;
use super::framing::put_framed;
use super::info::TypeInfo;
use super::token::{Layout, TypeToken};
use super::value::{self, ConvertError, Value, Variant};
use super::{decode_value, encode_value};
use bytes::{BufMut, BytesMut};
use std::borrow::Cow;

/// The most bytes of a SSVARIANT: a value of 8000, preceded by a type with its properties.
pub const LONGEST: u32 = 8009;
const LONGEST_BASE: u32 = 8000;
const MOST_DIGITS: u8 = 38;

impl<'a> Variant<'a> {
    /// A value received with type `t`; None for a type that sql_variant excludes.
    pub fn of(value: Value<'a>, t: &TypeInfo) -> Option<Variant<'a>> {
        let of = Variant::base(t)?;
        Some(Self { of, value })
    }

    /// The base type of values received with type `t`.
    pub fn base(t: &TypeInfo) -> Option<TypeInfo> {
        use TypeToken::*;
        let token = match (t.token, t.size) {
            (BitN, _) => Bit,
            (IntN, 1) => Int1,
            (IntN, 2) => Int2,
            (IntN, 4) => Int4,
            (IntN, 8) => Int8,
            (FloatN, 4) => Real,
            (FloatN, 8) => Float,
            (MoneyN, 4) => SmallMoney,
            (MoneyN, 8) => Money,
            (DateTimeN, 4) => SmallDateTime,
            (DateTimeN, 8) => DateTime,
            (Char, _) => BigChar,
            (VarChar, _) => BigVarChar,
            (Binary, _) => BigBinary,
            (VarBinary, _) => BigVarBinary,
            (token, _) => token,
        };
        let of = TypeInfo { token, user_type: 0, ..TypeInfo::new(token, t.size) };
        let of = TypeInfo { precision: t.precision, scale: t.scale, ..of };
        (property_bytes(token).is_some() && !of.is_max() && of.size <= LONGEST_BASE).then_some(of)
    }

    pub fn into_owned(self) -> Variant<'static> {
        Variant { of: self.of, value: self.value.into_owned() }
    }
}

/// A value received with type `t`, for a column of type sql_variant.
pub fn as_variant<'a>(value: Value<'a>, t: Option<TypeInfo>) -> value::Result<Value<'a>> {
    if matches!(value, Value::Null | Value::Variant(_)) {
        return Ok(value);
    }
    let from = t.map_or_else(|| value.kind().to_owned(), |t| t.token.name().to_owned());
    let variant = t.and_then(|t| Variant::of(value, &t));
    let variant = variant.ok_or_else(|| {
        let from = format!("a value of type {from}, which has no length or is not known here,");
        ConvertError::conversion(&from, "sql_variant")
    })?;
    Ok(Value::Variant(Box::new(variant)))
}

/// The bytes of a base type's properties; None for a type that sql_variant excludes.
fn property_bytes(token: TypeToken) -> Option<usize> {
    use TypeToken::*;
    Some(match token {
        Guid | Bit | Int1 | Int2 | Int4 | Int8 | DateTime | SmallDateTime | Real | Float | Money
        | SmallMoney | DateN => 0,
        TimeN | DateTime2N | DateTimeOffset => 1,
        BigVarBinary | BigBinary | Decimal | Numeric => 2,
        BigVarChar | BigChar | NVarChar | NChar => 7,
        _ => return None,
    })
}

pub(super) fn decode<'a>(raw: &'a [u8], d: &Dialect) -> value::Result<Value<'a>> {
    let malformed = || ConvertError::conversion("a malformed value", TypeToken::Variant.name());
    let [byte, length, rest @ ..] = raw else { return Err(malformed()) };
    let token = TypeToken::from_wire(*byte, d).ok_or_else(malformed)?;
    let length = usize::from(*length);
    if property_bytes(token) != Some(length) {
        return Err(malformed());
    }
    let (properties, raw) = rest.split_at_checked(length).ok_or_else(malformed)?;
    let of = match *properties {
        [] if token == TypeToken::Guid => TypeInfo::new(token, 16),
        [] if token == TypeToken::DateN => TypeInfo::new(token, 3),
        [] => TypeInfo::new(token, 0),
        [digits @ 0..=7] => TypeInfo::of_time(token, digits),
        [precision @ 1..=MOST_DIGITS, scale] if matches!(token, TypeToken::Decimal | TypeToken::Numeric) => {
            if scale > precision {
                return Err(malformed());
            }
            TypeInfo::new(token, bytes_of_precision(precision, d).into()).with_scale(precision, scale)
        }
        [low, high] if !matches!(token, TypeToken::Decimal | TypeToken::Numeric) => {
            TypeInfo::new(token, u16::from_le_bytes([low, high]).into())
        }
        [a, b, c, e, f, low, high] => {
            TypeInfo::new(token, u16::from_le_bytes([low, high]).into()).with_collation([a, b, c, e, f])
        }
        _ => return Err(malformed()),
    };
    let fits = match token.layout() {
        Layout::Fixed(bytes) => raw.len() == usize::from(bytes),
        Layout::ShortLength => raw.len() <= of.size as usize && of.size <= LONGEST_BASE,
        _ => !raw.is_empty(),
    };
    if !fits {
        return Err(malformed());
    }
    let value = decode_value(Some(raw), &of, d)?;
    // the collation was needed only to decode the text, and is not part of the type
    let of = of.with_collation([0; 5]);
    Ok(Value::Variant(Box::new(Variant { of, value })))
}

pub(super) fn encode(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> value::Result<()> {
    let name = TypeToken::Variant.name();
    let Value::Variant(variant) = v else { return Err(ConvertError::conversion(v.kind(), name)) };
    let (of, value) = for_client(variant, d)?;
    let byte = of.token.to_wire(d).ok_or_else(|| ConvertError::unsupported(of.token.name()))?;
    let length = property_bytes(of.token).ok_or_else(|| ConvertError::unsupported(of.token.name()))?;
    let mut framed = BytesMut::new();
    encode_value(&value, &of, d, &mut framed)?;
    let frame = match of.token.layout() {
        Layout::ByteLength => 1,
        Layout::ShortLength => 2,
        _ => 0,
    };
    put_framed("sql_variant", t, d, out, |out| {
        out.put_slice(&[byte, length as u8]);
        match length {
            1 => out.put_u8(of.scale),
            2 if matches!(of.token, TypeToken::Decimal | TypeToken::Numeric) => {
                out.put_slice(&[of.precision, of.scale]);
            }
            2 => out.put_u16_le(u16::try_from(of.size).unwrap_or(u16::MAX)),
            7 => {
                out.put_slice(&of.collation);
                out.put_u16_le(u16::try_from(of.size).unwrap_or(u16::MAX));
            }
            _ => {}
        }
        out.put_slice(framed.get(frame..).unwrap_or_default());
        Ok(())
    })
}

/// The value for the client's dialect: before 7.3, the newer date and time types are texts.
fn for_client<'v>(variant: &'v Variant<'_>, d: &Dialect) -> value::Result<(TypeInfo, Cow<'v, Value<'v>>)> {
    use TypeToken::*;
    let of = variant.of;
    Ok(match of.token {
        DateN | TimeN | DateTime2N | DateTimeOffset if d.version < Version::Tds73 => {
            let text = variant.value.to_text(of.token.name())?.into_owned();
            let t = TypeInfo::new(NVarChar, 2 * text.len() as u32).with_collation(DEFAULT);
            (t, Cow::Owned(Value::Text(text.into())))
        }
        NChar | NVarChar => (of.with_collation(DEFAULT), Cow::Borrowed(&variant.value)),
        BigChar | BigVarChar if d.knows_utf8 => {
            let size = of.size.saturating_mul(4).min(LONGEST_BASE);
            (TypeInfo { size, ..of }.with_collation(UTF8), Cow::Borrowed(&variant.value))
        }
        BigChar | BigVarChar => (of.with_collation(DEFAULT), Cow::Borrowed(&variant.value)),
        _ => (of, Cow::Borrowed(&variant.value)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(of: TypeInfo, value: Value<'static>, version: Version) -> Vec<u8> {
        let d = Dialect::new(version);
        let mut out = BytesMut::new();
        let v = Value::Variant(Box::new(Variant { of, value }));
        encode_value(&v, &TypeInfo::new(TypeToken::Variant, LONGEST), &d, &mut out).unwrap();
        out.to_vec()
    }

    #[test]
    fn base_types_stand_before_their_values() {
        // MS-TDS 2.2.5.5.4: base type, bytes of properties, properties, value
        let int = sent(TypeInfo::new(TypeToken::Int4, 4), Value::Int(11), Version::Tds71);
        assert_eq!(int, [6, 0, 0, 0, 0x38, 0, 11, 0, 0, 0]);
        let binary = Value::Binary(Cow::Borrowed(b"\x12\x34"));
        let binary = sent(TypeInfo::new(TypeToken::BigVarBinary, 16), binary, Version::Tds71);
        assert_eq!(binary, [6, 0, 0, 0, 0xA5, 2, 16, 0, 0x12, 0x34]);
        let time = sent(TypeInfo::of_time(TypeToken::TimeN, 0), Value::Time(1_000_000), Version::Tds73);
        assert_eq!(time, [6, 0, 0, 0, 0x29, 1, 0, 1, 0, 0]);
        let text = Value::Text(Cow::Borrowed("ab"));
        let text = sent(TypeInfo::new(TypeToken::NVarChar, 6), text, Version::Tds71);
        let expected = [&[13, 0, 0, 0, 0xE7, 7][..], &DEFAULT, &[6, 0, b'a', 0, b'b', 0]].concat();
        assert_eq!(text, expected);
    }

    #[test]
    fn dates_are_texts_before_they_had_a_type() {
        let date = sent(TypeInfo::new(TypeToken::DateN, 3), Value::Date(0), Version::Tds72);
        assert_eq!(date[4..6], [0xE7, 7]);
        assert_eq!(date.len(), 4 + 2 + 7 + 2 * "2000-01-01".len());
    }

    #[test]
    fn what_cannot_be_is_malformed() {
        let d = Dialect::new(Version::Tds74);
        for raw in [
            &[][..],
            &[0x38],
            // an int of three bytes, with properties, of a size of its own; a time of 8 digits; a decimal of 39;
            // one with more decimals than digits; a text without its properties; xml; a value in a value
            &[0x38, 0, 1, 2, 3],
            &[0x38, 1, 4, 1, 2, 3, 4],
            &[0x26, 0, 1, 2, 3, 4],
            &[0x29, 1, 8, 1, 2, 3],
            &[0x6A, 2, 39, 0, 1, 1, 0, 0, 0],
            &[0x6A, 2, 5, 6, 1, 1, 0, 0, 0],
            &[0xE7, 2, 4, 0, 65, 0],
            &[0xF1, 0, 65],
            &[0x62, 0, 0x38, 0, 1, 2, 3, 4],
            // a size larger than the value
            &[0xA5, 2, 1, 0, 1, 2],
        ] {
            assert!(decode(raw, &d).is_err(), "{raw:?}");
        }
    }
}
