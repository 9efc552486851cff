//! Accepting clients: a task for each, and a limit on their number.

use prometheus_client::metrics::gauge::Gauge;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::error;

/// Clients connected at one time, logged in or not; the next waits in the listen queue.
const MOST_CLIENTS: usize = 16_000;
/// Pause when the process has run out of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Starts the task that `serve` returns for each client, until `stopping`; then it accepts no more clients, and returns
/// when the last task has ended.
pub async fn accept<Session: Future<Output = ()> + Send + 'static>(
    listener: TcpListener,
    stopping: CancellationToken,
    serve: impl Fn(TcpStream, SocketAddr) -> Session,
) {
    let permits = Arc::new(Semaphore::new(MOST_CLIENTS));
    let sessions = TaskTracker::new();
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopping.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let session = serve(stream, peer);
                sessions.spawn(async move {
                    let _permit = permit;
                    session.await;
                });
            }
            Err(error) => {
                error!("accepting a client: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    sessions.close();
    sessions.wait().await;
}

/// Counts a connected client in the metrics until it is dropped, also when its session panics.
pub struct Counted(Gauge);

impl Counted {
    pub fn new(clients: &Gauge) -> Counted {
        clients.inc();
        Counted(clients.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_session_that_panics_is_counted_no_more() {
        let clients = Gauge::default();
        let counted = clients.clone();
        let session = tokio::spawn(async move {
            let _counted = Counted::new(&counted);
            assert_eq!(counted.get(), 1);
            panic!("a session's panic, which is part of this test");
        });
        assert!(session.await.unwrap_err().is_panic());
        assert_eq!(clients.get(), 0);
    }
}
