//! A client: reads messages, and sends the reply as packets.

pub mod error;
mod gathering;
mod patience;
mod reply;
mod settings;
#[cfg(test)]
mod tests;

pub use error::{SessionError, LOGIN_TIMEOUT, STALLED, UNREAD};
pub use gathering::{GatheredSet, Gathering};
pub use patience::{Occupied, Unused};
pub use reply::{unsendable, Reply};
pub use settings::{refuse_settings, Arithabort, Calendar, Isolation, Locking, Settings, TextSize};

use crate::limits::memory::LONG;
use crate::limits::room::{Slots, WITHOUT_SLOT};
use crate::stream::ClientStream;
use crate::tds::dialect::{Dialect, Version};
use crate::tds::packet::{Assembler, Message, MessageKind, Packetizer};
use crate::tds::tokens::done::Status;
use crate::tds::tokens::message::ServerMessage;
use crate::tls::{Tls, Transport};
use bytes::{Buf, BytesMut};
use std::future::{ready, Future};
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Reply bytes collected before they are sent while more follow.
const FLUSH: usize = 32 * 1024;

/// How long the last message to a client that was too slow waits to be read.
const FAREWELL: Duration = Duration::from_secs(300);

/// Maximum number of bytes read at once after a long request.
const LONGEST_READ: usize = 64 * 1024;

pub struct Client {
    stream: Transport<Box<dyn ClientStream>>,
    input: BytesMut,
    /// Bytes of the incoming request read so far.
    arrived: usize,
    /// Bytes of the previous request: a writer's requests have the same length.
    before: usize,
    assembler: Assembler,
    /// The slots of the current request, if it is long; None before login.
    slots: Option<Slots>,
    occupied: Occupied,
    /// A request that arrived while another ran; it is processed before more is read.
    early: Option<Message>,
    packetizer: Packetizer,
    pub reply: Reply,
    settings: Settings,
    /// Announced maximum length of a TEXT column, if the client has set none.
    text_size: u32,
    wire: BytesMut,
}

impl Client {
    /// `limit`: maximum bytes of a request.
    pub fn new(stream: Box<dyn ClientStream>, spid: u16, limit: usize) -> Client {
        let dialect = Dialect::new(Version::Tds74);
        Client {
            stream: Transport::Plain(stream),
            input: BytesMut::new(),
            arrived: 0,
            before: 0,
            assembler: Assembler::new(limit),
            slots: None,
            occupied: Occupied::default(),
            early: None,
            packetizer: Packetizer::new(spid),
            reply: Reply::new(dialect),
            settings: Settings::new(&dialect, false),
            text_size: dialect.text_size,
            wire: BytesMut::new(),
        }
    }

    /// From now on the client may send requests of `limit` bytes; long ones wait for `slots`.
    pub fn admit(&mut self, limit: usize, slots: Slots, occupied: Occupied) {
        self.assembler.set_limit(limit);
        self.slots = Some(slots);
        self.occupied = occupied;
    }

    /// Registers the socket with the current thread, which the client's bytes wake from now on.
    pub fn register_here(&mut self) -> io::Result<()> {
        self.stream.get_mut().map_or(Ok(()), |stream| stream.register_here())
    }

    pub fn packet_size(&self) -> usize {
        self.packetizer.packet_size
    }

    /// Sets the client's dialect. At TDS 5.0 the packet header has the channel, here the first one, where 7.x has the
    /// session's number.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.reply.dialect = dialect;
        self.text_size = dialect.text_size;
        if !dialect.is_tds7() {
            self.packetizer.spid = 0;
        }
    }

    pub fn set_packet_size(&mut self, size: usize) {
        self.packetizer.packet_size = size;
    }

    /// The first byte of the next message; None if the client has disconnected.
    pub async fn first_byte(&mut self) -> Result<Option<u8>, SessionError> {
        if self.input.is_empty() {
            self.input.reserve(self.packetizer.packet_size);
            self.stream.read_buf(&mut self.input).await?;
        }
        Ok(self.input.first().copied())
    }

    pub fn is_encrypted(&self) -> bool {
        self.stream.is_encrypted()
    }

    /// Shakes hands for TLS; `in_packets` as 7.x clients do after PRELOGIN.
    pub async fn encrypt(&mut self, tls: &Tls, in_packets: bool) -> Result<(), SessionError> {
        let input = std::mem::take(&mut self.input);
        self.stream.encrypt(tls, input, in_packets).await.map_err(SessionError::Tls)
    }

    /// Continues without TLS.
    pub fn decrypt(&mut self) {
        self.input.unsplit(self.stream.decrypt());
    }

    /// The next request; None if the client has disconnected. Safe to drop while waiting.
    pub async fn request(&mut self) -> Result<Option<Message>, SessionError> {
        if let Some(early) = self.early.take() {
            return Ok(Some(early));
        }
        loop {
            if let Some(message) = self.assembled()? {
                return Ok(Some(message));
            }
            if let Some(slots) = &mut self.slots {
                slots.take(self.assembler.held()).await;
            }
            if !self.read_more().await? {
                return Ok(None);
            }
        }
    }

    /// The incoming request, if it is complete.
    fn assembled(&mut self) -> Result<Option<Message>, SessionError> {
        let message = self.assembler.next(&mut self.input)?;
        if message.is_some() {
            self.before = self.arrived;
            self.arrived = self.input.len();
            if self.input.is_empty() {
                // an idle session holds no buffer
                self.input = BytesMut::new();
            }
        }
        Ok(message)
    }

    /// Reads more of a request. False: the client has disconnected before it.
    async fn read_more(&mut self) -> Result<bool, SessionError> {
        let most = self.slots.as_ref().map_or(0, Slots::most);
        self.assembler.reserve(self.before.min(most));
        // read by one system call; one byte more, because a read that fills its buffer is followed by another
        let expected = (self.before + 1).min(LONGEST_READ);
        self.input.reserve(self.packetizer.packet_size.max(expected));
        let has_begun = !self.input.is_empty() || self.assembler.is_inside_message();
        let read = self.stream.read_buf(&mut self.input);
        let count = match &mut self.slots {
            _ if !has_begun => read.await?,
            None => stalled(async { Ok(read.await?) }).await?,
            Some(slots) => stalled(slots.read(read)).await?,
        };
        self.arrived += count;
        match count {
            0 if has_begun => Err(SessionError::Closed),
            count => Ok(count > 0),
        }
    }

    /// The type of the next packet, which is not consumed; None if the client has disconnected.
    pub async fn next_kind(&mut self) -> Result<Option<MessageKind>, SessionError> {
        if let Some(early) = &self.early {
            return Ok(Some(early.kind));
        }
        if self.input.is_empty() {
            self.input.reserve(self.packetizer.packet_size);
            let read = self.stream.read_buf(&mut self.input);
            patience::step(read, &self.occupied, STALLED, SessionError::Stalled).await?;
        }
        Ok(self.input.first().copied().map(MessageKind::from_byte))
    }

    /// The next packet of a request that is read packet by packet. Safe to drop while waiting.
    pub async fn part(&mut self) -> Result<Message, SessionError> {
        if let Some(early) = self.early.take() {
            return Ok(early);
        }
        loop {
            if let Some(part) = self.assembler.part(&mut self.input)? {
                return Ok(part);
            }
            self.input.reserve(self.packetizer.packet_size);
            let read = self.stream.read_buf(&mut self.input);
            if patience::step(read, &self.occupied, STALLED, SessionError::Stalled).await? == 0 {
                return Err(SessionError::Closed);
            }
        }
    }

    /// Waits until the client cancels or disconnects. Safe to drop while waiting. A cancel stays until it is
    /// acknowledged: if the running request ends in another way, it is the next request.
    pub async fn attention(&mut self) -> Result<(), SessionError> {
        loop {
            match &self.early {
                Some(early) if early.kind == MessageKind::Attention => return Ok(()),
                Some(_) => return std::future::pending().await,
                None => self.early = self.assembled()?,
            }
            if self.early.is_none() {
                // the slots belong to the running request
                if self.assembler.held() > WITHOUT_SLOT {
                    return std::future::pending().await;
                }
                if !self.read_more().await? {
                    return Err(SessionError::Closed);
                }
            }
        }
    }

    pub fn dialect(&self) -> Dialect {
        self.reply.dialect
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Applies the client's settings from now on.
    pub fn set(&mut self, settings: Settings) {
        self.reply.no_count = settings.no_count;
        self.reply.dialect.text_size = settings.text_size.limit().unwrap_or(self.text_size);
        self.settings = settings;
    }

    /// Sets whether null equals null (a procedure has the setting of its creation), and returns the previous
    /// value.
    pub fn set_nulls_equal(&mut self, nulls_equal: bool) -> bool {
        std::mem::replace(&mut self.settings.nulls_equal, nulls_equal)
    }

    /// Acknowledges the client's cancel, which ends the reply. From 7.2 on the reply ends with an error, and
    /// the acknowledgement is a separate reply, for which tedious and mssql-jdbc wait (mssql-jdbc,
    /// TDSCommand.onResponseEOM; tedious, SentAttention).
    pub fn acknowledge_cancel(&mut self) {
        self.early.take_if(|early| early.kind == MessageKind::Attention);
        if self.dialect().version >= Version::Tds72 {
            self.reply.close(Status::ERROR);
            self.packetizer.cut(&mut self.reply.tokens, true, &mut self.wire);
        }
        self.reply.close(Status::ATTENTION);
    }

    /// Whether enough bytes are collected for a system call.
    pub fn has_gathered(&self) -> bool {
        self.reply.tokens.len() >= FLUSH
    }

    /// Sends the collected bytes if they are enough for a system call.
    pub async fn flush_gathered(&mut self) -> Result<(), SessionError> {
        if !self.has_gathered() {
            return Ok(());
        }
        self.cut(false);
        self.send().await
    }

    /// Sends all collected bytes except a DONE at their end, which may be the last one.
    pub async fn send_now(&mut self) -> Result<(), SessionError> {
        self.cut(true);
        self.send().await
    }

    fn cut(&mut self, all: bool) {
        let done = self.reply.take_done();
        let is_long = self.reply.tokens.len() > LONG;
        self.packetizer.cut(&mut self.reply.tokens, false, &mut self.wire);
        if all {
            self.packetizer.cut_rest(&mut self.reply.tokens, &mut self.wire);
        }
        self.reply.put_back(&done);
        if is_long {
            // a buffer frees its memory only as a whole: the rest moves into a new one
            self.reply.tokens = BytesMut::from(&self.reply.tokens[..]);
        }
    }

    /// Ends the reply.
    pub async fn finish(&mut self) -> Result<(), SessionError> {
        self.reply.begin_answer();
        self.packetizer.cut(&mut self.reply.tokens, true, &mut self.wire);
        self.send().await?;
        if self.reply.tokens.capacity() > FLUSH {
            self.reply.tokens = BytesMut::new();
        }
        self.give_back_slots();
        Ok(())
    }

    fn give_back_slots(&mut self) {
        if let Some(slots) = &mut self.slots {
            slots.give_back();
        }
    }

    /// Ends the session with its last message, after the bytes that the client has not read.
    pub async fn say_farewell(&mut self, farewell: &ServerMessage) {
        self.assembler.forget();
        self.input = BytesMut::new();
        self.give_back_slots();
        self.occupied = Occupied::default();
        self.reply.gathering = None;
        self.reply.message(farewell);
        self.reply.close(Status::ERROR);
        // the client may have disconnected
        let _ = timeout(FAREWELL, self.finish()).await;
    }

    async fn send(&mut self) -> Result<(), SessionError> {
        while self.wire.has_remaining() {
            let mut write = pin!(self.stream.write_buf(&mut self.wire));
            let at_once = tokio::select! {
                biased;
                written = &mut write => Some(written?),
                () = ready(()) => None,
            };
            let written = match at_once {
                Some(written) => written,
                None => patience::step(write, &self.occupied, UNREAD, SessionError::Unread).await?,
            };
            if written == 0 {
                return Err(SessionError::Closed);
            }
        }
        self.stream.flush().await?;
        if self.wire.capacity() > 2 * FLUSH {
            self.wire = BytesMut::new();
        }
        Ok(())
    }
}

/// A step of a client in the middle of its request.
async fn stalled<T>(step: impl Future<Output = Result<T, SessionError>>) -> Result<T, SessionError> {
    timeout(STALLED, step).await.map_err(|_| SessionError::Stalled)?
}
