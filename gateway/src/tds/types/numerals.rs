//! Numbers written in decimal digits, read and written without allocation.

use super::value::{Decimal, Value};
use std::fmt::Write;

/// A number in decimal notation: `[sign] digits [. digits] [e exponent]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numeral<'t> {
    pub negative: bool,
    pub integer: &'t [u8],
    pub fraction: &'t [u8],
    pub exponent: i32,
}

impl<'t> Numeral<'t> {
    /// None if `text` is not a number in this form; blanks are not allowed.
    pub fn read(text: &'t str) -> Option<Numeral<'t>> {
        let (negative, rest) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (integer, rest) = digits(rest);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => digits(rest),
            rest => (&[][..], rest),
        };
        if integer.is_empty() && fraction.is_empty() {
            return None;
        }
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => read_exponent(rest)?,
            _ => return None,
        };
        Some(Numeral { negative, integer, fraction, exponent })
    }

    /// Its value; None if it has more than 38 digits.
    pub fn to_decimal(self) -> Option<Decimal> {
        let mut magnitude = 0u128;
        // pending zeros: those at the end of the number move the decimal point instead
        let mut zeros = 0u32;
        for digit in self.integer.iter().chain(self.fraction) {
            let digit = u128::from(digit - b'0');
            if digit == 0 {
                zeros += u32::from(magnitude != 0);
                continue;
            }
            let factor = 10u128.checked_pow(zeros + 1)?;
            magnitude = magnitude.checked_mul(factor)?.checked_add(digit)?;
            zeros = 0;
        }
        if magnitude == 0 {
            return Some(Decimal::ZERO);
        }
        let point = i64::from(zeros) + i64::from(self.exponent) - i64::try_from(self.fraction.len()).ok()?;
        let mut decimal = Decimal { negative: self.negative, magnitude, scale: 0 };
        if point >= 0 {
            let factor = 10u128.checked_pow(u32::try_from(point).ok()?)?;
            decimal.magnitude = decimal.magnitude.checked_mul(factor)?;
        } else {
            decimal.scale = u8::try_from(-point).ok().filter(|scale| *scale <= 38)?;
        }
        (decimal.digits() <= 38).then_some(decimal)
    }
}

fn digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.split_at(count)
}

fn read_exponent(bytes: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(bytes).ok()?;
    let magnitude = text.strip_prefix(['+', '-']).unwrap_or(text);
    if magnitude.is_empty() || !magnitude.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A short text on the stack, with room for the longest number, date or GUID.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    bytes: [u8; 64],
    len: usize,
}

impl Write for Digits {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl Digits {
    pub fn new() -> Digits {
        Digits { bytes: [0; 64], len: 0 }
    }

    pub fn as_str(&self) -> &str {
        // only whole strings are ever written
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    /// Appends formatted text. The written types bound its length; text that would not fit is omitted.
    pub fn put(&mut self, text: std::fmt::Arguments) {
        let fits = self.write_fmt(text).is_ok();
        debug_assert!(fits, "longer than any number");
    }

    pub fn put_decimal(&mut self, number: Decimal) {
        let sign = if number.negative && number.magnitude != 0 { "-" } else { "" };
        let scale = usize::from(number.scale);
        let factor = 10u128.checked_pow(u32::from(number.scale)).unwrap_or(u128::MAX);
        let (whole, part) = (number.magnitude / factor, number.magnitude % factor);
        if scale == 0 {
            self.put(format_args!("{sign}{whole}"));
        } else {
            self.put(format_args!("{sign}{whole}.{part:0scale$}"));
        }
    }

    /// Numbers in PostgreSQL's notation, floats with the fewest digits that read back as the same float, money with its
    /// four decimals. Other values are omitted.
    pub fn put_number(&mut self, value: &Value) {
        match value {
            Value::Int(int) => self.put(format_args!("{int}")),
            Value::Bit(bit) => self.put(format_args!("{}", u8::from(*bit))),
            Value::Decimal(decimal) => self.put_decimal(*decimal),
            Value::Money(money) => self.put_decimal(Decimal { scale: 4, ..Decimal::from_int(*money) }),
            // fixed notation below the digits that the type surely holds (float.c, ryu)
            Value::Real(real) => self.put_float(format_args!("{real:e}"), f64::from(*real), 6),
            Value::Float(float) => self.put_float(format_args!("{float:e}"), *float, 15),
            _ => {}
        }
    }

    /// `shortest` is Rust's shortest round-trip form, `d.ddde-5`.
    fn put_float(&mut self, shortest: std::fmt::Arguments, float: f64, fixed_below: i32) {
        if float.is_nan() {
            return self.put(format_args!("NaN"));
        }
        if float.is_infinite() {
            return self.put(format_args!("{}Infinity", if float < 0.0 { "-" } else { "" }));
        }
        let mut scientific = Digits::new();
        scientific.put(shortest);
        let text = scientific.as_str();
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        if !(-4..fixed_below).contains(&exponent) {
            let sign = if exponent < 0 { '-' } else { '+' };
            return self.put(format_args!("{mantissa}e{sign}{:02}", exponent.unsigned_abs()));
        }
        let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
        let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let shift = exponent.unsigned_abs() as usize;
        if exponent < 0 {
            self.put(format_args!("{sign}0.{:0<1$}{first}{rest}", "", shift - 1));
        } else if rest.len() <= shift {
            self.put(format_args!("{sign}{first}{rest:0<shift$}"));
        } else {
            let (whole, part) = rest.split_at(shift);
            self.put(format_args!("{sign}{first}{whole}.{part}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: Value) -> String {
        let mut text = Digits::new();
        text.put_number(&value);
        text.as_str().to_owned()
    }

    #[test]
    fn floats_as_postgresql_writes_them() {
        // PostgreSQL 18: select 1e-5::float8, 0.0001::float8, …
        for (float, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (123456.789, "123456.789"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (-1.25e-300, "-1.25e-300"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(written(Value::Float(float)), text);
        }
        for (real, text) in [(1e5, "100000"), (1e6, "1e+06"), (0.1, "0.1"), (1.1e-5, "1.1e-05")] {
            assert_eq!(written(Value::Real(real)), text);
        }
    }

    #[test]
    fn decimals_keep_their_scale() {
        let number = Decimal { negative: true, magnitude: 105, scale: 4 };
        assert_eq!(written(Value::Decimal(number)), "-0.0105");
        let longest = Decimal { negative: true, magnitude: 10u128.pow(38) - 1, scale: 38 };
        assert_eq!(written(Value::Decimal(longest)), format!("-0.{}", "9".repeat(38)));
        assert_eq!(written(Value::Money(-12345)), "-1.2345");
    }

    #[test]
    fn numerals_are_read_exactly_or_not_at_all() {
        let decimal = |text: &str| Numeral::read(text)?.to_decimal();
        let of = |negative, magnitude, scale| Some(Decimal { negative, magnitude, scale });
        assert_eq!(decimal("12"), of(false, 12, 0));
        assert_eq!(decimal("-1.50e3"), of(true, 1500, 0));
        assert_eq!(decimal("+.5"), of(false, 5, 1));
        assert_eq!(decimal("5."), of(false, 5, 0));
        assert_eq!(decimal("0.000"), of(false, 0, 0));
        assert_eq!(decimal(&format!("1.{}", "0".repeat(300))), of(false, 1, 0));
        assert_eq!(decimal(&"9".repeat(39)), None);
        for not_a_number in
            ["", "-", ".", "e5", "1e", "1e+", "1 2", "0x10", "1,5", "nan", "inf", "1e99999999999"]
        {
            assert_eq!(Numeral::read(not_a_number), None, "{not_a_number}");
        }
    }
}
