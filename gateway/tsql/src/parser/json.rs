//! `for json …`, `openjson (…) with (…)`.

use super::Parser;
use crate::error::Error;
use crate::lexer::TokenKind;
use crate::tree::{ForJson, FunctionCall, JsonColumn, TableSource, TypeArgument};

impl Parser<'_> {
    pub(super) fn for_json(&mut self) -> Result<Option<ForJson>, Error> {
        let at = self.position();
        if !self.words(&["for", "json"]) {
            return Ok(None);
        }
        let is_auto = self.word("auto");
        if !is_auto {
            self.expect_word("path")?;
        }
        let mut json = ForJson { is_auto, root: None, includes_nulls: false, has_wrapper: true, at };
        while self.symbol(",") {
            if self.word("include_null_values") {
                json.includes_nulls = true;
            } else if self.word("without_array_wrapper") {
                json.has_wrapper = false;
            } else {
                self.expect_word("root")?;
                json.root = Some(self.root()?.unwrap_or_else(|| "root".to_owned()));
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
    fn root(&mut self) -> Result<Option<String>, Error> {
        if !self.symbol("(") {
            return Ok(None);
        }
        let name = self.written_text()?.ok_or_else(|| self.wrong())?;
        self.expect_symbol(")")?;
        Ok(Some(name))
    }

    fn written_text(&mut self) -> Result<Option<String>, Error> {
        match self.peek() {
            Some(token) if matches!(token.kind, TokenKind::Text { .. }) => {
                self.advance().map(|token| Some(token.value.to_string()))
            }
            _ => Ok(None),
        }
    }

    /// The rest after `openjson (…)`.
    pub(super) fn opened_json(&mut self, call: Box<FunctionCall>) -> Result<TableSource, Error> {
        let schema = match self.next_is("with") && self.ahead_is_symbol(1, "(") {
            true => {
                self.at += 1;
                self.in_parentheses(Self::json_column)?
            }
            false => Vec::new(),
        };
        let alias = self.table_alias()?;
        let columns = self.alias_columns(alias.as_ref())?;
        Ok(TableSource::Function { call, schema, alias, columns })
    }

    fn json_column(&mut self) -> Result<JsonColumn, Error> {
        let name = self.name()?;
        let type_ = self.type_name()?;
        let path = self.written_text()?;
        let as_json = self.words(&["as", "json"]);
        if as_json && (type_.name != "nvarchar" || type_.arguments != [TypeArgument::Max]) {
            let text =
                "AS JSON option can be specified only for column of nvarchar(max) type in WITH clause.";
            return Err(Error::new(13618, text, name.at).with_severity(16));
        }
        Ok(JsonColumn { name, type_, path, as_json })
    }
}
