//! Reads the catalogue from PostgreSQL: the versions of all functions, and the functions whose version has
//! changed.

use super::function::{Declared, Function};
use super::parameters::{Attribute, Composite, Direction, Parameters, Parts};
use super::schemas::{self, TEMPORARY};
use super::text::Text;
use super::versions::Versions;
use super::Catalogue;
use crate::convert::PgType;
use crate::metrics::{CallMetrics, Metrics};
use crate::postgres::{Connection, PgError};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use tsql::facts::collations::{self, Collation};
use tsql::facts::type_names;
use tsql::program::Partial;
use tsql::Databases;

/// A domain, an enum or a composite type.
#[derive(Default)]
struct Type {
    /// The base type; 0 for a composite type.
    base: u32,
    relation: u32,
    attributes: Vec<Attribute>,
}

type Types = HashMap<u32, Type>;

/// A declared argument. Functions with equal arguments have the same parameters.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Declaration {
    name: Arc<str>,
    direction: Direction,
    has_default: bool,
    oid: u32,
}

/// The schemas of functions for all sessions, and the schema of a session's temporary ones.
const SHARED: &str =
    "n.nspname not in ('pg_catalog', 'information_schema', 'tsql', 'tsql_global') and n.nspname not like 'pg\\_temp\\_%'";
const OWN: &str = "n.oid = pg_catalog.pg_my_temp_schema()";

/// The extent of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    All,
    /// Entries whose version differs from the previous catalogue, which was read from the same server.
    Changes,
    /// The same, when no row type of an argument has changed.
    Procedures,
}

impl Catalogue {
    /// Reads the functions that clients may call. Unchanged entries of `before` are reused, so that memory
    /// holds only one copy.
    pub async fn read(
        connection: &mut Connection,
        metrics: &Metrics,
        before: Option<&Catalogue>,
        extent: Extent,
    ) -> Result<Catalogue, PgError> {
        let elsewhere = read_stand_ins(connection).await?;
        let partial = read_partial(connection).await?;
        let databases = read_databases(connection).await?;
        let metrics = |name| metrics.of_procedure(name);
        let read = Catalogue::read_in(SHARED, connection, elsewhere, metrics, before, extent).await?;
        Ok(Catalogue { partial, databases: Arc::new(databases), ..read })
    }

    /// Reads the temporary procedures of this connection's session.
    pub async fn read_temporary(
        connection: &mut Connection,
        metrics: &Metrics,
    ) -> Result<Catalogue, PgError> {
        // their names are unlimited
        let of_all = |_| metrics.of_procedure(format!("{TEMPORARY}.#"));
        Catalogue::read_in(OWN, connection, Elsewhere::default(), of_all, None, Extent::All).await
    }

    async fn read_in(
        schemas: &str,
        connection: &mut Connection,
        elsewhere: Elsewhere,
        metrics: impl Fn(String) -> CallMetrics,
        before: Option<&Catalogue>,
        extent: Extent,
    ) -> Result<Catalogue, PgError> {
        let rows = before.filter(|_| extent == Extent::Procedures).map(|before| before.versions.rows.clone());
        let versions = Versions::read(schemas, connection, rows).await?;
        let known: HashMap<u32, &Arc<Function>> = before.map(Catalogue::by_oid).unwrap_or_default();
        let mut kept: HashMap<u32, Arc<Function>> = HashMap::new();
        if let (Some(before), Extent::Changes | Extent::Procedures) = (before, extent) {
            let holds = |function: &&&Arc<Function>| {
                versions.has(function, &before.versions)
                    && function.node.as_ref() == elsewhere.node(&function.schema, &function.name)
            };
            kept =
                known.values().filter(holds).map(|function| (function.oid, Arc::clone(function))).collect();
        }
        let read: Vec<u32> =
            versions.functions.keys().filter(|oid| !kept.contains_key(oid)).copied().collect();
        let known = |oid| known.get(&oid).map(|function| &function.parameters);
        let fresh = read_functions(&read, connection, &elsewhere, metrics, known).await?;
        let functions = mark_callers(kept.into_values().collect(), fresh);
        Ok(Catalogue { versions, ..Catalogue::of(functions, elsewhere.tables) })
    }
}

/// Reads these functions. Parameters equal to those in `known` for the function's oid are shared.
async fn read_functions<'a>(
    oids: &[u32],
    connection: &mut Connection,
    elsewhere: &Elsewhere,
    metrics: impl Fn(String) -> CallMetrics,
    known: impl Fn(u32) -> Option<&'a Arc<Parameters>>,
) -> Result<Vec<Function>, PgError> {
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    let oids: Vec<_> = oids.iter().map(u32::to_string).collect();
    let oids = format!("'{{{}}}'::pg_catalog.oid[]", oids.join(","));
    let of_functions = |sql: &str| sql.replace(":functions", &oids);
    let types = read_types(connection, &of_functions(include_str!("types.sql"))).await?;
    let mut arguments: HashMap<u32, Vec<Declaration>> = HashMap::new();
    let mut names = Names::default();
    connection
        .each_row(&of_functions(include_str!("arguments.sql")), |row| {
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
    let mut shared: HashMap<Vec<Declaration>, Arc<Parameters>> = HashMap::new();
    let mut functions = Vec::new();
    connection
        .each_row(&of_functions(include_str!("functions.sql")), |row| {
            let declared = Declared {
                oid: row.number(0)?,
                schema: row.text(1),
                name: row.text(2),
                is_procedure: row.text(3) == "p",
                is_set: row.is_true(4),
                return_type: base_type(row.number(5)?, &types),
                joins_group: row.is_true(6),
                only_reads: row.is_true(8),
                node: elsewhere.node(row.text(1), row.text(2)).cloned(),
                value_type: type_names::declared(row.text(11)),
                takes: row.text(12).split(';').map_while(type_names::declared).collect(),
            };
            let mut arguments = arguments.remove(&declared.oid).unwrap_or_default();
            let required = row.number(7)? as usize;
            let inputs = arguments.iter_mut().filter(|argument| argument.direction.is_input());
            inputs.skip(required).for_each(|argument| argument.has_default = true);
            let parameters = match shared.get(&arguments) {
                Some(parameters) => parameters.clone(),
                None => {
                    let now = parameters(&arguments, &types);
                    let parameters = match known(declared.oid) {
                        Some(before) if **before == now => before.clone(),
                        _ => Arc::new(now),
                    };
                    shared.insert(arguments, parameters.clone());
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
    Ok(functions)
}

/// All functions in the order of their oids. The gateway also runs procedures that call one it runs, or a system
/// procedure.
fn mark_callers(kept: Vec<Arc<Function>>, fresh: Vec<Function>) -> Vec<Arc<Function>> {
    let mut all: Vec<Arc<Function>> = kept.into_iter().chain(fresh.into_iter().map(Arc::new)).collect();
    let mut callers: HashMap<&str, Vec<&Function>> = HashMap::new();
    let mut run_here: HashSet<u32> = HashSet::new();
    let mut left: Vec<&Function> = Vec::new();
    for function in &all {
        if function.is_system() {
            left.push(function);
        }
        let Some(text) = &function.text else { continue };
        if text.is_marked {
            run_here.insert(function.oid);
            left.push(function);
        }
        for name in text.called() {
            callers.entry(name).or_default().push(function);
        }
    }
    while let Some(called) = left.pop() {
        for caller in callers.get(&*called.name.to_lowercase()).into_iter().flatten() {
            // a system procedure is found with any database as qualifier
            let calls = |text: &Text| called.is_system() || text.calls(&called.schema, &called.name);
            if caller.text.as_ref().is_some_and(calls) && run_here.insert(caller.oid) {
                left.push(caller);
            }
        }
    }
    for function in &mut all {
        let runs_here = run_here.contains(&function.oid);
        if function.runs_here().is_some() != runs_here {
            *function = Arc::new(function.run_by_gateway(runs_here));
        }
    }
    all.sort_unstable_by_key(|function| function.oid);
    all
}

/// The nodes of procedures that represent those on a node, and of the tables on nodes.
#[derive(Default)]
struct Elsewhere {
    procedures: HashMap<String, Arc<str>>,
    tables: HashMap<String, Arc<str>>,
}

impl Elsewhere {
    /// The node of the procedure; None: this server.
    fn node(&self, schema: &str, name: &str) -> Option<&Arc<str>> {
        self.procedures.get(name).filter(|_| schema == schemas::OWN)
    }
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

/// Reads which tables lack rows: those of archived weeks.
async fn read_partial(connection: &mut Connection) -> Result<BTreeMap<String, Partial>, PgError> {
    let mut partial = BTreeMap::new();
    let there = "select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace \
                 where n.nspname = 'ringlog' and p.proname = 'partial_logs' \
                 and pg_catalog.has_schema_privilege(n.oid, 'usage')";
    if !connection.query_text(there).await?.is_empty() {
        let all = "select relation, time_column, demand, archived from ringlog.partial_logs()";
        connection
            .each_row(all, |row| {
                let (time, demand) = (row.text(1).to_owned(), row.text(2).to_owned());
                partial.insert(row.text(0).to_owned(), Partial { time, demand, is_now: row.is_true(3) });
                Ok(())
            })
            .await?;
    }
    Ok(partial)
}

/// Reads which schemas are in databases, and which have a default collation without case (sql/ddl/databases.sql).
async fn read_databases(connection: &mut Connection) -> Result<Databases, PgError> {
    let mut databases = Databases { are_all: true, ..Databases::default() };
    let declared =
        "select n.nspname, pg_catalog.substring(declared.words, '^T-SQL collation (\\w+)'), inside.database \
                    from pg_catalog.pg_namespace n \
                    cross join lateral pg_catalog.obj_description(n.oid, 'pg_namespace') as declared (words) \
                    left join sys.every_inner_schema inside on inside.oid = n.oid \
                    where declared.words ~ '^T-SQL (collation|schema of) '";
    connection
        .each_row(declared, |row| {
            let schema = row.text(0);
            if collations::named(row.text(1)) == Some(Collation::Insensitive) {
                databases.folding.insert(schema.to_owned());
            }
            if !row.text(2).is_empty() {
                databases.inner.insert(schema.to_owned(), row.text(2).to_owned());
            }
            Ok(())
        })
        .await?;
    Ok(databases)
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
    // PostgreSQL does not allow cyclic domains
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
