//! Packets: an 8-byte header and a body; a message is the bodies up to the packet marked last. MS-TDS 2.2.3.1; TDS 5.0
//! has the same header.

use super::wire::WireError;
use bitflags::bitflags;
use bytes::{Buf, BufMut, Bytes, BytesMut};

pub const HEADER: usize = 8;
/// The smallest packet size that a client may request (MS-TDS 2.2.6.4).
pub const SMALLEST: usize = 512;
/// The largest packet size that the gateway accepts.
pub const LARGEST: usize = 32_768;

/// The kind of a message, from the first header byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// T-SQL text (7.x)
    Batch,
    /// TDS 5.0 login record
    Login5,
    /// procedure call (7.x)
    Rpc,
    /// server to client
    Reply,
    /// cancel the running request
    Attention,
    BulkLoad,
    /// transaction manager request (7.2 and later)
    Transaction,
    /// token stream (5.0)
    Normal,
    Login7,
    Sspi,
    Prelogin,
    Unknown(u8),
}

impl MessageKind {
    pub fn from_byte(byte: u8) -> MessageKind {
        match byte {
            0x01 => MessageKind::Batch,
            0x02 => MessageKind::Login5,
            0x03 => MessageKind::Rpc,
            0x04 => MessageKind::Reply,
            0x06 => MessageKind::Attention,
            0x07 => MessageKind::BulkLoad,
            0x0E => MessageKind::Transaction,
            0x0F => MessageKind::Normal,
            0x10 => MessageKind::Login7,
            0x11 => MessageKind::Sspi,
            0x12 => MessageKind::Prelogin,
            other => MessageKind::Unknown(other),
        }
    }
}

bitflags! {
    /// The status byte of a packet header.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Status: u8 {
        const LAST = 0x01;
        const IGNORE = 0x02;
        /// The session's settings are reset to those after login before this request runs.
        const RESET = 0x08;
        /// Like RESET, but an open transaction remains.
        const RESET_KEEP_TRANSACTION = 0x10;
        const _ = !0;
    }
}

/// One complete request.
#[derive(Debug)]
pub struct Message {
    pub kind: MessageKind,
    /// The status bits of all its packets together.
    pub status: Status,
    pub body: Bytes,
}

/// A message whose last packet has not arrived.
#[derive(Debug)]
struct Begun {
    kind: MessageKind,
    status: Status,
    body: BytesMut,
}

/// Assembles messages from a byte stream, holding at most `limit` bytes of one message.
#[derive(Debug)]
pub struct Assembler {
    limit: usize,
    open: Option<Begun>,
}

impl Assembler {
    pub fn new(limit: usize) -> Assembler {
        Assembler { limit, open: None }
    }

    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Whether a message has begun but is incomplete.
    pub fn is_inside_message(&self) -> bool {
        self.open.is_some()
    }

    /// Discards the incomplete message.
    pub fn forget(&mut self) {
        self.open = None;
    }

    /// Bytes of the incomplete message.
    pub fn held(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.body.len())
    }

    /// Reserves memory for the incomplete message to grow to this many bytes without being moved.
    pub fn reserve(&mut self, bytes: usize) {
        if let Some(open) = &mut self.open {
            open.body.reserve(bytes.saturating_sub(open.body.len()));
        }
    }

    /// Removes the next packet of a message that is processed packet by packet, such as the rows of a bulk copy; its
    /// status shows whether it is the last. None: more bytes are needed.
    pub fn part(&mut self, input: &mut BytesMut) -> Result<Option<Message>, WireError> {
        let Some((kind, status, length)) = header(input)? else { return Ok(None) };
        if input.len() < length {
            return Ok(None);
        }
        input.advance(HEADER);
        Ok(Some(Message { kind, status, body: input.split_to(length - HEADER).freeze() }))
    }

    /// Removes whole packets from the front of `input` until a message is complete. None: more bytes are needed. An
    /// attention is its own message even between the packets of another, which it ends.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Message>, WireError> {
        loop {
            let Some((kind, status, length)) = header(input)? else { return Ok(None) };
            if input.len() < length {
                return Ok(None);
            }
            input.advance(HEADER);
            let body = input.split_to(length - HEADER);
            if kind == MessageKind::Attention {
                self.open = None;
                return Ok(Some(Message { kind, status, body: body.freeze() }));
            }
            let begun = match self.open.take() {
                None => Begun { kind, status, body },
                Some(mut open) if open.kind == kind => {
                    if open.body.len() + body.len() > self.limit {
                        return Err(WireError::Malformed(format!(
                            "request is longer than {} bytes",
                            self.limit
                        )));
                    }
                    open.body.unsplit(body);
                    open.status |= status;
                    open
                }
                Some(open) => {
                    return Err(WireError::Malformed(format!(
                        "{kind:?} packet inside a {:?} message",
                        open.kind
                    )))
                }
            };
            if !status.contains(Status::LAST) {
                self.open = Some(begun);
            } else {
                let body = if status.contains(Status::IGNORE) { Bytes::new() } else { begun.body.freeze() };
                return Ok(Some(Message { kind, status: begun.status | status, body }));
            }
        }
    }
}

/// Kind, status and length of the packet that `input` begins with; None: more bytes are needed.
fn header(input: &BytesMut) -> Result<Option<(MessageKind, Status, usize)>, WireError> {
    let Some(header) = input.first_chunk::<HEADER>() else { return Ok(None) };
    let (kind, status) = (MessageKind::from_byte(header[0]), Status::from_bits_retain(header[1]));
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if length < HEADER {
        return Err(WireError::Malformed(format!("packet length {length} is less than its header")));
    }
    if let MessageKind::Unknown(byte) = kind {
        return Err(WireError::Malformed(format!("packet type 0x{byte:02x} is unknown")));
    }
    Ok(Some((kind, status, length)))
}

/// Cuts a message's bytes into packets of the negotiated size.
#[derive(Debug)]
pub struct Packetizer {
    /// The first byte of each packet.
    pub kind: u8,
    pub packet_size: usize,
    /// The session number, which 7.x clients read from the header.
    pub spid: u16,
    sequence: u8,
}

impl Packetizer {
    /// For replies.
    pub fn new(spid: u16) -> Packetizer {
        Packetizer { kind: 0x04, packet_size: 4096, spid, sequence: 0 }
    }

    /// Moves `reply` into `wire` as packets. Unless `last`, bytes that do not fill a packet remain in `reply`.
    pub fn cut(&mut self, reply: &mut BytesMut, last: bool, wire: &mut BytesMut) {
        let room = self.packet_size - HEADER;
        while reply.len() > room {
            let body = reply.split_to(room);
            self.packet(&body, Status::empty(), wire);
        }
        if last {
            let body = reply.split();
            self.packet(&body, Status::LAST, wire);
            self.sequence = 0;
        }
    }

    /// Moves the rest of `reply` into `wire` as a packet that is not the last.
    pub fn cut_rest(&mut self, reply: &mut BytesMut, wire: &mut BytesMut) {
        if !reply.is_empty() {
            let body = reply.split();
            self.packet(&body, Status::empty(), wire);
        }
    }

    fn packet(&mut self, body: &[u8], status: Status, wire: &mut BytesMut) {
        self.sequence = self.sequence.wrapping_add(1);
        wire.reserve(HEADER + body.len());
        wire.put_u8(self.kind);
        wire.put_u8(status.bits());
        // packet_size is at most LARGEST, which fits into a u16
        wire.put_u16((HEADER + body.len()) as u16);
        wire.put_u16(self.spid);
        wire.put_u8(self.sequence);
        wire.put_u8(0);
        wire.extend_from_slice(body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(kind: u8, status: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, status];
        bytes.extend(((body.len() + HEADER) as u16).to_be_bytes());
        bytes.extend([0, 0, 1, 0]);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_message_across_packets_and_reads() {
        let mut all = packet(3, 0, b"abc");
        all.extend(packet(3, 1, b"de"));
        let mut assembler = Assembler::new(100);
        let mut input = BytesMut::new();
        let mut found = None;
        for byte in all {
            input.put_u8(byte);
            if let Some(message) = assembler.next(&mut input).unwrap() {
                found = Some(message);
            }
        }
        let message = found.unwrap();
        assert_eq!((message.kind, &message.body[..]), (MessageKind::Rpc, &b"abcde"[..]));
    }

    #[test]
    fn refuses_what_would_grow_without_bound() {
        let mut input = BytesMut::from(&packet(3, 0, &[0; 60])[..]);
        input.extend_from_slice(&packet(3, 0, &[0; 60]));
        let error = Assembler::new(100).next(&mut input).unwrap_err();
        assert_eq!(error, WireError::Malformed("request is longer than 100 bytes".into()));
    }

    #[test]
    fn refuses_a_packet_shorter_than_its_header() {
        let mut input = BytesMut::from(&[3u8, 1, 0, 7, 0, 0, 0, 0][..]);
        assert!(Assembler::new(100).next(&mut input).is_err());
    }

    #[test]
    fn attention_ends_an_unfinished_request() {
        let mut input = BytesMut::from(&packet(3, 0, b"half")[..]);
        input.extend_from_slice(&packet(6, 1, b""));
        let mut assembler = Assembler::new(100);
        assert_eq!(assembler.next(&mut input).unwrap().unwrap().kind, MessageKind::Attention);
        assert!(!assembler.is_inside_message());
    }

    #[test]
    fn a_message_is_read_packet_by_packet() {
        let mut input = BytesMut::from(&packet(7, 0, b"abc")[..]);
        input.extend_from_slice(&packet(7, 1, b"de")[..9]);
        let mut assembler = Assembler::new(1);
        let first = assembler.part(&mut input).unwrap().unwrap();
        assert_eq!(
            (first.kind, first.status, &first.body[..]),
            (MessageKind::BulkLoad, Status::empty(), &b"abc"[..])
        );
        assert!(assembler.part(&mut input).unwrap().is_none());
        input.put_u8(b'e');
        let second = assembler.part(&mut input).unwrap().unwrap();
        assert_eq!((second.status, &second.body[..]), (Status::LAST, &b"de"[..]));
        assert!(!assembler.is_inside_message());
    }

    #[test]
    fn a_reply_is_cut_into_packets() {
        let mut packetizer = Packetizer { packet_size: 512, ..Packetizer::new(7) };
        let mut reply = BytesMut::from(&[9u8; 1000][..]);
        let mut wire = BytesMut::new();
        packetizer.cut(&mut reply, true, &mut wire);
        assert_eq!((wire.len(), wire[1], wire[512 + 1]), (1000 + 2 * HEADER, 0, 1));
    }

    proptest! {
        #[test]
        fn however_the_bytes_arrive_the_messages_are_the_same(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..6),
            packet_size in 1usize..30,
            reads in proptest::collection::vec(1usize..50, 1..40),
        ) {
            let mut wire = Vec::new();
            for body in &bodies {
                let mut rest = &body[..];
                loop {
                    let (part, tail) = rest.split_at(rest.len().min(packet_size));
                    wire.extend(packet(3, u8::from(tail.is_empty()), part));
                    rest = tail;
                    if rest.is_empty() { break; }
                }
            }
            let mut assembler = Assembler::new(100);
            let mut input = BytesMut::new();
            let mut found = Vec::new();
            let mut rest = &wire[..];
            for size in reads.iter().cycle() {
                let (read, tail) = rest.split_at(rest.len().min(*size));
                input.extend_from_slice(read);
                while let Some(message) = assembler.next(&mut input).unwrap() {
                    found.push(message.body.to_vec());
                }
                rest = tail;
                if rest.is_empty() { break; }
            }
            prop_assert_eq!(found, bodies);
        }

        #[test]
        fn no_bytes_make_it_panic_or_hold_more_than_the_limit(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            kinds in proptest::collection::vec(any::<prop::sample::Index>(), 0..10),
        ) {
            let mut bytes = bytes;
            for index in kinds {
                // more bytes begin like packets
                if bytes.len() > 4 {
                    let at = index.index(bytes.len() - 4);
                    bytes[at..at + 4].copy_from_slice(&[3, 0, 0, 12]);
                }
            }
            let mut assembler = Assembler::new(60);
            let mut input = BytesMut::from(&bytes[..]);
            while let Ok(Some(message)) = assembler.next(&mut input) {
                prop_assert!(message.body.len() <= 60 || message.body.len() <= bytes.len());
            }
        }
    }
}
