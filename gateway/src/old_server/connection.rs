//! A blocking connection: its caller has a thread for it.

use super::answer::Answer;
use super::columns::Made;
use super::encryption::Stream;
use super::{ReadError, Result};
use crate::tds::charset::Charset;
use crate::tds::dialect::{Dialect, Endian, Version};
use crate::tds::login::prelogin::Encryption;
use crate::tds::login::{login5, login7, prelogin, Password, Request};
use crate::tds::packet::{Assembler, MessageKind, Packetizer, Status};
use crate::tds::tokens::loginack;
use crate::tds::wire::{Put, WireError};
use bytes::{BufMut, BytesMut};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The largest packets: at most 32,767 bytes for SQL Server, multiples of 512 for ASE.
const PACKET_7: usize = 32_767;
const PACKET_5: usize = 32_256;
/// The packet size before the login.
const FIRST_PACKET_7: usize = 4096;
const FIRST_PACKET_5: usize = 512;
/// Bytes of one read.
const READ: usize = 256 << 10;
/// The most bytes of a row or another token.
const LARGEST_TOKEN: usize = 256 << 20;
const CONNECTING: Duration = Duration::from_secs(30);

/// The server and the login.
pub struct Wanted {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Password,
    pub database: String,
    pub version: Version,
    /// This host's name, and the program's.
    pub client: String,
    pub application: String,
    /// The longest wait for an answer to begin or continue.
    pub timeout: Duration,
}

pub struct Connection {
    stream: Stream,
    packets: Packetizer,
    assembler: Assembler,
    timeout: Duration,
    buffer: Vec<u8>,
    /// Bytes of incomplete packets.
    raw: BytesMut,
    /// Bytes of the answer from `at` on.
    body: Vec<u8>,
    at: usize,
    /// The answer's last packet has arrived.
    is_all: bool,
    answer: Answer,
}

impl Connection {
    pub fn open(wanted: &Wanted) -> Result<Connection> {
        let mut dialect = Dialect::new(wanted.version);
        let (kind, first) = if dialect.is_tds7() { (0x10, FIRST_PACKET_7) } else { (0x02, FIRST_PACKET_5) };
        if !dialect.is_tds7() {
            dialect.charset = Charset::named("utf8").unwrap_or(dialect.charset);
        }
        let mut connection = Connection {
            stream: Stream::Plain(connected(wanted)?),
            packets: Packetizer::new(0),
            assembler: Assembler::new(LARGEST_TOKEN),
            timeout: wanted.timeout,
            buffer: vec![0; READ],
            raw: BytesMut::new(),
            body: Vec::new(),
            at: 0,
            is_all: true,
            answer: Answer::new(dialect),
        };
        connection.packets.packet_size = first;
        let login = Request {
            user: &wanted.user,
            password: &wanted.password,
            host: &wanted.client,
            application: &wanted.application,
            server: &wanted.host,
            database: &wanted.database,
            packet_size: if dialect.is_tds7() { PACKET_7 } else { PACKET_5 },
            charset: "utf8",
        };
        if dialect.is_tds7() {
            let answer = connection.prelogin()?;
            let record = login7::encode(&login, wanted.version)?;
            if answer != Encryption::NotSupported {
                let Stream::Plain(socket) = connection.stream else {
                    return Err(ReadError::Other("TLS has begun already".into()));
                };
                connection.stream = Stream::encrypted(socket, &wanted.host)?;
            }
            connection.send(kind, record)?;
            if answer == Encryption::Off {
                connection.stream = connection.stream.plain();
            }
        } else {
            connection.send(kind, login5::encode(&login, Endian::Little)?)?;
        }
        connection.log_in()?;
        if !dialect.is_tds7() && !wanted.database.is_empty() {
            let is_plain = wanted
                .database
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || character == '_');
            let quoted = format!("[{}]", wanted.database.replace(']', "]]"));
            connection.query(&format!("use {}", if is_plain { &wanted.database } else { &quoted }))?;
        }
        Ok(connection)
    }

    /// The server's setting of encryption: Off encrypts the login alone.
    fn prelogin(&mut self) -> Result<Encryption> {
        let mut message = BytesMut::new();
        prelogin::encode_client(Encryption::Off, &mut message);
        self.send(0x12, message)?;
        while !self.is_all {
            self.fill()?;
        }
        Ok(prelogin::decode(&self.body)?)
    }

    fn log_in(&mut self) -> Result<()> {
        self.drain()?;
        let Some(loginack::Status::Succeeded) = self.answer.login else {
            return Err(ReadError::Other("the server has refused the login without a reason".into()));
        };
        if let Some(size) = self.answer.packet_size {
            // a size that a packet's header cannot hold is invalid
            self.packets.packet_size = size.clamp(FIRST_PACKET_5, PACKET_7);
        }
        Ok(())
    }

    pub fn packet_size(&self) -> usize {
        self.packets.packet_size
    }

    /// Sends a query, and returns the names and types of its columns; empty if it has no result. The rest of the
    /// previous answer is read and discarded.
    pub fn query(&mut self, text: &str) -> Result<Vec<(String, String)>> {
        self.drain()?;
        let dialect = *self.answer.dialect();
        self.answer = Answer::new(dialect);
        let mut body = BytesMut::new();
        if dialect.is_tds7() {
            if dialect.version >= Version::Tds72 {
                // ALL_HEADERS with that of transactions: none, one request (MS-TDS 2.2.5.3)
                body.put_u32_le(22);
                body.put_u32_le(18);
                body.put_u16_le(2);
                body.put_u64_le(0);
                body.put_u32_le(1);
            }
            body.put_utf16(text);
            self.send(0x01, body)?;
        } else {
            const LANGUAGE: u8 = 0x21;
            body.put_u8(LANGUAGE);
            body.put_u32_as(text.len() as u32 + 1, dialect.endian);
            body.put_u8(0);
            body.put_slice(text.as_bytes());
            self.send(0x0F, body)?;
        }
        while self.answer.columns().is_empty() && !self.is_over()? {
            // a row begins after all columns are known
            self.advance(1, 1)?;
        }
        self.answer.demand_no_error()?;
        Ok(self.answer.columns())
    }

    /// The next rows: at most `rows`, and no more after `bytes` of the wire. None at the end.
    pub fn read(&mut self, rows: usize, bytes: usize) -> Result<Option<(usize, Vec<Made>)>> {
        while !self.is_over()? && self.advance(rows, bytes)? {}
        self.answer.demand_no_error()?;
        Ok((self.answer.rows() > 0).then(|| self.answer.take()))
    }

    /// Reads and discards the rest of an answer.
    fn drain(&mut self) -> Result<()> {
        while self.read(usize::MAX, READ)?.is_some() {}
        Ok(())
    }

    fn is_over(&self) -> Result<bool> {
        let is_read = self.is_all && self.at == self.body.len();
        if is_read && !self.answer.is_over {
            return Err(WireError::Truncated("an answer").into());
        }
        Ok(is_read)
    }

    /// Decodes the bytes received, and waits for more if needed. Returns false if there are enough rows, or no more.
    fn advance(&mut self, rows: usize, bytes: usize) -> Result<bool> {
        let input = self.body.get(self.at..).unwrap_or_default();
        self.at += self.answer.read(input, self.is_all, rows, bytes)?;
        if self.answer.is_full(rows, bytes) || self.is_over()? {
            return Ok(false);
        }
        self.fill()?;
        Ok(true)
    }

    fn send(&mut self, kind: u8, mut message: BytesMut) -> Result<()> {
        let mut wire = BytesMut::new();
        self.packets.kind = kind;
        self.packets.cut(&mut message, true, &mut wire);
        self.stream.write_all(&wire)?;
        self.stream.flush()?;
        (self.at, self.is_all) = (0, false);
        self.body.clear();
        Ok(())
    }

    /// Reads from the socket until another packet is complete.
    fn fill(&mut self) -> Result<()> {
        self.body.drain(..self.at);
        self.at = 0;
        if self.body.len() > LARGEST_TOKEN {
            return Err(WireError::Malformed(format!("a row of more than {LARGEST_TOKEN} bytes")).into());
        }
        // twice the bytes of a long row, whose decoding starts again from its begin
        let wanted = self.body.len() * 2 + 1;
        while !self.is_all && self.body.len() < wanted {
            let count = self.stream.read(&mut self.buffer).map_err(|error| match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    ReadError::Other(format!("no answer within {} s", self.timeout.as_secs()))
                }
                _ => error.into(),
            })?;
            if count == 0 {
                return Err(ReadError::Other("the server has closed the connection".into()));
            }
            self.raw.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
            while let Some(message) = self.assembler.part(&mut self.raw)? {
                if message.kind != MessageKind::Reply || self.is_all {
                    let text = format!("a packet of type {:?} in an answer", message.kind);
                    return Err(WireError::Malformed(text).into());
                }
                self.body.extend_from_slice(&message.body);
                self.is_all = message.status.contains(Status::LAST);
            }
        }
        Ok(())
    }
}

fn connected(wanted: &Wanted) -> Result<TcpStream> {
    let mut last = None;
    for address in (wanted.host.as_str(), wanted.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(wanted.timeout))?;
                socket.set_write_timeout(Some(wanted.timeout))?;
                return Ok(socket);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(|| ReadError::Other(format!("{} has no address", wanted.host)), ReadError::Io))
}

#[cfg(test)]
mod tests;
