//! `for json …`, `openjson (…) with (…)`.

use super::source;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::parser::{names, Parser};
use crate::tree::{ForJson, FunctionCall, JsonColumn, TableSource, TypeArgument};

pub(super) fn for_json(parser: &mut Parser<'_>) -> Result<Option<ForJson>, Error> {
    let at = parser.position();
    if !parser.words(&["for", "json"]) {
        return Ok(None);
    }
    let is_auto = parser.word("auto");
    if !is_auto {
        parser.expect_word("path")?;
    }
    let mut json = ForJson { is_auto, root: None, includes_nulls: false, has_wrapper: true, at };
    while parser.symbol(",") {
        if parser.word("include_null_values") {
            json.includes_nulls = true;
        } else if parser.word("without_array_wrapper") {
            json.has_wrapper = false;
        } else {
            parser.expect_word("root")?;
            json.root = Some(root(parser)?.unwrap_or_else(|| "root".to_owned()));
        }
    }
    if json.root.is_some() && !json.has_wrapper {
        let text = "ROOT option and WITHOUT_ARRAY_WRAPPER option cannot be used together in FOR JSON. Remove one of \
                        these options.";
        return Err(Error::new(13620, text, at).with_severity(16));
    }
    Ok(Some(json))
}

/// `('name')`
fn root(parser: &mut Parser<'_>) -> Result<Option<String>, Error> {
    if !parser.symbol("(") {
        return Ok(None);
    }
    let name = written_text(parser)?.ok_or_else(|| parser.wrong())?;
    parser.expect_symbol(")")?;
    Ok(Some(name))
}

fn written_text(parser: &mut Parser<'_>) -> Result<Option<String>, Error> {
    match parser.peek() {
        Some(token) if matches!(token.kind, TokenKind::Text { .. }) => {
            parser.advance().map(|token| Some(token.value.to_string()))
        }
        _ => Ok(None),
    }
}

/// The rest after `openjson (…)`.
pub(super) fn opened_json(parser: &mut Parser<'_>, call: Box<FunctionCall>) -> Result<TableSource, Error> {
    let schema = match parser.next_is("with") && parser.ahead_is_symbol(1, "(") {
        true => {
            parser.at += 1;
            parser.in_parentheses(json_column)?
        }
        false => Vec::new(),
    };
    let alias = source::table_alias(parser)?;
    let columns = source::alias_columns(parser, alias.as_ref())?;
    Ok(TableSource::Function { call, schema, alias, columns })
}

fn json_column(parser: &mut Parser<'_>) -> Result<JsonColumn, Error> {
    let name = names::name(parser)?;
    let type_ = names::type_name(parser)?;
    let path = written_text(parser)?;
    let as_json = parser.words(&["as", "json"]);
    if as_json && (type_.name != "nvarchar" || type_.arguments != [TypeArgument::Max]) {
        let text = "AS JSON option can be specified only for column of nvarchar(max) type in WITH clause.";
        return Err(Error::new(13618, text, name.at).with_severity(16));
    }
    Ok(JsonColumn { name, type_, path, as_json })
}
