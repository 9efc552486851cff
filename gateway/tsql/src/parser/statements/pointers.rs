//! Texts and images by their pointers: readtext, writetext, updatetext.

use super::procedure;
use crate::error::Error;
use crate::parser::{expression, names, query, Parser};
use crate::tree::*;

/// `readtext t.c pointer offset size [holdlock] [using chars]`
pub(super) fn readtext(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    let column = text_column(parser)?;
    let pointer = expression::operand_with_sign(parser)?;
    let offset = expression::operand_with_sign(parser)?;
    let size = expression::operand_with_sign(parser)?;
    // a row is read as of one time, without waiting
    parser.any_word(&["holdlock", "noholdlock"]);
    parser.any_word(&["readpast"]);
    let mut by_characters = false;
    if parser.word("using") {
        by_characters = parser.any_word(&["chars", "characters"]);
        if !by_characters {
            parser.expect_word("bytes")?;
        }
    }
    let at = parser.position();
    if query::at_isolation(parser)? {
        return Err(Error::refused("at isolation", "set transaction isolation level", at));
    }
    Ok(StatementKind::Readtext(Box::new(Readtext { column, pointer, offset, size, by_characters })))
}

/// `writetext t.c pointer [with log] value`
pub(super) fn writetext(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if parser.word("bulk") {
        return writetext_bulk(parser);
    }
    let column = text_column(parser)?;
    let pointer = expression::operand_with_sign(parser)?;
    parser.words(&["with", "log"]);
    let value = expression::operand_with_sign(parser)?;
    Ok(StatementKind::Writetext(Box::new(Writetext { column, pointer, value })))
}

/// `writetext bulk t.c pointer [timestamp = value] [with log]`: the value follows in a separate message.
fn writetext_bulk(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let column = text_column(parser)?;
    let pointer = expression::operand_with_sign(parser)?;
    let timestamp = match parser.word("timestamp") {
        true => {
            parser.symbol("=");
            Some(expression::operand_with_sign(parser)?)
        }
        false => None,
    };
    parser.words(&["with", "log"]);
    Ok(StatementKind::WritetextBulk(Box::new(WritetextBulk { column, pointer, timestamp })))
}

/// `updatetext t.c pointer offset length [with log] [value | t2.c2 pointer2]`
pub(super) fn updatetext(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if parser.next_is("bulk") {
        let why = "it is for programs that send the text behind it";
        return Err(Error::refused("updatetext bulk", why, parser.position()));
    }
    let column = text_column(parser)?;
    let pointer = expression::operand_with_sign(parser)?;
    let offset = expression::operand_with_sign(parser)?;
    let length = expression::operand_with_sign(parser)?;
    parser.words(&["with", "log"]);
    let source = if procedure::at_statement_end(parser) {
        TextSource::Nothing
    } else if parser.peek().is_some_and(names::is_free) {
        TextSource::Column { column: text_column(parser)?, pointer: expression::operand_with_sign(parser)? }
    } else {
        TextSource::Value(expression::operand_with_sign(parser)?)
    };
    Ok(StatementKind::Updatetext(Box::new(Updatetext { column, pointer, offset, length, source })))
}

/// `table.column`, `owner.table.column`, `database.owner.table.column`.
fn text_column(parser: &mut Parser<'_>) -> Result<ColumnName, Error> {
    let first = names::name(parser)?;
    let at = first.at;
    let mut parts = vec![first.text];
    while parser.symbol(".") {
        parts.push(if parser.next_is_symbol(".") { String::new() } else { names::part(parser)? });
    }
    let column = parts.pop().filter(|_| matches!(parts.len(), 1..=3)).ok_or_else(|| parser.wrong_before())?;
    let name = parts.pop().unwrap_or_default();
    let owner = parts.pop().unwrap_or_default();
    let database = parts.pop().unwrap_or_default();
    let at = parser.since(at);
    let table = Some(Box::new(ObjectName { database, owner, name, at, ..ObjectName::default() }));
    Ok(ColumnName { table, column, at })
}
