//! Cancels a running statement from another connection.

use super::Connection;
use crate::postgres::address::Host;
use crate::postgres::encryption::Encryption;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The timeout of the connection; no cancel request has been sent before.
const CONNECTING: Duration = Duration::from_secs(10);
/// The pause before the next cancel request, which doubles each time, and the longest one.
const AGAIN: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Cancels the running statement of a connection, also while the connection is busy.
#[derive(Clone, Debug)]
pub struct Canceller {
    host: Host,
    encryption: Encryption,
    process: i32,
    secret: i32,
}

impl Canceller {
    pub fn of(connection: &Connection) -> Canceller {
        Canceller {
            host: connection.host.clone(),
            encryption: connection.encryption.clone(),
            process: connection.process,
            secret: connection.secret,
        }
    }

    /// Sends one cancel request; whether the statement ended by it shows on its own connection. After the return no
    /// request is under way that could hit the next statement.
    pub async fn cancel(&self) -> io::Result<()> {
        let opening = timeout(CONNECTING, self.host.open(&self.encryption));
        let mut stream = opening.await.map_err(io::Error::from)??;
        let mut request = BytesMut::new();
        frontend::cancel_request(self.process, self.secret, &mut request);
        stream.write_all(&request).await?;
        stream.flush().await?;
        // PostgreSQL closes once it has sent the signal
        let _ = stream.read_u8().await;
        Ok(())
    }
}

/// Sends cancel requests until the statement has ended: PostgreSQL ignores a request that arrives before it has begun
/// with the statement (PostgreSQL, src/backend/tcop/postgres.c: ProcessInterrupts).
pub struct Cancelling {
    /// Dropped: the statement has ended.
    statement: oneshot::Sender<()>,
    asking: JoinHandle<()>,
}

impl Cancelling {
    pub fn of(canceller: Canceller) -> Cancelling {
        let (statement, mut ended) = oneshot::channel::<()>();
        let asking = tokio::spawn(async move {
            let mut pause = AGAIN;
            loop {
                let _ = canceller.cancel().await;
                if timeout(pause, &mut ended).await.is_ok() {
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
        Cancelling { statement, asking }
    }

    /// Called when the statement has ended. Waits until no request is under way.
    pub async fn finish(self) {
        drop(self.statement);
        let _ = self.asking.await;
    }
}
