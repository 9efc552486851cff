//! Limits on logins per address: the number of connections without a login, and of failures within a time. Wrong
//! passwords delay only the logins of the same user, except those with the password of its last successful login.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The most connections that have not sent a login yet, of one address and of all. A further connection closes the
/// oldest one, whose login is rarely on its way.
const MOST_UNKNOWN_OF_ONE: usize = 2048;
const MOST_UNKNOWN: usize = 4096;
/// Failures of one user at one address without a delay; further logins are tried one by one. A successful login resets
/// the count.
pub const FREE_FAILURES: u32 = 10;
/// The same for all users at one address, against guesses of names: further failures are answered late. Failures of a
/// user past its own limit do not count: a program with a wrong password delays only itself.
const FREE_FAILURES_OF_ADDRESS: u32 = 200;
/// Delay of the answer to a wrong password, so that guessing is slow.
pub const REFUSAL_PAUSE: Duration = Duration::from_millis(500);
const LATE_REFUSAL_PAUSE: Duration = Duration::from_secs(5);
/// The time between two logins past a limit.
pub const TURN: Duration = Duration::from_secs(1);
/// The longest wait for a turn; logins that would wait longer are refused.
pub const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// Failures are dropped after this time without another one.
pub const FORGOTTEN: Duration = Duration::from_secs(300);
/// The most users and addresses whose failures are kept, and the most whose last correct passwords are kept.
pub const MOST_REMEMBERED: usize = 10_000;

#[derive(Clone, Default)]
pub struct Admission {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    last_entry: u64,
    /// Connections that have not sent a login yet, oldest first, with the channel that ends them.
    unknown: BTreeMap<u64, (IpAddr, oneshot::Sender<()>)>,
    unknown_of: HashMap<IpAddr, BTreeSet<u64>>,
    /// Connections that have sent a login and wait for the answer.
    asked: HashMap<u64, (IpAddr, oneshot::Sender<()>)>,
    /// By address and user; the user "" stands for the whole address.
    failed: HashMap<(IpAddr, String), Failed>,
    right: HashMap<(IpAddr, String), Right>,
    digests: RandomState,
}

/// The last login that succeeded.
struct Right {
    /// Digest of the password. PostgreSQL checks the password in any case.
    digest: u64,
    last: Instant,
}

struct Failed {
    count: u32,
    last: Instant,
    /// When the next login may be tried.
    next_turn: Instant,
}

impl Failed {
    /// Takes the next turn. Returns the time until then.
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

/// A connection that has not sent a login.
pub struct Entry {
    admission: Admission,
    address: IpAddr,
    number: u64,
    evicted: oneshot::Receiver<()>,
}

impl Admission {
    /// Registers a new connection; may close the oldest one.
    pub fn enter(&self, address: IpAddr) -> Entry {
        let mut state = self.state.lock();
        while let Some(oldest) = state.in_the_way_of(address) {
            if let Some(leave) = state.leave(oldest) {
                let _ = leave.send(());
            }
        }
        state.last_entry += 1;
        let number = state.last_entry;
        let (leave, evicted) = oneshot::channel();
        state.unknown.insert(number, (address, leave));
        state.unknown_of.entry(address).or_default().insert(number);
        drop(state);
        Entry { admission: self.clone(), address, number, evicted }
    }

    fn turn_at(&self, address: IpAddr, user: &str, now: Instant) -> Option<Duration> {
        let mut state = self.state.lock();
        match state.failed.get_mut(&(address, user.to_owned())) {
            Some(failed) => failed.turn(FREE_FAILURES, now),
            None => Some(Duration::ZERO),
        }
    }

    /// Counts a failure. Returns when to answer it.
    fn failed_at(&self, address: IpAddr, user: &str, now: Instant) -> Duration {
        let mut state = self.state.lock();
        let is_guess = state.count(address, user, now) <= FREE_FAILURES;
        if is_guess && state.count(address, "", now) > FREE_FAILURES_OF_ADDRESS {
            return LATE_REFUSAL_PAUSE;
        }
        REFUSAL_PAUSE
    }

    fn succeeded_at(&self, address: IpAddr, user: &str, password: &str, now: Instant) {
        let mut state = self.state.lock();
        let key = (address, user.to_owned());
        state.failed.remove(&key);
        if state.right.len() >= MOST_REMEMBERED && !state.right.contains_key(&key) {
            let oldest = state.right.iter().min_by_key(|(_, right)| right.last).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| state.right.remove(&oldest));
        }
        let digest = state.digests.hash_one(password);
        state.right.insert(key, Right { digest, last: now });
    }

    fn was_right(&self, address: IpAddr, user: &str, password: &str) -> bool {
        let state = self.state.lock();
        let right = state.right.get(&(address, user.to_owned()));
        right.is_some_and(|right| right.digest == state.digests.hash_one(password))
    }
}

impl State {
    /// The connection to close for another of this address.
    fn in_the_way_of(&self, address: IpAddr) -> Option<u64> {
        let of_one = self.unknown_of.get(&address);
        match of_one.filter(|numbers| numbers.len() >= MOST_UNKNOWN_OF_ONE) {
            Some(numbers) => numbers.first().copied(),
            None if self.unknown.len() >= MOST_UNKNOWN => self.unknown.keys().next().copied(),
            None => None,
        }
    }

    /// Removes a connection from the list.
    fn leave(&mut self, number: u64) -> Option<oneshot::Sender<()>> {
        let (address, leave) = self.unknown.remove(&number)?;
        if let Some(numbers) = self.unknown_of.get_mut(&address) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.unknown_of.remove(&address);
            }
        }
        Some(leave)
    }

    /// Counts a failure. Returns the number of failures.
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
    /// Waits until the connection must be closed in favour of another.
    pub async fn evicted(&mut self) {
        if (&mut self.evicted).await.is_err() {
            std::future::pending().await
        }
    }

    /// The remaining operations of a login.
    pub fn limits(&self) -> Limits {
        Limits { admission: self.admission.clone(), address: self.address, number: self.number }
    }
}

/// The limits of failures for a connection.
pub struct Limits {
    admission: Admission,
    address: IpAddr,
    number: u64,
}

impl Limits {
    /// The login has arrived: the connection is no longer closed in favour of others.
    pub fn login_arrived(&self) {
        let mut state = self.admission.state.lock();
        if let Some(leave) = state.leave(self.number) {
            state.asked.insert(self.number, (self.address, leave));
        }
    }

    /// Whether this login equals the last successful one from its address.
    pub fn was_right(&self, user: &str, password: &str) -> bool {
        self.admission.was_right(self.address, user, password)
    }

    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The time that a login of `user` must wait for its turn; None: too long.
    pub fn turn(&self, user: &str) -> Option<Duration> {
        self.admission.turn_at(self.address, user, Instant::now())
    }

    /// Counts a failed login: `user` does not exist, or the password was wrong. Returns when to answer; until then the
    /// connection may be closed in favour of others.
    pub fn failed(&self, user: &str) -> Duration {
        let mut state = self.admission.state.lock();
        if let Some((address, leave)) = state.asked.remove(&self.number) {
            state.unknown.insert(self.number, (address, leave));
            state.unknown_of.entry(address).or_default().insert(self.number);
        }
        drop(state);
        self.admission.failed_at(self.address, user, Instant::now())
    }

    pub fn succeeded(&self, user: &str, password: &str) {
        self.admission.succeeded_at(self.address, user, password, Instant::now());
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        state.asked.remove(&self.number);
        state.leave(self.number);
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
    fn the_oldest_of_an_address_goes_for_the_newest() {
        let admission = Admission::default();
        let other = admission.enter(address(2));
        let mut entries: Vec<Entry> =
            (0..=MOST_UNKNOWN_OF_ONE).map(|_| admission.enter(address(1))).collect();
        assert!(entries[0].evicted.try_recv().is_ok());
        assert!(entries[1].evicted.try_recv().is_err());
        assert_eq!(admission.state.lock().unknown.len(), MOST_UNKNOWN_OF_ONE + 1);
        drop((entries, other));
        assert!(admission.state.lock().unknown.is_empty() && admission.state.lock().unknown_of.is_empty());
    }

    #[test]
    fn a_login_that_has_come_goes_for_no_other() {
        let admission = Admission::default();
        let mut asked = admission.enter(address(1));
        asked.limits().login_arrived();
        let entries: Vec<Entry> = (0..=MOST_UNKNOWN_OF_ONE).map(|_| admission.enter(address(1))).collect();
        assert_eq!(asked.evicted.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        assert_eq!(admission.state.lock().unknown.len(), MOST_UNKNOWN_OF_ONE);
        // a failed login only waits for its answer
        asked.limits().failed("daq");
        let newest = admission.enter(address(1));
        assert!(asked.evicted.try_recv().is_ok());
        drop((entries, asked, newest));
        assert!(admission.state.lock().unknown.is_empty() && admission.state.lock().unknown_of.is_empty());
    }

    #[test]
    fn all_addresses_together_are_bounded() {
        let admission = Admission::default();
        let entries: Vec<_> = (0..10_000).map(|n| admission.enter(address(n))).collect();
        assert_eq!(admission.state.lock().unknown.len(), MOST_UNKNOWN);
        drop(entries);
        assert!(admission.state.lock().unknown_of.is_empty());
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
    fn guesses_of_names_are_answered_late_and_delay_nobody_else() {
        let (admission, now) = (Admission::default(), Instant::now());
        for _ in 0..10_000 {
            assert_eq!(admission.failed_at(address(1), "daq", now), REFUSAL_PAUSE);
        }
        for n in FREE_FAILURES..FREE_FAILURES_OF_ADDRESS {
            assert_eq!(admission.failed_at(address(1), &format!("guess {n}"), now), REFUSAL_PAUSE);
        }
        assert_eq!(admission.failed_at(address(1), "another guess", now), LATE_REFUSAL_PAUSE);
        assert_eq!(admission.failed_at(address(2), "another guess", now), REFUSAL_PAUSE);
        for _ in 0..3 {
            assert_eq!(admission.turn_at(address(1), "other", now), Some(Duration::ZERO));
        }
    }

    #[test]
    fn the_password_that_was_right_before_is_known_at_its_address() {
        let admission = Admission::default();
        let entry = admission.enter(address(1)).limits();
        entry.succeeded("daq", "right");
        for n in 0..2 * MOST_REMEMBERED as u32 {
            admission.failed_at(address(1), &format!("guess {n}"), Instant::now());
        }
        assert!(entry.was_right("daq", "right"));
        assert!(!entry.was_right("daq", "wrong") && !entry.was_right("other", "right"));
        assert!(!admission.enter(address(2)).limits().was_right("daq", "right"));
        for n in 0..MOST_REMEMBERED as u32 {
            admission.succeeded_at(address(n + 10), "daq", "right", Instant::now());
        }
        assert_eq!(admission.state.lock().right.len(), MOST_REMEMBERED);
        assert!(!entry.was_right("daq", "right"));
    }

    #[test]
    fn a_success_makes_up_for_failures() {
        let admission = Admission::default();
        let entry = admission.enter(address(1)).limits();
        for _ in 0..FREE_FAILURES {
            entry.failed("daq");
        }
        entry.succeeded("daq", "right");
        assert_eq!((entry.turn("daq"), entry.turn("daq")), (Some(Duration::ZERO), Some(Duration::ZERO)));
    }

    #[test]
    fn failures_of_many_take_bounded_memory() {
        let (admission, now) = (Admission::default(), Instant::now());
        for n in 0..MOST_REMEMBERED as u32 + 10 {
            admission.failed_at(address(n), "", now + Duration::from_millis(u64::from(n) / 100));
        }
        assert_eq!(admission.state.lock().failed.len(), MOST_REMEMBERED);
    }
}
