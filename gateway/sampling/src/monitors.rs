//! Events of monitors that another holder of EPICS's libca has made, queued until they are taken.

use std::mem;
use std::ptr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::libca::{on_queued, Update};

/// An event of a signal, by its number; None when it is lost.
pub type Heard = (u32, Option<Update>);

/// Events in the order in which they came.
#[derive(Clone, Default)]
pub struct Monitors(Arc<Mutex<Vec<Heard>>>);

/// The user argument of a subscription.
pub struct Subscriber {
    monitors: Monitors,
    number: u32,
}

impl Monitors {
    /// The address of the function that libca calls with an event.
    pub fn callback() -> usize {
        on_queued as *const () as usize
    }

    /// The user argument of a subscription for a signal; it lasts as long as the process, because libca may use it
    /// until the subscription has ended.
    pub fn subscriber(&self, number: u32) -> usize {
        let subscriber = Subscriber { monitors: self.clone(), number };
        ptr::from_ref(Box::leak(Box::new(subscriber))).expose_provenance()
    }

    /// The events since the last call.
    pub fn take(&self) -> Vec<Heard> {
        mem::take(&mut *self.0.lock())
    }
}

impl Subscriber {
    pub fn hear(&self, update: Option<Update>) {
        self.monitors.0.lock().push((self.number, update));
    }
}
