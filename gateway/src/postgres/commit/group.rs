//! A group of calls on its connection: one transaction, sent as a pipeline under one Sync, in which each call acts as
//! its caller's role.

use super::call::{Outcome, QueuedCall};
use crate::postgres::error::{Notice, PgError};
use crate::postgres::message::{put_value, row_count, server_error, server_notice, unexpected, Message};
use crate::postgres::{Canceller, Connection};
use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use postgres_protocol::IsNull;
use std::collections::HashMap;
use std::time::Duration;

/// A connection with its prepared statements and its current role.
pub struct Open {
    pub connection: Connection,
    prepared: HashMap<u64, String>,
    role: Option<u32>,
}

/// The reason why a group was rolled back.
pub struct Failure {
    pub error: PgError,
    /// The index of the failed call. None: the commit failed.
    pub call: Option<usize>,
}

impl From<PgError> for Failure {
    fn from(error: PgError) -> Failure {
        Failure { error, call: None }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        PgError::from(error).into()
    }
}

/// The steps of a group, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Sets a role, or confirms it.
    Role,
    Call,
}

const SET_ROLE: &str = "ringlog_set_role";
/// The last statement of a transaction: it makes the commit wait for the disk, whatever roles have set, and checks that
/// the gateway may still act for the role, which may have been locked since the connection took it.
const CONFIRM: &str = "ringlog_confirm";
/// SQLSTATEs invalid_parameter_value and insufficient_privilege: the errors of SET_ROLE for a dropped role, or for one
/// for which the gateway may no longer act.
const NO_ROLE: [&str; 2] = ["22023", "42501"];
/// The most bytes of the messages of one call, which are sent to its client after the commit. A call with more is
/// cancelled.
const MOST_MESSAGE_BYTES: usize = 1 << 20;
/// A call may catch the cancel: after this many, MOST_MESSAGE_BYTES bytes after each other, its connection is closed.
const MOST_CANCELS: usize = 16;
/// PostgreSQL's oid of the type oid.
const OID: u32 = 26;

impl Open {
    /// Prepares the statements for groups on a new connection. `patience`: how long calls may wait for a lock.
    pub async fn new(mut connection: Connection, patience: Option<Duration>) -> Result<Open, PgError> {
        // as a parameter, so that no role's name is inserted into SQL
        let sql = "select pg_catalog.set_config('role', pg_catalog.pg_get_userbyid($1), false)";
        connection.prepare(SET_ROLE, sql, &[OID]).await?;
        let rows = connection.query_text("show synchronous_commit").await?;
        let found = rows.into_iter().flatten().next().flatten();
        // the values with which a commit waits for its own disk, and for a standby if there is one
        let durable = found.filter(|found| matches!(found.as_str(), "remote_apply" | "remote_write"));
        let durable = durable.unwrap_or_else(|| "on".to_owned());
        let confirm = format!(
            "select pg_catalog.set_config('synchronous_commit', '{durable}', false), \
                    pg_catalog.set_config('role', pg_catalog.pg_get_userbyid($1), false)"
        );
        connection.prepare(CONFIRM, &confirm, &[OID]).await?;
        if let Some(patience) = patience {
            connection.query_text(&format!("set lock_timeout = {}", patience.as_millis())).await?;
        }
        Ok(Open { connection, prepared: HashMap::new(), role: None })
    }

    /// Runs all calls in one transaction. Ok only after PostgreSQL has reported it committed.
    pub async fn run(&mut self, group: &[QueuedCall]) -> Result<Vec<Outcome>, Failure> {
        let before = self.role;
        if group.iter().any(|call| before != Some(call.role)) {
            self.role = None; // the end confirms one role only: this transaction takes each of its own
        }
        let mut fresh = Vec::new();
        let mut steps = Vec::with_capacity(group.len() + 2);
        for call in group {
            if self.role != Some(call.role) {
                self.put_role(SET_ROLE, call.role)?;
                steps.push(Step::Role);
            }
            self.put_call(call, &mut fresh).await?;
            steps.push(Step::Call);
        }
        if let Some(role) = self.role {
            self.put_role(CONFIRM, role)?;
            steps.push(Step::Role);
        }
        self.connection.put_sync();
        self.connection.flush().await?;
        let outcome = self.read(&steps, group.len()).await;
        if outcome.is_err() {
            // the rollback resets the role; a prepared statement remains only if its Parse succeeded
            self.role = before;
            for id in fresh {
                if let Some(name) = self.prepared.remove(&id) {
                    frontend::close(b'S', &name, self.connection.output())?;
                }
            }
        }
        outcome
    }

    fn put_role(&mut self, statement: &str, role: u32) -> Result<(), PgError> {
        let mut value = BytesMut::with_capacity(8);
        put_value::<PgError>(&mut value, |out| {
            out.put_u32(role);
            Ok(IsNull::No)
        })?;
        self.connection.put_execute(statement, &[1], &value, &[], 0);
        self.role = Some(role);
        Ok(())
    }

    async fn put_call(&mut self, call: &QueuedCall, fresh: &mut Vec<u64>) -> Result<(), PgError> {
        let statement = &call.statement;
        if !self.prepared.contains_key(&statement.id) {
            let name = self.connection.statement_name();
            let types = statement.parameter_types.iter().copied();
            frontend::parse(&name, &statement.sql, types, self.connection.output())?;
            self.prepared.insert(statement.id, name);
            fresh.push(statement.id);
        }
        if let Some(name) = self.prepared.get(&statement.id) {
            let formats = &statement.parameter_formats;
            self.connection.send_execute(name, formats, &call.values, &[1]).await?;
        }
        Ok(())
    }

    async fn read(&mut self, steps: &[Step], calls: usize) -> Result<Vec<Outcome>, Failure> {
        let mut outcomes = Vec::with_capacity(calls);
        let mut steps = steps.iter();
        let mut current = Outcome::default();
        let mut failure: Option<Failure> = None;
        // bytes of the running call's messages, and the call that has sent too many
        let mut message_bytes = 0;
        let mut talks = None;
        let mut cancels = 0;
        loop {
            match self.connection.receive().await? {
                Message::DataRow(body) => current.row = Some(body.buffer_bytes().clone()),
                Message::CommandComplete(body) => {
                    let mut done = std::mem::take(&mut current);
                    message_bytes = 0;
                    if steps.next() == Some(&Step::Call) {
                        done.count = row_count(body.tag()?);
                        outcomes.push(done);
                    }
                }
                Message::NoticeResponse(body) => {
                    let notice = server_notice(&body)?;
                    message_bytes += notice.size();
                    current.notices.push(notice);
                    if message_bytes > MOST_MESSAGE_BYTES * (cancels + 1) {
                        if cancels == MOST_CANCELS {
                            return Err(PgError::Protocol("messages without an end".into()).into());
                        }
                        talks = Some(outcomes.len());
                        cancels += 1;
                        // nothing is read meanwhile, so PostgreSQL blocks at its next messages
                        let _ = Canceller::of(&self.connection).cancel().await;
                    }
                }
                Message::ErrorResponse(body) => {
                    let mut error = server_error(&body)?;
                    if error.is_fatal() {
                        return Err(error.into());
                    }
                    let step = steps.next();
                    if let Some(call) = talks {
                        // its messages are not sent: it may run once more
                        failure = Some(Failure { error: talks_too_much(), call: Some(call) });
                        continue;
                    }
                    if let PgError::Server(notice) = &mut error {
                        if step == Some(&Step::Role) && NO_ROLE.contains(&notice.sqlstate.as_str()) {
                            **notice = role_is_gone();
                        }
                        notice.before = std::mem::take(&mut current.notices);
                    }
                    failure = Some(Failure { error, call: step.map(|_| outcomes.len()) });
                }
                Message::ReadyForQuery(_) => return failure.map_or(Ok(outcomes), Err),
                Message::ParseComplete
                | Message::BindComplete
                | Message::CloseComplete
                | Message::NotificationResponse(_) => {}
                _ => return Err(unexpected("group commit").into()),
            }
        }
    }
}

/// The gateway's SQLSTATE for a call that sends more than MOST_MESSAGE_BYTES, in PostgreSQL's class for limits.
pub const TALKS_TOO_MUCH: &str = "54R01";

fn talks_too_much() -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: TALKS_TOO_MUCH.into(),
        message: format!(
            "A call that shares a transaction may send {} KiB of messages, nothing was written.",
            MOST_MESSAGE_BYTES >> 10
        ),
        ..Notice::default()
    }))
}

/// The role of a session's login cannot be set: it was dropped, or the gateway may no longer act for it.
fn role_is_gone() -> Notice {
    Notice {
        severity: "ERROR".into(),
        sqlstate: "28000".into(),
        message: "The login of this session is no longer there: connect again.".into(),
        ..Notice::default()
    }
}
