//! The stream of a connection, of any kind.

use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

pub trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// A client's.
pub trait ClientStream: Stream {
    /// From now on the threads that this is called on are woken by what arrives.
    fn register_here(&mut self) -> io::Result<()>;
}
