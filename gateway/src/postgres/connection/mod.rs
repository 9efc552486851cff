//! One connection to PostgreSQL: messages out and in.

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
use crate::stream::Stream;
use bytes::{Buf, BytesMut};
use postgres_protocol::message::backend::NotificationResponseBody;
use postgres_protocol::message::frontend;
use std::collections::HashMap;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Result<T> = std::result::Result<T, PgError>;

/// A buffer that has been longer is given back, in bytes.
const LARGEST_KEPT: usize = 4 << 20;

pub struct Connection {
    host: Host,
    encryption: Encryption,
    stream: Box<dyn Stream>,
    input: BytesMut,
    /// The bytes that the next `flush` sends.
    output: BytesMut,
    process: i32,
    secret: i32,
    parameters: HashMap<String, String>,
    statements: u64,
    /// A commit has given up waiting for its standby; what says that the transaction has ended is still to come.
    is_unconfirmed: bool,
    /// The payloads of notifications that came while statements of ours ran. None: the connection does not listen.
    notified: Option<Vec<String>>,
}

impl Connection {
    /// A setting PostgreSQL reports by itself, such as TimeZone.
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

    /// The buffer of messages to send; nothing goes out before `flush`.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    pub async fn flush(&mut self) -> Result<()> {
        while self.output.has_remaining() {
            let sent = self.stream.write_buf(&mut self.output).await?;
            if sent == 0 {
                return Err(PgError::Io(io::ErrorKind::WriteZero.into()));
            }
        }
        if self.output.capacity() > LARGEST_KEPT {
            self.output = BytesMut::new();
        }
        // TLS keeps what it could not send
        Ok(self.stream.flush().await?)
    }

    /// A message that has already arrived. ParameterStatus is kept and not returned. `PgError::Unconfirmed` comes in
    /// the place of ReadyForQuery.
    pub fn arrived(&mut self) -> Result<Option<Message>> {
        while let Some(message) = Message::parse(&mut self.input)? {
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

    /// The next message. Safe to drop while waiting.
    pub async fn receive(&mut self) -> Result<Message> {
        loop {
            if let Some(message) = self.arrived()? {
                return Ok(message);
            }
            self.input.reserve(16 * 1024);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(closed());
            }
        }
    }

    /// Keeps a notification for `notifications`, if the connection listens.
    pub fn keep(&mut self, body: &NotificationResponseBody) -> Result<()> {
        if let Some(notified) = &mut self.notified {
            notified.push(body.message()?.to_owned());
        }
        Ok(())
    }

    /// The payloads of the notifications that have been kept since the last time.
    pub fn notifications(&mut self) -> Vec<String> {
        self.notified.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether PostgreSQL has ended the connection while nothing ran on it.
    pub async fn has_ended(&mut self) -> bool {
        loop {
            tokio::select! {
                biased;
                message = self.receive() => match message.and_then(|message| is_aside(&message)) {
                    Ok(true) => {}
                    _ => return true,
                },
                () = std::future::ready(()) => return false,
            }
        }
    }

    /// Sends the output and takes what PostgreSQL says meanwhile, so that neither waits for the other. None: all
    /// is sent.
    pub async fn flush_or_receive(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some(message) = self.arrived()? {
                return Ok(Some(message));
            }
            self.input.reserve(16 * 1024);
            let (mut reading, mut writing) = tokio::io::split(&mut self.stream);
            let output = &mut self.output;
            let sending = async {
                if !output.has_remaining() {
                    return writing.flush().await.map(|()| true);
                }
                match writing.write_buf(output).await? {
                    0 => Err(io::ErrorKind::WriteZero.into()),
                    _ => Ok(false),
                }
            };
            tokio::select! {
                is_sent = sending => {
                    if is_sent? {
                        return Ok(None);
                    }
                }
                read = reading.read_buf(&mut self.input) => {
                    if read? == 0 {
                        return Err(closed());
                    }
                }
            }
        }
    }

    /// Says goodbye; the connection is closed when it is dropped.
    pub async fn close(mut self) {
        frontend::terminate(&mut self.output);
        let _ = self.flush().await;
    }
}

fn closed() -> PgError {
    PgError::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "PostgreSQL closed the connection"))
}
