//! The types of columns: a column is searched for among the sources of the enclosing selects, and its type is that of
//! the table's declaration.

use super::changed_rows::LOCATION;
use super::named::Named;
use super::variables::Variables;
use super::{changed_rows, Binder};
use crate::error::Error;
use crate::facts::types::{Type, UNKNOWN};
use crate::resolve::names::{folded, stored, table};
use crate::resolve::Scope;
use crate::tree::ColumnName;

/// The result of a search in a source.
enum Found {
    Column(Type),
    /// The source may have it.
    Perhaps,
    No,
}

/// The type of a column. The tables are noted, as the statement depends on them. Errors 207, 209 and
/// 4104 if no source has it, or several.
pub fn type_of_column(binder: &mut Binder<'_>, column: &ColumnName) -> Result<Type, Error> {
    let Found::Column(of) = searched(binder, column)? else { return Ok(UNKNOWN) };
    Ok(of)
}

/// Whether a source is known to have the column.
pub fn has_source(binder: &mut Binder<'_>, column: &ColumnName) -> Result<bool, Error> {
    Ok(matches!(searched(binder, column)?, Found::Column(_)))
}

fn searched(binder: &mut Binder<'_>, column: &ColumnName) -> Result<Found, Error> {
    if changed_rows::action(binder, column).is_some() {
        return Ok(Found::Column(changed_rows::TYPE_OF_ACTION));
    }
    let own = folded(&column.column, column.at.line)?;
    if LOCATION.contains(&&*own) || binder.names.sources.is_empty() {
        return Ok(Found::Perhaps);
    }
    let qualifier = column.table.as_deref();
    let whole = qualifier.map(table).transpose()?;
    if let Some(table) = qualifier.and_then(|of| changed_rows::changed_table(binder, of)) {
        let changed = Named::of_table(String::new(), table.to_owned());
        return match found(&changed, &own, binder.scope, &mut *binder.variables) {
            Found::No => Err(Error::invalid_column(&column.column, column.at)),
            found => Ok(found),
        };
    }
    let name = qualifier.map(|of| stored(&of.name));
    let is_meant = |one: &&Named| match (qualifier, &name) {
        (Some(of), Some(name)) if of.is_bare() => one.name == *name,
        // a table may be found by its name alone, and its columns be named with its schema
        (Some(_), name) => one.table == whole || one.table.is_some() && Some(&one.name) == name.as_ref(),
        _ => true,
    };
    // an inner select sees the sources of the enclosing ones
    for level in binder.names.sources.iter().rev() {
        let (mut may_be_here, mut first): (bool, Option<(&str, Type)>) = (false, None);
        for source in level.iter().filter(is_meant) {
            match (found(source, &own, binder.scope, &mut *binder.variables), first) {
                (Found::Column(of), _) if qualifier.is_some() => return Ok(Found::Column(of)),
                (Found::Column(_), Some((name, _))) if name != source.name => {
                    let text = format!("Ambiguous column name '{}'.", column.column);
                    return Err(Error::new(209, text, column.at).with_severity(16));
                }
                (Found::Column(of), _) => first = Some((&source.name, of)),
                (Found::Perhaps, _) => may_be_here = true,
                (Found::No, _) if qualifier.is_some() => {
                    return Err(Error::invalid_column(&column.column, column.at));
                }
                (Found::No, _) => {}
            }
        }
        if let Some((_, of)) = first {
            return Ok(Found::Column(of));
        }
        if may_be_here {
            return Ok(Found::Perhaps);
        }
    }
    match qualifier {
        None => Err(Error::invalid_column(&column.column, column.at)),
        Some(table) => {
            let name = format!("{}.{}", table.shown(), column.column);
            let text = format!("The multi-part identifier \"{name}\" could not be bound.");
            Err(Error::new(4104, text, column.at).with_severity(16))
        }
    }
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
    if let Some(of) = source.column(own) {
        return Found::Column(of.of);
    }
    let Some(table) = &source.table else {
        return if source.is_open { Found::Perhaps } else { Found::No };
    };
    let known = scope.table(table);
    let column = known.as_ref().and_then(|table| table.column(own));
    variables.note_use(table, column.map(|_| own));
    match (known.is_some(), column) {
        (_, Some(column)) => Found::Column(column.of),
        (true, None) => Found::No,
        (false, None) => Found::Perhaps,
    }
}
