//! Literals as values.

use super::{Constant, Value};
use crate::error::Error;
use crate::facts::types::{self, varchar, Type, LONGEST_VARCHAR, MOST_DIGITS, VARBINARY};
use crate::postgres::Scalar;
use crate::units::units;
use crate::Dialect;

/// `'text'`
pub fn of_text(text: &str, national: bool, dialect: &Dialect) -> Value {
    let text = if dialect.empty_text_is_blank && text.is_empty() { " " } else { text };
    let length = units(text) as u32;
    let of = varchar(Some(length.max(1)).filter(|length| *length <= LONGEST_VARCHAR));
    let sql = Scalar::text(text).cast(of.sql());
    // characters that a single-byte code page may lack
    let of = Type { twin: national || !text.is_ascii(), kept: !national && !text.is_ascii(), ..of };
    Value { constant: Constant::Text(text.to_owned()), ..Value::new(sql, of) }
}

/// Characters of the longest literal that is an int.
const LONGEST_INT: usize = 11;

/// Digits without a decimal point.
pub fn of_integer(written: &str, line: u32) -> Result<Value, Error> {
    let digits = written.trim_start_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    if digits.len() > usize::from(MOST_DIGITS) {
        return Err(too_many_digits(written, line));
    }
    // a longer one is numeric, whatever its number
    if let Some(number) = digits.parse::<i32>().ok().filter(|_| written.len() <= LONGEST_INT) {
        return Ok(Value {
            constant: Constant::Integer(number.into()),
            ..Value::new(Scalar::number(digits), types::INT)
        });
    }
    let of = types::numeric(digits.len() as u8, 0);
    Ok(Value::cast(Scalar::number(digits), of))
}

/// Digits with a decimal point.
pub fn of_decimal(written: &str, line: u32) -> Result<Value, Error> {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let whole = whole.trim_start_matches('0');
    let precision = (whole.len() + fraction.len()).max(1);
    if precision > usize::from(MOST_DIGITS) {
        return Err(too_many_digits(written, line));
    }
    let of = types::numeric(precision as u8, fraction.len() as u8);
    let shown = |digits| if str::is_empty(digits) { "0" } else { digits };
    Ok(Value::cast(Scalar::Number(format!("{}.{}", shown(whole), shown(fraction))), of))
}

/// Digits with an exponent, which may have no digits: `1e` is 1e0.
pub fn of_float(written: &str) -> Value {
    let digits = match written.ends_with(|last: char| last.is_ascii_digit()) {
        true => written.to_owned(),
        false => format!("{}0", written.trim_end_matches(['+', '-'])),
    };
    Value::new(Scalar::Text(digits).cast("float8"), types::FLOAT)
}

/// The amount of `$1.50`.
pub fn of_money(amount: &str, line: u32) -> Result<Value, Error> {
    if amount.split_once('.').is_some_and(|(_, decimals)| decimals.len() > 4) {
        return Err(Error::refused(&format!("${amount}"), "money has four decimals", line));
    }
    Ok(Value::money(Scalar::text(amount).cast("numeric(19,4)"), types::MONEY))
}

/// The digits of `0x0A`.
pub fn of_binary(digits: &str) -> Value {
    let odd = if digits.len().is_multiple_of(2) { "" } else { "0" };
    let length = u32::try_from(digits.len().div_ceil(2)).ok().filter(|length| *length <= LONGEST_VARCHAR);
    let of = Type { length: length.map(|length| length.max(1)), ..VARBINARY };
    Value::new(Scalar::Bytes(format!("{odd}{digits}")), of)
}

fn too_many_digits(written: &str, line: u32) -> Error {
    let text = format!(
        "The number '{written}' is out of the range for numeric representation (maximum precision {MOST_DIGITS})."
    );
    Error::new(1007, text, line)
}
