//! Converts a client's value to a parameter of the procedure's declared type.

use super::zone::Instants;
use super::{arrays, calendar, numeric, offsets, variants, ConvertError, ErrorKind, PgType, Value, Zone};
use crate::tds::types::numerals::{Digits, Numeral};
use crate::tds::types::{clock, TypeToken};
use bytes::{BufMut, BytesMut};
use std::str::FromStr;

/// Appends the value without its length, in PostgreSQL's binary format, or in text format if [`PgType::wants_text`].
/// NULL has no body: the caller writes length -1.
///
/// * Numbers are converted if this is exact: a fraction is not an integer. To a float they are rounded to the nearest;
///   a float is converted to numeric and to text by its shortest decimal.
/// * A text becomes a number, date, time, boolean (`true`, `false` or a number) or uuid if it has that form.
/// * A time without a zone becomes a `timestamp with time zone` in `zone`; a time that does not exist there is refused,
///   and of a repeated time the later reading is used (see [`repeated`]).
/// * Packed binary or a text becomes an array of numbers (`arrays`).
/// * A datetime becomes a date only at midnight, and a time only on 1900-01-01 or 1970-01-01.
///
/// On an error nothing is appended.
#[inline]
pub fn to_pg(v: &Value, target: PgType, zone: &Zone, out: &mut BytesMut) -> Result<(), ConvertError> {
    let before = out.len();
    let result = put(v, target, zone, out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

#[inline]
fn put(v: &Value, target: PgType, zone: &Zone, out: &mut BytesMut) -> Result<(), ConvertError> {
    let name = target.name();
    let v = match v {
        Value::Variant(variant) if target != PgType::SqlVariant => &variant.value,
        v => v,
    };
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
        PgType::Array(element) => {
            arrays::put(v, element, out, |text, out| to_pg(text, element.pg_type(), zone, out))?;
        }
        PgType::Uuid => out.put_slice(&uuid(v, name)?),
        PgType::Date | PgType::Time | PgType::Timestamp | PgType::TimestampTz => {
            put_time(v, target, zone, out)?
        }
        PgType::DateTimeOffset => offsets::put(v, name, out)?,
        PgType::SqlVariant => variants::put(v, out)?,
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

/// PostgreSQL's names of NaN and the infinities, which are converted to texts likewise.
fn no_number(text: &str) -> Option<&'static str> {
    let words = ["NaN", "Infinity", "+Infinity", "-Infinity", "inf", "+inf", "-inf"];
    words.into_iter().find(|word| word.eq_ignore_ascii_case(text))
}

/// The nearest float; an out-of-range error, as in PostgreSQL, if that is infinite or wrongly zero.
fn float<T: Float>(text: &str, to: &str) -> Result<T, ConvertError> {
    if let Some(float) = no_number(text.trim_ascii()).and_then(|word| word.parse().ok()) {
        return Ok(float);
    }
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
        Numeral::read(text).ok_or_else(|| ConvertError::conversion("a text that is not a boolean", to))?;
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
        // T-SQL's numeric has no NaN, and a NaN as text would be refused too
        None if matches!(v, Value::Real(_) | Value::Float(_)) => {
            let text = format!("a {} that is NaN or infinite cannot be stored as {to}", v.kind());
            Err(ConvertError::new(ErrorKind::NoNumber, text))
        }
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
        let value = value.ok_or_else(|| ConvertError::conversion("a text that is not a uuid", to))?;
        number = number << 4 | u128::from(value);
    }
    if !hyphens_stand_right {
        return Err(ConvertError::conversion("a text that is not a uuid", to));
    }
    Ok(number.to_be_bytes())
}

fn nonexistent(to: &str) -> ConvertError {
    let text = format!(
        "cannot convert a local time that does not exist, because the clocks were set ahead past it, to {to}: \
         send UTC, or the time with its offset"
    );
    ConvertError::new(ErrorKind::Conversion, text)
}

/// The length of values of a client's type that [`to_pg`] copies with only their byte order changed.
pub fn copied(of: TypeToken, target: PgType) -> Option<usize> {
    use TypeToken::{Float, FloatN, Int2, Int4, Int8, IntN, Real};
    match (of, target) {
        (Real | FloatN, PgType::Float4) | (Int4 | IntN, PgType::Int4) => Some(4),
        (Float | FloatN, PgType::Float8) | (Int8 | IntN, PgType::Int8) => Some(8),
        (Int2 | IntN, PgType::Int2) => Some(2),
        _ => None,
    }
}

/// How much earlier, in microseconds, `v` may be than the instant to which [`to_pg`] converts it: a time without a zone
/// occurs twice when clocks are set back. None for every other value.
pub fn repeated(v: &Value, target: PgType, zone: &Zone) -> Option<i64> {
    if target != PgType::TimestampTz {
        return None;
    }
    let read = match v {
        Value::Text(text) => Some(calendar::read_as(text, zone.reads_year_first)?),
        _ => None,
    };
    let local = match read.as_ref().unwrap_or(v) {
        Value::DateTimeOffset { .. } => return None,
        v => clock::to_datetime(v, target.name()).ok()?,
    };
    match zone.instants(local) {
        Instants::Two { earlier, later } => Some(later - earlier),
        _ => None,
    }
}

fn put_time(v: &Value, target: PgType, zone: &Zone, out: &mut BytesMut) -> Result<(), ConvertError> {
    let name = target.name();
    let not_a_time = || ConvertError::conversion("a text that is not a date or time", name);
    let overflow = || ConvertError::overflow(v.kind(), name);
    let read = match v {
        Value::Text(text) => Some(calendar::read_as(text, zone.reads_year_first).ok_or_else(not_a_time)?),
        _ => None,
    };
    let v = read.as_ref().unwrap_or(v);
    let local = match v {
        Value::DateTimeOffset { utc, .. } if target != PgType::TimestampTz => {
            Some(Value::DateTime(zone.to_local(*utc)))
        }
        _ => None,
    };
    let v = local.as_ref().unwrap_or(v);
    let micros = match (target, v) {
        (PgType::Date, _) => {
            out.put_i32(i32::try_from(clock::to_date(v, name)?).map_err(|_| overflow())?);
            return Ok(());
        }
        (PgType::Time, _) => {
            out.put_i64(clock::to_time(v, name)?);
            return Ok(());
        }
        (PgType::TimestampTz, Value::DateTimeOffset { utc, .. }) => *utc,
        (PgType::TimestampTz, _) => match zone.instants(clock::to_datetime(v, name)?) {
            Instants::One(utc) | Instants::Two { later: utc, .. } => utc,
            Instants::None { .. } => return Err(nonexistent(name)),
        },
        _ => clock::to_datetime(v, name)?,
    };
    if !clock::in_calendar(micros) {
        return Err(overflow());
    }
    out.put_i64(micros);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::from_pg;
    use super::*;
    use crate::tds::types::Decimal;
    use std::borrow::Cow;

    fn written(v: Value<'static>, target: PgType) -> Result<Vec<u8>, ConvertError> {
        let mut out = BytesMut::new();
        to_pg(&v, target, &Zone::UTC, &mut out).map(|()| out.to_vec())
    }

    fn text(text: &'static str) -> Value<'static> {
        Value::Text(Cow::Borrowed(text))
    }

    /// The value that PostgreSQL would send back.
    fn read(v: Value<'static>, target: PgType) -> Value<'static> {
        let out = written(v, target).unwrap();
        from_pg(target, &out, &Zone::UTC).unwrap().into_owned()
    }

    fn refused(v: Value<'static>, target: PgType) -> ErrorKind {
        let error = written(v.clone(), target).expect_err(&format!("{v:?} as {target:?}"));
        assert!(error.text.contains(target.name()), "{}", error.text);
        error.kind
    }

    #[test]
    fn numbers_among_each_other() {
        let decimal = |magnitude, scale| Value::Decimal(Decimal { negative: false, magnitude, scale });
        assert_eq!(read(Value::Int(7), PgType::Float4), Value::Real(7.0));
        assert_eq!(read(Value::Bit(true), PgType::Int2), Value::Int(1));
        assert_eq!(read(Value::Float(3.0), PgType::Int4), Value::Int(3));
        assert_eq!(read(Value::Money(15_000), PgType::Float8), Value::Float(1.5));
        assert_eq!(read(Value::Float(0.1), PgType::Float4), Value::Real(0.1));
        // a real widens to the same number, not to the same digits
        assert_eq!(read(Value::Real(0.1), PgType::Float8), Value::Float(0.10000000149011612));
        assert_eq!(read(Value::Float(0.1), PgType::Numeric), decimal(1, 1));
        assert_eq!(read(decimal(150, 2), PgType::Numeric), decimal(150, 2));
        assert_eq!(read(Value::Int(-3), PgType::Bool), Value::Bit(true));
        assert_eq!(refused(Value::Int(40_000), PgType::Int2), ErrorKind::Overflow);
        assert_eq!(refused(Value::Float(1e10), PgType::Int4), ErrorKind::Overflow);
        assert_eq!(refused(Value::Float(2.5), PgType::Int4), ErrorKind::Conversion);
        assert_eq!(refused(Value::Float(1e40), PgType::Float4), ErrorKind::Overflow);
        assert_eq!(refused(Value::Float(f64::NAN), PgType::Numeric), ErrorKind::NoNumber);
        assert_eq!(refused(Value::Int(1), PgType::TimestampTz), ErrorKind::Conversion);
    }

    #[test]
    fn texts_that_are_numbers() {
        assert_eq!(read(text(" 12 "), PgType::Int4), Value::Int(12));
        assert_eq!(read(text(" 1.5e3 "), PgType::Float8), Value::Float(1500.0));
        assert_eq!(read(text("1.5e3"), PgType::Int2), Value::Int(1500));
        assert_eq!(read(text("0.1"), PgType::Float4), Value::Real(0.1));
        let money = Decimal { negative: true, magnitude: 150, scale: 2 };
        assert_eq!(read(text("-1.50"), PgType::Numeric), Value::Decimal(money));
        for (word, bit) in [("true", true), ("FALSE", false), ("0", false), ("1", true)] {
            assert_eq!(read(text(word), PgType::Bool), Value::Bit(bit));
        }
        for target in [PgType::Int4, PgType::Float4, PgType::Float8, PgType::Numeric, PgType::Bool] {
            for word in ["", "twelve", "1,5", "0x1F", "1 2", "nano", "in"] {
                assert_eq!(refused(text(word), target), ErrorKind::Conversion, "{word}");
            }
        }
        for target in [PgType::Int4, PgType::Numeric, PgType::Bool] {
            for word in ["NaN", "infinity"] {
                assert_eq!(refused(text(word), target), ErrorKind::Conversion, "{word}");
            }
        }
        assert_eq!(read(text(" -infinity "), PgType::Float8), Value::Float(f64::NEG_INFINITY));
        assert_eq!(written(text("NaN"), PgType::Float4), Ok(f32::NAN.to_be_bytes().to_vec()));
        assert_eq!(refused(text("1e400"), PgType::Float8), ErrorKind::Overflow);
        assert_eq!(refused(text("1e-400"), PgType::Float8), ErrorKind::Overflow);
        assert_eq!(refused(text("99999999999"), PgType::Int4), ErrorKind::Overflow);
    }

    #[test]
    fn text_and_bytes() {
        assert_eq!(written(text("ring"), PgType::Jsonb), Ok(b"\x01ring".to_vec()));
        assert_eq!(written(Value::Int(-5), PgType::Varchar), Ok(b"-5".to_vec()));
        assert_eq!(written(text(""), PgType::Varchar), Ok(vec![]));
        assert_eq!(written(text("4 days"), PgType::Other(1186)), Ok(b"4 days".to_vec()));
        assert_eq!(refused(text("a\0b"), PgType::Text), ErrorKind::Charset);
        assert_eq!(refused(text("ab"), PgType::Char), ErrorKind::Truncation);
        assert_eq!(refused(text("ab"), PgType::Bytea), ErrorKind::Conversion);
        assert_eq!(refused(Value::Binary(Cow::Borrowed(b"ab")), PgType::Text), ErrorKind::Conversion);
        assert_eq!(refused(Value::Binary(Cow::Borrowed(b"ab")), PgType::Int4), ErrorKind::Conversion);
    }

    #[test]
    fn uuids() {
        let guid = Value::Guid(0x00112233_4455_6677_8899_aabbccddeeff_u128.to_be_bytes());
        assert_eq!(read(text("00112233-4455-6677-8899-AABBCCDDEEFF"), PgType::Uuid), guid);
        assert_eq!(read(text("{00112233-4455-6677-8899-aabbccddeeff}"), PgType::Uuid), guid);
        assert_eq!(read(guid, PgType::Text), text("00112233-4455-6677-8899-aabbccddeeff"));
        for wrong in ["", "00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeefg"] {
            assert_eq!(refused(text(wrong), PgType::Uuid), ErrorKind::Conversion);
        }
    }

    #[test]
    fn the_hours_that_were_twice_and_never() {
        let zurich = Zone::new("Europe/Zurich").unwrap();
        let hour = 3_600_000_000;
        let mut out = BytesMut::new();
        let never = to_pg(&text("2025-03-30 02:30"), PgType::TimestampTz, &zurich, &mut out).unwrap_err();
        assert!(never.kind == ErrorKind::Conversion && out.is_empty(), "{never}");
        for (time, twice) in [
            ("2025-10-26 01:59:59", None),
            ("2025-10-26 02:00", Some(hour)),
            ("2025-10-26 02:59:59.999", Some(hour)),
            ("2025-10-26 03:00", None),
            ("2025-10-26 02:30+02:00", None),
            ("2025-03-30 02:30", None),
            ("not a time", None),
        ] {
            assert_eq!(repeated(&text(time), PgType::TimestampTz, &zurich), twice, "{time}");
            assert_eq!(repeated(&text(time), PgType::Timestamp, &zurich), None);
            assert_eq!(repeated(&text(time), PgType::TimestampTz, &Zone::UTC), None);
        }
    }

    #[test]
    fn dates_and_times() {
        let noon = Value::DateTime(43_200_000_000);
        let tokyo = Zone::new("Asia/Tokyo").unwrap();
        let mut out = BytesMut::new();
        to_pg(&noon, PgType::TimestampTz, &tokyo, &mut out).unwrap();
        assert_eq!(from_pg(PgType::TimestampTz, &out, &Zone::UTC), Ok(Value::DateTime(3 * 3_600_000_000)));
        assert_eq!(from_pg(PgType::TimestampTz, &out, &tokyo), Ok(noon.clone()));
        let instant = text("2000-01-01T12:00:00+09:00");
        assert_eq!(read(instant.clone(), PgType::TimestampTz), Value::DateTime(3 * 3_600_000_000));
        out.clear();
        to_pg(&instant, PgType::Timestamp, &tokyo, &mut out).unwrap();
        assert_eq!(from_pg(PgType::Timestamp, &out, &tokyo), Ok(noon.clone()));
        assert_eq!(read(text("2000-01-02"), PgType::TimestampTz), Value::DateTime(86_400_000_000));
        assert_eq!(read(Value::DateTime(-86_400_000_000), PgType::Date), Value::Date(-1));
        assert_eq!(read(text("1900-01-01 00:00:01"), PgType::Time), Value::Time(1_000_000));
        assert_eq!(read(text("1970-01-01 00:00:01"), PgType::Time), Value::Time(1_000_000));
        assert_eq!(refused(text("1970-01-02 00:00:01"), PgType::Time), ErrorKind::Conversion);
        assert_eq!(read(noon.clone(), PgType::Text), text("2000-01-01 12:00:00"));
        assert_eq!(refused(noon.clone(), PgType::Date), ErrorKind::Conversion);
        assert_eq!(refused(noon, PgType::Time), ErrorKind::Conversion);
        assert_eq!(refused(Value::Time(1), PgType::Timestamp), ErrorKind::Conversion);
        for wrong in ["", "yesterday", "02/03/2024", "infinity", "2024-02-30"] {
            assert_eq!(refused(text(wrong), PgType::TimestampTz), ErrorKind::Conversion, "{wrong}");
        }
        let infinity = i64::MAX.to_be_bytes();
        assert_eq!(from_pg(PgType::Timestamp, &infinity, &Zone::UTC).unwrap_err().kind, ErrorKind::Overflow);
    }
}
