//! The results of a mirror: counts for monitoring, and a report of differences, one line of JSON each.

use super::answer::Difference;
use prometheus_client::encoding::{text, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{exponential_buckets, Histogram};
use prometheus_client::registry::{Registry, Unit};
use serde_json::json;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum lines for the same request and part: further differences are only counted.
const MOST_ALIKE: u32 = 20;
/// Different requests that are counted separately.
const MOST_KINDS: usize = 10_000;
/// Maximum lines that wait to be written, to bound the memory.
const WAITING: usize = 1000;
/// How long the end of the mirror waits for the last lines.
const FINISHING: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// The reason why a request, or the rest of a session, was not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotCompared {
    /// The shadow had more waiting requests than it may hold.
    Behind,
    Unreachable,
    Gone,
    Slow,
    /// The new server refused the login.
    Refused,
    Encrypted,
    /// The answer has a token that the mirror does not read.
    Unread,
    Long,
    Cancelled,
    /// The answer is the session's number, which differs between servers.
    Own,
}

impl NotCompared {
    fn reason(self) -> &'static str {
        match self {
            NotCompared::Behind => "behind",
            NotCompared::Unreachable => "unreachable",
            NotCompared::Gone => "gone",
            NotCompared::Slow => "slow",
            NotCompared::Refused => "refused",
            NotCompared::Encrypted => "encrypted",
            NotCompared::Unread => "unread",
            NotCompared::Long => "long",
            NotCompared::Cancelled => "cancelled",
            NotCompared::Own => "own",
        }
    }

    fn description(self) -> &'static str {
        match self {
            NotCompared::Behind => "the other server was too slow: the rest of this session was not compared",
            NotCompared::Unreachable => {
                "the other server could not be reached: this session was not compared"
            }
            NotCompared::Gone => "the other server has closed the connection: the rest was not compared",
            NotCompared::Slow => "the other server did not answer for a minute: the rest was not compared",
            NotCompared::Refused => "the other server refused this login",
            NotCompared::Encrypted => "this session is encrypted, or its password is: it was not compared",
            NotCompared::Unread => "the login could not be read: this session was not compared",
            NotCompared::Long => "an answer was too long to be compared",
            NotCompared::Cancelled => "a request was cancelled",
            NotCompared::Own => "a session's own number was asked",
        }
    }
}

/// A request whose answers differ.
pub struct Finding<'a> {
    pub client: &'a str,
    pub login: &'a str,
    pub request: String,
    pub differences: Vec<Difference>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Part {
    part: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// Messages to the thread that writes the report.
#[derive(Debug)]
enum Line {
    Text(String),
    /// The sender waits until all earlier lines are written.
    Last(SyncSender<()>),
}

#[derive(Debug)]
pub struct Record {
    registry: Registry,
    pub clients: Gauge,
    compared: Counter,
    differing: Counter,
    differences: Family<Part, Counter>,
    not_compared: Family<Reason, Counter>,
    latency: Histogram,
    lines: SyncSender<Line>,
    lost_lines: Counter,
    /// The number of differences of each request and part.
    known: Mutex<HashMap<(String, &'static str), u32>>,
}

impl Record {
    /// Begins or continues a report.
    pub fn open(report: &Path) -> io::Result<Record> {
        let file = OpenOptions::new().create(true).append(true).open(report)?;
        let (lines, waiting) = sync_channel(WAITING);
        std::thread::Builder::new().name("ringlog-report".into()).spawn(move || write(file, &waiting))?;
        let mut record = Record {
            registry: Registry::with_prefix("ringlog_mirror"),
            clients: Gauge::default(),
            compared: Counter::default(),
            differing: Counter::default(),
            differences: Family::default(),
            not_compared: Family::default(),
            latency: Histogram::new(exponential_buckets(64e-6, 2.0, 18)),
            lines,
            lost_lines: Counter::default(),
            known: Mutex::default(),
        };
        let registry = &mut record.registry;
        registry.register("clients", "Connected clients", record.clients.clone());
        registry.register("compared", "Requests whose two answers were compared", record.compared.clone());
        registry.register("differing", "Requests whose answers differ", record.differing.clone());
        let parts = "Differences: in the status, outputs, messages, columns, rows, counts";
        registry.register("differences", parts, record.differences.clone());
        let reasons = "Requests that were not compared, and sessions from there on, by the reason";
        registry.register("not_compared", reasons, record.not_compared.clone());
        let latency = "How long the other server took for an answer";
        registry.register_with_unit("answer", latency, Unit::Seconds, record.latency.clone());
        let lost = "Lines of the report that could not be written fast enough";
        registry.register("lost_report_lines", lost, record.lost_lines.clone());
        Ok(record)
    }

    pub fn compared(&self, took: Duration) {
        self.compared.inc();
        self.latency.observe(took.as_secs_f64());
    }

    /// Counts a request that was not compared.
    pub fn not_compared(&self, why: NotCompared) {
        self.not_compared.get_or_create(&Reason { reason: why.reason() }).inc();
    }

    /// Records that a session is no longer compared.
    pub fn lost(&self, why: NotCompared, client: &str, login: &str) {
        self.not_compared(why);
        if self.is_new(client.rsplit_once(':').map_or(client, |(host, _)| host), why.reason()) {
            self.put(json!({
                "time": now(), "client": client, "login": login, "not_compared": why.reason(),
                "words": why.description(),
            }));
        }
    }

    pub fn differs(&self, finding: Finding<'_>) {
        self.differing.inc();
        for difference in finding.differences {
            self.differences.get_or_create(&Part { part: difference.part }).inc();
            if self.is_new(&finding.request, difference.part) {
                self.put(json!({
                    "time": now(), "client": finding.client, "login": finding.login,
                    "request": finding.request, "part": difference.part,
                    "old": difference.old, "new": difference.new,
                }));
            }
        }
    }

    /// Whether the report has few lines about this so far.
    fn is_new(&self, request: &str, part: &'static str) -> bool {
        let mut known = match self.known.lock() {
            Ok(known) => known,
            Err(poisoned) => poisoned.into_inner(),
        };
        let key = (request.to_owned(), part);
        if known.len() >= MOST_KINDS && !known.contains_key(&key) {
            return false;
        }
        let count = known.entry(key).or_insert(0);
        *count = count.saturating_add(1);
        *count <= MOST_ALIKE
    }

    fn put(&self, line: serde_json::Value) {
        if self.lines.try_send(Line::Text(line.to_string())).is_err() {
            self.lost_lines.inc();
        }
    }

    /// Waits until all lines so far are written, but not for a disk that accepts no data.
    pub fn finish(&self) {
        let end = Instant::now() + FINISHING;
        let (written, wait) = sync_channel(1);
        while Instant::now() < end {
            match self.lines.try_send(Line::Last(written.clone())) {
                Ok(()) => {
                    let _ = wait.recv_timeout(FINISHING);
                    return;
                }
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// All counts as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // writing to a String does not fail
        let _ = text::encode(&mut out, &self.registry);
        out
    }
}

fn write(mut file: impl Write, lines: &Receiver<Line>) {
    while let Ok(line) = lines.recv() {
        match line {
            Line::Text(line) if writeln!(file, "{line}").is_err() => {
                tracing::error!("the mirror's report cannot be written");
            }
            Line::Text(_) => {}
            Line::Last(written) => {
                let _ = written.send(());
            }
        }
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow disk.
    struct Slow(SyncSender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            std::thread::sleep(PAUSE);
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_end_waits_for_the_last_lines() {
        let mut record = Record::open(Path::new("/dev/null")).unwrap();
        let (disk, written) = sync_channel(WAITING);
        let (lines, waiting) = sync_channel(WAITING);
        record.lines = lines;
        std::thread::spawn(move || write(Slow(disk), &waiting));
        for number in 0..5 {
            record.put(json!(number));
        }
        record.finish();
        let found: Vec<u8> = written.try_iter().flatten().collect();
        let expected: String = (0..5).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8(found).unwrap(), expected);
    }
}
