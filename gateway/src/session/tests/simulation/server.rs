//! The simulated PostgreSQL: its connections, its locks, and the rows that it has committed.

use super::connection::Connection;
use super::plan::{Event, Meets, Plan, PROCEDURES};
use crate::postgres::memory;
use crate::postgres::{Address, Encryption, Host, Wanted};
use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep_until, Instant};

/// Replaces the protocol's version in a request to cancel a process's statement.
const CANCEL: i32 = 80_877_102;

pub struct Server {
    meets: HashMap<i32, Meets>,
    pub latency: Duration,
    state: Mutex<State>,
    /// The lock of each procedure's table.
    pub locks: Vec<Arc<tokio::sync::Mutex<()>>>,
}

struct State {
    rows: Vec<Row>,
    /// Calls whose single fault has happened.
    met: HashSet<i32>,
    /// When connections have ended that the gateway did not close.
    ends: Vec<Instant>,
    /// It takes no connections until then.
    down: Instant,
    processes: BTreeMap<i32, Process>,
    last_process: i32,
    wrong: Vec<String>,
}

/// A row that a call has written, with the role under which it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: i32,
    pub role: u32,
}

/// What reaches a connection besides its messages.
#[derive(Clone, Default)]
pub struct Signals {
    pub cancel: Arc<Notify>,
    pub notification: Arc<Notify>,
}

struct Process {
    signals: Signals,
    task: Option<AbortHandle>,
}

impl Server {
    /// Begins to listen, and lets the plan's faults happen.
    pub fn start(plan: &Plan) -> (Arc<Server>, Address) {
        let start = Instant::now();
        let server = Arc::new(Server {
            meets: plan.calls().map(|call| (call.id, call.meets)).collect(),
            latency: plan.latency,
            state: Mutex::new(State {
                rows: Vec::new(),
                met: HashSet::new(),
                ends: Vec::new(),
                down: start,
                processes: BTreeMap::new(),
                last_process: 0,
                wrong: Vec::new(),
            }),
            locks: (0..PROCEDURES).map(|_| Arc::default()).collect(),
        });
        let (name, mut arriving) = memory::listen("simulated", plan.buffers[0]);
        let listening = server.clone();
        tokio::spawn(async move {
            while let Some(stream) = arriving.recv().await {
                listening.accept(stream);
            }
        });
        for fault in &plan.faults {
            let (server, fault) = (server.clone(), *fault);
            tokio::spawn(async move {
                sleep_until(start + fault.at).await;
                server.happen(fault.event);
            });
        }
        let hosts = vec![Host { name, port: 1 }];
        (server, Address::new(hosts, String::from("log"), Encryption::default(), Wanted::Any))
    }

    fn accept(self: &Arc<Server>, stream: DuplexStream) {
        let mut state = self.state.lock();
        if Instant::now() < state.down {
            return;
        }
        state.last_process += 1;
        let (process, signals) = (state.last_process, Signals::default());
        state.processes.insert(process, Process { signals: signals.clone(), task: None });
        let server = self.clone();
        let task = tokio::spawn(async move {
            let gone = Gone { server, process };
            // an error is the end of the connection
            let _ = gone.server.serve(stream, process, signals).await;
        });
        state.processes.get_mut(&process).unwrap().task = Some(task.abort_handle());
    }

    async fn serve(
        self: &Arc<Server>,
        mut stream: DuplexStream,
        process: i32,
        signals: Signals,
    ) -> std::io::Result<()> {
        let length = stream.read_u32().await?;
        let mut body = vec![0; length as usize - 4];
        stream.read_exact(&mut body).await?;
        let mut body = Bytes::from(body);
        if body.get_i32() == CANCEL {
            if let Some(running) = self.state.lock().processes.get(&body.get_i32()) {
                running.signals.cancel.notify_waiters();
            }
            return Ok(());
        }
        Connection::new(self.clone(), stream, process, signals, &body).serve().await
    }

    fn happen(&self, event: Event) {
        let mut state = self.state.lock();
        match event {
            Event::Restarts(down) => {
                state.down = Instant::now() + down;
                let all: Vec<_> = state.processes.keys().copied().collect();
                all.into_iter().for_each(|process| state.end(process));
            }
            Event::Ends(index) => {
                let count = state.processes.len().max(1);
                if let Some(process) = state.processes.keys().nth(index % count).copied() {
                    state.end(process);
                }
            }
            Event::Notifies => {
                state.processes.values().for_each(|process| process.signals.notification.notify_one());
            }
        }
    }

    /// The fault of a call, and whether it has not happened yet.
    pub fn meets(&self, id: i32) -> (Meets, bool) {
        let meets = self.meets.get(&id).copied().unwrap_or(Meets::Nothing);
        (meets, !self.state.lock().met.contains(&id))
    }

    pub fn has_met(&self, id: i32) {
        self.state.lock().met.insert(id);
    }

    /// A connection ends by itself.
    pub fn ends(&self) {
        self.state.lock().ends.push(Instant::now());
    }

    pub fn store(&self, rows: &[Row]) {
        self.state.lock().rows.extend_from_slice(rows);
    }

    /// Notes an error of the gateway.
    pub fn is_wrong(&self, what: String) {
        self.state.lock().wrong.push(what);
    }

    pub fn rows(&self) -> Vec<Row> {
        self.state.lock().rows.clone()
    }

    pub fn wrong(&self) -> Option<String> {
        self.state.lock().wrong.first().cloned()
    }

    pub fn connections(&self) -> usize {
        self.state.lock().processes.len()
    }

    /// Whether a connection has ended by itself within the time.
    pub fn has_ended_since(&self, begin: Instant) -> bool {
        self.state.lock().ends.iter().any(|end| *end >= begin)
    }
}

impl State {
    fn end(&mut self, process: i32) {
        if let Some(task) = self.processes.get(&process).and_then(|process| process.task.as_ref()) {
            task.abort();
            self.ends.push(Instant::now());
        }
    }
}

/// Removes a process that has ended.
struct Gone {
    server: Arc<Server>,
    process: i32,
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.server.state.lock().processes.remove(&self.process);
    }
}
