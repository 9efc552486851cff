//! The values of a text's literals.

use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{Decimal, Value};
use std::borrow::Cow;
use tsql::program::Literal;

pub fn value_of(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Integer(number) => Value::Int(*number),
        // the parser of texts accepts no other digits
        Literal::Decimal(text) => decimal(text).map_or(Value::Null, Value::Decimal),
        Literal::Float(number) => Value::Float(*number),
        Literal::Money(amount) => Value::Money(*amount),
        Literal::Text(text) => Value::Text(Cow::Owned(text.clone())),
        Literal::Binary(bytes) => Value::Binary(Cow::Owned(bytes.clone())),
    }
}

/// The message of an error in a text.
pub fn refusal(error: &tsql::Error) -> ServerMessage {
    let message = ServerMessage::error(error.number, error.severity, error.text.clone());
    ServerMessage { state: error.state, line: error.line, ..message }
}

/// `-12.50` with the decimals as written.
pub fn decimal(text: &str) -> Option<Decimal> {
    let digits = text.strip_prefix('-');
    let negative = digits.is_some();
    let digits = digits.unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = u8::try_from(fraction.len()).ok().filter(|scale| *scale <= 38)?;
    let magnitude = format!("0{whole}{fraction}").parse().ok()?;
    Some(Decimal { negative, magnitude, scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_their_digits() {
        let read = |text: &str| decimal(text).map(|d| (d.negative, d.magnitude, d.scale));
        assert_eq!(read("-12.50"), Some((true, 1250, 2)));
        assert_eq!(read(".5"), Some((false, 5, 1)));
        assert_eq!(read("7."), Some((false, 7, 0)));
        assert_eq!(read("x"), None);
    }
}
