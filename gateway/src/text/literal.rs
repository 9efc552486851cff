//! Values written in the text.

use super::lexer::{Kind, Token};
use super::parser::{syntax, Parser};
use crate::program::Expression;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{Decimal, Value};
use std::borrow::Cow;

/// Reads a literal, a variable or a placeholder. A bare word is a text where T-SQL takes it so, among the
/// arguments of a procedure.
pub fn scalar(parser: &mut Parser<'_>, bare_words: bool) -> Result<Expression, ServerMessage> {
    if let Some(placeholder) = parser.placeholder() {
        return Ok(Expression::Variable(placeholder));
    }
    let negative = parser.symbol('-');
    let signed = negative || parser.symbol('+');
    let money = parser.symbol('$');
    let token = parser.advance();
    let value = match token.map(|token| &token.kind) {
        Some(Kind::Number(digits)) if money => money_value(digits, negative),
        Some(Kind::Number(digits)) => number(digits, negative),
        _ if signed || money => None,
        Some(Kind::Variable(name)) => return Ok(Expression::Variable(name.to_lowercase())),
        Some(Kind::Text(text) | Kind::DoubleQuoted(text)) => Some(text_value(text)),
        Some(Kind::Bracketed(text)) if bare_words => Some(text_value(text)),
        Some(Kind::Binary(digits)) => binary(digits),
        Some(Kind::Word(word)) if word.eq_ignore_ascii_case("null") => Some(Value::Null),
        Some(Kind::Word(word)) if bare_words => Some(text_value(word)),
        _ => None,
    };
    value.map(Expression::Literal).ok_or_else(|| syntax(&format!("'{}' is not a value", parser.shown(token))))
}

fn text_value(text: &str) -> Value<'static> {
    Value::Text(Cow::Owned(text.to_owned()))
}

/// Whether the token is a text in the session's way of quoting.
pub fn text_of(token: &Token, quoted_identifiers: bool) -> Option<&str> {
    match &token.kind {
        Kind::Text(text) => Some(text),
        Kind::DoubleQuoted(text) if !quoted_identifiers => Some(text),
        _ => None,
    }
}

fn number(digits: &str, negative: bool) -> Option<Value<'static>> {
    if digits.contains(['e', 'E']) {
        let value: f64 = digits.parse().ok().filter(|value: &f64| value.is_finite())?;
        return Some(Value::Float(if negative { -value } else { value }));
    }
    if !digits.contains('.') {
        if let Ok(value) = format!("{}{digits}", if negative { "-" } else { "" }).parse() {
            return Some(Value::Int(value));
        }
    }
    decimal(digits).map(|decimal| Value::Decimal(Decimal { negative, ..decimal }))
}

/// `-12.50` with as many decimals as are written.
pub fn decimal(text: &str) -> Option<Decimal> {
    let digits = text.strip_prefix('-');
    let negative = digits.is_some();
    let digits = digits.unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = u8::try_from(fraction.len()).ok().filter(|scale| *scale <= 38)?;
    let magnitude = format!("0{whole}{fraction}").parse().ok()?;
    Some(Decimal { negative, magnitude, scale })
}

/// Money literals keep four decimals; more are refused.
fn money_value(digits: &str, negative: bool) -> Option<Value<'static>> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if fraction.len() > 4 {
        return None;
    }
    let amount: i64 = format!("0{whole}{fraction:0<4}").parse().ok()?;
    Some(Value::Money(if negative { -amount } else { amount }))
}

fn binary(digits: &str) -> Option<Value<'static>> {
    // an odd number of digits means a leading zero
    let padded = if digits.len().is_multiple_of(2) { digits.to_owned() } else { format!("0{digits}") };
    let bytes: Option<Vec<u8>> = padded
        .as_bytes()
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect();
    bytes.map(|bytes| Value::Binary(Cow::Owned(bytes)))
}
