//! TLS of a 7.x client, whose handshake is in PRELOGIN packets (MS-TDS 2.2.6.5, 3.2.5.2). As in other clients the
//! server's certificate is not checked.

use crate::postgres::encryption::unverified;
use crate::tds::packet::{Packetizer, HEADER, LARGEST};
use bytes::BytesMut;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

/// The socket, with or without TLS.
pub enum Stream {
    Plain(TcpStream),
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Begins TLS. Version 1.3 would send more after the handshake, which PRELOGIN packets do not allow.
    pub fn encrypted(mut socket: TcpStream, host: &str) -> super::Result<Stream> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let config = unverified(&[&rustls::version::TLS12])?;
        let mut connection = ClientConnection::new(Arc::new(config), name)?;
        let mut tunnel = Tunnel { socket: &mut socket, pending: Vec::new(), left: 0 };
        while connection.is_handshaking() {
            connection
                .complete_io(&mut tunnel)
                .map_err(|error| io::Error::new(error.kind(), format!("TLS: {error}")))?;
        }
        tunnel.send()?;
        Ok(Stream::Encrypted(Box::new(StreamOwned::new(connection, socket))))
    }

    /// The socket without TLS, if only the login was encrypted.
    pub fn plain(self) -> Stream {
        match self {
            Stream::Plain(socket) => Stream::Plain(socket),
            Stream::Encrypted(stream) => Stream::Plain(stream.sock),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Encrypted(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Encrypted(stream) => stream.flush(),
        }
    }
}

/// Reads and writes the bodies of packets.
struct Tunnel<'a> {
    socket: &'a mut TcpStream,
    pending: Vec<u8>,
    /// Remaining bytes of the current packet.
    left: usize,
}

impl Tunnel<'_> {
    /// Sends the bytes written since the server's last message, as one message.
    fn send(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut wire = BytesMut::new();
        let mut body = BytesMut::from(&std::mem::take(&mut self.pending)[..]);
        let mut packets = Packetizer::new(0);
        (packets.kind, packets.packet_size) = (0x12, LARGEST);
        packets.cut(&mut body, true, &mut wire);
        self.socket.write_all(&wire)
    }
}

impl Read for Tunnel<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.send()?;
        while self.left == 0 {
            let mut header = [0; HEADER];
            self.socket.read_exact(&mut header)?;
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            self.left = length.checked_sub(HEADER).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "a packet that is shorter than its header")
            })?;
        }
        let most = self.left.min(buffer.len());
        let count = self.socket.read(&mut buffer[..most])?;
        self.left -= count;
        Ok(count)
    }
}

impl Write for Tunnel<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
