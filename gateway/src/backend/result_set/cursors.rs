//! The result sets of a procedure: cursors, which are fetched after it has returned and before its transaction ends.

use super::columns::{formats, put_columns, SentAs};
use super::RowStream;
use crate::backend::notices::Meaning;
use crate::backend::open::declarations::{nullable, Declarations};
use crate::backend::unfinished::Unfinished;
use crate::postgres::message::{read_columns, row_values, server_error, Message};
use crate::postgres::{Notice, PgError};
use crate::program::Title;
use crate::tds::tokens::done::{Command, Scope, Status};
use std::sync::Arc;
use tsql::quoting::quoted;

impl RowStream<'_> {
    /// Sends the function's additional result sets and messages, in their order.
    pub(super) async fn send_held(&mut self) -> Result<(), Unfinished> {
        for held in std::mem::take(&mut self.held) {
            let (count, counted) = match held {
                Meaning::Message(message) => {
                    self.client.reply.message(&message);
                    continue;
                }
                Meaning::Ended { failed } => {
                    self.client.reply.ended_inside(failed);
                    continue;
                }
                Meaning::LeftRows(rows) => {
                    self.outcome.row_count = Some(rows);
                    continue;
                }
                Meaning::Count(counted) => {
                    if !counted.in_trigger {
                        self.outcome.row_count = i64::try_from(counted.rows).ok();
                    }
                    self.client.reply.counted(counted);
                    continue;
                }
                // handled on arrival
                Meaning::LeftError(_) | Meaning::Doomed | Meaning::HandedOver | Meaning::Nothing => continue,
                // the client cancelled these rows
                Meaning::ResultSet { .. } if self.end.is_some() => {
                    self.is_whole = false;
                    break;
                }
                Meaning::ResultSet { cursor, columns, counted } => {
                    (self.cursor(&cursor, columns.as_deref()).await?, counted)
                }
            };
            if self.end.is_some() {
                self.is_whole = false;
                break;
            }
            self.outcome.row_count = i64::try_from(count).ok();
            self.client.reply.command = Command::Select;
            self.client.reply.done(Scope::InProcedure, Status::empty(), counted.then_some(count));
        }
        Ok(())
    }

    /// Sends the rows of an open cursor. Returns their number.
    async fn cursor(&mut self, cursor: &str, names: Option<&[Title]>) -> Result<u64, Unfinished> {
        let fetch = format!("fetch all from {}", quoted(cursor));
        self.connection.put_parse(&fetch).await?;
        let mut sent_as: Arc<[SentAs]> = Arc::default();
        let mut count = 0;
        let mut is_gone = false;
        loop {
            match self.next_message().await? {
                Message::RowDescription(body) => {
                    let mut columns = read_columns(&body)?;
                    let missing = self.declarations.missing(&columns);
                    if !missing.is_empty() {
                        // declarations are queried in the same transaction, then the cursor is fetched again
                        self.ask_declarations(&missing).await?;
                        self.connection.put_parse(&fetch).await?;
                        continue;
                    }
                    self.declarations.apply(&mut columns);
                    nullable(&mut columns);
                    self.columns = columns.into();
                    sent_as = put_columns(&self.columns, names, &mut self.client.reply);
                    self.connection.put_execute("", &[], &[], &formats(&self.columns), 0);
                    self.connection.put_flush();
                    self.connection.flush().await?;
                }
                Message::NoData => {
                    // a rollback has closed the cursor before its rows were sent: the whole call fails
                    is_gone = true;
                    self.connection.put_execute("", &[], &[], &[], 0);
                    self.connection.put_flush();
                    self.connection.flush().await?;
                }
                Message::DataRow(body) if self.end.is_none() => {
                    count += 1;
                    self.sent_as = Some(sent_as);
                    self.row(body.buffer_bytes());
                    drop(body);
                    sent_as = self.sent_as.take().unwrap_or_default();
                    self.flush_gathered().await?;
                }
                Message::CommandComplete(_) => {
                    self.report_wait();
                    // otherwise it would stay open until the end of the client's transaction
                    self.connection.put_close_cursor(cursor)?;
                    return Ok(count);
                }
                Message::ErrorResponse(body) => {
                    let error = server_error(&body)?;
                    return Err(Unfinished::Failed(if is_gone { rows_are_lost() } else { error }));
                }
                _ => {}
            }
        }
    }

    /// Reads the T-SQL declarations of the columns of `tables` during the statement.
    async fn ask_declarations(&mut self, tables: &[u32]) -> Result<(), PgError> {
        self.connection.put_parse(&Declarations::question(tables)).await?;
        let mut rows = Vec::new();
        loop {
            match self.connection.receive().await? {
                Message::RowDescription(_) => {
                    self.connection.put_execute("", &[], &[], &[], 0);
                    self.connection.put_flush();
                    self.connection.flush().await?;
                }
                Message::DataRow(body) => {
                    let text = |raw: Option<&[u8]>| raw.map(|raw| String::from_utf8_lossy(raw).into_owned());
                    rows.push(row_values(body.buffer_bytes()).map(text).collect());
                }
                Message::CommandComplete(_) => break,
                Message::ErrorResponse(body) => return Err(server_error(&body)?),
                _ => {}
            }
        }
        self.declarations.read(tables, rows);
        Ok(())
    }
}

/// The error for rows of a procedure, or of a transaction in it, that is rolled back before they are sent.
pub fn rows_are_lost() -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: "0A000".into(),
        message: "A procedure called inside TRY has selected rows, and a rollback has taken them: select outside of \
                  transactions that procedures begin, and alter procedures made by an earlier version of ringlog. \
                  The whole call was undone."
            .into(),
        lost_rows: true,
        ..Notice::default()
    }))
}
