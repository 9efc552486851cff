//! Limits the memory of sessions besides their requests (`room.rs`): values of variables, prepared statements, rows for
//! INSERT … EXECUTE, long messages of PostgreSQL, and long parameters that are being sent. Small amounts are not
//! counted.

use crate::postgres::{Notice, PgError};
use crate::tds::tokens::message::ServerMessage;
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
static MESSAGES_LEFT: Semaphore = Semaphore::const_new(2 * LONGEST / UNIT);
/// The longest time that a message waits for memory.
const WAIT: Duration = Duration::from_secs(10);
/// The number of statements whose long parameters are written at the same time.
static WRITING: Semaphore = Semaphore::const_new(2);

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
    if bytes > LONGEST {
        let text = format!(
            "There is insufficient memory: a row may have {} MiB, and one has {} MiB. The connection's transaction was \
             rolled back.",
            LONGEST >> 20,
            bytes >> 20
        );
        return Err(no_memory(text));
    }
    let units = bytes.div_ceil(UNIT) as u32;
    match timeout(WAIT, MESSAGES_LEFT.acquire_many(units)).await {
        Ok(Ok(permit)) => Ok(permit),
        _ => Err(no_memory(format!(
            "There is insufficient memory: long rows of all sessions may have {} MiB, which are in use. The connection's \
             transaction was rolled back: send it again later.",
            (2 * LONGEST) >> 20
        ))),
    }
}

/// Waits until other long parameters have been sent.
pub async fn writing(bytes: usize) -> Option<SemaphorePermit<'static>> {
    if bytes < LONG {
        return None;
    }
    WRITING.acquire().await.ok()
}

fn no_memory(message: String) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "FATAL".into(),
        sqlstate: "53200".into(),
        message,
        ..Notice::default()
    }))
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
