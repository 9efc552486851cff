//! `*` and `t.*`: lists of columns once the sources are known.

use crate::bind::binder::named::{flat, named_variable, source_name, Named};
use crate::bind::binder::variables::Variables;
use crate::bind::binder::{changed_rows, Binder};
use crate::error::Error;
use crate::resolve::Scope;
use crate::schema::WHOLE;
use crate::tree::{ColumnName, Expression, ObjectName, Position, Select, SelectItem, TableSource};
use std::borrow::Cow;

/// The select with the columns of its sources, which have been written, instead of its stars. The star of a table that
/// does not exist stays. Error 263.
pub fn listed<'s>(binder: &mut Binder<'_>, select: &'s Select) -> Result<Cow<'s, Select>, Error> {
    if !select.items.iter().any(|item| matches!(item, SelectItem::Star { .. })) {
        return Ok(Cow::Borrowed(select));
    }
    let mut items = Vec::new();
    for item in &select.items {
        let SelectItem::Star { table, at } = item else {
            items.push(item.clone());
            continue;
        };
        match columns(binder, &select.from, table.as_ref(), *at)? {
            Some(columns) => items.extend(columns),
            None => items.push(item.clone()),
        }
    }
    Ok(Cow::Owned(Select { items, ..select.clone() }))
}

fn columns(
    binder: &mut Binder<'_>,
    from: &[TableSource],
    of: Option<&ObjectName>,
    at: Position,
) -> Result<Option<Vec<SelectItem>>, Error> {
    if of.is_none() && from.is_empty() {
        return Err(Error::new(263, "Must specify table to select from.", at).with_severity(16));
    }
    if let (Some(of), true, true) = (of, from.is_empty(), binder.scope.dialect.is_strict) {
        let text = format!(
            "The column prefix '{}' does not match with a table name or alias name used in the query.",
            of.shown()
        );
        return Err(Error::new(107, text, at));
    }
    let named = binder.names.sources.last().into_iter().flatten();
    let mut found = Vec::new();
    for (source, named) in flat(from).into_iter().zip(named) {
        if !of.is_none_or(|of| is_meant(source, of)) {
            continue;
        }
        let qualifier = match source {
            TableSource::Table { alias: None, name, .. } => Some(name.clone()),
            TableSource::Variable { alias: None, variable } => Some(named_variable(binder, variable)?),
            _ => source_name(source).map(|name| ObjectName { name, at, ..ObjectName::default() }),
        };
        let columns = columns_of(named, binder.scope, &mut *binder.variables);
        let Some(columns) = columns else { return Ok(None) };
        found.extend(columns.into_iter().map(|column| item(qualifier.as_ref(), column, at)));
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// Whether `of.*` means this source.
fn is_meant(source: &TableSource, of: &ObjectName) -> bool {
    match source {
        TableSource::Table { alias: None, name, .. } if !of.is_bare() => name == of,
        _ => source_name(source).is_some_and(|name| of.is_bare() && of.name.eq_ignore_ascii_case(&name)),
    }
}

/// The names of all columns of a source; None if they are not known.
fn columns_of(source: &Named, scope: &Scope, variables: &mut dyn Variables) -> Option<Vec<String>> {
    if source.is_open {
        return None;
    }
    match &source.table {
        None => Some(source.columns().iter().map(|column| column.shown.clone()).collect()),
        Some(table) => columns_of_table(table, scope, variables),
    }
}

fn columns_of_table(table: &str, scope: &Scope, variables: &mut dyn Variables) -> Option<Vec<String>> {
    let known = scope.table(table);
    variables.note_use(table, known.is_some().then_some(WHOLE));
    Some(known?.columns().iter().map(|column| column.name.clone()).collect())
}

/// The columns of `inserted.*` and `deleted.*` in OUTPUT.
pub fn of_output(binder: &mut Binder<'_>, of: &ObjectName, at: Position) -> Option<Vec<SelectItem>> {
    let table = changed_rows::changed_table(binder, of)?.to_owned();
    let columns = columns_of_table(&table, binder.scope, &mut *binder.variables)?;
    Some(columns.into_iter().map(|column| item(Some(of), column, at)).collect())
}

fn item(of: Option<&ObjectName>, column: String, at: Position) -> SelectItem {
    let column = ColumnName { table: of.cloned().map(Box::new), column, at };
    SelectItem::Value { value: Expression::Column(column), alias: None }
}
