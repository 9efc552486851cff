//! Timeouts of a client that neither reads nor sends while its statement runs. Its connection to PostgreSQL
//! is unused meanwhile, and others may need it.

use super::SessionError;
use crate::limits::shares::Permit;
use parking_lot::Mutex;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A connection is unused after its client has neither read nor sent for this time.
const UNUSED: Duration = Duration::from_secs(30);

/// The permit of the session's connection to PostgreSQL, while it has one.
#[derive(Clone, Debug, Default)]
pub struct Occupied(Arc<Mutex<Weak<Permit>>>);

impl Occupied {
    pub fn occupy(&self, permit: Permit) -> Option<Arc<Permit>> {
        let permit = Arc::new(permit);
        *self.0.lock() = Arc::downgrade(&permit);
        Some(permit)
    }

    fn permit(&self) -> Option<Arc<Permit>> {
        self.0.lock().upgrade()
    }
}

/// Marks a permit as unused until this is dropped.
pub struct Unused(Option<Arc<Permit>>);

impl Unused {
    pub fn new(permit: Option<Arc<Permit>>) -> Unused {
        if let Some(permit) = &permit {
            permit.set_unused(true);
        }
        Unused(permit)
    }

    pub async fn recalled(&self) {
        match &self.0 {
            Some(permit) => permit.recalled().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        if let Some(permit) = &self.0 {
            permit.set_unused(false);
        }
    }
}

/// Waits at most `most` for a step of the client; less if others wait for its connection to PostgreSQL.
pub async fn step<T>(
    step: impl Future<Output = io::Result<T>>,
    occupied: &Occupied,
    most: Duration,
    too_long: SessionError,
) -> Result<T, SessionError> {
    let mut step = pin!(step);
    if let Ok(done) = timeout(UNUSED, &mut step).await {
        return Ok(done?);
    }
    let unused = Unused::new(occupied.permit());
    tokio::select! {
        biased;
        done = &mut step => Ok(done?),
        () = unused.recalled() => Err(too_long),
        () = sleep(most.saturating_sub(UNUSED)) => Err(too_long),
    }
}
