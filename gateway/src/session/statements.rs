//! The statements of a program one after another: control flow, what each leaves in @@rowcount and @@error,
//! and TRY and CATCH.

use super::failure::{Ends, Failure, Stop};
use super::settings;
use super::variables::Variables;
use super::{Ended, Session, SessionError};
use crate::program::{Action, Condition, Declaration, Expression, Statement};
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// How deep texts and procedures may nest, as T-SQL.
const DEEPEST: u8 = 32;

/// What follows a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    Break,
    Continue,
    Return,
    /// An error is on its way to the CATCH around it.
    Thrown,
    /// The same, but to one outside of this text.
    ThrownOut,
    /// An error has ended the text.
    Failed,
    /// An error has ended all texts.
    Aborted,
    /// The client has cancelled and has been told so.
    Cancelled,
}

impl Ends {
    /// What follows an error that has been told.
    pub fn flow(self) -> Flow {
        match self {
            Ends::Statement => Flow::Next,
            Ends::Text => Flow::Failed,
            Ends::Batch | Ends::Transaction => Flow::Aborted,
        }
    }
}

/// Where an error stands among TRY blocks.
#[derive(Debug, Default)]
pub struct Tries {
    /// How many are open.
    open: usize,
    /// How many of them are outside of the text that runs.
    outside: usize,
    /// What is on its way to a CATCH.
    thrown: Option<ServerMessage>,
    /// What the CATCH blocks that run have caught, the innermost last.
    caught: Vec<ServerMessage>,
}

impl Tries {
    pub fn are_open(&self) -> bool {
        self.open > 0
    }

    /// What error_number() and the like tell of.
    pub fn caught(&self) -> Option<&ServerMessage> {
        self.caught.last()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Runs the statements of a text.
    pub(super) async fn run_statements(
        &mut self,
        statements: &[Statement],
        variables: &mut Variables<'_>,
    ) -> Result<Ended, SessionError> {
        if self.depth >= DEEPEST {
            let message =
                "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit 32).";
            let flow = self.fail(ServerMessage::error(217, 16, message).into()).await?;
            return Ok(Ended::of(flow, self.error));
        }
        let outside = std::mem::replace(&mut self.tries.outside, self.tries.open);
        // what a text inside another, or inside a procedure, sets holds to its end
        let is_inside = self.depth > 0 || self.nesting > 0;
        let settings = is_inside.then(|| self.settings.clone());
        self.depth += 1;
        let flow = Box::pin(self.run_block(statements, variables)).await?;
        self.depth -= 1;
        if let Some(settings) = settings {
            self.settings = settings;
        }
        self.tries.open = self.tries.outside;
        self.tries.outside = outside;
        Ok(Ended::of(flow, self.error))
    }

    async fn run_block(
        &mut self,
        statements: &[Statement],
        variables: &mut Variables<'_>,
    ) -> Result<Flow, SessionError> {
        for statement in statements {
            let flow = if self.cancelled_meanwhile().await? {
                self.stopped(Stop::Cancelled, statement.line).await?
            } else {
                match self.run_statement(statement, variables).await {
                    Ok(flow) => flow,
                    Err(stop) => self.stopped(stop, statement.line).await?,
                }
            };
            self.client.flush_gathered().await?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// Whether the client has cancelled between two statements.
    async fn cancelled_meanwhile(&mut self) -> Result<bool, SessionError> {
        tokio::select! {
            biased;
            attention = self.client.attention() => attention.map(|()| true),
            () = std::future::ready(()) => Ok(false),
        }
    }

    async fn run_statement(
        &mut self,
        statement: &Statement,
        variables: &mut Variables<'_>,
    ) -> Result<Flow, Stop> {
        match &statement.action {
            Action::If { condition, then, otherwise } => {
                if self.settings.only_formats {
                    // either way may be taken
                    Box::pin(self.run_block(then, variables)).await?;
                    return Ok(Box::pin(self.run_block(otherwise, variables)).await?);
                }
                let branch = if self.holds(condition, variables).await? { then } else { otherwise };
                self.passed(Some(0));
                return Ok(Box::pin(self.run_block(branch, variables)).await?);
            }
            Action::While { condition, body } => return self.run_while(condition, body, variables).await,
            Action::Try { body, catch } => return self.run_try(body, catch, variables).await,
            Action::Break => return Ok(Flow::Break),
            Action::Continue => return Ok(Flow::Continue),
            Action::Return(None) => return Ok(Flow::Return),
            Action::Return(Some(_)) => {
                let text = "A RETURN statement with a return value cannot be used in this context.";
                return Err(ServerMessage::error(178, 15, text).into());
            }
            Action::Query(query) => self.run_query(query, variables).await?,
            Action::Variables(names) => self.put_variables(names, variables).await?,
            Action::Declare(declaration) => self.declare(declaration, variables).await?,
            Action::Assign(name, value) => {
                let value = self.value(value, variables).await?;
                variables.set(name, &value, &self.gateway.zone()).map_err(Failure::of_value)?;
                self.passed(Some(1));
            }
            Action::Print(value) => {
                let text = printed(&self.value(value, variables).await?)?;
                self.client.message(&ServerMessage { line: statement.line, ..ServerMessage::info(0, text) });
                self.passed(Some(0));
            }
            Action::Raise { message, sets_error, at_once } => {
                let message = self.raised(message, variables).await?;
                return self.raise(message, statement.line, *sets_error, *at_once).await;
            }
            Action::Throw(message) => {
                let message = self.thrown(message.as_ref(), statement.line, variables).await?;
                return Err(Stop::Failed(Failure { message, ends: Ends::Batch }));
            }
            Action::Wait(seconds) => self.wait(seconds, variables).await?,
            Action::Execute(execute) => return self.run_execute(execute, variables).await,
            Action::ExecuteText(text) => return self.execute_text(text, variables).await,
            Action::Use(name) => {
                self.use_database(name).await?;
                self.passed(Some(0));
            }
            Action::Set(words) => {
                settings::apply(&mut self.settings, words)?;
                self.announce_text_size();
                self.passed(Some(0));
            }
            Action::Begin(name) => {
                self.begin(name);
                self.passed(Some(0));
            }
            Action::Commit => {
                self.commit().await?;
                self.passed(Some(0));
            }
            Action::Rollback(name) => {
                self.rollback(name).await?;
                self.passed(Some(0));
            }
            Action::Save(name) => {
                self.save(name).await?;
                self.passed(Some(0));
            }
            Action::InsertBulk(bulk) => self.open_bulk(bulk).await?,
            Action::Define(define) => {
                self.define(define).await?;
                self.passed(Some(0));
            }
        }
        Ok(Flow::Next)
    }

    /// A statement has come to its end. `rows`: what it leaves in @@rowcount, if anything.
    pub(super) fn passed(&mut self, rows: Option<i64>) {
        self.error = 0;
        if let Some(rows) = rows {
            self.row_count = rows;
        }
    }

    async fn holds(&mut self, condition: &Condition, variables: &Variables<'_>) -> Result<bool, Stop> {
        match condition {
            Condition::InTransaction => Ok(self.transaction.is_open()),
            Condition::Sql(sql) => {
                let values = self.evaluate(sql, variables).await?;
                Ok(matches!(values.first(), Some(Value::Bit(true))))
            }
        }
    }

    async fn run_while(
        &mut self,
        condition: &Condition,
        body: &[Statement],
        variables: &mut Variables<'_>,
    ) -> Result<Flow, Stop> {
        if self.settings.only_formats {
            return Ok(Box::pin(self.run_block(body, variables)).await?);
        }
        while self.holds(condition, variables).await? {
            self.passed(Some(0));
            if self.cancelled_meanwhile().await? {
                return Err(Stop::Cancelled);
            }
            match Box::pin(self.run_block(body, variables)).await? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                other => return Ok(other),
            }
        }
        self.passed(Some(0));
        Ok(Flow::Next)
    }

    async fn run_try(
        &mut self,
        body: &[Statement],
        catch: &[Statement],
        variables: &mut Variables<'_>,
    ) -> Result<Flow, Stop> {
        self.tries.open += 1;
        let flow = Box::pin(self.run_block(body, variables)).await?;
        self.tries.open -= 1;
        let Some(thrown) = self.tries.thrown.take().filter(|_| flow == Flow::Thrown) else { return Ok(flow) };
        self.error = thrown.number;
        self.tries.caught.push(thrown);
        let flow = Box::pin(self.run_block(catch, variables)).await?;
        self.tries.caught.pop();
        Ok(flow)
    }

    /// What comes of a statement that did not end well.
    async fn stopped(&mut self, stop: Stop, line: u32) -> Result<Flow, SessionError> {
        match stop {
            Stop::Failed(mut failure) => {
                if failure.message.line <= 1 {
                    failure.message.line = line;
                }
                self.fail(failure).await
            }
            Stop::Cancelled => {
                self.client.acknowledge_cancel();
                Ok(Flow::Cancelled)
            }
            Stop::Session(error) => Err(error),
        }
    }

    /// A statement has failed: the error goes to a CATCH or to the client.
    pub(super) async fn fail(&mut self, failure: Failure) -> Result<Flow, SessionError> {
        let Failure { message, mut ends } = failure;
        self.error = message.number;
        self.row_count = 0;
        let catching = if ends == Ends::Text { self.tries.outside } else { self.tries.open };
        if catching > 0 {
            if self.client.rows_open {
                self.end(0, None);
            }
            self.tries.thrown = Some(message);
            return Ok(if ends == Ends::Text { Flow::ThrownOut } else { Flow::Thrown });
        }
        if self.settings.abort_on_error && ends != Ends::Text {
            ends = Ends::Transaction;
        }
        self.tell(&message);
        self.undo(ends).await;
        self.end(done::ERROR, None);
        Ok(ends.flow())
    }

    /// Undoes the transaction when that is what an error ends.
    pub(super) async fn undo(&mut self, ends: Ends) {
        if ends == Ends::Transaction && self.transaction.is_open() {
            if let Err(message) = self.rollback("").await {
                self.client.message(&message);
            }
        }
    }

    /// An error, and what T-SQL says after those that undo what a statement has done so far.
    pub(super) fn tell(&mut self, message: &ServerMessage) {
        self.client.message(message);
        if matches!(message.number, 515 | 547 | 2601 | 8152) {
            self.client.message(&ServerMessage::info(3621, "The statement has been terminated."));
        }
    }

    /// The end of a statement that has rows, their number or an error to tell of.
    pub(super) fn end(&mut self, status: u16, count: Option<u64>) {
        let kind = if self.nesting > 0 { Done::InProcedure } else { Done::Statement };
        let count = count.filter(|_| !self.settings.no_count);
        self.client.done(kind, self.done_status(status | done::MORE), count);
    }

    async fn declare(
        &mut self,
        declaration: &Declaration,
        variables: &mut Variables<'_>,
    ) -> Result<(), Stop> {
        variables.declare(&declaration.name, declaration.sql_type);
        if let Some(value) = &declaration.value {
            let value = self.value(value, variables).await?;
            variables.set(&declaration.name, &value, &self.gateway.zone()).map_err(Failure::of_value)?;
            self.passed(Some(1));
        }
        Ok(())
    }

    async fn raise(
        &mut self,
        message: ServerMessage,
        line: u32,
        sets_error: bool,
        at_once: bool,
    ) -> Result<Flow, Stop> {
        let message = ServerMessage { line, ..message };
        if message.severity > 18 {
            let text =
                "Error severity levels greater than 18 can only be specified by members of the sysadmin \
                        role, using the WITH LOG option.";
            return Err(ServerMessage::error(2754, 16, text).into());
        }
        let number = message.number;
        if message.is_error() {
            let flow = self.fail(Failure::of_statement(message)).await?;
            if at_once {
                self.client.send_now().await?;
            }
            return Ok(flow);
        }
        self.client.message(&message);
        if at_once {
            self.client.send_now().await?;
        }
        self.passed(Some(0));
        if sets_error {
            self.error = number;
        }
        Ok(Flow::Next)
    }

    /// The message of a raiserror: number, severity, state and text.
    async fn raised(
        &mut self,
        sql: &crate::program::Sql,
        variables: &Variables<'_>,
    ) -> Result<ServerMessage, Stop> {
        let values = self.evaluate(sql, variables).await?;
        let [number, severity, state, text] = values.as_slice() else {
            return Err(ServerMessage::error(8623, 16, "A raiserror gives other than four values.").into());
        };
        let message = ServerMessage::error(
            integer(number),
            u8::try_from(integer(severity).max(0)).unwrap_or(u8::MAX),
            printed(text)?,
        );
        Ok(ServerMessage { state: u8::try_from(integer(state)).unwrap_or(1), ..message })
    }

    /// The error of a throw: number, text and state, or what has been caught.
    async fn thrown(
        &mut self,
        sql: Option<&crate::program::Sql>,
        line: u32,
        variables: &Variables<'_>,
    ) -> Result<ServerMessage, Stop> {
        let Some(sql) = sql else {
            let text = "To rethrow an error, a THROW statement must be used inside a CATCH block.";
            let caught = self.tries.caught().cloned();
            return caught.ok_or_else(|| ServerMessage::error(10704, 15, text).into());
        };
        let values = self.evaluate(sql, variables).await?;
        let [number, text, state] = values.as_slice() else {
            return Err(ServerMessage::error(8623, 16, "A throw gives other than three values.").into());
        };
        let message = ServerMessage::error(integer(number), 16, printed(text)?);
        Ok(ServerMessage { state: u8::try_from(integer(state)).unwrap_or(1), line, ..message })
    }

    async fn wait(&mut self, seconds: &Expression, variables: &Variables<'_>) -> Result<(), Stop> {
        let seconds = match self.value(seconds, variables).await? {
            Value::Float(seconds) => seconds,
            Value::Int(seconds) => seconds as f64,
            _ => 0.0,
        };
        let pause = Duration::try_from_secs_f64(seconds)
            .map_err(|_| ServerMessage::error(148, 15, "Incorrect time syntax in time string of WAITFOR."))?;
        let mut stopping = self.gateway.stopping.clone();
        tokio::select! {
            attention = self.client.attention() => {
                attention?;
                return Err(Stop::Cancelled);
            }
            _ = stopping.wait_for(|stopping| *stopping) => return Err(Stop::Session(SessionError::Closed)),
            () = tokio::time::sleep(pause) => {}
        }
        self.passed(Some(0));
        Ok(())
    }
}

/// A value as `print` shows it; NULL is nothing.
pub fn printed(value: &Value<'_>) -> Result<String, Failure> {
    match value {
        Value::Null => Ok(String::new()),
        Value::Text(text) => Ok(text.clone().into_owned()),
        other => {
            let text = other
                .to_text("text")
                .map_err(|error| Failure::of_value(ServerMessage::error(error.number(), 16, error.text)))?;
            Ok(text.into_owned())
        }
    }
}

fn integer(value: &Value<'_>) -> i32 {
    match value {
        Value::Int(value) => i32::try_from(*value).unwrap_or(i32::MAX),
        _ => 0,
    }
}
