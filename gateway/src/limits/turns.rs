//! Turns of result sets: a fixed number of them are streamed at the same time; the others wait for their next turn,
//! login by login. A login with many requests gets no more than any other, and readers never use more cores than there
//! are slots.

use crate::metrics::Metrics;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{sleep_until, Instant};

/// Every waiting result set should get a turn within this time, within the limits of a turn.
const ROUND: Duration = Duration::from_millis(500);
const SHORTEST_TURN: Duration = Duration::from_millis(10);
const LONGEST_TURN: Duration = Duration::from_millis(100);

pub struct Turns {
    slots: usize,
    state: Mutex<State>,
    metrics: Arc<Metrics>,
}

struct State {
    free: usize,
    /// Logins with waiting result sets, in the order of their turns.
    order: VecDeque<Arc<str>>,
    waiting: HashMap<Arc<str>, VecDeque<oneshot::Sender<Slot>>>,
    count: usize,
}

/// A slot; the next in the queue gets it when this is dropped.
struct Slot(Option<Arc<Turns>>);

impl Turns {
    /// A slot for each core.
    pub fn new(metrics: Arc<Metrics>) -> Arc<Turns> {
        Turns::with_slots(available_parallelism().map_or(1, usize::from).max(2), metrics)
    }

    fn with_slots(slots: usize, metrics: Arc<Metrics>) -> Arc<Turns> {
        let state = State { free: slots, order: VecDeque::new(), waiting: HashMap::new(), count: 0 };
        Arc::new(Turns { slots, state: Mutex::new(state), metrics })
    }

    /// For a result set of `login`, which has no slot yet.
    pub fn turn(self: &Arc<Turns>, login: &Arc<str>) -> Turn {
        Turn {
            turns: self.clone(),
            login: login.clone(),
            slot: None,
            end: Instant::now(),
            waited: Duration::ZERO,
        }
    }

    /// A slot, or the wait for one.
    fn ask(self: &Arc<Turns>, login: &Arc<str>) -> Result<Slot, oneshot::Receiver<Slot>> {
        let mut state = self.state.lock();
        if state.free > 0 {
            state.free -= 1;
            return Ok(Slot(Some(self.clone())));
        }
        let (sender, receiver) = oneshot::channel();
        if !state.waiting.contains_key(login) {
            state.order.push_back(login.clone());
        }
        state.waiting.entry(login.clone()).or_default().push_back(sender);
        state.count += 1;
        self.metrics.waiting_result_sets.set(state.count as i64);
        Err(receiver)
    }

    fn give(self: Arc<Turns>) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.next();
                if next.is_none() {
                    state.free += 1;
                }
                self.metrics.waiting_result_sets.set(state.count as i64);
                next
            };
            let Some(next) = next else { return };
            match next.send(Slot(Some(self.clone()))) {
                Ok(()) => return,
                // the wait was abandoned
                Err(mut slot) => slot.0 = None,
            }
        }
    }

    fn length(&self) -> Duration {
        let waiting = self.state.lock().count.max(1) as u32;
        (ROUND * self.slots as u32 / waiting).clamp(SHORTEST_TURN, LONGEST_TURN)
    }

    fn has_waiting(&self) -> bool {
        self.state.lock().count > 0
    }
}

impl State {
    /// The next in turn: the first of the login whose turn it is, which then comes after all other logins.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        let login = self.order.pop_front()?;
        let queue = self.waiting.get_mut(&login)?;
        let next = queue.pop_front();
        self.count -= usize::from(next.is_some());
        if queue.is_empty() {
            self.waiting.remove(&login);
        } else {
            self.order.push_back(login);
        }
        next
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.give();
        }
    }
}

/// The turns of one result set.
pub struct Turn {
    turns: Arc<Turns>,
    login: Arc<str>,
    slot: Option<Slot>,
    end: Instant,
    waited: Duration,
}

impl Turn {
    /// Waits for a slot, unless it has one. If dropped while waiting, it loses its position in the queue.
    pub async fn take(&mut self) {
        if self.slot.is_some() {
            return;
        }
        let asked = Instant::now();
        let slot = match self.turns.ask(&self.login) {
            Ok(slot) => slot,
            Err(waiting) => match waiting.await {
                Ok(slot) => slot,
                // only abandoned waits drop slots
                Err(_) => return,
            },
        };
        self.waited += asked.elapsed();
        self.end = Instant::now() + self.turns.length();
        self.slot = Some(slot);
    }

    pub fn give_back(&mut self) {
        self.slot = None;
    }

    /// Releases the slot if the turn is over and others wait.
    pub fn give_way(&mut self) {
        if self.slot.is_some() && Instant::now() >= self.end && self.turns.has_waiting() {
            self.slot = None;
        }
    }

    /// Waits until the turn is over; forever without a slot.
    pub async fn is_over(&self) {
        if self.slot.is_none() {
            return std::future::pending().await;
        }
        sleep_until(self.end).await;
        while !self.turns.has_waiting() {
            tokio::time::sleep(LONGEST_TURN).await;
        }
    }

    /// The message for a client whose rows have waited for a second or more altogether.
    pub fn wait_message(&mut self) -> Option<String> {
        let waited = std::mem::take(&mut self.waited).as_secs_f64();
        (waited >= 1.0).then(|| {
            let slots = self.turns.slots;
            format!(
                "These rows have waited {waited:.1} s for their turns: {slots} result sets stream at once, login \
                 by login."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn turns(slots: usize) -> Arc<Turns> {
        Turns::with_slots(slots, Arc::new(Metrics::default()))
    }

    fn free_and_waiting(turns: &Turns) -> (usize, usize) {
        let state = turns.state.lock();
        (state.free, state.count)
    }

    /// Streams this many portions, one in a millisecond of its turn.
    async fn stream(turns: Arc<Turns>, login: &str, portions: usize, done: Arc<AtomicUsize>) {
        let mut turn = turns.turn(&login.into());
        for _ in 0..portions {
            turn.take().await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            done.fetch_add(1, Ordering::Relaxed);
            turn.give_way();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_greedy_login_gets_no_more_than_another() {
        let turns = turns(2);
        let (greedy, modest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..40 {
            tokio::spawn(stream(turns.clone(), "greedy", 100_000, greedy.clone()));
        }
        for _ in 0..2 {
            tokio::spawn(stream(turns.clone(), "modest", 100_000, modest.clone()));
        }
        tokio::time::sleep(Duration::from_secs(20)).await;
        let (greedy, modest) = (greedy.load(Ordering::Relaxed), modest.load(Ordering::Relaxed));
        assert!(greedy + modest > 35_000, "{greedy} {modest}");
        assert!(modest * 3 > greedy, "{greedy} {modest}");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_more_than_a_second() {
        let turns = turns(2);
        let readers: Vec<_> = (0..64)
            .map(|number| {
                let (turns, login) = (turns.clone(), format!("login {}", number % 8));
                tokio::spawn(async move {
                    let mut turn = turns.turn(&login.as_str().into());
                    let mut longest = Duration::ZERO;
                    for _ in 0..500 {
                        let asked = Instant::now();
                        turn.take().await;
                        longest = longest.max(asked.elapsed());
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        turn.give_way();
                    }
                    longest
                })
            })
            .collect();
        for reader in readers {
            let longest = reader.await.unwrap();
            assert!(longest <= Duration::from_secs(1), "{longest:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slots_of_those_who_wait_no_longer_are_not_lost() {
        let turns = turns(1);
        let mut first = turns.turn(&"one".into());
        first.take().await;
        for _ in 0..3 {
            let mut gone = turns.turn(&"two".into());
            assert!(tokio::time::timeout(Duration::from_millis(1), gone.take()).await.is_err());
        }
        let mut next = turns.turn(&"two".into());
        {
            let waiting = next.take();
            tokio::pin!(waiting);
            assert!(tokio::time::timeout(Duration::from_secs(2), &mut waiting).await.is_err());
            first.give_back();
            waiting.await;
        }
        assert!(next.wait_message().is_some_and(|text| text.contains("waited 2.0 s")));
        drop(next);
        first.take().await;
        assert_eq!(free_and_waiting(&turns), (0, 0));
        drop(first);
        assert_eq!(free_and_waiting(&turns), (1, 0));
    }
}
