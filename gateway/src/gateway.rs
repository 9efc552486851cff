//! What the sessions share: where PostgreSQL is, the procedure catalogue and group commit.

use crate::admission::Admission;
use crate::catalogue::Catalogue;
use crate::convert::Zone;
use crate::metrics::Metrics;
use crate::postgres::commit::GroupCommit;
use crate::postgres::connection::Message;
use crate::postgres::{Address, Connection, PgError};
use crate::program::compiler::Compiler;
use crate::server::log;
use crate::tls::{LoginKey, Tls};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch, Notify, OnceCell, Semaphore};

/// Connections of group commit.
const COMMIT_CONNECTIONS: usize = 4;
/// The channel on which PostgreSQL tells that procedures or row types changed.
const CHANNEL: &str = "ringlog_catalogue";
/// Pause before PostgreSQL is tried again.
const RETRY: Duration = Duration::from_secs(1);

pub struct Gateway {
    pub address: Address,
    /// The gateway's own role.
    pub role: String,
    commit: RwLock<GroupCommit>,
    pub metrics: Arc<Metrics>,
    pub compiler: Compiler,
    current: RwLock<Current>,
    reloads: mpsc::Sender<Reload>,
    pub stopping: watch::Receiver<bool>,
    /// Rung when PostgreSQL has no connection left: idle sessions then give theirs up.
    pub scarce: Notify,
    /// Places for connections that idle sessions keep for a while; the others give theirs up soon.
    pub idle: Semaphore,
    pub admission: Admission,
    /// None: everything goes in the clear.
    pub tls: Option<Tls>,
    login_key: OnceCell<Arc<LoginKey>>,
}

/// Why a session wants the catalogue read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// A name or a parameter is not known.
    Unknown,
    /// PostgreSQL refused what the catalogue says.
    Outdated,
    /// The session has just changed it.
    Changed,
}

impl Because {
    /// Within this time of the last reading the catalogue is not read again for this reason.
    fn pause(self) -> Duration {
        Duration::from_millis(match self {
            Because::Unknown => 500,
            Because::Outdated => 100,
            Because::Changed => 0,
        })
    }
}

struct Reload {
    because: Because,
    answer: oneshot::Sender<bool>,
}

#[derive(Clone)]
struct Current {
    catalogue: Arc<Catalogue>,
    zone: Zone,
    read: Instant,
}

impl Gateway {
    /// Logs in as the gateway's own role, reads the catalogue and keeps it up to date from then on.
    pub async fn start(
        address: Address,
        role: &str,
        password: &str,
        tls: Option<Tls>,
        stopping: watch::Receiver<bool>,
    ) -> Result<Arc<Gateway>, PgError> {
        let mut connection = listening(&address, role, password).await?;
        let rows = connection.query_text("show max_connections").await?;
        let most_connections = rows.into_iter().flatten().next().flatten();
        let most_connections = most_connections.and_then(|text| text.parse().ok()).unwrap_or(100usize);
        let metrics = Arc::new(Metrics::default());
        let current = read(&mut connection, &metrics).await?;
        let (reloads, requests) = mpsc::channel(64);
        let commit = GroupCommit::start(&address, role, password, COMMIT_CONNECTIONS, &metrics);
        let gateway = Arc::new(Gateway {
            commit: RwLock::new(commit),
            compiler: Compiler::new(&metrics),
            metrics,
            address,
            role: role.to_owned(),
            current: RwLock::new(current),
            reloads,
            stopping,
            scarce: Notify::new(),
            idle: Semaphore::new(most_connections / 2),
            admission: Admission::default(),
            tls,
            login_key: OnceCell::new(),
        });
        tokio::spawn(gateway.clone().watch(connection, password.to_owned(), requests));
        Ok(gateway)
    }

    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.current().catalogue
    }

    /// The key for encrypted passwords of TDS 5.0, made when it is first wanted.
    pub async fn login_key(&self) -> Result<Arc<LoginKey>, Box<dyn std::error::Error + Send + Sync>> {
        let make = || async {
            let key = tokio::task::spawn_blocking(LoginKey::generate).await??;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(Arc::new(key))
        };
        self.login_key.get_or_try_init(make).await.cloned()
    }

    /// The zone that zoneless times of clients are in.
    pub fn zone(&self) -> Zone {
        self.current().zone
    }

    fn current(&self) -> Current {
        match self.current.read() {
            Ok(current) => current.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        }
    }

    /// Group commit as it is now.
    pub fn commit(&self) -> GroupCommit {
        match self.commit.read() {
            Ok(commit) => commit.clone(),
            Err(poisoned) => poisoned.into_inner().clone(),
        }
    }

    /// Reads the catalogue again. For an unknown name it may be as new as it was a moment ago; what
    /// PostgreSQL refused waits until the catalogue is newer than that. False: PostgreSQL is not there.
    pub async fn reload_catalogue(&self, because: Because) -> bool {
        if because == Because::Outdated {
            tokio::time::sleep(because.pause().saturating_sub(self.current().read.elapsed())).await;
        }
        let (answer, reloaded) = oneshot::channel();
        self.reloads.send(Reload { because, answer }).await.is_ok() && reloaded.await.unwrap_or(false)
    }

    fn set(&self, current: Current) {
        match self.current.write() {
            Ok(mut place) => *place = current,
            Err(poisoned) => *poisoned.into_inner() = current,
        }
    }

    /// New connections for group commit. PL/pgSQL keeps plans for the types there were, and only a new
    /// session plans anew; the old connections end with the calls they have.
    fn renew_commit(&self, password: &str) {
        let commit =
            GroupCommit::start(&self.address, &self.role, password, COMMIT_CONNECTIONS, &self.metrics);
        match self.commit.write() {
            Ok(mut place) => *place = commit,
            Err(poisoned) => *poisoned.into_inner() = commit,
        }
    }

    async fn watch(
        self: Arc<Gateway>,
        mut connection: Connection,
        password: String,
        mut requests: mpsc::Receiver<Reload>,
    ) {
        loop {
            let failed = loop {
                tokio::select! {
                    message = connection.receive() => match message {
                        Ok(Message::NotificationResponse(_)) => {
                            match read(&mut connection, &self.metrics).await {
                                Ok(current) => self.set(current),
                                Err(error) => break error,
                            }
                            self.renew_commit(&password);
                        }
                        Ok(Message::ErrorResponse(body)) => {
                            break crate::postgres::connection::server_error(&body).unwrap_or_else(|error| error);
                        }
                        Ok(_) => {}
                        Err(error) => break error,
                    },
                    request = requests.recv() => {
                        let Some(Reload { because, answer }) = request else { return };
                        let due = self.current().read.elapsed() >= because.pause();
                        if due {
                            match read(&mut connection, &self.metrics).await {
                                Ok(current) => self.set(current),
                                Err(error) => break error,
                            }
                            if because == Because::Outdated {
                                self.renew_commit(&password);
                            }
                        }
                        // a change told meanwhile may have come just before the question
                        let _ = answer.send(true);
                    }
                }
            };
            log(&format!("lost PostgreSQL, trying again: {failed}"));
            connection = loop {
                tokio::time::sleep(RETRY).await;
                let Ok(mut again) = listening(&self.address, &self.role, &password).await else { continue };
                let Ok(current) = read(&mut again, &self.metrics).await else { continue };
                self.set(current);
                log("PostgreSQL is back");
                break again;
            };
        }
    }
}

async fn listening(address: &Address, role: &str, password: &str) -> Result<Connection, PgError> {
    let mut connection = Connection::open(address, role, password, "ringlog catalogue").await?;
    connection.query_text(&format!("listen {CHANNEL}")).await?;
    Ok(connection)
}

async fn read(connection: &mut Connection, metrics: &Metrics) -> Result<Current, PgError> {
    let catalogue = Arc::new(Catalogue::load(connection, metrics).await?);
    let name = connection.parameter("TimeZone").unwrap_or("UTC").to_owned();
    let zone = Zone::new(&name)
        .map_err(|_| PgError::Protocol(format!("the time zone '{name}', which is not known here")))?;
    Ok(Current { catalogue, zone, read: Instant::now() })
}
