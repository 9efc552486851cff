//! A client's socket: counts its bytes, and can move between the two kinds of threads.

use crate::metrics::Metrics;
use crate::stream::ClientStream;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

pub struct Socket {
    /// None: it could not be registered.
    stream: Option<TcpStream>,
    metrics: Arc<Metrics>,
}

impl Socket {
    pub fn new(stream: TcpStream, metrics: Arc<Metrics>) -> Socket {
        Socket { stream: Some(stream), metrics }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl ClientStream for Socket {
    fn register_here(&mut self) -> io::Result<()> {
        if let Some(stream) = self.stream.take() {
            self.stream = Some(TcpStream::from_std(stream.into_std()?)?);
        }
        Ok(())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(self.stream()?.poll_read(context, buffer))?;
        self.metrics.received.inc_by((buffer.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.stream()?.poll_write(context, bytes))?;
        self.metrics.sent.inc_by(written as u64);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::runtime::{Builder, Runtime};

    fn runtime() -> Runtime {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    #[test]
    fn it_goes_on_where_it_was_registered_last() {
        let (first, second) = (runtime(), runtime());
        let (mut theirs, mut socket) = first.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            (theirs, Socket::new(listener.accept().await.unwrap().0, Arc::default()))
        });
        first.block_on(theirs.write_all(b"ab")).unwrap();
        assert_eq!(first.block_on(socket.read_u8()).unwrap(), b'a');
        let theirs = theirs.into_std().unwrap();
        let mut theirs = second.block_on(async {
            socket.register_here().unwrap();
            TcpStream::from_std(theirs).unwrap()
        });
        drop(first);
        second.block_on(async {
            assert_eq!(socket.read_u8().await.unwrap(), b'b');
            theirs.write_all(b"c").await.unwrap();
            assert_eq!(socket.read_u8().await.unwrap(), b'c');
            socket.write_all(b"d").await.unwrap();
            assert_eq!(theirs.read_u8().await.unwrap(), b'd');
        });
    }
}
