//! `openjson (…)`, `json_modify (…)`.

use super::calls::CallTranslation;
use super::json_property::{declared, is_json, quoted, written};
use super::named::Named;
use super::translation::Translation;
use super::value::{converted, Value};
use crate::error::Error;
use crate::facts::types::{self, nvarchar, Case, Family, Type, INT};
use crate::resolve::names::{self, literal, stored};
use crate::tree::{Arguments, FunctionCall, JsonColumn, Name};

/// The rows of an array or object.
const ROWS: &str = "openjson";

pub fn names_openjson(call: &FunctionCall) -> bool {
    call.name.is_bare() && call.name.name.eq_ignore_ascii_case(ROWS)
}

impl Translation<'_> {
    pub fn opened_json(
        &mut self,
        call: &FunctionCall,
        schema: &[JsonColumn],
        alias: &Option<Name>,
        columns: &[Name],
    ) -> Result<String, Error> {
        let line = call.name.at.line;
        if !self.dialect().has_for_xml {
            return Err(Error::refused("openjson()", "ASE has no such function", line));
        }
        let Arguments::Values(arguments) = &call.arguments else { return Err(Error::syntax("*", line)) };
        let mut of =
            CallTranslation { translation: self, name: ROWS, of: call, arguments, over: String::new(), line };
        let path = match of.count(1, 2)? {
            1 => String::from("'$'"),
            _ => of.text(1)?,
        };
        let document = of.text(0)?;
        let named = match alias {
            Some(_) => self.alias(alias, columns)?,
            None => format!(" as {}", names::quoted(ROWS)),
        };
        let mut known = Named {
            name: alias.as_ref().map_or_else(String::new, |alias| stored(&alias.text)),
            ..Named::default()
        };
        if schema.is_empty() {
            let own = [("key", nvarchar(Some(4000))), ("value", nvarchar(None)), ("type", INT)];
            self.know_columns(&mut known, own.map(|(name, of)| (name.to_owned(), of)), columns);
            self.know(known);
            if self.scope.folds {
                // the key is binary ("OPENJSON")
                let value = nvarchar(None).with_case(Case::Ignored).sql();
                return Ok(format!(
                    "(select key, value::{value} as value, type from tsql.openjson({document}, {path})){named}"
                ));
            }
            return Ok(format!("tsql.openjson({document}, {path}){named}"));
        }
        let (mut listed, mut own) = (Vec::new(), Vec::new());
        for column in schema {
            let of = self.type_by_default(types::of_variable(&column.type_, self.dialect())?);
            listed.push(format!("{} as {}", self.json_column(column, of)?, names::name(&column.name)?));
            own.push((stored(&column.name.text), of));
        }
        self.know_columns(&mut known, own, columns);
        self.know(known);
        let listed = listed.join(", ");
        Ok(format!(
            "(select {listed} from tsql.openjson_rows({document}, {path}) as \"@@row\" (\"@@value\")){named}"
        ))
    }

    fn know_columns(&self, known: &mut Named, own: impl IntoIterator<Item = (String, Type)>, given: &[Name]) {
        for (place, (name, of)) in own.into_iter().enumerate() {
            let name = given.get(place).map_or(name, |given| stored(&given.text));
            known.columns.insert(name, declared(of));
        }
    }

    fn json_column(&self, column: &JsonColumn, of: Type) -> Result<String, Error> {
        let line = column.name.at.line;
        if matches!(of.name, "text" | "image" | "sql_variant") {
            let text = "TEXT, NTEXT, SQL_VARIANT and IMAGE types cannot be used as column types in OPENJSON function with \
                        explicit schema. These types are not supported in WITH clause.";
            return Err(Error::new(13614, text, line).with_severity(16));
        }
        if of.family == Family::Binary || of.name == "xml" {
            let what = format!("openjson with a column of type {}", of.name);
            return Err(Error::refused(&what, "take it as nvarchar(max)", line));
        }
        let path = match &column.path {
            Some(path) => literal(path),
            None => literal(&format!("$.{}", quoted(&column.name.text))),
        };
        let function = if column.as_json { "json_query" } else { "json_scalar" };
        let text = Value::new(format!("tsql.{function}(\"@@value\", {path})"), nvarchar(None));
        Ok(converted(text, of, line, self.dialect())?.sql)
    }
}

impl CallTranslation<'_, '_, '_> {
    /// `json_modify (document, path, value)`
    pub fn json_modify(&mut self) -> Result<Value, Error> {
        self.count(3, 3)?;
        let (document, path) = (self.text(0)?, self.text(1)?);
        let value = self.value(2)?;
        let value = written(&value, is_json(&self.arguments[2]));
        Ok(Value::new(format!("tsql.json_modify({document}, {path}, {value})"), nvarchar(None)))
    }
}
