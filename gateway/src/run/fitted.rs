//! Converts values to the declared type of a variable, where PostgreSQL's type is less strict.

use crate::client::Arithabort;
use crate::convert::Value;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Decimal;
use std::borrow::Cow;
use tsql::facts::errors::SCALE;
use tsql::facts::types::{Family, Type};
use tsql::units;

/// The number of errors without a number in T-SQL.
const NO_NUMBER: i32 = 50_000;
/// The range of smallmoney in ten-thousandths.
const SMALLMONEY: std::ops::RangeInclusive<i64> = -2_147_483_648..=2_147_483_647;

/// Cuts a value to the length of a text or binary, and pads it to that of a char or binary(n), as T-SQL does in
/// assignments ("Declare @local_variable", "binary and varbinary"); rounds a decimal, in ASE according to `arithabort`.
/// Error 8115: a tinyint, smallmoney or decimal is out of range; 247: an unsigned integer is out of range; 50000: a
/// text would be cut inside a character.
pub fn fitted<'v>(
    value: Value<'v>,
    of: &Type,
    arithabort: Option<Arithabort>,
) -> Result<Value<'v>, ServerMessage> {
    let length = of.length.and_then(|length| usize::try_from(length).ok());
    Ok(match (value, of.family, length) {
        (Value::Text(text), Family::Text, Some(length)) => {
            Value::Text(of_length(text, length, of.name == "char")?)
        }
        (Value::Binary(bytes), Family::Binary, Some(length)) => {
            let is_fixed = of.name == "binary";
            if bytes.len() > length || (is_fixed && bytes.len() < length) {
                let mut bytes = bytes.into_owned();
                let filled = if is_fixed { length } else { length.min(bytes.len()) };
                bytes.resize(filled, 0);
                Value::Binary(Cow::Owned(bytes))
            } else {
                Value::Binary(bytes)
            }
        }
        (Value::Decimal(decimal), Family::Decimal, _) => Value::Decimal(of_digits(decimal, of, arithabort)?),
        (Value::Int(number), Family::Integer, _) if of.name == "tinyint" && !(0..=255).contains(&number) => {
            return Err(overflow(of.name));
        }
        (value, ..) if of.domain_from_zero().is_some_and(|(_, most)| !is_from_zero(&value, most)) => {
            let text = "Arithmetic overflow during implicit conversion to an unsigned type.";
            return Err(ServerMessage::error(247, 16, text));
        }
        (value, Family::Money, _) if of.name == "smallmoney" && !is_smallmoney(&value) => {
            return Err(overflow(of.name));
        }
        (value, ..) => value,
    })
}

fn overflow(name: &str) -> ServerMessage {
    let text = format!("Arithmetic overflow error converting expression to data type {name}.");
    ServerMessage::error(8115, 16, text)
}

/// Rounds a decimal to the precision and scale of its type.
fn of_digits(decimal: Decimal, of: &Type, arithabort: Option<Arithabort>) -> Result<Decimal, ServerMessage> {
    let (Some(precision), Some(scale)) = (of.precision, of.scale) else { return Ok(decimal) };
    let digits = decimal.digits().saturating_sub(decimal.scale.saturating_sub(scale));
    let scaled = match (decimal.rescaled(scale), arithabort) {
        _ if digits > precision => None,
        (None, Some(of_ase)) if decimal.scale > scale && of_ase.truncation => {
            let value = Value::Decimal(decimal);
            let value = value.to_text("text").unwrap_or_default();
            let text = format!(
                "Scale error during implicit conversion of NUMERIC value '{value}' to a NUMERIC field."
            );
            return Err(ServerMessage { state: 2, ..ServerMessage::error(SCALE, 16, text) });
        }
        (None, Some(_)) if decimal.scale > scale => Some(decimal.truncated(scale)),
        (None, None) if decimal.scale > scale => Some(decimal.rounded(scale)),
        (scaled, _) => scaled,
    };
    scaled.filter(|scaled| scaled.digits() <= precision).ok_or_else(|| overflow(of.name))
}

fn of_length(text: Cow<'_, str>, length: usize, fills: bool) -> Result<Cow<'_, str>, ServerMessage> {
    let Some(end) = units::end(&text, length) else {
        return Err(ServerMessage::error(NO_NUMBER, 16, units::HALF));
    };
    let missing = if fills { length.saturating_sub(units::units(&text)) } else { 0 };
    Ok(match text {
        text if missing > 0 => Cow::Owned(text.into_owned() + &" ".repeat(missing)),
        text if end == text.len() => text,
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or(text)),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    })
}

/// Whether a number is from 0 to `most`.
fn is_from_zero(value: &Value<'_>, most: u64) -> bool {
    match value {
        Value::Int(number) => u64::try_from(*number).is_ok_and(|number| number <= most),
        Value::Decimal(decimal) => decimal.rescaled(0).is_none_or(|whole| {
            (!whole.negative || whole.magnitude == 0) && whole.magnitude <= u128::from(most)
        }),
        _ => true,
    }
}

fn is_smallmoney(value: &Value<'_>) -> bool {
    match value {
        Value::Money(money) => SMALLMONEY.contains(money),
        Value::Decimal(decimal) => {
            let units = decimal.rescaled(4).and_then(|units| i64::try_from(units.magnitude).ok());
            let units = units.map(|units| if decimal.negative { -units } else { units });
            units.is_some_and(|units| SMALLMONEY.contains(&units))
        }
        Value::Int(number) => number.checked_mul(10_000).is_some_and(|units| SMALLMONEY.contains(&units)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsql::schema::Unknown;

    fn held(value: Value<'static>, declared: &str) -> Result<Value<'static>, i32> {
        let of = tsql::declarations(&format!("@a {declared}"), &tsql::SQL_SERVER, &Unknown).unwrap()[0].of;
        fitted(value, &of, None).map_err(|message| message.number)
    }

    #[test]
    fn lengths() {
        let text = |text: &'static str| Value::Text(text.into());
        let bytes = |bytes: &'static [u8]| Value::Binary(bytes.into());
        assert_eq!(held(text("äbcd"), "varchar(3)"), Ok(text("äbc")));
        assert_eq!(held(text("ab"), "nvarchar(3)"), Ok(text("ab")));
        assert_eq!(held(text("😀😀"), "nvarchar(2)"), Ok(text("😀")));
        assert_eq!(held(text("😀😀"), "nvarchar(3)"), Err(NO_NUMBER));
        assert_eq!(held(text("😀"), "nchar(3)"), Ok(text("😀 ")));
        assert_eq!(held(text("ab"), "char(4)"), Ok(text("ab  ")));
        assert_eq!(held(text("abcd"), "varchar(max)"), Ok(text("abcd")));
        assert_eq!(held(bytes(b"12345"), "varbinary(3)"), Ok(bytes(b"123")));
        assert_eq!(held(bytes(b"1"), "varbinary(3)"), Ok(bytes(b"1")));
        assert_eq!(held(bytes(b"1"), "binary(3)"), Ok(bytes(b"1\0\0")));
        assert_eq!(held(bytes(b"12345"), "binary(3)"), Ok(bytes(b"123")));
        assert_eq!(held(Value::Null, "binary(3)"), Ok(Value::Null));
    }

    #[test]
    fn decimals() {
        let decimal = |magnitude, scale| Value::Decimal(Decimal { negative: true, magnitude, scale });
        assert_eq!(held(decimal(1255, 3), "decimal(5, 2)"), Ok(decimal(126, 2)));
        assert_eq!(held(decimal(12_549, 4), "decimal(5, 2)"), Ok(decimal(125, 2)));
        assert_eq!(held(decimal(12, 1), "decimal(5, 2)"), Ok(decimal(120, 2)));
        assert_eq!(held(decimal(99_999, 2), "decimal(5, 2)"), Ok(decimal(99_999, 2)));
        assert_eq!(held(decimal(999_995, 3), "decimal(5, 2)"), Err(8115));
        assert_eq!(held(decimal(u128::MAX, 0), "decimal(5, 2)"), Err(8115));
        // ASE Reference Manual: Building Blocks, "Scale errors"
        let of = tsql::declarations("@a numeric(5, 2)", &tsql::ASE, &Unknown).unwrap()[0].of;
        let in_ase = |value, truncation| {
            let arithabort = Arithabort { truncation, ..Arithabort::default() };
            fitted(value, &of, Some(arithabort)).map_err(|message| message.number)
        };
        assert_eq!(in_ase(decimal(1259, 3), true), Err(SCALE));
        assert_eq!(in_ase(decimal(999_995, 1), true), Err(8115));
        assert_eq!(in_ase(decimal(1250, 3), true), Ok(decimal(125, 2)));
        assert_eq!(in_ase(decimal(1259, 3), false), Ok(decimal(125, 2)));
    }

    #[test]
    fn ranges() {
        assert_eq!(held(Value::Int(255), "tinyint"), Ok(Value::Int(255)));
        assert_eq!(held(Value::Int(256), "tinyint"), Err(8115));
        assert_eq!(held(Value::Int(-5), "tinyint"), Err(8115));
        for (declared, greatest) in [("unsigned smallint", 65_535), ("unsigned int", 4_294_967_295)] {
            assert_eq!(held(Value::Int(greatest), declared), Ok(Value::Int(greatest)));
            assert_eq!(held(Value::Int(greatest + 1), declared), Err(247));
            assert_eq!(held(Value::Int(-1), declared), Err(247));
        }
        assert_eq!(held(Value::Int(-1), "unsigned bigint"), Err(247));
        assert_eq!(held(Value::Int(256), "smallint"), Ok(Value::Int(256)));
        assert_eq!(held(Value::Int(300_000), "smallmoney"), Err(8115));
        assert_eq!(held(Value::Money(2_147_483_647), "smallmoney"), Ok(Value::Money(2_147_483_647)));
        assert_eq!(held(Value::Money(-2_147_483_649), "smallmoney"), Err(8115));
        assert_eq!(held(Value::Int(300_000), "money"), Ok(Value::Int(300_000)));
    }
}
