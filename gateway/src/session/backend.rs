//! The session's own PostgreSQL connection: logged in as the client with the client's password, opened when
//! a statement needs it and given up when it has long been idle.

use super::login::Welcome;
use super::results::Described;
use crate::convert::Zone;
use crate::gateway::Gateway;
use crate::postgres::commit::Statement;
use crate::postgres::{Connection, PgError};
use crate::tds::login::{Login, Password};
use postgres_protocol::message::frontend;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Statements kept prepared on one connection.
const MOST_PREPARED: usize = 500;
/// Bytes of the longest query kept prepared.
const LONGEST_KEPT: usize = 16 * 1024;
/// How long a statement waits for a connection when PostgreSQL has none left, and how often it asks.
const SCARCE_TIMEOUT: Duration = Duration::from_secs(10);
const SCARCE_PAUSE: Duration = Duration::from_millis(50);
/// Names a client may use for the database it gets without asking.
const DEFAULT_DATABASES: [&str; 2] = ["", "master"];

pub struct Backend {
    gateway: Arc<Gateway>,
    user: String,
    password: Password,
    application: String,
    open: Option<Open>,
    /// Its calls may share a transaction with those of others.
    pub may_share: bool,
    /// Something ran that may have left state on the connection.
    pinned: bool,
}

pub struct Open {
    pub connection: Connection,
    /// What is prepared: calls by their statement's id, queries by their text and types.
    calls: HashMap<u64, Arc<Described>>,
    queries: HashMap<(String, Vec<u32>), Arc<Described>>,
    zone: (String, Zone),
    /// What stands first in the search path; None when a rollback may have changed that.
    schema: Option<String>,
}

impl Backend {
    /// Tries user and password on PostgreSQL itself and moves to the database the login names.
    pub async fn log_in(
        gateway: &Arc<Gateway>,
        login: &Login,
        spid: u16,
    ) -> Result<(Backend, Welcome), PgError> {
        let application = if login.application.is_empty() { "TDS client" } else { &login.application };
        let mut backend = Backend {
            gateway: gateway.clone(),
            user: login.user.clone(),
            password: login.password.clone(),
            // sp_who reads this; the number comes first, as PostgreSQL cuts a long name
            application: format!("{spid} {application} ({})", login.host).replace('\0', ""),
            open: None,
            may_share: false,
            pinned: false,
        };
        let open = backend.connect().await?;
        let mut welcome = Welcome::ask(&mut open.connection, &gateway.role).await?;
        open.schema = Some(welcome.schema.clone());
        if !gateway.is_default_database(&login.database) {
            open.use_schema(&login.database).await?;
            welcome.schema.clone_from(&login.database);
        }
        backend.may_share = welcome.may_share;
        Ok((backend, welcome))
    }

    async fn connect(&mut self) -> Result<&mut Open, PgError> {
        let deadline = Instant::now() + SCARCE_TIMEOUT;
        let connection = loop {
            let address = &self.gateway.address;
            match Connection::open(address, &self.user, &self.password.0, &self.application).await {
                // too_many_connections: those that idle sessions keep will do
                Err(error) if error.sqlstate() == Some("53300") && Instant::now() < deadline => {
                    self.gateway.scarce.notify_waiters();
                    tokio::time::sleep(SCARCE_PAUSE).await;
                }
                opened => break opened?,
            }
        };
        let open = Open {
            connection,
            calls: HashMap::new(),
            queries: HashMap::new(),
            zone: (String::new(), Zone::UTC),
            schema: None,
        };
        Ok(self.open.insert(open))
    }

    /// The connection, opened if need be, with `schema` first in its search path.
    pub async fn open(&mut self, schema: &str) -> Result<&mut Open, PgError> {
        if self.open.is_none() {
            let default = self.connect().await?.connection.query_text("select current_schema()").await?;
            let default = default.into_iter().flatten().next().flatten().unwrap_or_default();
            if let Some(open) = &mut self.open {
                open.schema = Some(default);
            }
        }
        let open = self.open.as_mut().ok_or_else(|| PgError::Protocol("no connection".into()))?;
        if open.schema.as_deref() != Some(schema) {
            open.use_schema(schema).await?;
        }
        Ok(open)
    }

    /// The connection if one is open.
    pub fn opened(&mut self) -> Option<&mut Open> {
        self.open.as_mut()
    }

    /// A transaction or a part of it was rolled back, and the search path with it.
    pub fn rolled_back(&mut self) {
        if let Some(open) = &mut self.open {
            open.schema = None;
        }
    }

    pub fn pin(&mut self) {
        self.pinned = true;
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether there is a connection that nobody would miss.
    pub fn is_disposable(&self) -> bool {
        self.open.is_some() && !self.pinned
    }

    /// Gives the connection up unless it holds state that the client would miss. Whether it is gone.
    pub async fn release(&mut self) -> bool {
        if self.pinned {
            let held = match &mut self.open {
                Some(open) => open.holds_state().await,
                None => Ok(false),
            };
            match held {
                Ok(true) => return false,
                Ok(false) => {}
                Err(_) => self.forget(),
            }
        }
        self.close().await;
        true
    }

    /// Puts the connection back to how it was after login. One that cannot be put back is given up.
    pub async fn reset(&mut self) {
        let Some(open) = self.open.as_mut().filter(|_| self.pinned) else { return };
        match open.reset().await {
            Ok(()) => self.pinned = false,
            Err(_) => self.forget(),
        }
    }

    /// Forgets what is prepared, after the schema has changed. PL/pgSQL's own plans end only with the
    /// connection, which is given up unless it holds something.
    pub async fn forget_plans(&mut self, in_transaction: bool) -> Result<(), PgError> {
        if self.is_disposable() && !in_transaction {
            self.close().await;
        } else if let Some(open) = &mut self.open {
            open.forget_prepared()?;
        }
        Ok(())
    }

    pub async fn close(&mut self) {
        self.pinned = false;
        if let Some(open) = self.open.take() {
            open.connection.close().await;
        }
    }

    /// Lets go of a connection that holds nothing and that PostgreSQL has ended, as when it was started anew.
    pub async fn let_go_if_ended(&mut self) {
        if self.pinned {
            return;
        }
        if let Some(open) = &mut self.open {
            if open.connection.has_ended().await {
                self.open = None;
            }
        }
    }

    /// Lets go of a connection that has failed.
    pub fn forget(&mut self) {
        self.pinned = false;
        self.open = None;
    }
}

impl Gateway {
    pub fn is_default_database(&self, name: &str) -> bool {
        DEFAULT_DATABASES.iter().any(|default| name.eq_ignore_ascii_case(default))
            || name == self.address.database
    }
}

impl Open {
    /// Whether PostgreSQL keeps anything for this session that a new connection would not have.
    async fn holds_state(&mut self) -> Result<bool, PgError> {
        let schema = self.schema.as_deref().unwrap_or("").replace('\'', "''");
        let sql = include_str!("state.sql").replace(":'schema'", &format!("'{schema}'"));
        let rows = self.connection.query_text(&sql).await?;
        Ok(rows.into_iter().flatten().next().flatten().as_deref() != Some("f"))
    }

    async fn reset(&mut self) -> Result<(), PgError> {
        self.connection.query_text("rollback").await?;
        self.connection.query_text("discard all").await?;
        self.calls.clear();
        self.queries.clear();
        self.schema = None;
        Ok(())
    }

    /// Puts `schema` before the search path the role has by itself. SQLSTATE 3F000 when there is none.
    pub async fn use_schema(&mut self, schema: &str) -> Result<(), PgError> {
        let literal = schema.replace('\'', "''");
        let found = !schema.contains('\0') && {
            let sql = format!("select 1 from pg_catalog.pg_namespace where nspname = '{literal}'");
            !self.connection.query_text(&sql).await?.is_empty()
        };
        if !found {
            return Err(PgError::Server(Box::new(crate::postgres::Notice {
                severity: "ERROR".into(),
                sqlstate: "3F000".into(),
                message: format!("Database '{schema}' does not exist: a database is a schema in PostgreSQL."),
                ..Default::default()
            })));
        }
        self.connection
            .query_text(&format!(
                "select pg_catalog.set_config('search_path', \
                 pg_catalog.quote_ident('{literal}') || ', ' || reset_val, false) \
                 from pg_catalog.pg_settings where name = 'search_path'"
            ))
            .await?;
        self.schema = Some(schema.to_owned());
        Ok(())
    }

    /// The zone that zoneless times of this session are in.
    pub fn zone(&mut self) -> Result<Zone, PgError> {
        let name = self.connection.parameter("TimeZone").unwrap_or("UTC");
        if self.zone.0 != name {
            let zone = Zone::new(name)
                .map_err(|_| PgError::Protocol(format!("the time zone '{name}', which is not known here")))?;
            self.zone = (name.to_owned(), zone);
        }
        Ok(self.zone.1.clone())
    }

    /// `statement`, prepared on this connection if it was not yet.
    pub async fn prepare(&mut self, statement: &Statement) -> Result<Arc<Described>, PgError> {
        let known = self.calls.get(&statement.id);
        if let Some(described) = known {
            return Ok(described.clone());
        }
        let described = self.describe(&statement.sql, &statement.parameter_types).await?;
        self.calls.insert(statement.id, described.clone());
        Ok(described)
    }

    /// A query, prepared on this connection if it was not yet. One without parameters is not kept, as its
    /// text seldom comes again, nor is a very long one.
    pub async fn prepare_query(
        &mut self,
        sql: String,
        parameters: Vec<u32>,
    ) -> Result<Arc<Described>, PgError> {
        if parameters.is_empty() || sql.len() > LONGEST_KEPT {
            let (parameters, columns) = self.connection.prepare("", &sql, &parameters).await?;
            return Ok(Arc::new(Described { name: String::new(), parameters, columns: columns.into() }));
        }
        let key = (sql, parameters);
        if let Some(described) = self.queries.get(&key) {
            return Ok(described.clone());
        }
        let described = self.describe(&key.0, &key.1).await?;
        self.queries.insert(key, described.clone());
        Ok(described)
    }

    async fn describe(&mut self, sql: &str, types: &[u32]) -> Result<Arc<Described>, PgError> {
        if self.calls.len() + self.queries.len() >= MOST_PREPARED {
            self.forget_prepared()?;
        }
        let name = self.connection.statement_name();
        let (parameters, columns) = self.connection.prepare(&name, sql, types).await?;
        Ok(Arc::new(Described { name, parameters, columns: columns.into() }))
    }

    pub fn forget_prepared(&mut self) -> Result<(), PgError> {
        let calls = self.calls.drain().map(|(_, described)| described);
        let queries = self.queries.drain().map(|(_, described)| described);
        for described in calls.chain(queries) {
            frontend::close(b'S', &described.name, self.connection.output())?;
        }
        Ok(())
    }
}
