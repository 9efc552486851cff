//! Events of monitors created by another user of EPICS's libca, queued until they are fetched.

use std::mem;
use std::ptr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::libca::{on_queued, Listener, Update};

/// An event of a signal, by its number; None if the signal is lost.
pub type MonitorEvent = (u32, Option<Update>);

/// Events in the order of their arrival.
#[derive(Clone, Default)]
pub struct Monitors(Arc<Mutex<Vec<MonitorEvent>>>);

struct Subscriber {
    monitors: Monitors,
    number: u32,
}

impl Monitors {
    /// The address of the function that libca calls with an event.
    pub fn callback() -> usize {
        on_queued as *const () as usize
    }

    /// The user argument of a signal's subscription; it lasts until the process ends, because libca may use it until
    /// the subscription has ended.
    pub fn subscriber(&self, number: u32) -> usize {
        let subscriber: Box<dyn Listener> = Box::new(Subscriber { monitors: self.clone(), number });
        ptr::from_ref(Box::leak(Box::new(subscriber))).expose_provenance()
    }

    /// The events since the last call.
    pub fn take(&self) -> Vec<MonitorEvent> {
        mem::take(&mut *self.0.lock())
    }
}

impl Subscriber {
    fn receive(&self, update: Option<Update>) {
        self.monitors.0.lock().push((self.number, update));
    }
}

impl Listener for Subscriber {
    fn update(&self, update: Update) {
        self.receive(Some(update));
    }

    fn lost(&self) {
        self.receive(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::libca::{EventArguments, Value, DBR_TIME, EPOCH, NORMAL};

    #[test]
    fn events_are_kept_in_their_order() {
        let monitors = Monitors::default();
        let event = |number, kind, count, value: Option<&[u8]>, status| {
            let user = ptr::with_exposed_provenance(monitors.subscriber(number));
            let value = value.map_or(ptr::null(), |value| value.as_ptr().cast());
            on_queued(EventArguments { user, channel: ptr::null_mut(), kind, count, value, status });
        };
        // dbr_time_double: status, severity, seconds, nanoseconds, RISC_pad, value
        let mut double = Vec::new();
        for part in [3_i16, 2] {
            double.extend(part.to_ne_bytes());
        }
        for part in [10_u32, 20, 0] {
            double.extend(part.to_ne_bytes());
        }
        double.extend(1.5_f64.to_ne_bytes());
        event(7, DBR_TIME + 6, 1, Some(&double), NORMAL);
        event(8, DBR_TIME + 6, 2, Some(&double), NORMAL);
        event(7, DBR_TIME + 6, 1, None, NORMAL);
        event(8, DBR_TIME + 6, 1, Some(&double), 192);
        let taken = monitors.take();
        let values = taken.iter().map(|(number, update)| (*number, update.map(|update| update.value)));
        let expected = [(7, Some(Value::Float(1.5))), (8, Some(Value::Array)), (7, None), (8, None)];
        assert_eq!(values.collect::<Vec<_>>(), expected);
        let first = taken[0].1.unwrap();
        assert_eq!((first.status, first.severity, first.seconds, first.nanoseconds), (3, 2, EPOCH + 10, 20));
        assert!(monitors.take().is_empty());
    }
}
