//! Group commit. Calls that wait at the same time are sent to PostgreSQL as one pipeline under one Sync, which is one
//! transaction; each is answered only after PostgreSQL has reported the commit. If a call fails, the whole group is
//! rolled back and its calls run again, each in its own transaction. There is no timer: a call that arrives while
//! nothing runs is sent at once.
//!
//! Only ringlog's own procedures use it (`catalogue/functions.sql`), which leave no state on the connection. Each call
//! acts as its caller's role (`group.rs`). All calls of one procedure use the same connection (`routes.rs`), whose task
//! is its lane (`lane.rs`).

mod call;
mod group;
mod lane;
mod routes;

pub use call::{not_written, Claim, Outcome, Statement};
pub use group::TALKS_TOO_MUCH;
pub use lane::Maker;

use super::error::PgError;
use super::Values;
use call::QueuedCall;
use routes::Routes;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The connections of group commit and their queues.
#[derive(Clone)]
pub struct GroupCommit {
    routes: Arc<Routes>,
}

impl GroupCommit {
    /// Starts `connections` tasks, each of which keeps a connection.
    pub fn start(maker: &Arc<Maker>, connections: usize) -> GroupCommit {
        GroupCommit { routes: Routes::new(maker, connections) }
    }

    /// Runs one call under `role` and returns once it is committed or has finally failed. It does not run if `claim` is
    /// withdrawn in time.
    pub async fn call(
        &self,
        statement: Arc<Statement>,
        role: u32,
        values: Values,
        claim: Claim,
    ) -> Result<Outcome, PgError> {
        let (answer, outcome) = oneshot::channel();
        let queue = self.routes.queue(&statement, values.length());
        let call = QueuedCall { statement, role, values, claim, answer };
        queue.send(call).await.map_err(|_| stopping())?;
        outcome.await.map_err(|_| stopping())?
    }
}

fn stopping() -> PgError {
    PgError::Io(std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the gateway is stopping"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::priority::WriterPriority;
    use crate::postgres::{Address, Wanted};
    use tokio::runtime::Handle;

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_withdrawn_does_not_wait_for_postgresql() {
        let host = crate::postgres::Host { name: "/nowhere".into(), port: 1 };
        let address =
            Address::new(vec![host], String::new(), crate::postgres::Encryption::default(), Wanted::Any);
        let maker = Arc::new(Maker {
            threads: Handle::current(),
            server: "PostgreSQL".into(),
            address,
            user: "nobody".into(),
            password: String::new(),
            metrics: Arc::default(),
            priority: Arc::new(WriterPriority::new(false, None)),
        });
        let commit = GroupCommit::start(&maker, 1);
        let statement = || {
            Arc::new(Statement {
                id: 1,
                procedure: 1,
                sql: String::new(),
                parameter_types: Vec::new(),
                parameter_formats: Vec::new(),
            })
        };
        let claim = Claim::default();
        let call = |claim: &Claim| commit.call(statement(), 10, Values::default(), claim.clone());
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
