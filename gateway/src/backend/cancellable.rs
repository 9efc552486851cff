//! Work on PostgreSQL that sends the client nothing, as when a statement is prepared: it may wait for a lock, and the
//! client may cancel meanwhile.

use super::unfinished::Unfinished;
use crate::client::Client;
use crate::postgres::{Canceller, Cancelling, PgError};
use std::future::Future;
use std::pin::pin;

/// Does `work` on the connection of `canceller`. A cancel is its end, whatever has come of it.
pub async fn cancellable<T>(
    client: &mut Client,
    canceller: Canceller,
    work: impl Future<Output = Result<T, PgError>>,
) -> Result<T, Unfinished> {
    let mut work = pin!(work);
    let attention = tokio::select! {
        biased;
        done = &mut work => return done.map_err(Unfinished::Refused),
        attention = client.attention() => attention,
    };
    let cancelling = Cancelling::of(canceller);
    let done = work.await;
    cancelling.finish().await;
    match (attention, done) {
        (Err(gone), _) => Err(gone.into()),
        (Ok(()), Err(lost)) if lost.is_fatal() => {
            client.answer_attention_later();
            Err(lost.into())
        }
        (Ok(()), _) => Err(Unfinished::Cancelled),
    }
}
