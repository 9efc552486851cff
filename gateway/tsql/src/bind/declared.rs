//! The parts of a column's declaration that PostgreSQL's type lacks: the digits of datetime2, time and decimals,
//! whether a text is national (`width`), whether its length is unlimited. A table may be altered after a procedure's
//! creation, so the declaration is read when the statement runs, once.

use super::binder::Binder;
use super::named::{source_name, Named, Origin};
use super::sources;
use crate::error::Error;
use crate::postgres::{call, Scalar};
use crate::resolve::names::{self, folded, stored, table, RelationKind};
use crate::schema::CHANGED;
use crate::tree::{ColumnName, ObjectName, TableSource};

/// The sources of FROM; queries among them become known after they have been written (`know`).
pub fn named_sources(binder: &Binder<'_>, from: &[TableSource]) -> Result<Vec<Named>, Error> {
    let mut named = Vec::new();
    let mut rest: Vec<&TableSource> = from.iter().collect();
    while let Some(source) = rest.pop() {
        let name = source_name(source).unwrap_or_default();
        named.push(match source {
            TableSource::Join { left, right, .. } => {
                rest.extend([&**left, &**right]);
                continue;
            }
            TableSource::Table { name: of, .. } => relation(binder, of, name)?,
            TableSource::Variable { variable, .. } => {
                let tables = vec![table(&sources::named_variable(binder, variable)?)?];
                Named { name, tables, ..Named::default() }
            }
            _ => Named::unknown(name),
        });
    }
    Ok(named)
}

/// A table or view of PostgreSQL's catalogue, or a query of WITH.
fn relation(binder: &Binder<'_>, of: &ObjectName, name: String) -> Result<Named, Error> {
    let own = stored(&of.name);
    if of.is_bare() {
        if let Some(common) = binder.names.written.get(&own) {
            return Ok(Named { name, ..common.clone() });
        }
        if binder.names.common.contains(&own) {
            return Ok(Named::unknown(name));
        }
        if matches!(own.as_str(), "inserted" | "deleted") {
            return Ok(match binder.scope.trigger {
                None => Named::unknown(name),
                Some(_) => Named { name, tables: vec![CHANGED.to_owned()], ..Named::default() },
            });
        }
    }
    let relation = names::relation(of)?;
    Ok(match relation.kind {
        // its columns are those of the view
        RelationKind::Elsewhere => {
            let view = relation.sql.split('(').next().unwrap_or_default().to_owned();
            Named { name, tables: vec![view], ..Named::default() }
        }
        _ => Named { name, tables: vec![relation.sql], ..Named::default() },
    })
}

/// Called for a source that has been written.
pub fn know(binder: &mut Binder<'_>, of: Named) {
    let sources = binder.names.sources.last_mut().into_iter().flatten();
    for source in sources.filter(|source| source.is_open && source.name == of.name) {
        *source = of.clone();
    }
}

/// The sources of the columns of `*` and `t.*`.
pub fn all_of(binder: &Binder<'_>, qualifier: Option<&ObjectName>) -> Vec<Named> {
    let sources = binder.names.sources.last().into_iter().flatten();
    let is_meant = |one: &&Named| qualifier.is_none_or(|of| stored(&of.name) == one.name);
    sources.filter(is_meant).cloned().collect()
}

pub fn origin(binder: &Binder<'_>, column: &ColumnName) -> Result<Origin, Error> {
    let own = stored(&column.column);
    let mut tables = Vec::new();
    for named in binder.names.sources.iter().rev() {
        match &column.table {
            None => {
                if let Some(of) = named.iter().find_map(|one| one.columns.get(&own)) {
                    return Ok(Origin::Query(of.clone()));
                }
                tables.extend(named.iter().flat_map(|one| one.tables.iter().cloned()));
                // a column may belong to a source with unknown columns
                if named.iter().any(|one| one.is_open) {
                    break;
                }
            }
            Some(qualifier) => {
                let whole = table(qualifier)?;
                let name = stored(&qualifier.name);
                let is_output = binder.output.is_some() && matches!(name.as_str(), "inserted" | "deleted");
                let is_meant = |one: &&Named| match qualifier.is_bare() {
                    true => one.name == name || is_output,
                    false => one.tables.first() == Some(&whole),
                };
                if let Some(found) = named.iter().rev().find(is_meant) {
                    return Ok(match found.columns.get(&own) {
                        Some(of) => Origin::Query(of.clone()),
                        None => Origin::Tables(found.tables.clone()),
                    });
                }
            }
        }
    }
    Ok(Origin::Tables(tables))
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
