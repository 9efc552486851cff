//! The process variables of a table of rows: their readings set its columns; losses, returns and alarms are events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::cells::{now, Cells, Stamp};
use crate::queue::Queue;
use crate::reading::Reading;

const SECOND: i64 = 1_000_000;
/// Seconds since 1970, 1991-01-01: EPICS sends 1990-01-01, when its time begins, with a record that was never
/// processed.
pub const FIRST_TIME: i64 = 662_688_000;

/// A process variable, and the indexes of the columns that it sets.
pub struct Variable {
    pub name: String,
    pub columns: Vec<usize>,
}

/// A value that a column cannot hold: the reason if it is known, or the column and the value.
#[derive(Clone, Debug)]
pub enum Unfit<V> {
    Reason(String),
    Value { index: usize, value: V },
}

#[derive(Clone, Debug)]
pub enum Event<V> {
    Connected,
    Disconnected,
    Alarm {
        severity: u16,
        status: u16,
    },
    Unfit(Unfit<V>),
    /// A time stamp this many seconds ahead of this machine's clock.
    Ahead {
        seconds: i64,
    },
    /// A reading without a time.
    Undefined,
}

/// An event with its variable, counted from 0, and its time in microseconds since 1970.
pub type Noted<V> = (usize, i64, Event<V>);

/// Alarm and time stamp of a reading. Seconds are since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    pub severity: u16,
    pub status: u16,
    pub seconds: i64,
    pub nanoseconds: u32,
}

/// Readings of columns, by their indexes.
pub type Readings<V> = Vec<(usize, Result<Reading, Unfit<V>>)>;

pub struct Signals<V> {
    signals: Vec<Signal>,
    cells: Arc<Mutex<Cells>>,
    events: Queue<Noted<V>>,
}

struct Signal {
    variable: Variable,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// None: not found yet.
    is_connected: Option<bool>,
    /// Microseconds since 1970.
    lost: i64,
    /// The latest alarm that is an event.
    alarm: (u16, u16),
    is_unfit: bool,
    is_undefined: bool,
}

impl<V> Signals<V> {
    pub fn new(variables: Vec<Variable>, cells: &Arc<Mutex<Cells>>) -> Self {
        let signal = |variable| Signal { variable, state: Mutex::default() };
        Self {
            signals: variables.into_iter().map(signal).collect(),
            cells: Arc::clone(cells),
            events: Queue::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.signals.len()
    }

    pub fn is_empty(&self) -> bool {
        self.signals.is_empty()
    }

    /// The columns of a variable.
    pub fn columns(&self, number: usize) -> &[usize] {
        &self.signals[number].variable.columns
    }

    /// Takes the readings that a variable has sent.
    pub fn read(&self, number: usize, readings: Readings<V>, alarm: Alarm) {
        let came = Instant::now();
        let Signal { variable, state } = &self.signals[number];
        let mut state = state.lock();
        let mut cells = self.cells.lock();
        let note = |moment, event| self.events.push((number, moment, event));
        let is_back = state.is_connected == Some(false);
        state.is_connected = Some(true);
        let sent = alarm.seconds.saturating_mul(SECOND).saturating_add(i64::from(alarm.nanoseconds / 1000));
        let is_undefined = alarm.seconds < FIRST_TIME;
        let (mut stamp, ahead) =
            if is_undefined { (now(), None) } else { cells.believed(sent, &variable.name) };
        // a value from before the loss is valid again from now on
        if is_back && stamp < state.lost {
            stamp = now();
        }
        if let Some(seconds) = ahead {
            note(stamp, Event::Ahead { seconds });
        }
        if is_back {
            note(stamp, Event::Connected);
        }
        if is_undefined && !state.is_undefined {
            note(stamp, Event::Undefined);
        }
        state.is_undefined = is_undefined;
        if is_undefined {
            set_missing(&mut cells, variable, stamp, came);
            return;
        }
        let current = (alarm.severity, alarm.status);
        if current != state.alarm || is_back && current != (0, 0) {
            state.alarm = current;
            note(stamp, Event::Alarm { severity: alarm.severity, status: alarm.status });
        }
        // below 1000
        let nanoseconds = if stamp == sent { (alarm.nanoseconds % 1000) as u16 } else { 0 };
        let mut unfit = None;
        for (index, reading) in readings {
            let reading = reading.unwrap_or_else(|reason| {
                unfit.get_or_insert(reason);
                Reading::Missing
            });
            cells.set(index, reading, Stamp { microseconds: stamp, nanoseconds }, came);
        }
        let is_unfit = unfit.is_some();
        if let Some(unfit) = unfit.filter(|_| !state.is_unfit) {
            note(stamp, Event::Unfit(unfit));
        }
        state.is_unfit = is_unfit;
    }

    /// A variable has disconnected: all that is kept of it is forgotten, except the alarm that readers know.
    pub fn lose(&self, number: usize) {
        self.lose_if(number, Some(true));
    }

    /// The search has timed out: variables that were not found count as lost.
    pub fn miss(&self) {
        for number in 0..self.signals.len() {
            self.lose_if(number, None);
        }
    }

    fn lose_if(&self, number: usize, is_connected: Option<bool>) {
        let Signal { variable, state } = &self.signals[number];
        let mut state = state.lock();
        if state.is_connected != is_connected {
            return;
        }
        let lost = now();
        let alarm = state.alarm;
        *state = State { is_connected: Some(false), lost, alarm, ..State::default() };
        self.events.push((number, lost, Event::Disconnected));
        set_missing(&mut self.cells.lock(), variable, lost, Instant::now());
    }

    /// The events since the last call, as soon as there are any; none after `patience`.
    pub fn events(&self, patience: Duration) -> Vec<Noted<V>> {
        self.events.take(patience)
    }
}

fn set_missing(cells: &mut Cells, variable: &Variable, stamp: i64, came: Instant) {
    for &index in &variable.columns {
        cells.set(index, Reading::Missing, Stamp { microseconds: stamp, nanoseconds: 0 }, came);
    }
}
