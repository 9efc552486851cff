//! Bounds the memory of long requests: a fixed number of each size may be under way at once, and the next waits, with
//! its bytes in its socket, until one has been answered.
//!
//! A request takes a slot of a size when it has grown beyond it, and keeps it until it is answered. A request that
//! has a slot of one size needs no other of that size and never one of a smaller size: so those that wait always wait
//! for others that can continue.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that a request may have without a place, and places for longer ones. Together they are 256 MiB of requests:
/// 64 of up to 1 MiB, 8 of up to 8 MiB and 2 of up to the longest that a session takes.
const SIZES: [(usize, usize); 3] = [(64 << 10, 64), (1 << 20, 8), (8 << 20, 2)];

#[derive(Clone)]
pub struct Room([Arc<Semaphore>; SIZES.len()]);

/// The slots of a request.
#[derive(Default)]
pub struct Places(Vec<OwnedSemaphorePermit>);

impl Room {
    pub fn new() -> Room {
        Room(SIZES.map(|(_, places)| Arc::new(Semaphore::new(places))))
    }

    /// Waits for what a request that has so many bytes by now needs beside the places it has. Safe to drop while
    /// waiting.
    pub async fn take(&self, bytes: usize, places: &mut Places) {
        while let Some((size, free)) = SIZES.iter().zip(&self.0).nth(places.0.len()) {
            if bytes <= size.0 {
                return;
            }
            let Ok(place) = free.clone().acquire_owned().await else { return };
            places.0.push(place);
        }
    }
}

impl Places {
    /// Bytes that a request may have without another place.
    pub fn most(&self) -> usize {
        SIZES.get(self.0.len()).map_or(0, |(size, _)| *size)
    }

    pub fn give_back(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(10);

    #[tokio::test(start_paused = true)]
    async fn long_requests_wait_for_places_and_short_ones_do_not() {
        let room = Room::new();
        let mut all: Vec<Places> = (0..SIZES[0].1).map(|_| Places::default()).collect();
        for places in &mut all {
            timeout(SHORT, room.take(800_000, places)).await.unwrap();
        }
        let mut next = Places::default();
        timeout(SHORT, room.take(SIZES[0].0, &mut next)).await.unwrap();
        assert!(timeout(SHORT, room.take(SIZES[0].0 + 1, &mut next)).await.is_err());
        all[0].give_back();
        timeout(SHORT, room.take(SIZES[0].0 + 1, &mut next)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_always_come_to_an_end() {
        let room = Room::new();
        let requests: Vec<_> = (0..100)
            .map(|_| {
                let room = room.clone();
                tokio::spawn(async move {
                    let mut places = Places::default();
                    for bytes in (0..64).map(|mebibytes| mebibytes << 20) {
                        room.take(bytes, &mut places).await;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for request in requests {
            timeout(Duration::from_secs(10), request).await.unwrap().unwrap();
        }
    }
}
