//! The queries that were sent ahead, in order, and their answers.

use super::described::Described;
use crate::postgres::message::Message;
use crate::postgres::{Canceller, Connection, PgError};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{timeout_at, Instant};

/// Time after which unwanted answers are cancelled, and cancelled again.
const PATIENCE: Duration = Duration::from_millis(20);

/// A query that was sent ahead.
pub struct Sent {
    pub prepared: Arc<Described>,
    pub values: Bytes,
    pub limit: i32,
}

#[derive(Default)]
pub struct SentAhead(VecDeque<Sent>);

impl SentAhead {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, sent: Sent) {
        self.0.push_back(sent);
    }

    /// Whether this query was sent first, so that its answer comes next. If not, all answers are discarded.
    pub async fn was_sent(
        &mut self,
        connection: &mut Connection,
        prepared: &Arc<Described>,
        values: &Bytes,
        limit: i32,
    ) -> Result<bool, PgError> {
        let is_first = self.0.front().is_some_and(|sent| {
            Arc::ptr_eq(&sent.prepared, prepared) && sent.values == *values && sent.limit == limit
        });
        if is_first {
            self.0.pop_front();
        } else {
            self.forget(connection).await?;
        }
        Ok(is_first)
    }

    /// Reads and discards the answers.
    pub async fn forget(&mut self, connection: &mut Connection) -> Result<(), PgError> {
        let mut left = std::mem::take(&mut self.0).len();
        let mut until = Instant::now() + PATIENCE;
        while left > 0 {
            let message = timeout_at(until, connection.receive()).await;
            match message {
                Ok(Ok(Message::ReadyForQuery(_)) | Err(PgError::Unconfirmed)) => left -= 1,
                Ok(message) => drop(message?),
                Err(_) => {}
            }
            if left > 0 && Instant::now() >= until {
                let _ = Canceller::of(connection).cancel().await;
                until = Instant::now() + PATIENCE;
            }
        }
        Ok(())
    }
}
