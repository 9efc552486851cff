//! A connection of the simulated PostgreSQL (PostgreSQL: "Message Flow"): pipelines that are one transaction up to
//! their Sync, transactions with savepoints, locks that last as long as these.

use super::plan::Meets;
use super::server::{Row, Server, Signals};
use super::statements::{self, Statement};
use crate::postgres::fake::take_text;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::OwnedMutexGuard;
use tokio::time::sleep;

/// A wait for a lock without a limit that is longer is a deadlock.
const DEADLOCK: Duration = Duration::from_secs(60);
/// The messages of a call that talks, and the bytes of each: more than a shared transaction may send.
const MESSAGES: usize = 40;
const MESSAGE: usize = 32 << 10;

/// Why a statement is not completed.
pub enum Halt {
    /// SQLSTATE and text.
    Fails(&'static str, String),
    /// The connection ends.
    Ends,
}

impl From<io::Error> for Halt {
    fn from(_: io::Error) -> Halt {
        Halt::Ends
    }
}

pub struct Connection {
    server: Arc<Server>,
    stream: DuplexStream,
    input: BytesMut,
    output: BytesMut,
    process: i32,
    signals: Signals,
    pub user: String,
    is_group: bool,
    is_listening: bool,
    statements: HashMap<String, Statement>,
    bound: Option<(Statement, i32, bool)>,
    pub lock_timeout: Option<Duration>,
    /// The current role, and the one to which a rollback returns.
    role: u32,
    role_before: u32,
    /// The status byte of ReadyForQuery.
    pub status: u8,
    rows: Vec<Row>,
    locks: Vec<(u32, OwnedMutexGuard<()>)>,
    /// Each with the numbers of rows and locks before it.
    pub savepoints: Vec<(String, usize, usize)>,
    /// The transaction's commit waits for the disk.
    is_confirmed: bool,
    /// Messages are skipped up to the next Sync.
    skips: bool,
    /// The rest of the answer is lost after as many bytes.
    cut: Option<usize>,
}

impl Connection {
    /// `startup`: the parameters of the start-up message.
    pub fn new(
        server: Arc<Server>,
        stream: DuplexStream,
        process: i32,
        signals: Signals,
        startup: &[u8],
    ) -> Connection {
        let texts: Vec<_> = startup.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let named = |name| texts.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].to_string());
        let user = named("user").unwrap_or_default();
        let role = statements::role_of(&user);
        Connection {
            server,
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            process,
            signals,
            is_group: named("application_name").is_some_and(|name| name == "ringlog group commit"),
            user,
            is_listening: false,
            statements: HashMap::new(),
            bound: None,
            lock_timeout: None,
            role,
            role_before: role,
            status: b'I',
            rows: Vec::new(),
            locks: Vec::new(),
            savepoints: Vec::new(),
            is_confirmed: false,
            skips: false,
            cut: None,
        }
    }

    /// Ok: the gateway has closed it.
    pub async fn serve(mut self) -> io::Result<()> {
        self.put(b'R', &3i32.to_be_bytes());
        self.flush().await?;
        if self.message().await?.is_none() {
            return Ok(());
        }
        self.put(b'R', &0i32.to_be_bytes());
        self.put(b'S', b"server_version\x0017.0\0");
        let key = [self.process.to_be_bytes(), [0; 4]].concat();
        self.put(b'K', &key);
        self.ready();
        self.flush().await?;
        while let Some((kind, body)) = self.next().await? {
            if kind == b'X' {
                return Ok(());
            }
            match self.answer(kind, body).await {
                Ok(()) => {}
                Err(Halt::Fails(sqlstate, text)) => self.fail(sqlstate, &text),
                Err(Halt::Ends) => {
                    self.server.ends();
                    return Ok(());
                }
            }
            if matches!(kind, b'Q' | b'S') {
                self.skips = false;
                self.ready();
            }
            if matches!(kind, b'Q' | b'S' | b'H') {
                sleep(self.server.latency).await;
                self.flush().await?;
                if self.cut.is_some() {
                    self.server.ends();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The next message; meanwhile notifications are sent.
    async fn next(&mut self) -> io::Result<Option<(u8, Bytes)>> {
        let notification = self.signals.notification.clone();
        loop {
            tokio::select! {
                biased;
                message = self.message() => return message,
                () = notification.notified(), if self.is_listening => {
                    self.put(b'A', b"\0\0\0\0ringlog_catalogue\0\0");
                    self.flush().await?;
                }
            }
        }
    }

    async fn message(&mut self) -> io::Result<Option<(u8, Bytes)>> {
        loop {
            if let Some(length) = self.input.get(1..5) {
                let length = u32::from_be_bytes(length.try_into().unwrap()) as usize + 1;
                if self.input.len() >= length {
                    let mut message = self.input.split_to(length).freeze();
                    let kind = message.get_u8();
                    message.advance(4);
                    return Ok(Some((kind, message)));
                }
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn answer(&mut self, kind: u8, mut body: Bytes) -> Result<(), Halt> {
        match kind {
            b'Q' => {
                let text = take_text(&mut body);
                let run = self.run_simple(&text).await;
                if matches!(run, Err(Halt::Fails(..))) && self.status == b'I' {
                    self.roll_back();
                }
                run
            }
            b'S' if self.status != b'I' => Ok(()),
            b'S' if self.skips => {
                self.roll_back();
                Ok(())
            }
            b'S' => self.commit().await,
            b'H' => Ok(()),
            _ if self.skips => Ok(()),
            b'P' => {
                let name = take_text(&mut body);
                let statement = Statement::read(&take_text(&mut body));
                if statement == Statement::Unknown {
                    return Err(Halt::Fails("42601", String::from("a statement that is not simulated")));
                }
                self.statements.insert(name, statement);
                self.put(b'1', &[]);
                Ok(())
            }
            b'D' => {
                body.advance(1);
                let statement = self.statement(&take_text(&mut body))?;
                statements::describe(&statement, &mut self.output);
                Ok(())
            }
            b'B' => {
                take_text(&mut body);
                let statement = self.statement(&take_text(&mut body))?;
                let formats = body.get_u16();
                body.advance(2 * usize::from(formats) + 2 + 4);
                let value = body.get_i32();
                let is_binary = body.get_u16() > 0 && body.get_u16() == 1;
                self.bound = Some((statement, value, is_binary));
                self.put(b'2', &[]);
                Ok(())
            }
            b'E' => self.execute().await,
            b'C' => {
                body.advance(1);
                self.statements.remove(&take_text(&mut body));
                self.put(b'3', &[]);
                Ok(())
            }
            other => panic!("message {:?} is not simulated", other as char),
        }
    }

    fn statement(&self, name: &str) -> Result<Statement, Halt> {
        let known = self.statements.get(name).cloned();
        known.ok_or_else(|| Halt::Fails("26000", format!("prepared statement \"{name}\" does not exist")))
    }

    async fn run_simple(&mut self, text: &str) -> Result<(), Halt> {
        for statement in text.split("; ") {
            if self.status == b'E' && !statement.starts_with("rollback") && statement != "commit" {
                return Err(Halt::Fails("25P02", String::from("current transaction is aborted")));
            }
            let tag = match statement {
                "commit" if self.status == b'T' => {
                    self.status = b'I';
                    self.commit().await?;
                    "COMMIT"
                }
                "commit" | "rollback" => {
                    self.roll_back();
                    "ROLLBACK"
                }
                "listen ringlog_catalogue" => {
                    self.is_listening = true;
                    "LISTEN"
                }
                other => match statements::run(self, other) {
                    Some(rows) => {
                        for row in &rows {
                            self.put_row(row);
                        }
                        "SELECT"
                    }
                    None => {
                        self.server.is_wrong(format!("not simulated: {other}"));
                        return Err(Halt::Fails("42601", String::from("not simulated")));
                    }
                },
            };
            self.put(b'C', format!("{tag}\0").as_bytes());
        }
        Ok(())
    }

    async fn execute(&mut self) -> Result<(), Halt> {
        let Some((statement, value, is_binary)) = self.bound.take() else {
            return Err(Halt::Fails("34000", String::from("portal \"\" does not exist")));
        };
        if self.status == b'E' {
            return Err(Halt::Fails("25P02", String::from("current transaction is aborted")));
        }
        match statement {
            Statement::Role { is_confirmation } => {
                self.role = value as u32;
                self.is_confirmed = is_confirmation;
                self.put_row(&[None]);
            }
            Statement::Call { procedure } => {
                self.call(value, procedure).await?;
                let status = if is_binary { value.to_be_bytes().to_vec() } else { value.to_string().into() };
                self.put_row(&[Some(status)]);
            }
            Statement::Unknown => {}
        }
        self.put(b'C', b"SELECT 1\0");
        Ok(())
    }

    /// Runs a call, which writes its row, and says so.
    async fn call(&mut self, id: i32, procedure: u32) -> Result<(), Halt> {
        let (meets, is_first) = self.server.meets(id);
        if meets == Meets::EndsBefore && is_first {
            self.server.has_met(id);
            return Err(Halt::Ends);
        }
        if let Meets::Waits(time) = meets {
            self.wait(sleep(time), self.lock_timeout).await?;
        }
        if !self.locks.iter().any(|(locked, _)| *locked == procedure) {
            let lock = self.server.locks[procedure as usize].clone().lock_owned();
            let guard = self.wait(lock, self.lock_timeout.or(Some(DEADLOCK))).await?;
            self.locks.push((procedure, guard));
        }
        match meets {
            Meets::Error(sqlstate) => return Err(Halt::Fails(sqlstate, format!("error of call {id}"))),
            Meets::ErrorOnce(sqlstate) if is_first => {
                self.server.has_met(id);
                return Err(Halt::Fails(sqlstate, format!("error of call {id}")));
            }
            Meets::Takes(time) if is_first => {
                self.server.has_met(id);
                self.wait(sleep(time), None).await?;
            }
            Meets::Talks => self.talk().await?,
            _ => {}
        }
        self.put_notice("NOTICE", &format!("call {id}"), None);
        self.is_confirmed = false;
        self.rows.push(Row { id, role: self.role });
        if meets == Meets::EndsAfter && is_first {
            self.server.has_met(id);
            return Err(Halt::Ends);
        }
        Ok(())
    }

    async fn talk(&mut self) -> Result<(), Halt> {
        let cancel = self.signals.cancel.clone();
        let mut cancelled = pin!(cancel.notified());
        cancelled.as_mut().enable();
        let text = "x".repeat(MESSAGE);
        for _ in 0..MESSAGES {
            self.put_notice("NOTICE", &text, None);
            tokio::select! {
                biased;
                () = &mut cancelled => return Err(is_cancelled()),
                flushed = self.flush() => flushed?,
            }
        }
        Ok(())
    }

    /// Waits for `work`, at most as long as a lock may take. A request to cancel ends it.
    async fn wait<T>(&self, work: impl Future<Output = T>, most: Option<Duration>) -> Result<T, Halt> {
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.signals.cancel.notified() => Err(is_cancelled()),
            () = sleep(most.unwrap_or_default()), if most.is_some() => Err(match self.lock_timeout {
                Some(_) => Halt::Fails("55P03", String::from("canceling statement due to lock timeout")),
                None => Halt::Fails("40P01", String::from("deadlock detected")),
            }),
        }
    }

    async fn commit(&mut self) -> Result<(), Halt> {
        let mut met = Vec::new();
        for row in &self.rows {
            let (meets, is_first) = self.server.meets(row.id);
            let is_of_commit = matches!(
                meets,
                Meets::EndsUnstored
                    | Meets::EndsStored
                    | Meets::Cut(_)
                    | Meets::CommitFails
                    | Meets::Unconfirmed
            );
            if is_first && is_of_commit {
                self.server.has_met(row.id);
                met.push(meets);
            }
        }
        if met.contains(&Meets::EndsUnstored) {
            return Err(Halt::Ends);
        }
        if met.contains(&Meets::CommitFails) {
            self.roll_back();
            return Err(Halt::Fails("23503", String::from("a deferred constraint is violated")));
        }
        if self.is_group && !self.rows.is_empty() && !self.is_confirmed {
            self.server.is_wrong(String::from("a group was committed without waiting for the disk"));
        }
        self.server.store(&self.rows);
        self.end_transaction(self.role);
        if met.contains(&Meets::EndsStored) {
            return Err(Halt::Ends);
        }
        if met.contains(&Meets::Unconfirmed) {
            self.put_notice("WARNING", "canceling the wait", Some("SyncRepWaitForLSN"));
        }
        self.cut =
            met.iter().find_map(|meets| if let Meets::Cut(after) = meets { Some(*after) } else { None });
        Ok(())
    }

    fn roll_back(&mut self) {
        self.end_transaction(self.role_before);
    }

    fn end_transaction(&mut self, role: u32) {
        (self.role, self.role_before) = (role, role);
        self.status = b'I';
        self.rows.clear();
        self.locks.clear();
        self.savepoints.clear();
    }

    pub fn save(&mut self, name: &str) {
        self.savepoints.push((name.to_owned(), self.rows.len(), self.locks.len()));
    }

    /// Rolls back to a savepoint.
    pub fn go_back(&mut self, name: &str) {
        let Some(index) = self.savepoints.iter().rposition(|(savepoint, ..)| savepoint == name) else {
            return self.server.is_wrong(format!("savepoint {name} does not exist"));
        };
        self.savepoints.truncate(index + 1);
        let (_, rows, locks) = &self.savepoints[index];
        self.rows.truncate(*rows);
        self.locks.truncate(*locks);
        self.status = b'T';
    }

    fn fail(&mut self, sqlstate: &str, text: &str) {
        if self.status == b'T' {
            self.status = b'E';
        }
        self.skips = true;
        self.put(b'E', format!("VERROR\0C{sqlstate}\0M{text}\0\0").as_bytes());
    }

    fn put(&mut self, kind: u8, body: &[u8]) {
        statements::put(&mut self.output, kind, body);
    }

    fn put_row(&mut self, values: &[Option<Vec<u8>>]) {
        let mut row = BytesMut::new();
        row.put_u16(values.len() as u16);
        for value in values {
            row.put_i32(value.as_ref().map_or(-1, |value| value.len() as i32));
            row.put_slice(value.as_deref().unwrap_or_default());
        }
        self.put(b'D', &row);
    }

    fn put_notice(&mut self, severity: &str, text: &str, routine: Option<&str>) {
        let routine = routine.map_or(String::new(), |routine| format!("R{routine}\0"));
        self.put(b'N', format!("V{severity}\0C00000\0M{text}\0{routine}\0").as_bytes());
    }

    fn ready(&mut self) {
        self.put(b'Z', &[self.status]);
    }

    async fn flush(&mut self) -> io::Result<()> {
        if let Some(after) = self.cut {
            self.output.truncate(after);
        }
        while self.output.has_remaining() {
            self.stream.write_buf(&mut self.output).await?;
        }
        Ok(())
    }
}

fn is_cancelled() -> Halt {
    Halt::Fails("57014", String::from("canceling statement due to user request"))
}
