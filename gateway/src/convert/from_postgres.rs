//! Converts PostgreSQL's results to values, and values of one type to another.

use super::{
    arrays, numeric, offsets, to_pg, variants, ConvertError, ErrorKind, PgType, SqlType, Value, Zone,
};
use crate::tds::types::clock::DAY;
use crate::tds::types::Variant;
use bytes::BytesMut;
use std::borrow::Cow;

/// Reads a value other than NULL, in binary format or, if [`PgType::wants_text`], in text format (UTF-8). A `timestamp
/// with time zone` becomes `zone`'s local time.
#[inline]
pub fn from_pg<'a>(pg: PgType, raw: &'a [u8], zone: &Zone) -> Result<Value<'a>, ConvertError> {
    Ok(match pg {
        PgType::Float4 => Value::Real(f32::from_be_bytes(array(raw, pg)?)),
        PgType::Float8 => Value::Float(f64::from_be_bytes(array(raw, pg)?)),
        PgType::Int2 => Value::Int(i64::from(i16::from_be_bytes(array(raw, pg)?))),
        PgType::Int4 => Value::Int(i64::from(i32::from_be_bytes(array(raw, pg)?))),
        PgType::Int8 => Value::Int(i64::from_be_bytes(array(raw, pg)?)),
        PgType::Oid => Value::Int(i64::from(u32::from_be_bytes(array(raw, pg)?))),
        PgType::Bool => Value::Bit(array::<1>(raw, pg)? != [0]),
        PgType::Numeric => Value::Decimal(numeric::read(raw)?),
        PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name => text(raw, pg)?,
        PgType::Json | PgType::Xml | PgType::Other(_) => text(raw, pg)?,
        PgType::Jsonb => match raw {
            [1, json @ ..] => text(json, pg)?,
            _ => return Err(malformed(pg)),
        },
        PgType::Char => match raw {
            [0] => Value::Text(Cow::Borrowed("")),
            _ => text(raw, pg)?,
        },
        PgType::Bytea => Value::Binary(Cow::Borrowed(raw)),
        PgType::Array(element) => arrays::read(raw, element)?,
        PgType::Uuid => Value::Guid(array(raw, pg)?),
        PgType::Date => match i32::from_be_bytes(array(raw, pg)?) {
            i32::MIN | i32::MAX => return Err(infinite(pg)),
            days => Value::Date(days),
        },
        PgType::Time => match i64::from_be_bytes(array(raw, pg)?) {
            micros @ 0..=DAY => Value::Time(micros),
            _ => return Err(malformed(pg)),
        },
        PgType::Timestamp => Value::DateTime(finite(raw, pg)?),
        PgType::TimestampTz => Value::DateTime(zone.to_local(finite(raw, pg)?)),
        PgType::DateTimeOffset => offsets::read(raw)?,
        PgType::SqlVariant => variant(raw)?,
        PgType::Void => Value::Null,
    })
}

/// Converts the value to another type, by the rules of [`to_pg`].
pub fn cast(value: Value<'_>, sql_type: SqlType, zone: &Zone) -> Result<Value<'static>, ConvertError> {
    let pg_type = PgType::from_oid(sql_type.oid);
    match (&value, pg_type) {
        // long values are moved
        (Value::Null, _) | (Value::Binary(_), PgType::Bytea) => return Ok(value.into_owned()),
        (Value::Text(text), PgType::Text | PgType::Varchar | PgType::Bpchar) if !text.contains('\0') => {
            return Ok(value.into_owned());
        }
        _ => {}
    }
    let mut raw = BytesMut::new();
    to_pg(&value, pg_type, zone, &mut raw)?;
    from_pg(pg_type, &raw, zone).map(Value::into_owned)
}

fn variant(raw: &[u8]) -> Result<Value<'static>, ConvertError> {
    let (of, text) = variants::read(raw)?;
    let value = match text {
        Value::Text(_) => cast(text, SqlType::of_wire(&of), &Zone::UTC)?,
        binary => binary.into_owned(),
    };
    Ok(Value::Variant(Box::new(Variant { of, value })))
}

fn array<const N: usize>(raw: &[u8], pg: PgType) -> Result<[u8; N], ConvertError> {
    raw.try_into().map_err(|_| malformed(pg))
}

fn malformed(pg: PgType) -> ConvertError {
    ConvertError::conversion("a malformed value of PostgreSQL", pg.name())
}

fn infinite(pg: PgType) -> ConvertError {
    let text = format!("{} infinity has no equivalent for this client", pg.name());
    ConvertError::new(ErrorKind::Overflow, text)
}

fn finite(raw: &[u8], pg: PgType) -> Result<i64, ConvertError> {
    match i64::from_be_bytes(array(raw, pg)?) {
        i64::MIN | i64::MAX => Err(infinite(pg)),
        micros => Ok(micros),
    }
}

fn text(raw: &[u8], pg: PgType) -> Result<Value<'_>, ConvertError> {
    let text = std::str::from_utf8(raw);
    let text = text.map_err(|_| ConvertError::charset(format!("a value of {} is not UTF-8", pg.name())))?;
    Ok(Value::Text(Cow::Borrowed(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_what_a_variable_is() {
        let text = Value::Text("12.5".into());
        assert_eq!(cast(text.clone(), SqlType::FLOAT8, &Zone::UTC), Ok(Value::Float(12.5)));
        assert_eq!(cast(Value::Int(3), SqlType::varchar(Some(5)), &Zone::UTC), Ok(Value::Text("3".into())));
        assert!(cast(text, SqlType::INT4, &Zone::UTC).is_err());
        assert_eq!(cast(Value::Null, SqlType::INT4, &Zone::UTC), Ok(Value::Null));
    }
}
