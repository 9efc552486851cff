//! Cancellable work on PostgreSQL that sends the client nothing, such as the preparation of a statement, which may wait
//! for a lock.

use super::unfinished::Unfinished;
use crate::client::{Client, SessionError};
use crate::postgres::{Canceller, Cancelling, PgError};
use std::future::Future;
use std::pin::pin;

/// Does `work` on the connection of `canceller`. After a cancel the result is the interruption.
pub async fn cancellable<T>(
    client: &mut Client,
    canceller: Canceller,
    work: impl Future<Output = Result<T, PgError>>,
) -> Result<T, Unfinished> {
    match cancelled_with_client(client, canceller, work).await {
        (None, done) => done.map_err(Unfinished::Refused),
        (Some(attention), done) => Err(interrupted(attention, done.err())),
    }
}

/// Does `work` on the connection of `canceller`, and cancels it when the client cancels or disconnects. Returns the
/// result, and the interruption if there was one.
pub async fn cancelled_with_client<T>(
    client: &mut Client,
    canceller: Canceller,
    work: impl Future<Output = Result<T, PgError>>,
) -> (Option<Result<(), SessionError>>, Result<T, PgError>) {
    let mut work = pin!(work);
    let attention = tokio::select! {
        biased;
        done = &mut work => return (None, done),
        attention = client.attention() => attention,
    };
    let cancelling = Cancelling::of(canceller);
    let done = work.await;
    cancelling.finish().await;
    (Some(attention), done)
}

/// The interruption of a statement by the client, without effects. `error`: PostgreSQL's error.
pub fn interrupted(attention: Result<(), SessionError>, error: Option<PgError>) -> Unfinished {
    match (attention, error) {
        (Err(gone), _) => gone.into(),
        (Ok(()), Some(lost)) if lost.is_fatal() => lost.into(),
        (Ok(()), _) => Unfinished::Cancelled,
    }
}
