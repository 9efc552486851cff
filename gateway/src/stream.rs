//! The stream of a connection, of any kind.

use socket2::SockRef;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

pub trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// PostgreSQL's stream.
pub trait ServerStream: Stream {
    /// Whether bytes, or the end, have arrived on this machine. The runtime may notice that later.
    fn has_arrived(&self) -> bool;
}

impl ServerStream for TcpStream {
    fn has_arrived(&self) -> bool {
        has_arrived(self)
    }
}

impl ServerStream for UnixStream {
    fn has_arrived(&self) -> bool {
        has_arrived(self)
    }
}

impl ServerStream for TlsStream<TcpStream> {
    fn has_arrived(&self) -> bool {
        has_arrived(self.get_ref().0)
    }
}

fn has_arrived(socket: &impl AsFd) -> bool {
    let found = SockRef::from(socket).peek(&mut [MaybeUninit::uninit()]);
    !found.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// A client's stream.
pub trait ClientStream: Stream {
    /// Registers the socket with the current thread, which its bytes wake from now on.
    fn register_here(&mut self) -> io::Result<()>;
}
