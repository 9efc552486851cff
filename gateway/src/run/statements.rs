//! Runs the statements of a program: control flow, @@rowcount and @@error after each, and the handling of errors.

use super::deep::Deep;
use super::interpreter::Interpreter;
use super::messages::integer;
use super::messages::printed;
use super::running::{deepest, too_deep};
use super::tries::Tries;
use super::variables::Variables;
use crate::client::Client;
use crate::interrupt::{Ends, Failure, Interrupt, Stage};
use crate::program::{Action, Condition, Declaration, Program, Statement, LONGEST_TRANSACTION_NAME};
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use tsql::bytes_of;
use tsql::quoting::literal;

/// The control flow after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Next,
    Break,
    Continue,
    Return,
    /// To the label with this number.
    Goto(u32),
}

impl Interpreter {
    /// Runs the statements of a text. If no error ends more than the text, the text has failed when @@error is not 0.
    pub async fn run_text(
        &mut self,
        client: &mut Client,
        program: &Program,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        if self.depth > deepest(&client.dialect()) {
            return self.fail(client, too_deep(&client.dialect()).into()).await;
        }
        if let Some(table) = program.table_variables.iter().find(|name| self.tables.contains(name)) {
            let name = table.trim_start_matches('#').split('.').next().unwrap_or_default();
            let text =
                format!("'{name}' is a table variable of a text around this one too: rename one of them.");
            return self.fail(client, ServerMessage::error(102, 15, text).into()).await;
        }
        let tables = self.tables.len();
        self.tables.extend_from_slice(&program.table_variables);
        // a text inside another or inside a call, such as sp_executesql, drops its temporary tables at its end, as a
        // procedure does
        let is_inside = self.depth > 0 || client.reply.nesting > 0;
        let is_text = is_inside && self.running.is_none() && client.dialect().is_tds7();
        let before = match is_text && program.makes_temporary {
            true => Some(self.temporary_tables(client).await?),
            false => None,
        };
        let outside = std::mem::replace(&mut self.tries.outside, self.tries.open);
        // settings changed by a text inside another, or inside a procedure, last until its end
        let settings = is_inside.then(|| client.settings().clone());
        let around = std::mem::replace(&mut self.long_names, program.long_names.clone());
        self.depth += 1;
        let ran = match self.look_first(client, program, variables).await {
            Ok(()) => self.run_block(client, &program.statements, variables).await,
            Err(interrupt) => Err(interrupt),
        };
        self.depth -= 1;
        self.long_names = around;
        self.tables.truncate(tables);
        let ran = match (before, ran) {
            (None, ran) => ran,
            (_, Err(Interrupt::Session(error))) => Err(Interrupt::Session(error)),
            (Some(before), ran) => self.forget_tables(client, &before).await.and(ran),
        };
        if let Some(settings) = settings {
            client.set(settings);
        }
        let Tries { open, outside: inside, .. } = &mut self.tries;
        *open = *inside;
        *inside = outside;
        match ran {
            Ok(_) => Ok(()),
            Err(Interrupt::Failed(failure)) if failure.ends == Ends::Text => match failure.stage {
                Stage::Reported => Ok(()),
                // a CATCH outside of this text may handle it
                _ => Err(Failure { ends: Ends::Statement, ..failure }.into()),
            },
            Err(interrupt) => Err(interrupt),
        }
    }

    /// The checks that refuse a text before any of it runs.
    async fn look_first(
        &mut self,
        client: &mut Client,
        program: &Program,
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        self.demand_tables(client, &program.demanded).await?;
        self.compile_first(client, program, variables).await
    }

    pub fn run_block<'a>(
        &'a mut self,
        client: &'a mut Client,
        statements: &'a [Statement],
        variables: &'a mut Variables<'_>,
    ) -> Deep<'a, Result<Flow, Interrupt>> {
        Deep::new(async move {
            let flow = self.run_in_order(client, statements, variables).await;
            if !matches!(flow, Err(Interrupt::Session(_))) {
                let backend = &mut self.procedures.backend;
                if let Err(error) = backend.forget_ahead().await {
                    backend.check(&error, client);
                }
            }
            flow
        })
    }

    async fn run_in_order(
        &mut self,
        client: &mut Client,
        statements: &[Statement],
        variables: &mut Variables<'_>,
    ) -> Result<Flow, Interrupt> {
        let mut at = 0;
        while let Some(statement) = statements.get(at) {
            let rest = statements.get(at..).unwrap_or_default();
            at += 1;
            if is_cancelled(client).await? {
                return Err(Interrupt::Cancelled);
            }
            let ran = match self.send_ahead(client, rest, variables).await {
                Ok(()) => self.run_statement(client, statement, variables).await,
                Err(interrupt) => Err(interrupt),
            };
            let flow = match ran {
                Ok(flow) => flow,
                Err(Interrupt::Failed(failure)) => {
                    if matches!(statement.action, Action::Set(_)) {
                        self.set_rest(client, rest, variables).await?;
                    }
                    self.failed(client, failure, statement.line).await?;
                    Flow::Next
                }
                Err(interrupt) => return Err(interrupt),
            };
            client.flush_gathered().await?;
            match flow {
                Flow::Next => {}
                Flow::Goto(label) => match position_of(statements, label) {
                    Some(place) => at = place,
                    None => return Ok(flow),
                },
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    async fn run_statement(
        &mut self,
        client: &mut Client,
        statement: &Statement,
        variables: &mut Variables<'_>,
    ) -> Result<Flow, Interrupt> {
        match &statement.action {
            Action::If { condition, then, otherwise } => {
                if client.settings().only_formats {
                    // either branch may run
                    self.run_block(client, then, variables).await?;
                    return self.run_block(client, otherwise, variables).await;
                }
                let branch = if self.holds(client, condition, variables).await? { then } else { otherwise };
                client.reply.passed(Some(0));
                return self.run_block(client, branch, variables).await;
            }
            Action::While { condition, body } => {
                return self.run_while(client, condition, body, variables).await
            }
            Action::Try { body, catch } => return self.run_try(client, body, catch, variables).await,
            Action::Goto(label) => return Ok(Flow::Goto(*label)),
            Action::Label(_) => {}
            Action::Cursor(action) => self.run_cursor(client, action, variables).await?,
            Action::Break => return Ok(Flow::Break),
            Action::Continue => return Ok(Flow::Continue),
            Action::Return(None) => return Ok(Flow::Return),
            Action::Return(Some(status)) => {
                let status = self.value(client, status, variables).await?;
                if let Some(running) = &mut self.running {
                    running.returns(integer(&status));
                }
                return Ok(Flow::Return);
            }
            Action::Query(query) => match self.run_query(client, query, variables).await {
                // a trigger or function
                Err(failed) if query.kind.is_change() && self.is_mended(client, &failed).await? => {
                    self.run_query(client, query, variables).await?;
                }
                ran => ran?,
            },
            Action::Variables(names) => self.put_variables(client, names, variables).await?,
            Action::Declare(declaration) => self.declare(client, declaration, variables).await?,
            Action::Assign(name, value) => {
                let value = self.value(client, value, variables).await?;
                variables.set(name, &value, &self.gateway.zone()).map_err(Failure::of_value)?;
                client.reply.assigned(Some(1));
                client.reply.passed(Some(1));
            }
            Action::Print(value) => self.print(client, value, statement.line, variables).await?,
            Action::Raise { message, sets_error, at_once } => {
                let message = self.raised(client, message, variables).await?;
                self.raise(client, message, statement.line, *sets_error, *at_once).await?;
            }
            Action::Throw(message) => {
                let message = self.thrown(client, message.as_ref(), statement.line, variables).await?;
                return Err(Failure::of_batch(message).into());
            }
            Action::Wait(seconds) => self.wait(client, seconds, variables).await?,
            Action::Execute(execute) => {
                self.run_execute(client, execute, variables).await?;
            }
            Action::InsertExecute(insert) => self.insert_execute(client, insert, variables).await?,
            Action::GiveTable(given) => self.give_table(client, given, variables).await?,
            Action::ExecuteText(text) => self.execute_text(client, text, variables).await?,
            Action::Use(name) => {
                self.use_database(client, name).await?;
                client.reply.finished(0);
            }
            Action::Set(words) => self.set(client, words, variables).await?,
            Action::IdentityInsert { table, on } => {
                self.ask(client, &format!("select tsql.demand_identity({})", literal(table))).await?;
                set_identity_insert(client, table, *on)?;
                client.reply.finished(0);
            }
            Action::Begin(name) => {
                let name = transaction_name(name, variables)?;
                self.procedures.backend.begin_statement(client, &name);
                client.reply.finished(0);
            }
            Action::Commit => {
                self.may_commit(client)?;
                self.commit(client).await?;
                client.reply.finished(0);
            }
            Action::Rollback(name) => {
                self.may_roll_back(client)?;
                if !self.tables.is_empty() && self.procedures.backend.in_transaction() {
                    let text =
                        "'rollback with a table variable' is not supported: it would remove the rows of a \
                                table variable of the calling text.";
                    return Err(ServerMessage::error(102, 15, text).into());
                }
                let name = transaction_name(name, variables)?;
                self.rollback(client, &name).await?;
                client.reply.finished(0);
            }
            Action::Save(name) => {
                let name = transaction_name(name, variables)?;
                self.procedures.backend.save(client, &name).await?;
                client.reply.finished(0);
            }
            Action::InsertBulk(bulk) => self.open_bulk(client, bulk).await?,
            Action::SendText(text) => self.await_text(client, text, variables).await?,
            Action::ChangeText(sql) => self.change_text(client, sql, variables).await?,
            Action::Define(define) => {
                self.procedures.backend.define(client, define).await?;
                self.forget_definitions();
                if let Some(notice) = &define.notice {
                    client.reply.message(&ServerMessage::info(0, notice.as_str()));
                }
                client.reply.finished(0);
            }
        }
        Ok(Flow::Next)
    }

    async fn holds(
        &mut self,
        client: &mut Client,
        condition: &Condition,
        variables: &Variables<'_>,
    ) -> Result<bool, Interrupt> {
        match condition {
            Condition::InTransaction => Ok(self.procedures.backend.in_transaction()),
            Condition::Sql(sql) => {
                let values = self.evaluate(client, sql, variables).await?;
                Ok(matches!(values.first(), Some(Value::Bit(true))))
            }
        }
    }

    async fn run_while(
        &mut self,
        client: &mut Client,
        condition: &Condition,
        body: &[Statement],
        variables: &mut Variables<'_>,
    ) -> Result<Flow, Interrupt> {
        if client.settings().only_formats {
            return self.run_block(client, body, variables).await;
        }
        while self.holds(client, condition, variables).await? {
            client.reply.passed(Some(0));
            if is_cancelled(client).await? {
                return Err(Interrupt::Cancelled);
            }
            match self.run_block(client, body, variables).await? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                other => return Ok(other),
            }
        }
        client.reply.passed(Some(0));
        Ok(Flow::Next)
    }

    async fn run_try(
        &mut self,
        client: &mut Client,
        body: &[Statement],
        catch: &[Statement],
        variables: &mut Variables<'_>,
    ) -> Result<Flow, Interrupt> {
        self.tries.open += 1;
        let ran = self.run_block(client, body, variables).await;
        self.tries.open -= 1;
        let thrown = match ran {
            // an error that ends the text is handled by a CATCH outside of it
            Err(Interrupt::Failed(failure))
                if failure.stage == Stage::Thrown && failure.ends != Ends::Text =>
            {
                failure.message
            }
            ran => return tried(client, ran),
        };
        client.reply.error = thrown.number;
        self.tries.caught.push(thrown);
        let ran = self.run_block(client, catch, variables).await;
        self.tries.caught.pop();
        tried(client, ran)
    }

    /// Handles the failure of a statement. Ok: the next one follows.
    pub async fn failed(
        &mut self,
        client: &mut Client,
        failure: Failure,
        line: u32,
    ) -> Result<(), Interrupt> {
        if matches!(failure.stage, Stage::Refused | Stage::Thrown | Stage::Reported) {
            return Err(failure.into());
        }
        let mut failure = failure;
        failure.message.text = self.long_names.restored(failure.message.text);
        if failure.message.procedure.is_empty() {
            let line = if failure.message.line <= 1 { line } else { failure.message.line };
            failure.message = self.placed(failure.message, line);
        }
        self.fail(client, failure).await
    }

    /// Passes an error to a CATCH or to the client. Ok: the next statement follows.
    pub async fn fail(&mut self, client: &mut Client, failure: Failure) -> Result<(), Interrupt> {
        let failure = self.under_settings(client, failure);
        self.fail_unchanged(client, failure).await
    }

    /// The same for RAISERROR, which does not honor SET XACT_ABORT (SQL Server: SET XACT_ABORT).
    pub async fn fail_unchanged(&mut self, client: &mut Client, failure: Failure) -> Result<(), Interrupt> {
        let failure = Failure { message: client.reply.numbered(failure.message), ..failure };
        client.reply.error = failure.message.number;
        client.reply.row_count = 0;
        let catching = if failure.ends == Ends::Text { self.tries.outside } else { self.tries.open };
        if catching > 0 {
            if let Some(rows) = client.reply.open_rows {
                client.reply.command = Command::Select;
                client.reply.end(Status::empty(), Some(rows));
            }
            if ENDED_IN_TRIGGER.contains(&failure.message.number) {
                self.undo_transaction(client).await;
            } else if failure.ends == Ends::Transaction {
                self.procedures.backend.doom(client).await?;
            }
            return Err(Failure { stage: Stage::Thrown, ..failure }.into());
        }
        let failure = Failure { stage: Stage::Reported, ..failure };
        client.reply.error_message(&failure.message);
        self.note(&failure.message);
        if failure.ends == Ends::Transaction {
            self.undo_transaction(client).await;
        }
        client.reply.end(Status::ERROR, None);
        failure.leave()
    }

    async fn declare(
        &mut self,
        client: &mut Client,
        declaration: &Declaration,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        variables.declare(declaration);
        if let Some(value) = &declaration.value {
            let value = self.value(client, value, variables).await?;
            variables.set(&declaration.name, &value, &self.gateway.zone()).map_err(Failure::of_value)?;
            client.reply.passed(Some(1));
        }
        Ok(())
    }

    /// After a refused SET, which ends its text, applies the other SETs next to it, as they are for later texts. A
    /// client sends them together when it begins, and continues.
    async fn set_rest(
        &mut self,
        client: &mut Client,
        from_refused: &[Statement],
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        if self.tries.open > 0 {
            return Ok(());
        }
        for statement in from_refused.iter().skip(1) {
            let Action::Set(words) = &statement.action else { break };
            match self.set(client, words, variables).await {
                Err(Interrupt::Failed(failure)) => {
                    let failure = Failure { ends: Ends::Statement, ..failure };
                    self.failed(client, failure, statement.line).await?;
                }
                set => set?,
            }
        }
        Ok(())
    }

    async fn set(
        &mut self,
        client: &mut Client,
        words: &[String],
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        if let [option, value] = words {
            if option == "context_info" {
                self.context = Some(context(value, variables)?);
                client.reply.finished(0);
                return Ok(());
            }
        }
        let only_formats = client.settings().only_formats;
        let words = self.set_words(client, words, variables).await?;
        let mut settings = client.settings().clone();
        settings.apply(&words)?;
        self.apply(client, settings)?;
        if only_formats {
            // freebcp reads the columns when the reply is complete: only a result set ends under FMTONLY
            client.reply.passed(Some(0));
        } else {
            client.reply.finished(0);
        }
        Ok(())
    }
}

/// The value of `set context_info`: the bytes of a literal or variable, padded with zeros ("SET CONTEXT_INFO").
fn context(value: &str, variables: &Variables<'_>) -> Result<Vec<u8>, ServerMessage> {
    const LENGTH: usize = 128;
    let bytes = match (variables.get(value).map(|variable| &variable.value), value.strip_prefix("0x")) {
        (Some(Value::Binary(bytes)), _) => Some(bytes.to_vec()),
        (None, Some(digits)) => bytes_of(digits),
        _ => None,
    };
    let bytes = bytes.filter(|bytes| bytes.len() <= LENGTH).ok_or_else(|| {
        let text =
            "'set context_info' takes at most 128 bytes, of a literal or a binary variable that is not NULL.";
        ServerMessage::error(195, 15, text)
    });
    bytes.map(|mut bytes| {
        bytes.resize(LENGTH, 0);
        bytes
    })
}

/// "The transaction ended in the trigger.", "An error was raised during trigger execution."
const ENDED_IN_TRIGGER: [i32; 2] = [3609, 3616];

/// The name of a transaction or savepoint, possibly from a variable: its first 32 characters are significant ("BEGIN
/// TRANSACTION").
fn transaction_name(name: &str, variables: &Variables<'_>) -> Result<String, Failure> {
    match variables.get(name).filter(|_| name.starts_with('@')) {
        Some(variable) => Ok(printed(&variable.value)?.chars().take(LONGEST_TRANSACTION_NAME).collect()),
        None => Ok(name.to_owned()),
    }
}

/// END CATCH leaves 0 in @@rowcount, whether there was an error or not.
fn tried(client: &mut Client, ran: Result<Flow, Interrupt>) -> Result<Flow, Interrupt> {
    if matches!(ran, Ok(Flow::Next)) {
        client.reply.row_count = 0;
    }
    ran
}

/// The index of a label among `statements`.
fn position_of(statements: &[Statement], label: u32) -> Option<usize> {
    statements.iter().position(|statement| matches!(statement.action, Action::Label(own) if own == label))
}

/// Whether the client has cancelled between two statements.
async fn is_cancelled(client: &mut Client) -> Result<bool, Interrupt> {
    tokio::select! {
        biased;
        attention = client.attention() => Ok(attention.map(|()| true)?),
        () = std::future::ready(()) => Ok(false),
    }
}

fn set_identity_insert(client: &mut Client, table: &str, on: bool) -> Result<(), ServerMessage> {
    let mut settings = client.settings().clone();
    match settings.identity_insert.as_deref() {
        Some(other) if on && other != table => {
            let text = format!(
                "IDENTITY_INSERT is already ON for table '{other}'. Cannot perform SET operation for table '{table}'."
            );
            return Err(ServerMessage::error(8107, 16, text));
        }
        _ if on => settings.identity_insert = Some(table.to_owned()),
        Some(other) if other == table => settings.identity_insert = None,
        _ => {}
    }
    client.set(settings);
    Ok(())
}
