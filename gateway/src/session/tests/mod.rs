//! Sessions with a scripted PostgreSQL: which statements of T-SQL run, in which order, and the client's answers.

mod control_flow;
mod errors;
mod interruptions;
mod simulation;
mod transactions;

use super::*;
use crate::limits::shares::Claimant;
use crate::mirror::answer::{self, Answer};
use crate::postgres::priority::WriterPriority;
use crate::postgres::script::Script;
use crate::postgres::scripted::Scripted;
use crate::postgres::{Address, PgError};
use crate::tds::dialect::{Dialect, Version};
use crate::tds::login::Login;
use crate::threads::Pool;
use bytes::{Buf, BufMut, BytesMut};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use tokio::io::{duplex, AsyncRead, AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The gateway's own role.
const OWN: &str = "gateway";
const BATCH: u8 = 1;
const ATTENTION: u8 = 6;

/// A client that is logged in.
struct Talk {
    stream: DuplexStream,
    postgres: Scripted,
    dialect: Dialect,
    /// Ends the session when dropped.
    _stopping: tokio_util::sync::DropGuard,
}

/// A gateway on this thread, before one PostgreSQL.
async fn start(address: Address, stopping: CancellationToken) -> Result<Arc<Gateway>, PgError> {
    let priority = WriterPriority::new(false, None);
    let (here, connections) = (Pool::here(), Pool::here());
    Gateway::start(
        address,
        OWN,
        "password",
        Vec::new(),
        Vec::new(),
        None,
        priority,
        stopping,
        here,
        connections,
    )
    .await
}

async fn talk(script: Script) -> Talk {
    talk_at(Version::Tds74, script).await
}

async fn talk_at(version: Version, script: Script) -> Talk {
    let postgres = Scripted::start(script, OWN).await;
    let stopping = CancellationToken::new();
    let gateway = start(postgres.address.clone(), stopping.clone()).await.unwrap();
    let dialect = Dialect::new(version);
    let Opened { stream, .. } = Opened::new(&gateway, dialect, "writer", 1 << 20);
    let mut talk = Talk { stream, postgres, dialect, _stopping: stopping.drop_guard() };
    assert!(talk.reply().await.logged_in);
    talk.postgres.sent();
    talk
}

/// A session that logs in, and its client's stream.
struct Opened {
    stream: DuplexStream,
    task: JoinHandle<()>,
}

impl Opened {
    /// `buffer`: the bytes that the stream holds in each direction.
    fn new(gateway: &Arc<Gateway>, dialect: Dialect, user: &str, buffer: usize) -> Opened {
        let login = Login::plain(dialect, user);
        let (stream, ours) = duplex(buffer);
        let gateway = gateway.clone();
        let task = tokio::spawn(async move {
            let entry = gateway.admission.enter(IpAddr::V4(Ipv4Addr::LOCALHOST));
            let limits = entry.limits();
            let mut client = Client::new(Box::new(ours), 1, LONGEST_REQUEST);
            client.set_dialect(dialect);
            let login_name = login.user.as_str().into();
            let claimant = Claimant { login: login_name, most: usize::MAX, has_reserve: true };
            let permit = gateway.logins.try_take(&claimant).unwrap();
            let entered = login::enter(&mut client, 1, &limits, &gateway, login, permit).await;
            // the client has read why it was refused
            let Ok((interpreter, permit)) = entered else { return };
            let backend = &interpreter.state.procedures.backend;
            client.admit(LONGEST_REQUEST, gateway.room.slots(backend.user()), backend.occupied());
            let stopping = gateway.stopping.clone();
            let session = Session { client, interpreter, gateway, _permit: permit, statements: 0 };
            // its end is the end of the stream
            let _ = Box::new(session).serve(stopping, Span::none()).await;
        });
        Opened { stream, task }
    }
}

fn packet(kind: u8, body: &[u8]) -> BytesMut {
    let mut packet = BytesMut::new();
    packet.put_slice(&[kind, 1]);
    packet.put_u16(u16::try_from(body.len() + 8).unwrap());
    packet.put_u32(0);
    packet.put_slice(body);
    packet
}

fn batch(text: &str, dialect: &Dialect) -> BytesMut {
    let mut body = BytesMut::new();
    if dialect.version >= Version::Tds72 {
        body.put_u32_le(4);
    }
    if dialect.is_tds7() {
        text.encode_utf16().for_each(|unit| body.put_u16_le(unit));
    } else {
        body.put_slice(text.as_bytes());
    }
    packet(BATCH, &body)
}

async fn read_answer(stream: &mut (impl AsyncRead + Unpin), dialect: &Dialect) -> io::Result<Answer> {
    let mut body = BytesMut::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).await?;
        let length = usize::from((&header[2..]).get_u16()) - header.len();
        let begin = body.len();
        body.resize(begin + length, 0);
        stream.read_exact(&mut body[begin..]).await?;
        if header[1] & 1 == 1 {
            return Ok(answer::read(&body, dialect).unwrap());
        }
    }
}

impl Talk {
    /// Runs a batch and returns its answer.
    async fn batch(&mut self, text: &str) -> Answer {
        self.send(text).await;
        self.reply().await
    }

    async fn send(&mut self, text: &str) {
        self.stream.write_all(&batch(text, &self.dialect)).await.unwrap();
    }

    async fn cancel(&mut self) {
        self.stream.write_all(&packet(ATTENTION, &[])).await.unwrap();
    }

    async fn reply(&mut self) -> Answer {
        read_answer(&mut self.stream, &self.dialect).await.unwrap()
    }

    /// @@trancount, for which PostgreSQL is not queried.
    async fn depth(&mut self) -> String {
        self.batch("select @@trancount").await.rows.remove(0)
    }

    /// The statements sent to PostgreSQL since the last call, without the setting that informs triggers of a TRY block.
    fn sent(&self) -> String {
        let mut sent = self.postgres.sent();
        sent.retain(|statement| !statement.starts_with("set tsql.try = "));
        sent.join(", ")
    }
}
