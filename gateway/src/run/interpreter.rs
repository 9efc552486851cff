//! Runs texts: their statements and control flow, @@rowcount and @@error after each statement, and TRY.

use super::ahead::send_ahead;
use super::binding::demanded::demand_tables;
use super::binding::outdated::is_recompiled;
use super::deep::Deep;
use super::errors::{fail, failed};
use super::procedure::{forget_tables, temporary_tables};
use super::state::State;
use super::statements::insert_execute::insert_execute;
use super::statements::insert_rows::give_table;
use super::statements::messages::{integer, print, printed, raise, raised, thrown, wait};
use super::statements::query::{put_variables, run_query};
use super::statements::settings::{set, set_identity_insert, set_rest};
use super::statements::texts::{await_text, change_text, open_bulk};
use super::transactions::{commit, end_doomed, may_commit, may_roll_back, rollback};
use super::variables::Variables;
use crate::backend::{define_in, forget_ahead};
use crate::calls::Procedures;
use crate::client::Client;
use crate::cursors::{end_local_cursors, run_cursor};
use crate::gateway::Gateway;
use crate::interrupt::{Ends, Failure, Interrupt, Stage};
use crate::program::{Action, Condition, Declaration, Program, Statement, LONGEST_TRANSACTION_NAME};
use crate::rpc::PreparedStatements;
use crate::tds::login::Login;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::sync::Arc;
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

pub struct Interpreter {
    pub state: State,
    pub prepared: PreparedStatements,
}

impl Interpreter {
    pub fn new(gateway: Arc<Gateway>, procedures: Procedures, spid: u16, login: Login) -> Interpreter {
        let state = State::new(gateway, procedures, spid, login);
        Interpreter { state, prepared: PreparedStatements::default() }
    }

    /// Resets the session to its state after login.
    pub async fn reset(&mut self, client: &mut Client, keep_transaction: bool) {
        self.prepared = PreparedStatements::default();
        self.state.reset(client, keep_transaction).await;
    }

    /// Runs the statements of `text` up to the first error that ends a batch.
    pub async fn run_batch(
        &mut self,
        client: &mut Client,
        text: &str,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        client.reply.begin_answer();
        let mut settings = self.state.compiling(client);
        variables.declare_to(&mut settings);
        match self.state.compile(client, text, &settings, true).await {
            Ok(compiled) => {
                variables.give(&compiled.literals);
                match self.run_text(client, &compiled.program, variables).await {
                    // its error has been reported and ends only this text
                    Ok(()) | Err(Interrupt::Failed(_)) => {}
                    Err(interrupt) => return Err(interrupt),
                }
            }
            Err(message) => client.reply.refuse(&message),
        }
        end_doomed(&mut self.state, client).await;
        client.reply.end_answer();
        Ok(())
    }

    /// Runs the statements of a text. If no error ends more than the text, the text has failed when @@error is not 0.
    pub async fn run_text(
        &mut self,
        client: &mut Client,
        program: &Program,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        if let Err(message) = self.state.nesting.check(&client.dialect()) {
            return fail(&mut self.state, client, message.into()).await;
        }
        if let Some(table) =
            program.table_variables.iter().find(|name| self.state.nesting.tables.contains(name))
        {
            let name = table.trim_start_matches('#').split('.').next().unwrap_or_default();
            let text =
                format!("'{name}' is a table variable of a text around this one too: rename one of them.");
            return fail(&mut self.state, client, ServerMessage::error(102, 15, text).into()).await;
        }
        let tables = self.state.nesting.tables.len();
        self.state.nesting.tables.extend_from_slice(&program.table_variables);
        // a text inside another or inside a call, such as sp_executesql, drops its temporary tables at its end, as a
        // procedure does
        let is_inside = self.state.nesting.depth > 0 || client.reply.nesting > 0;
        let is_text = is_inside && self.state.nesting.running.is_none() && client.dialect().is_tds7();
        let before = match is_text && program.makes_temporary {
            true => Some(temporary_tables(&mut self.state.procedures.backend, client).await?),
            false => None,
        };
        let outside = std::mem::replace(&mut self.state.nesting.tries_outside, self.state.nesting.tries);
        // settings changed by a text inside another, or inside a procedure, last until its end
        let settings = is_inside.then(|| client.settings().clone());
        // and so does the database of USE
        let is_apart = is_inside && client.dialect().is_tds7();
        let database = is_apart.then(|| self.state.procedures.backend.database.clone());
        let around = std::mem::replace(&mut self.state.nesting.long_names, program.long_names.clone());
        self.state.nesting.depth += 1;
        let ran = match demand_tables(&mut self.state, client, &program.demanded).await {
            Ok(()) => self.run_block(client, &program.statements, variables).await,
            Err(interrupt) => Err(interrupt),
        };
        let ran = match ran {
            Err(Interrupt::Session(error)) => Err(Interrupt::Session(error)),
            ran => self.end_text(client, before.as_ref()).await.and(ran),
        };
        self.state.nesting.depth -= 1;
        self.state.nesting.long_names = around;
        self.state.nesting.tables.truncate(tables);
        if let Some(settings) = settings {
            client.set(settings);
        }
        if let Some(database) = database {
            self.state.return_to_database(client, database);
        }
        let nesting = &mut self.state.nesting;
        nesting.tries = std::mem::replace(&mut nesting.tries_outside, outside);
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

    /// Ends what ends with the running text: its local cursors, and the temporary tables that did not exist `before`.
    async fn end_text(&mut self, client: &mut Client, before: Option<&String>) -> Result<(), Interrupt> {
        let closed = end_local_cursors(&mut self.state, client).await;
        let forgotten = match before {
            Some(before) => forget_tables(&mut self.state.procedures.backend, client, before).await,
            None => Ok(()),
        };
        closed.and(forgotten)
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
                let backend = &mut self.state.procedures.backend;
                if let Err(error) = forget_ahead(backend).await {
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
            let ran = match send_ahead(&mut self.state.procedures.backend, client, rest, variables).await {
                Ok(()) => self.run_statement(client, statement, variables).await,
                Err(interrupt) => Err(interrupt),
            };
            let flow = match ran {
                Ok(flow) => flow,
                Err(Interrupt::Failed(failure)) => {
                    if matches!(statement.action, Action::Set(_)) {
                        set_rest(&mut self.state, client, rest, variables).await?;
                    }
                    failed(&mut self.state, client, failure, statement.line).await?;
                    Flow::Next
                }
                Err(interrupt) => return Err(interrupt),
            };
            declare_passed(std::slice::from_ref(statement), variables);
            client.flush_gathered().await?;
            match flow {
                Flow::Next => {}
                Flow::Goto(label) => match position_of(statements, label) {
                    Some(target) => {
                        declare_passed(statements.get(at..target).unwrap_or_default(), variables);
                        at = target;
                    }
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
        let state = &mut self.state;
        match &statement.action {
            Action::If { condition, then, otherwise } => {
                if client.settings().only_formats {
                    // either branch may run
                    self.run_block(client, then, variables).await?;
                    return self.run_block(client, otherwise, variables).await;
                }
                let holds = holds(state, client, condition, variables).await?;
                client.reply.passed(Some(0));
                return self.run_block(client, if holds { then } else { otherwise }, variables).await;
            }
            Action::While { condition, body } => {
                return self.run_while(client, condition, body, variables).await
            }
            Action::Try { body, catch } => return self.run_try(client, body, catch, variables).await,
            Action::Goto(label) => return Ok(Flow::Goto(*label)),
            Action::Break => return Ok(Flow::Break),
            Action::Continue => return Ok(Flow::Continue),
            Action::Return(status) => {
                if let Some(status) = status {
                    let status = state.value(client, status, variables).await?;
                    if let Some(running) = &mut state.nesting.running {
                        running.status = Some(integer(&status));
                    }
                }
                if client.dialect().is_tds7() {
                    client.reply.row_count = 0;
                }
                return Ok(Flow::Return);
            }
            Action::Execute(execute) => {
                self.run_execute(client, execute, variables).await?;
            }
            Action::InsertExecute(insert) => insert_execute(self, client, insert, variables).await?,
            Action::ExecuteText(text) => self.execute_text(client, text, variables).await?,
            _ => run_simple(state, client, statement, variables).await?,
        }
        Ok(Flow::Next)
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
        while holds(&mut self.state, client, condition, variables).await? {
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
        self.state.nesting.tries += 1;
        let ran = self.run_block(client, body, variables).await;
        self.state.nesting.tries -= 1;
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
        self.state.nesting.caught.push(thrown);
        let ran = self.run_block(client, catch, variables).await;
        self.state.nesting.caught.pop();
        tried(client, ran)
    }
}

/// Runs a statement that contains no other and calls none.
async fn run_simple(
    state: &mut State,
    client: &mut Client,
    statement: &Statement,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    match &statement.action {
        Action::Cursor(action) => return run_cursor(state, client, action, variables).await,
        Action::Query(query) => match run_query(state, client, query, variables).await {
            // a trigger or function
            Err(failed) if query.kind.is_change() && is_recompiled(state, client, &failed).await? => {
                return run_query(state, client, query, variables).await;
            }
            ran => return ran,
        },
        Action::Variables(names) => return put_variables(state, client, names, variables).await,
        Action::Declare(declaration) => return declare(state, client, declaration, variables).await,
        Action::Assign(name, value) => {
            let value = state.value(client, value, variables).await?;
            variables.set(name, value, &state.gateway.zone()).map_err(Failure::of_value)?;
            client.reply.assigned(Some(1));
            client.reply.passed(Some(1));
            return Ok(());
        }
        Action::Print(value) => return print(state, client, value, statement.line, variables).await,
        Action::Raise { message, sets_error, at_once } => {
            let message = raised(state, client, message, variables).await?;
            return raise(state, client, message, statement.line, *sets_error, *at_once).await;
        }
        Action::Throw(message) => {
            let message = thrown(state, client, message.as_ref(), statement.line, variables).await?;
            return Err(Failure::of_batch(message).into());
        }
        Action::Wait(seconds) => return wait(state, client, seconds, variables).await,
        Action::GiveTable(given) => return give_table(state, client, given, variables).await,
        Action::Set(words) => return set(state, client, words, variables).await,
        Action::InsertBulk(bulk) => return open_bulk(state, client, bulk).await,
        Action::SendText(text) => return await_text(state, client, text, variables).await,
        Action::ChangeText(sql) => return change_text(state, client, sql, variables).await,
        Action::Use(name) => state.use_database(client, name).await?,
        Action::IdentityInsert { table, on } => {
            let demanded = format!("select tsql.demand_identity({})", literal(table));
            state.procedures.backend.rows(client, &demanded).await?;
            set_identity_insert(client, table, *on)?;
        }
        Action::Begin(name) => {
            let name = transaction_name(name, variables)?;
            state.procedures.backend.begin_statement(client, &name);
        }
        Action::Commit => {
            may_commit(&state.procedures.backend, client)?;
            commit(state, client).await?;
        }
        Action::Rollback(name) => {
            may_roll_back(state, client)?;
            rollback(state, client, &transaction_name(name, variables)?).await?;
        }
        Action::Save(name) => {
            let name = transaction_name(name, variables)?;
            state.procedures.backend.save(client, &name).await?;
        }
        Action::Define(define) => {
            define_in(&mut state.procedures.backend, client, define).await?;
            state.procedures.forget_plans();
            if let Some(notice) = &define.notice {
                client.reply.message(&ServerMessage::info(0, notice.as_str()));
            }
        }
        Action::If { .. }
        | Action::While { .. }
        | Action::Try { .. }
        | Action::Goto(_)
        | Action::Label(_) => return Ok(()),
        Action::Break | Action::Continue | Action::Return(_) => return Ok(()),
        Action::Execute(_) | Action::InsertExecute(_) | Action::ExecuteText(_) => return Ok(()),
    }
    client.reply.finished(0);
    Ok(())
}

async fn holds(
    state: &mut State,
    client: &mut Client,
    condition: &Condition,
    variables: &Variables<'_>,
) -> Result<bool, Interrupt> {
    match condition {
        Condition::InTransaction => Ok(state.procedures.backend.in_transaction()),
        Condition::Sql(sql) => {
            let values = state.evaluate(client, sql, variables).await?;
            Ok(matches!(values.first(), Some(Value::Bit(true))))
        }
    }
}

async fn declare(
    state: &mut State,
    client: &mut Client,
    declaration: &Declaration,
    variables: &mut Variables<'_>,
) -> Result<(), Interrupt> {
    variables.declare(declaration);
    if let Some(value) = &declaration.value {
        let value = state.value(client, value, variables).await?;
        variables.set(&declaration.name, value, &state.gateway.zone()).map_err(Failure::of_value)?;
        client.reply.passed(Some(1));
    }
    Ok(())
}

/// Declares the variables of statements that may not have run: a declaration applies to all statements that follow it in
/// the text ("DECLARE @local_variable": the scope of a variable is the batch).
fn declare_passed(statements: &[Statement], variables: &mut Variables<'_>) {
    for statement in statements {
        match &statement.action {
            Action::Declare(declaration) => variables.declare(declaration),
            Action::If { then: one, otherwise: other, .. } | Action::Try { body: one, catch: other } => {
                declare_passed(one, variables);
                declare_passed(other, variables);
            }
            Action::While { body, .. } => declare_passed(body, variables),
            _ => {}
        }
    }
}

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
