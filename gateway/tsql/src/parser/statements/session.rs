//! Statements of the session: use, transactions.

use super::procedure;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::parser::names::is_free;
use crate::parser::{names, statements, Parser};
use crate::tree::{StatementKind, TransactionName};

pub(super) fn use_(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    names::name(parser).map(StatementKind::Use)
}

pub(super) fn commit(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if parser.any_word(&["tran", "transaction"]) {
        return transaction_name(parser).map(StatementKind::Commit);
    }
    parser.word("work");
    Ok(StatementKind::Commit(None))
}

pub(super) fn rollback(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if parser.any_word(&["tran", "transaction"]) {
        return transaction_name(parser).map(StatementKind::Rollback);
    }
    if parser.word("trigger") {
        return rollback_trigger(parser);
    }
    parser.word("work");
    Ok(StatementKind::Rollback(None))
}

/// ASE's `rollback trigger [with raiserror number [text] [, arguments]]`
fn rollback_trigger(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    if !parser.next_is("with") || !parser.ahead_is(1, "raiserror") {
        return Ok(StatementKind::RollbackTrigger(None));
    }
    parser.at += 2;
    statements::numbered(parser).map(Box::new).map(Some).map(StatementKind::RollbackTrigger)
}

pub(super) fn save(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    parser.expect_any(&["tran", "transaction"])?;
    match transaction_name(parser)? {
        Some(name) => Ok(StatementKind::Save(name)),
        None => Err(parser.wrong()),
    }
}

pub(super) fn transaction_name(parser: &mut Parser<'_>) -> Result<Option<TransactionName>, Error> {
    match parser.peek() {
        Some(token) if token.kind == TokenKind::Variable => {
            names::own_variable(parser).map(TransactionName::Variable).map(Some)
        }
        Some(token) if is_free(token) && !procedure::at_statement_end(parser) => {
            names::name(parser).map(TransactionName::Name).map(Some)
        }
        _ => Ok(None),
    }
}
