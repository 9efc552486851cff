//! The types of columns: a column is searched for among the sources of the enclosing selects, and its type is that of
//! the table's declaration.

use super::binder::Binder;
use super::named::Named;
use super::variables::Variables;
use crate::error::Error;
use crate::facts::types::Type;
use crate::resolve::names::{folded, stored, table};
use crate::resolve::Scope;
use crate::tree::ColumnName;

/// The result of a search in a source.
enum Found {
    /// The source has the column, of this type if known.
    Column(Option<Type>),
    /// The source may have it.
    Perhaps,
    No,
}

/// The type of a column; None if unknown. The tables are noted, as the statement depends on them.
pub fn type_of_column(binder: &mut Binder<'_>, column: &ColumnName) -> Result<Option<Type>, Error> {
    let own = folded(&column.column, column.at.line)?;
    let qualifier = column.table.as_deref();
    let whole = qualifier.map(table).transpose()?;
    let name = qualifier.map(|of| stored(&of.name));
    let is_output = binder.output.is_some() && matches!(name.as_deref(), Some("inserted" | "deleted"));
    let is_meant = |one: &&Named| match (qualifier, &name) {
        (Some(of), Some(name)) if of.is_bare() => one.name == *name || is_output,
        (Some(_), _) => one.tables.first() == whole.as_ref(),
        _ => true,
    };
    // an inner select sees the sources of the enclosing ones
    for level in binder.names.sources.iter().rev() {
        let mut may_be_here = false;
        for source in level.iter().rev().filter(is_meant) {
            match found(source, &own, binder.scope, &mut *binder.variables) {
                Found::Column(of) => return Ok(of),
                Found::Perhaps => may_be_here = true,
                Found::No => {}
            }
            if qualifier.is_some() {
                return Ok(None);
            }
        }
        if may_be_here {
            break;
        }
    }
    Ok(None)
}

/// The name of the source of a column in the current select; None if unknown.
pub fn source_of(binder: &mut Binder<'_>, column: &ColumnName) -> Result<Option<String>, Error> {
    if let Some(of) = &column.table {
        return Ok(Some(stored(&of.name)));
    }
    let own = folded(&column.column, column.at.line)?;
    let mut only = None;
    for source in binder.names.sources.last().into_iter().flatten() {
        match found(source, &own, binder.scope, &mut *binder.variables) {
            Found::Column(_) if only.is_none() => only = Some(source.name.clone()),
            Found::No => {}
            _ => return Ok(None),
        }
    }
    Ok(only)
}

/// The column of this name in a source.
fn found(source: &Named, own: &str, scope: &Scope, variables: &mut dyn Variables) -> Found {
    if let Some(of) = source.columns.get(own) {
        return Found::Column(of.of);
    }
    if source.is_combined && !source.tables.is_empty() {
        return Found::Perhaps;
    }
    let mut found = if source.is_open { Found::Perhaps } else { Found::No };
    for table in &source.tables {
        let known = scope.table(table);
        let column = known.as_ref().and_then(|table| table.column(own));
        variables.note_use(table, column.map(|_| own));
        match (known.is_some(), column) {
            (_, Some(column)) => return Found::Column(column.of),
            (true, None) => {}
            (false, None) => found = Found::Perhaps,
        }
    }
    found
}
