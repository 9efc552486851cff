//! The columns of `*` that the query itself names: those of derived tables and of a WITH, whose names are returned in
//! the case in which they are written.

use super::title::Title;
use crate::tree::{CommonTable, Expression, Query, QueryBody, Select, SelectItem, TableSource};

/// The titles of a query's columns; None if a star represents columns that only the catalogue knows.
pub fn titles(query: &Query, outer: &[&CommonTable]) -> Option<Vec<Title>> {
    let tables: Vec<&CommonTable> = query.with.iter().chain(outer.iter().copied()).collect();
    of_body(&query.body, &tables)
}

fn of_body(body: &QueryBody, tables: &[&CommonTable]) -> Option<Vec<Title>> {
    match body {
        QueryBody::Select(select) => of_select(select, tables),
        QueryBody::Combined { first, .. } => of_body(first, tables),
        QueryBody::Parenthesised(query) => titles(query, tables),
        QueryBody::Values(_) => None,
    }
}

fn of_select(select: &Select, tables: &[&CommonTable]) -> Option<Vec<Title>> {
    let mut found = Vec::new();
    for item in &select.items {
        match item {
            SelectItem::Star { table: None, .. } => {
                for source in &select.from {
                    found.extend(of_source(source, tables)?);
                }
            }
            SelectItem::Value { alias: Some(alias), .. } => found.push(Title::given(&alias.text)),
            SelectItem::Value { value, alias: None } => found.push(match value.without_collation() {
                Expression::Column(column) => Title::own(&column.column),
                _ => Title::given(""),
            }),
            _ => return None,
        }
    }
    Some(found)
}

pub fn of_source(source: &TableSource, tables: &[&CommonTable]) -> Option<Vec<Title>> {
    let named = |names: &[crate::tree::Name]| {
        let titles = names.iter().map(|name| Title::given(&name.text));
        (!names.is_empty()).then(|| titles.collect())
    };
    match source {
        TableSource::Query { query, columns, .. } => named(columns).or_else(|| titles(query, tables)),
        TableSource::Table { name, .. } if name.is_bare() => {
            let place = tables.iter().position(|table| table.name.is(&name.name))?;
            let table = tables[place];
            named(&table.columns).or_else(|| titles(&table.query, &[]))
        }
        TableSource::Join { left, right, .. } => {
            let mut found = of_source(left, tables)?;
            found.extend(of_source(right, tables)?);
            Some(found)
        }
        _ => None,
    }
}
