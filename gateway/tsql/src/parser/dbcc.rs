//! DBCC, of which only CHECKIDENT is supported.

use super::Parser;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::tree::{CheckIdentity, Reseed, StatementKind};

impl<'t> Parser<'t> {
    pub(super) fn dbcc(&mut self) -> Result<StatementKind, Error> {
        let at = self.position();
        self.at += 1;
        if !self.word("checkident") {
            return Err(Error::refused("dbcc", "there is nothing of that kind to check", at));
        }
        self.expect_symbol("(")?;
        let table = match self.peek() {
            Some(token) if matches!(token.kind, TokenKind::Text { .. }) => {
                self.at += 1;
                token.value.to_string()
            }
            _ => self.object_name()?.to_string(),
        };
        let mut reseed = Reseed::Raise;
        if self.symbol(",") {
            if self.word("noreseed") {
                reseed = Reseed::No;
            } else {
                self.expect_word("reseed")?;
                if self.symbol(",") {
                    reseed = Reseed::To(self.reseed_value()?);
                }
            }
        }
        self.expect_symbol(")")?;
        let silent = self.word("with");
        if silent {
            self.expect_word("no_infomsgs")?;
        }
        Ok(StatementKind::CheckIdentity(CheckIdentity { table, reseed, silent, at }))
    }

    fn reseed_value(&mut self) -> Result<i64, Error> {
        if self.next_is_variable() {
            let why = "write the new value as a number";
            return Err(Error::refused("a variable in dbcc checkident", why, self.position()));
        }
        self.integer()
    }
}
