//! Two servers in parallel: one answers every client, byte for byte; the other receives the same requests, and its
//! answers are compared. The other server never affects a client.

pub mod answer;
mod boundary;
mod python;
mod record;
mod request;
mod shadow;
mod tap;

pub use python::PyMirror;
pub use record::Record;

use crate::listener::accept::{accept, Counted};
use crate::threads::Pool;
use boundary::Boundary;
use shadow::Shadow;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tap::{From, Tap};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{watch, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error_span, warn, Instrument};

const CONNECTING: Duration = Duration::from_secs(10);
/// A working session is checked again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const BUFFER: usize = 32 << 10;

/// The server that answers, and the channel that notifies open sessions of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answering {
    pub new: bool,
    /// Counts the changes after which idle sessions end, so that their clients connect again.
    pub ends: u64,
}

/// The two servers, as host:port.
#[derive(Clone, Debug)]
pub struct Servers {
    pub old: String,
    pub new: String,
}

/// Forwards clients' connections until `stopping`.
pub async fn run(
    listener: TcpListener,
    servers: Servers,
    answering: watch::Receiver<Answering>,
    record: Arc<Record>,
    shadows: Pool,
    stopping: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(tap::OF_ALL));
    let serve = |mut client: TcpStream, peer: SocketAddr| {
        let (servers, record, room) = (servers.clone(), record.clone(), room.clone());
        let (answering, shadows, stopping) = (answering.clone(), shadows.clone(), stopping.clone());
        let session = async move {
            let _counted = Counted::new(&record.clients);
            let passing = async {
                let now = *answering.borrow();
                let (main, other) =
                    if now.new { (servers.new, servers.old) } else { (servers.old, servers.new) };
                let server = match timeout(CONNECTING, TcpStream::connect(&main)).await {
                    Ok(Ok(server)) => server,
                    _ => {
                        warn!("{main} cannot be reached");
                        // a close with unread bytes sends a reset, which some clients do not report as an error
                        let _ = timeout(CONNECTING, client.read(&mut [0; BUFFER])).await;
                        return;
                    }
                };
                let (tap, pieces) = tap::tap(&room);
                let shadow = Shadow::new(pieces, record.clone(), peer.to_string(), now.new);
                shadows.spawn(shadow.run(other));
                let _ = pass(client, server, &tap, answering, now.ends).await;
            };
            tokio::select! {
                () = passing => {}
                () = stopping.cancelled() => {}
            }
        };
        session.instrument(error_span!("session", client = %peer))
    };
    accept(listener, stopping.clone(), serve).await;
}

/// Forwards a session's bytes in both directions until one side ends, or until it is idle after a change. `began`: the
/// number of changes before its server was chosen; another one may have followed.
async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    tap: &Tap,
    mut answering: watch::Receiver<Answering>,
    began: u64,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (client_in, mut client_out) = client.split();
    let (server_in, mut server_out) = server.split();
    let rest = Mutex::new((Boundary::default(), Boundary::default()));
    // a request counts from its first byte received, an answer when its last byte has been sent
    let requested = |bytes: &[u8]| {
        tap.give(From::Client, bytes);
        if let Ok(mut rest) = rest.lock() {
            rest.0.pass(bytes);
        }
    };
    let answered = |bytes: &[u8]| {
        if let Ok(mut rest) = rest.lock() {
            rest.1.pass(bytes);
        }
    };
    let up = copy(client_in, &mut server_out, requested, |_| {});
    let down = copy(server_in, &mut client_out, |bytes| tap.give(From::Old, bytes), answered);
    let change = async {
        while answering.borrow().ends == began {
            if answering.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        while !rest.lock().is_ok_and(|rest| is_at_rest(&rest)) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    tokio::select! {
        both = async { tokio::try_join!(up, down) } => both.map(|_| ()),
        () = change => Ok(()),
    }
}

/// Every request has been answered, and none has begun.
fn is_at_rest((requests, answers): &(Boundary, Boundary)) -> bool {
    requests.is_at_rest() && answers.is_at_rest() && answers.messages >= requests.messages
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    mut hear: impl FnMut(&[u8]),
    mut passed: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        let bytes = buffer.get(..length).unwrap_or(&[]);
        // recorded before it is forwarded, so that the shadow gets a request before its answer
        hear(bytes);
        to.write_all(bytes).await?;
        passed(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: [u8; 9] = [1, 1, 0, 9, 0, 0, 0, 0, b'r'];

    /// The two ends of a connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (there, here) = tokio::join!(TcpStream::connect(address), listener.accept());
        (there.unwrap(), here.unwrap().0)
    }

    #[tokio::test]
    async fn a_session_whose_server_was_chosen_before_a_switch_ends_by_it() {
        let ((_theirs, client), (server, _old)) = (pair().await, pair().await);
        let (switch, answering) = watch::channel(Answering::default());
        let began = answering.borrow().ends;
        // a change while the session was being connected
        switch.send_modify(|answering| answering.ends += 1);
        let (tap, _pieces) = tap::tap(&Arc::new(Semaphore::new(tap::OF_ALL)));
        pass(client, server, &tap, answering, began).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_by_a_switch_only_when_its_client_has_the_whole_answer() {
        const PACKETS: usize = 2000;
        let ((mut theirs, client), (server, mut old)) = (pair().await, pair().await);
        let (switch, answering) = watch::channel(Answering::default());
        let (tap, _pieces) = tap::tap(&Arc::new(Semaphore::new(tap::OF_ALL)));
        let session = tokio::spawn(async move { pass(client, server, &tap, answering, 0).await });
        theirs.write_all(&REQUEST).await.unwrap();
        old.read_exact(&mut [0; REQUEST.len()]).await.unwrap();
        // more than the sockets hold for a client that reads nothing
        let answering = tokio::spawn(async move {
            for number in 1..=PACKETS {
                let mut packet = vec![0; 4096];
                packet[..4].copy_from_slice(&[4, u8::from(number == PACKETS), 0x10, 0]);
                old.write_all(&packet).await.unwrap();
            }
            old
        });
        switch.send_modify(|answering| answering.ends += 1);
        let mut answer = vec![0; PACKETS * 4096];
        for part in answer.chunks_mut(32 << 10) {
            // at the interval at which idle sessions are checked
            tokio::time::sleep(LOOK_AGAIN).await;
            theirs.read_exact(part).await.unwrap();
        }
        assert_eq!(theirs.read(&mut [0]).await.unwrap(), 0);
        session.await.unwrap().unwrap();
        answering.await.unwrap();
    }
}
