//! Queries in parentheses as values: `(select …)`, `(select … for xml path (''))`.

use super::Parser;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::tree::{Expression, Xml, XmlForm};

/// Paths to a whole value, whose string value is its text.
const WHOLE: [&str; 2] = [".", ".[1]"];
/// Paths to its first text, which is the whole, since adjacent texts are one; an empty text is none.
const FIRST_TEXT: [&str; 4] = ["text()[1]", "./text()[1]", "(text())[1]", "(./text())[1]"];

impl Parser<'_> {
    pub(super) fn select_as_value(&mut self) -> Result<Expression, Error> {
        self.expect_symbol("(")?;
        let query = self.deeper(Self::query_before_options)?;
        if !(self.next_is("for") && self.ahead_is(1, "xml")) {
            let query = self.with_options(query)?;
            self.expect_symbol(")")?;
            return Ok(Expression::Subquery(Box::new(query)));
        }
        let at = self.position();
        let refused = |what: &str, why: &str| Error::refused(what, why, at);
        self.at += 2;
        if !self.word("path") {
            return Err(refused(
                "for xml",
                "only for xml path (''), which joins texts: a result is rows and columns",
            ));
        }
        let is_joined = self.next_is_symbol("(")
            && self.is_text(1, |text| text.is_empty())
            && self.ahead_is_symbol(2, ")");
        if !is_joined {
            return Err(refused("for xml path", "only for xml path (''): a result is rows and columns"));
        }
        self.at += 3;
        if self.symbol(")") {
            return Ok(Expression::Xml(Box::new(Xml { query, form: XmlForm::Written })));
        }
        self.expect_symbol(",")?;
        if !self.word("type") {
            return Err(refused("for xml path", "it has no directive but type"));
        }
        self.expect_symbol(")")?;
        let form = self.value_of_all().ok_or_else(|| {
            refused("for xml …, type", "it takes .value ('.', 'nvarchar(max)'): ringlog has no type xml")
        })?;
        Ok(Expression::Xml(Box::new(Xml { query, form })))
    }

    fn is_text(&self, ahead: usize, holds: impl Fn(&str) -> bool) -> bool {
        self.ahead(ahead)
            .is_some_and(|token| matches!(token.kind, TokenKind::Text { .. }) && holds(&token.value))
    }

    /// `.value ('.', 'nvarchar(max)')`
    fn value_of_all(&mut self) -> Option<XmlForm> {
        let of_text = self.is_text(3, |path| FIRST_TEXT.contains(&path));
        let is_written = self.next_is_symbol(".")
            && self.ahead_is(1, "value")
            && self.ahead_is_symbol(2, "(")
            && (of_text || self.is_text(3, |path| WHOLE.contains(&path)))
            && self.ahead_is_symbol(4, ",")
            && self.ahead_is_symbol(6, ")");
        if !is_written {
            return None;
        }
        let of = |wanted: &str| {
            let same = |of: &str| of.replace(' ', "").eq_ignore_ascii_case(wanted);
            self.is_text(5, same)
        };
        let national = of("nvarchar(max)");
        if !national && !of("varchar(max)") {
            return None;
        }
        self.at += 7;
        Some(XmlForm::Value { national, of_text })
    }
}
