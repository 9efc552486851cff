//! `exec [@r =] procedure [[@name =] value [output], …]`.

use super::batch::{syntax, Parser};
use super::lexer::{Kind, Token};
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{Decimal, Value};
use std::borrow::Cow;

/// A procedure call written as text.
#[derive(Debug)]
pub struct Execute {
    /// As written, with its qualifiers.
    pub procedure: String,
    pub params: Vec<Param<'static>>,
}

/// Reads what follows `exec`.
pub fn parse(parser: &mut Parser<'_>) -> Result<Execute, ServerMessage> {
    if let Some(Token { kind: Kind::Variable(name), .. }) = parser.peek() {
        return Err(ServerMessage::error(137, 15, format!("Must declare the scalar variable \"{name}\".")));
    }
    let procedure = procedure(parser)?;
    let mut params = Vec::new();
    while !parser.at_end() {
        if !params.is_empty() && !parser.symbol(',') {
            let found = parser.shown(parser.peek());
            return Err(syntax(&format!("a comma is missing before '{found}'")));
        }
        params.push(param(parser)?);
    }
    Ok(Execute { procedure, params })
}

/// A name of one to four parts, some of which may be empty as in `log..put`.
fn procedure(parser: &mut Parser<'_>) -> Result<String, ServerMessage> {
    let mut name = String::new();
    loop {
        if let Some(part) = parser.peek().and_then(Token::identifier) {
            parser.advance();
            name.push_str(part);
        }
        if !parser.symbol('.') {
            break;
        }
        name.push('.');
    }
    if name.is_empty() || name.ends_with('.') {
        let found = parser.shown(parser.peek());
        return Err(syntax(&format!("a procedure name is missing before '{found}'")));
    }
    Ok(name)
}

fn param(parser: &mut Parser<'_>) -> Result<Param<'static>, ServerMessage> {
    let mut name = String::new();
    if let Some(Token { kind: Kind::Variable(variable), .. }) = parser.peek() {
        parser.advance();
        if !parser.symbol('=') {
            return Err(ServerMessage::error(
                137,
                15,
                format!("Must declare the scalar variable \"{variable}\"."),
            ));
        }
        variable.trim_start_matches('@').clone_into(&mut name);
    }
    let negative = parser.symbol('-');
    let signed = negative || parser.symbol('+');
    let money = parser.symbol('$');
    let token = parser.advance();
    let value = match token.map(|token| &token.kind) {
        Some(Kind::Number(digits)) if money => money_value(digits, negative),
        Some(Kind::Number(digits)) => number(digits, negative),
        _ if signed || money => None,
        Some(Kind::Text(text) | Kind::DoubleQuoted(text) | Kind::Bracketed(text)) => {
            Some(Value::Text(Cow::Owned(text.clone())))
        }
        Some(Kind::Binary(digits)) => binary(digits),
        Some(Kind::Word(word)) if word.eq_ignore_ascii_case("null") => Some(Value::Null),
        Some(Kind::Word(word)) if word.eq_ignore_ascii_case("default") => return Ok(Param::default(name)),
        // T-SQL takes a bare word as a text
        Some(Kind::Word(word)) => Some(Value::Text(Cow::Owned(word.clone()))),
        Some(Kind::Variable(variable)) => {
            return Err(ServerMessage::error(
                137,
                15,
                format!("Must declare the scalar variable \"{variable}\"."),
            ))
        }
        _ => None,
    };
    let Some(value) = value else {
        return Err(syntax(&format!("'{}' is not a value", parser.shown(token))));
    };
    let output = parser.keyword(&["output", "out"]);
    if output {
        return Err(ServerMessage::error(
            179,
            15,
            "Cannot use the OUTPUT option when passing a constant to a stored procedure.",
        ));
    }
    Ok(Param::literal(name, value, false))
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
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = u8::try_from(fraction.len()).ok().filter(|scale| *scale <= 38)?;
    let magnitude = format!("0{whole}{fraction}").parse().ok()?;
    Some(Value::Decimal(Decimal { negative, magnitude, scale }))
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
