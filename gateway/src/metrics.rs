//! The gateway's metrics, in OpenMetrics format.

use crate::callers::{Caller, Last, LastCalls};
use crate::tds::tokens::message::ServerMessage;
use prometheus_client::encoding::{text, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{exponential_buckets, Histogram};
use prometheus_client::registry::{Registry, Unit};
use std::sync::{Arc, OnceLock};

/// Upper bounds of latencies: 64 µs to 8 s, doubling.
fn latencies() -> Histogram {
    Histogram::new(exponential_buckets(64e-6, 2.0, 18))
}

/// Upper bounds of calls in a transaction, up to the largest group.
fn group_sizes() -> Histogram {
    Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Procedure {
    procedure: String,
}

type Histograms = Family<Procedure, Histogram, fn() -> Histogram>;

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    calls: Histograms,
    failures: Family<Procedure, Counter>,
    /// The last caller of each procedure.
    pub last_calls: LastCalls,
    /// Clients that are connected, logged in or not.
    pub clients: Gauge,
    pub refused_logins: Counter,
    /// Bytes from clients and to them, encryption and packet headers included.
    pub received: Counter,
    pub sent: Counter,
    /// Calls in each transaction of group commit that was committed.
    pub groups: Histogram,
    /// Transactions of group commit that failed and whose calls ran again one by one.
    pub split_groups: Counter,
    /// Slow procedures that were moved to connections of their own.
    pub quarantines: Counter,
    /// Result sets that wait for their turn.
    pub waiting_result_sets: Gauge,
    /// Texts compiled by Python, in seconds.
    pub compilations: Histogram,
    /// Texts whose compiled program was reused.
    pub compiled_again: Counter,
}

/// The counts of one procedure, which are exported from its first call on.
#[derive(Clone, Debug)]
pub struct CallMetrics {
    calls: Histograms,
    failures: Family<Procedure, Counter>,
    last_calls: LastCalls,
    labels: Procedure,
    made: OnceLock<(Histogram, Counter, Arc<Last>)>,
}

impl CallMetrics {
    /// Counts a call that was answered, possibly by an error, this many seconds after its last byte arrived.
    pub fn answered(&self, seconds: f64, caller: &Arc<Caller>, error: Option<&ServerMessage>) {
        let (latency, failures, last) = self.made();
        latency.observe(seconds);
        if error.is_some() {
            failures.inc();
        }
        last.note(caller, error);
    }

    fn made(&self) -> &(Histogram, Counter, Arc<Last>) {
        self.made.get_or_init(|| {
            let latency = self.calls.get_or_create(&self.labels).clone();
            let failures = self.failures.get_or_create(&self.labels).clone();
            (latency, failures, self.last_calls.of(&self.labels.procedure))
        })
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::with_prefix("ringlog_gateway");
        let metrics = Metrics {
            calls: Family::new_with_constructor(latencies as fn() -> Histogram),
            failures: Family::default(),
            last_calls: LastCalls::default(),
            clients: Gauge::default(),
            refused_logins: Counter::default(),
            received: Counter::default(),
            sent: Counter::default(),
            groups: group_sizes(),
            split_groups: Counter::default(),
            quarantines: Counter::default(),
            waiting_result_sets: Gauge::default(),
            compilations: latencies(),
            compiled_again: Counter::default(),
            registry: Registry::default(),
        };
        let calls = "Procedure calls: their number and how long they took";
        registry.register_with_unit("call", calls, Unit::Seconds, metrics.calls.clone());
        registry.register("failed_calls", "Procedure calls answered by an error", metrics.failures.clone());
        registry.register("clients", "Connected clients", metrics.clients.clone());
        registry.register("refused_logins", "Logins PostgreSQL refused", metrics.refused_logins.clone());
        registry.register_with_unit("received", "From clients", Unit::Bytes, metrics.received.clone());
        registry.register_with_unit("sent", "To clients", Unit::Bytes, metrics.sent.clone());
        let groups = "Calls that were committed by one transaction";
        registry.register("group_commit_calls", groups, metrics.groups.clone());
        let split = "Transactions of several calls that failed and were run again call by call";
        registry.register("group_commit_splits", split, metrics.split_groups.clone());
        let quarantines =
            "Procedures that took so long that they were given a connection of their own for a while";
        registry.register("group_commit_quarantines", quarantines, metrics.quarantines.clone());
        let waiting = "Result sets that wait for their turn to stream";
        registry.register("waiting_result_sets", waiting, metrics.waiting_result_sets.clone());
        let compilations = "Batches of T-SQL compiled: their number and how long that took";
        registry.register_with_unit(
            "batch_compilation",
            compilations,
            Unit::Seconds,
            metrics.compilations.clone(),
        );
        let again = "Batches of T-SQL that needed no compiling, as they had come before";
        registry.register("batch_compilation_reuses", again, metrics.compiled_again.clone());
        Metrics { registry, ..metrics }
    }
}

impl Metrics {
    /// The counts of `procedure`, new or existing.
    pub fn of_procedure(&self, procedure: String) -> CallMetrics {
        CallMetrics {
            calls: self.calls.clone(),
            failures: self.failures.clone(),
            last_calls: self.last_calls.clone(),
            labels: Procedure { procedure },
            made: OnceLock::new(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_procedures_counts_go_on_when_it_is_read_again() {
        let metrics = Metrics::default();
        let caller = Arc::new(Caller::default());
        let error = ServerMessage::error(2601, 14, "twice".to_owned());
        metrics.of_procedure("s.put".into()).answered(0.001, &caller, None);
        metrics.of_procedure("s.put".into()).answered(0.002, &caller, Some(&error));
        metrics.of_procedure("s.never_called".into());
        let text = metrics.text();
        assert!(text.contains("ringlog_gateway_call_seconds_count{procedure=\"s.put\"} 2"), "{text}");
        assert!(!text.contains("never_called"), "{text}");
        assert!(text.contains("ringlog_gateway_failed_calls_total{procedure=\"s.put\"} 1"), "{text}");
    }
}
