//! Group commit. Calls that wait at the same moment go to PostgreSQL as one pipeline under one Sync, which
//! is one transaction; each is answered only when PostgreSQL has reported it committed. When a call of a
//! group fails the whole group is rolled back and its calls run again, each in its own transaction.
//! There is no timer: whoever comes while nothing runs goes at once.
//!
//! All calls of one procedure use the same connection, so rows of one table are never contended and a
//! statement is planned once.

use super::connection::{put_value, row_count, server_error, server_notice, unexpected, Connection, Message};
use super::error::{Notice, PgError};
use super::Address;
use crate::metrics::Metrics;
use bytes::{Bytes, BytesMut};
use postgres_protocol::message::frontend;
use postgres_protocol::IsNull;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The most calls and the most bytes of one transaction: bounds how long a call waits for its companions.
const LARGEST_GROUP: usize = 64;
const LARGEST_BYTES: usize = 1 << 20;
/// Calls that may wait in one queue before senders wait themselves.
const QUEUE: usize = 4096;
/// Pause before PostgreSQL is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// A statement that can be prepared on any connection.
#[derive(Debug)]
pub struct Statement {
    /// Unique in the process.
    pub id: u64,
    /// What decides the connection: the procedure's oid.
    pub lane: u32,
    pub sql: String,
    pub parameter_types: Vec<u32>,
    /// How each parameter is sent, 0 for text and 1 for binary.
    pub parameter_formats: Vec<i16>,
}

/// What a committed call gave.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The row of results in binary, when the statement gave one.
    pub row: Option<Bytes>,
    pub notices: Vec<Notice>,
    pub count: Option<u64>,
}

/// Whether a call has gone to PostgreSQL or was withdrawn before: what came first holds.
#[derive(Clone, Debug, Default)]
pub struct Claim(Arc<AtomicU8>);

const WAITING: u8 = 0;
const SENT: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Claim {
    /// Another call waits, those before being over.
    pub fn renew(&self) {
        self.0.store(WAITING, Ordering::Release);
    }

    /// Whether the call may go to PostgreSQL; from then on its result stands.
    fn send(&self) -> bool {
        let before = self.0.compare_exchange(WAITING, SENT, Ordering::AcqRel, Ordering::Acquire);
        matches!(before, Ok(_) | Err(SENT))
    }

    /// Takes the call back. False: it has been sent.
    pub fn withdraw(&self) -> bool {
        let before = self.0.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire);
        before.is_ok()
    }
}

type Answer = oneshot::Sender<Result<Outcome, PgError>>;

struct Call {
    statement: Arc<Statement>,
    role: Arc<str>,
    values: Bytes,
    claim: Claim,
    answer: Answer,
}

/// The connections of group commit and their queues.
#[derive(Clone)]
pub struct GroupCommit {
    lanes: Arc<Lanes>,
}

struct Lanes {
    queues: Vec<mpsc::Sender<Call>>,
    assigned: Mutex<HashMap<u32, usize>>,
    next: AtomicUsize,
}

impl GroupCommit {
    /// Starts `connections` tasks that connect as the gateway's own role when they are first needed.
    pub fn start(
        address: &Address,
        user: &str,
        password: &str,
        connections: usize,
        metrics: &Arc<Metrics>,
    ) -> GroupCommit {
        let queues = (0..connections)
            .map(|_| {
                let (sender, receiver) = mpsc::channel(QUEUE);
                let lane = Lane {
                    address: address.clone(),
                    user: user.to_owned(),
                    password: password.to_owned(),
                    metrics: metrics.clone(),
                    open: None,
                };
                tokio::spawn(lane.run(receiver));
                sender
            })
            .collect();
        GroupCommit {
            lanes: Arc::new(Lanes {
                queues,
                assigned: Mutex::new(HashMap::new()),
                next: AtomicUsize::new(0),
            }),
        }
    }

    /// Runs one call under `role` and returns once it is committed or has failed for good. It does not run when
    /// `claim` is withdrawn in time.
    pub async fn call(
        &self,
        statement: Arc<Statement>,
        role: Arc<str>,
        values: Bytes,
        claim: Claim,
    ) -> Result<Outcome, PgError> {
        let (answer, outcome) = oneshot::channel();
        let queue = self.lanes.queue(statement.lane);
        let call = Call { statement, role, values, claim, answer };
        queue.send(call).await.map_err(|_| stopping())?;
        outcome.await.map_err(|_| stopping())?
    }
}

fn stopping() -> PgError {
    PgError::Io(std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the gateway is stopping"))
}

impl Lanes {
    /// Procedures are dealt to the connections in turn as they first appear.
    fn queue(&self, lane: u32) -> &mpsc::Sender<Call> {
        let mut assigned = match self.assigned.lock() {
            Ok(assigned) => assigned,
            Err(poisoned) => poisoned.into_inner(),
        };
        let index = *assigned
            .entry(lane)
            .or_insert_with(|| self.next.fetch_add(1, Ordering::Relaxed) % self.queues.len());
        &self.queues[index]
    }
}

struct Lane {
    address: Address,
    user: String,
    password: String,
    metrics: Arc<Metrics>,
    open: Option<Open>,
}

/// A connection with what is prepared on it and the role it acts as.
struct Open {
    connection: Connection,
    prepared: HashMap<u64, String>,
    role: Option<Arc<str>>,
}

const SET_ROLE: &str = "ringlog_set_role";

impl Lane {
    async fn run(mut self, mut queue: mpsc::Receiver<Call>) {
        let mut group = Vec::with_capacity(LARGEST_GROUP);
        while let Some(first) = self.next_call(&mut queue).await {
            group.push(first);
            gather(&mut queue, &mut group).await;
            self.commit(&mut group).await;
        }
    }

    /// The next call in the queue. A connection that dies meanwhile is let go, so that the call finds
    /// a new one instead of a doubtful failure.
    async fn next_call(&mut self, queue: &mut mpsc::Receiver<Call>) -> Option<Call> {
        while let Some(open) = &mut self.open {
            tokio::select! {
                biased;
                call = queue.recv() => return call,
                idle = open.connection.receive() => match idle {
                    Ok(Message::NoticeResponse(_) | Message::NotificationResponse(_)) => {}
                    _ => self.open = None,
                },
            }
        }
        queue.recv().await
    }

    /// Answers every call of the group.
    async fn commit(&mut self, group: &mut Vec<Call>) {
        let open = match self.connected().await {
            Ok(open) => open,
            Err(error) => {
                let message = format!("PostgreSQL cannot be reached, nothing was written: {error}");
                for call in group.drain(..) {
                    let _ = call.answer.send(Err(not_written(message.clone())));
                }
                tokio::time::sleep(RETRY).await;
                return;
            }
        };
        group.retain(|call| call.claim.send());
        if group.is_empty() {
            return;
        }
        let failed = match open.run(group).await {
            Ok(outcomes) => {
                self.metrics.groups.observe(outcomes.len() as f64);
                for (call, outcome) in group.drain(..).zip(outcomes) {
                    let _ = call.answer.send(Ok(outcome));
                }
                return;
            }
            Err(error) => error,
        };
        if failed.is_fatal() {
            // whether the group committed is not known: every sender hears that and may repeat its call
            self.open = None;
            let message = failed.to_string();
            for call in group.drain(..) {
                let _ = call.answer.send(Err(PgError::Io(std::io::Error::other(message.clone()))));
            }
        } else if group.len() == 1 {
            for call in group.drain(..) {
                let _ = call.answer.send(Err(PgError::Server(Box::new(notice_of(&failed)))));
            }
        } else {
            self.metrics.split_groups.inc();
            self.one_by_one(group).await;
        }
    }

    async fn one_by_one(&mut self, group: &mut Vec<Call>) {
        for call in group.drain(..) {
            let mut alone = vec![call];
            // a group of one never comes back here
            Box::pin(self.commit(&mut alone)).await;
        }
    }

    async fn connected(&mut self) -> Result<&mut Open, PgError> {
        if self.open.is_none() {
            let mut connection =
                Connection::open(&self.address, &self.user, &self.password, "ringlog group commit").await?;
            // as a parameter, so that no name of a role is ever pasted into SQL
            connection.prepare(SET_ROLE, "select set_config('role', $1, false)", &[25]).await?;
            self.open = Some(Open { connection, prepared: HashMap::new(), role: None });
        }
        self.open.as_mut().ok_or_else(|| unexpected("connecting"))
    }
}

/// Adds the calls that wait. Those whose bytes have arrived but were not read yet are on their way to the
/// queue: it is looked at again after every round of reading that brought some. That costs a lone call one
/// look at the sockets and no waiting.
async fn gather(queue: &mut mpsc::Receiver<Call>, group: &mut Vec<Call>) {
    let mut bytes: usize = group.iter().map(|call| call.values.len()).sum();
    loop {
        tokio::task::yield_now().await;
        let before = group.len();
        while group.len() < LARGEST_GROUP && bytes < LARGEST_BYTES {
            let Ok(next) = queue.try_recv() else { break };
            bytes += next.values.len();
            group.push(next);
        }
        if group.len() == before {
            return;
        }
    }
}

fn not_written(message: String) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "08001".into(),
        message,
        ..Notice::default()
    }))
}

fn notice_of(error: &PgError) -> Notice {
    match error {
        PgError::Server(notice) => (**notice).clone(),
        other => Notice { message: other.to_string(), ..Notice::default() },
    }
}

impl Open {
    /// Runs all calls in one transaction. Ok only after PostgreSQL has reported it committed.
    async fn run(&mut self, group: &[Call]) -> Result<Vec<Outcome>, PgError> {
        let before = self.role.clone();
        let mut fresh = Vec::new();
        // which of the executed statements are calls, and which are our own role changes
        let mut is_call = Vec::with_capacity(group.len() + 2);
        for call in group {
            if self.role.as_ref() != Some(&call.role) {
                self.put_role(&call.role)?;
                is_call.push(false);
            }
            self.put_call(call, &mut fresh)?;
            is_call.push(true);
        }
        self.connection.put_sync();
        self.connection.flush().await?;
        let outcome = self.read(&is_call, group.len()).await;
        if outcome.is_err() {
            // the role went back with the transaction; a Parse stays only where it succeeded
            self.role = before;
            for id in fresh {
                if let Some(name) = self.prepared.remove(&id) {
                    frontend::close(b'S', &name, self.connection.output())?;
                }
            }
        }
        outcome
    }

    fn put_role(&mut self, role: &Arc<str>) -> Result<(), PgError> {
        let mut value = BytesMut::with_capacity(4 + role.len());
        put_value::<PgError>(&mut value, |out| {
            out.extend_from_slice(role.as_bytes());
            Ok(IsNull::No)
        })?;
        self.connection.put_execute(SET_ROLE, &[1], &value, &[], 0);
        self.role = Some(role.clone());
        Ok(())
    }

    fn put_call(&mut self, call: &Call, fresh: &mut Vec<u64>) -> Result<(), PgError> {
        let statement = &call.statement;
        if !self.prepared.contains_key(&statement.id) {
            let name = self.connection.statement_name();
            let types = statement.parameter_types.iter().copied();
            frontend::parse(&name, &statement.sql, types, self.connection.output())?;
            self.prepared.insert(statement.id, name);
            fresh.push(statement.id);
        }
        if let Some(name) = self.prepared.get(&statement.id) {
            self.connection.put_execute(name, &statement.parameter_formats, &call.values, &[1], 0);
        }
        Ok(())
    }

    async fn read(&mut self, is_call: &[bool], calls: usize) -> Result<Vec<Outcome>, PgError> {
        let mut outcomes = Vec::with_capacity(calls);
        let mut kinds = is_call.iter();
        let mut current = Outcome::default();
        let mut error = None;
        loop {
            match self.connection.receive().await? {
                Message::DataRow(body) => current.row = Some(body.buffer_bytes().clone()),
                Message::CommandComplete(body) => {
                    let mut done = std::mem::take(&mut current);
                    if kinds.next() == Some(&true) {
                        done.count = row_count(body.tag()?);
                        outcomes.push(done);
                    }
                }
                Message::NoticeResponse(body) => current.notices.push(server_notice(&body)?),
                Message::ErrorResponse(body) => {
                    let mut failure = server_error(&body)?;
                    if failure.is_fatal() {
                        return Err(failure);
                    }
                    if let PgError::Server(notice) = &mut failure {
                        notice.before = std::mem::take(&mut current.notices);
                    }
                    error = Some(failure);
                }
                Message::ReadyForQuery(_) => return error.map_or(Ok(outcomes), Err),
                Message::ParseComplete
                | Message::BindComplete
                | Message::CloseComplete
                | Message::NotificationResponse(_) => {}
                _ => return Err(unexpected("group commit")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_sent_or_withdrawn() {
        let claim = Claim::default();
        assert!(claim.send() && claim.send() && !claim.withdraw());
        claim.renew();
        assert!(claim.withdraw() && !claim.send() && !claim.withdraw());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_withdrawn_does_not_wait_for_postgresql() {
        let address = Address { host: "/nowhere".into(), port: 1, database: String::new() };
        let commit = GroupCommit::start(&address, "nobody", "", 1, &Arc::new(Metrics::default()));
        let statement = || {
            Arc::new(Statement {
                id: 1,
                lane: 1,
                sql: String::new(),
                parameter_types: Vec::new(),
                parameter_formats: Vec::new(),
            })
        };
        let claim = Claim::default();
        let call = |claim: &Claim| commit.call(statement(), "role".into(), Bytes::new(), claim.clone());
        let error = call(&claim).await.unwrap_err();
        assert!(error.to_string().contains("nothing was written"), "{error}");
        claim.renew();
        tokio::select! {
            biased;
            _ = call(&claim) => panic!("the lane sleeps"),
            () = std::future::ready(()) => assert!(claim.withdraw()),
        }
    }
}
