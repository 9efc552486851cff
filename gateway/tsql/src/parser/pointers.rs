//! Texts and images by their pointers: readtext, writetext, updatetext.

use super::Parser;
use crate::error::Error;
use crate::tree::*;

impl<'t> Parser<'t> {
    /// `readtext t.c pointer offset size [holdlock] [using chars]`
    pub(super) fn readtext(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        let column = self.text_column()?;
        let pointer = self.operand_with_sign()?;
        let offset = self.operand_with_sign()?;
        let size = self.operand_with_sign()?;
        // a row is read as of one time, without waiting
        self.any_word(&["holdlock", "noholdlock"]);
        self.any_word(&["readpast"]);
        let mut by_characters = false;
        if self.word("using") {
            by_characters = self.any_word(&["chars", "characters"]);
            if !by_characters {
                self.expect_word("bytes")?;
            }
        }
        let at = self.position();
        if self.at_isolation()? {
            return Err(Error::refused("at isolation", "set transaction isolation level", at));
        }
        Ok(StatementKind::Readtext(Box::new(Readtext { column, pointer, offset, size, by_characters })))
    }

    /// `writetext t.c pointer [with log] value`
    pub(super) fn writetext(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if self.word("bulk") {
            return self.writetext_bulk();
        }
        let column = self.text_column()?;
        let pointer = self.operand_with_sign()?;
        self.words(&["with", "log"]);
        let value = self.operand_with_sign()?;
        Ok(StatementKind::Writetext(Box::new(Writetext { column, pointer, value })))
    }

    /// `writetext bulk t.c pointer [timestamp = value] [with log]`: the value follows in a separate message.
    fn writetext_bulk(&mut self) -> Result<StatementKind, Error> {
        let column = self.text_column()?;
        let pointer = self.operand_with_sign()?;
        let timestamp = match self.word("timestamp") {
            true => {
                self.symbol("=");
                Some(self.operand_with_sign()?)
            }
            false => None,
        };
        self.words(&["with", "log"]);
        Ok(StatementKind::WritetextBulk(Box::new(WritetextBulk { column, pointer, timestamp })))
    }

    /// `updatetext t.c pointer offset length [with log] [value | t2.c2 pointer2]`
    pub(super) fn updatetext(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if self.next_is("bulk") {
            let why = "it is for programs that send the text behind it";
            return Err(Error::refused("updatetext bulk", why, self.position()));
        }
        let column = self.text_column()?;
        let pointer = self.operand_with_sign()?;
        let offset = self.operand_with_sign()?;
        let length = self.operand_with_sign()?;
        self.words(&["with", "log"]);
        let source = if self.at_statement_end() {
            TextSource::Nothing
        } else if self.peek().is_some_and(super::names::is_free) {
            TextSource::Column { column: self.text_column()?, pointer: self.operand_with_sign()? }
        } else {
            TextSource::Value(self.operand_with_sign()?)
        };
        Ok(StatementKind::Updatetext(Box::new(Updatetext { column, pointer, offset, length, source })))
    }

    /// `table.column`, `owner.table.column`, `database.owner.table.column`.
    fn text_column(&mut self) -> Result<ColumnName, Error> {
        let first = self.name()?;
        let at = first.at;
        let mut parts = vec![first.text];
        while self.symbol(".") {
            parts.push(if self.next_is_symbol(".") { String::new() } else { self.part()? });
        }
        let column =
            parts.pop().filter(|_| matches!(parts.len(), 1..=3)).ok_or_else(|| self.wrong_before())?;
        let name = parts.pop().unwrap_or_default();
        let owner = parts.pop().unwrap_or_default();
        let database = parts.pop().unwrap_or_default();
        let at = self.since(at);
        let table = Some(Box::new(ObjectName { database, owner, name, at, ..ObjectName::default() }));
        Ok(ColumnName { table, column, at })
    }
}
