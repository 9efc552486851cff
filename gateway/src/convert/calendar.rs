//! Dates and times in the forms that clients write.
//!
//! Accepted: `2024-02-03` (also with `/` or `.`), `20240203`, `Feb  3 2024`, `Feb 3, 2024`, `3 Feb 2024`,
//! `03-Feb-2024`; after a blank or `T` a time `4:05`, `04:05:06`, `04:05:06.789`, `4:05:06:789AM`, `4 PM`; after that
//! an offset `Z`, `+09`, `+0900`, `+09:00`; also a date or a time alone. Refused, because their meaning depends on a
//! setting: all-numeric dates that do not begin with a year of four digits.

use crate::tds::types::clock::DAY;
use crate::tds::types::Value;
use jiff::civil::{date, Date};

const MINUTE: i64 = 60_000_000;

/// A date, a time of day, a date with a time, or those with an offset; None for any other text.
pub(super) fn read(text: &str) -> Option<Value<'static>> {
    let mut rest = Scanner { rest: text.trim_ascii() };
    let day = rest.date();
    if let Ok(Some(day)) = day {
        let days = day.duration_since(date(2000, 1, 1)).as_hours() / 24;
        if rest.is_empty() {
            return Some(Value::Date(i32::try_from(days).ok()?));
        }
        if !rest.separator() {
            return None;
        }
        let local = days * DAY + rest.time()?;
        if rest.is_empty() {
            return Some(Value::DateTime(local));
        }
        let offset_minutes = rest.offset()?;
        let utc = local - i64::from(offset_minutes) * MINUTE;
        return rest.is_empty().then_some(Value::DateTimeOffset { utc, offset_minutes });
    }
    day.ok()?;
    let time = rest.time()?;
    rest.is_empty().then_some(Value::Time(time))
}

/// As `read`. Unless `reads_year_first`, a text that begins with a year is not accepted, except for `2024-02-03T`.
pub(super) fn read_as(text: &str, reads_year_first: bool) -> Option<Value<'static>> {
    let year = text.trim_ascii_start().as_bytes();
    let is_year_first = matches!(year.get(4), Some(b'-' | b'/' | b'.')) && year.get(10) != Some(&b'T');
    if is_year_first && !reads_year_first && year[..4].iter().all(u8::is_ascii_digit) {
        return None;
    }
    read(text)
}

struct NotADate;

#[derive(Clone, Copy)]
struct Scanner<'t> {
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'t str {
        let end = self.rest.bytes().position(|byte| !belongs(byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn take(&mut self, byte: char) -> bool {
        match self.rest.strip_prefix(byte) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn digits(&mut self) -> &'t str {
        self.take_while(|byte| byte.is_ascii_digit())
    }

    /// A number of one or two digits.
    fn short(&mut self) -> Option<i8> {
        let digits = self.digits();
        (digits.len() <= 2).then(|| digits.parse().ok())?
    }

    fn year(&mut self) -> Option<i16> {
        let digits = self.digits();
        (digits.len() == 4).then(|| digits.parse().ok())?
    }

    fn month_name(&mut self) -> Option<i8> {
        let word = self.take_while(|byte| byte.is_ascii_alphabetic());
        let names = [
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ];
        let same = |name: &str| {
            word.eq_ignore_ascii_case(name)
                || name.get(..3).is_some_and(|short| word.eq_ignore_ascii_case(short))
        };
        let month = names.iter().position(|name| same(name))?;
        i8::try_from(month + 1).ok()
    }

    /// At least one blank, or a comma with or without blanks.
    fn gap(&mut self) -> bool {
        let before = self.rest.len();
        self.take_while(|byte| byte == b' ');
        self.take(',');
        self.take_while(|byte| byte == b' ');
        self.rest.len() < before
    }

    fn separator(&mut self) -> bool {
        self.take('T') || self.take('t') || !self.take_while(|byte| byte == b' ').is_empty()
    }

    /// None, without consuming anything, if the text begins otherwise, such as with a time.
    fn date(&mut self) -> Result<Option<Date>, NotADate> {
        let mut next = *self;
        let day = if next.rest.starts_with(|first: char| first.is_ascii_alphabetic()) {
            next.month_first().ok_or(NotADate)?
        } else {
            let digits = next.digits();
            match (digits.len(), next.rest.as_bytes().first()) {
                (8, _) => {
                    let number: i32 = digits.parse().map_err(|_| NotADate)?;
                    Some((number / 10_000, number / 100 % 100, number % 100))
                        .and_then(|(year, month, day)| {
                            Date::new(i16::try_from(year).ok()?, month as i8, day as i8).ok()
                        })
                        .ok_or(NotADate)?
                }
                (4, Some(separator @ (b'-' | b'/' | b'.'))) => {
                    next.year_first(digits, char::from(*separator)).ok_or(NotADate)?
                }
                (1 | 2, Some(b' ' | b'-'))
                    if next.rest.as_bytes().get(1).is_some_and(u8::is_ascii_alphabetic) =>
                {
                    match next.day_first(digits) {
                        Some(day) => day,
                        // "4 PM"
                        None => return Ok(None),
                    }
                }
                _ => return Ok(None),
            }
        };
        if day.year() < 1 {
            return Err(NotADate);
        }
        *self = next;
        Ok(Some(day))
    }

    fn year_first(&mut self, year: &str, separator: char) -> Option<Date> {
        self.take(separator);
        let month = self.short()?;
        if !self.take(separator) {
            return None;
        }
        Date::new(year.parse().ok()?, month, self.short()?).ok()
    }

    fn month_first(&mut self) -> Option<Date> {
        let month = self.month_name()?;
        self.gap();
        let day = self.short()?;
        if !self.gap() {
            return None;
        }
        Date::new(self.year()?, month, day).ok()
    }

    fn day_first(&mut self, day: &str) -> Option<Date> {
        let hyphen = self.take('-');
        self.gap();
        let month = self.month_name()?;
        if !(if hyphen { self.take('-') } else { self.gap() }) {
            return None;
        }
        Date::new(self.year()?, month, day.parse().ok()?).ok()
    }

    /// Microseconds of the day.
    fn time(&mut self) -> Option<i64> {
        let mut hour = i64::from(self.short()?);
        let (mut minute, mut second, mut fraction) = (0, 0, 0);
        let with_minutes = self.take(':');
        if with_minutes {
            minute = i64::from(self.two_digits()?);
            if self.take(':') {
                second = i64::from(self.two_digits()?);
                if self.take('.') {
                    fraction = self.fraction()?;
                } else if self.take(':') {
                    let digits = self.digits();
                    fraction = (digits.len() == 3).then(|| digits.parse::<i64>().ok())?? * 1000;
                }
            }
        }
        match self.half_of_day() {
            Some(afternoon) if (1..=12).contains(&hour) => hour = hour % 12 + if afternoon { 12 } else { 0 },
            Some(_) => return None,
            None if with_minutes => {}
            None => return None,
        }
        let in_range = hour < 24 && minute < 60 && second < 60;
        in_range.then_some(((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction)
    }

    fn two_digits(&mut self) -> Option<i8> {
        let digits = self.digits();
        (digits.len() == 2).then(|| digits.parse().ok())?
    }

    /// Up to nine digits, rounded half up to the nearest microsecond within the second, as in tsql.read_clock:
    /// 23:59:59.9999999 is not 24:00.
    fn fraction(&mut self) -> Option<i64> {
        let digits = self.digits();
        if digits.is_empty() || digits.len() > 9 {
            return None;
        }
        let nanos = digits.parse::<i64>().ok()? * 10i64.pow(9 - digits.len() as u32);
        Some(((nanos + 500) / 1000).min(999_999))
    }

    /// AM or PM; nothing is consumed if neither follows.
    fn half_of_day(&mut self) -> Option<bool> {
        let mut next = *self;
        next.take_while(|byte| byte == b' ');
        let word = next.take_while(|byte| byte.is_ascii_alphabetic());
        let afternoon = word.eq_ignore_ascii_case("pm");
        if !afternoon && !word.eq_ignore_ascii_case("am") {
            return None;
        }
        *self = next;
        Some(afternoon)
    }

    /// Minutes east of UTC, at most 15:59 as in PostgreSQL.
    fn offset(&mut self) -> Option<i16> {
        self.take_while(|byte| byte == b' ');
        if self.take('Z') || self.take('z') {
            return Some(0);
        }
        let west = match (self.take('+'), self.take('-')) {
            (true, false) => false,
            (false, true) => true,
            _ => return None,
        };
        let digits = self.digits();
        let (hours, minutes) = match digits.len() {
            4 => digits.split_at(2),
            2 if self.take(':') => {
                let minutes = self.digits();
                (digits, (minutes.len() == 2).then_some(minutes)?)
            }
            2 => (digits, "0"),
            _ => return None,
        };
        let (hours, minutes): (i16, i16) = (hours.parse().ok()?, minutes.parse().ok()?);
        let offset = (hours < 16 && minutes < 60).then_some(hours * 60 + minutes)?;
        Some(if west { -offset } else { offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datetime(text: &str) -> i64 {
        let time: jiff::civil::DateTime = text.parse().unwrap();
        time.duration_since(jiff::civil::datetime(2000, 1, 1, 0, 0, 0, 0)).as_micros() as i64
    }

    #[test]
    fn datetimes() {
        for (text, iso) in [
            // pymssql, ISO
            ("2024-02-03 04:05:06.789123", "2024-02-03T04:05:06.789123"),
            ("2024-02-03 04:05:06.789", "2024-02-03T04:05:06.789"),
            ("2024-02-03T04:05", "2024-02-03T04:05:00"),
            ("20240203 04:05:06", "2024-02-03T04:05:06"),
            ("2024/2/3 4:05:06", "2024-02-03T04:05:06"),
            // Transact-SQL styles 0, 109 and 113, and ASE's with a colon before the milliseconds
            ("Feb  3 2024  4:05AM", "2024-02-03T04:05:00"),
            ("Feb  3 2024 12:05:06:789PM", "2024-02-03T12:05:06.789"),
            ("03 Feb 2024 16:05:06:789", "2024-02-03T16:05:06.789"),
            ("February 3, 2024 12:00AM", "2024-02-03T00:00:00"),
            // rounded to the microsecond, into the next day if need be
            ("2024-02-03 23:59:59.9999999", "2024-02-03T23:59:59.999999"),
        ] {
            assert_eq!(read(text), Some(Value::DateTime(datetime(iso))), "{text}");
        }
    }

    #[test]
    fn dates_and_times_alone() {
        let days = |iso: &str| (datetime(iso) / DAY) as i32;
        for text in ["2024-02-03", " 20240203 ", "Feb 3 2024", "3 feb 2024", "03-Feb-2024", "2024.02.03"] {
            assert_eq!(read(text), Some(Value::Date(days("2024-02-03T00:00:00"))), "{text}");
        }
        assert_eq!(read("04:05:06.5"), Some(Value::Time(14_706_500_000)));
        assert_eq!(read("23:59:59.9999999"), Some(Value::Time(DAY - 1)));
        assert_eq!(read("4 PM"), Some(Value::Time(16 * 60 * MINUTE)));
        assert_eq!(read("12:30am"), Some(Value::Time(30 * MINUTE)));
    }

    #[test]
    fn offsets() {
        let utc = datetime("2024-02-03T00:00:00");
        for (text, offset_minutes) in [
            ("2024-02-03T00:00:00Z", 0),
            ("2024-02-03T09:00:00+09", 540),
            ("2024-02-03 09:00:00 +0900", 540),
            ("2024-02-02 22:30:00.000-01:30", -90),
        ] {
            assert_eq!(read(text), Some(Value::DateTimeOffset { utc, offset_minutes }), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            " ",
            "now",
            "infinity",
            "02/03/2024",
            "3.2.2024",
            "2024-13-01",
            "2024-02-30",
            "240203",
            "2024",
            "2024-02-03 ",
            "2024-02-03 24:00",
            "2024-02-03 04:05:60",
            "2024-02-03 4",
            "2024-02-03x",
            "13:00PM",
            "04:05:06.1234567890",
            "0000-01-01",
            "2024-02/03",
            "Foo 3 2024",
            "2024-02-03 00:00:00+16",
            "04:05:06+01",
            "2024-02-03 04:05:06 BC",
            "Feb 3 2024 4:05:06:7",
            "２０２４-02-03",
        ] {
            let expected = if text == "2024-02-03 " { Some(()) } else { None };
            assert_eq!(read(text).map(|_| ()), expected, "{text}");
        }
    }
}
