//! DBCC, of which only CHECKIDENT is supported.

use crate::error::Error;
use crate::lexer::TokenKind;
use crate::parser::{names, Parser};
use crate::tree::{CheckIdentity, Reseed, StatementKind};

pub(super) fn dbcc(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let at = parser.position();
    parser.at += 1;
    if !parser.word("checkident") {
        return Err(Error::refused("dbcc", "there is nothing of that kind to check", at));
    }
    parser.expect_symbol("(")?;
    let table = match parser.peek() {
        Some(token) if matches!(token.kind, TokenKind::Text { .. }) => {
            parser.at += 1;
            token.value.to_string()
        }
        _ => names::object_name(parser)?.to_string(),
    };
    let mut reseed = Reseed::Raise;
    if parser.symbol(",") {
        if parser.word("noreseed") {
            reseed = Reseed::No;
        } else {
            parser.expect_word("reseed")?;
            if parser.symbol(",") {
                reseed = Reseed::To(reseed_value(parser)?);
            }
        }
    }
    parser.expect_symbol(")")?;
    let silent = parser.word("with");
    if silent {
        parser.expect_word("no_infomsgs")?;
    }
    Ok(StatementKind::CheckIdentity(CheckIdentity { table, reseed, silent, at }))
}

fn reseed_value(parser: &mut Parser<'_>) -> Result<i64, Error> {
    if names::next_is_variable(parser) {
        let why = "write the new value as a number";
        return Err(Error::refused("a variable in dbcc checkident", why, parser.position()));
    }
    names::integer(parser)
}
