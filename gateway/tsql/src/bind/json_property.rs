//! The JSON of a column: its declared name, its value, and its table.

use super::binder::Binder;
use super::declared;
use super::item::Item;
use super::named::{source_name, Declared, Origin};
use super::stars;
use super::value::{styled_text, Value};
use crate::error::Error;
use crate::facts::types::{Family, Type, DATETIMEOFFSET};
use crate::postgres::{call, Scalar};
use crate::resolve::names::{folded, stored, table, table_variable};
use crate::tree::{
    ColumnName, Expression, FunctionCall, ObjectName, Query, QueryBody, Select, SelectItem, TableSource,
};

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
    match (value.of, styled_text(value, ISO)) {
        _ if is_json => sql,
        (Some(of), Some(text)) if of.name == DATETIMEOFFSET.name => {
            call("tsql.json_text", [call("tsql.json_offset", [text])])
        }
        (_, Some(text)) => call("tsql.json_text", [text]),
        (Some(of), _) if of.family == Family::Decimal => call("tsql.json_of", [sql.cast(of.sql())]),
        (Some(of), _) if of.family == Family::Money => call("tsql.json_of", [Value::money(sql, of).sql]),
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

fn flat(from: &[TableSource]) -> Vec<&TableSource> {
    let mut rest: Vec<&TableSource> = from.iter().rev().collect();
    let mut found = Vec::new();
    while let Some(source) = rest.pop() {
        match source {
            TableSource::Join { left, right, .. } => rest.extend([&**right, &**left]),
            _ => found.push(source),
        }
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
            let place = source_of_column(binder, column, &sources)?;
            item.property.is_strange = place.is_none();
            item.property.source = place.filter(|place| sources[*place].is_table);
            if alias.is_none() {
                item.property.name = name_of_property(binder, column)?;
            }
        }
    }
    Ok(())
}

fn name_of_property(binder: &Binder<'_>, column: &ColumnName) -> Result<Option<Scalar>, Error> {
    match declared::origin(binder, column)? {
        Origin::Tables(tables) => declared::query_of_declaration("json_name", tables, column),
        Origin::Query(_) => Ok(None),
    }
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
    let in_query = named.columns.contains_key(own);
    let tables = named.tables.clone();
    let has = |table: &String| {
        let has_it = binder.scope.table(table).is_some_and(|table| table.column(own).is_some());
        binder.variables.note_use(table, has_it.then_some(own));
        has_it
    };
    tables.iter().any(has) || in_query
}

/// Replaces a query's stars by their columns; None if these are unknown.
pub fn without_stars(binder: &mut Binder<'_>, query: &Query) -> Result<Option<Query>, Error> {
    let QueryBody::Select(select) = &query.body else { return Ok(Some(query.clone())) };
    if !select.items.iter().any(|item| matches!(item, SelectItem::Star { .. })) {
        return Ok(Some(query.clone()));
    }
    let mut items = Vec::with_capacity(select.items.len());
    for item in &select.items {
        let SelectItem::Star { table: of, at } = item else {
            items.push(item.clone());
            continue;
        };
        let is_meant = |source: &&TableSource| match of {
            Some(of) => source_name(source).is_some_and(|name| name == stored(&of.name)),
            None => true,
        };
        for source in flat(&select.from).into_iter().filter(is_meant) {
            let Some(columns) = columns_of_source(binder, source, query)? else { return Ok(None) };
            let name = source_name(source).map(|name| ObjectName { name, at: *at, ..ObjectName::default() });
            let qualifier = match source {
                TableSource::Table { alias: None, name, .. } => Some(name.clone()),
                _ => name,
            };
            items.extend(columns.into_iter().map(|column| {
                let table = qualifier.clone().map(Box::new);
                let value = Expression::Column(ColumnName { table, column, at: *at });
                SelectItem::Value { value, alias: None }
            }));
        }
    }
    let body = QueryBody::Select(Box::new(Select { items, ..(**select).clone() }));
    Ok(Some(Query { body, ..query.clone() }))
}

fn columns_of_source(
    binder: &mut Binder<'_>,
    source: &TableSource,
    query: &Query,
) -> Result<Option<Vec<String>>, Error> {
    let with: Vec<_> = query.with.iter().collect();
    if let Some(titles) = stars::of_source(source, &with) {
        return Ok(Some(titles.into_iter().map(|title| title.text).collect()));
    }
    let whole = match source {
        TableSource::Table { name, .. }
            if !(name.is_bare() && binder.names.common.contains(&stored(&name.name))) =>
        {
            table(name)?
        }
        TableSource::Variable { variable, .. } => {
            table(&table_variable(variable, &binder.scope.table_owner))?
        }
        _ => return Ok(None),
    };
    let known = binder.scope.table(&whole);
    binder.variables.note_use(&whole, None);
    let Some(known) = known else { return Ok(None) };
    let mut columns = Vec::new();
    for column in known.columns() {
        binder.variables.note_use(&whole, Some(&column.name));
        columns.push(column.name.clone());
    }
    Ok(Some(columns))
}

/// The value of a column of a derived table, by its position.
pub fn value_of(item: &Item, column: &str) -> Scalar {
    written(&Value::of(Scalar::column(column), item.of), item.property.is_json)
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

/// The type of a JSON column.
pub fn declared(of: Type) -> Declared {
    Declared::of_type(Some(of))
}
