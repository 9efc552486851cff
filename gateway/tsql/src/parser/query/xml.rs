//! Queries in parentheses as values: `(select …)`, `(select … for xml path (''))`.

use crate::error::Error;
use crate::lexer::TokenKind;
use crate::parser::{query, Parser};
use crate::tree::{Expression, Xml, XmlForm};

/// Paths to a whole value, whose string value is its text.
const WHOLE: [&str; 2] = [".", ".[1]"];
/// Paths to its first text, which is the whole, since adjacent texts are one; an empty text is none.
const FIRST_TEXT: [&str; 4] = ["text()[1]", "./text()[1]", "(text())[1]", "(./text())[1]"];

pub(in crate::parser) fn select_as_value(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    parser.expect_symbol("(")?;
    let query = parser.deeper(query::query_before_options)?;
    if !(parser.next_is("for") && parser.ahead_is(1, "xml")) {
        let query = query::with_options(parser, query)?;
        parser.expect_symbol(")")?;
        return Ok(Expression::Subquery(Box::new(query)));
    }
    let at = parser.position();
    let refused = |what: &str, why: &str| Error::refused(what, why, at);
    parser.at += 2;
    if !parser.word("path") {
        return Err(refused(
            "for xml",
            "only for xml path (''), which joins texts: a result is rows and columns",
        ));
    }
    let is_joined = parser.next_is_symbol("(")
        && is_text(parser, 1, |text| text.is_empty())
        && parser.ahead_is_symbol(2, ")");
    if !is_joined {
        return Err(refused("for xml path", "only for xml path (''): a result is rows and columns"));
    }
    parser.at += 3;
    if parser.symbol(")") {
        return Ok(Expression::Xml(Box::new(Xml { query, form: XmlForm::Written })));
    }
    parser.expect_symbol(",")?;
    if !parser.word("type") {
        return Err(refused("for xml path", "it has no directive but type"));
    }
    parser.expect_symbol(")")?;
    let form = value_of_all(parser).ok_or_else(|| {
        refused("for xml …, type", "it takes .value ('.', 'nvarchar(max)'): ringlog has no type xml")
    })?;
    Ok(Expression::Xml(Box::new(Xml { query, form })))
}

fn is_text(parser: &Parser<'_>, ahead: usize, holds: impl Fn(&str) -> bool) -> bool {
    parser
        .ahead(ahead)
        .is_some_and(|token| matches!(token.kind, TokenKind::Text { .. }) && holds(&token.value))
}

/// `.value ('.', 'nvarchar(max)')`
fn value_of_all(parser: &mut Parser<'_>) -> Option<XmlForm> {
    let of_text = is_text(parser, 3, |path| FIRST_TEXT.contains(&path));
    let is_written = parser.next_is_symbol(".")
        && parser.ahead_is(1, "value")
        && parser.ahead_is_symbol(2, "(")
        && (of_text || is_text(parser, 3, |path| WHOLE.contains(&path)))
        && parser.ahead_is_symbol(4, ",")
        && parser.ahead_is_symbol(6, ")");
    if !is_written {
        return None;
    }
    let of = |wanted: &str| {
        let same = |of: &str| of.replace(' ', "").eq_ignore_ascii_case(wanted);
        is_text(parser, 5, same)
    };
    let national = of("nvarchar(max)");
    if !national && !of("varchar(max)") {
        return None;
    }
    parser.at += 7;
    Some(XmlForm::Value { national, of_text })
}
