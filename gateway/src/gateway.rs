//! State shared by the sessions: PostgreSQL's address, the procedure catalogue and group commit.

use crate::backend::Role;
use crate::catalogue::{Catalogue, Changed, LiveCatalogue, Reason, Watcher};
use crate::convert::Zone;
use crate::limits::admission::Admission;
use crate::limits::room::Room;
use crate::limits::shares::{self, Claimant, Shares};
use crate::limits::turns::Turns;
use crate::metrics::Metrics;
use crate::nodes::{NodeAddress, Nodes};
use crate::postgres::commit::{GroupCommit, Maker};
use crate::postgres::priority::WriterPriority;
use crate::postgres::{Address, PgError};
use crate::program::{Programs, Shared};
use crate::threads::Pool;
use crate::tls::{KeyError, LoginKey, OwnKey, Tls};
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

/// Connections of group commit.
const COMMIT_CONNECTIONS: usize = 4;
/// Connections that sessions open at the same time: each costs PostgreSQL a process and thousands of hashes, and many
/// logins must not delay writers.
const CONNECTING: usize = 8;
/// Maximum number of sessions.
const MOST_SESSIONS: usize = 10_000;
/// A login without a limit of its own may have this fraction (1/n) of the sessions and of the connections to
/// PostgreSQL.
const OF_LOGIN: usize = 2;
/// Reserved fraction (1/n) of both, unless PostgreSQL reserves more connections.
const RESERVED: usize = 4;
/// Connections of the server's own, and of logins that are being checked: sessions have the others.
const OWN_CONNECTIONS: usize = 20;
/// Names that a client may use for its default database.
pub const DEFAULT_DATABASES: [&str; 2] = ["", "master"];

pub struct Gateway {
    pub address: Address,
    /// The address of a standby for sessions that only read, when there are several servers.
    pub readers_address: Option<Address>,
    /// The gateway's own role.
    pub role: String,
    commit: Arc<ArcSwap<GroupCommit>>,
    /// Other servers with tables of their own.
    pub nodes: Arc<Nodes>,
    pub metrics: Arc<Metrics>,
    /// The threads for calls of known shape.
    pub calls: Pool,
    /// The threads for everything else.
    pub statements: Pool,
    pub programs: Arc<Programs>,
    pub tables: Arc<Shared>,
    live: Arc<LiveCatalogue>,
    /// Version of the definitions of tables and views; sessions forget prepared statements when it changes.
    definitions: Arc<AtomicU64>,
    pub stopping: CancellationToken,
    /// Notified when PostgreSQL has no connection left: idle sessions then close theirs.
    pub scarce: Notify,
    /// Permits for connections that are being opened.
    pub connecting: Semaphore,
    /// Slots for logins that are being authenticated, by address.
    pub logins: Shares,
    /// Permits for connections that idle sessions keep for a while; other sessions close theirs soon.
    pub idle: Semaphore,
    pub admission: Admission,
    /// For long requests.
    pub room: Room,
    /// Sessions, and their connections to PostgreSQL.
    pub sessions: Shares,
    pub connections: Shares,
    most_connections: usize,
    /// The last slots of both are reserved for members of these roles.
    pub reserved_for: Vec<String>,
    /// The turns of result sets.
    pub turns: Arc<Turns>,
    /// None: nothing is encrypted.
    pub tls: Option<Arc<Tls>>,
    login_key: OwnKey,
}

impl Gateway {
    /// Logs in as the gateway's own role, reads the catalogue and keeps it up to date from then on.
    #[allow(clippy::too_many_arguments)]
    pub async fn start(
        address: Address,
        role: &str,
        password: &str,
        reserved_for: Vec<String>,
        nodes: Vec<NodeAddress>,
        tls: Option<Arc<Tls>>,
        priority: WriterPriority,
        stopping: CancellationToken,
        calls: Pool,
        statements: Pool,
    ) -> Result<Arc<Gateway>, PgError> {
        let metrics = Arc::new(Metrics::default());
        let priority = Arc::new(priority);
        let connecting = Watcher::connect(
            address.clone(),
            role.to_owned(),
            password.to_owned(),
            metrics.clone(),
            priority.clone(),
        );
        let (mut watcher, (most_connections, reserved)) = statements
            .run(async move {
                let mut watcher = connecting.await?;
                let most_connections = watcher.most_connections().await?;
                Ok::<_, PgError>((watcher, most_connections))
            })
            .await?;
        let most_connections = most_connections.saturating_sub(OWN_CONNECTIONS).max(1);
        let live = LiveCatalogue::new(&mut watcher);
        let maker = Arc::new(Maker {
            threads: Handle::current(),
            server: "PostgreSQL".into(),
            address: address.clone(),
            user: role.to_owned(),
            password: password.to_owned(),
            metrics: metrics.clone(),
            priority,
        });
        let start_commit = move || GroupCommit::start(&maker, COMMIT_CONNECTIONS);
        let commit = Arc::new(ArcSwap::from_pointee(start_commit()));
        // PL/pgSQL keeps plans for the former types, and only a new connection makes new plans; the old connections end
        // after their current calls
        let nodes = Arc::new(Nodes::new(nodes, &metrics));
        let (renewed, renewed_nodes) = (commit.clone(), nodes.clone());
        let definitions = Arc::new(AtomicU64::new(0));
        let counted = definitions.clone();
        let forget = move |changed: Changed| {
            counted.fetch_add(1, Ordering::AcqRel);
            if changed == Changed::All {
                renewed.store(Arc::new(start_commit()));
                renewed_nodes.renew();
            }
        };
        statements.spawn(watcher.run(live.clone(), forget));
        Ok(Arc::new(Gateway {
            commit,
            nodes,
            programs: Arc::new(Programs::new(&metrics)),
            tables: Arc::default(),
            turns: Turns::new(metrics.clone()),
            metrics,
            calls,
            statements,
            readers_address: address.for_readers(),
            address,
            role: role.to_owned(),
            live,
            definitions,
            stopping,
            scarce: Notify::new(),
            connecting: Semaphore::new(CONNECTING),
            logins: Shares::new(CONNECTING, CONNECTING / 2),
            idle: Semaphore::new(most_connections / 2),
            admission: Admission::default(),
            room: Room::new(),
            sessions: Shares::new(MOST_SESSIONS, MOST_SESSIONS / RESERVED),
            connections: Shares::new(
                most_connections,
                reserved.max(most_connections / RESERVED).min(most_connections - 1),
            ),
            most_connections,
            reserved_for,
            tls,
            login_key: OwnKey::default(),
        }))
    }

    /// A slot for a session; None: its login has reached its limit.
    pub fn session_permit(&self, login: &Arc<str>, role: &Role) -> Option<shares::Permit> {
        // writers' logins may have all sessions
        let usual = if role.has_reserve { MOST_SESSIONS } else { MOST_SESSIONS / OF_LOGIN };
        let most = role.most_sessions.unwrap_or(usual);
        self.sessions.try_take(&Claimant { login: login.clone(), most, has_reserve: role.has_reserve })
    }

    /// The maximum number of connections to PostgreSQL of one login's sessions.
    pub fn most_connections_of_login(&self) -> usize {
        (self.most_connections / OF_LOGIN).max(1)
    }

    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.live.now().catalogue.clone()
    }

    /// The version of the definitions: statements prepared under another version may be outdated.
    pub fn definitions(&self) -> u64 {
        self.definitions.load(Ordering::Acquire)
    }

    /// A session has changed a table or view. Returns the new version of the definitions.
    pub fn has_defined(&self) -> u64 {
        self.definitions.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The time zone of clients' times without a zone.
    pub fn zone(&self) -> Zone {
        self.live.now().zone.clone()
    }

    /// Reads the catalogue again. False: PostgreSQL cannot be reached.
    pub async fn reload_catalogue(&self, reason: Reason) -> bool {
        self.live.reload(reason).await
    }

    /// The current group commit.
    pub fn commit(&self) -> Arc<GroupCommit> {
        self.commit.load_full()
    }

    /// Whether a name that is no schema is the name of PostgreSQL's database, which a client may use for its default.
    pub fn may_mean_default(&self, name: &str, error: &PgError) -> bool {
        error.sqlstate() == Some("3F000") && name == self.address.database
    }

    pub fn is_default_database(&self, name: &str) -> bool {
        DEFAULT_DATABASES.iter().any(|default| name.eq_ignore_ascii_case(default))
    }

    /// The key for encrypted passwords of TDS 5.0, made at its first use.
    pub async fn login_key(&self) -> Result<&LoginKey, KeyError> {
        self.login_key.get().await
    }
}
