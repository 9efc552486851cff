//! Sequences.

use super::Parser;
use crate::error::Error;
use crate::tree::{Expression, Literal, LiteralValue, ObjectName, Sequence, StatementKind, TokenNumber};

impl<'t> Parser<'t> {
    /// The rest after `create sequence` and `alter sequence`.
    pub(super) fn sequence(&mut self, creates: bool) -> Result<StatementKind, Error> {
        let name = self.object_name()?;
        let mut sequence = Sequence::of(name, creates);
        while self.sequence_option(&mut sequence)? {}
        Ok(StatementKind::Sequence(Box::new(sequence)))
    }

    /// Returns false if no further option follows.
    fn sequence_option(&mut self, sequence: &mut Sequence) -> Result<bool, Error> {
        if sequence.creates && self.word("as") {
            sequence.type_ = self.type_name()?;
        } else if sequence.creates && self.words(&["start", "with"]) {
            sequence.start = Some(self.integer()?);
        } else if !sequence.creates && self.word("restart") {
            sequence.restarts = true;
            sequence.start = if self.word("with") { Some(self.integer()?) } else { None };
        } else if self.words(&["increment", "by"]) {
            sequence.increment = Some(self.integer()?);
        } else if self.word("minvalue") {
            sequence.least = Some(self.integer()?);
        } else if self.word("maxvalue") {
            sequence.most = Some(self.integer()?);
        } else if self.word("cycle") {
            sequence.cycles = Some(true);
        } else if self.word("cache") {
            // the number of cached values does not affect results
            if !self.at_statement_end() && !self.next_is_any(&["no", "cycle", "minvalue", "maxvalue"]) {
                self.integer()?;
            }
        } else if self.words(&["no", "cycle"]) {
            sequence.cycles = Some(false);
        } else if !self.words(&["no", "cache"]) {
            let at = self.position();
            if !self.words(&["no", "minvalue"]) && !self.words(&["no", "maxvalue"]) {
                return Ok(false);
            }
            if !sequence.creates {
                return Err(Error::refused("alter sequence … no minvalue", "give the number", at));
            }
        }
        Ok(true)
    }

    /// `next value for name`, as a call of a function of this name with database, owner and name.
    pub(super) fn next_value(&mut self) -> Result<Expression, Error> {
        let at = self.position();
        self.at += 3;
        let sequence = self.object_name()?;
        if self.next_is("over") {
            return Err(Error::refused("next value for … over", "rows are numbered as they come", at));
        }
        let ObjectName { database, owner, name, at: place, .. } = sequence;
        let part = |text: String| {
            let value = LiteralValue::Text { text, national: false };
            Expression::Literal(Literal { value, number: TokenNumber(u32::MAX), at: place })
        };
        let parts = [database, owner, name].map(part).into();
        let name = ObjectName { name: String::from("next value for"), at, ..ObjectName::default() };
        Ok(Expression::Function(Box::new(super::function::plain_call(name, parts))))
    }
}
