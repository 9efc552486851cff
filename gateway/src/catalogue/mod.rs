//! The procedure catalogue: what can be called and how, read from PostgreSQL's own catalogue.

mod arguments;
mod plan;
mod signature;
#[cfg(test)]
mod tests;

pub use arguments::{bind, fits, BindError, Bound};
pub use plan::Plan;
pub use signature::{quoted, Argument, Direction, Field, Function, Returns};

use crate::convert::PgType;
use crate::metrics::Metrics;
use crate::postgres::{Connection, PgError};
use crate::tds::dialect::Dialect;
use std::collections::HashMap;

/// The schemas of system procedures: those for every client, and those that TDS 5.0 has in another form.
const SYSTEM: &str = "sys";
const OF_SYBASE: &str = "sybsystemprocs";

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
    attributes: Vec<(String, u32)>,
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

    /// The function a client of `dialect` means by `name`, which may be qualified by schema, `schema.dbo.` or
    /// `schema..`. A system procedure wins over every other, an exact spelling over one that differs in case, a
    /// named schema and then `database` over the other schemas, and among overloads the one whose parameters
    /// take the call.
    pub fn find(
        &self,
        schema: Option<&str>,
        name: &str,
        database: &str,
        dialect: &Dialect,
        fits: impl Fn(&Function) -> bool,
    ) -> Result<std::sync::Arc<Function>, Unresolved> {
        let all = self.functions.get(&name.to_lowercase()).map_or(&[][..], Vec::as_slice);
        let all: Vec<_> =
            all.iter().filter(|function| !dialect.is_tds7() || function.schema != OF_SYBASE).collect();
        let rank = |function: &Function| {
            (
                function.schema == OF_SYBASE,
                function.is_system(),
                schema.is_some_and(|schema| function.schema.eq_ignore_ascii_case(schema)),
                function.schema == database,
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
            composite
                .attributes
                .iter()
                .map(|(name, oid)| (name.clone(), *oid, PgType::from_oid(base_type(*oid, types))))
                .collect()
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
        row.flag(6),
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
            entry.attributes.push((row.text(4).to_owned(), row.number(5)?));
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

    fn number(&self, column: usize) -> Result<u32, PgError> {
        self.text(column)
            .parse()
            .map_err(|_| PgError::Protocol(format!("a catalogue row without a number in column {column}")))
    }
}
