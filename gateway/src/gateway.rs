//! What the sessions share: where PostgreSQL is, the procedure catalogue and group commit.

use crate::catalogue::Catalogue;
use crate::convert::Zone;
use crate::metrics::Metrics;
use crate::postgres::commit::GroupCommit;
use crate::postgres::connection::Message;
use crate::postgres::{Address, Connection, PgError};
use crate::server::log;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Connections of group commit.
const COMMIT_CONNECTIONS: usize = 4;
/// The channel on which PostgreSQL tells that procedures or row types changed.
const CHANNEL: &str = "ringlog_catalogue";
/// The catalogue is not read again for an unknown name within this time.
const RELOAD_PAUSE: Duration = Duration::from_millis(500);
/// Pause before PostgreSQL is tried again.
const RETRY: Duration = Duration::from_secs(1);

pub struct Gateway {
    pub address: Address,
    /// The gateway's own role.
    pub role: String,
    pub commit: GroupCommit,
    pub metrics: Arc<Metrics>,
    current: RwLock<Current>,
    reloads: mpsc::Sender<oneshot::Sender<bool>>,
    pub stopping: watch::Receiver<bool>,
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
        stopping: watch::Receiver<bool>,
    ) -> Result<Arc<Gateway>, PgError> {
        let mut connection = listening(&address, role, password).await?;
        let metrics = Arc::new(Metrics::default());
        let current = read(&mut connection, &metrics).await?;
        let (reloads, requests) = mpsc::channel(64);
        let gateway = Arc::new(Gateway {
            commit: GroupCommit::start(&address, role, password, COMMIT_CONNECTIONS, &metrics),
            metrics,
            address,
            role: role.to_owned(),
            current: RwLock::new(current),
            reloads,
            stopping,
        });
        tokio::spawn(gateway.clone().watch(connection, password.to_owned(), requests));
        Ok(gateway)
    }

    pub fn catalogue(&self) -> Arc<Catalogue> {
        self.current().catalogue
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

    /// Reads the catalogue again unless that has just been done. Whether it is newer now.
    pub async fn reload_catalogue(&self) -> bool {
        let (answer, reloaded) = oneshot::channel();
        self.reloads.send(answer).await.is_ok() && reloaded.await.unwrap_or(false)
    }

    fn set(&self, current: Current) {
        match self.current.write() {
            Ok(mut place) => *place = current,
            Err(poisoned) => *poisoned.into_inner() = current,
        }
    }

    async fn watch(
        self: Arc<Gateway>,
        mut connection: Connection,
        password: String,
        mut requests: mpsc::Receiver<oneshot::Sender<bool>>,
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
                        }
                        Ok(Message::ErrorResponse(body)) => {
                            break crate::postgres::connection::server_error(&body).unwrap_or_else(|error| error);
                        }
                        Ok(_) => {}
                        Err(error) => break error,
                    },
                    request = requests.recv() => {
                        let Some(answer) = request else { return };
                        let due = self.current().read.elapsed() >= RELOAD_PAUSE;
                        if due {
                            match read(&mut connection, &self.metrics).await {
                                Ok(current) => self.set(current),
                                Err(error) => break error,
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
