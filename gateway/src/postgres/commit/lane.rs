//! A lane: a connection, its queue of calls, and the task that commits them in groups.

use super::call::{is_too_late, not_written, QueuedCall, PATIENCE};
use super::group::{Failure, Open};
use crate::metrics::Metrics;
use crate::postgres::error::{Notice, PgError};
use crate::postgres::message::is_aside;
use crate::postgres::priority::WriterPriority;
use crate::postgres::{Address, Connection};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::debug;

/// The most calls and bytes of one transaction, which bound how long a call waits for its group.
const LARGEST_GROUP: usize = 64;
const LARGEST_BYTES: usize = 1 << 20;
/// Calls that may wait in a queue before senders block.
const QUEUE: usize = 4096;
/// Pause before PostgreSQL is tried again, with calls that wait and without.
const RETRY: Duration = Duration::from_millis(100);
const IDLE_RETRY: Duration = Duration::from_secs(1);
/// After this many failures of a group its calls run one by one.
const MOST_SPLITS: usize = 3;
/// A quarantine connection is closed after this idle time.
const IDLE: Duration = Duration::from_secs(60);

pub(super) type Queue = mpsc::Sender<QueuedCall>;

/// Moves slow procedures to quarantine and back.
pub(super) trait Elsewhere: Send + Sync {
    /// Puts a procedure in quarantine and returns the queue for its further calls.
    fn quarantine(&self, procedure: u32) -> Queue;

    /// Ends the quarantine of a procedure; a call in its lane was slow at `slow` for the last time.
    fn release(&self, procedure: u32, slow: Instant);
}

/// The kind of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneKind {
    /// Calls wait for a lock for at most PATIENCE. It connects at once and remains connected: later PostgreSQL may
    /// have no free connection.
    Quick,
    /// Slow procedures, without a time limit. It connects when it is needed.
    Quarantine,
}

/// Makes lanes.
pub struct Maker {
    pub threads: Handle,
    /// Its name in messages.
    pub server: String,
    pub address: Address,
    pub user: String,
    pub password: String,
    pub metrics: Arc<Metrics>,
    pub priority: Arc<WriterPriority>,
}

impl Maker {
    /// Starts a lane, which ends when its queue is dropped.
    pub(super) fn lane(self: &Arc<Maker>, kind: LaneKind, routes: Weak<dyn Elsewhere>) -> Queue {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let is_slow = kind == LaneKind::Quarantine;
        let lane = Lane { maker: self.clone(), kind, routes, open: None, slow: Instant::now(), is_slow };
        self.threads.spawn(lane.run(receiver));
        sender
    }

    async fn connect(&self, kind: LaneKind) -> Result<Open, PgError> {
        // Procedures are slow only if they wait for a lock; an overloaded machine must not count as that.
        let settings = [("statement_timeout", "0"), ("lock_timeout", "0")];
        let name = "ringlog group commit";
        let connection =
            Connection::open_own(&self.address, &self.user, &self.password, name, &settings).await?;
        self.priority.put_ahead(connection.process());
        let patience = (kind == LaneKind::Quick).then_some(PATIENCE);
        Open::new(connection, patience).await
    }
}

struct Lane {
    maker: Arc<Maker>,
    kind: LaneKind,
    routes: Weak<dyn Elsewhere>,
    open: Option<Open>,
    /// The time of the last transaction longer than PATIENCE, and whether the latest one was.
    slow: Instant,
    is_slow: bool,
}

impl Lane {
    async fn run(mut self, mut queue: mpsc::Receiver<QueuedCall>) {
        while let Some(first) = self.next_call(&mut queue).await {
            let mut group = vec![first];
            // slow calls do not wait for one another's acknowledgement
            if !self.is_slow {
                gather(&mut queue, &mut group).await;
            }
            self.commit(group).await;
        }
    }

    /// The next call in the queue. A connection that dies meanwhile is closed, so that the call gets a new one instead
    /// of a failure with unknown outcome.
    async fn next_call(&mut self, queue: &mut mpsc::Receiver<QueuedCall>) -> Option<QueuedCall> {
        loop {
            let Some(open) = &mut self.open else {
                if self.kind != LaneKind::Quick {
                    return queue.recv().await;
                }
                tokio::select! {
                    biased;
                    call = queue.recv() => return call,
                    opened = self.maker.connect(self.kind) => self.open = opened.ok(),
                }
                if self.open.is_none() {
                    tokio::select! {
                        biased;
                        call = queue.recv() => return call,
                        () = tokio::time::sleep(IDLE_RETRY) => {}
                    }
                }
                continue;
            };
            tokio::select! {
                biased;
                call = queue.recv() => return call,
                idle = open.connection.receive() => match idle.and_then(|message| is_aside(&message)) {
                    Ok(true) => {}
                    _ => self.open = None,
                },
                () = tokio::time::sleep(IDLE), if self.kind != LaneKind::Quick => self.open = None,
            }
        }
    }

    /// Answers every call of the group.
    async fn commit(&mut self, group: Vec<QueuedCall>) {
        let mut splits = 0;
        let mut groups = vec![group];
        while let Some(mut group) = groups.pop() {
            let Some(failure) = self.commit_once(&mut group).await else { continue };
            // everything was rolled back: calls may run again
            match self.stuck(&failure, &group) {
                Some(procedure) => {
                    let (stuck, rest) =
                        group.into_iter().partition(|call| call.statement.procedure == procedure);
                    groups.push(rest);
                    self.put_in_quarantine(procedure, stuck);
                }
                None => {
                    splits += 1;
                    self.maker.metrics.split_groups.inc();
                    debug!(
                        calls = group.len(),
                        sqlstate = failure.error.sqlstate(),
                        "a group was rolled back"
                    );
                    match failure.call.filter(|call| splits < MOST_SPLITS && *call < group.len()) {
                        Some(call) => {
                            let alone = group.remove(call);
                            groups.extend([vec![alone], group]);
                        }
                        None => groups.extend(group.into_iter().rev().map(|call| vec![call])),
                    }
                }
            }
        }
    }

    /// The procedure that has delayed the others, if that is why the group failed.
    fn stuck(&self, failure: &Failure, group: &[QueuedCall]) -> Option<u32> {
        let call = group.get(failure.call?)?;
        let is_late = self.kind == LaneKind::Quick && is_too_late(&failure.error);
        is_late.then_some(call.statement.procedure)
    }

    /// Moves a procedure and its calls to its own lane.
    fn put_in_quarantine(&self, procedure: u32, calls: Vec<QueuedCall>) {
        debug!(procedure, "slow: its calls take a connection of its own");
        let queue = match self.routes.upgrade() {
            Some(routes) => routes.quarantine(procedure),
            // the catalogue has changed, and all connections have been replaced
            None => self.maker.lane(LaneKind::Quarantine, self.routes.clone()),
        };
        for call in calls {
            if let Err(refused) = queue.try_send(call) {
                let text = "Too many calls wait for this procedure, nothing was written.";
                let _ = refused.into_inner().answer.send(Err(not_written(text.into())));
            }
        }
    }

    /// Runs a group and answers its calls. Returns the failure if some of the calls may succeed without the others, or
    /// on another lane.
    async fn commit_once(&mut self, group: &mut Vec<QueuedCall>) -> Option<Failure> {
        if group.is_empty() {
            return None;
        }
        if let Err(error) = self.connected().await {
            let message = format!("{} cannot be reached, nothing was written: {error}", self.maker.server);
            for call in group.drain(..) {
                let _ = call.answer.send(Err(not_written(message.clone())));
            }
            tokio::time::sleep(RETRY).await;
            return None;
        }
        group.retain(|call| call.claim.send());
        if group.is_empty() {
            return None;
        }
        let mut open = self.open.take()?;
        let began = Instant::now();
        let ran = open.run(group).await;
        self.is_slow = began.elapsed() > PATIENCE;
        let mut failed = None;
        match ran {
            Ok(outcomes) => {
                self.maker.metrics.groups.observe(outcomes.len() as f64);
                self.release(group);
                for (call, outcome) in group.drain(..).zip(outcomes) {
                    let _ = call.answer.send(Ok(outcome));
                }
            }
            Err(Failure { error: PgError::Unconfirmed, .. }) => {
                for call in group.drain(..) {
                    let _ = call.answer.send(Err(PgError::Unconfirmed));
                }
                return None;
            }
            Err(failure) if failure.error.is_fatal() => {
                // it is unknown whether the group committed: every sender gets an error and may repeat its call
                let message = failure.error.to_string();
                for call in group.drain(..) {
                    let _ = call.answer.send(Err(PgError::Io(std::io::Error::other(message.clone()))));
                }
                return None;
            }
            Err(failure) if group.len() == 1 && self.stuck(&failure, group).is_none() => {
                for call in group.drain(..) {
                    let _ = call.answer.send(Err(PgError::Server(Box::new(notice_of(&failure.error)))));
                }
            }
            Err(failure) => failed = Some(failure),
        }
        self.open = Some(open);
        failed
    }

    /// Returns procedures that are no longer slow to their lanes.
    fn release(&mut self, group: &[QueuedCall]) {
        if self.kind != LaneKind::Quarantine {
            return;
        }
        if self.is_slow {
            self.slow = Instant::now();
        } else if let Some(routes) = self.routes.upgrade() {
            for call in group {
                routes.release(call.statement.procedure, self.slow);
            }
        }
    }

    /// Ensures a connection. On one that PostgreSQL has closed, the outcome of the calls would be unknown.
    async fn connected(&mut self) -> Result<(), PgError> {
        if let Some(open) = &mut self.open {
            if open.connection.has_ended().await {
                self.open = None;
            }
        }
        if self.open.is_none() {
            self.open = Some(self.maker.connect(self.kind).await?);
        }
        Ok(())
    }
}

/// Adds the waiting calls. Calls whose bytes have arrived but are not read yet will soon be in the queue: it is checked
/// again after every round of reading that added some. For a single call this costs one check of the sockets and no
/// waiting.
async fn gather(queue: &mut mpsc::Receiver<QueuedCall>, group: &mut Vec<QueuedCall>) {
    let mut bytes: usize = group.iter().map(|call| call.values.length()).sum();
    loop {
        tokio::task::yield_now().await;
        let before = group.len();
        while group.len() < LARGEST_GROUP && bytes < LARGEST_BYTES {
            let Ok(next) = queue.try_recv() else { break };
            bytes += next.values.length();
            group.push(next);
        }
        if group.len() == before {
            return;
        }
    }
}

fn notice_of(error: &PgError) -> Notice {
    match error {
        PgError::Server(notice) => (**notice).clone(),
        other => Notice { message: other.to_string(), ..Notice::default() },
    }
}
