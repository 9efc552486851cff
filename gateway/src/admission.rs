//! Who may try to log in: bounds on logins that are under way and on those that fail, for each address.
//! A host whose password is wrong slows itself down and nobody else.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Connections that have not logged in yet: of one address, and of all.
const MOST_UNKNOWN_OF_ONE: usize = 256;
const MOST_UNKNOWN: usize = 2048;
/// Failures of one user at one address that cost nothing; from then on its logins go one by one. A login
/// that succeeds makes up for them.
const FREE_FAILURES: u32 = 10;
/// The same for all users at one address, for whoever guesses names too. A user past its own limit does not
/// count any more: a program with a wrong password slows only itself.
const FREE_FAILURES_OF_ADDRESS: u32 = 200;
/// The time between two logins past a limit.
const TURN: Duration = Duration::from_secs(1);
/// The longest wait for a turn; whoever would wait longer is sent away.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// Failures are forgotten after this time without another.
const FORGOTTEN: Duration = Duration::from_secs(300);
/// Users and addresses whose failures are remembered.
const MOST_REMEMBERED: usize = 10_000;

#[derive(Clone, Default)]
pub struct Admission {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    unknown: usize,
    unknown_of: HashMap<IpAddr, usize>,
    /// By address and user, and under the user "" for the address.
    failed: HashMap<(IpAddr, String), Failed>,
}

struct Failed {
    count: u32,
    last: Instant,
    /// When the next login may be tried.
    next_turn: Instant,
}

impl Failed {
    /// Takes the next turn and says how long it is until then.
    fn turn(&mut self, free: u32, now: Instant) -> Option<Duration> {
        if self.count < free {
            return Some(Duration::ZERO);
        }
        let turn = self.next_turn.max(now);
        let wait = turn.duration_since(now);
        if wait > LONGEST_WAIT {
            return None;
        }
        self.next_turn = turn + TURN;
        Some(wait)
    }
}

/// A connection's place among those that have not logged in yet, until it is dropped.
pub struct Entry {
    admission: Admission,
    address: IpAddr,
}

impl Admission {
    fn state(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }

    /// A place for a new connection; None when there are too many that have not logged in.
    pub fn enter(&self, address: IpAddr) -> Option<Entry> {
        let mut state = self.state();
        let of_one = state.unknown_of.get(&address).copied().unwrap_or(0);
        if state.unknown >= MOST_UNKNOWN || of_one >= MOST_UNKNOWN_OF_ONE {
            return None;
        }
        state.unknown += 1;
        state.unknown_of.insert(address, of_one + 1);
        Some(Entry { admission: self.clone(), address })
    }

    fn turn_at(&self, address: IpAddr, user: &str, now: Instant) -> Option<Duration> {
        let mut state = self.state();
        let mut wait = Duration::ZERO;
        for (user, free) in [(user, FREE_FAILURES), ("", FREE_FAILURES_OF_ADDRESS)] {
            if let Some(failed) = state.failed.get_mut(&(address, user.to_owned())) {
                wait = wait.max(failed.turn(free, now)?);
            }
        }
        Some(wait)
    }

    fn failed_at(&self, address: IpAddr, user: &str, now: Instant) {
        let mut state = self.state();
        if state.count(address, user, now) <= FREE_FAILURES {
            state.count(address, "", now);
        }
    }
}

impl State {
    /// Counts a failure. How many there are now.
    fn count(&mut self, address: IpAddr, user: &str, now: Instant) -> u32 {
        let key = (address, user.to_owned());
        self.failed.retain(|_, failed| now.duration_since(failed.last) < FORGOTTEN);
        if self.failed.len() >= MOST_REMEMBERED && !self.failed.contains_key(&key) {
            let oldest = self.failed.iter().min_by_key(|(_, failed)| failed.last).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| self.failed.remove(&oldest));
        }
        let failed = self.failed.entry(key).or_insert(Failed { count: 0, last: now, next_turn: now });
        failed.count = failed.count.saturating_add(1);
        failed.last = now;
        failed.count
    }
}

impl Entry {
    /// How long a login of `user` has to wait for its turn; None when that is too long.
    pub fn turn(&self, user: &str) -> Option<Duration> {
        self.admission.turn_at(self.address, user, Instant::now())
    }

    /// `user` is not one, or the password was wrong.
    pub fn failed(&self, user: &str) {
        self.admission.failed_at(self.address, user, Instant::now());
    }

    pub fn succeeded(&self, user: &str) {
        self.admission.state().failed.remove(&(self.address, user.to_owned()));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        state.unknown = state.unknown.saturating_sub(1);
        let left = state.unknown_of.get(&self.address).copied().unwrap_or(0).saturating_sub(1);
        if left == 0 {
            state.unknown_of.remove(&self.address);
        } else {
            state.unknown_of.insert(self.address, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(n: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(n))
    }

    #[test]
    fn one_address_does_not_take_all_places() {
        let admission = Admission::default();
        let mut entries: Vec<Entry> =
            (0..MOST_UNKNOWN_OF_ONE).map(|_| admission.enter(address(1)).unwrap()).collect();
        assert!(admission.enter(address(1)).is_none());
        assert!(admission.enter(address(2)).is_some());
        entries.pop();
        assert!(admission.enter(address(1)).is_some());
        drop(entries);
        assert!(admission.state().unknown_of.is_empty());
    }

    #[test]
    fn all_addresses_together_are_bounded() {
        let admission = Admission::default();
        let entries: Vec<_> = (0..10_000).filter_map(|n| admission.enter(address(n))).collect();
        assert_eq!(entries.len(), MOST_UNKNOWN);
    }

    #[test]
    fn whoever_fails_often_waits_for_a_turn() {
        let (admission, now) = (Admission::default(), Instant::now());
        for _ in 0..FREE_FAILURES {
            assert_eq!(admission.turn_at(address(1), "daq", now), Some(Duration::ZERO));
            admission.failed_at(address(1), "daq", now);
        }
        assert_eq!(admission.turn_at(address(1), "daq", now), Some(Duration::ZERO));
        assert_eq!(admission.turn_at(address(1), "daq", now), Some(TURN));
        for (address, user) in [(address(2), "daq"), (address(1), "other")] {
            assert_eq!(admission.turn_at(address, user, now), Some(Duration::ZERO));
        }
        let waits: Vec<_> = (0..30).filter_map(|_| admission.turn_at(address(1), "daq", now)).collect();
        assert!(waits.len() < 30 && waits.iter().all(|wait| *wait <= LONGEST_WAIT));
        // time passes
        let later = now + FORGOTTEN;
        admission.failed_at(address(1), "daq", later);
        assert_eq!(admission.turn_at(address(1), "daq", later), Some(Duration::ZERO));
    }

    #[test]
    fn guessing_names_is_slow_too_and_one_wrong_password_slows_nobody_else() {
        let (admission, now) = (Admission::default(), Instant::now());
        for _ in 0..10_000 {
            admission.failed_at(address(1), "daq", now);
        }
        assert_eq!(admission.turn_at(address(1), "other", now), Some(Duration::ZERO));
        for n in 0..FREE_FAILURES_OF_ADDRESS {
            admission.failed_at(address(1), &format!("guess {n}"), now);
        }
        assert_eq!(admission.turn_at(address(1), "other", now), Some(Duration::ZERO));
        assert_eq!(admission.turn_at(address(1), "other", now), Some(TURN));
        assert_eq!(admission.turn_at(address(2), "other", now), Some(Duration::ZERO));
    }

    #[test]
    fn a_success_makes_up_for_failures() {
        let admission = Admission::default();
        let entry = admission.enter(address(1)).unwrap();
        for _ in 0..FREE_FAILURES {
            entry.failed("daq");
        }
        entry.succeeded("daq");
        assert_eq!((entry.turn("daq"), entry.turn("daq")), (Some(Duration::ZERO), Some(Duration::ZERO)));
    }

    #[test]
    fn failures_of_many_take_bounded_memory() {
        let (admission, now) = (Admission::default(), Instant::now());
        for n in 0..MOST_REMEMBERED as u32 + 10 {
            admission.failed_at(address(n), "", now + Duration::from_millis(u64::from(n) / 100));
        }
        assert_eq!(admission.state().failed.len(), MOST_REMEMBERED);
    }
}
