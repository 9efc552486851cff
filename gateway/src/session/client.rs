//! The client's side of a session: requests in, reply tokens out.

use super::SessionError;
use crate::tds::dialect::{Dialect, Version};
use crate::tds::packet::{Assembler, Kind, Message, Packetizer};
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::message::{self, ServerMessage};
use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Reply bytes gathered before they are sent while more are to come.
const FLUSH: usize = 32 * 1024;

pub struct Client<S> {
    stream: S,
    input: BytesMut,
    assembler: Assembler,
    /// A request that came while another ran; nothing more is read before it is taken.
    early: Option<Message>,
    packetizer: Packetizer,
    pub dialect: Dialect,
    /// Tokens of the reply being built.
    pub reply: BytesMut,
    wire: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// `limit`: bytes of the longest request.
    pub fn new(stream: S, spid: u16, limit: usize) -> Client<S> {
        Client {
            stream,
            input: BytesMut::new(),
            assembler: Assembler::new(limit),
            early: None,
            packetizer: Packetizer::new(spid),
            dialect: Dialect::new(Version::Tds74),
            reply: BytesMut::new(),
            wire: BytesMut::new(),
        }
    }

    pub fn set_limit(&mut self, limit: usize) {
        self.assembler.set_limit(limit);
    }

    pub fn packet_size(&self) -> usize {
        self.packetizer.packet_size
    }

    pub fn set_packet_size(&mut self, size: usize) {
        self.packetizer.packet_size = size;
    }

    /// The next request; None when the client has closed. Safe to drop while waiting.
    pub async fn request(&mut self) -> Result<Option<Message>, SessionError> {
        if let Some(early) = self.early.take() {
            return Ok(Some(early));
        }
        loop {
            if let Some(message) = self.assembler.next(&mut self.input)? {
                if self.input.is_empty() {
                    // an idle session holds no buffer
                    self.input = BytesMut::new();
                }
                return Ok(Some(message));
            }
            self.input.reserve(self.packetizer.packet_size);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return if self.input.is_empty() && !self.assembler.is_inside_message() {
                    Ok(None)
                } else {
                    Err(SessionError::Closed)
                };
            }
        }
    }

    /// Waits for the client to cancel or to go away. Safe to drop while waiting.
    pub async fn attention(&mut self) -> Result<(), SessionError> {
        if self.early.is_some() {
            return std::future::pending().await;
        }
        match self.request().await? {
            None => Err(SessionError::Closed),
            Some(message) if message.kind == Kind::Attention => Ok(()),
            Some(message) => {
                self.early = Some(message);
                std::future::pending().await
            }
        }
    }

    pub fn message(&mut self, message: &ServerMessage) {
        message::put(&mut self.reply, message, &self.dialect);
    }

    pub fn done(&mut self, kind: Done, status: u16, count: Option<u64>) {
        done::put(&mut self.reply, kind, status, count, &self.dialect);
    }

    /// Sends what has gathered when it is worth a system call.
    pub async fn flush_gathered(&mut self) -> Result<(), SessionError> {
        if self.reply.len() >= FLUSH {
            self.packetizer.cut(&mut self.reply, false, &mut self.wire);
            self.send().await?;
        }
        Ok(())
    }

    /// Ends the reply.
    pub async fn finish(&mut self) -> Result<(), SessionError> {
        self.packetizer.cut(&mut self.reply, true, &mut self.wire);
        self.send().await?;
        if self.reply.capacity() > FLUSH {
            self.reply = BytesMut::new();
        }
        Ok(())
    }

    async fn send(&mut self) -> Result<(), SessionError> {
        while self.wire.has_remaining() {
            if self.stream.write_buf(&mut self.wire).await? == 0 {
                return Err(SessionError::Closed);
            }
        }
        if self.wire.capacity() > 2 * FLUSH {
            self.wire = BytesMut::new();
        }
        Ok(())
    }
}
