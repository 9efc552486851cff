//! Values as text: numbers in PostgreSQL's notation, dates and times in ISO 8601's order with a blank
//! before the time, GUIDs in lower case.

use super::clock::{self, DAY};
use super::numerals::Digits;
use super::value::{ConvertError, Result, Value};
use jiff::civil::date;
use std::borrow::Cow;

impl Value<'_> {
    /// The value's text; `to` names the target in errors. Binary has none: it is not text in any charset.
    pub(crate) fn to_text(&self, to: &str) -> Result<Cow<'_, str>> {
        match self {
            Value::Text(text) => Ok(Cow::Borrowed(text)),
            Value::Variant(variant) => variant.value.to_text(to),
            _ => Ok(Cow::Owned(self.short_text(to)?.as_str().to_owned())),
        }
    }

    /// The text of any value except text and binary, on the stack.
    pub(crate) fn short_text(&self, to: &str) -> Result<Digits> {
        let mut text = Digits::new();
        match self {
            Value::Bit(_)
            | Value::Int(_)
            | Value::Real(_)
            | Value::Float(_)
            | Value::Decimal(_)
            | Value::Money(_) => {
                text.put_number(self);
            }
            Value::Date(days) => {
                text.put_date(i64::from(*days)).ok_or_else(|| ConvertError::overflow("date", to))?
            }
            Value::Time(micros) => text.put_time(*micros),
            Value::DateTime(micros) => {
                text.put_datetime(*micros).ok_or_else(|| ConvertError::overflow("datetime", to))?;
            }
            Value::DateTimeOffset { utc, offset_minutes } => {
                let local = utc.checked_add(i64::from(*offset_minutes) * 60_000_000);
                local
                    .and_then(|local| text.put_datetime(local))
                    .ok_or_else(|| ConvertError::overflow("datetimeoffset", to))?;
                let sign = if *offset_minutes < 0 { '-' } else { '+' };
                let minutes = offset_minutes.unsigned_abs();
                text.put(format_args!(" {sign}{:02}:{:02}", minutes / 60, minutes % 60));
            }
            Value::Guid(bytes) => {
                for (i, byte) in bytes.iter().enumerate() {
                    let hyphen = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
                    text.put(format_args!("{hyphen}{byte:02x}"));
                }
            }
            Value::Variant(variant) => return variant.value.short_text(to),
            Value::Null | Value::Text(_) | Value::Binary(_) => {
                return Err(ConvertError::conversion(&format!("a value of type {}", self.kind()), to));
            }
        }
        Ok(text)
    }
}

impl Digits {
    /// None outside the years 0001–9999.
    fn put_date(&mut self, days: i64) -> Option<()> {
        if !(-clock::TO_0001..=clock::LAST_DAY).contains(&days) {
            return None;
        }
        let day = date(2000, 1, 1).checked_add(jiff::Span::new().days(days)).ok()?;
        self.put(format_args!("{:04}-{:02}-{:02}", day.year(), day.month(), day.day()));
        Some(())
    }

    fn put_time(&mut self, micros: i64) {
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        self.put(format_args!("{hours:02}:{minutes:02}:{:02}", seconds % 60));
        if fraction != 0 {
            let mut digits = Digits::new();
            digits.put(format_args!(".{fraction:06}"));
            self.put(format_args!("{}", digits.as_str().trim_end_matches('0')));
        }
    }

    fn put_datetime(&mut self, micros: i64) -> Option<()> {
        let (days, micros) = clock::split(micros);
        debug_assert!(micros < DAY);
        self.put_date(days)?;
        self.put(format_args!(" "));
        self.put_time(micros);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_text() {
        let guid: [u8; 16] = *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";
        for (value, text) in [
            (Value::Int(-7), "-7"),
            (Value::Bit(true), "1"),
            (Value::Date(-1), "1999-12-31"),
            (Value::Date(-730_119), "0001-01-01"),
            (Value::Time(3_661_500_000), "01:01:01.5"),
            (Value::DateTime(1), "2000-01-01 00:00:00.000001"),
            (Value::DateTimeOffset { utc: 0, offset_minutes: -90 }, "1999-12-31 22:30:00 -01:30"),
            (Value::Guid(guid), "00112233-4455-6677-8899-aabbccddeeff"),
        ] {
            assert_eq!(value.to_text("text").unwrap(), text);
        }
        assert!(Value::Date(i32::MAX).to_text("text").is_err());
        assert!(Value::Binary(Cow::Borrowed(b"x")).to_text("text").is_err());
    }
}
