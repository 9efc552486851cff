//! A scripted PostgreSQL, for tests of the T-SQL interpreter: answers each statement of a client by the
//! script, handles transactions and savepoints like PostgreSQL, and records the statements.

use super::fake::{take_text, Arrived, Fake, Peer};
use super::script::{rows, Answer, Cell, Script};
use super::Address;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::Notify;

/// The query of the columns that a change fills, whose types are compared at each run.
const CHECK: &str = "select \"n\" from ";

struct State {
    script: Script,
    sent: Vec<String>,
    /// The waiting processes, by id.
    hanging: HashMap<i32, Arc<Notify>>,
}

/// The server: its connections are served until it is dropped.
pub struct Scripted {
    pub address: Address,
    state: Arc<Mutex<State>>,
    /// Notified when a statement has arrived.
    came: Arc<Notify>,
    /// Ends the connections of sessions.
    end: Arc<Notify>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Scripted {
    /// `own`: the role whose statements are answered without rows and not recorded. The names of the script are also
    /// tables with an int column n, unless their first statement is refused.
    pub async fn start(mut script: Script, own: &'static str) -> Scripted {
        script.0.insert(0, (CHECK, [rows([0])].into()));
        let fake = Fake::new().await;
        let address = fake.address();
        let state = Arc::new(Mutex::new(State { script, sent: Vec::new(), hanging: HashMap::new() }));
        let came = Arc::new(Notify::new());
        let end = Arc::new(Notify::new());
        let (shared, ring, ended) = (state.clone(), came.clone(), end.clone());
        let serving = tokio::spawn(async move {
            loop {
                match fake.arrived().await {
                    Arrived::Peer(peer) if peer.user == own => {
                        tokio::spawn(answer_all(peer));
                    }
                    Arrived::Peer(peer) => {
                        let (backend, ended) =
                            (Backend::new(peer, shared.clone(), ring.clone()), ended.clone());
                        tokio::spawn(async move {
                            tokio::select! {
                                () = ended.notified() => {}
                                () = backend.serve() => {}
                            }
                        });
                    }
                    Arrived::Cancel(process) => {
                        if let Some(hanging) = shared.lock().hanging.get(&process) {
                            hanging.notify_waiters();
                        }
                    }
                }
            }
        });
        Scripted { address, state, came, end, serving }
    }

    /// Ends the connections of all sessions.
    pub fn end_connections(&self) {
        self.end.notify_waiters();
    }

    /// The statements since the last call: those of the script by their names there, with the values of their
    /// parameters, and all others by their text.
    pub fn sent(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().sent)
    }

    /// Waits until the statement has arrived.
    pub async fn until(&self, statement: &str) {
        loop {
            let next = self.came.notified();
            tokio::pin!(next);
            next.as_mut().enable();
            if self.state.lock().sent.iter().any(|sent| sent.starts_with(statement)) {
                return;
            }
            next.await;
        }
    }
}

async fn answer_all(mut peer: Peer) {
    while let Some((kind, _)) = peer.next_message().await {
        if kind == b'Q' {
            peer.answer().await;
        }
    }
}

/// A parsed statement.
#[derive(Clone)]
struct Parsed {
    /// Its index in the script.
    rule: usize,
    parameters: Vec<u32>,
}

/// A statement with the values of its parameters.
struct Bound {
    rule: usize,
    values: String,
    /// The formats of its columns, 1 for binary.
    formats: Vec<u16>,
}

type Failed = (&'static str, String);

struct Backend {
    peer: Peer,
    state: Arc<Mutex<State>>,
    came: Arc<Notify>,
    statements: HashMap<String, Parsed>,
    bound: Option<Bound>,
    /// The status byte of ReadyForQuery.
    status: u8,
    savepoints: Vec<String>,
    /// The transaction has changed something.
    has_written: bool,
    /// Messages are skipped up to the next Sync.
    skips: bool,
}

impl Backend {
    fn new(peer: Peer, state: Arc<Mutex<State>>, came: Arc<Notify>) -> Backend {
        Backend {
            peer,
            state,
            came,
            statements: HashMap::new(),
            bound: None,
            status: b'I',
            savepoints: Vec::new(),
            has_written: false,
            skips: false,
        }
    }

    async fn serve(mut self) {
        while let Some((kind, body)) = self.peer.next_message().await {
            let stays = match kind {
                b'Q' => self.run_simple(body).await,
                b'S' => {
                    self.skips = false;
                    self.peer.ready(self.status).await;
                    true
                }
                b'X' => false,
                _ if self.skips => true,
                b'P' => self.parse(body).await,
                b'D' => self.describe(body).await,
                b'B' => self.bind(body).await,
                b'E' => self.execute().await,
                b'C' => {
                    self.peer.put(b'3', &[]).await;
                    true
                }
                // Flush
                b'H' => true,
                other => panic!("message {:?} is not served", other as char),
            };
            if !stays {
                return;
            }
        }
    }

    fn note(&self, statement: String) {
        self.state.lock().sent.push(statement);
        self.came.notify_waiters();
    }

    /// Statements of the simple protocol are the gateway's own: the script need not contain them. Its queries are not
    /// recorded.
    async fn run_simple(&mut self, mut body: Bytes) -> bool {
        let text = take_text(&mut body);
        let is_asked = text.starts_with("select ");
        if let Some(rule) = self.rule(&text).filter(|_| !is_asked) {
            let is_commit = text == "commit";
            if !self.answer(&Bound { rule, values: String::new(), formats: Vec::new() }).await {
                return false;
            }
            if is_commit {
                self.end_transaction();
            }
        } else {
            if !is_asked {
                self.note(text.clone());
            }
            for name in self.tables_of(&text) {
                let cells = [&name, "1", "n", "23", "-1", "", "", "f", "int", "f", "f", ""];
                self.put_cells(cells.map(|cell| (!cell.is_empty()).then_some(cell.as_bytes()))).await;
            }
            for statement in text.split("; ") {
                match self.run_own(statement) {
                    Ok((tag, value)) => {
                        if let Some(value) = value {
                            self.put_row(&[value.as_bytes().to_vec()]).await;
                        }
                        self.peer.put(b'C', format!("{tag}\0").as_bytes()).await;
                    }
                    Err((sqlstate, text)) => {
                        self.fail(sqlstate, &text).await;
                        break;
                    }
                }
            }
        }
        self.skips = false;
        self.peer.ready(self.status).await;
        true
    }

    /// The tables of the script, by their names in SQL, whose declarations the text asks for.
    fn tables_of(&self, text: &str) -> Vec<String> {
        if !text.starts_with("select * from (\n-- tables") {
            return Vec::new();
        }
        let script = &self.state.lock().script.0;
        let is_made = |answers: &VecDeque<Answer>| !matches!(answers.front(), Some(Answer::Refused(..)));
        let made = script.iter().filter(|(_, answers)| is_made(answers));
        made.map(|(part, _)| format!("\"{part}\""))
            .filter(|name| text.contains(&format!("'{name}'")))
            .collect()
    }

    /// A statement of the gateway's own: its tag, and the value that it returns.
    fn run_own(&mut self, statement: &str) -> Result<(&'static str, Option<&'static str>), Failed> {
        let words: Vec<_> = statement.split(' ').collect();
        let is_end = matches!(words[0], "commit" | "rollback");
        if self.status == b'E' && !is_end {
            return Err(("25P02", format!("current transaction is aborted: {statement}")));
        }
        match words.as_slice() {
            ["begin", ..] if self.status != b'I' => {
                Err(("25001", String::from("there is already a transaction in progress")))
            }
            ["begin", ..] => {
                self.status = b'T';
                Ok(("BEGIN", None))
            }
            ["commit"] | ["rollback"] => {
                let is_kept = words[0] == "commit" && self.status != b'E';
                self.end_transaction();
                Ok((if is_kept { "COMMIT" } else { "ROLLBACK" }, None))
            }
            ["savepoint", name] => {
                if self.status == b'I' {
                    return Err(("25P01", String::from("SAVEPOINT can only be used in transaction blocks")));
                }
                self.savepoints.push((*name).to_owned());
                Ok(("SAVEPOINT", None))
            }
            ["release", "savepoint", name] => {
                let index = self.savepoint(name)?;
                self.savepoints.truncate(index);
                Ok(("RELEASE", None))
            }
            ["rollback", "to", "savepoint", name] => {
                let index = self.savepoint(name)?;
                self.savepoints.truncate(index + 1);
                self.status = b'T';
                Ok(("ROLLBACK", None))
            }
            ["set" | "reset" | "discard" | "lock", ..] => Ok(("SET", None)),
            ["select", "pg_catalog.pg_current_xact_id_if_assigned()"] => {
                Ok(("SELECT 1", self.has_written.then_some("1")))
            }
            ["select", asked, ..] if asked.starts_with("pg_catalog.current_schema()") => {
                Ok(("SELECT 1", Some("public")))
            }
            ["select", "nspname", ..] => Ok(("SELECT 1", Some("public"))),
            ["select", ..] => Ok(("SELECT 0", None)),
            _ => Err(("XX000", format!("not in the script: {statement}"))),
        }
    }

    fn end_transaction(&mut self) {
        self.status = b'I';
        self.savepoints.clear();
        self.has_written = false;
    }

    fn savepoint(&self, name: &str) -> Result<usize, Failed> {
        let index = self.savepoints.iter().rposition(|savepoint| savepoint == name);
        index.ok_or_else(|| ("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    fn rule(&self, text: &str) -> Option<usize> {
        self.state.lock().script.0.iter().position(|(part, _)| text.contains(part))
    }

    async fn parse(&mut self, mut body: Bytes) -> bool {
        let (name, text) = (take_text(&mut body), take_text(&mut body));
        let parameters = (0..body.get_u16()).map(|_| body.get_u32()).collect();
        if self.status == b'E' {
            return self.fail("25P02", &format!("current transaction is aborted: {text}")).await;
        }
        let Some(rule) = self.rule(&text) else {
            self.note(text.clone());
            return self.fail("XX000", &format!("not in the script: {text}")).await;
        };
        let refused = match self.state.lock().script.0[rule].1.front() {
            Some(Answer::Refused(sqlstate, text)) => Some((*sqlstate, *text)),
            _ => None,
        };
        if let Some((sqlstate, text)) = refused {
            let part = self.next_answer(rule).0;
            self.note(part.to_owned());
            return self.fail(sqlstate, text).await;
        }
        self.statements.insert(name, Parsed { rule, parameters });
        self.peer.put(b'1', &[]).await;
        true
    }

    async fn describe(&mut self, mut body: Bytes) -> bool {
        assert_eq!(body.get_u8(), b'S');
        let Parsed { rule, parameters } = self.statements[&take_text(&mut body)].clone();
        let mut described = BytesMut::new();
        described.put_u16(u16::try_from(parameters.len()).unwrap());
        parameters.iter().for_each(|oid| described.put_u32(*oid));
        self.peer.put(b't', &described).await;
        let first = |answer: &Answer| match answer {
            Answer::Rows(rows) => Some(rows.first().cloned().unwrap_or_else(|| vec![Cell::Int(0)])),
            _ => None,
        };
        let columns = self.state.lock().script.0[rule].1.iter().find_map(first);
        let Some(columns) = columns else {
            self.peer.put(b'n', &[]).await;
            return true;
        };
        let mut described = BytesMut::new();
        described.put_u16(u16::try_from(columns.len()).unwrap());
        for cell in columns {
            let (oid, size) = match cell {
                Cell::Bool(_) => (16, 1),
                Cell::Int(_) => (23, 4),
                Cell::Text(_) => (25, -1),
            };
            described.put_slice(b"column\0");
            described.put_slice(&[0; 6]);
            described.put_u32(oid);
            described.put_i16(size);
            described.put_i32(-1);
            described.put_u16(0);
        }
        self.peer.put(b'T', &described).await;
        true
    }

    async fn bind(&mut self, mut body: Bytes) -> bool {
        let portal = take_text(&mut body);
        assert_eq!(portal, "");
        let Parsed { rule, parameters } = self.statements[&take_text(&mut body)].clone();
        let formats: Vec<_> = (0..body.get_u16()).map(|_| body.get_u16()).collect();
        let mut values = String::new();
        assert_eq!(usize::from(body.get_u16()), parameters.len());
        for (index, oid) in parameters.iter().enumerate() {
            let Ok(length) = usize::try_from(body.get_i32()) else {
                values.push_str(" null");
                continue;
            };
            let mut value = body.split_to(length);
            match (oid, formats[index]) {
                (21, 1) => write!(values, " {}", value.get_i16()),
                (23, 1) => write!(values, " {}", value.get_i32()),
                _ => write!(values, " {}", String::from_utf8_lossy(&value)),
            }
            .unwrap();
        }
        let formats = (0..body.get_u16()).map(|_| body.get_u16()).collect();
        self.bound = Some(Bound { rule, values, formats });
        self.peer.put(b'2', &[]).await;
        true
    }

    async fn execute(&mut self) -> bool {
        let bound = self.bound.take().unwrap();
        self.answer(&bound).await
    }

    fn next_answer(&self, rule: usize) -> (&'static str, Answer) {
        let (part, answers) = &mut self.state.lock().script.0[rule];
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        (part, answer.unwrap())
    }

    /// Executes a statement of the script. False: the connection ends.
    async fn answer(&mut self, bound: &Bound) -> bool {
        let (part, answer) = self.next_answer(bound.rule);
        self.note(format!("{part}{}", bound.values));
        if self.status == b'E' {
            return self.fail("25P02", "current transaction is aborted").await;
        }
        match answer {
            Answer::Rows(rows) => {
                for row in &rows {
                    let values: Vec<_> = row
                        .iter()
                        .enumerate()
                        .map(|(index, cell)| match (cell, bound.formats.get(index)) {
                            (Cell::Bool(value), Some(1)) => vec![u8::from(*value)],
                            (Cell::Bool(value), _) => String::from(if *value { "t" } else { "f" }).into(),
                            (Cell::Int(value), Some(1)) => value.to_be_bytes().into(),
                            (Cell::Int(value), _) => value.to_string().into(),
                            (Cell::Text(value), _) => value.as_bytes().into(),
                        })
                        .collect();
                    self.put_row(&values).await;
                }
                self.peer.put(b'C', format!("SELECT {}\0", rows.len()).as_bytes()).await;
                true
            }
            Answer::Done(tag) => {
                self.has_written |= self.status == b'T';
                self.peer.put(b'C', format!("{tag}\0").as_bytes()).await;
                true
            }
            Answer::Fails(sqlstate, text) | Answer::Refused(sqlstate, text) => {
                self.fail(sqlstate, text).await
            }
            Answer::Hangs => {
                let hanging = Arc::new(Notify::new());
                let process = self.peer.process;
                self.state.lock().hanging.insert(process, hanging.clone());
                hanging.notified().await;
                self.state.lock().hanging.remove(&process);
                self.note(format!("{part} cancelled"));
                self.fail("57014", "canceling statement due to user request").await
            }
            Answer::Dies => false,
        }
    }

    async fn put_row(&mut self, values: &[Vec<u8>]) {
        self.put_cells(values.iter().map(|value| Some(value.as_slice()))).await;
    }

    async fn put_cells<'v>(&mut self, values: impl IntoIterator<Item = Option<&'v [u8]>>) {
        let values: Vec<_> = values.into_iter().collect();
        let mut row = BytesMut::new();
        row.put_u16(u16::try_from(values.len()).unwrap());
        for value in values {
            row.put_i32(value.map_or(-1, |value| i32::try_from(value.len()).unwrap()));
            row.put_slice(value.unwrap_or_default());
        }
        self.peer.put(b'D', &row).await;
    }

    async fn fail(&mut self, sqlstate: &str, text: &str) -> bool {
        if self.status == b'T' {
            self.status = b'E';
        }
        self.skips = true;
        self.peer.say(b'E', "ERROR", sqlstate, text).await;
        true
    }
}
