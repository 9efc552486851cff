//! Limits the memory of long requests: a fixed number of each size may be in progress, and the next waits, with its
//! bytes in its socket, until one has been answered.
//!
//! A request takes a slot of a size when it exceeds the next smaller size, and keeps it until it is answered. It then
//! needs no further slot of that or a smaller size, so waiting requests always wait for ones that can continue. A
//! request whose bytes arrive too slowly is ended when another waits for its slot.

use super::shares::{Claimant, Permit, Shares};
use crate::client::error::{SessionError, PACE};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{timeout, Instant};

/// A size of requests.
struct Size {
    /// Bytes that a request may have without a slot.
    without: usize,
    slots: usize,
    /// Maximum of one login.
    of_login: usize,
}

/// Together 256 MiB of requests: 64 of up to 1 MiB, 8 of up to 8 MiB and 2 of up to the longest request of a session.
const SIZES: [Size; 3] = [
    Size { without: WITHOUT_SLOT, slots: 64, of_login: 48 },
    Size { without: 1 << 20, slots: 8, of_login: 6 },
    Size { without: 8 << 20, slots: 2, of_login: 1 },
];
/// Bytes that any request may have.
pub const WITHOUT_SLOT: usize = 64 << 10;
/// How far a request may fall behind PACE.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub struct Room([Shares; SIZES.len()]);

/// The room, and the slots of a session's request.
pub struct Slots {
    room: Room,
    login: Arc<str>,
    held: Vec<Permit>,
    recall: Arc<Notify>,
    /// How far the request may still fall behind.
    credit: Duration,
    /// Nothing has arrived since then.
    empty_since: Option<Instant>,
    is_unused: bool,
}

impl Room {
    pub fn new() -> Room {
        Room(SIZES.map(|size| Shares::new(size.slots, 0)))
    }

    /// The slots of a session of this login.
    pub fn slots(&self, login: &Arc<str>) -> Slots {
        Slots {
            room: self.clone(),
            login: login.clone(),
            held: Vec::new(),
            recall: Arc::default(),
            credit: GRACE,
            empty_since: None,
            is_unused: false,
        }
    }
}

impl Slots {
    /// Waits for the slots of a request that has grown to this many bytes. Safe to drop while waiting.
    pub async fn take(&mut self, bytes: usize) {
        while let Some((size, shares)) = SIZES.iter().zip(&self.room.0).nth(self.held.len()) {
            if bytes <= size.without {
                return;
            }
            let claimant = Claimant { login: self.login.clone(), most: size.of_login, has_reserve: false };
            self.held.push(shares.take(&claimant, &self.recall).await);
        }
    }

    /// Waits for further bytes of a request. Returns TooSlow if they arrive too slowly while others wait. Safe to drop
    /// while waiting.
    pub async fn read(
        &mut self,
        read: impl Future<Output = io::Result<usize>>,
    ) -> Result<usize, SessionError> {
        if self.held.is_empty() {
            return Ok(read.await?);
        }
        let since = *self.empty_since.get_or_insert_with(Instant::now);
        let mut read = pin!(read);
        let in_time = timeout(self.credit.saturating_sub(since.elapsed()), &mut read).await;
        let count = match in_time {
            Ok(count) => count?,
            Err(_) => {
                self.set_unused(true);
                tokio::select! {
                    biased;
                    count = &mut read => count?,
                    () = self.recalled() => return Err(SessionError::TooSlow),
                }
            }
        };
        self.set_unused(false);
        self.empty_since = None;
        let earned = Duration::from_secs_f64(count as f64 / PACE as f64);
        self.credit = (self.credit.saturating_sub(since.elapsed()) + earned).min(GRACE);
        Ok(count)
    }

    fn set_unused(&mut self, is_unused: bool) {
        if is_unused != self.is_unused {
            self.is_unused = is_unused;
            self.held.iter().for_each(|permit| permit.set_unused(is_unused));
        }
    }

    async fn recalled(&self) {
        while !self.held.iter().any(Permit::is_recalled) {
            self.recall.notified().await;
        }
    }

    /// Bytes that a request may have without another slot.
    pub fn most(&self) -> usize {
        SIZES.get(self.held.len()).map_or(0, |size| size.without)
    }

    /// Returns the slots of an answered request.
    pub fn give_back(&mut self) {
        self.held.clear();
        (self.credit, self.empty_since, self.is_unused) = (GRACE, None, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    const SHORT: Duration = Duration::from_millis(10);

    async fn come(bytes: usize, after: Duration) -> io::Result<usize> {
        sleep(after).await;
        Ok(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn long_requests_wait_for_slots_and_short_ones_do_not() {
        let room = Room::new();
        let logins: [Arc<str>; 2] = ["one".into(), "two".into()];
        let mut all: Vec<Slots> = (0..SIZES[0].slots).map(|n| room.slots(&logins[n % 2])).collect();
        for slots in &mut all {
            timeout(SHORT, slots.take(800_000)).await.unwrap();
        }
        let mut next = room.slots(&logins[0]);
        timeout(SHORT, next.take(SIZES[0].without)).await.unwrap();
        assert!(timeout(SHORT, next.take(SIZES[0].without + 1)).await.is_err());
        all[0].give_back();
        timeout(SHORT, next.take(SIZES[0].without + 1)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_always_come_to_an_end() {
        let room = Room::new();
        let requests: Vec<_> = (0..100)
            .map(|number| {
                let mut slots = room.slots(&format!("login {}", number % 3).into());
                tokio::spawn(async move {
                    for bytes in (0..64).map(|mebibytes| mebibytes << 20) {
                        slots.take(bytes).await;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for request in requests {
            timeout(Duration::from_secs(10), request).await.unwrap().unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_keeps_the_pace_stays_and_a_slow_one_goes_when_another_waits() {
        let room = Room::new();
        let login: Arc<str> = "daq".into();
        let (mut steady, mut slow) = (room.slots(&login), room.slots(&"other".into()));
        for slots in [&mut steady, &mut slow] {
            slots.take(9 << 20).await;
        }
        let waits = tokio::spawn({
            let mut next = room.slots(&login);
            async move { next.take(9 << 20).await }
        });
        for _ in 0..100 {
            steady.read(come(PACE / 2, Duration::from_millis(500))).await.unwrap();
        }
        assert!(!waits.is_finished());
        // no waiting request could use the slow one's slot
        for _ in 0..100 {
            slow.read(come(1, GRACE * 2)).await.unwrap();
        }
        let start = Instant::now();
        let gone = steady.read(come(1, GRACE * 100)).await;
        assert!(matches!(gone, Err(SessionError::TooSlow)));
        assert!(start.elapsed() <= GRACE + SHORT);
        steady.give_back();
        waits.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn slow_requests_of_one_login_do_not_keep_those_of_another_waiting() {
        let room = Room::new();
        for size in &SIZES {
            let held = (0..size.slots).map(|_| room.slots(&"slow".into())).map(|mut slots| {
                tokio::spawn(async move {
                    slots.take(size.without + 1).await;
                    slots.read(come(1, GRACE * 1000)).await
                })
            });
            let held: Vec<_> = held.collect();
            tokio::task::yield_now().await;
            let mut other = room.slots(&"daq".into());
            timeout(SHORT, other.take(size.without + 1)).await.unwrap();
            held.iter().for_each(|held| held.abort());
            sleep(SHORT).await;
        }
    }
}
