//! Calls in every form: procedures, system procedures that run a text, and texts within a text.

use super::binding::outdated::is_recompiled;
use super::errors::under_settings;
use super::interpreter::Interpreter;
use super::outputs::{assign, set_texts, take_outputs};
use super::state::State;
use super::statements::messages::printed;
use super::transactions::undo_transaction;
use super::variables::{no_table, Variables, MOST_BYTES};
use crate::calls::{end_failed, Form, ProcedureName, Returned};
use crate::catalogue::texts_taken;
use crate::client::Client;
use crate::interrupt::{Ends, Failure, Interrupt, Stage};
use crate::limits::memory::Kept;
use crate::program::{Execute, Expression};
use crate::rpc::SystemProcedure;
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use tsql::facts::types::TABLE;

impl Interpreter {
    /// Runs a call written as text; its status and outputs are assigned to variables. Returns whether it succeeded.
    pub async fn run_execute(
        &mut self,
        client: &mut Client,
        execute: &Execute,
        variables: &mut Variables<'_>,
    ) -> Result<bool, Interrupt> {
        if client.settings().only_formats {
            let text =
                "'exec' is not understood under SET FMTONLY ON: the columns of a procedure are known only \
                        when it runs.";
            return Err(ServerMessage::error(102, 15, text).into());
        }
        let (params, _kept) = self.state.params(client, &execute.arguments, variables).await?;
        let named = match variables.get(&execute.procedure) {
            Some(variable) => printed(&variable.value)?,
            None => execute.procedure.clone(),
        };
        let for_value = execute.status.is_some();
        let mut called = self.call(client, &named, &params, Form::Text, true, for_value).await;
        if let Ok(returned) = &mut called {
            if let Err(interrupt) = take_outputs(&mut self.state, client, execute, returned, variables).await
            {
                called = Err(interrupt);
            }
        }
        let zone = self.state.gateway.zone();
        let assigned = match &called {
            Ok(returned) => assign(execute, variables, returned, &zone),
            // an error that a CATCH handles assigns nothing
            Err(Interrupt::Failed(Failure { status: Some(status), .. })) if self.state.nesting.tries == 0 => {
                assign(execute, variables, &Returned::status(*status), &zone)
            }
            Err(_) => Ok(()),
        };
        if let (Ok(_), Err(message)) = (&called, assigned) {
            called = Err(Failure::of_statement(message).into());
        }
        end_call(&mut self.state, client, called, &params, Form::Text).await
    }

    /// Calls a procedure. `described`: the client requests the description of the columns of a server cursor.
    /// `for_value`: the value of a function is requested.
    pub async fn call(
        &mut self,
        client: &mut Client,
        name: &str,
        params: &[Param<'_>],
        form: Form,
        described: bool,
        for_value: bool,
    ) -> Result<Returned, Interrupt> {
        if let Some(system) = SystemProcedure::named(&ProcedureName::read(name).bare) {
            if client.reply.gathering.is_some() && system != SystemProcedure::ExecuteSql {
                let text = format!("'insert … execute' of {name} is not supported.");
                return Err(Failure::of_statement(ServerMessage::error(102, 15, text)).into());
            }
            return self.call_system(client, system, params, form, described).await;
        }
        let function = self.state.procedures.called(client, name, params).await?;
        let texts = texts_taken(&function, params, &client.dialect());
        set_texts(&mut self.state, client, params, &texts).await?;
        self.state.identities.keep(&mut self.state.procedures.backend, client).await?;
        if function.runs_here().is_some() {
            return self.call_text(client, &function, params, form).await;
        }
        let is_table = |param: &&Param<'_>| param.type_of() == Some(TABLE);
        if let Some(param) = params.iter().find(is_table) {
            return Err(Failure::of_statement(no_table(&param.name(&client.dialect()))).into());
        }
        // a call of a T-SQL function has no rows; ASE's documentation does not cover it
        let gives_value = function.value_type.is_some() && client.dialect().is_tds7();
        let function = if for_value || gives_value { function.for_value() } else { function };
        let in_try = self.state.nesting.tries > 0;
        match self.state.procedures.call(client, name, function, params, in_try).await {
            Err(failed) if is_recompiled(&mut self.state, client, &failed).await? => {
                let function = self.state.procedures.called(client, name, params).await?;
                // its text may be one that cannot be compiled any more
                if function.runs_here().is_some() {
                    return self.call_text(client, &function, params, form).await;
                }
                let function = if for_value || gives_value { function.for_value() } else { function };
                self.state.procedures.call(client, name, function, params, in_try).await
            }
            called => called,
        }
    }

    /// `exec ('…')`: the statements of the text as if they stood here, with variables of their own.
    pub async fn execute_text(
        &mut self,
        client: &mut Client,
        text: &Expression,
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        let text = printed(&self.state.value(client, text, variables).await?)?;
        let mut kept = Kept::default();
        kept.keep(text.len(), MOST_BYTES, "a text").map_err(Failure::of_value)?;
        let settings = self.state.compiling(client);
        let compiled =
            self.state.compile(client, &text, &settings, true).await.map_err(Failure::of_statement)?;
        let mut variables = Variables::default();
        variables.give(&compiled.literals);
        // a text is not part of the procedure that runs it: its messages name no procedure, and it returns nothing
        let running = self.state.nesting.running.take();
        let ran = self.run_text(client, &compiled.program, &mut variables).await;
        self.state.nesting.running = running;
        ran
    }
}

/// Ends a call in the reply. Returns whether it succeeded.
pub async fn end_call(
    state: &mut State,
    client: &mut Client,
    called: Result<Returned, Interrupt>,
    params: &[Param<'_>],
    form: Form,
) -> Result<bool, Interrupt> {
    let failure = match called {
        Ok(returned) => {
            let has_failed = returned.has_failed;
            returned.end(&mut client.reply, params, form, &state.gateway.zone());
            return Ok(!has_failed);
        }
        Err(Interrupt::Failed(failure)) if failure.stage == Stage::Refused => failure,
        Err(Interrupt::Failed(failure)) if failure.stage == Stage::Raised && state.nesting.tries == 0 => {
            failure
        }
        Err(interrupt) => return Err(interrupt),
    };
    let failure = Failure { stage: Stage::Reported, ..under_settings(state, client, failure) };
    state.nesting.note(&failure.message);
    if failure.ends == Ends::Transaction {
        undo_transaction(state, client).await;
    }
    end_failed(&mut client.reply, &failure.message, form);
    failure.leave().map(|()| false)
}
