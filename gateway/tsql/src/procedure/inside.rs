//! The tables as the body of a definition names them: temporary ones that it creates itself, and those of its search
//! path.
//!
//! The body demands, before its first statement, that the columns whose types it was written with are still declared so.
//! PostgreSQL evaluates the demand when it plans it, and plans it again when one of the tables has changed.

use super::interpreted;
use crate::plpgsql::{Block, Body, Step};
use crate::postgres::{call, Scalar};
use crate::program::Settings;
use crate::resolve::names::{own_name, quoted};
use crate::schema::{function_key, function_name, is_table, Object, Schema, Table, CHANGED, WHOLE};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// The columns whose types decided something, by their tables' names in SQL.
pub type Noted = BTreeMap<String, BTreeSet<String>>;

#[derive(Debug)]
pub struct Inside {
    schema: Arc<dyn Schema>,
    /// The schemas in which it looks for names; none for those of the session.
    path: Vec<String>,
    /// The table of a trigger, in SQL.
    target: Option<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The temporary tables that it makes; None: in several ways.
    made: HashMap<String, Option<Arc<Table>>>,
    /// All names that the schema was asked for.
    asked: BTreeSet<String>,
    /// The tables, by their names in SQL, whose columns are not known, each time that one was asked for.
    missing: Vec<String>,
}

impl Inside {
    pub fn new(schema: Arc<dyn Schema>, path: Vec<String>, target: Option<String>) -> Inside {
        Inside { schema, path, target, state: Mutex::default() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The body makes a temporary table; None: its columns are not known.
    pub fn make(&self, name: String, table: Option<Table>) {
        let table = table.map(Arc::new);
        self.with(|state| {
            state.made.entry(name).and_modify(|made| *made = None).or_insert(table);
        });
    }

    /// The names that the schema was asked for.
    pub fn asked(&self) -> Vec<String> {
        self.with(|state| state.asked.iter().cloned().collect())
    }

    /// How often a table was asked for whose columns are not known.
    pub fn misses(&self) -> usize {
        self.with(|state| state.missing.len())
    }

    /// The first of these tables after so many.
    pub fn missed_after(&self, misses: usize) -> Option<String> {
        self.with(|state| state.missing.get(misses).cloned())
    }

    fn makes(&self, name: &str) -> bool {
        self.with(|state| state.made.contains_key(name))
    }

    fn ask(&self, key: String) -> Option<(String, Object)> {
        let found = self.schema.object(&key);
        self.with(|state| state.asked.insert(key.clone()));
        found.map(|object| (key, object))
    }

    /// An object of the database, with its key, which has the schema in it.
    fn stored(&self, key: &str) -> Option<(String, Object)> {
        let name = function_name(key).unwrap_or(key);
        match &self.target {
            Some(target) if name == CHANGED => self.ask(target.clone()),
            _ if name.starts_with("pg_temp.") => None,
            _ if self.path.is_empty() || name.contains("\".\"") || !name.starts_with('"') => {
                self.ask(key.to_owned())
            }
            _ => {
                let mut found = None;
                // all at once: the gateway looks for them in one query
                for schema in &self.path {
                    let whole = format!("{}.{name}", quoted(schema));
                    let here = self.ask(function_name(key).map_or(whole.clone(), |_| function_key(&whole)));
                    found = found.or(here);
                }
                // PostgreSQL's own functions
                found.or_else(|| function_name(key).and_then(|_| self.ask(key.to_owned())))
            }
        }
    }

    /// The tables of the database that are missing, with the schemas in which they may be made.
    pub fn absent(&self) -> Vec<String> {
        let missing: BTreeSet<String> = self.with(|state| state.missing.iter().cloned().collect());
        let mut absent = Vec::new();
        for name in missing.into_iter().filter(|name| !name.starts_with("pg_temp.") && !self.makes(name)) {
            match name.contains("\".\"") {
                true => absent.push(name),
                false => absent.extend(self.path.iter().map(|schema| format!("{}.{name}", quoted(schema)))),
            }
        }
        absent
    }

    /// The declarations of the columns, as JSON, by tables.
    pub fn declared(&self, noted: &Noted) -> BTreeMap<String, String> {
        let mut declared = BTreeMap::new();
        for (name, columns) in noted {
            if columns.is_empty() {
                continue;
            }
            let Some((name, Object::Table(table))) = self.stored(name) else { continue };
            let one = |column: &String| {
                let of = match table.column(column) {
                    _ if column == WHOLE => json(&table.columns().len().to_string()),
                    Some(of) => json(&of.catalogued),
                    None => String::from("null"),
                };
                format!("{}: {of}", json(column))
            };
            let columns: Vec<String> = columns.iter().map(one).collect();
            declared.insert(name, format!("{{{}}}", columns.join(", ")));
        }
        declared
    }
}

impl Schema for Inside {
    fn object(&self, key: &str) -> Option<Object> {
        let found = match self.with(|state| state.made.get(key).cloned()) {
            Some(made) => made.map(Object::Table),
            None => self.stored(key).map(|(_, object)| object),
        };
        if found.is_none() && is_table(key) && self.schema.is_complete() {
            self.with(|state| state.missing.push(key.to_owned()));
        }
        found
    }
}

/// The steps that demand the declarations, and that missing tables are still missing.
pub fn demand(declared: &BTreeMap<String, String>, absent: &[String]) -> Body {
    let mut steps = Body::new();
    if !declared.is_empty() {
        let body = vec![Step::Perform(Scalar::Row(demands(declared).collect()))];
        // the statement that names a missing table says so
        let handler = Some(("undefined_table or invalid_schema_name", Body::new()));
        steps.push(Step::Block(Block { label: None, body, handler }));
    }
    if let [first, ..] = absent {
        let exists = |table: &String| call("to_regclass", [Scalar::text(table)]).is_null(false);
        let exist = Scalar::Or(absent.iter().map(exists).collect());
        steps.push(Step::if_(exist, [outdated(first)]));
    }
    steps
}

/// The same as a condition, which is true.
pub fn condition(declared: &BTreeMap<String, String>) -> Scalar {
    Scalar::And(demands(declared).map(|demand| demand.is_null(true).is_null(false)).collect())
}

fn demands(declared: &BTreeMap<String, String>) -> impl Iterator<Item = Scalar> + '_ {
    declared.iter().map(|(table, columns)| {
        call(
            "tsql.demand_declared",
            [Scalar::text(table).cast("regclass"), Scalar::text(columns).cast("jsonb")],
        )
    })
}

/// Fails because the definition of a table has changed.
pub fn outdated(table: &str) -> Step {
    let text = format!(
        "The definition of object '{}' has changed since it was compiled: ALTER the procedure, function or trigger \
         that uses it.",
        own_name(table)
    );
    Step::Perform(call("tsql.fail", [Scalar::number(2801), Scalar::Text(text)]))
}

/// The note with the tables that a body was written with.
pub fn bound(settings: &Settings, declared: &BTreeMap<String, String>, absent: &[String]) -> String {
    format!("bound as {}: {}", interpreted::options(settings), listed(declared, absent))
}

/// The declarations, and the tables that were missing, as one JSON object.
fn listed(declared: &BTreeMap<String, String>, absent: &[String]) -> String {
    let one = |(table, columns): (&String, &String)| format!("{}: {columns}", json(table));
    // once the table exists the number of its columns is another
    let none = |table: &String| format!("{}: {{\"{WHOLE}\": null}}", json(table));
    let listed: Vec<_> = declared.iter().map(one).chain(absent.iter().map(none)).collect();
    format!("{{{}}}", listed.join(", "))
}

/// A text in JSON.
pub fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if u32::from(control) < 32 => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::types::{Type, DATETIME, INT};
    use crate::program::Settings;
    use crate::reading::Reading;
    use crate::schema::Column;

    /// One table of one column.
    #[derive(Debug)]
    struct One(&'static str, Type);

    impl Schema for One {
        fn object(&self, key: &str) -> Option<Object> {
            let mut table = Table::default();
            let catalogued = format!("\"{}\"", self.1.name).into();
            table.add(Column { name: "dt".into(), of: self.1, catalogued, ..Column::default() });
            (key == self.0).then(|| Object::Table(Arc::new(table)))
        }
    }

    fn made(body: &str, table: &'static str, of: Type) -> String {
        let schema: Arc<dyn Schema> = Arc::new(One(table, of));
        let settings = Settings::default();
        let text = format!("create procedure p as {body}");
        Reading::new(&text, &settings).unwrap().compile(&settings, false, &schema).unwrap().sql().concat()
    }

    const UPDATE: &str = "update t set dt = null where isnull(dt, 0) < 5";

    #[test]
    fn types_are_those_of_the_first_table_of_its_path() {
        for table in ["\"public\".\"t\"", "\"log\".\"t\""] {
            let sql = made(UPDATE, table, DATETIME);
            assert!(sql.contains("coalesce(\"dt\", tsql.to_datetime(0))"), "{sql}");
            for part in ["tsql.demand_declared(", "-- bound as tds7: ", table] {
                assert!(sql.contains(part), "{part}: {sql}");
            }
        }
        let sql = made(UPDATE, "\"other\".\"t\"", DATETIME);
        // a missing table's statement fails until the table has been made
        for part in ["from \"t\" limit 0", "tsql.fail(2801, ", "{\"\": null}"] {
            assert!(sql.contains(part), "{part}: {sql}");
        }
        assert!(!sql.contains("demand_declared"), "{sql}");
    }

    #[test]
    fn a_table_that_it_makes_is_its_own() {
        let own = "create table #t (dt datetime null) update #t set dt = null where isnull(dt, 0) < 5";
        for (body, is_known) in [
            (own.to_owned(), true),
            (format!("if 1 = 2 create table #t (dt int) {own}"), false),
            (own.replace("create table #t (dt datetime null)", "select 1 as dt into #t"), false),
            ("create table t (dt datetime null) ".to_owned() + UPDATE, false),
        ] {
            let sql = made(&body, "\"public\".\"t\"", INT);
            assert_eq!(sql.contains("coalesce(\"dt\", tsql.to_datetime(0))"), is_known, "{sql}");
            assert!(!sql.contains("demand_declared"), "{sql}");
        }
    }
}
