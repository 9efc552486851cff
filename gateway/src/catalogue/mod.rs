//! The procedure catalogue: what can be called and how, read from PostgreSQL's own catalogue.

mod arguments;
mod plan;
mod signature;
#[cfg(test)]
mod tests;
mod watch;

pub use arguments::{bind, fits, BindError, Bound};
pub use plan::Plan;
pub use signature::{quoted, Argument, Attribute, Direction, Field, Function, Returns};
pub use watch::{Because, LiveCatalogue, Watcher};

use crate::convert::PgType;
use crate::metrics::Metrics;
use crate::postgres::commit::Owner;
use crate::postgres::{Connection, PgError};
use crate::tds::dialect::Dialect;
use std::collections::HashMap;

/// The schemas of system procedures: those for every client, and those that TDS 5.0 has in another form.
const SYSTEM: &str = "sys";
const OF_SYBASE: &str = "sybsystemprocs";
/// The schema of ringlog's own procedures, which every database has.
const OWN: &str = "ringlog";

/// Where a name is looked for that says no database.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The database (schema) in use.
    pub database: &'a str,
    /// The search path that the role has by itself.
    pub path: &'a [String],
}

/// A snapshot of all functions.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// By name in lower case.
    functions: HashMap<String, Vec<std::sync::Arc<Function>>>,
}

/// What `Catalogue::find` says when there is not exactly one function.
#[derive(Debug, PartialEq, Eq)]
pub enum Unresolved {
    Missing,
    /// The names of those that fit equally.
    Ambiguous(Vec<String>),
}

struct Type {
    base: u32,
    attributes: Vec<Attribute>,
}

impl Catalogue {
    /// Reads everything in three queries.
    pub async fn load(connection: &mut Connection, metrics: &Metrics) -> Result<Catalogue, PgError> {
        let types = read_types(connection).await?;
        let mut arguments: HashMap<u32, Vec<Row>> = HashMap::new();
        for row in rows(connection, include_str!("arguments.sql")).await? {
            arguments.entry(row.number(0)?).or_default().push(row);
        }
        let mut functions: HashMap<String, Vec<_>> = HashMap::new();
        for row in rows(connection, include_str!("functions.sql")).await? {
            let oid = row.number(0)?;
            let function = function(&row, arguments.remove(&oid).unwrap_or_default(), &types, metrics)?;
            functions.entry(function.name.to_lowercase()).or_default().push(std::sync::Arc::new(function));
        }
        Ok(Catalogue { functions })
    }

    /// The function a client of `dialect` means by `name` in the database (schema) it names, else in `place`. Other
    /// databases are not looked into; system procedures and ringlog's own are in all of them. A system procedure
    /// wins over every other, then the database's own, then the first of the path, an exact spelling over one that
    /// differs in case, and among overloads the one whose parameters take the call.
    pub fn find(
        &self,
        schema: Option<&str>,
        name: &str,
        place: Place<'_>,
        dialect: &Dialect,
        fits: impl Fn(&Function) -> bool,
    ) -> Result<std::sync::Arc<Function>, Unresolved> {
        let all = self.functions.get(&name.to_lowercase()).map_or(&[][..], Vec::as_slice);
        let is_there = |function: &Function| match schema {
            Some(schema) => function.schema.eq_ignore_ascii_case(schema),
            None => function.schema == place.database,
        };
        let in_path = |function: &Function| match schema {
            Some(_) => None,
            None => place.path.iter().rev().position(|schema| *schema == function.schema),
        };
        let may_be_meant = |function: &Function| match function.schema.as_str() {
            OF_SYBASE => !dialect.is_tds7(),
            SYSTEM | OWN => true,
            _ => is_there(function) || in_path(function).is_some(),
        };
        let all: Vec<_> = all.iter().filter(|function| may_be_meant(function)).collect();
        let rank = |function: &Function| {
            (
                function.schema == OF_SYBASE,
                function.is_system(),
                is_there(function),
                in_path(function),
                function.name == name,
            )
        };
        let Some(best) = all.iter().map(|function| rank(function)).max() else {
            return Err(Unresolved::Missing);
        };
        let candidates: Vec<_> = all.into_iter().filter(|function| rank(function) == best).collect();
        if let [only] = candidates.as_slice() {
            return Ok((*only).clone());
        }
        let fitting: Vec<_> = candidates.iter().filter(|function| fits(function)).collect();
        match fitting.as_slice() {
            [only] => Ok((**only).clone()),
            [] => Err(Unresolved::Ambiguous(candidates.iter().map(|found| found.shown()).collect())),
            several => Err(Unresolved::Ambiguous(several.iter().map(|found| found.shown()).collect())),
        }
    }
}

fn function(
    row: &Row,
    arguments: Vec<Row>,
    types: &HashMap<u32, Type>,
    metrics: &Metrics,
) -> Result<Function, PgError> {
    let is_procedure = row.text(3) == "p";
    let required: usize = row.number(7)? as usize;
    let mut parts = signature::Parts::default();
    let mut inputs = 0;
    for argument in arguments {
        let direction = match argument.text(2) {
            "i" => Direction::In,
            "b" => Direction::InOut,
            "o" => Direction::Out,
            // RETURNS TABLE columns are the result set's
            _ => continue,
        };
        let oid = argument.number(4)?;
        let has_default = direction.is_input() && inputs >= required;
        inputs += usize::from(direction.is_input());
        let attributes = types.get(&oid).filter(|found| !found.attributes.is_empty());
        let attributes = attributes.map(|composite| {
            let resolved = composite.attributes.iter().cloned().map(|attribute| Attribute {
                pg_type: PgType::from_oid(base_type(attribute.oid, types)),
                ..attribute
            });
            resolved.collect()
        });
        let pg_type = PgType::from_oid(base_type(oid, types));
        parts.argument(argument.text(3), direction, has_default, oid, pg_type, attributes);
    }
    Ok(parts.function(
        row.number(0)?,
        row.text(1),
        row.text(2),
        is_procedure,
        row.flag(4),
        base_type(row.number(5)?, types),
        row.owner(6)?,
        row.flag(8),
        metrics.of_procedure(format!("{}.{}", row.text(1), row.text(2))),
    ))
}

/// What a domain stands for in the end, text for an enum; any other type stands for itself.
fn base_type(oid: u32, types: &HashMap<u32, Type>) -> u32 {
    let mut oid = oid;
    // PostgreSQL allows no circle of domains
    while let Some(found) = types.get(&oid).filter(|found| found.base != 0) {
        oid = found.base;
    }
    oid
}

async fn read_types(connection: &mut Connection) -> Result<HashMap<u32, Type>, PgError> {
    let mut types: HashMap<u32, Type> = HashMap::new();
    for row in rows(connection, include_str!("types.sql")).await? {
        let base = row.number(2)?;
        let entry = types.entry(row.number(0)?).or_insert(Type { base, attributes: Vec::new() });
        if row.text(1) == "c" {
            let oid = row.number(5)?;
            entry.attributes.push(Attribute {
                name: row.text(4).to_owned(),
                oid,
                pg_type: PgType::from_oid(oid),
                typmod: row.text(6).parse().unwrap_or(-1),
            });
        }
    }
    Ok(types)
}

struct Row(Vec<Option<String>>);

async fn rows(connection: &mut Connection, sql: &str) -> Result<Vec<Row>, PgError> {
    Ok(connection.query_text(sql).await?.into_iter().map(Row).collect())
}

impl Row {
    fn text(&self, column: usize) -> &str {
        self.0.get(column).and_then(Option::as_deref).unwrap_or("")
    }

    fn flag(&self, column: usize) -> bool {
        self.text(column) == "t"
    }

    /// Whose a function is that joins group commit; None: it does not.
    fn owner(&self, column: usize) -> Result<Option<Owner>, PgError> {
        if self.text(column).is_empty() {
            return Ok(None);
        }
        Ok(Some(match self.number(column)? {
            0 => Owner::Installer,
            owner => Owner::Site(owner),
        }))
    }

    fn number(&self, column: usize) -> Result<u32, PgError> {
        self.text(column)
            .parse()
            .map_err(|_| PgError::Protocol(format!("a catalogue row without a number in column {column}")))
    }
}
