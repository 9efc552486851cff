//! A group of calls on its connection: a transaction as a pipeline under one Sync, with the statements around each
//! call that keep it from changing the connection for the others.

use super::call::{is_too_late, Outcome, QueuedCall};
use crate::postgres::error::{Notice, PgError};
use crate::postgres::message::{
    put_value, row_count, row_values, server_error, server_notice, unexpected, Message,
};
use crate::postgres::Connection;
use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use postgres_protocol::IsNull;
use std::collections::HashMap;

/// A connection with what is prepared on it and the role it acts as.
pub struct Open {
    pub connection: Connection,
    prepared: HashMap<u64, String>,
    role: Option<u32>,
    /// It runs procedures that may leave something behind.
    cleans: bool,
    durable: String,
    /// The answer to CLEAN is still to be read.
    cleaning: bool,
}

/// Why a group was rolled back.
pub struct Failure {
    pub error: PgError,
    /// The index of the call that failed. None: one of our own statements, or the commit.
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
    /// Takes a role, or confirms it.
    Role,
    Call,
    /// Another of our own statements.
    Own,
}

const SET_ROLE: &str = "ringlog_set_role";
/// The last statement of a transaction of ringlog's own procedures: commits wait for the disk, whatever roles have set,
/// and the gateway may act for the role still, which may have been locked since the connection took it.
const CONFIRM: &str = "ringlog_confirm";
/// A time limit that a procedure has left behind ends no statement of ours.
const UNLIMITED: &str = "reset statement_timeout";
/// On a new connection, which may take long on a busy machine: the limits are for calls.
const LIFT_LIMITS: &str = "set statement_timeout = 0; set lock_timeout = 0";
const SET_LIMITS: &str = "reset statement_timeout; reset lock_timeout";
/// Deferred triggers run before it then.
const CONSTRAINTS: &str = "set constraints all immediate";
/// A commit that does not wait for its standby says so by a warning.
const WARNED: &str = "set client_min_messages to notice";
/// Between the calls of a group. Statements prepared by SQL stay to its end.
const BETWEEN: [&str; 4] =
    ["reset all", "close all", "select pg_catalog.pg_advisory_unlock_all()", "discard temp"];
/// After a group. What it returns last is not 0 where prepared statements have come or gone, which cannot be undone.
const CLEAN: &str =
    "reset session authorization; reset role; reset all; unlisten *; close all; discard temp; \
                     discard sequences; select pg_catalog.pg_advisory_unlock_all(); \
                     select count(*) filter (where from_sql) \
                            + (count(*) filter (where name = 'ringlog_set_role') = 0)::integer \
                       from pg_catalog.pg_prepared_statements";
/// SQLSTATEs invalid_parameter_value and insufficient_privilege: what SET_ROLE answers for a role that is gone, or for
/// which the gateway may act no more.
const NO_ROLE: [&str; 2] = ["22023", "42501"];
/// Bytes of the messages of one call, which its client gets after the commit. A call with more is cancelled.
const MOST_SAID: usize = 1 << 20;
/// It may catch the cancel: after so many, each MOST_SAID later, its connection is given up.
const MOST_CANCELS: usize = 16;
/// PostgreSQL's own number of the type oid.
const OID: u32 = 26;

impl Open {
    /// Prepares what groups need on a new connection. `cleans`: it runs procedures that may leave something behind.
    pub async fn new(mut connection: Connection, cleans: bool) -> Result<Open, PgError> {
        while let Err(error) = connection.query_text(LIFT_LIMITS).await {
            if !is_too_late(&error) {
                return Err(error);
            }
        }
        // as a parameter, so that no name of a role is ever pasted into SQL
        let sql = "select set_config('role', pg_get_userbyid($1), false)";
        connection.prepare(SET_ROLE, sql, &[OID]).await?;
        let rows = connection.query_text("show synchronous_commit").await?;
        let found = rows.into_iter().flatten().next().flatten();
        // those with which a commit waits for the own disk and for a standby where there is one
        let durable = found.filter(|found| matches!(found.as_str(), "remote_apply" | "remote_write"));
        let durable = durable.unwrap_or_else(|| "on".to_owned());
        let confirm = format!(
            "select set_config('synchronous_commit', '{durable}', false), \
                    set_config('role', pg_get_userbyid($1), false)"
        );
        connection.prepare(CONFIRM, &confirm, &[OID]).await?;
        connection.query_text(SET_LIMITS).await?;
        let durable = format!("set synchronous_commit to {durable}");
        Ok(Open { connection, prepared: HashMap::new(), role: None, cleans, durable, cleaning: false })
    }

    /// Runs all calls in one transaction. Ok only after PostgreSQL has reported it committed. `settle` is to follow.
    pub async fn run(&mut self, group: &[QueuedCall]) -> Result<Vec<Outcome>, Failure> {
        let before = self.role;
        if group.iter().any(|call| before != Some(call.role)) {
            self.role = None; // the end confirms one role only: this transaction takes each of its own
        }
        let mut fresh = Vec::new();
        let mut steps = Vec::with_capacity(group.len() + 2);
        for (place, call) in group.iter().enumerate() {
            if self.cleans && place > 0 {
                for sql in BETWEEN {
                    self.put_parsed(sql)?;
                    steps.push(Step::Own);
                }
                self.role = None;
            }
            if self.role != Some(call.role) {
                self.put_role(SET_ROLE, call.role)?;
                steps.push(Step::Role);
            }
            self.put_call(call, &mut fresh).await?;
            steps.push(Step::Call);
        }
        if self.cleans {
            // earlier prepared statements may be gone
            let durable = self.durable.clone();
            for sql in [UNLIMITED, CONSTRAINTS, WARNED, &durable] {
                self.put_parsed(sql)?;
                steps.push(Step::Own);
            }
        } else if let Some(role) = self.role {
            self.put_role(CONFIRM, role)?;
            steps.push(Step::Role);
        }
        self.connection.put_sync();
        if self.cleans {
            frontend::query(CLEAN, self.connection.output())?;
            self.cleaning = true;
        }
        self.connection.flush().await?;
        let outcome = self.read(&steps, group.len()).await;
        if outcome.is_err() {
            // the role went back with the transaction; a Parse stays only where it succeeded
            self.role = before;
            for id in fresh {
                if let Some(name) = self.prepared.remove(&id) {
                    frontend::close(b'S', &name, self.connection.output())?;
                }
            }
        }
        if self.cleans {
            self.role = None;
        }
        outcome
    }

    /// Reads what comes after a group. An error: the connection is not as it was.
    pub async fn settle(&mut self) -> Result<(), PgError> {
        let mut left = None;
        while self.cleaning {
            match self.connection.receive().await? {
                Message::DataRow(body) => {
                    left = row_values(body.buffer_bytes()).next().flatten().map(|value| value != b"0");
                }
                Message::ErrorResponse(body) => return Err(server_error(&body)?),
                Message::ReadyForQuery(_) => self.cleaning = false,
                _ => {}
            }
        }
        match left {
            Some(true) => Err(PgError::Protocol("statements that a procedure has prepared".into())),
            _ => Ok(()),
        }
    }

    /// Whether calls were prepared on it that may be there no more.
    pub fn has_prepared(&self) -> bool {
        !self.prepared.is_empty()
    }

    fn put_parsed(&mut self, sql: &str) -> Result<(), PgError> {
        frontend::parse("", sql, [], self.connection.output())?;
        self.connection.put_execute("", &[], &[], &[], 0);
        Ok(())
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
        // bytes of the messages of the call that runs, and which call has sent too many
        let mut said = 0;
        let mut talks = None;
        let mut cancels = 0;
        loop {
            match self.connection.receive().await? {
                Message::DataRow(body) => current.row = Some(body.buffer_bytes().clone()),
                Message::CommandComplete(body) => {
                    let mut done = std::mem::take(&mut current);
                    said = 0;
                    if steps.next() == Some(&Step::Call) {
                        done.count = row_count(body.tag()?);
                        outcomes.push(done);
                    }
                }
                Message::NoticeResponse(body) => {
                    let notice = server_notice(&body)?;
                    said += notice.size();
                    current.notices.push(notice);
                    if said > MOST_SAID * (cancels + 1) {
                        if cancels == MOST_CANCELS {
                            return Err(PgError::Protocol("messages without an end".into()).into());
                        }
                        talks = Some(outcomes.len());
                        cancels += 1;
                        // nothing is read meanwhile, so PostgreSQL waits with the next messages
                        let _ = self.connection.canceller().cancel().await;
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
                    let call = (step != Some(&Step::Own)).then_some(outcomes.len());
                    failure = Some(Failure { error, call });
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

/// A SQLSTATE of our own for a call that sends more than MOST_SAID, of PostgreSQL's class for limits.
pub const TALKS_TOO_MUCH: &str = "54R01";

fn talks_too_much() -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "ERROR".into(),
        sqlstate: TALKS_TOO_MUCH.into(),
        message: format!(
            "A call that shares a transaction may send {} KiB of messages, nothing was written.",
            MOST_SAID >> 10
        ),
        ..Notice::default()
    }))
}

/// The role that a session logged in as cannot be set: it was dropped, or the gateway may act for it no more.
fn role_is_gone() -> Notice {
    Notice {
        severity: "ERROR".into(),
        sqlstate: "28000".into(),
        message: "The login of this session is no longer there: connect again.".into(),
        ..Notice::default()
    }
}
