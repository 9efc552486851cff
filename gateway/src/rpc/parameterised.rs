//! Parameterised text: sp_executesql, sp_prepare and related procedures.

use super::params::{bound, handle, no_such_handle, prepare, prepared_from, statement_of, target_of};
use super::prepared::{Prepared, Target};
use super::system_procedures::SystemProcedure;
use crate::calls::{end_failed_inside, Form, OutputValue, Returned};
use crate::client::Client;
use crate::cursors::{call_cursor, CursorCall};
use crate::describe::{datatype_info, describe_first, describe_undeclared};
use crate::interrupt::{Ends, Failure, Interrupt, Stage};
use crate::run::{Interpreter, State};
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::sync::Arc;

impl Interpreter {
    /// Runs a system procedure implemented by the gateway.
    pub async fn call_system(
        &mut self,
        client: &mut Client,
        system: SystemProcedure,
        params: &[Param<'_>],
        form: Form,
        described: bool,
    ) -> Result<Returned, Interrupt> {
        let returned = match system {
            SystemProcedure::ExecuteSql => match prepared_from(&mut self.state, client, params, 1, 0, true)
                .await
            {
                Ok(prepared) => return self.execute(client, &prepared, params, 2, Vec::new(), form).await,
                Err(message) => Err(message),
            },
            SystemProcedure::PrepareAndExecute => match self.prepared_and_kept(client, params).await {
                Ok((prepared, handle)) => {
                    let handle = vec![OutputValue::of_handle(handle)];
                    return self.execute(client, &prepared, params, 3, handle, form).await;
                }
                Err(message) => Err(message),
            },
            SystemProcedure::PrepareAndCall => match statement_of(client, params, 1) {
                Ok(name) => return self.prepare_and_call(client, &name, params, form, described).await,
                Err(message) => Err(message),
            },
            SystemProcedure::Execute => match target_of(&self.prepared, client, params) {
                Ok(Target::Text(prepared)) => {
                    return self.execute(client, &prepared, params, 1, Vec::new(), form).await
                }
                Ok(Target::Call(name)) => {
                    return self.call_behind(client, &name, params, 1, form, described).await
                }
                Err(message) => Err(message),
            },
            SystemProcedure::Prepare => prepare(&mut self.prepared, &mut self.state, client, params).await,
            SystemProcedure::Unprepare => handle(client, params).and_then(|handle| {
                let closed = self.prepared.close(handle);
                closed.then(|| Returned::status(0)).ok_or_else(|| no_such_handle(handle))
            }),
            SystemProcedure::ResetConnection => {
                self.reset(client, false).await;
                Ok(Returned::status(0))
            }
            SystemProcedure::DatatypeInfo(known) => datatype_info(&mut client.reply, params, known),
            SystemProcedure::Cursor(procedure) => {
                let (state, prepared) = (&mut self.state, &mut self.prepared);
                match call_cursor(state, prepared, client, procedure, params, described).await? {
                    CursorCall::Done(returned) => return Ok(returned),
                    CursorCall::Direct(prepared, first, outputs) => {
                        return self.execute(client, &prepared, params, first, outputs, form).await;
                    }
                }
            }
            SystemProcedure::DescribeFirstResultSet => {
                describe_first_of(&mut self.state, client, params).await
            }
            SystemProcedure::DescribeUndeclaredParameters => {
                describe_undeclared(&mut self.state, client, params).await
            }
        };
        Ok(returned.map_err(Failure::of_statement)?)
    }

    async fn prepared_and_kept(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
    ) -> Result<(Arc<Prepared>, i32), ServerMessage> {
        let prepared = prepared_from(&mut self.state, client, params, 1, 2, false).await?;
        if let Ok(replaced) = handle(client, params) {
            self.prepared.close(replaced);
        }
        let handle = self.prepared.keep(Target::Text(prepared.clone()))?;
        Ok((prepared, handle))
    }

    /// sp_prepexecrpc: handle, name of the procedure, its parameters. A call that fails gets no new handle: the client
    /// prepares it again.
    async fn prepare_and_call(
        &mut self,
        client: &mut Client,
        name: &str,
        params: &[Param<'_>],
        form: Form,
        described: bool,
    ) -> Result<Returned, Interrupt> {
        let given = handle(client, params).ok();
        let held = self.prepared.hold(given, &name.into()).map_err(Failure::of_statement)?;
        let called = self.call_behind(client, name, params, 2, form, described).await;
        self.prepared.settle(&held, called.is_ok());
        let mut returned = called?;
        returned.outputs.insert(0, OutputValue::of_handle(held.handle));
        Ok(returned)
    }

    /// Calls a procedure with the parameters from number `first` on.
    async fn call_behind(
        &mut self,
        client: &mut Client,
        name: &str,
        params: &[Param<'_>],
        first: usize,
        form: Form,
        described: bool,
    ) -> Result<Returned, Interrupt> {
        let rest = params.get(first..).unwrap_or(&[]);
        // boxed: the procedure may be a system procedure again
        let mut returned = Box::pin(self.call(client, name, rest, form, described, false)).await?;
        for output in &mut returned.outputs {
            output.index += first;
        }
        Ok(returned)
    }

    /// Runs a statement; the parameters from number `first` on are the values of its variables. `outputs`: further
    /// values to return.
    pub async fn execute(
        &mut self,
        client: &mut Client,
        prepared: &Prepared,
        params: &[Param<'_>],
        first: usize,
        mut outputs: Vec<OutputValue>,
        form: Form,
    ) -> Result<Returned, Interrupt> {
        let mut variables = bound(&mut self.state, client, prepared, params, first).await?;
        // its statements are those of a procedure, whose own end follows theirs
        client.reply.nesting += 1;
        let running = self.state.nesting.running.take();
        // a text executed by a text is thus two levels deeper (SQL Server: @@NESTLEVEL)
        let depth = self.state.nesting.depth;
        self.state.nesting.depth += u8::from(depth > 0);
        // boxed: the statements may be calls again
        let ran = Box::pin(self.run_text(client, &prepared.program, &mut variables)).await;
        self.state.nesting.depth = depth;
        self.state.nesting.running = running;
        client.reply.nesting -= 1;
        outputs.extend(variables.returned());
        match ran {
            Ok(()) => {}
            Err(Interrupt::Failed(failure)) if failure.stage == Stage::Reported => {
                // only this text has ended
                if failure.ends != Ends::Text {
                    // the handle is sent nevertheless: the client must close it
                    end_failed_inside(&mut client.reply, &outputs, params, form, &self.state.gateway.zone());
                    return Err(failure.into());
                }
            }
            Err(interrupt) => return Err(interrupt),
        }
        let (error, row_count) = (client.reply.error, Some(client.reply.row_count));
        let has_failed = error != 0;
        Ok(Returned { error, has_failed, row_count, ..Returned::outputs(error, outputs) })
    }
}

/// sp_describe_first_result_set: text, declarations, mode.
async fn describe_first_of(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
) -> Result<Returned, ServerMessage> {
    let mode = params.get(2).map(|param| param.value(&client.reply.dialect));
    if !matches!(mode, None | Some(Ok(Value::Null | Value::Int(0)))) {
        let text = "sp_describe_first_result_set returns no sources: @browse_information_mode must be 0.";
        return Err(ServerMessage::error(102, 15, text));
    }
    let prepared = prepared_from(state, client, params, 1, 0, false).await?;
    describe_first(&mut state.procedures, client, &prepared.program.statements, &prepared.declarations).await
}
