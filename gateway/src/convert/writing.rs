//! From a client's value to a parameter in the procedure's own type.

use super::{calendar, numeric, ConvertError, ErrorKind, PgType, Value, Zone};
use crate::tds::types::numerals::{Digits, Numeral};
use bytes::{BufMut, BytesMut};
use std::str::FromStr;

/// Appends the value in PostgreSQL's binary format, or in text format where [`PgType::wants_text`] says
/// so, without its length. NULL has no body: the caller writes length -1.
///
/// * Numbers convert among each other when exact: a fraction is no integer. To a float they round to the
///   nearest; a float goes to numeric and to text by its shortest decimal.
/// * A text becomes a number, date, time, boolean (`true`, `false` or a number) or uuid when it is one.
/// * A time without a zone is `zone`'s in a `timestamp with time zone`.
/// * A datetime becomes a date only at midnight, and a time only on 1900-01-01.
///
/// On an error nothing is appended.
pub fn to_pg(v: &Value, target: PgType, zone: &Zone, out: &mut BytesMut) -> Result<(), ConvertError> {
    let before = out.len();
    let result = put(v, target, zone, out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

fn put(v: &Value, target: PgType, zone: &Zone, out: &mut BytesMut) -> Result<(), ConvertError> {
    let name = target.name();
    match target {
        PgType::Float4 => out.put_f32(match v {
            Value::Text(text) => float(text, name)?,
            _ => v.to_real(name)?,
        }),
        PgType::Float8 => out.put_f64(match v {
            Value::Text(text) => float(text, name)?,
            _ => v.to_float(name)?,
        }),
        PgType::Int2 => out.put_i16(integer(v, name)?),
        PgType::Int4 => out.put_i32(integer(v, name)?),
        PgType::Int8 => out.put_i64(integer(v, name)?),
        PgType::Oid => out.put_u32(integer(v, name)?),
        PgType::Bool => out.put_u8(u8::from(boolean(v, name)?)),
        PgType::Numeric => put_numeric(v, name, out)?,
        PgType::Text | PgType::Varchar | PgType::Bpchar | PgType::Name => put_text(v, name, out)?,
        PgType::Json | PgType::Xml | PgType::Other(_) => put_text(v, name, out)?,
        PgType::Jsonb => {
            out.put_u8(1);
            put_text(v, name, out)?;
        }
        PgType::Char => match v.to_text(name)?.as_bytes() {
            [] => out.put_u8(0),
            [byte @ 1..=127] => out.put_u8(*byte),
            _ => return Err(ConvertError::truncation(v.kind(), name)),
        },
        PgType::Bytea => match v {
            Value::Binary(bytes) => out.put_slice(bytes),
            _ => return Err(not_from(v, name)),
        },
        PgType::Uuid => out.put_slice(&uuid(v, name)?),
        PgType::Date | PgType::Time | PgType::Timestamp | PgType::TimestampTz => {
            put_time(v, target, zone, out)?
        }
        PgType::Void => return Err(not_from(v, name)),
    }
    Ok(())
}

fn not_from(v: &Value, to: &str) -> ConvertError {
    ConvertError::conversion(&format!("a value of type {}", v.kind()), to)
}

fn numeral<'t>(text: &'t str, to: &str) -> Result<Numeral<'t>, ConvertError> {
    Numeral::read(text.trim_ascii())
        .ok_or_else(|| ConvertError::conversion("a text that is not a number", to))
}

fn integer<T: TryFrom<i128>>(v: &Value, to: &str) -> Result<T, ConvertError> {
    let integer = match v {
        Value::Text(text) => {
            let decimal =
                numeral(text, to)?.to_decimal().ok_or_else(|| ConvertError::overflow(v.kind(), to))?;
            Value::Decimal(decimal).to_integer(to)?
        }
        _ => v.to_integer(to)?,
    };
    T::try_from(integer).map_err(|_| ConvertError::overflow(v.kind(), to))
}

trait Float: FromStr {
    fn is_zero(&self) -> bool;
    fn is_infinite(&self) -> bool;
}

impl Float for f32 {
    fn is_zero(&self) -> bool {
        *self == 0.0
    }
    fn is_infinite(&self) -> bool {
        f32::is_infinite(*self)
    }
}

impl Float for f64 {
    fn is_zero(&self) -> bool {
        *self == 0.0
    }
    fn is_infinite(&self) -> bool {
        f64::is_infinite(*self)
    }
}

/// The nearest float; out of range, as in PostgreSQL, if that is infinite or wrongly zero.
fn float<T: Float>(text: &str, to: &str) -> Result<T, ConvertError> {
    let numeral = numeral(text, to)?;
    let is_zero = numeral.integer.iter().chain(numeral.fraction).all(|digit| *digit == b'0');
    let float = text.trim_ascii().parse::<T>();
    let float = float.map_err(|_| ConvertError::conversion("a text that is not a number", to))?;
    if float.is_infinite() || float.is_zero() != is_zero {
        return Err(ConvertError::overflow("text", to));
    }
    Ok(float)
}

fn boolean(v: &Value, to: &str) -> Result<bool, ConvertError> {
    let Value::Text(text) = v else { return v.to_bit(to) };
    let text = text.trim_ascii();
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Ok(text.eq_ignore_ascii_case("true"));
    }
    let numeral =
        Numeral::read(text).ok_or_else(|| ConvertError::conversion("a text that is no boolean", to))?;
    Ok(numeral.integer.iter().chain(numeral.fraction).any(|digit| *digit != b'0'))
}

fn put_numeric(v: &Value, to: &str, out: &mut BytesMut) -> Result<(), ConvertError> {
    if let Value::Text(text) = v {
        return numeric::put(numeral(text, to)?, v.kind(), out);
    }
    let mut digits = Digits::new();
    digits.put_number(v);
    match Numeral::read(digits.as_str()) {
        Some(numeral) => numeric::put(numeral, v.kind(), out),
        // T-SQL's numeric knows no NaN, and a text's would be refused too
        None if matches!(v, Value::Real(_) | Value::Float(_)) => Err(ConvertError::overflow(v.kind(), to)),
        None => Err(not_from(v, to)),
    }
}

fn put_text(v: &Value, to: &str, out: &mut BytesMut) -> Result<(), ConvertError> {
    let Value::Text(text) = v else {
        out.put_slice(v.short_text(to)?.as_str().as_bytes());
        return Ok(());
    };
    if text.as_bytes().contains(&0) {
        let text = format!("a text that holds a NUL character cannot be stored as {to}");
        return Err(ConvertError::new(ErrorKind::Charset, text));
    }
    out.put_slice(text.as_bytes());
    Ok(())
}

fn uuid(v: &Value, to: &str) -> Result<[u8; 16], ConvertError> {
    let text = match v {
        Value::Guid(bytes) => return Ok(*bytes),
        Value::Text(text) => text.trim_ascii(),
        _ => return Err(not_from(v, to)),
    };
    let text = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let hyphens_stand_right = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| (byte == b'-') == matches!(at, 8 | 13 | 18 | 23));
    let mut number = 0u128;
    for digit in text.bytes().filter(|byte| *byte != b'-') {
        let value = char::from(digit).to_digit(16).filter(|_| hyphens_stand_right);
        let value = value.ok_or_else(|| ConvertError::conversion("a text that is no uuid", to))?;
        number = number << 4 | u128::from(value);
    }
    if !hyphens_stand_right {
        return Err(ConvertError::conversion("a text that is no uuid", to));
    }
    Ok(number.to_be_bytes())
}

fn put_time(v: &Value, target: PgType, zone: &Zone, out: &mut BytesMut) -> Result<(), ConvertError> {
    let name = target.name();
    if let Value::Text(text) = v {
        let read = calendar::read(text);
        let read = read.ok_or_else(|| ConvertError::conversion("a text that is not a date or time", name))?;
        return put_time(&read, target, zone, out);
    }
    if let Value::DateTimeOffset { utc, .. } = v {
        if target == PgType::TimestampTz {
            out.put_i64(*utc);
            return Ok(());
        }
        return put_time(&Value::DateTime(zone.to_local(*utc)), target, zone, out);
    }
    match target {
        PgType::Date => {
            let days = i32::try_from(v.to_date(name)?);
            out.put_i32(days.map_err(|_| ConvertError::overflow(v.kind(), name))?);
        }
        PgType::Time => out.put_i64(v.to_time(name)?),
        PgType::Timestamp => out.put_i64(v.to_datetime(name)?),
        _ => out.put_i64(zone.to_utc(v.to_datetime(name)?)),
    }
    Ok(())
}
