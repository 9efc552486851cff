//! `openjson (…)`, `json_modify (…)`.

use super::json_property::{is_json, quoted, written};
use crate::bind::binder::named::{Declared, Named};
use crate::bind::binder::{declared, Binder};
use crate::bind::expressions::conditions;
use crate::bind::functions::calls::CallBinder;
use crate::bind::query::sources::named;
use crate::bind::values::{converted, Value};
use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types::{nvarchar, Case, Family, Type, INT};
use crate::postgres::{call, Alias, Listed, Query, Scalar, Source};
use crate::resolve::names::{self, stored};
use crate::tree::{Arguments, FunctionCall, JsonColumn, Name};

/// The rows of an array or object.
const ROWS: &str = "openjson";
/// The column of one of the rows.
const VALUE: &str = "\"@@value\"";

pub fn names_openjson(call: &FunctionCall) -> bool {
    call.name.is_bare() && call.name.name.eq_ignore_ascii_case(ROWS)
}

pub fn opened_json(
    binder: &mut Binder<'_>,
    called: &FunctionCall,
    schema: &[JsonColumn],
    alias: &Option<Name>,
    columns: &[Name],
) -> Result<Source, Error> {
    let line = called.name.at.line;
    if !binder.dialect().has_for_xml {
        return Err(Error::refused("openjson()", "ASE has no such function", line));
    }
    let Arguments::Values(arguments) = &called.arguments else { return Err(Error::syntax("*", line)) };
    let mut of = CallBinder { binder, name: ROWS, of: called, arguments, over: None, line };
    let path = match of.count(1, 2)? {
        1 => Scalar::text("$"),
        _ => of.text(1)?,
    };
    let document = of.text(0)?;
    let own = || Alias { name: names::quoted(ROWS), columns: Vec::new() };
    let named = named(alias, columns)?.unwrap_or_else(own);
    let name = alias.as_ref().map_or_else(|| ROWS.to_owned(), |alias| stored(&alias.text));
    if schema.is_empty() {
        let own = [("key", nvarchar(Some(4000))), ("value", nvarchar(None)), ("type", INT)];
        know(binder, name, own.map(|(name, of)| (name.to_owned(), of)), columns);
        let rows = call("tsql.openjson", [document, path]);
        if !binder.scope.folds {
            return Ok(Source::Call(rows, Some(named)));
        }
        // the key is binary ("OPENJSON")
        let value = Scalar::column("value").cast(nvarchar(None).with_case(Case::Ignored).sql());
        let [key, kind] = ["key", "type"].map(|column| Listed::from(Scalar::column(column)));
        let query = Query::of([key, Listed::named(value, "value"), kind], Source::Call(rows, None));
        return Ok(Source::Query(Box::new(query), Some(named)));
    }
    let (mut listed, mut own) = (Vec::new(), Vec::new());
    for column in schema {
        let of =
            conditions::type_by_default(binder, type_names::of_variable(&column.type_, binder.dialect())?);
        listed.push(Listed::named(json_column(binder, column, of)?, names::name(&column.name)?));
        own.push((column.name.text.clone(), of));
    }
    know(binder, name, own, columns);
    let row = Alias { name: String::from("\"@@row\""), columns: vec![VALUE.to_owned()] };
    let rows = Source::Call(call("tsql.openjson_rows", [document, path]), Some(row));
    Ok(Source::Query(Box::new(Query::of(listed, rows)), Some(named)))
}

fn know(
    binder: &mut Binder<'_>,
    name: String,
    own: impl IntoIterator<Item = (String, Type)>,
    given: &[Name],
) {
    let column = |(index, (shown, of)): (usize, (String, Type))| {
        Declared::of_type(given.get(index).map_or(shown, |given| given.text.clone()), of)
    };
    declared::know(binder, Named::of_columns(name, own.into_iter().enumerate().map(column)));
}

fn json_column(binder: &Binder<'_>, column: &JsonColumn, of: Type) -> Result<Scalar, Error> {
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
        Some(path) => Scalar::text(path),
        None => Scalar::Text(format!("$.{}", quoted(&column.name.text))),
    };
    let function = if column.as_json { "tsql.json_query" } else { "tsql.json_scalar" };
    let text = Value::new(call(function, [Scalar::column(VALUE), path]), nvarchar(None));
    Ok(converted(text, of, line, binder.dialect())?.sql)
}

/// `json_modify (document, path, value)`
pub fn json_modify(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(3, 3)?;
    let (document, path) = (called.text(0)?, called.text(1)?);
    let value = called.value(2)?;
    let value = written(&value, is_json(&called.arguments[2]));
    Ok(Value::new(call("tsql.json_modify", [document, path, value]), nvarchar(None)))
}
