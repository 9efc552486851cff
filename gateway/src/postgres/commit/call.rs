//! A call in the queue of group commit, and its outcome.

use crate::postgres::error::{Notice, PgError};
use crate::postgres::Values;
use bytes::Bytes;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a call may wait for a lock and thus delay its group. A call that waits longer is rolled back with the
/// group, the others run again at once, and its procedure runs on another connection until it is fast again.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Whether a call waited for a lock longer than PATIENCE (SQLSTATE lock_not_available).
pub fn is_too_late(error: &PgError) -> bool {
    error.sqlstate() == Some("55P03")
}

/// A statement that can be prepared on any connection.
#[derive(Debug)]
pub struct Statement {
    /// Unique in the process.
    pub id: u64,
    /// The procedure's oid, which determines the connection.
    pub procedure: u32,
    pub sql: String,
    pub parameter_types: Vec<u32>,
    /// The format of each parameter, 0 for text and 1 for binary.
    pub parameter_formats: Vec<i16>,
}

/// The result of a committed call.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The result row in binary, if the statement returned one.
    pub row: Option<Bytes>,
    pub notices: Vec<Notice>,
    pub count: Option<u64>,
    /// @@rowcount, if the procedure has reported it.
    pub row_count: Option<i64>,
    /// The versions of the rows of an updatable cursor, None for a deleted row.
    pub versions: Vec<Option<String>>,
}

/// Whether a call was sent to PostgreSQL or withdrawn before: the first of both counts.
#[derive(Clone, Debug, Default)]
pub struct Claim(Arc<AtomicU8>);

const WAITING: u8 = 0;
const SENT: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Claim {
    /// Resets the claim for another call; earlier calls are over.
    pub fn renew(&self) {
        self.0.store(WAITING, Ordering::Release);
    }

    /// Whether the call may be sent to PostgreSQL; its result counts from then on.
    pub fn send(&self) -> bool {
        let before = self.0.compare_exchange(WAITING, SENT, Ordering::AcqRel, Ordering::Acquire);
        matches!(before, Ok(_) | Err(SENT))
    }

    /// Withdraws the call. False: it has been sent.
    pub fn withdraw(&self) -> bool {
        let before = self.0.compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire);
        before.is_ok()
    }
}

pub type Answer = oneshot::Sender<Result<Outcome, PgError>>;

/// A call in the queue of a lane.
pub struct QueuedCall {
    pub statement: Arc<Statement>,
    /// The role's oid: its name may have been dropped and created again, or given to another role.
    pub role: u32,
    pub values: Values,
    pub claim: Claim,
    pub answer: Answer,
}

/// The error of a call that did not reach PostgreSQL.
pub fn not_written(message: String) -> PgError {
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

    #[test]
    fn a_call_is_sent_or_withdrawn() {
        let claim = Claim::default();
        assert!(claim.send() && claim.send() && !claim.withdraw());
        claim.renew();
        assert!(claim.withdraw() && !claim.send() && !claim.withdraw());
    }
}
