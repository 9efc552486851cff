//! sql_variant: PostgreSQL's tsql.sql_variant, a composite type of the declared base type, the value as a text, and a
//! json that is always `{}` (gateway/sql/types/sql_variant.sql).

use super::{ConvertError, PgType, Value};
use crate::tds::types::{bytes_at_7, TypeInfo, TypeToken, Variant};
use bytes::{BufMut, BytesMut};
use std::borrow::Cow;
use tsql::facts::type_names;
use tsql::facts::types::Type;

const TEXT: u32 = 25;
const JSON: u32 = 114;
const UNCOMPARED: &[u8] = b"{}";

/// The base type, and the value as a text or as bytes, from the form of record_send: the number of fields, then for
/// each its type, length and bytes.
pub fn read(raw: &[u8]) -> Result<(TypeInfo, Value<'_>), ConvertError> {
    let malformed = || ConvertError::conversion("a malformed value of PostgreSQL", PgType::SqlVariant.name());
    let (head, fields) = raw.split_first_chunk::<4>().ok_or_else(malformed)?;
    if u32::from_be_bytes(*head) != 3 {
        return Err(malformed());
    }
    let (base, rest) = field(fields).ok_or_else(malformed)?;
    let (text, _) = field(rest).ok_or_else(malformed)?;
    let of = type_of(base).ok_or_else(malformed)?;
    let value = match of.token {
        TypeToken::BigBinary | TypeToken::BigVarBinary => {
            Value::Binary(Cow::Owned(bytes_of(text).ok_or_else(malformed)?))
        }
        _ => Value::Text(Cow::Borrowed(text)),
    };
    Ok((of, value))
}

/// A text, and the bytes after it.
fn field(raw: &[u8]) -> Option<(&str, &[u8])> {
    let (oid, rest) = raw.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (bytes, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    let text = std::str::from_utf8(bytes).ok()?;
    (u32::from_be_bytes(*oid) == TEXT).then_some((text, rest))
}

/// Appends a value, in the form of record_send.
pub fn put(v: &Value, out: &mut BytesMut) -> Result<(), ConvertError> {
    let (base, text) = written(v)?;
    out.put_u32(3);
    for (oid, bytes) in [(TEXT, base.as_bytes()), (TEXT, text.as_bytes()), (JSON, UNCOMPARED)] {
        out.put_u32(oid);
        out.put_u32(bytes.len() as u32);
        out.put_slice(bytes);
    }
    Ok(())
}

/// The argument of `tsql.sent_sql_variant`.
pub fn sent(v: &Value) -> Result<String, ConvertError> {
    let (base, text) = written(v)?;
    Ok(format!("{base}:{text}"))
}

/// The base type and the value. A value sent without a type has no base type.
fn written(v: &Value) -> Result<(String, String), ConvertError> {
    let name = PgType::SqlVariant.name();
    let Value::Variant(variant) = v else { return Err(ConvertError::conversion(v.kind(), name)) };
    let base = base_of(&variant.of).ok_or_else(|| ConvertError::unsupported(variant.of.token.name()))?;
    let text = match &variant.value {
        Value::Binary(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Value::Bit(bit) => u8::from(*bit).to_string(),
        value => value.to_text(name)?.into_owned(),
    };
    if text.contains('\0') {
        let text = format!("a text that holds a NUL character cannot be stored as {name}");
        return Err(ConvertError::charset(text));
    }
    Ok((base, text))
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?)).collect()
}

/// The base types without length or digits.
const PLAIN: [(TypeToken, u32, &str); 13] = [
    (TypeToken::Bit, 1, "bit"),
    (TypeToken::Int1, 1, "tinyint"),
    (TypeToken::Int2, 2, "smallint"),
    (TypeToken::Int4, 4, "int"),
    (TypeToken::Int8, 8, "bigint"),
    (TypeToken::Real, 4, "real"),
    (TypeToken::Float, 8, "float"),
    (TypeToken::SmallMoney, 4, "smallmoney"),
    (TypeToken::Money, 8, "money"),
    (TypeToken::SmallDateTime, 4, "smalldatetime"),
    (TypeToken::DateTime, 8, "datetime"),
    (TypeToken::DateN, 3, "date"),
    (TypeToken::Guid, 16, "uniqueidentifier"),
];

fn type_of(base: &str) -> Option<TypeInfo> {
    if let Some((token, size, _)) = PLAIN.iter().find(|(.., name)| *name == base) {
        return Some(TypeInfo::new(*token, *size));
    }
    let of = type_names::declared(base)?;
    let digits = of.fraction.unwrap_or(7);
    Some(match (of.display_name(), of.length) {
        ("char", Some(length)) => TypeInfo::new(TypeToken::BigChar, length),
        ("varchar", Some(length)) => TypeInfo::new(TypeToken::BigVarChar, length),
        ("nchar", Some(length)) => TypeInfo::new(TypeToken::NChar, length.checked_mul(2)?),
        ("nvarchar", Some(length)) => TypeInfo::new(TypeToken::NVarChar, length.checked_mul(2)?),
        ("binary", Some(length)) => TypeInfo::new(TypeToken::BigBinary, length),
        ("varbinary", Some(length)) => TypeInfo::new(TypeToken::BigVarBinary, length),
        ("time", _) => TypeInfo::of_time(TypeToken::TimeN, digits),
        ("datetime2", _) => TypeInfo::of_time(TypeToken::DateTime2N, digits),
        ("datetimeoffset", _) => TypeInfo::of_time(TypeToken::DateTimeOffset, digits),
        (name, _) => {
            let token = if name == "numeric" { TypeToken::Numeric } else { TypeToken::Decimal };
            let (precision, scale) = (of.precision?, of.scale?);
            TypeInfo::new(token, bytes_at_7(precision).into()).with_scale(precision, scale)
        }
    })
}

/// The wire type of values of this T-SQL type; None for a type that sql_variant excludes.
pub fn wire_of_type(of: Type) -> Option<TypeInfo> {
    type_of(&of.declared())
}

/// The T-SQL type of values sent with type `t`; None for a type that sql_variant excludes.
pub fn type_of_wire(t: &TypeInfo) -> Option<Type> {
    type_names::declared(&base_of(&Variant::base(t)?)?)
}

fn base_of(of: &TypeInfo) -> Option<String> {
    use TypeToken::*;
    if let Some((.., name)) = PLAIN.iter().find(|(token, ..)| *token == of.token) {
        return Some((*name).to_owned());
    }
    // an empty text or binary has a length of 1
    let length = |width: u32| (of.size / width).max(1);
    Some(match of.token {
        BigChar => format!("char({})", length(1)),
        BigVarChar => format!("varchar({})", length(1)),
        NChar => format!("nchar({})", length(2)),
        NVarChar => format!("nvarchar({})", length(2)),
        BigBinary => format!("binary({})", length(1)),
        BigVarBinary => format!("varbinary({})", length(1)),
        TimeN => format!("time({})", of.scale),
        DateTime2N => format!("datetime2({})", of.scale),
        DateTimeOffset => format!("datetimeoffset({})", of.scale),
        Decimal => format!("decimal({},{})", of.precision, of.scale),
        Numeric => format!("numeric({},{})", of.precision, of.scale),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{from_pg, Zone};
    use super::*;

    fn back(v: &Value) -> Value<'static> {
        let mut out = BytesMut::new();
        put(v, &mut out).unwrap();
        from_pg(PgType::SqlVariant, &out, &Zone::UTC).unwrap().into_owned()
    }

    fn held(base: &str, value: Value<'static>) -> Value<'static> {
        Value::Variant(Box::new(Variant { of: type_of(base).unwrap(), value }))
    }

    #[test]
    fn values_come_back_with_their_types() {
        let day = 86_400_000_000;
        for (base, value) in [
            ("bit", Value::Bit(true)),
            ("tinyint", Value::Int(255)),
            ("bigint", Value::Int(i64::MIN)),
            ("real", Value::Real(0.1)),
            ("float", Value::Float(1e300)),
            ("varchar(20)", Value::Text("a:b".into())),
            ("nchar(3)", Value::Text("Ш  ".into())),
            ("varbinary(4)", Value::Binary(Cow::Borrowed(b"\0\xFF"))),
            ("date", Value::Date(-36_524)),
            ("time(3)", Value::Time(45_123_000)),
            ("datetime", Value::DateTime(day + 3_000)),
            ("datetime2(7)", Value::DateTime(-day)),
            ("datetimeoffset(7)", Value::DateTimeOffset { utc: 5 * day, offset_minutes: -90 }),
            ("uniqueidentifier", Value::Guid([7; 16])),
        ] {
            let value = held(base, value);
            assert_eq!(back(&value), value, "{base}");
            assert!(sent(&value).unwrap().starts_with(&format!("{base}:")));
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for raw in [&[][..], &[0, 0, 0, 3], &[0, 0, 0, 2, 0, 0, 0, 25, 0, 0, 0, 1, b'a']] {
            assert!(read(raw).is_err());
        }
        assert!(type_of("varchar(max)").is_none() && type_of("xml").is_none() && type_of("text").is_none());
    }
}
