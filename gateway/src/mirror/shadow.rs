//! A session's shadow: sends the same requests to the other server, and compares its answers.

use super::answer::{self, Answer};
use super::record::{Finding, NotCompared, Record};
use super::request;
use super::tap::{From, Pieces};
use crate::tds::dialect::Dialect;
use crate::tds::login::{login5, login7};
use crate::tds::packet::{MessageKind, Status, HEADER};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Timeouts of connecting to the other server and of one answer.
const CONNECTING: Duration = Duration::from_secs(10);
const ANSWERING: Duration = Duration::from_secs(60);
/// Maximum bytes of a message that is compared; a longer one is only forwarded.
const LONGEST: usize = 4 << 20;

/// A message cut out of a stream of packets.
struct Message {
    kind: MessageKind,
    body: BytesMut,
    /// Only a part of it was kept.
    is_cut: bool,
}

/// Splits a stream of packets into messages, of which it keeps at most LONGEST bytes each.
#[derive(Default)]
struct Cutter {
    input: BytesMut,
    open: Option<Message>,
}

impl Cutter {
    /// The next packet, and the message that it ends. None: more bytes are needed.
    fn next(&mut self) -> Option<(Bytes, Option<Message>)> {
        let header = self.input.first_chunk::<HEADER>()?;
        let (kind, is_last) = (MessageKind::from_byte(header[0]), header[1] & Status::LAST.bits() != 0);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]])).max(HEADER);
        if self.input.len() < length {
            return None;
        }
        let packet = self.input.split_to(length).freeze();
        let mut message = match self.open.take() {
            // a cancel ends the current message
            Some(open) if kind != MessageKind::Attention => open,
            _ => Message { kind, body: BytesMut::new(), is_cut: false },
        };
        let body = packet.get(HEADER..).unwrap_or(&[]);
        if message.body.len() + body.len() <= LONGEST {
            message.body.extend_from_slice(body);
        } else {
            message.is_cut = true;
        }
        if is_last || kind == MessageKind::Attention {
            return Some((packet, Some(message)));
        }
        self.open = Some(message);
        Some((packet, None))
    }
}

pub struct Shadow {
    pieces: Pieces,
    record: Arc<Record>,
    client: String,
    /// Packets of requests, each with the message it ends.
    requests: VecDeque<(Bytes, Option<Message>)>,
    answers: VecDeque<Message>,
    from_client: Cutter,
    from_old: Cutter,
    from_new: Cutter,
    user: String,
    /// The new server answers, and this shadow uses the old one.
    is_swapped: bool,
}

impl Shadow {
    pub fn new(pieces: Pieces, record: Arc<Record>, client: String, is_swapped: bool) -> Shadow {
        Shadow {
            pieces,
            record,
            client,
            requests: VecDeque::new(),
            answers: VecDeque::new(),
            from_client: Cutter::default(),
            from_old: Cutter::default(),
            from_new: Cutter::default(),
            user: String::new(),
            is_swapped,
        }
    }

    /// Follows the session to its end, or until it cannot be compared.
    pub async fn run(mut self, address: String) {
        let why = self.follow(&address).await;
        let why = if self.pieces.is_behind() { Some(NotCompared::Behind) } else { why };
        if let Some(why) = why {
            self.record.lost(why, &self.client, &self.user);
        }
    }

    /// None: the session has ended.
    async fn follow(&mut self, address: &str) -> Option<NotCompared> {
        let mut new = match timeout(CONNECTING, TcpStream::connect(address)).await {
            Ok(Ok(new)) => new,
            _ => return Some(NotCompared::Unreachable),
        };
        let _ = new.set_nodelay(true);
        let mut dialect: Option<Dialect> = None;
        let mut was_cancelled = false;
        let mut prelogins = 0;
        loop {
            let request = match self.pass_request(&mut new, was_cancelled).await {
                Ok(Some(request)) => request,
                Ok(None) => return None,
                Err(why) => return Some(why),
            };
            match request.kind {
                MessageKind::Prelogin => prelogins += 1,
                MessageKind::Login5 if dialect.is_none() => match login5::decode(&request.body) {
                    Ok(login) if login.password_encryption.is_some() => return Some(NotCompared::Encrypted),
                    Ok(login) => {
                        self.user = login.user;
                        dialect = Some(login.dialect);
                    }
                    Err(_) => return Some(NotCompared::Unread),
                },
                MessageKind::Login7 if dialect.is_none() => match login7::decode(&request.body) {
                    Ok(login) => {
                        self.user = login.user;
                        dialect = Some(login.dialect);
                    }
                    Err(_) => return Some(NotCompared::Unread),
                },
                _ => {}
            }
            if prelogins > 1 {
                // a TLS handshake follows the first
                return Some(NotCompared::Encrypted);
            }
            if request.kind == MessageKind::Attention && was_cancelled {
                was_cancelled = false;
                continue;
            }
            let begun = Instant::now();
            let answered = match self.new_answer(&mut new).await {
                Ok(answered) => answered,
                Err(why) => return Some(why),
            };
            let took = begun.elapsed();
            let old = self.old_answer().await?;
            let Some(dialect) = &dialect else { continue };
            if old.is_cut || answered.is_cut || request.is_cut {
                self.record.not_compared(NotCompared::Long);
                continue;
            }
            let read = (answer::read(&old.body, dialect), answer::read(&answered.body, dialect));
            let (Ok(old), Ok(new_answer)) = read else {
                self.record.not_compared(NotCompared::Unread);
                continue;
            };
            was_cancelled = old.cancelled && request.kind != MessageKind::Attention;
            if was_cancelled {
                self.record.not_compared(NotCompared::Cancelled);
                continue;
            }
            if matches!(request.kind, MessageKind::Login5 | MessageKind::Login7) {
                if !old.logged_in {
                    return None;
                }
                if !new_answer.logged_in {
                    return Some(NotCompared::Refused);
                }
            }
            self.compare(&request, &old, &new_answer, dialect, took);
        }
    }

    fn compare(&self, request: &Message, old: &Answer, new: &Answer, dialect: &Dialect, took: Duration) {
        let is_login = matches!(request.kind, MessageKind::Login5 | MessageKind::Login7);
        // answers to logins describe the servers, which differ: not compared
        let (old, new) = if self.is_swapped { (new, old) } else { (old, new) };
        let differences = if is_login { Vec::new() } else { old.differences(new) };
        if differences.iter().any(|found| found.part == "rows") && request::asks_own(&request.body, dialect) {
            return self.record.not_compared(NotCompared::Own);
        }
        self.record.compared(took);
        if !differences.is_empty() {
            self.record.differs(Finding {
                client: &self.client,
                login: &self.user,
                request: request::shown(request.kind, &request.body, dialect),
                differences,
            });
        }
    }

    /// Forwards packets of the client until a message has ended.
    async fn pass_request(
        &mut self,
        new: &mut TcpStream,
        skip: bool,
    ) -> Result<Option<Message>, NotCompared> {
        loop {
            while let Some((packet, message)) = self.requests.pop_front() {
                let is_skipped =
                    skip && message.as_ref().is_some_and(|message| message.kind == MessageKind::Attention);
                if !is_skipped {
                    match timeout(ANSWERING, new.write_all(&packet)).await {
                        Ok(Ok(())) => {}
                        Ok(Err(_)) => return Err(NotCompared::Gone),
                        Err(_) => return Err(NotCompared::Slow),
                    }
                }
                if let Some(message) = message {
                    return match message.kind {
                        MessageKind::Unknown(_) | MessageKind::Sspi => Err(NotCompared::Encrypted),
                        _ => Ok(Some(message)),
                    };
                }
            }
            if !self.receive().await {
                return Ok(None);
            }
        }
    }

    async fn old_answer(&mut self) -> Option<Message> {
        loop {
            if let Some(answer) = self.answers.pop_front() {
                return Some(answer);
            }
            if !self.receive().await {
                return None;
            }
        }
    }

    /// Receives a piece of the session. False: there are no more.
    async fn receive(&mut self) -> bool {
        let Some(piece) = self.pieces.next().await else { return false };
        match piece.from {
            From::Client => {
                self.from_client.input.extend_from_slice(&piece.bytes);
                while let Some(cut) = self.from_client.next() {
                    self.requests.push_back(cut);
                }
            }
            From::Old => {
                self.from_old.input.extend_from_slice(&piece.bytes);
                while let Some((_, message)) = self.from_old.next() {
                    self.answers.extend(message);
                }
            }
        }
        true
    }

    async fn new_answer(&mut self, new: &mut TcpStream) -> Result<Message, NotCompared> {
        let end = tokio::time::Instant::now() + ANSWERING;
        loop {
            while let Some((_, message)) = self.from_new.next() {
                if let Some(message) = message {
                    return Ok(message);
                }
            }
            match tokio::time::timeout_at(end, new.read_buf(&mut self.from_new.input)).await {
                Ok(Ok(0) | Err(_)) => return Err(NotCompared::Gone),
                Ok(Ok(_)) => {}
                Err(_) => return Err(NotCompared::Slow),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_that_is_too_long_is_cut() {
        let mut cutter = Cutter::default();
        let mut bodies = 0;
        for number in 0..200u16 {
            let mut packet = vec![4, u8::from(number == 199), 0x7F, 0xFF, 0, 0, 0, 0];
            packet.resize(0x7FFF, 0);
            cutter.input.extend_from_slice(&packet);
            while let Some((_, message)) = cutter.next() {
                if let Some(message) = message {
                    assert!(message.is_cut && message.body.len() <= LONGEST);
                    bodies += 1;
                }
            }
        }
        assert_eq!((bodies, cutter.input.len()), (1, 0));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut cutter = Cutter::default();
            cutter.input.extend_from_slice(&bytes);
            while cutter.next().is_some() {}
        }
    }
}
