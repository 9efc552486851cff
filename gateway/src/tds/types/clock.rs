//! Dates and times as numbers: the epochs of both dialects and the exact conversions between them.

use super::value::{ConvertError, Result, Value};

pub(crate) const DAY: i64 = 86_400_000_000;
/// Days from 2000-01-01 back to 1900-01-01, 1970-01-01, 0001-01-01 and 0000-01-01.
pub(crate) const TO_1900: i64 = 36_524;
pub(crate) const TO_1970: i64 = 10_957;
pub(crate) const TO_0001: i64 = 730_119;
pub(crate) const TO_0000: i64 = 730_485;
/// 9999-12-31, where the calendars of all clients end.
pub(crate) const LAST_DAY: i64 = 2_921_939;
/// 1753-01-01, where DATETIME begins.
pub(crate) const FIRST_DATETIME_DAY: i64 = -53_690 - TO_1900;

/// Days since 2000-01-01 and microseconds of that day.
#[inline]
pub(crate) fn split(micros: i64) -> (i64, i64) {
    (micros.div_euclid(DAY), micros.rem_euclid(DAY))
}

/// 1/300 s as the millisecond displayed for it, in microseconds: 0, 3000, 7000, 10000 …
#[inline]
pub(crate) fn micros_of_ticks(ticks: i64) -> i64 {
    (ticks * 10 + 1) / 3 * 1000
}

/// The nearest 1/300 s; may be a whole day.
#[inline]
pub(crate) fn ticks_of_micros(micros: i64) -> i64 {
    (micros * 3 + 5000) / 10_000
}

pub(crate) const TICKS_PER_DAY: i64 = 25_920_000;

/// Days since 2000-01-01; a datetime only at midnight.
pub(crate) fn to_date(value: &Value<'_>, to: &str) -> Result<i64> {
    match value {
        Value::Date(days) => Ok(i64::from(*days)),
        Value::DateTime(micros) => match split(*micros) {
            (days, 0) => Ok(days),
            _ => Err(ConvertError::conversion("a datetime with a time of day", to)),
        },
        _ => Err(ConvertError::conversion(&format!("a value of type {}", value.kind()), to)),
    }
}

/// Microseconds of the day; of a datetime only on the days that stand for no date: 1900-01-01, and 1970-01-01, from
/// which mssql-jdbc makes a java.sql.Time (its sendTimeAsDatetime, on by default).
pub(crate) fn to_time(value: &Value<'_>, to: &str) -> Result<i64> {
    match value {
        Value::Time(micros) => Ok(*micros),
        Value::DateTime(micros) => match split(*micros) {
            (days, micros) if days == -TO_1900 || days == -TO_1970 => Ok(micros),
            _ => Err(ConvertError::conversion("a datetime with a date", to)),
        },
        _ => Err(ConvertError::conversion(&format!("a value of type {}", value.kind()), to)),
    }
}

/// Microseconds since 2000-01-01 of a clock without a zone; of a date at midnight.
pub(crate) fn to_datetime(value: &Value<'_>, to: &str) -> Result<i64> {
    match value {
        Value::DateTime(micros) => Ok(*micros),
        Value::Date(days) => {
            i64::from(*days).checked_mul(DAY).ok_or_else(|| ConvertError::overflow(value.kind(), to))
        }
        _ => Err(ConvertError::conversion(&format!("a value of type {}", value.kind()), to)),
    }
}

/// A datetime of the years 1 to 9999, plus or minus the day by which a zone may shift it.
pub(crate) fn in_calendar(micros: i64) -> bool {
    (-TO_0001 - 1..=LAST_DAY + 1).contains(&split(micros).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{date, Date};

    fn days(to: Date) -> i64 {
        to.duration_since(date(2000, 1, 1)).as_hours() / 24
    }

    #[test]
    fn epochs() {
        assert_eq!(days(date(1900, 1, 1)), -TO_1900);
        assert_eq!(days(date(1, 1, 1)), -TO_0001);
        assert_eq!(days(date(0, 1, 1)), -TO_0000);
        assert_eq!(days(date(9999, 12, 31)), LAST_DAY);
        assert_eq!(days(date(1753, 1, 1)), FIRST_DATETIME_DAY);
    }

    #[test]
    fn every_tick_survives_the_round_trip() {
        for ticks in 0..TICKS_PER_DAY / 24 {
            assert_eq!(ticks_of_micros(micros_of_ticks(ticks)), ticks);
        }
        assert_eq!([0, 1, 2, 3, 299].map(micros_of_ticks), [0, 3000, 7000, 10_000, 997_000]);
    }
}
