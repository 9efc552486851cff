//! Calls in every form: procedures, system procedures that run a text, and texts within a text.

use super::interpreter::Interpreter;
use super::messages::printed;
use super::variables::no_table;
use super::variables::{Variable, Variables};
use crate::calls::{end_failed, Form, ProcedureName, Returned};
use crate::catalogue::texts_taken;
use crate::client::Client;
use crate::convert::{SqlType, Zone};
use crate::interrupt::{Ends, Failure, Interrupt, Stage};
use crate::program::{Argument, Execute, Expression, Sql};
use crate::rpc::SystemProcedure;
use crate::tds::call::{Call, Param, Procedure};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use tsql::facts::types::{Family, Type, TABLE};

/// The outcome of a call that is a request of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Succeeded,
    /// It has ended; further calls of its message follow.
    Failed,
    /// Its error ends the message's further calls: they are one batch.
    EndsBatch,
}

impl Interpreter {
    /// Answers a call that is a request of its own.
    pub async fn answer_call(&mut self, client: &mut Client, call: &Call<'_>) -> Result<Answered, Interrupt> {
        let called = match &call.procedure {
            Procedure::Named(name) => {
                self.call(client, name, &call.params, Form::Rpc, !call.knows_columns, false).await
            }
            Procedure::Numbered(number) => match SystemProcedure::numbered(*number) {
                Some(system) => {
                    self.call_system(client, system, &call.params, Form::Rpc, !call.knows_columns).await
                }
                None => {
                    let text = format!("System procedure number {number} is not served.");
                    Err(Failure::of_statement(ServerMessage::error(2812, 16, text)).into())
                }
            },
        };
        match self.end_call(client, called, &call.params, Form::Rpc).await {
            Ok(true) => Ok(Answered::Succeeded),
            Ok(false) => Ok(Answered::Failed),
            // its error has been reported
            Err(Interrupt::Failed(failure)) if failure.ends == Ends::Text => Ok(Answered::Failed),
            Err(Interrupt::Failed(_)) => Ok(Answered::EndsBatch),
            Err(interrupt) => Err(interrupt),
        }
    }

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
        let params = self.params(client, &execute.arguments, variables).await?;
        let named = match variables.get(&execute.procedure) {
            Some(variable) => printed(&variable.value)?,
            None => execute.procedure.clone(),
        };
        let for_value = execute.status.is_some();
        let mut called = self.call(client, &named, &params, Form::Text, true, for_value).await;
        if let Ok(returned) = &mut called {
            if let Err(interrupt) = self.take_outputs(client, execute, returned, variables).await {
                called = Err(interrupt);
            }
        }
        let zone = self.gateway.zone();
        let assigned = match &called {
            Ok(returned) => assign(execute, variables, returned, &zone),
            // an error that a CATCH handles assigns nothing
            Err(Interrupt::Failed(Failure { status: Some(status), .. })) if !self.tries.are_open() => {
                assign(execute, variables, &Returned::status(*status), &zone)
            }
            Err(_) => Ok(()),
        };
        if let (Ok(_), Err(message)) = (&called, assigned) {
            called = Err(Failure::of_statement(message).into());
        }
        self.end_call(client, called, &params, Form::Text).await
    }

    /// Sets T-SQL's texts of the values of `params` that are passed for `texts`.
    pub async fn set_texts(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
        texts: &[Option<Type>],
    ) -> Result<(), Interrupt> {
        let dialect = client.dialect();
        for (param, text) in params.iter().zip(texts) {
            let (Some(text), Some(of)) = (text, param.type_of()) else { continue };
            // an invalid value is reported when the parameter is bound
            let Ok(value) = param.value(&dialect) else { continue };
            if !has_own_text(&value, of, text) {
                continue;
            }
            let Ok(sql) = tsql::text_for(of, *text, dialect.of_texts()) else { continue };
            let sql_type = SqlType { oid: of.oid, typmod: of.typmod() };
            let taken = self.taken(client, &sql, vec![(sql_type, value.into_owned())]).await?;
            param.set_text(taken.into_iter().next().unwrap_or(Value::Null));
        }
        Ok(())
    }

    /// Converts the value of a function and the outputs of a call to the types of their variables.
    async fn take_outputs(
        &mut self,
        client: &mut Client,
        execute: &Execute,
        returned: &mut Returned,
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        // a status is an integer, converted to the variable's type
        let status = execute.status.as_ref().zip(execute.status_taken.as_ref());
        if let (Some((name, taken)), Some(given)) = (status, &mut returned.value) {
            self.take(client, variables.get(name), taken, &mut given.value).await?;
        }
        for output in &mut returned.outputs {
            let argument = execute.arguments.get(output.index);
            let Some(Argument { value: Some(Expression::Variable(name)), taken: Some(taken), .. }) = argument
            else {
                continue;
            };
            self.take(client, variables.get(name), taken, &mut output.value).await?;
        }
        Ok(())
    }

    async fn take(
        &mut self,
        client: &mut Client,
        variable: Option<&Variable<'_>>,
        taken: &Sql,
        value: &mut Value<'static>,
    ) -> Result<(), Interrupt> {
        let given = SqlType::of_value(value);
        let is_of_it = |variable: &Variable<'_>| {
            let of = variable.declared.filter(|of| of.is_plain() && !of.is_text());
            of.is_some_and(|of| of.oid == given.oid)
        };
        if !variable.is_some_and(is_of_it) {
            let values = self.taken(client, taken, vec![(given, value.clone())]).await?;
            *value = values.into_iter().next().unwrap_or(Value::Null);
        }
        Ok(())
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
        let function = self.procedures.called(client, name, params).await?;
        let texts = texts_taken(&function, params, &client.dialect());
        self.set_texts(client, params, &texts).await?;
        self.keep_identity(client).await?;
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
        let in_try = self.tries.are_open();
        match self.procedures.call(client, name, function, params, in_try).await {
            Err(failed) if self.is_mended(client, &failed).await? => {
                let function = self.procedures.called(client, name, params).await?;
                // its text may be one that cannot be compiled any more
                if function.runs_here().is_some() {
                    return self.call_text(client, &function, params, form).await;
                }
                let function = if for_value || gives_value { function.for_value() } else { function };
                self.procedures.call(client, name, function, params, in_try).await
            }
            called => called,
        }
    }

    /// Ends a call in the reply. Returns whether it succeeded.
    async fn end_call(
        &mut self,
        client: &mut Client,
        called: Result<Returned, Interrupt>,
        params: &[Param<'_>],
        form: Form,
    ) -> Result<bool, Interrupt> {
        let failure = match called {
            Ok(returned) => {
                let has_failed = returned.has_failed;
                returned.end(&mut client.reply, params, form, &self.gateway.zone());
                return Ok(!has_failed);
            }
            Err(Interrupt::Failed(failure)) if failure.stage == Stage::Refused => failure,
            Err(Interrupt::Failed(failure)) if failure.stage == Stage::Raised && !self.tries.are_open() => {
                failure
            }
            Err(interrupt) => return Err(interrupt),
        };
        let failure = Failure { stage: Stage::Reported, ..self.under_settings(client, failure) };
        self.note(&failure.message);
        if failure.ends == Ends::Transaction {
            self.undo_transaction(client).await;
        }
        end_failed(&mut client.reply, &failure.message, form);
        failure.leave().map(|()| false)
    }

    /// `exec ('…')`: the statements of the text as if they stood here, with variables of their own.
    pub async fn execute_text(
        &mut self,
        client: &mut Client,
        text: &Expression,
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        let text = printed(&self.value(client, text, variables).await?)?;
        let settings = self.compiling(client);
        let compiled = self.compile(client, &text, &settings, true).await.map_err(Failure::of_statement)?;
        let mut variables = Variables::default();
        variables.give(&compiled.literals);
        // a text is not part of the procedure that runs it: its messages name no procedure, and it returns nothing
        let running = self.running.take();
        let ran = self.run_text(client, &compiled.program, &mut variables).await;
        self.running = running;
        ran
    }
}

/// Whether T-SQL's text of a value of type `of` may differ from PostgreSQL's, or may not fit.
fn has_own_text(value: &Value<'_>, of: Type, text: &Type) -> bool {
    if matches!(value, Value::Null) {
        return false;
    }
    match of.family {
        Family::Text | Family::Binary | Family::Variant | Family::Xml => false,
        Family::Integer | Family::Decimal => {
            let room = text.length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX);
            value.to_text(text.name).is_ok_and(|shown| shown.len() > room)
        }
        _ => true,
    }
}

/// Assigns status and outputs of a call in a text to the variables it names.
fn assign(
    execute: &Execute,
    variables: &mut Variables<'_>,
    returned: &Returned,
    zone: &Zone,
) -> Result<(), ServerMessage> {
    if let Some(name) = &execute.status {
        let status = Value::Int(i64::from(returned.status));
        let value = returned.value.as_ref().map_or(&status, |given| &given.value);
        variables.set(name, value, zone)?;
    }
    for output in &returned.outputs {
        let argument = execute.arguments.get(output.index);
        if let Some(Expression::Variable(name)) = argument.and_then(|argument| argument.value.as_ref()) {
            variables.set(name, &output.value, zone)?;
        }
    }
    Ok(())
}
