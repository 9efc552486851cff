//! The JSON of a column: its declared name, its value, and its table.

use crate::bind::binder::item::Item;
use crate::bind::binder::named::{flat, source_name};
use crate::bind::binder::{declared, Binder};
use crate::bind::values::{styled_text, Value};
use crate::error::Error;
use crate::facts::types::{Family, DATETIMEOFFSET};
use crate::postgres::{call, Scalar};
use crate::resolve::names::{folded, stored};
use crate::tree::{ColumnName, Expression, FunctionCall, Select, SelectItem, TableSource};

/// ISO 8601, the format of times in JSON.
const ISO: i64 = 126;

/// Whether FOR JSON inserts the text of an expression unchanged ("Solve common issues with JSON").
pub fn is_json(expression: &Expression) -> bool {
    match expression {
        Expression::Subquery(query) => query.for_json.as_ref().is_some_and(|json| json.has_wrapper),
        Expression::Function(call) => gives_json(call),
        _ => false,
    }
}

fn gives_json(call: &FunctionCall) -> bool {
    call.name.is_bare() && matches!(call.name.name.to_lowercase().as_str(), "json_query" | "json_modify")
}

/// A value as JSON; null for null.
pub fn written(value: &Value, is_json: bool) -> Scalar {
    let sql = value.sql.clone();
    if value.is_null() {
        return sql.cast("text");
    }
    let of = value.of;
    match (of.family, styled_text(value, ISO)) {
        _ if is_json => sql,
        (_, Some(text)) if of.name == DATETIMEOFFSET.name => {
            call("tsql.json_text", [call("tsql.json_offset", [text])])
        }
        (_, Some(text)) => call("tsql.json_text", [text]),
        (Family::Decimal, _) => call("tsql.json_of", [sql.cast(of.sql())]),
        (Family::Money, _) => call("tsql.json_of", [Value::money(sql, of).sql]),
        _ => call("tsql.json_of", [sql]),
    }
}

/// A source of FROM for the objects of FOR JSON AUTO.
pub struct JsonSource {
    /// Its name in lower case.
    pub name: String,
    /// Its name as the query writes it.
    pub shown: String,
    is_table: bool,
}

/// The sources of FROM, in the order of the text.
pub fn sources(from: &[TableSource]) -> Vec<JsonSource> {
    let mut found = Vec::new();
    for source in flat(from) {
        let shown = match source {
            TableSource::Table { alias: None, name, .. } => name.shown(),
            TableSource::Variable { alias: None, variable } => variable.name.clone(),
            TableSource::Table { alias: Some(alias), .. }
            | TableSource::Variable { alias: Some(alias), .. }
            | TableSource::Function { alias: Some(alias), .. }
            | TableSource::Query { alias: Some(alias), .. } => alias.text.clone(),
            _ => String::new(),
        };
        let is_table = !matches!(source, TableSource::Function { .. });
        found.push(JsonSource { name: source_name(source).unwrap_or_default(), shown, is_table });
    }
    found
}

/// Notes the properties of items that FOR JSON needs, while the sources of their select are known.
pub fn note_properties(binder: &mut Binder<'_>, select: &Select, items: &mut [Item]) -> Result<(), Error> {
    let sources = sources(&select.from);
    for (item, written) in items.iter_mut().zip(&select.items) {
        let SelectItem::Value { value, alias } = written else { continue };
        item.property.is_json = is_json(value);
        if let Expression::Column(column) = value.without_collation() {
            let index = source_of_column(binder, column, &sources)?;
            item.property.is_strange = index.is_none();
            item.property.source = index.filter(|index| sources[*index].is_table);
            if alias.is_none() {
                item.property.name = name_of_property(binder, column)?;
            }
        }
    }
    Ok(())
}

fn name_of_property(binder: &Binder<'_>, column: &ColumnName) -> Result<Option<Scalar>, Error> {
    declared::query_of_declaration("json_name", declared::tables(binder, column)?, column)
}

/// The index of the source to which a column belongs; None if unknown.
fn source_of_column(
    binder: &mut Binder<'_>,
    column: &ColumnName,
    sources: &[JsonSource],
) -> Result<Option<usize>, Error> {
    let own = folded(&column.column, column.at.line)?;
    Ok(match &column.table {
        Some(of) => sources.iter().position(|source| source.name == stored(&of.name)),
        None if sources.len() == 1 => Some(0),
        None => sources.iter().position(|source| has_column(binder, &source.name, &own)),
    })
}

fn has_column(binder: &mut Binder<'_>, source: &str, own: &str) -> bool {
    let known = binder.names.sources.last().into_iter().flatten();
    let Some(named) = known.into_iter().find(|one| one.name == source) else { return false };
    let in_query = named.column(own).is_some();
    let table = named.table.clone();
    let has = |table: &String| {
        let has_it = binder.scope.table(table).is_some_and(|table| table.column(own).is_some());
        binder.variables.note_use(table, has_it.then_some(own));
        has_it
    };
    table.iter().any(has) || in_query
}

/// The value of a column of a derived table, by its position.
pub fn value_of(item: &Item, column: &str) -> Scalar {
    written(&Value::new(Scalar::column(column), item.of), item.property.is_json)
}

/// A name and a colon.
pub fn name_written(name: &str) -> Scalar {
    Scalar::Text(format!("{}:", quoted(name)))
}

/// A text as JSON ("How FOR JSON escapes special characters and control characters").
pub fn quoted(text: &str) -> String {
    let mut written = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' | '/' => written.extend(['\\', character]),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '\u{8}' => written.push_str("\\b"),
            '\u{c}' => written.push_str("\\f"),
            control if control < ' ' => written.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => written.push(other),
        }
    }
    written.push('"');
    written
}
