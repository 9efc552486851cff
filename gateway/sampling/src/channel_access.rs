//! Channel Access as a source: process variables whose columns are numbers.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::cells::{now, Cells, Stamp};
use crate::libca::{Libca, Listener, Update};
use crate::reading::Reading;

pub use crate::libca::Value;

const SECOND: i64 = 1_000_000;

/// The part of an update that a column stores.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Double,
    Real,
    /// An integer of this many bits.
    Whole(u32),
    Bit,
    Severity,
    Status,
    /// The time stamp, in seconds since 1970.
    Time,
}

/// A process variable, and the indexes of the columns that it sets.
pub struct Variable {
    pub name: String,
    pub columns: Vec<(usize, Part)>,
}

#[derive(Clone, Copy, Debug)]
pub enum Event {
    Connected,
    Disconnected,
    Alarm {
        severity: u16,
        status: u16,
    },
    /// A value that the column at `place` cannot hold.
    Unfit {
        place: usize,
        value: Value,
    },
    /// A time stamp this many seconds ahead of this machine's clock.
    Ahead {
        seconds: i64,
    },
}

/// An event with its variable, counted from 0, and its time in microseconds since 1970.
pub type Noted = (usize, i64, Event);

/// Subscriptions, which last until the process ends.
pub struct ChannelAccess {
    signals: Vec<&'static Signal>,
    events: Arc<Events>,
}

#[derive(Default)]
struct Events {
    waiting: Mutex<Vec<Noted>>,
    heard: Condvar,
}

struct Signal {
    number: usize,
    variable: Variable,
    cells: Arc<Mutex<Cells>>,
    events: Arc<Events>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    alarm: (u16, u16),
    /// None: not found yet.
    is_connected: Option<bool>,
    is_unfit: bool,
}

impl ChannelAccess {
    /// Subscribes to the variables by the library at `libca`.
    pub fn new(libca: &Path, variables: Vec<Variable>, cells: &Arc<Mutex<Cells>>) -> Result<Self, String> {
        let libca: &'static Libca = Box::leak(Box::new(Libca::open(libca)?));
        let events = Arc::new(Events::default());
        let mut signals = Vec::with_capacity(variables.len());
        for (number, variable) in variables.into_iter().enumerate() {
            let name = CString::new(variable.name.as_str())
                .map_err(|_| format!("{:?} is no name", variable.name))?;
            let (cells, events) = (Arc::clone(cells), Arc::clone(&events));
            let signal = Signal { number, variable, cells, events, state: Mutex::default() };
            let signal: &'static Signal = Box::leak(Box::new(signal));
            libca.monitor(&name, signal)?;
            signals.push(signal);
        }
        libca.flush();
        Ok(Self { signals, events })
    }

    /// The search has timed out: variables that were not found count as missing.
    pub fn miss(&self) {
        for signal in &self.signals {
            let mut state = signal.state.lock();
            if state.is_connected.is_none() {
                state.is_connected = Some(true);
                signal.lose(&mut state);
            }
        }
    }

    /// The events since the last call, as soon as there are any; none after `patience`.
    pub fn events(&self, patience: Duration) -> Vec<Noted> {
        let mut waiting = self.events.waiting.lock();
        if waiting.is_empty() {
            self.events.heard.wait_for(&mut waiting, patience);
        }
        std::mem::take(&mut *waiting)
    }
}

impl Events {
    fn push(&self, noted: Noted) {
        self.waiting.lock().push(noted);
        self.heard.notify_one();
    }
}

impl Signal {
    fn note(&self, moment: i64, event: Event) {
        self.events.push((self.number, moment, event));
    }

    fn lose(&self, state: &mut State) {
        if state.is_connected != Some(true) {
            return;
        }
        state.is_connected = Some(false);
        let (moment, came) = (now(), Instant::now());
        self.note(moment, Event::Disconnected);
        let mut cells = self.cells.lock();
        for &(place, _) in &self.variable.columns {
            cells.set(place, Reading::Missing, Stamp { microseconds: moment, nanoseconds: 0 }, came);
        }
    }
}

impl Listener for Signal {
    fn update(&self, update: Update) {
        let Update { value, severity, status, seconds, nanoseconds } = update;
        let came = Instant::now();
        let mut state = self.state.lock();
        let mut cells = self.cells.lock();
        let sent = seconds * SECOND + i64::from(nanoseconds / 1000);
        let (stamp, ahead) = cells.believed(sent, &self.variable.name);
        if let Some(seconds) = ahead {
            self.note(stamp, Event::Ahead { seconds });
        }
        if state.is_connected == Some(false) {
            self.note(stamp, Event::Connected);
        }
        state.is_connected = Some(true);
        if state.alarm != (severity, status) {
            state.alarm = (severity, status);
            self.note(stamp, Event::Alarm { severity, status });
        }
        // below 1000
        let below = if stamp == sent { (nanoseconds % 1000) as u16 } else { 0 };
        for &(place, part) in &self.variable.columns {
            let reading = match part {
                Part::Severity => Reading::Whole(severity.into()),
                Part::Status => Reading::Whole(status.into()),
                Part::Time => Reading::Float(sent as f64 / SECOND as f64),
                _ => {
                    let fitting = fit(value, part);
                    if fitting.is_none() && !state.is_unfit {
                        self.note(stamp, Event::Unfit { place, value });
                    }
                    state.is_unfit = fitting.is_none();
                    fitting.unwrap_or(Reading::Missing)
                }
            };
            cells.set(place, reading, Stamp { microseconds: stamp, nanoseconds: below }, came);
        }
    }

    fn lost(&self) {
        self.lose(&mut self.state.lock());
    }
}

/// Converts a value to a column's type; None if this is not exact.
fn fit(value: Value, part: Part) -> Option<Reading> {
    let number = match value {
        Value::Whole(number) => number as f64,
        Value::Float(number) => number,
        Value::Text | Value::Array => return None,
    };
    match part {
        Part::Double => Some(Reading::Float(number)),
        Part::Real => {
            (!number.is_finite() || number.abs() <= f64::from(f32::MAX)).then_some(Reading::Float(number))
        }
        Part::Bit => (number == 0.0 || number == 1.0).then_some(Reading::Bit(number == 1.0)),
        Part::Whole(bits) => {
            let half = 2f64.powi(bits.cast_signed() - 1);
            let fits = number.fract() == 0.0 && -half <= number && number < half;
            fits.then_some(Reading::Whole(number as i64))
        }
        Part::Severity | Part::Status | Part::Time => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_exactly_or_not_at_all() {
        let fits = |value, part| fit(value, part).is_some();
        assert!(fits(Value::Float(1e300), Part::Double) && !fits(Value::Float(1e300), Part::Real));
        assert!(fits(Value::Float(f64::INFINITY), Part::Real) && fits(Value::Float(f64::NAN), Part::Real));
        assert!(
            fits(Value::Float(-32768.0), Part::Whole(16)) && !fits(Value::Float(32768.0), Part::Whole(16))
        );
        for number in [0.5, f64::NAN, f64::INFINITY] {
            assert!(!fits(Value::Float(number), Part::Whole(64)), "{number}");
        }
        assert!(fits(Value::Whole(1), Part::Bit) && !fits(Value::Whole(2), Part::Bit));
        assert!(!fits(Value::Text, Part::Double) && !fits(Value::Array, Part::Double));
    }
}
