//! Limits the memory of sessions besides their requests (`room.rs`): values of variables, arguments of calls, texts that
//! run, prepared statements, rows for INSERT … EXECUTE, long messages of PostgreSQL, and long parameters that are being
//! sent. Small amounts are not counted.

use crate::postgres::{Notice, PgError};
use crate::tds::tokens::message::ServerMessage;
use bytes::Bytes;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Unit of counting, in bytes.
const UNIT: usize = 1 << 10;
/// Limit of the memory that all sessions keep.
const KEPT: usize = 192 << 20;
static KEPT_LEFT: Semaphore = Semaphore::const_new(KEPT / UNIT);
/// Uncounted bytes of each keeper.
const UNCOUNTED: usize = 64 << 10;

/// Messages and parameters of fewer bytes are not counted.
pub const LONG: usize = 1 << 20;
/// The longest message: a value of the longest request, in UTF-8.
const LONGEST: usize = 96 << 20;
/// Limit of the long messages of all sessions. Each is in memory twice: decoded too, or encoded for the client.
const MESSAGES: usize = 128 << 20;
static MESSAGES_LEFT: Semaphore = Semaphore::const_new(MESSAGES / UNIT);
/// The longest time that a message waits for memory.
const WAIT: Duration = Duration::from_secs(10);
/// One statement at a time writes its long parameters.
static WRITING: Semaphore = Semaphore::const_new(1);

/// SQL Server's error number for insufficient memory.
pub const NO_MEMORY: i32 = 701;

/// Larger allocations are mappings of their own, which are returned to the kernel when freed. glibc's own limit grows
/// with each such allocation, up to 32 MiB; freed values then remain between others on the heap.
const MAPPED: libc::c_int = 1 << 20;

/// Makes the allocator return the memory of large values to the system, in the whole process.
#[allow(unsafe_code)]
pub fn return_large_allocations() {
    // SAFETY: mallopt takes no pointers.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED) };
}

/// The memory of one keeper.
#[derive(Debug, Default)]
pub struct Kept(Option<SemaphorePermit<'static>>);

impl Kept {
    /// Sets the kept bytes, at most `most`. `what`: the subject of the error.
    pub fn keep(&mut self, bytes: usize, most: usize, what: &str) -> Result<(), ServerMessage> {
        if bytes > most {
            let text = format!(
                "There is insufficient memory to run this batch: {what} may have {} MiB together.",
                most >> 20
            );
            return Err(ServerMessage::error(NO_MEMORY, 17, text));
        }
        let wanted = bytes.saturating_sub(UNCOUNTED).div_ceil(UNIT);
        let has = self.0.as_ref().map_or(0, SemaphorePermit::num_permits);
        if wanted == 0 {
            self.0 = None;
        } else if wanted < has {
            self.0 = self.0.take().and_then(|mut permit| permit.split(wanted));
        } else if wanted > has {
            // both are below `KEPT`
            let Ok(more) = KEPT_LEFT.try_acquire_many((wanted - has) as u32) else {
                let text = format!(
                    "There is insufficient memory to run this batch: {what} of all sessions may have {} MiB, which are \
                     in use. Send it again later.",
                    KEPT >> 20
                );
                return Err(ServerMessage::error(NO_MEMORY, 17, text));
            };
            match &mut self.0 {
                Some(permit) => permit.merge(more),
                None => self.0 = Some(more),
            }
        }
        Ok(())
    }

    /// Whether any bytes are counted.
    pub fn counts(&self) -> bool {
        self.0.is_some()
    }
}

/// Waits for memory for a message of this size. An error is fatal to its connection, whose bytes remain unread.
pub async fn message(bytes: usize) -> Result<SemaphorePermit<'static>, PgError> {
    row(bytes).await.map_err(|refused| {
        PgError::Server(Box::new(Notice {
            severity: "FATAL".into(),
            sqlstate: "53200".into(),
            message: format!("{} The connection's transaction was rolled back.", refused.text),
            ..Notice::default()
        }))
    })
}

/// Waits for memory for a row of this size.
pub async fn row(bytes: usize) -> Result<SemaphorePermit<'static>, ServerMessage> {
    let text = if bytes > LONGEST {
        format!("a row may have {} MiB, and one has {} MiB.", LONGEST >> 20, bytes >> 20)
    } else {
        let units = bytes.div_ceil(UNIT) as u32;
        match timeout(WAIT, MESSAGES_LEFT.acquire_many(units)).await {
            Ok(Ok(permit)) => return Ok(permit),
            _ => format!(
                "long rows of all sessions may have {} MiB, which are in use. Send it again later.",
                MESSAGES >> 20
            ),
        }
    };
    Err(ServerMessage::error(NO_MEMORY, 17, format!("There is insufficient memory: {text}")))
}

/// Waits until other long parameters have been sent.
pub async fn writing(bytes: usize) -> Option<SemaphorePermit<'static>> {
    if bytes < LONG {
        return None;
    }
    WRITING.acquire().await.ok()
}

/// Bytes that have the memory of a message until they are dropped.
pub fn counted(bytes: Bytes, memory: SemaphorePermit<'static>) -> Bytes {
    struct Counted(Bytes, #[allow(dead_code)] SemaphorePermit<'static>);
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Counted(bytes, memory))
}

/// Held by each test that uses up the memory of all sessions.
#[cfg(test)]
pub static ALONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_comes_back() {
        let _alone = ALONE.lock();
        let all = KEPT_LEFT.available_permits();
        let mut keepers: Vec<Kept> = Vec::new();
        let refused = loop {
            let mut kept = Kept::default();
            if let Err(refused) = kept.keep(16 << 20, 16 << 20, "variables") {
                break refused;
            }
            keepers.push(kept);
        };
        assert_eq!((refused.number, keepers.len()), (NO_MEMORY, 12));
        assert_eq!(keepers[0].keep(17 << 20, 16 << 20, "variables").unwrap_err().number, NO_MEMORY);
        keepers[0].keep(UNCOUNTED, 16 << 20, "variables").unwrap();
        assert!(!keepers[0].counts());
        keepers[1].keep(8 << 20, 16 << 20, "variables").unwrap();
        keepers[0].keep(16 << 20, 16 << 20, "variables").unwrap();
        drop(keepers);
        assert_eq!(KEPT_LEFT.available_permits(), all);
    }
}
