//! Keeps the catalogue up to date: it is read again when PostgreSQL notifies of a change, or when a session requests
//! it.

use super::{Catalogue, Extent};
use crate::convert::{set_big_endian, Zone};
use crate::metrics::Metrics;
use crate::postgres::message::{server_error, Message};
use crate::postgres::priority::WriterPriority;
use crate::postgres::{Address, Connection, PgError};
use arc_swap::ArcSwap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{timeout, Instant};
use tracing::{debug, error, info};

/// The channel on which PostgreSQL notifies of changes of procedures or row types.
const CHANNEL: &str = "ringlog_catalogue";
/// The payload when only the servers of tables have changed.
const MOVED: &str = "moved";
/// The payload when only columns of tables or views have changed, which no procedure takes.
const COLUMNS: &str = "columns";
/// The payload when only procedures or functions of T-SQL have changed: group commit calls none, nor does a procedure
/// that it calls.
const PROCEDURES: &str = "procedures";
/// Within this time after a reading the catalogue is not read again for an unknown name, unless PostgreSQL
/// has notified of a change, nor for a refused call.
const PAUSE_UNKNOWN: Duration = Duration::from_millis(500);
const PAUSE_OUTDATED: Duration = Duration::from_millis(100);
/// After notifications were processed, further ones wait this long, unless a session requests the catalogue: any login
/// can send them, and each may cost a reading and new connections for commits.
const PAUSE_NOTIFIED: Duration = Duration::from_millis(250);
/// Pause before PostgreSQL is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Requests wait this long for a new connection: the old one may be lost although PostgreSQL serves.
const PATIENCE: Duration = Duration::from_secs(5);

/// Queries the byte order of packed arrays in the database, as it is now and not when the connection was made.
const BYTE_ORDER: &str =
    "select setting from pg_catalog.pg_db_role_setting, pg_catalog.unnest(setconfig) as setting \
     where setrole = 0 and setting like 'tsql.byte\\_order=%' and setdatabase = \
       (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())";

/// The parts that are no longer valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The declarations of columns, and of procedures and functions of T-SQL.
    Declarations,
    /// These, and the plans of procedures in group commit.
    All,
}

/// The reason why a session requests a new reading of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A name or a parameter is unknown.
    Unknown,
    /// PostgreSQL refused a call that follows the catalogue, of a procedure in group commit, whose
    /// connections must plan again.
    Outdated,
    /// PostgreSQL refused a call that follows the catalogue, of a procedure that runs on the session's own
    /// connection.
    Refused,
    /// The called procedure has moved to another server.
    Moved,
    /// The session has just changed the catalogue.
    Changed,
}

struct Reload {
    reason: Reason,
    asked: Instant,
    answer: oneshot::Sender<bool>,
}

/// A state of the catalogue.
pub struct Snapshot {
    pub catalogue: Arc<Catalogue>,
    /// The time zone of clients' times without a zone.
    pub zone: Zone,
    /// The start of its reading.
    read: Instant,
    /// The time of the last complete reading.
    all_read: Instant,
}

/// The newest catalogue.
pub struct LiveCatalogue {
    current: ArcSwap<Snapshot>,
    reloads: mpsc::Sender<Reload>,
}

impl LiveCatalogue {
    /// The catalogue that `watcher` keeps up to date once it runs.
    pub fn new(watcher: &mut Watcher) -> Arc<LiveCatalogue> {
        let (reloads, requests) = mpsc::channel(64);
        watcher.requests = Some(requests);
        let current = ArcSwap::new(watcher.first.clone());
        Arc::new(LiveCatalogue { current, reloads })
    }

    pub fn now(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Reads the catalogue again. For an unknown name a catalogue as new as PostgreSQL's latest notification
    /// suffices; after a refused call it must be newer than the refusal. False: PostgreSQL cannot be reached.
    pub async fn reload(&self, reason: Reason) -> bool {
        let asked = Instant::now();
        let since = match reason {
            Reason::Outdated => Some(self.now().all_read),
            Reason::Refused => Some(self.now().read),
            _ => None,
        };
        if let Some(since) = since {
            tokio::time::sleep(PAUSE_OUTDATED.saturating_sub(since.elapsed())).await;
        }
        loop {
            let (answer, reloaded) = oneshot::channel();
            if self.reloads.send(Reload { reason, asked, answer }).await.is_err() {
                return false;
            }
            // the watcher loses its requests with its connection
            if let Ok(is_read) = reloaded.await {
                return is_read;
            }
        }
    }
}

/// The gateway's own connection, which is notified of changes.
pub struct Watcher {
    address: Address,
    role: String,
    password: String,
    metrics: Arc<Metrics>,
    priority: Arc<WriterPriority>,
    connection: Connection,
    first: Arc<Snapshot>,
    requests: Option<mpsc::Receiver<Reload>>,
}

impl Watcher {
    /// Logs in as the gateway's own role and reads the catalogue.
    pub async fn connect(
        address: Address,
        role: String,
        password: String,
        metrics: Arc<Metrics>,
        priority: Arc<WriterPriority>,
    ) -> Result<Watcher, PgError> {
        let mut connection = listening(&address, &role, &password, &priority).await?;
        let first = Arc::new(read_all(&mut connection, &metrics, None).await?);
        Ok(Watcher { address, role, password, metrics, priority, connection, first, requests: None })
    }

    /// The number of connections that PostgreSQL allows to others than superusers, and how many of them it reserves
    /// (PostgreSQL 15 has no such setting).
    pub async fn most_connections(&mut self) -> Result<(usize, usize), PgError> {
        let sql = "select pg_catalog.current_setting('max_connections')::int \
                     - pg_catalog.current_setting('superuser_reserved_connections')::int, \
                     coalesce(pg_catalog.current_setting('reserved_connections', true), '0')";
        let rows = self.connection.query_text(sql).await?;
        let number = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
        let found = rows.first().and_then(|row| number(row.first()?).zip(number(row.get(1)?)));
        Ok(found.unwrap_or((100, 0)))
    }

    /// Keeps `live` up to date. Calls `changed` when earlier knowledge may be invalid.
    pub async fn run(mut self, live: Arc<LiveCatalogue>, changed: impl Fn(Changed) + Send) {
        let Some(mut requests) = self.requests.take() else { return };
        loop {
            let failed = match self.watch(&live, &mut requests, &changed).await {
                Ok(()) => return,
                Err(failed) => failed,
            };
            error!("lost PostgreSQL, trying again: {failed}");
            let before = live.now().catalogue.clone();
            let Some((connection, snapshot)) = self.connect_again(&before, &mut requests).await else {
                return;
            };
            live.current.store(Arc::new(snapshot));
            info!("PostgreSQL is back");
            self.connection = connection;
            // it may be another server: calls on the old server's connections may never end
            changed(Changed::All);
        }
    }

    /// Tries until PostgreSQL can be reached. Requests for the catalogue wait only for the first attempt. None: no
    /// session can request it any more.
    async fn connect_again(
        &self,
        before: &Catalogue,
        requests: &mut mpsc::Receiver<Reload>,
    ) -> Option<(Connection, Snapshot)> {
        let attempt = || async {
            let mut connection = self.listening().await?;
            let snapshot = read_all(&mut connection, &self.metrics, Some(before)).await?;
            Ok::<_, PgError>((connection, snapshot))
        };
        if let Ok(Ok(found)) = timeout(PATIENCE, attempt()).await {
            return Some(found);
        }
        let mut connecting = pin!(async {
            loop {
                tokio::time::sleep(RETRY).await;
                if let Ok(found) = attempt().await {
                    return found;
                }
            }
        });
        loop {
            tokio::select! {
                found = &mut connecting => return Some(found),
                request = requests.recv() => {
                    let _ = request?.answer.send(false);
                }
            }
        }
    }

    /// Ok: all senders of reload requests are gone.
    async fn watch(
        &mut self,
        live: &LiveCatalogue,
        requests: &mut mpsc::Receiver<Reload>,
        changed: &(impl Fn(Changed) + Send),
    ) -> Result<(), PgError> {
        let mut rested = Instant::now();
        loop {
            if self.connection.is_notified() && rested <= Instant::now() {
                self.process_notifications(live, changed).await?;
                rested = Instant::now() + PAUSE_NOTIFIED;
            }
            tokio::select! {
                () = tokio::time::sleep_until(rested), if self.connection.is_notified() => {}
                message = self.connection.receive() => match message? {
                    Message::NotificationResponse(body) => self.connection.keep(&body)?,
                    Message::ErrorResponse(body) => return Err(server_error(&body)?),
                    _ => {}
                },
                request = requests.recv() => {
                    let Some(Reload { reason, asked, answer }) = request else { return Ok(()) };
                    // PostgreSQL sends pending notifications before the answer to a statement (PostgreSQL,
                    // src/backend/tcop/postgres.c: PostgresMain)
                    self.connection.query_text("select 1").await?;
                    self.process_notifications(live, changed).await?;
                    let now = live.now().clone();
                    match reason {
                        Reason::Unknown if now.read.elapsed() < PAUSE_UNKNOWN => {}
                        // PostgreSQL has notified of T-SQL's definitions
                        Reason::Changed => {}
                        Reason::Unknown | Reason::Moved | Reason::Refused if now.read > asked => {}
                        // a catalogue read before or during the refusal may contain the refused state
                        Reason::Outdated if now.all_read > asked => {}
                        Reason::Outdated => {
                            // the same call may succeed after it is prepared again
                            let all = read_all(&mut self.connection, &self.metrics, Some(&now.catalogue)).await?;
                            live.current.store(Arc::new(all));
                            changed(Changed::All);
                        }
                        _ => self.read_changes(live, Extent::Changes).await?,
                    }
                    let _ = answer.send(true);
                }
            }
        }
    }

    /// Processes the notifications that have arrived. Those that arrive during the reading may be of changes that it
    /// has missed, and remain.
    async fn process_notifications(
        &mut self,
        live: &LiveCatalogue,
        changed: &(impl Fn(Changed) + Send),
    ) -> Result<(), PgError> {
        let notified = self.connection.notifications();
        let are_all_of = |known: &[&str]| notified.iter().all(|what| known.contains(&what.as_str()));
        if !are_all_of(&[COLUMNS]) {
            let are_procedures = are_all_of(&[COLUMNS, PROCEDURES]);
            let extent = if are_procedures { Extent::Procedures } else { Extent::Changes };
            self.read_changes(live, extent).await?;
        }
        if !are_all_of(&[MOVED, COLUMNS, PROCEDURES]) {
            changed(Changed::All);
        } else if !are_all_of(&[MOVED]) {
            changed(Changed::Declarations);
        }
        Ok(())
    }

    async fn listening(&self) -> Result<Connection, PgError> {
        listening(&self.address, &self.role, &self.password, &self.priority).await
    }

    async fn read_changes(&mut self, live: &LiveCatalogue, extent: Extent) -> Result<(), PgError> {
        let before = live.now().clone();
        let mut snapshot = read(&mut self.connection, &self.metrics, Some(&before.catalogue), extent).await?;
        snapshot.all_read = before.all_read;
        live.current.store(Arc::new(snapshot));
        debug!("the catalogue was read again");
        Ok(())
    }
}

async fn listening(
    address: &Address,
    role: &str,
    password: &str,
    priority: &WriterPriority,
) -> Result<Connection, PgError> {
    let mut connection = Connection::open_own(address, role, password, "ringlog catalogue", &[]).await?;
    priority.look(&mut connection).await?;
    connection.listen(CHANNEL).await?;
    Ok(connection)
}

async fn read_all(
    connection: &mut Connection,
    metrics: &Metrics,
    before: Option<&Catalogue>,
) -> Result<Snapshot, PgError> {
    read(connection, metrics, before, Extent::All).await
}

async fn read(
    connection: &mut Connection,
    metrics: &Metrics,
    before: Option<&Catalogue>,
    extent: Extent,
) -> Result<Snapshot, PgError> {
    let began = Instant::now();
    let catalogue = Arc::new(Catalogue::read(connection, metrics, before, extent).await?);
    let orders = connection.query_text(BYTE_ORDER).await?;
    set_big_endian(orders.into_iter().flatten().flatten().any(|setting| setting == "tsql.byte_order=big"));
    let name = connection.parameter("TimeZone").unwrap_or("UTC").to_owned();
    let zone = Zone::new(&name)
        .map_err(|_| PgError::Protocol(format!("the time zone '{name}', which is not known here")))?;
    Ok(Snapshot { catalogue, zone, read: began, all_read: began })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::fake::{Fake, Peer};

    async fn watcher(fake: &Fake) -> (Watcher, Peer) {
        let (metrics, priority) = (Arc::default(), Arc::new(WriterPriority::new(false, None)));
        let connecting = Watcher::connect(
            fake.address(),
            String::from("gateway"),
            String::from("password"),
            metrics,
            priority,
        );
        let serving = async {
            let mut peer = fake.accept().await;
            while peer.statement().await != BYTE_ORDER {
                peer.answer().await;
            }
            peer.answer().await;
            peer
        };
        let (watcher, peer) = tokio::join!(connecting, serving);
        (watcher.unwrap(), peer)
    }

    #[tokio::test]
    async fn a_name_that_was_made_a_moment_ago_is_known() {
        let fake = Fake::new().await;
        let (mut watcher, mut peer) = watcher(&fake).await;
        let live = LiveCatalogue::new(&mut watcher);
        let before = live.now().catalogue.clone();
        tokio::spawn(watcher.run(live.clone(), |_| {}));
        let postgresql = async {
            // its notification has not arrived yet when the name is requested
            peer.statement().await;
            peer.notify(CHANNEL, "").await;
            peer.answer().await;
            while peer.statement().await != BYTE_ORDER {
                peer.answer().await;
            }
            peer.answer().await;
        };
        let (is_there, ()) = tokio::join!(live.reload(Reason::Unknown), postgresql);
        assert!(is_there && !Arc::ptr_eq(&before, &live.now().catalogue));
    }

    #[tokio::test]
    async fn plans_of_group_commit_outlast_procedures_of_tsql() {
        let fake = Fake::new().await;
        let (mut watcher, mut peer) = watcher(&fake).await;
        let live = LiveCatalogue::new(&mut watcher);
        let (sender, mut heard) = mpsc::unbounded_channel();
        tokio::spawn(watcher.run(live.clone(), move |changed| sender.send(changed).unwrap()));
        for (payload, expected) in [
            (PROCEDURES, Changed::Declarations),
            (COLUMNS, Changed::Declarations),
            ("", Changed::All),
            ("of a later version", Changed::All),
        ] {
            peer.notify(CHANNEL, payload).await;
            let announced = loop {
                tokio::select! {
                    _ = peer.statement() => peer.answer().await,
                    announced = heard.recv() => break announced,
                }
            };
            assert_eq!(announced, Some(expected), "{payload}");
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_server_that_is_gone() {
        let fake = Fake::new().await;
        let (mut watcher, mut peer) = watcher(&fake).await;
        let live = LiveCatalogue::new(&mut watcher);
        tokio::spawn(watcher.run(live.clone(), |_| {}));
        peer.say(b'E', "FATAL", "57P01", "terminating connection").await;
        drop((peer, fake));
        for _ in 0..3 {
            assert!(!live.reload(Reason::Unknown).await);
        }
    }
}
