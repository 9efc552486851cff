//! A running COPY, and PostgreSQL's messages to it.

use super::row::message_of;
use crate::backend::notices::Meaning;
use crate::convert::Zone;
use crate::postgres::message::{row_count, server_error, server_notice, Message, PgColumn};
use crate::postgres::{Connection, Notice, PgError};
use crate::tds::bulk::Rows;
use crate::tds::tokens::message::ServerMessage;
use std::collections::HashMap;
use std::sync::Arc;

/// The most messages of triggers kept for the client, which reads them only after it has sent its rows.
const MOST_NOTICES: usize = 1000;
/// The most bytes of these messages.
const MOST_NOTICE_BYTES: usize = 1 << 20;

/// The columns whose default applies to a NULL, each with its default as PostgreSQL expects it; None: another value for
/// each row.
pub type Defaults = HashMap<String, Option<DefaultValue>>;

/// The value of a default; None: NULL.
pub type DefaultValue = Option<Box<[u8]>>;

/// A COPY that waits for rows.
pub struct BulkCopy {
    pub(super) columns: Arc<[PgColumn]>,
    pub(super) defaults: Defaults,
    pub(super) rows: Rows,
    pub(super) zone: Zone,
    /// Rows so far.
    pub(super) count: u64,
    pub(super) notices: Vec<Notice>,
    pub(super) notice_bytes: usize,
    pub(super) left_out: usize,
    /// The error that prevents the rows from being stored.
    pub(super) failure: Option<ServerMessage>,
    /// PostgreSQL waits for rows.
    pub(super) is_copying: bool,
    /// The connection to PostgreSQL is gone.
    pub(super) is_lost: bool,
    pub(super) stored: Option<u64>,
}

impl BulkCopy {
    /// Sends the converted rows, and handles PostgreSQL's messages meanwhile.
    pub(super) async fn send(&mut self, connection: &mut Connection) {
        while self.is_copying {
            match connection.flush_or_receive().await {
                Ok(None) => return,
                Ok(Some(message)) => self.receive(Ok(message)),
                Err(error) => self.receive(Err(error)),
            }
        }
    }

    /// Undoes the COPY.
    pub(super) async fn give_up(&mut self, connection: &mut Connection) {
        if self.is_copying {
            if let Err(error) = connection.put_copy_fail("the client gave up") {
                self.lost(&error);
            }
            self.send(connection).await;
        }
        while self.is_copying {
            let message = connection.receive().await;
            self.receive(message);
        }
        self.stored = None;
    }

    pub(super) fn receive(&mut self, message: Result<Message, PgError>) {
        let received = match message {
            Ok(Message::NoticeResponse(body)) => server_notice(&body).map(|notice| {
                if matches!(Meaning::of(&notice), Meaning::Count(_)) {
                    // a notice of a trigger; T-SQL's bulk copy fires no triggers
                } else if self.notices.len() < MOST_NOTICES
                    && self.notice_bytes + notice.size() <= MOST_NOTICE_BYTES
                {
                    self.notice_bytes += notice.size();
                    self.notices.push(notice);
                } else {
                    self.left_out += 1;
                }
            }),
            Ok(Message::ErrorResponse(body)) => match server_error(&body) {
                Ok(error) if error.is_fatal() => Err(error),
                Ok(error) => {
                    // after a failure of ours PostgreSQL only reports that the COPY failed
                    self.failure.get_or_insert_with(|| message_of(&error));
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Ok(Message::CommandComplete(body)) => match body.tag() {
                Ok(tag) => {
                    self.stored = row_count(tag);
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
            Ok(Message::ReadyForQuery(_)) => {
                self.is_copying = false;
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(PgError::Unconfirmed) => {
                self.failure = Some(PgError::Unconfirmed.to_message());
                self.is_copying = false;
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = received {
            self.lost(&error);
        }
    }

    /// The connection to PostgreSQL is unusable.
    pub(super) fn lost(&mut self, error: &PgError) {
        self.failure = Some(error.to_message());
        self.is_copying = false;
        self.is_lost = true;
        self.stored = None;
    }
}
