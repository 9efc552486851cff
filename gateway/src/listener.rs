//! The gateway's socket, with a session for every client.

use crate::accept::accept;
use crate::admission::Entry;
use crate::client::SessionError;
use crate::gateway::Gateway;
use crate::session;
use crate::socket::Socket;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, error_span, field, warn, Span};

/// A silent client is probed after this and dropped when it does not answer.
const KEEPALIVE: Duration = Duration::from_secs(60);

static NEXT_SPID: AtomicU16 = AtomicU16::new(1);

/// Serves clients until the gateway stops; then no more are accepted, and this returns when the last
/// session has ended.
pub async fn run(listener: TcpListener, gateway: Arc<Gateway>) {
    let stopping = gateway.stopping.clone();
    let serve = |stream, peer: SocketAddr| {
        let entry = gateway.admission.enter(peer.ip());
        let gateway = gateway.clone();
        let spid = next_spid();
        // entered where something is logged: to enter it at each turn of the session costs a call more than a lock
        let span = error_span!("session", spid, client = %peer, login = field::Empty);
        async move {
            let metrics = gateway.metrics.clone();
            metrics.clients.inc();
            span.in_scope(|| debug!("connected"));
            let ended = serve(stream, spid, entry, gateway, &span).await;
            span.in_scope(|| match ended {
                Err(error) if !has_left(&error) => warn!("{error}"),
                _ => debug!("ended"),
            });
            metrics.clients.dec();
        }
    };
    accept(listener, stopping, serve).await;
}

fn next_spid() -> u16 {
    match NEXT_SPID.fetch_add(1, Ordering::Relaxed) {
        // a client takes 0 for no number
        0 => NEXT_SPID.fetch_add(1, Ordering::Relaxed),
        spid => spid,
    }
}

async fn serve(
    stream: TcpStream,
    spid: u16,
    entry: Entry,
    gateway: Arc<Gateway>,
    span: &Span,
) -> Result<(), SessionError> {
    prepare(&stream)?;
    let socket = Socket::new(stream, gateway.metrics.clone());
    session::serve(Box::new(socket), spid, entry, gateway, span).await
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))
}

/// A client that just goes away is nothing to report.
fn has_left(error: &SessionError) -> bool {
    matches!(error, SessionError::Closed | SessionError::Io(_) | SessionError::Evicted)
}
