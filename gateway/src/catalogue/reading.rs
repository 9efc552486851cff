//! Reads the catalogue from PostgreSQL, by three queries.

use super::function::{Declared, Function};
use super::parameters::{Attribute, Composite, Direction, Parameters, Parts};
use super::text::Text;
use super::{Catalogue, TEMPORARY};
use crate::convert::PgType;
use crate::metrics::{CallMetrics, Metrics};
use crate::postgres::commit::Owner;
use crate::postgres::message::TextRow;
use crate::postgres::{Connection, PgError};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A domain, an enum or a composite type.
#[derive(Default)]
struct Type {
    /// The base type; 0 for a composite type.
    base: u32,
    relation: u32,
    attributes: Vec<Attribute>,
}

type Types = HashMap<u32, Type>;

/// An argument as it is declared. Functions of equal arguments have the same parameters.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Declaration {
    name: Arc<str>,
    direction: Direction,
    has_default: bool,
    oid: u32,
}

/// The schemas of functions that all sessions have, and the one of those that are a session's own.
const SHARED: &str =
    "n.nspname not in ('pg_catalog', 'information_schema', 'tsql', 'tsql_global') and n.nspname not like 'pg\\_temp\\_%'";
const OWN: &str = "n.oid = pg_catalog.pg_my_temp_schema()";

impl Catalogue {
    /// Reads all functions that clients may call. What is as it was `before` is kept, so that no second copy of it
    /// comes to the memory.
    pub async fn read(
        connection: &mut Connection,
        metrics: &Metrics,
        before: Option<&Catalogue>,
    ) -> Result<Catalogue, PgError> {
        let elsewhere = read_stand_ins(connection).await?;
        let metrics = |name| metrics.of_procedure(name);
        Catalogue::read_in(SHARED, connection, elsewhere, metrics, before).await
    }

    /// Reads those that are the own ones of the session whose connection this is.
    pub async fn read_temporary(
        connection: &mut Connection,
        metrics: &Metrics,
    ) -> Result<Catalogue, PgError> {
        // their names are without end
        let of_all = |_| metrics.of_procedure(format!("{TEMPORARY}.#"));
        Catalogue::read_in(OWN, connection, Elsewhere::default(), of_all, None).await
    }

    async fn read_in(
        schemas: &str,
        connection: &mut Connection,
        elsewhere: Elsewhere,
        metrics: impl Fn(String) -> CallMetrics,
        before: Option<&Catalogue>,
    ) -> Result<Catalogue, PgError> {
        let in_schemas = |sql: &str| sql.replace(":schemas", schemas);
        let types = read_types(connection, &in_schemas(include_str!("types.sql"))).await?;
        let mut arguments: HashMap<u32, Vec<Declaration>> = HashMap::new();
        let mut names = Names::default();
        connection
            .each_row(&in_schemas(include_str!("arguments.sql")), |row| {
                let direction = match row.text(1) {
                    "i" => Direction::In,
                    "b" => Direction::InOut,
                    _ => Direction::Out,
                };
                let name = names.shared(row.text(2));
                let declaration = Declaration { name, direction, has_default: false, oid: row.number(3)? };
                arguments.entry(row.number(0)?).or_default().push(declaration);
                Ok(())
            })
            .await?;
        let mut known: HashMap<Vec<Declaration>, Arc<Parameters>> = HashMap::new();
        let before: HashMap<u32, &Arc<Parameters>> = before.map(Catalogue::parameters).unwrap_or_default();
        let mut functions = Vec::new();
        connection
            .each_row(&in_schemas(include_str!("functions.sql")), |row| {
                let declared = Declared {
                    oid: row.number(0)?,
                    schema: row.text(1),
                    name: row.text(2),
                    is_procedure: row.text(3) == "p",
                    is_set: row.is_true(4),
                    return_type: base_type(row.number(5)?, &types),
                    joins_group: owner(row, 6)?,
                    only_reads: row.is_true(8),
                    node: match row.text(1) {
                        super::OWN => elsewhere.procedures.get(row.text(2)).cloned(),
                        _ => None,
                    },
                };
                let mut arguments = arguments.remove(&declared.oid).unwrap_or_default();
                let required = row.number(7)? as usize;
                let inputs = arguments.iter_mut().filter(|argument| argument.direction.is_input());
                inputs.skip(required).for_each(|argument| argument.has_default = true);
                let parameters = match known.get(&arguments) {
                    Some(parameters) => parameters.clone(),
                    None => {
                        let now = parameters(&arguments, &types);
                        let parameters = match before.get(&declared.oid) {
                            Some(before) if ***before == now => Arc::clone(before),
                            _ => Arc::new(now),
                        };
                        known.insert(arguments, parameters.clone());
                        parameters
                    }
                };
                let metrics = metrics(format!("{}.{}", declared.schema, declared.name));
                let text = Text::read(row.text(9), row.text(10));
                let mut function = Function::new(declared, parameters, metrics);
                function.text = text;
                functions.push(function);
                Ok(())
            })
            .await?;
        mark_callers(&mut functions);
        Ok(Catalogue::of(functions.into_iter().map(Arc::new), elsewhere.tables))
    }
}

/// Adds the procedures that call those run by the gateway: it runs them too.
fn mark_callers(functions: &mut [Function]) {
    loop {
        let callers: Vec<usize> = (0..functions.len())
            .filter(|place| {
                let text = functions.get(*place).and_then(|function| function.text.as_ref());
                text.is_some_and(|text| {
                    let mut here = functions.iter().filter(|function| function.runs_here().is_some());
                    !text.runs_here
                        && text.calls_any()
                        && here.any(|called| text.calls(&called.schema, &called.name))
                })
            })
            .collect();
        if callers.is_empty() {
            return;
        }
        for place in callers {
            if let Some(text) = functions.get_mut(place).and_then(|function| function.text.as_mut()) {
                text.runs_here = true;
            }
        }
    }
}

/// The nodes of procedures that stand in for those there, and of the tables on nodes.
#[derive(Default)]
struct Elsewhere {
    procedures: HashMap<String, Arc<str>>,
    tables: HashMap<String, Arc<str>>,
}

async fn read_stand_ins(connection: &mut Connection) -> Result<Elsewhere, PgError> {
    let mut elsewhere = Elsewhere::default();
    let there = connection
        .query_text(
            "select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
             where n.nspname = 'ringlog' and c.relname = 'stand_in' \
             and pg_catalog.has_table_privilege(c.oid, 'select')",
        )
        .await?;
    if !there.is_empty() {
        let mut names = Names::default();
        connection
            .each_row("select name, node, table_name from ringlog.stand_in", |row| {
                let node = names.shared(row.text(1));
                elsewhere.tables.insert(row.text(2).to_owned(), node.clone());
                elsewhere.procedures.insert(row.text(0).to_owned(), node);
                Ok(())
            })
            .await?;
    }
    Ok(elsewhere)
}

fn parameters(arguments: &[Declaration], types: &Types) -> Parameters {
    let mut parts = Parts::default();
    for argument in arguments {
        let composite = types.get(&argument.oid).filter(|found| !found.attributes.is_empty());
        let pg_type = PgType::from_oid(base_type(argument.oid, types));
        let composite =
            composite.map(|found| Composite { relation: found.relation, attributes: &found.attributes });
        let Declaration { name, direction, has_default, oid } = argument;
        parts.argument(name, *direction, *has_default, *oid, pg_type, composite);
    }
    parts.parameters()
}

/// The base type of a domain, text for an enum; any other type itself.
fn base_type(oid: u32, types: &Types) -> u32 {
    let mut oid = oid;
    // PostgreSQL allows no circle of domains
    while let Some(found) = types.get(&oid).filter(|found| found.base != 0) {
        oid = found.base;
    }
    oid
}

async fn read_types(connection: &mut Connection, sql: &str) -> Result<Types, PgError> {
    let mut types = Types::new();
    let mut names = Names::default();
    connection
        .each_row(sql, |row| {
            let found = types.entry(row.number(0)?).or_default();
            found.base = row.number(1)?;
            if found.base == 0 {
                let oid = row.number(3)?;
                let typmod = row.text(4).parse().unwrap_or(-1);
                let pg_type = PgType::from_oid(oid);
                found.relation = row.number(6)?;
                found.attributes.push(Attribute { name: names.shared(row.text(2)), oid, pg_type, typmod });
            }
            Ok(())
        })
        .await?;
    let domains: HashSet<u32> = types.iter().filter(|(_, of)| of.base != 0).map(|(oid, _)| *oid).collect();
    let mut composites: Vec<(u32, Vec<Attribute>)> = Vec::new();
    for (oid, found) in &mut types {
        if found.attributes.iter().any(|attribute| domains.contains(&attribute.oid)) {
            composites.push((*oid, std::mem::take(&mut found.attributes)));
        }
    }
    for (oid, mut attributes) in composites {
        for attribute in &mut attributes {
            attribute.pg_type = PgType::from_oid(base_type(attribute.oid, &types));
        }
        types.entry(oid).or_default().attributes = attributes;
    }
    Ok(types)
}

/// Names, each kept once.
#[derive(Default)]
struct Names(HashSet<Arc<str>>);

impl Names {
    fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.0.insert(name.clone());
        name
    }
}

/// Whose a function is that joins group commit; None: it does not.
fn owner(row: &TextRow<'_>, column: usize) -> Result<Option<Owner>, PgError> {
    if row.text(column).is_empty() {
        return Ok(None);
    }
    Ok(Some(match row.number(column)? {
        0 => Owner::Installer,
        owner => Owner::Site(owner),
    }))
}
