//! Statements of the session: use, transactions.

use super::names::is_free;
use super::Parser;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::tree::{StatementKind, TransactionName};

impl<'t> Parser<'t> {
    pub(super) fn use_(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        self.name().map(StatementKind::Use)
    }

    pub(super) fn commit(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if self.any_word(&["tran", "transaction"]) {
            return self.transaction_name().map(StatementKind::Commit);
        }
        self.word("work");
        Ok(StatementKind::Commit(None))
    }

    pub(super) fn rollback(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if self.any_word(&["tran", "transaction"]) {
            return self.transaction_name().map(StatementKind::Rollback);
        }
        if self.word("trigger") {
            return self.rollback_trigger();
        }
        self.word("work");
        Ok(StatementKind::Rollback(None))
    }

    /// ASE's `rollback trigger [with raiserror number [text] [, arguments]]`
    fn rollback_trigger(&mut self) -> Result<StatementKind, Error> {
        if !self.next_is("with") || !self.ahead_is(1, "raiserror") {
            return Ok(StatementKind::RollbackTrigger(None));
        }
        self.at += 2;
        self.numbered().map(Box::new).map(Some).map(StatementKind::RollbackTrigger)
    }

    pub(super) fn save(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        self.expect_any(&["tran", "transaction"])?;
        match self.transaction_name()? {
            Some(name) => Ok(StatementKind::Save(name)),
            None => Err(self.wrong()),
        }
    }

    pub(super) fn transaction_name(&mut self) -> Result<Option<TransactionName>, Error> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Variable => {
                self.own_variable().map(TransactionName::Variable).map(Some)
            }
            Some(token) if is_free(token) && !self.at_statement_end() => {
                self.name().map(TransactionName::Name).map(Some)
            }
            _ => Ok(None),
        }
    }
}
