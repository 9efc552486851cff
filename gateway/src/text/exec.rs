//! `exec [@r =] procedure [[@name =] value [output], …]` and `exec ('text')`.

use super::lexer::{Kind, Token};
use super::literal::scalar;
use super::parser::{syntax, Parser};
use crate::program::{Argument, Execute, Expression};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;

/// Reads what follows `exec` and is no parenthesis.
pub fn parse(parser: &mut Parser<'_>) -> Result<Execute, ServerMessage> {
    let status = status(parser)?;
    let procedure = procedure(parser)?;
    let mut arguments = Vec::new();
    while !parser.at_end() {
        if !arguments.is_empty() && !parser.symbol(',') {
            let found = parser.shown(parser.peek());
            return Err(syntax(&format!("a comma is missing before '{found}'")));
        }
        arguments.push(argument(parser)?);
    }
    Ok(Execute { status, procedure, arguments })
}

/// Reads `('text')` and `(@variable)`.
pub fn parse_text(parser: &mut Parser<'_>) -> Result<Expression, ServerMessage> {
    parser.symbol('(');
    let text = scalar(parser, false)?;
    if !matches!(text, Expression::Variable(_) | Expression::Literal(Value::Text(_))) {
        return Err(syntax("exec (…) wants a text"));
    }
    if !parser.symbol(')') {
        let found = parser.shown(parser.peek());
        return Err(syntax(&format!("a parenthesis is not closed before '{found}'")));
    }
    Ok(text)
}

fn status(parser: &mut Parser<'_>) -> Result<Option<String>, ServerMessage> {
    let name = match parser.peek() {
        Some(Token { kind: Kind::Variable(name), .. }) => {
            parser.advance();
            name.to_lowercase()
        }
        _ => match parser.placeholder() {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    if !parser.symbol('=') {
        return Err(syntax(&format!("exec {name}: a procedure cannot be named by a variable")));
    }
    Ok(Some(name))
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
    // Sybase's `;number` of a group of procedures
    if parser.peek().is_some_and(|token| token.is_symbol(';')) {
        if let Some(Token { kind: Kind::Number(number), .. }) = parser.tokens.get(parser.at + 1) {
            name.push_str(&format!(";{number}"));
            parser.at += 2;
        }
    }
    Ok(name)
}

fn argument(parser: &mut Parser<'_>) -> Result<Argument, ServerMessage> {
    let mut name = String::new();
    if let Some(Token { kind: Kind::Variable(variable), .. }) = parser.peek() {
        if parser.tokens.get(parser.at + 1).is_some_and(|token| token.is_symbol('=')) {
            variable.trim_start_matches('@').clone_into(&mut name);
            parser.at += 2;
        }
    }
    if parser.keyword(&["default"]) {
        return Ok(Argument { name, value: None, output: false });
    }
    let value = scalar(parser, true)?;
    let output = parser.keyword(&["output", "out"]);
    if output && matches!(value, Expression::Literal(_)) {
        return Err(ServerMessage::error(
            179,
            15,
            "Cannot use the OUTPUT option when passing a constant to a stored procedure.",
        ));
    }
    Ok(Argument { name, value: Some(value), output })
}
