//! The client's connection, plain or inside TLS; a 7.x client may change from one to the other.

use super::tunnel::Tunnel;
use super::Tls;
use bytes::BytesMut;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

pub enum Transport<S> {
    Plain(S),
    Encrypted(Box<TlsStream<Tunnel<S>>>),
    /// A handshake has failed.
    Closed,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Transport<S> {
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Transport::Encrypted(_))
    }

    /// The stream below TLS; None after a failed handshake.
    pub fn get_mut(&mut self) -> Option<&mut S> {
        match self {
            Transport::Plain(stream) => Some(stream),
            Transport::Encrypted(encrypted) => Some(encrypted.get_mut().0.get_mut()),
            Transport::Closed => None,
        }
    }

    /// Starts the handshake; `input` has the bytes already read. `in_packets`: as 7.x clients do.
    pub async fn encrypt(&mut self, tls: &Tls, input: BytesMut, in_packets: bool) -> io::Result<()> {
        let stream = match std::mem::replace(self, Transport::Closed) {
            Transport::Plain(stream) => stream,
            other => {
                *self = other;
                return Err(io::Error::new(io::ErrorKind::InvalidData, "TLS inside TLS"));
            }
        };
        let accepting = tls.acceptor(in_packets);
        let mut encrypted = accepting.accept(Tunnel::new(stream, input, in_packets)).await?;
        encrypted.get_mut().0.leave_packets();
        *self = Transport::Encrypted(Box::new(encrypted));
        Ok(())
    }

    /// Continues without TLS after the login, as agreed with the client. Returns the bytes already received.
    pub fn decrypt(&mut self) -> BytesMut {
        match std::mem::replace(self, Transport::Closed) {
            Transport::Encrypted(encrypted) => {
                let (stream, input) = encrypted.into_inner().0.into_inner();
                *self = Transport::Plain(stream);
                input
            }
            other => {
                *self = other;
                BytesMut::new()
            }
        }
    }
}

fn closed() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Transport<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Closed => Poll::Ready(Err(closed())),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Transport<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Closed => Poll::Ready(Err(closed())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(context),
            Transport::Encrypted(stream) => Pin::new(stream).poll_flush(context),
            Transport::Closed => Poll::Ready(Err(closed())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Closed => Poll::Ready(Ok(())),
        }
    }
}
