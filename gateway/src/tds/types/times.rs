//! DATE, TIME, DATETIME2 and DATETIMEOFFSET of TDS 7.3 (MS-TDS 2.2.5.5.1.8).
//!
//! A time counts 10^-scale s in 3 to 5 bytes, a date the days since 0001-01-01 in 3, an offset the minutes in 2, always
//! little-endian. Time and date of a DATETIMEOFFSET are in UTC.

use super::clock::{self, DAY, LAST_DAY, TO_0001};
use super::framing::put_short;
use super::info::TypeInfo;
use super::integers::wrong_length;
use super::time_size::{size, time_bytes, DATE_BYTES, OFFSET_BYTES};
use super::token::TypeToken;
use super::value::{ConvertError, Result, Value};
use bytes::BytesMut;

/// ±14:00, the widest offset of the type.
const WIDEST_OFFSET: u16 = 840;

fn little(bytes: &[u8]) -> i64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

pub(super) fn decode(raw: &[u8], t: &TypeInfo) -> Result<Value<'static>> {
    if raw.len() != usize::from(size(t.token, t.scale)) {
        return Err(wrong_length(t));
    }
    let out_of_range = || ConvertError::overflow("a date or time outside its type", t.token.name());
    if t.token == TypeToken::DateN {
        let days = date(raw).ok_or_else(out_of_range)?;
        return Ok(Value::Date(days as i32));
    }
    let (time, rest) = raw.split_at_checked(time_bytes(t.scale)).ok_or_else(|| wrong_length(t))?;
    let time = micros(little(time), t.scale).ok_or_else(out_of_range)?;
    if t.token == TypeToken::TimeN {
        // the last 50 ns of a day are not rounded to 24:00, which T-SQL lacks
        return Ok(Value::Time(time.min(DAY - 1)));
    }
    let (days, offset) = rest.split_at_checked(DATE_BYTES).ok_or_else(|| wrong_length(t))?;
    let days = date(days).ok_or_else(out_of_range)?;
    // the last 100 ns of the calendar are not rounded into the year 10000
    let datetime = (days * DAY + time).min((LAST_DAY + 1) * DAY - 1);
    match offset {
        [low, high] => {
            let offset_minutes = i16::from_le_bytes([*low, *high]);
            if offset_minutes.unsigned_abs() > WIDEST_OFFSET {
                return Err(out_of_range());
            }
            Ok(Value::DateTimeOffset { utc: datetime, offset_minutes })
        }
        _ => Ok(Value::DateTime(datetime)),
    }
}

/// The nanoseconds since 2000-01-01 of a DATETIME2 with seven decimals; their range is the years 1708 to 2292.
pub fn nanoseconds(raw: &[u8], t: &TypeInfo) -> Result<i64> {
    let (time, days) = raw.split_at_checked(time_bytes(7)).ok_or_else(|| wrong_length(t))?;
    if days.len() != DATE_BYTES {
        return Err(wrong_length(t));
    }
    let units = Some(little(time)).filter(|units| *units < DAY * 10);
    let begin = date(days).and_then(|days| days.checked_mul(DAY * 1000));
    let found = units.zip(begin).and_then(|(units, begin)| begin.checked_add(units * 100));
    found.ok_or_else(|| ConvertError::overflow("a date or time outside its type", t.token.name()))
}

fn date(bytes: &[u8]) -> Option<i64> {
    let days = little(bytes) - TO_0001;
    (days <= LAST_DAY).then_some(days)
}

/// 10^-scale s to microseconds, 100 ns to the nearest.
fn micros(units: i64, scale: u8) -> Option<i64> {
    let limit = 86_400 * 10i64.pow(u32::from(scale.min(7)));
    if !(0..limit).contains(&units) {
        return None;
    }
    Some(match scale {
        0..=6 => units * 10i64.pow(6 - u32::from(scale)),
        _ => (units + 5) / 10,
    })
}

pub(super) fn encode(v: &Value, t: &TypeInfo, out: &mut BytesMut) -> Result<()> {
    let name = t.token.name();
    let overflow = || ConvertError::overflow(v.kind(), name);
    let in_calendar = |days: i64| (-TO_0001..=LAST_DAY).contains(&days);
    let mut bytes = [0; 10];
    if t.token == TypeToken::DateN {
        let days = clock::to_date(v, name)?;
        if !in_calendar(days) {
            return Err(overflow());
        }
        put_short(t, &(days + TO_0001).to_le_bytes()[..DATE_BYTES], out);
        return Ok(());
    }
    let (datetime, offset) = match (t.token, v) {
        (TypeToken::TimeN, _) => (clock::to_time(v, name)?, 0),
        (TypeToken::DateTimeOffset, Value::DateTimeOffset { utc, offset_minutes }) => (*utc, *offset_minutes),
        _ => (clock::to_datetime(v, name)?, 0),
    };
    let (mut days, micros) = if t.token == TypeToken::TimeN { (0, datetime) } else { clock::split(datetime) };
    let per_day = 86_400 * 10i64.pow(u32::from(t.scale.min(7)));
    let mut units = match t.scale {
        0..=6 => {
            let step = 10i64.pow(6 - u32::from(t.scale));
            (micros + step / 2) / step
        }
        _ => micros * 10,
    };
    if units >= per_day {
        if t.token == TypeToken::TimeN {
            return Err(overflow());
        }
        (days, units) = (days + 1, 0);
    }
    let time = time_bytes(t.scale);
    bytes[..time].copy_from_slice(&units.to_le_bytes()[..time]);
    if t.token != TypeToken::TimeN {
        if !in_calendar(days) {
            return Err(overflow());
        }
        bytes[time..time + DATE_BYTES].copy_from_slice(&(days + TO_0001).to_le_bytes()[..DATE_BYTES]);
    }
    if t.token == TypeToken::DateTimeOffset {
        let at = time + DATE_BYTES;
        bytes[at..at + OFFSET_BYTES].copy_from_slice(&offset.to_le_bytes());
    }
    put_short(t, &bytes[..usize::from(size(t.token, t.scale))], out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{decode_value, encode_value, ErrorKind};
    use super::*;
    use crate::tds::dialect::{Dialect, Version};

    fn t(token: TypeToken, scale: u8) -> TypeInfo {
        TypeInfo::new(token, u32::from(size(token, scale))).with_scale(0, scale)
    }

    /// SQL Server: select cast(cast('9999-12-31 23:59:59.9999999' as datetime2) as varbinary) is
    /// 0x07FFBF692AC9DAB937, the scale before the value.
    #[test]
    fn the_last_datetime2() {
        let d = Dialect::new(Version::Tds74);
        let wire = [0xFF, 0xBF, 0x69, 0x2A, 0xC9, 0xDA, 0xB9, 0x37];
        let last = (LAST_DAY + 1) * DAY - 1;
        assert_eq!(decode_value(Some(&wire), &t(TypeToken::DateTime2N, 7), &d), Ok(Value::DateTime(last)));
    }

    /// "time": the range is 00:00:00.0000000 to 23:59:59.9999999.
    #[test]
    fn the_last_time() {
        let wire = (864_000_000_000_i64 - 1).to_le_bytes();
        let decoded = decode_value(Some(&wire[..5]), &t(TypeToken::TimeN, 7), &Dialect::new(Version::Tds74));
        assert_eq!(decoded, Ok(Value::Time(DAY - 1)));
    }

    #[test]
    fn lower_scales_round_and_carry() {
        let d = Dialect::new(Version::Tds74);
        let mut out = BytesMut::new();
        let before_midnight = Value::DateTime(DAY - 1);
        encode_value(&before_midnight, &t(TypeToken::DateTime2N, 3), &d, &mut out).unwrap();
        let next_day = Value::DateTime(DAY);
        assert_eq!(decode_value(Some(&out[1..]), &t(TypeToken::DateTime2N, 3), &d), Ok(next_day));
        let time = encode_value(&Value::Time(DAY - 1), &t(TypeToken::TimeN, 0), &d, &mut out);
        assert_eq!(time.unwrap_err().kind, ErrorKind::Overflow);
    }

    #[test]
    fn malformed_times_are_refused() {
        let d = Dialect::new(Version::Tds74);
        // 24:00:00.0, a day after 9999-12-31, an offset of 14:01, the least of its two bytes
        for (token, scale, wire) in [
            (TypeToken::TimeN, 0, &[0x80, 0x51, 0x01][..]),
            (TypeToken::DateN, 0, &[0xDB, 0xB9, 0x37]),
            (TypeToken::DateTimeOffset, 0, &[0, 0, 0, 0, 0, 0, 0x49, 0x03]),
            (TypeToken::DateTimeOffset, 0, &[0, 0, 0, 0, 0, 0, 0x00, 0x80]),
        ] {
            let refused = decode_value(Some(wire), &t(token, scale), &d).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Overflow, "{token:?}");
        }
        let short = decode_value(Some(&[0]), &t(TypeToken::DateTime2N, 7), &d);
        assert_eq!(short.unwrap_err().kind, ErrorKind::Conversion);
    }
}
