//! A procedure call, in whichever form it came.

use super::failure::{Ends, Failure, Stop};
use super::results::{left_error_told, row_count_told, untellable, Ran, Rows, Source};
use super::statements::Flow;
use super::system::System;
use super::variables::Variables;
use super::{Ended, Form, Session, SessionError};
use crate::catalogue::{self, bind, BindError, Function, Plan, Returns, Unresolved};
use crate::convert::{cast, from_pg, longer_type, output_type, ErrorKind, PgType, SqlType, Zone};
use crate::gateway::Because;
use crate::postgres::commit::{Claim, Outcome, Statement};
use crate::postgres::connection::row_values;
use crate::postgres::{Notice, PgError};
use crate::program::{Execute, Expression};
use crate::tds::call::{Param, Procedure};
use crate::tds::dialect::Dialect;
use crate::tds::layout::Layout;
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::tokens::returns::{self, Output};
use crate::tds::types::{encode_value, TypeToken, Value};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};

/// Plans one session keeps: a client that calls more procedures than this gains little by them.
const MOST_PLANS: usize = 4;

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs a call that is a request of its own and writes its whole reply.
    pub(super) async fn run_call(
        &mut self,
        procedure: &Procedure,
        params: &[Param<'_>],
    ) -> Result<Ended, SessionError> {
        let end = match procedure {
            Procedure::Named(name) => self.call(name, params).await?,
            Procedure::Numbered(number) => match System::numbered(*number) {
                Some(system) => self.run_system(system, params).await?,
                None => CallEnd::Failed(ServerMessage::error(
                    2812,
                    16,
                    format!("System procedure number {number} is not served."),
                )),
            },
        };
        self.undo(self.ends(&end)).await;
        Ok(self.end_call(end, params, Form::Rpc))
    }

    /// What the failure of a call ends.
    fn ends(&self, end: &CallEnd) -> Ends {
        match end.failure() {
            Some(_) if self.settings.abort_on_error => Ends::Transaction,
            Some(failure) => failure.ends,
            None => Ends::Statement,
        }
    }

    /// Runs a call written as text; its status and outputs go to variables.
    pub(super) async fn run_execute(
        &mut self,
        execute: &Execute,
        variables: &mut Variables<'_>,
    ) -> Result<Flow, Stop> {
        if self.settings.only_formats {
            let text =
                "'exec' is not understood under SET FMTONLY ON: a procedure tells its columns by rows.";
            return Err(ServerMessage::error(102, 15, text).into());
        }
        let params = self.params(&execute.arguments, variables).await?;
        let mut end = self.call(&execute.procedure, &params).await?;
        if let CallEnd::Returned { status, outputs, .. } = &end {
            if let Err(message) = assign(execute, variables, *status, outputs, &self.gateway.zone()) {
                end = CallEnd::Failed(message);
            }
        }
        if let Some(failure) = end.failure().filter(|_| self.tries.are_open()) {
            return Err(failure.into());
        }
        let ends = self.ends(&end);
        self.undo(ends).await;
        Ok(match self.end_call(end, &params, Form::Text) {
            Ended::Failed => ends.flow(),
            ended => Flow::after(ended),
        })
    }

    async fn call(&mut self, name: &str, params: &[Param<'_>]) -> Result<CallEnd, SessionError> {
        let start = Instant::now();
        let (schema, bare) = split_name(name);
        if let Some(system) = System::named(bare) {
            return self.run_system(system, params).await;
        }
        let function = match self.resolve(schema, bare, params).await {
            Ok(function) => function,
            Err(message) => return Ok(CallEnd::Failed(message)),
        };
        let end = if function.is_system() {
            self.call_system(schema, &function, params).await?
        } else {
            self.call_function(function.clone(), params).await?
        };
        if let CallEnd::Outdated(error) = &end {
            self.put_notices(error.before(), &function);
        }
        count(&function, start, &end);
        Ok(end)
    }

    /// The function that a name with its qualifiers means.
    pub(super) async fn resolve_name(
        &self,
        name: &str,
        params: &[Param<'_>],
    ) -> Result<Arc<Function>, ServerMessage> {
        let (schema, bare) = split_name(name);
        self.resolve(schema, bare, params).await
    }

    /// The function a name means. A name that is not there may be new: the catalogue is read again.
    async fn resolve(
        &self,
        schema: Option<&str>,
        name: &str,
        params: &[Param<'_>],
    ) -> Result<Arc<Function>, ServerMessage> {
        let fits = |function: &Function| catalogue::fits(function, params, &self.client.dialect);
        let find = || self.catalogue().find(schema, name, &self.database, &self.client.dialect, fits);
        let mut found = find();
        if matches!(found, Err(Unresolved::Missing)) && self.gateway.reload_catalogue(Because::Unknown).await
        {
            found = find();
        }
        found.map_err(|unresolved| match unresolved {
            Unresolved::Missing => {
                ServerMessage::error(2812, 16, format!("Could not find stored procedure '{name}'."))
            }
            Unresolved::Ambiguous(names) => ServerMessage::error(
                2812,
                16,
                format!("'{name}' is not one procedure but several: {}.", names.join(", ")),
            ),
        })
    }

    pub(super) async fn call_function(
        &mut self,
        function: Arc<Function>,
        params: &[Param<'_>],
    ) -> Result<CallEnd, SessionError> {
        let end = self.call_once(&function, params).await?;
        let because = match &end {
            CallEnd::Unfit(_) => Because::Unknown,
            CallEnd::Outdated(_) => Because::Outdated,
            _ => return Ok(end),
        };
        if !self.gateway.reload_catalogue(because).await {
            return Ok(end);
        }
        if because == Because::Outdated {
            if let Err(error) = self.backend.forget_plans(self.transaction.is_open()).await {
                return Ok(CallEnd::Postgres(error));
            }
        }
        match self.resolve(Some(&function.schema), &function.name, params).await {
            Ok(again) if !Arc::ptr_eq(&again, &function) => self.call_once(&again, params).await,
            _ => Ok(end),
        }
    }

    async fn call_once(
        &mut self,
        function: &Function,
        params: &[Param<'_>],
    ) -> Result<CallEnd, SessionError> {
        let shares = self.shares(function);
        let zone = if shares {
            self.gateway.zone()
        } else {
            match self.backend.open(&self.database).await.and_then(super::backend::Open::zone) {
                Ok(zone) => zone,
                Err(error) => return Ok(CallEnd::Postgres(error)),
            }
        };
        let bound = match bind(function, params, &self.client.dialect, &zone) {
            Ok(bound) => bound,
            Err(error @ (BindError::TooMany | BindError::NotAParameter(_))) => {
                return Ok(CallEnd::Unfit(error.to_message(function)))
            }
            Err(error) => return Ok(CallEnd::Failed(error.to_message(function))),
        };
        let statement = function.statement(&bound.given);
        if shares {
            return Ok(match self.call_shared(function, statement, bound.values).await {
                Ok(Some(outcome)) => self.completed(function, &bound.outputs, outcome, &zone),
                Ok(None) => CallEnd::Cancelled,
                // the group was rolled back
                Err(error) if may_be_outdated(&error) => CallEnd::Outdated(error),
                Err(error) => CallEnd::Postgres(error),
            });
        }
        if !function.only_reads {
            if self.settings.row_limit > 0 {
                let text = "Under SET ROWCOUNT only procedures that read can be called.";
                return Ok(CallEnd::Failed(ServerMessage::error(195, 15, text)));
            }
            self.backend.pin();
        }
        let source =
            Source::Call { statement: &statement, values: &bound.values, only_reads: function.only_reads };
        let rows = if function.returns == Returns::Rows { Rows::ToClient(None) } else { Rows::Kept };
        let reply_so_far = self.client.reply.len();
        Ok(match self.run(source, rows).await? {
            Ran::Completed(outcome, _) => self.completed(function, &bound.outputs, outcome, &zone),
            Ran::Refused(error) if may_be_outdated(&error) => {
                self.client.reply.truncate(reply_so_far);
                CallEnd::Outdated(error)
            }
            Ran::Refused(error) | Ran::Failed(error) => CallEnd::Postgres(error),
            Ran::Untellable(message) => CallEnd::Failed(message.in_procedure(&function.name)),
            Ran::Cancelled => CallEnd::Cancelled,
        })
    }

    /// Whether a call of `function` may share a transaction with those of other clients.
    fn shares(&self, function: &Function) -> bool {
        function.joins_group
            && self.backend.may_share
            // a connection of its own can be told that errors are for a CATCH
            && !self.tries.are_open()
            && !self.transaction.is_open()
            && !self.settings.implicit_transactions
    }

    /// Runs a call by group commit and passes its messages on. None: the client has cancelled it before it was
    /// sent; once it was, its result stands.
    async fn call_shared(
        &mut self,
        function: &Function,
        statement: Arc<Statement>,
        values: Bytes,
    ) -> Result<Option<Outcome>, PgError> {
        self.claim.renew();
        let commit = self.gateway.commit();
        let call = commit.call(statement, self.role.clone(), values, self.claim.clone());
        tokio::pin!(call);
        let answer = tokio::select! {
            biased;
            answer = &mut call => answer,
            attention = self.client.attention() => {
                if attention.is_ok() && self.claim.withdraw() {
                    self.claim = Claim::default();
                    return Ok(None);
                }
                if attention.is_ok() {
                    self.client.answer_attention_later();
                }
                // who has gone has sent a whole call all the same
                call.await
            }
        };
        match &answer {
            Ok(outcome) => self.put_notices(&outcome.notices, function),
            // what may be tried again is told when it is not
            Err(error) if may_be_outdated(error) => {}
            Err(error) => self.put_notices(error.before(), function),
        }
        answer.map(Some)
    }

    fn put_notices(&mut self, notices: &[Notice], function: &Function) {
        for notice in notices {
            if let Some(count) = row_count_told(notice) {
                let count = Some(count).filter(|_| !self.settings.no_count);
                self.client.done(Done::InProcedure, self.done_status(done::MORE), count);
                continue;
            }
            if left_error_told(notice).is_some() {
                continue;
            }
            self.client.message(&notice.to_message().in_procedure(&function.name));
        }
    }

    /// Answers `body` (a request without its headers) by a plan made from an earlier call like it.
    /// False: there is none, or it needs the long way.
    pub(super) async fn run_planned(&mut self, body: &[u8]) -> Result<bool, SessionError> {
        if self.plans.is_empty() {
            return Ok(false);
        }
        let start = Instant::now();
        let catalogue = self.catalogue();
        self.plans.retain(|plan| plan.is_of(&catalogue));
        let zone = self.gateway.zone();
        let dialect = self.client.dialect;
        let mut found = None;
        for plan in self.plans.iter().filter(|plan| self.shares(&plan.function)) {
            if let Some(values) = plan.bind(body, &dialect, &zone) {
                found = Some((plan.function.clone(), plan.statement.clone(), values));
                break;
            }
        }
        let Some((function, statement, values)) = found else { return Ok(false) };
        let end = match values {
            Err(error) => CallEnd::Failed(error.to_message(&function)),
            Ok(values) => match self.call_shared(&function, statement, values).await {
                Ok(Some(outcome)) => self.completed(&function, &[], outcome, &zone),
                Ok(None) => CallEnd::Cancelled,
                Err(error) if may_be_outdated(&error) => return Ok(false),
                Err(error) => CallEnd::Postgres(error),
            },
        };
        count(&function, start, &end);
        self.end_call(end, &[], Form::Rpc);
        Ok(true)
    }

    /// Makes a plan of a call that has just succeeded, for those to come.
    pub(super) fn learn(&mut self, body: &[u8], name: &str, params: &[Param<'_>]) {
        if self.plans.len() >= MOST_PLANS {
            return;
        }
        let dialect = self.client.dialect;
        let catalogue = self.catalogue();
        let (schema, bare) = split_name(name);
        let Ok(function) = catalogue.find(schema, bare, &self.database, &dialect, |function| {
            catalogue::fits(function, params, &dialect)
        }) else {
            return;
        };
        if !self.shares(&function) {
            return;
        }
        if let Ok(Some(layout)) = Layout::of(body, &dialect) {
            self.plans.extend(Plan::make(&catalogue, &function, params, layout, &dialect));
        }
    }

    fn completed(
        &mut self,
        function: &Function,
        asked: &[(usize, usize)],
        outcome: Outcome,
        zone: &Zone,
    ) -> CallEnd {
        self.left_error = outcome.notices.iter().rev().find_map(left_error_told).unwrap_or(0);
        match function.returns {
            Returns::Rows => CallEnd::Returned { status: 0, outputs: Vec::new(), rows: outcome.count },
            Returns::Nothing => CallEnd::returned(0),
            Returns::Status => CallEnd::returned(status(&outcome, 0)),
            Returns::Outputs => match returned(function, asked, &outcome, zone) {
                Ok(outputs) => {
                    let status = function.status_column.map_or(0, |column| status(&outcome, column));
                    CallEnd::Returned { status, outputs, rows: None }
                }
                Err(message) => CallEnd::Failed(message.in_procedure(&function.name)),
            },
        }
    }

    /// The tokens that end a call.
    fn end_call(&mut self, end: CallEnd, params: &[Param<'_>], form: Form) -> Ended {
        let dialect = self.client.dialect;
        match end {
            CallEnd::Returned { status, outputs, rows } => {
                // TDS 5.0 tells the outputs of a call in a text too
                let told = form == Form::Rpc || (!dialect.is_tds7() && self.nesting == 0);
                let encoded = if told {
                    encoded(&outputs, params, &dialect, &self.gateway.zone())
                } else {
                    Ok(Vec::new())
                };
                let encoded = match encoded {
                    Ok(encoded) => encoded,
                    Err(message) => return self.end_failed(&message, form),
                };
                self.error = std::mem::take(&mut self.left_error);
                self.row_count = rows.and_then(|rows| i64::try_from(rows).ok()).unwrap_or(0);
                if rows.is_some() {
                    let rows = rows.filter(|_| !self.settings.no_count);
                    self.client.done(Done::InProcedure, self.done_status(done::MORE), rows);
                }
                self.put_returned(status, &encoded, form);
                self.end_procedure(0, form);
                Ended::Well
            }
            CallEnd::FailedInside { outputs, aborted } => {
                let encoded = encoded(&outputs, params, &dialect, &self.gateway.zone()).unwrap_or_default();
                self.put_returned(self.error, &encoded, form);
                self.end_procedure(done::ERROR, form);
                if aborted {
                    Ended::Aborted
                } else {
                    Ended::Failed
                }
            }
            CallEnd::Failed(message) | CallEnd::Unfit(message) => self.end_failed(&message, form),
            CallEnd::Outdated(error) | CallEnd::Postgres(error) => self.end_failed(&error.to_message(), form),
            CallEnd::Cancelled => {
                self.client.acknowledge_cancel();
                Ended::Cancelled
            }
            CallEnd::CancelledInside => Ended::Cancelled,
            CallEnd::Thrown => Ended::Thrown,
        }
    }

    /// Status and outputs; those of a call inside a procedure stay inside.
    fn put_returned(&mut self, status: i32, outputs: &[Output], form: Form) {
        if form == Form::Rpc || self.nesting == 0 {
            let dialect = self.client.dialect;
            returns::put_status(&mut self.client.reply, status, &dialect);
            returns::put_outputs(&mut self.client.reply, outputs, &dialect);
        }
    }

    fn end_failed(&mut self, message: &ServerMessage, form: Form) -> Ended {
        self.error = message.number;
        self.row_count = 0;
        self.tell(message);
        self.end_procedure(done::ERROR, form);
        Ended::Failed
    }

    fn end_procedure(&mut self, status: u16, form: Form) {
        if form == Form::Text && self.nesting > 0 {
            // one statement of the procedure it stands in
            if status & done::ERROR != 0 {
                self.client.done(Done::InProcedure, self.done_status(status | done::MORE), None);
            }
            return;
        }
        self.client.done(Done::Procedure, self.done_status(status | done::MORE), None);
    }
}

/// The values of the outputs the caller asked for.
fn returned(
    function: &Function,
    asked: &[(usize, usize)],
    outcome: &Outcome,
    zone: &Zone,
) -> Result<Vec<Returned>, ServerMessage> {
    let values: Vec<Option<&[u8]>> =
        outcome.row.as_ref().map(|row| row_values(row).collect()).unwrap_or_default();
    let mut outputs = Vec::with_capacity(asked.len());
    for (index, place) in asked {
        let Some(field) = function.fields.get(*place) else { continue };
        let column = function
            .arguments
            .iter()
            .take(field.argument)
            .filter(|argument| argument.direction.is_output())
            .count();
        let value = match values.get(column).copied().flatten() {
            None => Value::Null,
            // an instant stays one until it is known whether the client wants it with its offset
            Some(raw) if field.pg_type == PgType::TimestampTz => from_pg(PgType::Timestamp, raw, zone)
                .and_then(|utc| utc.to_datetime(field.pg_type.name()))
                .map(|utc| zone.with_offset(utc))
                .map_err(|error| untellable(&format!("Output parameter '@{}'", field.name), &error))?,
            Some(raw) => from_pg(field.pg_type, raw, zone)
                .map_err(|error| untellable(&format!("Output parameter '@{}'", field.name), &error))?
                .into_owned(),
        };
        outputs.push(Returned { index: *index, name: field.name.clone(), value, pg_type: field.pg_type });
    }
    Ok(outputs)
}

/// Outputs in the types their parameters were declared with.
fn encoded(
    outputs: &[Returned],
    params: &[Param<'_>],
    dialect: &Dialect,
    zone: &Zone,
) -> Result<Vec<Output>, ServerMessage> {
    let encode = |output: &Returned| {
        let param = params.get(output.index);
        let mut type_info =
            param.and_then(Param::declared_type).unwrap_or_else(|| output_type(output.pg_type, -1, dialect));
        let untold = |error| untellable(&format!("Output parameter '@{}'", output.name), &error);
        // a variable that the text declares as characters may go back as a number
        let wire_type = SqlType::of_wire(&type_info);
        let converted = match &output.value {
            Value::Text(_) if !wire_type.is_characters() => {
                cast(&output.value, wire_type, zone).map_err(untold)?
            }
            Value::DateTimeOffset { utc, .. } if type_info.token != TypeToken::DateTimeOffset => {
                Value::DateTime(zone.to_local(*utc))
            }
            Value::DateTime(local) if type_info.token == TypeToken::DateTimeOffset => {
                zone.with_offset(zone.to_utc(*local))
            }
            value => value.clone(),
        };
        let mut value = BytesMut::new();
        while let Err(error) = encode_value(&converted, &type_info, dialect, &mut value) {
            let longer = longer_type(&type_info, dialect).filter(|_| error.kind == ErrorKind::Truncation);
            type_info = longer.ok_or_else(|| untold(error))?;
        }
        let is_named = param.is_some_and(Param::is_named);
        Ok(Output {
            name: if is_named { format!("@{}", output.name) } else { String::new() },
            ordinal: u16::try_from(output.index).unwrap_or(u16::MAX),
            type_info,
            value,
        })
    };
    outputs.iter().map(encode).collect()
}

/// Gives status and outputs of a call in a text to the variables it names.
fn assign(
    execute: &Execute,
    variables: &mut Variables<'_>,
    status: i32,
    outputs: &[Returned],
    zone: &Zone,
) -> Result<(), ServerMessage> {
    if let Some(name) = &execute.status {
        variables.set(name, &Value::Int(i64::from(status)), zone)?;
    }
    for output in outputs {
        let argument = execute.arguments.get(output.index);
        if let Some(Expression::Variable(name)) = argument.and_then(|argument| argument.value.as_ref()) {
            variables.set(name, &output.value, zone)?;
        }
    }
    Ok(())
}

/// The function or its row type may have changed since the catalogue was read.
fn may_be_outdated(error: &PgError) -> bool {
    matches!(error.sqlstate(), Some("42804" | "42883" | "0A000" | "26000"))
}

fn count(function: &Function, start: Instant, end: &CallEnd) {
    function.metrics.latency.observe(start.elapsed().as_secs_f64());
    if matches!(end, CallEnd::Failed(_) | CallEnd::Postgres(_) | CallEnd::Outdated(_)) {
        function.metrics.failures.inc();
    }
}

/// A value that a call gives back.
#[derive(Clone, Debug)]
pub(super) struct Returned {
    /// The place of its parameter in the call.
    pub index: usize,
    /// As the procedure names it, without @.
    pub name: String,
    pub value: Value<'static>,
    pub pg_type: PgType,
}

pub(super) enum CallEnd {
    /// `rows`: their number when a result set was sent.
    Returned {
        status: i32,
        outputs: Vec<Returned>,
        rows: Option<u64>,
    },
    Failed(ServerMessage),
    /// The function has no such parameter, as far as the catalogue knows.
    Unfit(ServerMessage),
    Postgres(PgError),
    /// Refused with nothing done, perhaps because the catalogue is out of date.
    Outdated(PgError),
    Cancelled,
    /// A statement that the procedure ran has failed, or was cancelled, and has told so.
    FailedInside {
        outputs: Vec<Returned>,
        aborted: bool,
    },
    CancelledInside,
    /// A statement that the procedure ran has failed, for a CATCH around it to see.
    Thrown,
}

impl CallEnd {
    pub fn returned(status: i32) -> CallEnd {
        CallEnd::Returned { status, outputs: Vec::new(), rows: None }
    }

    fn failure(&self) -> Option<Failure> {
        match self {
            CallEnd::Failed(message) | CallEnd::Unfit(message) => {
                Some(Failure::of_statement(message.clone()))
            }
            CallEnd::Outdated(error) | CallEnd::Postgres(error) => Some(Failure::of_call(error)),
            _ => None,
        }
    }
}

/// The int2 or int4 a function returned in this column; NULL counts as 0.
fn status(outcome: &Outcome, column: usize) -> i32 {
    let value = outcome.row.as_ref().and_then(|row| row_values(row).nth(column).flatten());
    match value {
        Some(&[a, b, c, d]) => i32::from_be_bytes([a, b, c, d]),
        Some(&[a, b]) => i32::from(i16::from_be_bytes([a, b])),
        _ => 0,
    }
}

/// `procedure`, `schema.procedure`, `schema..procedure`, `schema.owner.procedure`: schema and name.
fn split_name(name: &str) -> (Option<&str>, &str) {
    // Sybase's `;number` groups procedures; only the first of a group exists here
    let name = name.strip_suffix(";1").unwrap_or(name);
    match name.split_once('.') {
        None => (None, strip(name)),
        Some((first, rest)) => {
            let bare = rest.rsplit('.').next().unwrap_or(rest);
            let schema = strip(first);
            (
                Some(schema).filter(|schema| !schema.is_empty() && !schema.eq_ignore_ascii_case("dbo")),
                strip(bare),
            )
        }
    }
}

/// A name without the brackets or quotes around it.
fn strip(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .or_else(|| name.strip_prefix('"').and_then(|name| name.strip_suffix('"')))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::split_name;

    #[test]
    fn names_with_and_without_qualifiers() {
        assert_eq!(split_name("put_a"), (None, "put_a"));
        assert_eq!(split_name("[put_a];1"), (None, "put_a"));
        assert_eq!(split_name("online..put_a"), (Some("online"), "put_a"));
        assert_eq!(split_name("log.dbo.[put_a]"), (Some("log"), "put_a"));
        assert_eq!(split_name("dbo.put_a"), (None, "put_a"));
    }
}
