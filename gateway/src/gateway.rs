//! State shared by the sessions: PostgreSQL's address, the procedure catalogue and group commit.

use crate::admission::Admission;
use crate::catalogue::{Because, Catalogue, Changed, LiveCatalogue, Watcher};
use crate::convert::Zone;
use crate::metrics::Metrics;
use crate::nodes::{Nodes, Place};
use crate::postgres::commit::{GroupCommit, Maker};
use crate::postgres::priority::WriterPriority;
use crate::postgres::{Address, PgError};
use crate::program::Programs;
use crate::room::Room;
use crate::threads::Pool;
use crate::tls::{KeyError, LoginKey, OwnKey, Tls};
use crate::turns::Turns;
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

/// Connections of group commit.
const COMMIT_CONNECTIONS: usize = 4;
/// Connections that sessions open at once: each costs PostgreSQL a process and thousands of hashes, and a storm of logins
/// is not to take the processor from those who write.
const CONNECTING: usize = 8;
/// Names a client may use for the database it gets without asking.
const DEFAULT_DATABASES: [&str; 2] = ["", "master"];

pub struct Gateway {
    pub address: Address,
    /// The address of a standby for sessions that only read, when there are several servers.
    pub readers_address: Option<Address>,
    /// The gateway's own role.
    pub role: String,
    commit: Arc<ArcSwap<GroupCommit>>,
    /// Other servers, which have tables of their own.
    pub nodes: Arc<Nodes>,
    pub metrics: Arc<Metrics>,
    /// The threads for calls of known shape.
    pub calls: Pool,
    /// The threads for everything else.
    pub statements: Pool,
    pub programs: Arc<Programs>,
    live: Arc<LiveCatalogue>,
    /// Counts the changes of tables and views that sessions have to heed.
    definitions: Arc<AtomicU64>,
    pub stopping: CancellationToken,
    /// Rung when PostgreSQL has no connection left: idle sessions then give theirs up.
    pub scarce: Notify,
    /// Places for connections that are being opened.
    pub connecting: Semaphore,
    /// Places for logins that are tried.
    pub logins: Semaphore,
    /// Places for connections that idle sessions keep for a while; the others give theirs up soon.
    pub idle: Semaphore,
    pub admission: Admission,
    /// For long requests.
    pub room: Room,
    /// The turns of result sets.
    pub turns: Arc<Turns>,
    /// None: everything goes in the clear.
    pub tls: Option<Tls>,
    login_key: OwnKey,
}

impl Gateway {
    /// Logs in as the gateway's own role, reads the catalogue and keeps it up to date from then on.
    #[allow(clippy::too_many_arguments)]
    pub async fn start(
        address: Address,
        role: &str,
        password: &str,
        nodes: Vec<Place>,
        tls: Option<Tls>,
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
        let (mut watcher, most_connections) = statements
            .run(async move {
                let mut watcher = connecting.await?;
                let most_connections = watcher.most_connections().await?;
                Ok::<_, PgError>((watcher, most_connections))
            })
            .await?;
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
        // PL/pgSQL keeps plans for the types there were, and only a new connection plans anew; the old ones end
        // with the calls they have
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
            logins: Semaphore::new(CONNECTING),
            idle: Semaphore::new(most_connections / 2),
            admission: Admission::default(),
            room: Room::new(),
            tls,
            login_key: OwnKey::default(),
        }))
    }

    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.live.now().catalogue.clone()
    }

    /// The number of definitions so far: what was prepared or asked before another one may not hold any more.
    pub fn definitions(&self) -> u64 {
        self.definitions.load(Ordering::Acquire)
    }

    /// A session has changed a table or view. Returns the number of definitions so far.
    pub fn has_defined(&self) -> u64 {
        self.definitions.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The zone that zoneless times of clients are in.
    pub fn zone(&self) -> Zone {
        self.live.now().zone.clone()
    }

    /// Reads the catalogue again. False: PostgreSQL is not there.
    pub async fn reload_catalogue(&self, because: Because) -> bool {
        self.live.reload(because).await
    }

    /// Group commit as it is now.
    pub fn commit(&self) -> Arc<GroupCommit> {
        self.commit.load_full()
    }

    /// Whether a name that is no schema may be that of PostgreSQL's database: there is a login without one.
    pub fn may_mean_default(&self, name: &str, error: &PgError) -> bool {
        error.sqlstate() == Some("3F000") && name == self.address.database
    }

    pub fn is_default_database(&self, name: &str) -> bool {
        DEFAULT_DATABASES.iter().any(|default| name.eq_ignore_ascii_case(default))
    }

    /// The key for encrypted passwords of TDS 5.0, made when it is first wanted.
    pub async fn login_key(&self) -> Result<&LoginKey, KeyError> {
        self.login_key.get().await
    }
}
