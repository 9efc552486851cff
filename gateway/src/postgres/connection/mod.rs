//! One connection to PostgreSQL: messages sent and received.

mod cancel;
mod copy;
mod extended;
mod login;
mod simple;

pub use cancel::{Canceller, Cancelling};

use super::address::Host;
use super::encryption::Encryption;
use super::error::PgError;
use super::message::{gives_up_standby, is_aside, Message};
use crate::limits::memory::{self, LONG};
use crate::stream::ServerStream;
use bytes::{Buf, Bytes, BytesMut};
use postgres_protocol::message::backend::{DataRowBody, NotificationResponseBody};
use postgres_protocol::message::frontend;
use std::collections::{BTreeSet, HashMap};
use std::future::ready;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

type Result<T> = std::result::Result<T, PgError>;

/// How long the rest of a message may take that has begun to arrive on an idle connection.
const HEARING: Duration = Duration::from_secs(1);

/// A longer buffer is freed, in bytes.
const LARGEST_KEPT: usize = 4 << 20;

/// The most bytes of PostgreSQL's messages read while output is still being sent.
const MOST_EARLY: usize = 16 << 20;

pub struct Connection {
    host: Host,
    encryption: Encryption,
    stream: Box<dyn ServerStream>,
    input: BytesMut,
    /// The memory of the long message that is arriving, and of the last one returned.
    long: Option<SemaphorePermit<'static>>,
    given: Option<SemaphorePermit<'static>>,
    /// The last row that is kept.
    row: Option<Bytes>,
    /// The bytes that the next `flush` sends.
    output: BytesMut,
    process: i32,
    secret: i32,
    parameters: HashMap<String, String>,
    statements: u64,
    /// A commit has given up waiting for its standby; the end of the transaction has not arrived yet.
    is_unconfirmed: bool,
    /// The payloads of notifications that were not processed yet, each once: any login can send any number. None: the
    /// connection does not listen.
    notified: Option<BTreeSet<String>>,
}

/// Bytes of a notification's payload that ringlog's own have at most, and how many payloads are kept.
const PAYLOAD: usize = 16;
const PAYLOADS: usize = 16;

impl Connection {
    /// A setting that PostgreSQL reports by itself, such as TimeZone.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The id of the process that serves this connection, as reported by PostgreSQL or a pooler in between.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// The buffer of messages to send; nothing is sent before `flush`.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Sends the output. If the socket is full, PostgreSQL's answers to the first part are read meanwhile: PostgreSQL
    /// reads nothing itself until they are read.
    pub async fn flush(&mut self) -> Result<()> {
        loop {
            let sent = tokio::select! {
                biased;
                sent = send(&mut self.stream, &mut self.output) => Some(sent?),
                () = ready(()) => None,
            };
            let is_sent = match sent {
                Some(is_sent) => is_sent,
                None => self.send_or_read().await?,
            };
            if is_sent {
                break;
            }
            if self.input.len() > MOST_EARLY {
                let text = "more than is kept while it has not taken a request";
                return Err(PgError::Protocol(text.into()));
            }
        }
        if self.output.capacity() > LARGEST_KEPT {
            self.output = BytesMut::new();
        }
        Ok(())
    }

    /// A message that has already arrived. ParameterStatus is stored and not returned. `PgError::Unconfirmed` replaces
    /// ReadyForQuery.
    pub fn arrived(&mut self) -> Result<Option<Message>> {
        while let Some(message) = Message::parse(&mut self.input)? {
            self.given = self.long.take();
            if self.given.is_some() {
                // the buffer would keep the message's bytes
                self.input = BytesMut::from(&self.input[..]);
            }
            match message {
                Message::ParameterStatus(body) => {
                    self.parameters.insert(body.name()?.to_owned(), body.value()?.to_owned());
                }
                Message::NoticeResponse(body) if gives_up_standby(&body)? => self.is_unconfirmed = true,
                Message::ReadyForQuery(_) if std::mem::take(&mut self.is_unconfirmed) => {
                    return Err(PgError::Unconfirmed);
                }
                message => return Ok(Some(message)),
            }
        }
        Ok(None)
    }

    /// Keeps the row just returned, with its memory, instead of the one before.
    pub fn keep_row(&mut self, body: &DataRowBody) {
        let row = body.buffer_bytes().clone();
        self.row = Some(match self.given.take() {
            Some(memory) => memory::counted(row, memory),
            None => row,
        });
    }

    pub fn take_row(&mut self) -> Option<Bytes> {
        self.row.take()
    }

    /// The next message. Safe to drop while waiting.
    pub async fn receive(&mut self) -> Result<Message> {
        loop {
            if let Some(message) = self.arrived()? {
                return Ok(message);
            }
            self.make_room().await?;
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(closed());
            }
        }
    }

    /// Reserves room for the next bytes. A long message waits until there is memory for it.
    async fn make_room(&mut self) -> Result<()> {
        let mut more = 16 * 1024;
        let length = self.input.get(1..5).and_then(|length| length.try_into().ok()).map(u32::from_be_bytes);
        if let Some(length) = length.map(|length| length as usize).filter(|length| *length > LONG) {
            if self.long.is_none() {
                self.given = None;
                if self.input.first() == Some(&b'D') {
                    self.row = None;
                }
                self.long = Some(memory::message(length).await?);
            }
            more = more.max((length + 1).saturating_sub(self.input.len()));
        }
        self.input.reserve(more);
        Ok(())
    }

    /// Stores a notification for `notifications`, if the connection listens.
    pub fn keep(&mut self, body: &NotificationResponseBody) -> Result<()> {
        if let Some(notified) = &mut self.notified {
            let payload = body.message()?;
            let is_kept = payload.len() <= PAYLOAD && notified.len() < PAYLOADS;
            notified.insert(if is_kept { payload.to_owned() } else { String::new() });
        }
        Ok(())
    }

    /// Whether notifications are stored.
    pub fn is_notified(&self) -> bool {
        self.notified.as_ref().is_some_and(|notified| !notified.is_empty())
    }

    /// Returns the payloads of the notifications stored since the last call; an empty one for those that are too long
    /// or too many.
    pub fn notifications(&mut self) -> BTreeSet<String> {
        self.notified.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether PostgreSQL has ended the connection while it was idle.
    pub async fn has_ended(&mut self) -> bool {
        loop {
            let message = if self.stream.has_arrived() {
                timeout(HEARING, self.receive()).await.ok()
            } else {
                tokio::select! {
                    biased;
                    message = self.receive() => Some(message),
                    () = ready(()) => None,
                }
            };
            let Some(message) = message else { return false };
            if !matches!(message.and_then(|message| is_aside(&message)), Ok(true)) {
                return true;
            }
        }
    }

    /// Sends the output and receives PostgreSQL's messages meanwhile, so that neither waits for the other. None:
    /// everything is sent.
    pub async fn flush_or_receive(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some(message) = self.arrived()? {
                return Ok(Some(message));
            }
            if self.send_or_read().await? {
                return Ok(None);
            }
        }
    }

    /// Sends some of the output, or reads a message of PostgreSQL. Returns whether everything is sent.
    async fn send_or_read(&mut self) -> Result<bool> {
        self.input.reserve(16 * 1024);
        let (mut reading, mut writing) = tokio::io::split(&mut self.stream);
        tokio::select! {
            is_sent = send(&mut writing, &mut self.output) => Ok(is_sent?),
            read = reading.read_buf(&mut self.input) => match read? {
                0 => Err(closed()),
                _ => Ok(false),
            },
        }
    }

    /// Sends Terminate; the connection is closed when it is dropped.
    pub async fn close(mut self) {
        frontend::terminate(&mut self.output);
        let _ = self.flush().await;
    }
}

/// Sends some of `output`. Returns whether it was empty; TLS keeps the bytes that it could not send.
async fn send(stream: &mut (impl AsyncWrite + Unpin), output: &mut BytesMut) -> io::Result<bool> {
    if !output.has_remaining() {
        return stream.flush().await.map(|()| true);
    }
    match stream.write_buf(output).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        _ => Ok(false),
    }
}

fn closed() -> PgError {
    PgError::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "PostgreSQL closed the connection"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::fake::Fake;
    use bytes::BufMut;

    #[tokio::test]
    async fn an_end_that_has_arrived_is_known_before_the_runtime_has_heard_of_it() {
        let fake = Fake::new().await;
        let (mut connection, mut peer) = fake.connect().await;
        assert!(!connection.has_ended().await);
        peer.say(b'N', "NOTICE", "00000", "of no concern").await;
        assert!(!connection.has_ended().await);
        // from here on the runtime does not check its sockets
        peer.say(b'E', "FATAL", "57P01", "terminating connection").await;
        assert!(connection.has_ended().await);
    }

    #[tokio::test]
    async fn what_is_long_is_sent_to_a_server_that_wants_to_be_heard_first() {
        const LONG: usize = 32 << 20;
        const EARLY: usize = MOST_EARLY / 2;
        let fake = Fake::new().await;
        let (mut connection, mut peer) = fake.connect().await;
        let server = tokio::spawn(async move {
            let notice = "x".repeat(1 << 20);
            for _ in 0..EARLY / notice.len() {
                peer.say(b'N', "NOTICE", "00000", &notice).await;
            }
            let mut heard = vec![0; LONG];
            peer.stream.read_exact(&mut heard).await.unwrap();
            peer.ready(b'I').await;
            peer
        });
        connection.output().put_bytes(0, LONG);
        connection.flush().await.unwrap();
        let mut notices = 0;
        while let Message::NoticeResponse(_) = connection.receive().await.unwrap() {
            notices += 1;
        }
        assert_eq!(notices, EARLY >> 20);
        server.await.unwrap();
    }
}
