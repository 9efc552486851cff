//! The numbers of sessions (@@spid, a smallint): unique among current sessions, and reused.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// The greatest number; there are always fewer clients.
const LAST: u16 = i16::MAX as u16;

#[derive(Clone, Default)]
pub struct SessionNumbers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    last: u16,
    taken: HashSet<u16>,
}

/// A session's number, unique until this is dropped.
pub struct SessionNumber {
    pub spid: u16,
    all: SessionNumbers,
}

impl SessionNumbers {
    pub fn next(&self) -> SessionNumber {
        let mut state = self.0.lock();
        while {
            // clients treat 0 as no number
            state.last = state.last % LAST + 1;
            let last = state.last;
            !state.taken.insert(last)
        } {}
        SessionNumber { spid: state.last, all: self.clone() }
    }
}

impl Drop for SessionNumber {
    fn drop(&mut self) {
        self.all.0.lock().taken.remove(&self.spid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_a_smallint_and_none_is_given_twice() {
        let numbers = SessionNumbers::default();
        let first = numbers.next();
        let second = numbers.next().spid;
        assert_eq!((first.spid, second), (1, 2));
        let given: Vec<u16> = (3..=u32::from(LAST)).map(|_| numbers.next().spid).collect();
        assert_eq!(given.last(), Some(&LAST));
        assert_eq!((numbers.next().spid, numbers.next().spid), (2, 3));
    }
}
