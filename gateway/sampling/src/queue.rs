//! Events on their way from the threads of a source to a thread of the loader.

use std::mem;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// Events in the order of their arrival.
pub struct Queue<T> {
    waiting: Mutex<Vec<T>>,
    arrived: Condvar,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { waiting: Mutex::default(), arrived: Condvar::new() }
    }
}

impl<T> Queue<T> {
    pub fn push(&self, event: T) {
        self.waiting.lock().push(event);
        self.arrived.notify_one();
    }

    /// The events since the last call, as soon as there are any; none after `patience`.
    pub fn take(&self, patience: Duration) -> Vec<T> {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            self.arrived.wait_for(&mut waiting, patience);
        }
        mem::take(&mut *waiting)
    }
}
