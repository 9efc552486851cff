//! The gateway's socket, with a session for every client. It runs on the threads for statements, so calls do not wait
//! for new connections.

pub(crate) mod accept;
mod session_numbers;
mod socket;

use crate::client::SessionError;
use crate::gateway::Gateway;
use crate::limits::admission::Entry;
use crate::session;
use accept::{accept, Counted};
use session_numbers::SessionNumbers;
use socket::Socket;
use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{lookup_host, TcpListener, TcpSocket, TcpStream};
use tracing::{debug, error_span, field, warn, Span};

/// A silent client is probed after this time, and dropped if it does not answer.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: u32 = 4096;

/// Listens on the first address of `host` that is free.
pub async fn bind(host: String, port: u16) -> io::Result<TcpListener> {
    let mut failed = io::ErrorKind::AddrNotAvailable.into();
    for address in lookup_host((host, port)).await? {
        match listen(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // a restarted server does not wait for the connections of the previous one
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves clients until the gateway stops; then it accepts no more, and returns when the last session has ended.
pub async fn run(listener: TcpListener, gateway: Arc<Gateway>) {
    let stopping = gateway.stopping.clone();
    let numbers = SessionNumbers::default();
    let serve = |stream, peer: SocketAddr| {
        let entry = gateway.admission.enter(peer.ip());
        let gateway = gateway.clone();
        let number = numbers.next();
        let spid = number.spid;
        // entered only to log: entering it at each poll of the session would cost every call
        let span = error_span!("session", spid, client = %peer, login = field::Empty);
        async move {
            let _counted = Counted::new(&gateway.metrics.clients);
            span.in_scope(|| debug!("connected"));
            let ended = serve(stream, spid, entry, gateway, &span).await;
            span.in_scope(|| match ended {
                Err(error) if !has_left(&error) => warn!("{error}"),
                _ => debug!("ended"),
            });
            drop(number);
        }
    };
    accept(listener, stopping, serve).await;
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

/// Whether the client has disconnected, which is not logged.
fn has_left(error: &SessionError) -> bool {
    matches!(error, SessionError::Closed | SessionError::Io(_) | SessionError::Evicted)
}
