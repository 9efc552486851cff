//! Slots that logins share, such as connections to PostgreSQL. No login has more than its share, and the last slots
//! are reserved. Waiting logins are served in turn, whatever the number of their requests. A holder that does not use
//! its slot reports that, and its permit is recalled when a waiting login could have it.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use tokio::sync::{oneshot, Notify};

#[derive(Clone, Debug)]
pub struct Claimant {
    pub login: Arc<str>,
    /// The most slots of the login.
    pub most: usize,
    /// It may take reserved slots.
    pub has_reserve: bool,
}

#[derive(Clone)]
pub struct Shares(Arc<Inner>);

struct Inner {
    /// Number of waiting requests: while it is 0, the use of a permit needs no lock.
    waiting: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    reserved: usize,
    last_number: u64,
    holders: BTreeMap<u64, Holder>,
    /// Slots held, by login.
    held: HashMap<Arc<str>, usize>,
    /// Waiting logins, in the order of their turns.
    order: VecDeque<Arc<str>>,
    waiting: HashMap<Arc<str>, VecDeque<Waiter>>,
}

struct Holder {
    login: Arc<str>,
    usage: Arc<Usage>,
}

#[derive(Debug)]
struct Usage {
    is_unused: AtomicBool,
    is_recalled: AtomicBool,
    recall: Arc<Notify>,
}

struct Waiter {
    claimant: Claimant,
    recall: Arc<Notify>,
    permit: oneshot::Sender<Permit>,
}

/// A slot, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    shares: Shares,
    number: u64,
    usage: Arc<Usage>,
}

impl Shares {
    pub fn new(slots: usize, reserved: usize) -> Shares {
        let state = Mutex::new(State {
            free: slots,
            reserved,
            last_number: 0,
            holders: BTreeMap::new(),
            held: HashMap::new(),
            order: VecDeque::new(),
            waiting: HashMap::new(),
        });
        Shares(Arc::new(Inner { waiting: AtomicUsize::new(0), state }))
    }

    /// Waits for a slot. `recall` is notified when it is recalled. Safe to drop while waiting.
    pub async fn take(&self, claimant: &Claimant, recall: &Arc<Notify>) -> Permit {
        let waiting = {
            let mut state = self.0.state.lock();
            if !state.waiting.contains_key(&claimant.login) && state.admits(claimant, None) {
                return state.hold(self, claimant.login.clone(), recall.clone());
            }
            let (permit, waiting) = oneshot::channel();
            if !state.waiting.contains_key(&claimant.login) {
                state.order.push_back(claimant.login.clone());
            }
            let waiter = Waiter { claimant: claimant.clone(), recall: recall.clone(), permit };
            state.waiting.entry(claimant.login.clone()).or_default().push_back(waiter);
            self.0.waiting.fetch_add(1, SeqCst);
            self.recall(&mut state);
            waiting
        };
        match waiting.await {
            Ok(permit) => permit,
            // only abandoned requests leave the queue without a slot
            Err(_) => std::future::pending().await,
        }
    }

    /// A slot if one is free now.
    pub fn try_take(&self, claimant: &Claimant) -> Option<Permit> {
        let mut state = self.0.state.lock();
        let is_free = state.admits(claimant, None);
        is_free.then(|| state.hold(self, claimant.login.clone(), Arc::default()))
    }

    /// Whether nobody has a slot or waits for one.
    #[cfg(test)]
    pub fn is_unused(&self) -> bool {
        let state = self.0.state.lock();
        state.holders.is_empty() && state.held.is_empty() && state.waiting.is_empty()
    }

    /// Recalls as many unused permits as requests wait for.
    fn recall(&self, state: &mut State) {
        let is_unused =
            |holder: &&Holder| holder.usage.is_unused.load(SeqCst) && !holder.usage.is_recalled.load(SeqCst);
        if !state.holders.values().any(|holder| is_unused(&holder)) {
            return;
        }
        let waiting = state.forget_dropped();
        self.0.waiting.store(waiting, SeqCst);
        let recalled = state.holders.values().filter(|holder| holder.usage.is_recalled.load(SeqCst)).count();
        let serves_somebody = |holder: &&Holder| {
            let mut first = state.waiting.values().filter_map(VecDeque::front);
            first.any(|waiter| state.admits(&waiter.claimant, Some(holder)))
        };
        let recalls = state.holders.values().filter(is_unused).filter(serves_somebody);
        for holder in recalls.take(waiting.saturating_sub(recalled)) {
            holder.usage.is_recalled.store(true, SeqCst);
            holder.usage.recall.notify_one();
        }
    }
}

impl State {
    /// Whether a slot is free for the claimant, or would be without this holder.
    fn admits(&self, claimant: &Claimant, without: Option<&Holder>) -> bool {
        let reserved = if claimant.has_reserve { 0 } else { self.reserved };
        let of_login = usize::from(without.is_some_and(|holder| holder.login == claimant.login));
        let held = self.held.get(&claimant.login).copied().unwrap_or_default();
        self.free + usize::from(without.is_some()) > reserved && held - of_login.min(held) < claimant.most
    }

    fn hold(&mut self, shares: &Shares, login: Arc<str>, recall: Arc<Notify>) -> Permit {
        self.free -= 1;
        *self.held.entry(login.clone()).or_default() += 1;
        self.last_number += 1;
        let number = self.last_number;
        let (is_unused, is_recalled) = Default::default();
        let usage = Arc::new(Usage { is_unused, is_recalled, recall });
        self.holders.insert(number, Holder { login, usage: usage.clone() });
        Permit { shares: shares.clone(), number, usage }
    }

    fn leave(&mut self, number: u64) {
        let Some(holder) = self.holders.remove(&number) else { return };
        self.free += 1;
        if let Some(held) = self.held.get_mut(&holder.login) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&holder.login);
            }
        }
    }

    /// Removes the first request with a free slot from the queue; its login then comes after all others.
    fn next(&mut self) -> Option<Waiter> {
        self.forget_dropped();
        let fits = |login| {
            let front = self.waiting.get(login).and_then(VecDeque::front);
            front.is_some_and(|waiter| self.admits(&waiter.claimant, None))
        };
        let turn = self.order.iter().position(fits)?;
        let login = self.order.remove(turn)?;
        let queue = self.waiting.get_mut(&login)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&login);
        } else {
            self.order.push_back(login);
        }
        next
    }

    /// Number of requests still waiting.
    fn forget_dropped(&mut self) -> usize {
        self.waiting.retain(|_, queue| {
            queue.retain(|waiter| !waiter.permit.is_closed());
            !queue.is_empty()
        });
        self.order.retain(|login| self.waiting.contains_key(login));
        self.waiting.values().map(VecDeque::len).sum()
    }
}

impl Permit {
    /// Sets whether its holder leaves it unused. A use cancels a recall.
    pub fn set_unused(&self, is_unused: bool) {
        self.usage.is_unused.store(is_unused, SeqCst);
        let was_recalled = !is_unused && self.usage.is_recalled.swap(false, SeqCst);
        if (is_unused || was_recalled) && self.shares.0.waiting.load(SeqCst) > 0 {
            self.shares.recall(&mut self.shares.0.state.lock());
        }
    }

    pub fn is_recalled(&self) -> bool {
        self.usage.is_recalled.load(SeqCst)
    }

    /// Waits until it is recalled.
    pub async fn recalled(&self) {
        while !self.is_recalled() {
            self.usage.recall.notified().await;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.shares.0.state.lock();
            state.leave(self.number);
            let next = state.next().map(|waiter| {
                let permit = state.hold(&self.shares, waiter.claimant.login, waiter.recall);
                (waiter.permit, permit)
            });
            let waiting = state.waiting.values().map(VecDeque::len).sum();
            self.shares.0.waiting.store(waiting, SeqCst);
            next
        };
        if let Some((waiting, permit)) = next {
            // a leaving holder passes it on
            let _ = waiting.send(permit);
        }
    }
}

impl std::fmt::Debug for Shares {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shares").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(10);

    fn of(login: &str, most: usize) -> Claimant {
        Claimant { login: login.into(), most, has_reserve: false }
    }

    async fn now(shares: &Shares, claimant: &Claimant) -> Option<Permit> {
        timeout(SHORT, shares.take(claimant, &Arc::default())).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn no_login_has_more_than_its_share_and_the_last_slots_are_reserved() {
        let shares = Shares::new(10, 2);
        let (greedy, other) = (of("greedy", 6), of("other", 6));
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(now(&shares, &greedy).await.unwrap());
        }
        assert!(now(&shares, &greedy).await.is_none());
        let others = [now(&shares, &other).await.unwrap(), now(&shares, &other).await.unwrap()];
        assert!(now(&shares, &other).await.is_none());
        assert!(shares.try_take(&Claimant { has_reserve: true, ..other.clone() }).is_some());
        drop(others);
        assert!(now(&shares, &greedy).await.is_none());
        assert!(now(&shares, &other).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn logins_that_wait_are_served_in_turn() {
        let shares = Shares::new(1, 0);
        let first = now(&shares, &of("first", 1)).await.unwrap();
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut all = Vec::new();
        for login in ["greedy", "greedy", "greedy", "modest"] {
            let (shares, served) = (shares.clone(), served.clone());
            all.push(tokio::spawn(async move {
                let _permit = shares.take(&of(login, 1), &Arc::default()).await;
                served.lock().push(login);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for one in all {
            one.await.unwrap();
        }
        assert_eq!(*served.lock(), ["greedy", "modest", "greedy", "greedy"]);
    }

    #[tokio::test(start_paused = true)]
    async fn unused_permits_are_recalled_for_those_who_could_have_them() {
        let shares = Shares::new(4, 0);
        let [one, two] = ["one", "two"].map(|login| of(login, 2));
        let of_one = [now(&shares, &one).await.unwrap(), now(&shares, &one).await.unwrap()];
        let of_two = [now(&shares, &two).await.unwrap(), now(&shares, &two).await.unwrap()];
        of_one[0].set_unused(true);
        of_two[0].set_unused(true);
        let waiting = tokio::spawn({
            let (shares, two) = (shares.clone(), two.clone());
            async move { drop(shares.take(&two, &Arc::default()).await) }
        });
        timeout(SHORT, of_two[0].recalled()).await.unwrap();
        assert!(!of_one[0].is_recalled() && !of_two[1].is_recalled());
        of_two[0].set_unused(false);
        assert!(!of_two[0].is_recalled());
        of_two[1].set_unused(true);
        timeout(SHORT, of_two[1].recalled()).await.unwrap();
        drop(of_two);
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn slots_of_those_who_wait_no_longer_are_not_lost() {
        let shares = Shares::new(1, 0);
        let one = of("one", 1);
        let permit = now(&shares, &one).await.unwrap();
        for _ in 0..3 {
            assert!(now(&shares, &of("two", 1)).await.is_none());
        }
        let recall = Arc::default();
        let mut waiting = Box::pin(shares.take(&one, &recall));
        assert!(timeout(SHORT, &mut waiting).await.is_err());
        drop(permit);
        // it has received the permit, but was dropped before taking it
        drop(waiting);
        assert!(now(&shares, &one).await.is_some());
        let state = shares.0.state.lock();
        assert!(state.waiting.is_empty() && state.held.is_empty());
    }
}
