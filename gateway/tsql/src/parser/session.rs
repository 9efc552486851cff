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
        self.word("work");
        Ok(StatementKind::Rollback(None))
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
