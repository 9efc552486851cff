//! The copy of a session's bytes for its shadow: in bounded memory, and without delay for the session.

use bytes::Bytes;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most bytes that the shadow of one session may be behind, and all shadows together.
pub const OF_A_SESSION: usize = 8 << 20;
pub const OF_ALL: usize = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Client,
    Old,
}

/// A piece of a session. Its memory is counted until it is dropped.
pub struct Piece {
    pub from: From,
    pub bytes: Bytes,
    _room: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

/// The session's end: copies the forwarded bytes while there is room.
pub struct Tap {
    /// None once the shadow has fallen too far behind, or has ended.
    sender: Mutex<Option<UnboundedSender<Piece>>>,
    own: Arc<Semaphore>,
    all: Arc<Semaphore>,
    behind: Arc<std::sync::atomic::AtomicBool>,
}

/// The shadow's end.
pub struct Pieces {
    receiver: UnboundedReceiver<Piece>,
    behind: Arc<std::sync::atomic::AtomicBool>,
}

pub fn tap(all: &Arc<Semaphore>) -> (Tap, Pieces) {
    // bounded by the bytes in it, each piece of which holds its share
    let (sender, receiver) = unbounded_channel();
    let behind = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let tap = Tap {
        sender: Mutex::new(Some(sender)),
        own: Arc::new(Semaphore::new(OF_A_SESSION)),
        all: all.clone(),
        behind: behind.clone(),
    };
    (tap, Pieces { receiver, behind })
}

impl Tap {
    pub fn give(&self, from: From, bytes: &[u8]) {
        let mut sender = match self.sender.lock() {
            Ok(sender) => sender,
            Err(poisoned) => poisoned.into_inner(),
        };
        let Some(open) = sender.as_ref() else { return };
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let room = |limit: &Arc<Semaphore>| limit.clone().try_acquire_many_owned(size).ok();
        let given = match (room(&self.own), room(&self.all)) {
            (Some(own), Some(all)) => {
                let piece = Piece { from, bytes: Bytes::copy_from_slice(bytes), _room: (own, all) };
                open.send(piece).is_ok()
            }
            _ => {
                self.behind.store(true, std::sync::atomic::Ordering::Release);
                false
            }
        };
        if !given {
            *sender = None;
        }
    }
}

impl Pieces {
    /// The next piece; None at the session's end, or when the shadow is too far behind.
    pub async fn next(&mut self) -> Option<Piece> {
        if self.is_behind() {
            return None;
        }
        self.receiver.recv().await
    }

    pub fn is_behind(&self) -> bool {
        self.behind.load(std::sync::atomic::Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_shadow_that_hears_nothing_costs_no_more_than_its_room() {
        let all = Arc::new(Semaphore::new(OF_ALL));
        let (tap, mut pieces) = tap(&all);
        let bytes = vec![0; 1 << 20];
        for _ in 0..20 {
            tap.give(From::Client, &bytes);
        }
        assert!(pieces.is_behind());
        assert!(OF_ALL - all.available_permits() <= OF_A_SESSION);
        assert!(pieces.next().await.is_none());
        drop(pieces);
        assert_eq!(all.available_permits(), OF_ALL);
    }

    #[tokio::test]
    async fn pieces_come_in_their_order() {
        let all = Arc::new(Semaphore::new(OF_ALL));
        let (tap, mut pieces) = tap(&all);
        tap.give(From::Client, b"a");
        tap.give(From::Old, b"b");
        drop(tap);
        let mut heard = Vec::new();
        while let Some(piece) = pieces.next().await {
            heard.push((piece.from, piece.bytes.to_vec()));
        }
        assert_eq!(heard, [(From::Client, b"a".to_vec()), (From::Old, b"b".to_vec())]);
    }
}
