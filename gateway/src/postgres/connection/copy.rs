//! COPY … FROM STDIN.

use super::Connection;
use crate::postgres::error::PgError;
use crate::postgres::message::{put_message, survived, unexpected, Message};
use bytes::BytesMut;
use postgres_protocol::message::frontend;

type Result<T> = std::result::Result<T, PgError>;

impl Connection {
    /// Begins a COPY … FROM STDIN, whose data is then sent by [`Connection::put_copy_data`].
    pub async fn begin_copy(&mut self, sql: &str) -> Result<()> {
        frontend::query(sql, &mut self.output)?;
        self.flush().await?;
        let mut error = None;
        loop {
            match self.receive().await? {
                Message::CopyInResponse(_) => return Ok(()),
                Message::ErrorResponse(body) => error = Some(survived(&body)?),
                Message::ReadyForQuery(_) => return Err(error.unwrap_or_else(|| unexpected("COPY"))),
                _ => {}
            }
        }
    }

    /// Appends the data that `body` writes to the output as CopyData; nothing if it fails.
    pub fn put_copy_data<E>(
        &mut self,
        body: impl FnOnce(&mut BytesMut) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let before = self.output.len();
        let mut written = Ok(());
        put_message(&mut self.output, b'd', |out| written = body(out));
        if written.is_err() {
            self.output.truncate(before);
        }
        written
    }

    pub fn put_copy_done(&mut self) {
        frontend::copy_done(&mut self.output);
    }

    /// Appends a CopyFail, which undoes the COPY.
    pub fn put_copy_fail(&mut self, reason: &str) -> Result<()> {
        Ok(frontend::copy_fail(reason, &mut self.output)?)
    }

    /// The number of unsent bytes.
    pub fn unsent(&self) -> usize {
        self.output.len()
    }
}
