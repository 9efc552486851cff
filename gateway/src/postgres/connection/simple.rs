//! The simple query protocol: the gateway's own statements, and rows of text.

use super::Connection;
use crate::postgres::error::PgError;
use crate::postgres::message::{survived, Message, TextRow};
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::frontend;
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, PgError>;

impl Connection {
    /// Runs the gateway's own statements by the simple protocol and returns the rows of text.
    pub async fn query_text(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        self.run_text(sql).await.map(|(rows, _)| rows)
    }

    /// COMMIT. False: the transaction had failed, so PostgreSQL has rolled it back instead.
    pub async fn commit(&mut self) -> Result<bool> {
        self.run_text("commit").await.map(|(_, tag)| tag == "COMMIT")
    }

    /// Subscribes this connection to notifications. Those that arrive while a statement runs are stored.
    pub async fn listen(&mut self, channel: &str) -> Result<()> {
        self.notified = Some(BTreeSet::new());
        self.query_text(&format!("listen {channel}")).await.map(drop)
    }

    /// Passes each row of the gateway's own statement to `take`. An error of `take` ends the statement.
    pub async fn each_row(
        &mut self,
        sql: &str,
        mut take: impl FnMut(&TextRow<'_>) -> Result<()>,
    ) -> Result<()> {
        frontend::query(sql, &mut self.output)?;
        self.flush().await?;
        let mut error = None;
        loop {
            match self.receive().await? {
                Message::DataRow(body) if error.is_none() => {
                    error = take(&TextRow::of(body.buffer_bytes())).err();
                }
                Message::ErrorResponse(body) => error = Some(survived(&body)?),
                Message::NotificationResponse(body) => self.keep(&body)?,
                Message::ReadyForQuery(_) => return error.map_or(Ok(()), Err),
                _ => {}
            }
        }
    }

    /// The rows, and the tag of the last command.
    async fn run_text(&mut self, sql: &str) -> Result<(Vec<Vec<Option<String>>>, String)> {
        frontend::query(sql, &mut self.output)?;
        self.flush().await?;
        let mut rows = Vec::new();
        let mut tag = String::new();
        let mut error = None;
        loop {
            match self.receive().await? {
                Message::DataRow(body) => {
                    let mut row = Vec::new();
                    let mut ranges = body.ranges();
                    while let Some(range) = ranges.next()? {
                        row.push(
                            range
                                .and_then(|range| body.buffer().get(range))
                                .map(|raw| String::from_utf8_lossy(raw).into_owned()),
                        );
                    }
                    rows.push(row);
                }
                Message::CommandComplete(body) => body.tag()?.clone_into(&mut tag),
                Message::ErrorResponse(body) => error = Some(survived(&body)?),
                Message::NotificationResponse(body) => self.keep(&body)?,
                Message::ReadyForQuery(_) => return error.map_or(Ok((rows, tag)), Err),
                _ => {}
            }
        }
    }
}
