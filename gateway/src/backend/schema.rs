//! The declarations of the tables and views that texts of a session have named: read from PostgreSQL once for each, and
//! again after a definition.

use super::connection::Backend;
use super::open::Open;
use crate::convert::{declared, SqlType};
use crate::postgres::PgError;
use crate::program::Snapshot;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tsql::facts::type_names;
use tsql::facts::types::{self, Case, Type};
use tsql::quoting::{array, literal};
use tsql::resolve::names::is_global;
use tsql::schema::{Column, Object, Signature};

impl Backend {
    /// The declarations of tables that the session has read.
    pub fn snapshot(&mut self) -> Result<Arc<Snapshot>, PgError> {
        self.follow_definitions()?;
        let open = self.open.as_ref().filter(|open| open.tables.is_of(&self.database));
        Ok(open.map(|open| open.tables.clone()).unwrap_or_default())
    }

    /// All declarations known to the session, with those of these names; global temporary tables are read each time.
    pub async fn declared(&mut self, names: impl Iterator<Item = &String>) -> Result<Arc<Snapshot>, PgError> {
        let snapshot = self.snapshot()?;
        let missing: BTreeSet<String> =
            names.filter(|name| !snapshot.has(name) || is_global(name)).cloned().collect();
        match missing.is_empty() {
            true => Ok(snapshot),
            false => self.read_declarations(&missing).await,
        }
    }

    /// Reads the declarations of tables by their names in SQL. Returns all declarations known to the session.
    pub async fn read_declarations(&mut self, names: &BTreeSet<String>) -> Result<Arc<Snapshot>, PgError> {
        match self.statement(async |open| open.ask_for(names.iter()).await).await {
            Err(error) if error.is_fatal() => Err(error),
            read => {
                let open = self.open().await?;
                if read.is_err() {
                    // one is in a schema that this login may not use: the statement that names it fails with the error
                    open.note_tables(names.iter(), HashMap::new());
                }
                Ok(open.tables.clone())
            }
        }
    }

    /// Discards the declarations: a table may have changed.
    pub fn forget_tables(&mut self) {
        if let Some(open) = &mut self.open {
            open.forget_tables();
        }
    }
}

impl Open {
    pub(super) fn forget_tables(&mut self) {
        self.tables = Arc::default();
    }

    /// Reads the columns of tables and views: type and modifier as PostgreSQL sends them, a type of schema tsql that is
    /// not a domain, and the declaration by the column's comment (sql/ddl/declarations.sql) or a domain of schema tsql.
    /// The number of a temporary table is 0. Rows of a view that PostgreSQL cannot update cannot be locked. Functions by
    /// their value or the columns of their rows, with the number of arguments without a default and the types of all.
    async fn ask_for(&mut self, names: impl Iterator<Item = &String> + Clone) -> Result<(), PgError> {
        let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for name in names.clone() {
            kinds.entry(query_of(name)).or_default().push(literal(name));
        }
        let queries = kinds.into_iter().map(|(query, names)| query.replace(":names", &array(names, "text")));
        let rows = self.connection.query_text(&queries.collect::<Vec<_>>().join("union all\n")).await?;
        let mut found: HashMap<String, (u32, Object)> = HashMap::new();
        for row in rows {
            let [Some(key), Some(number), Some(column), Some(oid), Some(typmod), own, declared, Some(is_derived), Some(catalogued), is_identity, is_computed, fires] =
                <[Option<String>; 12]>::try_from(row).unwrap_or_default()
            else {
                continue;
            };
            let [is_identity, is_computed] = [is_identity, is_computed].map(|is| is.as_deref() == Some("t"));
            let (Ok(number), Ok(oid), Ok(typmod)) = (number.parse(), oid.parse(), typmod.parse()) else {
                continue;
            };
            let of = declared.as_deref().and_then(declared::of_comment);
            let of = type_of(of, own.as_deref(), oid, typmod);
            let new = Column {
                name: column,
                of,
                sent: (oid, typmod),
                is_identity,
                is_computed,
                ..Column::default()
            };
            let (last, object) = found.entry(key).or_insert_with_key(|key| (number, Object::empty(key)));
            match object {
                Object::Table(table) => {
                    let table = Arc::make_mut(table);
                    table.has_own_rows = is_derived == "f";
                    table.fires = fires.unwrap_or_default();
                    table.add(Column { catalogued: catalogued.into(), ..new });
                }
                Object::Type(of) => *of = new.name.into(),
                Object::Function(function) => {
                    let function = Arc::make_mut(function);
                    if function.signatures.is_empty() || *last != number {
                        *last = number;
                        let gives_rows = fires.as_deref().map(|gives| gives == "rows");
                        function.signatures.push(Signature { gives_rows, ..signature(&catalogued) });
                    }
                    let Some(signature) = function.signatures.last_mut() else { continue };
                    let of = declared.as_deref().and_then(type_names::declared).unwrap_or(new.of);
                    match new.name.is_empty() {
                        true => signature.returns = of,
                        false => signature.rows.add(Column { of, ..new }),
                    }
                }
            }
        }
        self.note_tables(names, found);
        Ok(())
    }

    /// Notes the objects with these keys; a key that is not in `found` has none.
    fn note_tables<'n>(
        &mut self,
        names: impl Iterator<Item = &'n String>,
        mut found: HashMap<String, (u32, Object)>,
    ) {
        let snapshot = Arc::make_mut(&mut self.tables);
        snapshot.begin(self.schema.as_deref().unwrap_or_default());
        for name in names {
            let object = found.remove(name).map(|(number, object)| match object {
                Object::Table(table) if number > 0 => {
                    let mut shared = self.shared.lock();
                    let known = shared.entry(number).or_insert_with(|| table.clone());
                    if *known != table {
                        *known = table;
                    }
                    Object::Table(known.clone())
                }
                object => object,
            });
            snapshot.note(name, object);
        }
    }
}

/// The query of the declarations of objects of this key's kind. PostgreSQL plans it longer than it runs, so kinds that
/// nobody has named are left out.
fn query_of(key: &str) -> &'static str {
    match Object::empty(key) {
        Object::Table(_) => include_str!("schema/tables.sql"),
        Object::Function(_) => include_str!("schema/functions.sql"),
        Object::Type(_) => include_str!("schema/types.sql"),
    }
}

/// The number of arguments without a default, and the types of all: numbers of PostgreSQL and types of schema tsql.
fn signature(takes: &str) -> Signature {
    let mut parts = takes.split(' ');
    let least = parts.next().and_then(|number| number.parse().ok()).unwrap_or(0);
    let of = |part: &str| match part.strip_prefix("tsql.") {
        Some(own) => match SqlType::of_own(own) {
            Some(of) => types::of_oid(of.oid, of.typmod),
            None => type_names::declared(own).unwrap_or(types::UNKNOWN),
        },
        None => part.parse().map_or(types::UNKNOWN, |oid| types::of_oid(oid, -1)),
    };
    Signature { least, takes: parts.map(of).collect(), ..Signature::default() }
}

/// The type of a column. `own`: a type of schema tsql.
fn type_of(declared: Option<Type>, own: Option<&str>, oid: u32, typmod: i32) -> Type {
    let case = if matches!(own, Some("ci_varchar" | "ci_char")) { Case::Ignored } else { Case::OfDatabase };
    let oid = own.and_then(SqlType::of_own).map_or(oid, |of| of.oid);
    let found = match declared {
        // a nullable char in a table of ASE
        Some(of) if of.name == types::CHAR.name && oid == types::VARCHAR.oid => types::varchar(of.length),
        Some(of) => declared::of_column(of, typmod).unwrap_or(types::of_postgres(oid)),
        None => types::of_oid(oid, typmod),
    };
    found.with_case(case)
}
