//! Interruptions of a statement: the client's cancel or disconnect, or the stop of the gateway.

use crate::client::{Client, SessionError};
use crate::postgres::{Notice, PgError};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a statement may still run when the gateway stops.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// Completes when the gateway stops and no longer waits.
pub type Stopping = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// Events during a statement.
pub enum Event {
    Stopping,
    Attention(Result<(), SessionError>),
}

/// Waits for an event; forever once the gateway has stopped.
pub async fn event(client: &mut Client, stopping: &mut Option<Stopping>) -> Event {
    let Some(stops) = stopping.as_mut() else {
        return std::future::pending().await;
    };
    tokio::select! {
        () = stops => {
            *stopping = None;
            Event::Stopping
        }
        attention = client.attention() => Event::Attention(attention),
    }
}

pub async fn stopped(stopping: CancellationToken) {
    stopping.cancelled().await;
    tokio::time::sleep(STOP_PATIENCE).await;
}

pub fn server_stops() -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "57P01".into(),
        message: "The server is stopping: this statement was ended.".into(),
        ..Notice::default()
    }))
}
