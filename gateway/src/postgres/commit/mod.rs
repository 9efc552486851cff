//! Group commit. Calls that wait at the same moment go to PostgreSQL as one pipeline under one Sync, which
//! is one transaction; each is answered only when PostgreSQL has reported it committed. When a call of a
//! group fails the whole group is rolled back and its calls run again, each in its own transaction.
//! There is no timer: whoever comes while nothing runs goes at once.
//!
//! All calls of one procedure use the same connection (`routes.rs`), whose task is its lane (`lane.rs`). A group is
//! durable and leaves nothing behind, whatever its procedures do (`group.rs`).

mod group;
mod lane;
mod routes;

use super::error::{Notice, PgError};
use bytes::Bytes;
pub use lane::Maker;
use routes::Routes;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a call may hold up the others of its group, or wait for a lock where it is one of ringlog's own. One that takes longer is rolled back with them, the others
/// run again at once, and its procedure runs on another connection until it is quick again.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whose a procedure is, which decides the connections it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The installer's own, which are known to change nothing of their connection.
    Installer,
    /// Another's, by its oid.
    Site(u32),
}

/// A statement that can be prepared on any connection.
#[derive(Debug)]
pub struct Statement {
    /// Unique in the process.
    pub id: u64,
    /// What decides the connection: the procedure's oid and its owner.
    pub procedure: u32,
    pub owner: Owner,
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
    /// By its oid: a name may have been dropped and made again, or have become another's.
    role: u32,
    values: Bytes,
    claim: Claim,
    answer: Answer,
}

/// The connections of group commit and their queues.
#[derive(Clone)]
pub struct GroupCommit {
    routes: Arc<Routes>,
}

impl GroupCommit {
    /// Starts `connections` tasks on `threads` that connect as the gateway's own role when they are first needed.
    pub fn start(maker: Maker, connections: usize) -> GroupCommit {
        GroupCommit { routes: Routes::new(maker, connections) }
    }

    /// Runs one call under `role` and returns once it is committed or has failed for good. It does not run when
    /// `claim` is withdrawn in time.
    pub async fn call(
        &self,
        statement: Arc<Statement>,
        role: u32,
        values: Bytes,
        claim: Claim,
    ) -> Result<Outcome, PgError> {
        let (answer, outcome) = oneshot::channel();
        let queue = self.routes.queue(&statement, values.len());
        let call = Call { statement, role, values, claim, answer };
        queue.send(call).await.map_err(|_| stopping())?;
        outcome.await.map_err(|_| stopping())?
    }
}

fn stopping() -> PgError {
    PgError::Io(std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the gateway is stopping"))
}

fn not_written(message: String) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "08001".into(),
        message,
        ..Notice::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::priority::WriterPriority;
    use crate::postgres::Address;
    use tokio::runtime::Handle;

    #[test]
    fn a_call_is_sent_or_withdrawn() {
        let claim = Claim::default();
        assert!(claim.send() && claim.send() && !claim.withdraw());
        claim.renew();
        assert!(claim.withdraw() && !claim.send() && !claim.withdraw());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_withdrawn_does_not_wait_for_postgresql() {
        let host = crate::postgres::Host { name: "/nowhere".into(), port: 1 };
        let address = Address::new(vec![host], String::new(), crate::postgres::Encryption::default(), false);
        let maker = Maker {
            threads: Handle::current(),
            address,
            user: "nobody".into(),
            password: String::new(),
            metrics: Arc::default(),
            priority: Arc::new(WriterPriority::new(false, None)),
        };
        let commit = GroupCommit::start(maker, 1);
        let statement = || {
            Arc::new(Statement {
                id: 1,
                procedure: 1,
                owner: Owner::Installer,
                sql: String::new(),
                parameter_types: Vec::new(),
                parameter_formats: Vec::new(),
            })
        };
        let claim = Claim::default();
        let call = |claim: &Claim| commit.call(statement(), 10, Bytes::new(), claim.clone());
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
