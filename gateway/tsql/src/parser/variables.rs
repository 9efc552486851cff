//! DECLARE and SET.

use super::Parser;
use crate::error::Error;
use crate::keywords::Class;
use crate::lexer::TokenKind;
use crate::tree::{Assign, CursorName, Declared, SetWord, Statement, StatementKind, TableVariable, TypeName};

impl<'t> Parser<'t> {
    pub(super) fn declare(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if self.declares_cursor() {
            return self.declare_cursor();
        }
        let mut kinds = self.list(Self::declared)?;
        if kinds.iter().all(|kind| matches!(kind, StatementKind::Declare(_))) {
            let declared = kinds.into_iter().flat_map(|kind| match kind {
                StatementKind::Declare(declared) => declared,
                _ => Vec::new(),
            });
            return Ok(StatementKind::Declare(declared.collect()));
        }
        if kinds.len() == 1 {
            return kinds.pop().ok_or_else(|| self.wrong());
        }
        // a block has no variables of its own
        let at = self.position();
        Ok(StatementKind::Block(kinds.into_iter().map(|kind| Statement { kind, at }).collect()))
    }

    fn declared(&mut self) -> Result<StatementKind, Error> {
        let variable = self.own_variable()?;
        self.word("as");
        if self.word("table") {
            let elements = self.table_elements()?;
            return Ok(StatementKind::DeclareTable(TableVariable { variable, elements }));
        }
        let at = self.position();
        let type_ = if self.word("cursor") { TypeName::named("cursor", at) } else { self.type_name()? };
        let value = if self.symbol("=") { Some(self.value()?) } else { None };
        Ok(StatementKind::Declare(vec![Declared { variable, type_, value }]))
    }

    pub(super) fn set(&mut self) -> Result<StatementKind, Error> {
        self.at += 1;
        if self.next_is_variable() {
            return self.assign();
        }
        if self.word("identity_insert") {
            let table = self.object_name()?;
            return Ok(StatementKind::SetIdentityInsert { table, on: self.on_or_off()? });
        }
        // in ASE these words also begin a statement
        if self.word("close") {
            self.expect_word("on")?;
            self.expect_word("endtran")?;
            let value = if self.on_or_off()? { "on" } else { "off" };
            let words = ["close", "on", "endtran", value].map(|word| SetWord::Word(word.into()));
            return Ok(StatementKind::Set(words.into()));
        }
        let at = self.position();
        let words = self.option_words()?;
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

    fn on_or_off(&mut self) -> Result<bool, Error> {
        let on = self.word("on");
        if !on {
            self.expect_word("off")?;
        }
        Ok(on)
    }

    fn assign(&mut self) -> Result<StatementKind, Error> {
        let variable = self.own_variable()?;
        let operator = self.assignment()?;
        if self.next_is("cursor") {
            return self.cursor_of(CursorName::Variable(variable));
        }
        Ok(StatementKind::Assign(Assign { variable, operator, value: self.value()? }))
    }

    /// The words of an option up to ON, OFF or the next statement.
    fn option_words(&mut self) -> Result<Vec<SetWord>, Error> {
        let mut words = Vec::new();
        while let Some(token) = self.peek() {
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
                return Err(self.wrong());
            }
            self.at += 1;
            words.push(match token.kind {
                TokenKind::Variable => {
                    self.at -= 1;
                    SetWord::Variable(self.variable()?)
                }
                TokenKind::Binary => SetWord::Word(format!("0x{}", token.value)),
                _ => SetWord::Word(token.value.to_lowercase()),
            });
            // the value of an option is followed by another statement
            if token.is_any(&["on", "off"]) && !self.next_is_symbol(",") {
                break;
            }
        }
        if words.is_empty() {
            return Err(self.wrong());
        }
        Ok(words)
    }
}
