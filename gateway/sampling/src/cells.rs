//! The readings of a table's columns, set by any thread, and the rows made from them.

use std::collections::{HashSet, VecDeque};
use std::mem;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::reading::{moved, Deadband, Reading};

/// Microseconds since 1970, UTC.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// When a row is made from readings. Times are in microseconds unless they have a type.
#[derive(Clone, Debug)]
pub struct Policy {
    /// A row at each change, instead of one per cycle.
    pub monitors: bool,
    pub cycle: i64,
    pub min_period: Option<i64>,
    pub max_period: Option<Duration>,
    /// How far ahead of this machine's clock a time stamp may be.
    pub clock_drift: i64,
    /// The deadband of each column.
    pub deadbands: Vec<Option<Deadband>>,
    /// The column with the nanoseconds of a row's time.
    pub nanoseconds: Option<usize>,
}

/// A time in microseconds since 1970, and nanoseconds below 1000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    pub microseconds: i64,
    pub nanoseconds: u16,
}

/// A reading that waits for its row.
struct Update {
    stamp: Stamp,
    came: Instant,
    reading: Reading,
}

#[derive(Debug)]
pub struct Row {
    /// Microseconds since 1970.
    pub time: i64,
    pub values: Vec<Reading>,
}

pub struct Cells {
    policy: Policy,
    readings: Vec<Reading>,
    /// Columns set since the last scan.
    fresh: Vec<bool>,
    /// The waiting updates of each column, and its latest reading.
    updates: Vec<VecDeque<Update>>,
    newest: Vec<Reading>,
    /// The latest time of the rows so far, and the time of making the last row.
    latest: Stamp,
    made: Instant,
    /// Signals whose last time stamp was too far ahead.
    ahead: HashSet<String>,
    dropped: u64,
}

impl Cells {
    pub fn new(policy: Policy) -> Self {
        let columns = policy.deadbands.len();
        Self {
            readings: vec![Reading::Missing; columns],
            fresh: vec![false; columns],
            updates: (0..columns).map(|_| VecDeque::new()).collect(),
            newest: vec![Reading::Missing; columns],
            latest: Stamp::default(),
            made: Instant::now(),
            ahead: HashSet::new(),
            dropped: 0,
            policy,
        }
    }

    pub fn columns(&self) -> usize {
        self.readings.len()
    }

    /// Sets another policy; the readings remain.
    pub fn adopt(&mut self, policy: Policy) {
        if self.policy.monitors && !policy.monitors {
            for (column, updates) in self.updates.iter_mut().enumerate() {
                let replaced = updates.len().saturating_sub(1);
                if let Some(last) = updates.pop_back() {
                    self.dropped += replaced as u64;
                    self.readings[column] = last.reading;
                    self.fresh[column] = true;
                    updates.clear();
                }
            }
        } else if !self.policy.monitors {
            self.newest.clone_from(&self.readings);
            self.fresh.fill(false);
        }
        self.policy = policy;
    }

    /// The number of readings since the last call that were replaced by a newer one of their column before a row was
    /// made.
    pub fn take_dropped(&mut self) -> u64 {
        mem::take(&mut self.dropped)
    }

    /// A reading's time stamp, or the present time if the stamp is too far ahead; then also the distance in seconds, if
    /// the signal's previous stamp was not.
    pub fn believed(&mut self, stamp: i64, signal: &str) -> (i64, Option<i64>) {
        let moment = now();
        if stamp <= moment.saturating_add(self.policy.clock_drift) {
            if !self.ahead.is_empty() {
                self.ahead.remove(signal);
            }
            return (stamp, None);
        }
        let is_first = self.ahead.insert(signal.to_owned());
        (moment, is_first.then(|| (stamp - moment) / 1_000_000))
    }

    /// Sets a column to a reading that was taken at `stamp`.
    pub fn set(&mut self, column: usize, reading: Reading, stamp: Stamp, came: Instant) {
        if !self.policy.monitors {
            // the last reading between two scans counts
            self.dropped += u64::from(mem::replace(&mut self.fresh[column], true));
            self.readings[column] = reading;
        } else if moved(self.policy.deadbands[column], &self.newest[column], &reading) {
            self.newest[column] = reading.clone();
            self.updates[column].push_back(Update { stamp, came, reading });
        }
    }

    /// The readings of a scan.
    pub fn scan(&mut self) -> Vec<Reading> {
        self.fresh.fill(false);
        self.row(Stamp::default()).values
    }

    /// The rows that are due. A row contains the updates of one cycle, at most one per column. No update is omitted,
    /// however late, except with `min_period`: then the last one of each column counts.
    pub fn due(&mut self) -> Vec<Row> {
        let moment = Instant::now();
        let microseconds = |length: i64| Duration::from_micros(u64::try_from(length).unwrap_or(0));
        let patience = microseconds(self.policy.cycle.max(self.policy.min_period.unwrap_or(0)));
        let mut rows = Vec::new();
        loop {
            let waiting = || self.updates.iter().filter_map(VecDeque::front);
            let (Some(came), Some(first)) = (
                waiting().map(|update| update.came).min(),
                waiting().map(|update| update.stamp.microseconds).min(),
            ) else {
                break;
            };
            if moment.saturating_duration_since(came) < patience {
                break;
            }
            let mut end = first + self.policy.cycle;
            if let Some(period) = self.policy.min_period {
                end = end.max(self.latest.microseconds + period + self.policy.cycle);
            } else {
                // readings with equal stamps stay together
                let seconds = self.updates.iter().filter_map(|updates| updates.get(1));
                end = seconds.map(|update| update.stamp.microseconds).fold(end, i64::min).max(first + 1);
            }
            // a late update does not set the row back in time
            self.latest = self.latest.max(self.take(end));
            self.made = moment;
            rows.push(self.row(self.latest));
        }
        let is_overdue = self
            .policy
            .max_period
            .is_some_and(|period| moment.saturating_duration_since(self.made) >= period);
        if is_overdue && self.latest.microseconds != 0 {
            self.made = moment;
            rows.push(self.row(Stamp { microseconds: now(), nanoseconds: 0 }));
        }
        rows
    }

    fn row(&mut self, stamp: Stamp) -> Row {
        if let Some(column) = self.policy.nanoseconds {
            self.readings[column] = Reading::Whole(i64::from(stamp.nanoseconds));
        }
        Row { time: stamp.microseconds, values: self.readings.clone() }
    }

    /// Applies the next update of each column before `end` to the row; returns the latest of their stamps.
    fn take(&mut self, end: i64) -> Stamp {
        let mut latest = Stamp::default();
        for (updates, reading) in self.updates.iter_mut().zip(&mut self.readings) {
            let mut taken = 0;
            while taken == 0 || self.policy.min_period.is_some_and(|period| period > 0) {
                let Some(update) = updates.pop_front_if(|update| update.stamp.microseconds < end) else {
                    break;
                };
                *reading = update.reading;
                latest = latest.max(update.stamp);
                taken += 1;
            }
            self.dropped += u64::saturating_sub(taken, 1);
        }
        latest
    }
}
