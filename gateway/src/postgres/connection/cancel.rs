//! Cancels a running statement from another connection.

use super::Connection;
use crate::postgres::address::Host;
use crate::postgres::encryption::Encryption;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

impl Connection {
    /// A handle that cancels this connection's running statement, for use while the connection is busy.
    pub fn canceller(&self) -> Canceller {
        Canceller {
            host: self.host.clone(),
            encryption: self.encryption.clone(),
            process: self.process,
            secret: self.secret,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Canceller {
    host: Host,
    encryption: Encryption,
    process: i32,
    secret: i32,
}

impl Canceller {
    /// Asks PostgreSQL to cancel; whether the statement ended by it shows on its own connection.
    pub async fn cancel(&self) -> io::Result<()> {
        let mut stream = self.host.open(&self.encryption).await?;
        let mut request = BytesMut::new();
        frontend::cancel_request(self.process, self.secret, &mut request);
        stream.write_all(&request).await?;
        stream.flush().await?;
        // PostgreSQL closes once it has sent the signal
        let _ = stream.read_u8().await;
        Ok(())
    }
}
