//! The parts of a column's declaration that PostgreSQL's type lacks: the digits of datetime2, time and decimals,
//! whether a text is national, whether its length is unlimited. A table may be altered after a procedure's
//! creation, so the declaration is read when the statement runs, once.

use super::named::{flat, named_variable, source_name, Named};
use super::{changed_rows, Binder};
use crate::error::Error;
use crate::postgres::{call, Scalar};
use crate::resolve::names::{self, folded, stored, table, RelationKind};
use crate::schema::CHANGED;
use crate::tree::{ColumnName, ObjectName, TableSource};

/// The sources of FROM; queries among them become known after they have been written (`know`).
pub fn named_sources(binder: &Binder<'_>, from: &[TableSource]) -> Result<Vec<Named>, Error> {
    let named = |source: &TableSource| {
        let name = source_name(source).unwrap_or_default();
        Ok(match source {
            TableSource::Table { name: of, .. } => relation(binder, of, name)?,
            TableSource::Variable { variable, .. } => {
                let of = named_variable(binder, variable)?;
                let name = if name.is_empty() { stored(&of.name) } else { name };
                Named::of_table(name, table(&of)?)
            }
            _ => Named::unknown(name),
        })
    };
    flat(from).into_iter().map(named).collect()
}

/// A table or view of PostgreSQL's catalogue, or a query of WITH.
fn relation(binder: &Binder<'_>, of: &ObjectName, name: String) -> Result<Named, Error> {
    let own = stored(&of.name);
    if of.is_bare() {
        if let Some(common) = binder.names.written.get(&own) {
            return Ok(common.clone().called(name));
        }
        if binder.names.common.contains(&own) {
            return Ok(Named::unknown(name));
        }
        if matches!(own.as_str(), "inserted" | "deleted") {
            return Ok(match binder.scope.trigger {
                None => Named::unknown(name),
                Some(_) => Named::of_table(name, CHANGED.to_owned()),
            });
        }
    }
    let relation = names::relation(of)?;
    Ok(match relation.kind {
        // its columns are those of the view
        RelationKind::Elsewhere => {
            let view = relation.sql.split('(').next().unwrap_or_default().to_owned();
            Named::of_table(name, view)
        }
        _ => Named::of_table(name, relation.sql),
    })
}

/// Called for a source that has been written.
pub fn know(binder: &mut Binder<'_>, of: Named) {
    let sources = binder.names.sources.last_mut().into_iter().flatten();
    let mut unknown = sources.filter(|source| source.is_open && source.name == of.name);
    if let Some(source) = unknown.next() {
        *source = of;
    }
}

/// The tables that may have a column; none if it is one of a query.
pub fn tables(binder: &Binder<'_>, column: &ColumnName) -> Result<Vec<String>, Error> {
    if let Some(table) = column.table.as_ref().and_then(|of| changed_rows::changed_table(binder, of)) {
        return Ok(vec![table.to_owned()]);
    }
    let own = stored(&column.column);
    let mut tables = Vec::new();
    for named in binder.names.sources.iter().rev() {
        match &column.table {
            None => {
                if named.iter().any(|one| one.column(&own).is_some()) {
                    return Ok(Vec::new());
                }
                tables.extend(named.iter().filter_map(|one| one.table.clone()));
                // a column may belong to a source with unknown columns
                if named.iter().any(|one| one.is_open) {
                    break;
                }
            }
            Some(qualifier) => {
                let whole = table(qualifier)?;
                let name = stored(&qualifier.name);
                let is_meant = |one: &&Named| match qualifier.is_bare() {
                    true => one.name == name,
                    false => one.table.as_ref() == Some(&whole),
                };
                if let Some(found) = named.iter().find(is_meant) {
                    let has_it = found.column(&own).is_some();
                    return Ok(found.table.iter().filter(|_| !has_it).cloned().collect());
                }
            }
        }
    }
    Ok(tables)
}

/// The result of a function of schema tsql for the declaration of a column.
pub fn query_of_declaration(
    function: &str,
    tables: Vec<String>,
    column: &ColumnName,
) -> Result<Option<Scalar>, Error> {
    if tables.is_empty() {
        return Ok(None);
    }
    let table = |table: String| if table == CHANGED { Scalar::column(table) } else { Scalar::Text(table) };
    let tables = Scalar::Array(tables.into_iter().map(table).collect(), "regclass");
    let column = Scalar::Text(folded(&column.column, column.at.line)?);
    Ok(Some(call(format!("tsql.{function}"), [tables, column]).once()))
}
