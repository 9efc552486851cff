//! The listening socket and a task for every client.

use crate::admission::Entry;
use crate::gateway::Gateway;
use crate::session::{self, SessionError};
use crate::traffic::Counted;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Clients connected at one time; the next waits in the listen queue.
const MOST_CLIENTS: usize = 10_000;
/// A silent client is probed after this and dropped when it does not answer.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Pause when the process has run out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

static NEXT_SPID: AtomicU16 = AtomicU16::new(1);

/// Serves clients until the gateway stops; then no more are accepted, and this returns when the last
/// session has ended.
pub async fn run(listener: TcpListener, gateway: Arc<Gateway>) {
    let places = Arc::new(Semaphore::new(MOST_CLIENTS));
    let mut stopping = gateway.stopping.clone();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.changed() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                log(&format!("accepting a client: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let entry = gateway.admission.enter(peer.ip());
        let gateway = gateway.clone();
        tokio::spawn(async move {
            let _place = place;
            let metrics = gateway.metrics.clone();
            metrics.clients.inc();
            if let Err(error) = serve(stream, entry, gateway).await {
                report(peer, &error);
            }
            metrics.clients.dec();
        });
    }
    drop(listener);
    let _ = places.acquire_many(MOST_CLIENTS as u32).await;
}

async fn serve(stream: TcpStream, entry: Entry, gateway: Arc<Gateway>) -> Result<(), SessionError> {
    prepare(&stream)?;
    let mut spid = NEXT_SPID.fetch_add(1, Ordering::Relaxed);
    if spid == 0 {
        // a client takes 0 for no number
        spid = NEXT_SPID.fetch_add(1, Ordering::Relaxed);
    }
    let stream = Counted::new(stream, gateway.metrics.clone());
    session::serve(stream, spid, entry, gateway).await
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))
}

/// A client that just goes away is nothing to report.
fn report(peer: SocketAddr, error: &SessionError) {
    match error {
        SessionError::Closed | SessionError::Io(_) | SessionError::Evicted => {}
        _ => log(&format!("{peer}: {error}")),
    }
}

/// A line for the operator. That nobody reads it any more is no reason to stop serving, as it would be for
/// `eprintln!`.
pub fn log(line: &str) {
    let _ = writeln!(io::stderr(), "ringlog gateway: {line}");
}
