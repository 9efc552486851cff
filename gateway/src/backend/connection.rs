//! The session's own PostgreSQL connection: logged in as the client with the client's password, opened when a
//! statement needs it, and closed after a long idle time.

use super::ahead::forget_ahead;
use super::copy::running::BulkCopy;
use super::open::Open;
use super::role::Role;
use super::transaction::state::TransactionState;
use super::transaction::Transaction;
use crate::catalogue::Catalogue;
use crate::client::{Arithabort, Calendar, Client, Locking, Occupied};
use crate::convert::Zone;
use crate::gateway::Gateway;
use crate::limits::shares::{Claimant, Permit};
use crate::limits::turns::Turn;
use crate::nodes::Node;
use crate::postgres::{Connection, Notice, PgError};
use crate::program::Sql;
use crate::tds::login::{Login, Password};
use crate::tds::tokens::envchange::Transaction as Change;
use crate::tds::tokens::message::ServerMessage;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a statement waits for a connection when PostgreSQL has none left, and the time between two tries.
const SCARCE_TIMEOUT: Duration = Duration::from_secs(10);
const SCARCE_PAUSE: Duration = Duration::from_millis(50);
/// The most time for dropping a session's global temporary tables at its end.
const CLOSING: Duration = Duration::from_secs(2);
/// SQLSTATE read_only_sql_transaction.
const READ_ONLY: &str = "25006";

pub struct Backend {
    pub(super) gateway: Arc<Gateway>,
    /// The node that the connection is on; None for the server of the login.
    node: Option<Arc<Node>>,
    pub(super) spid: u16,
    user: Arc<str>,
    password: Password,
    application: String,
    /// Its claim to a connection; None during the login, and on a node.
    claimant: Option<Claimant>,
    occupied: Occupied,
    /// The schema the client uses, which it calls a database.
    pub database: String,
    pub(super) open: Option<Open>,
    pub(super) transaction: Transaction,
    /// @@transtate
    pub transaction_state: TransactionState,
    /// A bulk copy that waits for its rows.
    pub(super) copy: Option<BulkCopy>,
    /// Reads from a standby, if there is one, until the first write.
    reads_standby: bool,
    /// Its calls may share a transaction with those of others.
    pub may_share: bool,
    /// The client's settings; sent to PostgreSQL at the connection's next use.
    pub(super) locking: Locking,
    pub(super) calendar: Calendar,
    pub(super) arithabort: Arithabort,
    /// The most rows of one statement that this login may read.
    pub(super) most_rows: Option<u64>,
    /// A statement may have left state on the connection.
    pinned: bool,
    /// A statement has used a global temporary table.
    pub(super) uses_globals: bool,
}

fn too_many_statements(claimant: &Claimant) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "53300".into(),
        message: format!(
            "The sessions of {} have as many connections to PostgreSQL as they may ({}), or all others have the rest",
            claimant.login, claimant.most
        ),
        hint: "Read the results that were asked for, end transactions, or try again later.".into(),
        ..Notice::default()
    }))
}

impl Backend {
    /// Checks user and password on PostgreSQL itself and changes to the database that the login names.
    pub async fn log_in(
        gateway: &Arc<Gateway>,
        login: &Login,
        spid: u16,
    ) -> Result<(Backend, Role), PgError> {
        let application = if login.application.is_empty() { "TDS client" } else { &login.application };
        let mut backend = Backend {
            gateway: gateway.clone(),
            node: None,
            spid,
            user: login.user.as_str().into(),
            password: login.password.clone(),
            // sp_who reads this; the number comes first, as PostgreSQL cuts a long name
            application: format!("{spid} {application} ({})", login.host).replace('\0', ""),
            claimant: None,
            occupied: Occupied::default(),
            database: String::new(),
            open: None,
            transaction: Transaction::default(),
            transaction_state: TransactionState::default(),
            copy: None,
            reads_standby: login.reads_only,
            may_share: false,
            locking: Locking::default(),
            calendar: Calendar::default(),
            arithabort: Arithabort::default(),
            most_rows: None,
            pinned: false,
            uses_globals: false,
        };
        let open = backend.connect().await?;
        let mut role = Role::ask(&mut open.connection, &gateway.role, &gateway.reserved_for).await?;
        open.schema = Some(role.schema.clone());
        if !gateway.is_default_database(&login.database) {
            match open.use_database(&login.database, &gateway.catalogue().databases()).await {
                Ok(database) => role.schema = database,
                Err(error) if gateway.may_mean_default(&login.database, &error) => {}
                Err(error) => return Err(error),
            }
        }
        let claimant = Claimant {
            login: backend.user.clone(),
            most: gateway.most_connections_of_login().min(role.most_sessions.unwrap_or(usize::MAX)),
            has_reserve: role.has_reserve,
        };
        let permit = gateway.connections.try_take(&claimant);
        backend.claimant = Some(claimant);
        match (permit, &mut backend.open) {
            (Some(permit), Some(open)) => open.permit = backend.occupied.occupy(permit),
            // the next statement waits for a permit
            _ => backend.close().await,
        }
        backend.may_share = role.may_share;
        backend.most_rows = role.most_rows;
        backend.database.clone_from(&role.schema);
        if role.reads_standby && !backend.reads_standby {
            backend.reads_standby = true;
            if gateway.readers_address.is_some() {
                // the next statement opens a connection there
                backend.close().await;
            }
        }
        Ok((backend, role))
    }

    /// A session of the same login on a node; it connects at its first use.
    pub fn on_node(&self, node: Arc<Node>) -> Backend {
        Backend {
            gateway: self.gateway.clone(),
            node: Some(node),
            spid: self.spid,
            user: self.user.clone(),
            password: self.password.clone(),
            application: self.application.clone(),
            claimant: None,
            occupied: Occupied::default(),
            database: String::new(),
            open: None,
            transaction: Transaction::default(),
            transaction_state: TransactionState::default(),
            copy: None,
            reads_standby: false,
            may_share: false,
            locking: Locking::default(),
            calendar: Calendar::default(),
            arithabort: Arithabort::default(),
            most_rows: self.most_rows,
            pinned: false,
            uses_globals: false,
        }
    }

    pub fn is_of(&self, node: &Arc<Node>) -> bool {
        self.node.as_ref().is_some_and(|own| Arc::ptr_eq(own, node))
    }

    /// Whether the connection is on a node.
    pub(super) fn is_there(&self) -> bool {
        self.node.is_some()
    }

    pub fn user(&self) -> &Arc<str> {
        &self.user
    }

    pub fn occupied(&self) -> Occupied {
        self.occupied.clone()
    }

    /// The permit of the connection to PostgreSQL.
    pub fn permit(&self) -> Option<Arc<Permit>> {
        self.open.as_ref().and_then(|open| open.permit.clone())
    }

    async fn connect(&mut self) -> Result<&mut Open, PgError> {
        let deadline = Instant::now() + SCARCE_TIMEOUT;
        let permit = match &self.claimant {
            Some(claimant) => {
                let recall = Arc::default();
                let taking = self.gateway.connections.take(claimant, &recall);
                let taken = tokio::time::timeout(SCARCE_TIMEOUT, taking).await;
                Some(taken.map_err(|_| too_many_statements(claimant))?)
            }
            None => None,
        };
        let connection = loop {
            let readers = self.gateway.readers_address.as_ref().filter(|_| self.reads_standby);
            let here = readers.unwrap_or(&self.gateway.address);
            let address = self.node.as_ref().map_or(here, |node| &node.address);
            let opening = self.gateway.connecting.acquire().await;
            let opened = Connection::open(address, &self.user, &self.password.0, &self.application).await;
            drop(opening);
            match opened {
                // too_many_connections: the connections of idle sessions can be closed
                Err(error) if error.sqlstate() == Some("53300") && Instant::now() < deadline => {
                    self.gateway.scarce.notify_waiters();
                    tokio::time::sleep(SCARCE_PAUSE).await;
                }
                opened => break opened?,
            }
        };
        let mut open = Open::new(connection, self.gateway.definitions(), &self.gateway.tables);
        open.permit = permit.and_then(|permit| self.occupied.occupy(permit));
        Ok(self.open.insert(open))
    }

    /// The connection, opened if necessary, with the current database first in its search path. Queries sent ahead are
    /// discarded.
    pub async fn open(&mut self) -> Result<&mut Open, PgError> {
        forget_ahead(self).await?;
        if self.open.is_none() {
            let default =
                self.connect().await?.connection.query_text("select pg_catalog.current_schema()").await?;
            let default = default.into_iter().flatten().next().flatten().unwrap_or_default();
            if self.node.is_some() && self.database.is_empty() {
                // calls on a node are qualified with the schema
                self.database.clone_from(&default);
            }
            if let Some(open) = &mut self.open {
                open.schema = Some(default);
            }
        }
        let is_elsewhere =
            self.open.as_ref().is_some_and(|open| open.schema.as_deref() != Some(self.database.as_str()));
        let databases = is_elsewhere.then(|| self.catalogue().databases());
        let open = self.open.as_mut().ok_or_else(|| PgError::Protocol("no connection".into()))?;
        if let Some(databases) = databases {
            open.use_schema(&self.database, &databases).await?;
        }
        open.lock_as(self.locking).await?;
        open.date_as(self.calendar).await?;
        open.compute_as(self.arithabort).await?;
        Ok(open)
    }

    /// The settings for a result set of this login.
    pub(super) fn turn(&self) -> Turn {
        self.gateway.turns.turn(&self.user)
    }

    /// Changes to another database. SQLSTATE 3F000 if it does not exist.
    pub async fn use_database(&mut self, name: &str) -> Result<(), PgError> {
        let databases = self.catalogue().databases();
        self.let_go_if_ended().await;
        self.database = self.open().await?.use_database(name, &databases).await?;
        Ok(())
    }

    /// The zone of this session's times without a zone.
    pub async fn zone(&mut self) -> Result<Zone, PgError> {
        self.open().await?.zone()
    }

    /// The catalogue of procedures as this session sees it.
    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.transaction.catalogue.clone().unwrap_or_else(|| self.gateway.catalogue())
    }

    /// The session's temporary procedures, if they have been read.
    pub fn temporary_catalogue(&self) -> Option<Arc<Catalogue>> {
        self.open.as_ref().and_then(|open| open.temporary.clone())
    }

    /// Reads the session's temporary procedures.
    pub async fn read_temporary(&mut self) -> Result<(), PgError> {
        let metrics = self.gateway.metrics.clone();
        let open = self.open().await?;
        if open.temporary.is_none() {
            let read = Catalogue::read_temporary(&mut open.connection, &metrics).await?;
            open.temporary = Some(Arc::new(read));
        }
        Ok(())
    }

    /// Discards the known columns of tables.
    pub fn forget_declarations(&mut self) {
        if let Some(open) = &mut self.open {
            open.forget_declarations();
        }
    }

    /// Closes prepared queries that a definition may affect.
    pub fn forget_queries_of(&mut self, definition: &Sql) -> Result<(), PgError> {
        self.open.as_mut().map_or(Ok(()), |open| open.forget_queries_of(definition))
    }

    /// Closes statements prepared before the latest definition, perhaps of another session.
    pub(super) fn follow_definitions(&mut self) -> Result<(), PgError> {
        let definitions = self.gateway.definitions();
        match &mut self.open {
            Some(open) if open.definitions != definitions => {
                open.definitions = definitions;
                open.forget_declarations();
                open.forget_prepared()
            }
            _ => Ok(()),
        }
    }

    /// This session has run a definition. Tables of its own concern no other session.
    pub fn has_defined(&mut self, definition: &Sql) {
        if definition.facts.defines_temporary() {
            return;
        }
        let definitions = self.gateway.has_defined();
        if let Some(open) = &mut self.open {
            open.has_defined |= self.transaction.started;
            if open.definitions + 1 == definitions {
                open.definitions = definitions;
            }
        }
    }

    /// Closes all prepared statements.
    pub fn forget_prepared(&mut self) -> Result<(), PgError> {
        self.open.as_mut().map_or(Ok(()), Open::forget_prepared)
    }

    /// Called after a rollback, which also resets the search path.
    pub(super) fn rolled_back(&mut self) {
        if let Some(open) = &mut self.open {
            if std::mem::take(&mut open.has_defined) {
                // definitions since then are rolled back, so the statements are prepared again
                open.definitions = 0;
                self.gateway.has_defined();
            }
            open.schema = None;
            open.temporary = None;
            // the rollback may have dropped some of them
            open.forget_tables();
            open.forget_settings();
        }
    }

    /// Notes a statement that may leave state on the connection.
    pub fn pin(&mut self) {
        self.pinned = true;
    }

    /// Whether PostgreSQL has received a statement of the client's transaction.
    pub fn has_begun(&self) -> bool {
        self.transaction.started
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Closes the connection unless it has state of the client. Returns whether it is closed.
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

    /// Moves the session to the primary before a write; it reads there from now on and thus sees its own rows.
    pub async fn leave_standby(&mut self) -> Result<(), PgError> {
        if !self.reads_standby {
            return Ok(());
        }
        let is_there = self.open.as_ref().is_some_and(|open| open.connection.is_read_only());
        if is_there && !self.release().await {
            return Err(PgError::Server(Box::new(Notice {
                sqlstate: READ_ONLY.into(),
                message: "this session reads from a standby and holds settings, cursors or locks there"
                    .into(),
                hint: "Write in a session of its own, or before them.".into(),
                ..Notice::default()
            })));
        }
        self.reads_standby = false;
        Ok(())
    }

    /// Resets the connection to its state after login, or closes it if that fails.
    pub async fn reset(&mut self, client: &mut Client, keep_transaction: bool) {
        if keep_transaction && self.transaction.is_open() {
            return;
        }
        self.pinned |= self.transaction.started;
        if self.transaction.is_open() {
            // the client counts its transactions by these (MS-TDS 2.2.7.9, type 10)
            self.put_change(client, Change::RolledBack);
        }
        self.end_transaction(client, TransactionState::default());
        let Some(open) = self.open.as_mut().filter(|_| self.pinned) else {
            return;
        };
        match open.reset(self.uses_globals).await {
            Ok(()) => (self.pinned, self.uses_globals) = (false, false),
            Err(_) => self.forget(),
        }
    }

    /// Closes prepared statements after a change of the schema. PL/pgSQL's plans end only with the connection, which is
    /// closed unless it has state.
    pub async fn forget_plans(&mut self) -> Result<(), PgError> {
        if self.open.is_some() && !self.pinned && !self.transaction.is_open() {
            self.close().await;
        } else if let Some(open) = &mut self.open {
            open.forget_prepared()?;
        }
        Ok(())
    }

    pub async fn close(&mut self) {
        self.pinned = false;
        if let Some(mut open) = self.open.take() {
            if self.uses_globals && self.copy.is_none() {
                // tables that remain because the session ended within a statement are dropped at the next access
                let _ = tokio::time::timeout(CLOSING, open.end_globals()).await;
            }
            open.connection.close().await;
        }
    }

    /// Closes a connection without state that PostgreSQL has ended, as after its restart.
    pub async fn let_go_if_ended(&mut self) {
        if self.pinned || self.transaction.is_open() || self.transaction.started {
            return;
        }
        if let Some(open) = &mut self.open {
            if open.ahead.is_empty() && open.connection.has_ended().await {
                self.open = None;
            }
        }
    }

    /// Closes a failed connection.
    fn forget(&mut self) {
        self.pinned = false;
        self.open = None;
    }

    /// Handles an error of the connection: the state of a lost one is gone.
    pub fn check(&mut self, error: &PgError, client: &mut Client) {
        if error.is_fatal() {
            self.lose(client);
        }
    }

    /// The connection is unusable.
    pub(super) fn lose(&mut self, client: &mut Client) {
        self.forget();
        self.end_transaction(client, TransactionState::RolledBack);
    }

    /// The client's message for an error of the session's connection.
    pub fn message_of(&mut self, error: &PgError, client: &mut Client) -> ServerMessage {
        self.check(error, client);
        error.to_message()
    }
}
