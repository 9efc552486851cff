//! The stream below TLS. During the handshake of a 7.x client each message is inside PRELOGIN packets; after it the
//! bytes of TLS are sent directly.

use crate::tds::packet::{Status, HEADER};
use bytes::{Buf, BufMut, BytesMut};
use std::io;
use std::pin::Pin;
use std::task::{ready, Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const PRELOGIN: u8 = 0x12;
/// Bytes in one packet of the handshake: every client accepts packets of 4096 bytes.
const ROOM: usize = 4096 - HEADER;

pub struct Tunnel<S> {
    stream: S,
    in_packets: bool,
    /// Raw bytes already received.
    input: BytesMut,
    /// The rest of the current packet.
    left: usize,
    /// TLS messages to be sent, and packets being sent.
    output: BytesMut,
    packets: BytesMut,
}

impl<S> Tunnel<S> {
    /// `input`: the bytes already read from the stream.
    pub fn new(stream: S, input: BytesMut, in_packets: bool) -> Tunnel<S> {
        Tunnel { stream, in_packets, input, left: 0, output: BytesMut::new(), packets: BytesMut::new() }
    }

    /// The handshake is over: the following bytes are not inside packets.
    pub fn leave_packets(&mut self) {
        self.in_packets = false;
        self.output = BytesMut::new();
        self.packets = BytesMut::new();
    }

    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream, and the received bytes that were not read.
    pub fn into_inner(self) -> (S, BytesMut) {
        (self.stream, self.input)
    }
}

impl<S: AsyncRead + Unpin> Tunnel<S> {
    /// Reads more raw bytes. Ready with false at the end of the stream.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut chunk = [0; 4096];
        let mut buffer = ReadBuf::new(&mut chunk);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        self.input.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(!buffer.filled().is_empty()))
    }

    /// Reads the header of the next packet.
    fn header(&mut self) -> io::Result<bool> {
        let Some(header) = self.input.first_chunk::<HEADER>() else { return Ok(false) };
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        match length.checked_sub(HEADER) {
            Some(length) if header[0] == PRELOGIN => self.left = length,
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "another packet than PRELOGIN inside a TLS handshake",
                ))
            }
        }
        self.input.advance(HEADER);
        Ok(true)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Tunnel<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.in_packets {
            if this.input.is_empty() {
                return Pin::new(&mut this.stream).poll_read(context, buffer);
            }
            let taken = this.input.split_to(this.input.len().min(buffer.remaining()));
            buffer.put_slice(&taken);
            return Poll::Ready(Ok(()));
        }
        loop {
            if this.left > 0 && !this.input.is_empty() {
                let count = this.left.min(this.input.len()).min(buffer.remaining());
                buffer.put_slice(&this.input.split_to(count));
                this.left -= count;
                return Poll::Ready(Ok(()));
            }
            if this.left == 0 && this.header()? {
                continue;
            }
            if !ready!(this.poll_more(context))? {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> Tunnel<S> {
    fn poll_packets(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            let body = self.output.split_to(self.output.len().min(ROOM));
            self.packets.put_u8(PRELOGIN);
            let status = if self.output.is_empty() { Status::LAST } else { Status::empty() };
            self.packets.put_u8(status.bits());
            self.packets.put_u16((HEADER + body.len()) as u16);
            self.packets.put_slice(&[0, 0, 1, 0]);
            self.packets.put_slice(&body);
        }
        while !self.packets.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, &self.packets))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.packets.advance(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tunnel<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if !this.in_packets {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        }
        // one flight of the handshake is one message, sent by the flush
        this.output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_packets(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{duplex, AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn messages_stand_in_packets_until_the_handshake_is_over() {
        let (mut theirs, ours) = duplex(1 << 16);
        let mut tunnel = Tunnel::new(ours, BytesMut::from(&[0x12u8, 1, 0, 11, 0, 0, 1, 0, b'a'][..]), true);
        theirs.write_all(b"bc").await.unwrap();
        theirs.write_all(&[0x12, 1, 0, 9, 0, 0, 1, 0, b'd']).await.unwrap();
        let mut read = [0; 4];
        tunnel.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"abcd");
        tunnel.write_all(&[7; 5000]).await.unwrap();
        tunnel.flush().await.unwrap();
        let mut sent = vec![0; 5000 + 2 * HEADER];
        theirs.read_exact(&mut sent).await.unwrap();
        assert_eq!((&sent[..4], sent[4097]), (&[0x12u8, 0, 0x10, 0][..], Status::LAST.bits()));
        tunnel.leave_packets();
        tunnel.write_all(b"plain").await.unwrap();
        let mut sent = [0; 5];
        theirs.read_exact(&mut sent).await.unwrap();
        assert_eq!(&sent, b"plain");
    }

    #[tokio::test]
    async fn another_packet_ends_the_handshake() {
        for bytes in [&[0x10u8, 1, 0, 9, 0, 0, 1, 0, b'x'][..], &[0x12, 1, 0, 7, 0, 0, 1, 0]] {
            let (_theirs, ours) = duplex(64);
            let mut tunnel = Tunnel::new(ours, BytesMut::from(bytes), true);
            assert!(tunnel.read(&mut [0; 4]).await.is_err());
        }
    }
}
