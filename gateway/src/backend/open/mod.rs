//! An open connection of a session to PostgreSQL, and its prepared statements.

mod bound;
pub(super) mod declarations;
pub(super) mod described;
mod pointers;
pub(super) mod sent;

use super::parameters::{self, Typing};
use crate::catalogue::Catalogue;
use crate::client::{Arithabort, Calendar, Isolation, Locking, Settings};
use crate::convert::{SqlType, Zone};
use crate::limits::shares::Permit;
use crate::postgres::commit::Statement;
use crate::postgres::message::PgColumn;
use crate::postgres::{Connection, PgError};
use crate::program::{Shared, Snapshot, Sql};
use bound::set_types;
use declarations::{nullable, Declarations, FIRST_OF_USERS};
use described::{Described, Prepared};
use postgres_protocol::message::frontend;
use sent::SentAhead;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tsql::quoting::{literal, quoted};
use tsql::Databases;

/// Statements kept prepared on one connection.
const MOST_PREPARED: usize = 500;
/// OID of the pseudo-type record, the result of max() of a composite type.
const RECORD: u32 = 2249;
/// Bytes of the longest query kept prepared.
const LONGEST_KEPT: usize = 16 * 1024;

/// The key of a prepared query.
#[derive(Debug, PartialEq, Eq, Hash)]
struct QueryKey {
    sql: String,
    parameters: Vec<u32>,
    /// A digest of the declarations that it depends on: different T-SQL may have the same SQL in PostgreSQL.
    digest: Option<u64>,
    names_temporary: bool,
}

impl QueryKey {
    fn new(sql: &Sql, types: &[SqlType], typing: Typing) -> QueryKey {
        let digest = sql.bound.as_ref().map(|bound| bound.digest);
        let names_temporary = sql.facts.names_temporary();
        let (sql, parameters) = parameters::statement(sql, types, typing);
        QueryKey { sql, parameters, digest, names_temporary }
    }
}

pub struct Open {
    pub connection: Connection,
    /// The connection's permit, one of those that all sessions share.
    pub(super) permit: Option<Arc<Permit>>,
    pub declarations: Declarations,
    /// The declarations of tables that the session has read.
    pub(super) tables: Arc<Snapshot>,
    /// The declarations known to all sessions.
    pub(super) shared: Arc<Shared>,
    /// Prepared statements: of calls by their statement's id, of queries by their text and types.
    calls: HashMap<u64, Arc<Described>>,
    queries: HashMap<QueryKey, Arc<Described>>,
    /// Hashes of queries without parameters that have run once.
    once: HashSet<u64>,
    zone: (String, Zone),
    /// The first schema of the search path; None if a rollback may have changed it.
    pub(super) schema: Option<String>,
    /// Lock settings that PostgreSQL has; None likewise.
    locking: Option<Locking>,
    /// Date settings that PostgreSQL has; None likewise.
    calendar: Option<Calendar>,
    /// Settings of arithmetic errors that PostgreSQL has; None likewise.
    arithabort: Option<Arithabort>,
    /// Whether a setting of locks, dates or errors was ever sent.
    is_set: bool,
    /// The session's temporary procedures; None if they must be read.
    pub(super) temporary: Option<Arc<Catalogue>>,
    pub(super) ahead: SentAhead,
    /// Schema version of the prepared statements.
    pub(super) definitions: u64,
    /// The transaction contains definitions, which a rollback would undo.
    pub(super) has_defined: bool,
}

impl Open {
    pub(super) fn new(connection: Connection, definitions: u64, shared: &Arc<Shared>) -> Open {
        Open {
            connection,
            permit: None,
            declarations: Declarations::default(),
            tables: Arc::default(),
            shared: shared.clone(),
            calls: HashMap::new(),
            queries: HashMap::new(),
            once: HashSet::new(),
            zone: (String::new(), Zone::UTC),
            schema: None,
            locking: Some(Locking::default()),
            calendar: Some(Calendar::default()),
            arithabort: Some(Arithabort::default()),
            is_set: false,
            temporary: None,
            ahead: SentAhead::default(),
            definitions,
            has_defined: false,
        }
    }

    /// Ends a statement: releases its savepoint or rolls back to it.
    pub(super) async fn settle(&mut self, completed: bool) -> Result<(), PgError> {
        let sql = match completed {
            true => "release savepoint ringlog_statement",
            false => "rollback to savepoint ringlog_statement; release savepoint ringlog_statement",
        };
        self.connection.query_text(sql).await.map(|_| ())
    }

    /// Whether the connection has state that a new connection would not have.
    pub(super) async fn holds_state(&mut self) -> Result<bool, PgError> {
        let schema = literal(self.schema.as_deref().unwrap_or(""));
        let sql = include_str!("state.sql").replace(":'schema'", &schema);
        let rows = self.connection.query_text(&sql).await?;
        Ok(rows.into_iter().flatten().next().flatten().as_deref() != Some("f"))
    }

    pub(super) async fn reset(&mut self, uses_globals: bool) -> Result<(), PgError> {
        self.connection.query_text("rollback").await?;
        if uses_globals {
            self.end_globals().await?;
        }
        self.connection.query_text("discard all").await?;
        self.calls.clear();
        self.queries.clear();
        self.forget_tables();
        self.temporary = None;
        self.schema = None;
        self.locking = Some(Locking::default());
        self.calendar = Some(Calendar::default());
        self.arithabort = Some(Arithabort::default());
        Ok(())
    }

    /// Drops the global temporary tables that the session has created.
    pub(super) async fn end_globals(&mut self) -> Result<(), PgError> {
        self.ahead.forget(&mut self.connection).await?;
        self.connection.query_text("rollback").await?;
        self.connection.query_text("select tsql.end_own_globals()").await.map(|_| ())
    }

    /// Sets the isolation level and the lock timeout.
    pub(super) async fn lock_as(&mut self, locking: Locking) -> Result<(), PgError> {
        if self.locking == Some(locking) {
            return Ok(());
        }
        let isolation = match locking.isolation {
            Isolation::ReadCommitted => "reset default_transaction_isolation",
            Isolation::RepeatableRead => "set default_transaction_isolation = 'repeatable read'",
            Isolation::Serializable => "set default_transaction_isolation = 'serializable'",
        };
        let timeout = match locking.timeout {
            None => String::from("reset lock_timeout"),
            // 0 means no limit in PostgreSQL
            Some(milliseconds) => format!("set lock_timeout = {}", milliseconds.max(1)),
        };
        self.connection.query_text(&format!("{isolation}; {timeout}")).await?;
        self.locking = Some(locking);
        self.is_set = true;
        Ok(())
    }

    /// Sets the order of dates and the first day of weeks, and discards plans, which depend on them.
    pub(super) async fn date_as(&mut self, calendar: Calendar) -> Result<(), PgError> {
        if self.calendar == Some(calendar) {
            return Ok(());
        }
        let Calendar { first_day, order } = calendar;
        let sql =
            format!("set tsql.datefirst = '{first_day}'; set tsql.dateformat = '{order}'; discard plans");
        self.connection.query_text(&sql).await?;
        self.calendar = Some(calendar);
        self.is_set = true;
        Ok(())
    }

    /// Sets which arithmetic results are errors, and discards plans, which depend on it.
    pub(super) async fn compute_as(&mut self, arithabort: Arithabort) -> Result<(), PgError> {
        if self.arithabort == Some(arithabort) {
            return Ok(());
        }
        let word = |on| if on { "on" } else { "off" };
        let sql = format!(
            "set tsql.arith_overflow = '{}'; set tsql.numeric_truncation = '{}'; discard plans",
            word(arithabort.overflow),
            word(arithabort.truncation)
        );
        self.connection.query_text(&sql).await?;
        self.arithabort = Some(arithabort);
        self.is_set = true;
        Ok(())
    }

    /// Called after a rollback, which may have undone settings.
    pub(super) fn forget_settings(&mut self) {
        if self.is_set {
            (self.locking, self.calendar, self.arithabort) = (None, None, None);
        }
    }

    /// Begins to use a database, as `use_schema`. SQLSTATE 3F000 also for a schema in a database.
    pub async fn use_database(&mut self, name: &str, databases: &Databases) -> Result<String, PgError> {
        if databases.of_schema(&name.to_lowercase()).is_some() {
            return Err(no_database(name));
        }
        self.use_schema(name, databases).await
    }

    /// Puts a schema, and the database that has it in it, before the role's own search path: the one with exactly this
    /// name, or with it in lower case, as T-SQL's names are stored. Returns its name. SQLSTATE 3F000 if there is none.
    pub async fn use_schema(&mut self, schema: &str, databases: &Databases) -> Result<String, PgError> {
        let found = if schema.contains('\0') {
            None
        } else {
            let (name, small) = (literal(schema), literal(&schema.to_lowercase()));
            let sql = format!(
                "select nspname from pg_catalog.pg_namespace where nspname in ({name}, {small}) \
                 order by nspname = {name} desc"
            );
            self.connection.query_text(&sql).await?.into_iter().flatten().next().flatten()
        };
        let found = found.ok_or_else(|| no_database(schema))?;
        let path: Vec<String> = databases.path(&found).map(quoted).collect();
        let path = literal(&path.join(", "));
        self.connection
            .query_text(&format!(
                "select pg_catalog.set_config('search_path', {path} || ', ' || reset_val, false) \
                 from pg_catalog.pg_settings where name = 'search_path'"
            ))
            .await?;
        self.schema = Some(found.clone());
        Ok(found)
    }

    /// The zone of this session's times without a zone.
    pub fn zone(&mut self) -> Result<Zone, PgError> {
        let name = self.connection.parameter("TimeZone").unwrap_or("UTC");
        if self.zone.0 != name {
            let zone = Zone::new(name)
                .map_err(|_| PgError::Protocol(format!("the time zone '{name}', which is not known here")))?;
            self.zone = (name.to_owned(), zone);
        }
        let reads_year_first = self.calendar.unwrap_or_default().reads_year_first();
        let mut zone = self.zone.1.clone();
        zone.reads_year_first = reads_year_first;
        Ok(zone)
    }

    /// `statement`, prepared on this connection.
    pub async fn prepare(&mut self, statement: &Statement) -> Result<Arc<Described>, PgError> {
        let known = self.calls.get(&statement.id);
        if let Some(described) = known {
            return Ok(described.clone());
        }
        let described = Described::new(self.describe(&statement.sql, &statement.parameter_types).await?);
        self.calls.insert(statement.id, described.clone());
        Ok(described)
    }

    /// A query, prepared on this connection. A query without parameters stays prepared from its second run on; very
    /// long ones never do.
    pub async fn prepare_query(
        &mut self,
        sql: &Sql,
        types: &[SqlType],
        typing: Typing,
    ) -> Result<Arc<Described>, PgError> {
        let key = QueryKey::new(sql, types, typing);
        if let Some(described) = self.queries.get(&key) {
            return Ok(described.clone());
        }
        self.ahead.forget(&mut self.connection).await?;
        // another session may create a table of the same name with other types
        let may_change = sql.facts.names_global();
        let comes_again = key.sql.len() <= LONGEST_KEPT && !sql.facts.once && !may_change;
        let is_kept = comes_again && (!key.parameters.is_empty() || !self.is_new(&key.sql));
        let checks = match &sql.bound {
            Some(bound) => self.prepare_checks(&bound.uses, is_kept).await?,
            None => Vec::new(),
        };
        let mut prepared = self.prepare_text(&key.sql, &key.parameters, is_kept).await?;
        if sql.facts.adds_nulls {
            nullable(&mut prepared.columns);
        }
        if let Some(bound) = &sql.bound {
            set_types(&mut prepared.columns, &bound.items, sql.variables.is_empty());
        }
        let prepared = Prepared { checks, ..prepared };
        let described = Described::new(self.with_pointers(prepared, sql, types, typing, is_kept).await?);
        if is_kept {
            self.queries.insert(key, described.clone());
        }
        Ok(described)
    }

    /// Prepares SQL of PostgreSQL, with a name if it stays prepared.
    async fn prepare_text(
        &mut self,
        sql: &str,
        parameters: &[u32],
        is_kept: bool,
    ) -> Result<Prepared, PgError> {
        if is_kept {
            return self.describe(sql, parameters).await;
        }
        let (parameters, mut columns) = self.connection.prepare("", sql, parameters).await?;
        if self.declare(&mut columns).await? {
            // reading the declarations replaces the unnamed statement
            self.connection.prepare("", sql, &parameters).await?;
        }
        Ok(Prepared { name: String::new(), parameters, columns, versions: 0, checks: Vec::new() })
    }

    /// The present description of a query, whose tables may have changed since it was prepared.
    pub(super) async fn describe_query(
        &mut self,
        sql: &Sql,
        types: &[SqlType],
        typing: Typing,
    ) -> Result<Arc<Described>, PgError> {
        if let Some(known) = self.known(sql, types, typing) {
            self.ahead.forget(&mut self.connection).await?;
            self.connection.describe_again(known.names()).await?;
            return Ok(known);
        }
        self.prepare_query(sql, types, typing).await
    }

    /// Closes prepared statements if PostgreSQL's error shows that they are outdated. Whether the query can run again as
    /// it is; one that depends on declarations must be written again.
    pub(super) fn forget_outdated(&mut self, sql: &Sql, error: &mut PgError) -> Result<bool, PgError> {
        // feature_not_supported: cached plan must not change result type; invalid_sql_statement_name
        let is_outdated = matches!(error.sqlstate(), Some("0A000" | "26000"));
        if is_outdated {
            self.forget_prepared()?;
            self.forget_declarations();
        }
        if is_outdated && sql.bound.is_some() {
            error.set_outdated();
        }
        Ok(is_outdated && sql.bound.is_none())
    }

    /// A query that is prepared on this connection.
    pub(super) fn known(&self, sql: &Sql, types: &[SqlType], typing: Typing) -> Option<Arc<Described>> {
        self.queries.get(&QueryKey::new(sql, types, typing)).cloned()
    }

    /// Whether PostgreSQL already has this schema and these settings.
    pub(super) fn is_set(&self, schema: &str, settings: &Settings) -> bool {
        self.schema.as_deref() == Some(schema)
            && self.locking == Some(settings.locking)
            && self.calendar == Some(settings.calendar)
            && self.arithabort == Some(settings.arithabort.unwrap_or_default())
    }

    /// Whether a text runs for the first time, by the cache.
    fn is_new(&mut self, sql: &str) -> bool {
        if self.once.len() >= MOST_PREPARED {
            self.once.clear();
        }
        let mut hasher = DefaultHasher::new();
        sql.hash(&mut hasher);
        self.once.insert(hasher.finish())
    }

    async fn describe(&mut self, sql: &str, types: &[u32]) -> Result<Prepared, PgError> {
        if self.calls.len() + self.queries.len() >= MOST_PREPARED {
            self.forget_prepared()?;
        }
        let name = self.connection.statement_name();
        let (parameters, mut columns) = self.connection.prepare(&name, sql, types).await?;
        self.declare(&mut columns).await?;
        Ok(Prepared { name, parameters, columns, versions: 0, checks: Vec::new() })
    }

    /// Sets the T-SQL declarations of a query's columns. Returns whether this took a query to PostgreSQL.
    pub async fn declare(&mut self, columns: &mut [PgColumn]) -> Result<bool, PgError> {
        let tables = self.declarations.missing(columns);
        if !tables.is_empty() {
            let rows = self.connection.query_text(&Declarations::question(&tables)).await?;
            self.declarations.read(&tables, rows);
        }
        self.declarations.apply(columns);
        if columns.iter().any(|column| column.oid == RECORD) {
            return Err(PgError::Server(Box::new(crate::postgres::Notice {
                severity: "ERROR".into(),
                sqlstate: "S0102".into(),
                message: "a row is not a value: min and max of a datetimeoffset need a CONVERT to that type"
                    .into(),
                ..Default::default()
            })));
        }
        Ok(!tables.is_empty())
    }

    /// Discards the known columns of tables.
    pub fn forget_declarations(&mut self) {
        self.declarations = Declarations::default();
        self.forget_tables();
    }

    /// Queues messages that close prepared statements.
    fn close(&mut self, statements: &[String]) -> Result<(), PgError> {
        for name in statements {
            frontend::close(b'S', name, self.connection.output())?;
        }
        Ok(())
    }

    /// Queues the checks before a statement: whether columns still have the types with which it was compiled.
    pub(super) fn put_checks(&mut self, described: &Described) -> Result<(), PgError> {
        for name in &described.checks {
            frontend::describe(b'S', name, self.connection.output())?;
        }
        Ok(())
    }

    /// Called after a definition. A view, or a table that was dropped and created again, may have other declarations
    /// with the same types in PostgreSQL. Definitions of a session's own tables affect only queries that use these.
    pub fn forget_queries_of(&mut self, definition: &Sql) -> Result<(), PgError> {
        let is_own = definition.facts.defines_temporary();
        let concerned = |key: &QueryKey, described: &Described| {
            if is_own {
                key.names_temporary
            } else {
                described.columns.iter().any(|column| column.origin.0 >= FIRST_OF_USERS)
            }
        };
        let mut closed = Vec::new();
        self.queries.retain(|key, described| {
            let is_concerned = concerned(key, described);
            if is_concerned {
                closed.extend(described.names().cloned());
            }
            !is_concerned
        });
        self.close(&closed)
    }

    pub fn forget_prepared(&mut self) -> Result<(), PgError> {
        let calls = self.calls.drain().map(|(_, described)| described);
        let queries = self.queries.drain().map(|(_, described)| described);
        for described in calls.chain(queries) {
            for name in described.names() {
                frontend::close(b'S', name, self.connection.output())?;
            }
        }
        Ok(())
    }
}

/// SQLSTATE 3F000.
fn no_database(name: &str) -> PgError {
    PgError::Server(Box::new(crate::postgres::Notice {
        severity: "ERROR".into(),
        sqlstate: "3F000".into(),
        message: format!("Database '{name}' does not exist. Make sure that the name is entered correctly."),
        ..Default::default()
    }))
}
