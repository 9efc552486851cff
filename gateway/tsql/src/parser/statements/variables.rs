//! DECLARE and SET.

use super::{change, column, cursor};
use crate::error::Error;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::parser::{expression, names, Parser};
use crate::tree::{Assign, CursorName, Declared, SetWord, Statement, StatementKind, TableVariable, TypeName};

pub(super) fn declare(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if cursor::declares_cursor(parser) {
        return cursor::declare_cursor(parser);
    }
    let mut kinds = parser.list(declared)?;
    let of_table = |kind: &StatementKind| matches!(kind, StatementKind::DeclareTable(_));
    if parser.dialect.is_strict && kinds.len() > 1 && kinds.iter().any(of_table) {
        return Err(Error::syntax("table", parser.position()));
    }
    if kinds.iter().all(|kind| matches!(kind, StatementKind::Declare(_))) {
        let declared = kinds.into_iter().flat_map(|kind| match kind {
            StatementKind::Declare(declared) => declared,
            _ => Vec::new(),
        });
        return Ok(StatementKind::Declare(declared.collect()));
    }
    if kinds.len() == 1 {
        return kinds.pop().ok_or_else(|| parser.wrong());
    }
    // a block has no variables of its own
    let at = parser.position();
    Ok(StatementKind::Block(kinds.into_iter().map(|kind| Statement { kind, at }).collect()))
}

fn declared(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let variable = names::own_variable(parser)?;
    parser.word("as");
    if parser.word("table") {
        let elements = column::variable_elements(parser, Error::syntax)?;
        return Ok(StatementKind::DeclareTable(TableVariable { variable, elements }));
    }
    let at = parser.position();
    let type_ = if parser.word("cursor") { TypeName::named("cursor", at) } else { names::type_name(parser)? };
    let value = if parser.symbol("=") { Some(expression::value(parser)?) } else { None };
    Ok(StatementKind::Declare(vec![Declared { variable, type_, value }]))
}

pub(super) fn set(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if names::next_is_variable(parser) {
        return assign(parser);
    }
    if parser.word("identity_insert") {
        let table = names::object_name(parser)?;
        return Ok(StatementKind::SetIdentityInsert { table, on: on_or_off(parser)? });
    }
    // in ASE these words also begin a statement
    if parser.word("close") {
        parser.expect_word("on")?;
        parser.expect_word("endtran")?;
        let value = if on_or_off(parser)? { "on" } else { "off" };
        let words = ["close", "on", "endtran", value].map(|word| SetWord::Word(word.into()));
        return Ok(StatementKind::Set(words.into()));
    }
    let at = parser.position();
    let takes_number = parser.dialect.is_strict && parser.next_is_any(&["lock_timeout", "textsize"]);
    let other = |token: &&Token<'_>| matches!(token.kind, TokenKind::Text { .. } | TokenKind::Variable);
    if let Some(other) = parser.ahead(1).filter(|_| takes_number).filter(other) {
        return Err(Error::syntax(&other.value, other.at));
    }
    let words = option_words(parser)?;
    // set a, b on
    let is_comma = |word: &SetWord| matches!(word, SetWord::Word(word) if word == ",");
    let Some((value, names)) =
        words.split_last().filter(|(value, names)| !is_comma(value) && names.iter().any(is_comma))
    else {
        return Ok(StatementKind::Set(words));
    };
    let mut settings = Vec::new();
    for name in names.split(is_comma) {
        if name.len() != 1 {
            return Ok(StatementKind::Set(words));
        }
        let words = vec![name[0].clone(), value.clone()];
        settings.push(Statement { kind: StatementKind::Set(words), at });
    }
    Ok(StatementKind::Block(settings))
}

fn on_or_off(parser: &mut Parser<'_>) -> Result<bool, Error> {
    let on = parser.word("on");
    if !on {
        parser.expect_word("off")?;
    }
    Ok(on)
}

fn assign(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let variable = names::own_variable(parser)?;
    let operator = change::assignment(parser)?;
    if parser.next_is("cursor") {
        return cursor::cursor_of(parser, CursorName::Variable(variable));
    }
    Ok(StatementKind::Assign(Assign { variable, operator, value: expression::value(parser)? }))
}

/// The words of an option up to ON, OFF or the next statement.
fn option_words(parser: &mut Parser<'_>) -> Result<Vec<SetWord>, Error> {
    let mut words = Vec::new();
    while let Some(token) = parser.peek() {
        let ends = match token.kind {
            TokenKind::Symbol => matches!(&*token.value, ";" | ")"),
            TokenKind::Word(Class::Statement | Class::StatementOrName) => true,
            TokenKind::Word(_) => token.is_any(&["else", "end"]),
            _ => false,
        };
        if ends && !words.is_empty() {
            break;
        }
        if ends {
            return Err(parser.wrong());
        }
        parser.at += 1;
        words.push(match token.kind {
            TokenKind::Variable => {
                parser.at -= 1;
                SetWord::Variable(names::variable(parser)?)
            }
            TokenKind::Binary => SetWord::Word(format!("0x{}", token.value)),
            _ => SetWord::Word(token.value.to_lowercase()),
        });
        // the value of an option is followed by another statement
        if token.is_any(&["on", "off"]) && !parser.next_is_symbol(",") {
            break;
        }
    }
    if words.is_empty() {
        return Err(parser.wrong());
    }
    Ok(words)
}
