//! A client of the simulation: it sends the calls of its steps, and notes the outcome of each.

use super::plan::{Call, Conduct, End, Meets, Step};
use super::server::Server;
use super::statements::login_of;
use crate::gateway::Gateway;
use crate::mirror::answer::Answer;
use crate::session::tests::{batch, packet, read_answer, Opened, ATTENTION};
use crate::tds::dialect::{Dialect, Version};
use bytes::{BufMut, BytesMut};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{split, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::{sleep, timeout, Instant};

/// Pause before a client logs in again.
const AGAIN: Duration = Duration::from_millis(500);
const RPC: u8 = 3;
const INTN: u8 = 0x26;

/// The outcome of a call, as far as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Written,
    NotWritten,
    /// The client has left, or was told that it is not known.
    Nothing,
}

pub struct Client {
    pub server: Arc<Server>,
    pub gateway: Arc<Gateway>,
    pub number: usize,
    pub buffer: usize,
    pub known: Vec<(i32, Known)>,
    /// The calls of each transaction that were still in it at its end.
    pub together: Vec<Vec<i32>>,
}

struct Talk {
    reader: ReadHalf<DuplexStream>,
    writer: WriteHalf<DuplexStream>,
    task: tokio::task::JoinHandle<()>,
    begin: Instant,
}

impl Client {
    /// Does all steps. An error is a promise that was not kept.
    pub async fn run(mut self, steps: Vec<Step>) -> Result<Client, String> {
        let mut talk = None;
        for step in &steps {
            sleep(step.pause).await;
            let open = match talk.take() {
                Some(open) => open,
                None => self.log_in().await?,
            };
            talk = match step.ends {
                None => self.call_each(open, &step.calls).await?,
                Some(end) => self.run_transaction(open, &step.calls, end).await?,
            };
        }
        if let Some(talk) = talk {
            talk.leave().await?;
        }
        Ok(self)
    }

    async fn log_in(&self) -> Result<Talk, String> {
        loop {
            let begin = Instant::now();
            let Opened { stream, task } =
                Opened::new(&self.gateway, dialect(), &login_of(self.number), self.buffer);
            let (mut reader, writer) = split(stream);
            let answer = read_answer(&mut reader, &dialect()).await;
            let talk = Talk { reader, writer, task, begin };
            if answer.is_ok_and(|answer| answer.logged_in) {
                return Ok(talk);
            }
            talk.leave().await?;
            sleep(AGAIN).await;
        }
    }

    /// Calls that share their transactions with those of other clients. None: the client has left.
    async fn call_each(&mut self, mut talk: Talk, calls: &[Call]) -> Result<Option<Talk>, String> {
        for call in calls {
            // one that talks runs on the session's own connection, which may have ended long before
            let begin = if call.meets == Meets::Talks { talk.begin } else { Instant::now() };
            let told = talk.call(call).await?;
            let known = told.unwrap_or(match call.client {
                Conduct::LeavesHalf(_) => Known::NotWritten,
                _ => Known::Nothing,
            });
            self.record(call, known, begin, told.is_some())?;
            if told.is_none() || matches!(call.client, Conduct::Leaves(_)) {
                talk.leave().await?;
                return Ok(None);
            }
        }
        Ok(Some(talk))
    }

    /// Sends calls in the client's own transaction. They are written only after its commit.
    async fn run_transaction(
        &mut self,
        mut talk: Talk,
        calls: &[Call],
        end: End,
    ) -> Result<Option<Talk>, String> {
        let begin = Instant::now();
        talk.batch("begin transaction").await?;
        let mut pending = Vec::new();
        for call in calls {
            let told = talk.call(call).await?;
            match told {
                Some(Known::Written) => pending.push(call),
                _ => self.known.push((call.id, Known::NotWritten)),
            }
            if told.is_none() || matches!(call.client, Conduct::Leaves(_)) {
                self.known.extend(pending.iter().map(|call| (call.id, Known::NotWritten)));
                talk.leave().await?;
                return Ok(None);
            }
            // a lost connection has ended it
            if told != Some(Known::Written) && talk.batch("select @@trancount").await?.rows != ["1"] {
                self.known.extend(pending.iter().map(|call| (call.id, Known::NotWritten)));
                return Ok(Some(talk));
            }
        }
        let statement = if end == End::Commit { "commit transaction" } else { "rollback transaction" };
        let answer = talk.batch(statement).await?;
        let known = match (end, answer.messages.as_slice()) {
            (End::Rollback, _) => Known::NotWritten,
            (End::Commit, []) => Known::Written,
            (End::Commit, messages) => of_messages(messages),
        };
        for call in &pending {
            self.record(call, known, begin, true)?;
        }
        self.together.push(pending.iter().map(|call| call.id).collect());
        Ok(Some(talk))
    }

    /// A client may be told that nothing is known only if a connection to PostgreSQL has ended meanwhile.
    fn record(&mut self, call: &Call, known: Known, begin: Instant, was_told: bool) -> Result<(), String> {
        if known == Known::Nothing && was_told && !self.server.has_ended_since(begin) {
            return Err(format!("call {} has an unknown outcome, and no connection has ended", call.id));
        }
        self.known.push((call.id, known));
        Ok(())
    }
}

impl Talk {
    /// None: the client has left.
    async fn call(&mut self, call: &Call) -> Result<Option<Known>, String> {
        let request = rpc(call);
        match call.client {
            Conduct::LeavesHalf(bytes) => {
                self.send(&request[..bytes.min(request.len() - 1)]).await?;
                return Ok(None);
            }
            Conduct::Splits(bytes, pause) => {
                let (first, rest) = request.split_at(bytes.min(request.len()));
                self.send(first).await?;
                sleep(pause).await;
                self.send(rest).await?;
            }
            _ => self.send(&request).await?,
        }
        let (dialect, mut is_cancelled) = (dialect(), false);
        let read = {
            let mut reading = pin!(read_answer(&mut self.reader, &dialect));
            let patience = match call.client {
                Conduct::Leaves(after) | Conduct::Cancels(after) => after,
                _ => Duration::MAX,
            };
            match timeout(patience, &mut reading).await {
                Ok(read) => read,
                Err(_) if matches!(call.client, Conduct::Leaves(_)) => return Ok(None),
                Err(_) => {
                    is_cancelled = true;
                    self.writer.write_all(&packet(ATTENTION, &[])).await.map_err(|_| has_ended())?;
                    reading.await
                }
            }
        };
        let mut answer = read.map_err(|_| has_ended())?;
        while is_cancelled && !answer.cancelled {
            let next = read_answer(&mut self.reader, &dialect).await.map_err(|_| has_ended())?;
            answer.cancelled = next.cancelled;
            answer.statuses.extend(next.statuses);
            answer.messages.extend(next.messages);
        }
        told(call, &answer).map(Some)
    }

    async fn batch(&mut self, text: &str) -> Result<Answer, String> {
        self.send(&batch(text, &dialect())).await?;
        read_answer(&mut self.reader, &dialect()).await.map_err(|_| has_ended())
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.writer.write_all(bytes).await.map_err(|_: io::Error| has_ended())
    }

    /// Disconnects, and waits until the session has ended.
    async fn leave(self) -> Result<(), String> {
        let Talk { reader, writer, task, .. } = self;
        drop(reader.unsplit(writer));
        task.await.map_err(|error| format!("a session has ended by {error}"))
    }
}

fn has_ended() -> String {
    String::from("the gateway has ended a session")
}

/// The outcome that an answer gives. Its status and the text of its message must be the call's number.
fn told(call: &Call, answer: &Answer) -> Result<Known, String> {
    let named: Vec<_> = answer.messages.iter().filter_map(|message| message.split_once(": call ")).collect();
    let own = call.id.to_string();
    if named.iter().any(|(_, id)| *id != own) || answer.statuses.iter().any(|status| *status != call.id) {
        return Err(format!("call {own} got the answer of another: {answer:?}"));
    }
    match answer.statuses.as_slice() {
        [_] if named.len() == 1 => Ok(Known::Written),
        [] => Ok(of_messages(&answer.messages)),
        _ => Err(format!("the answer to call {own} is not one: {answer:?}")),
    }
}

fn of_messages(messages: &[String]) -> Known {
    let has = |text: &str| messages.iter().any(|message| message.contains(text));
    if has("took effect is not known") {
        Known::Nothing
    } else if has("the statement took effect") {
        Known::Written
    } else {
        Known::NotWritten
    }
}

fn dialect() -> Dialect {
    Dialect::new(Version::Tds74)
}

/// An RPC message (MS-TDS 2.2.6.6).
fn rpc(call: &Call) -> BytesMut {
    let name = format!("ringlog.put_{}", call.procedure);
    let mut body = BytesMut::new();
    body.put_u32_le(4);
    body.put_u16_le(name.len() as u16);
    name.encode_utf16().for_each(|unit| body.put_u16_le(unit));
    body.put_u16_le(0);
    body.put_u8(3);
    "@id".encode_utf16().for_each(|unit| body.put_u16_le(unit));
    body.put_slice(&[0, INTN, 4, 4]);
    body.put_i32_le(call.id);
    packet(RPC, &body)
}
