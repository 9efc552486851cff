//! Parameterised text: sp_executesql, sp_prepare and related procedures.

use super::prepared::{Prepared, Target};
use super::system_procedures::SystemProcedure;
use crate::backend::put_description;
use crate::calls::{end_failed_inside, Form, OutputValue, Returned};
use crate::client::Client;
use crate::convert::SqlType;
use crate::describe::datatype_info;
use crate::interrupt::{Ends, Failure, Interrupt, Stage};
use crate::program::{sql_type, Action, Compiled, Declaration, Settings, Statement};
use crate::run::Interpreter;
use crate::run::{texts_taken, Variables};
use crate::tds::call::Param;
use crate::tds::tokens::done::{Scope, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::sync::Arc;
use tsql::facts::types::TABLE;

impl Interpreter {
    /// Runs a system procedure implemented by the gateway. None: it failed and the call has been ended.
    pub async fn call_system(
        &mut self,
        client: &mut Client,
        system: SystemProcedure,
        params: &[Param<'_>],
        form: Form,
        described: bool,
    ) -> Result<Returned, Interrupt> {
        let returned = match system {
            SystemProcedure::ExecuteSql => match self.prepared_from(client, params, 1, 0, true).await {
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
            SystemProcedure::Execute => match self.target_of(client, params) {
                Ok(Target::Text(prepared)) => {
                    return self.execute(client, &prepared, params, 1, Vec::new(), form).await
                }
                Ok(Target::Call(name)) => {
                    return self.call_behind(client, &name, params, 1, form, described).await
                }
                Err(message) => Err(message),
            },
            SystemProcedure::Prepare => self.prepare(client, params).await,
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
                return self.call_cursor(client, procedure, params, form, described).await
            }
            SystemProcedure::DescribeFirstResultSet => self.describe_first_of(client, params).await,
            SystemProcedure::DescribeUndeclaredParameters => self.describe_undeclared(client, params).await,
        };
        Ok(returned.map_err(Failure::of_statement)?)
    }

    /// sp_describe_first_result_set: text, declarations, mode.
    async fn describe_first_of(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
    ) -> Result<Returned, ServerMessage> {
        let mode = params.get(2).map(|param| param.value(&client.reply.dialect));
        if !matches!(mode, None | Some(Ok(Value::Null | Value::Int(0)))) {
            let text = "sp_describe_first_result_set returns no sources: @browse_information_mode must be 0.";
            return Err(ServerMessage::error(102, 15, text));
        }
        let prepared = self.prepared_from(client, params, 1, 0, false).await?;
        self.describe_first(client, &prepared.program.statements, &prepared.declarations).await
    }

    /// The statement of the declarations and text in `params`. `lifts`: it is used for these values only.
    pub async fn prepared_from(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
        declarations: usize,
        text: usize,
        lifts: bool,
    ) -> Result<Arc<Prepared>, ServerMessage> {
        let text = statement_of(client, params, text)?;
        self.prepared_as(client, params, declarations, &text, lifts).await
    }

    /// The same for this text.
    pub async fn prepared_as(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
        declarations: usize,
        text: &str,
        lifts: bool,
    ) -> Result<Arc<Prepared>, ServerMessage> {
        let declared = text_of(client, params, declarations)?.unwrap_or_default();
        let declarations = self.declarations(client, &declared).await?;
        let mut settings = self.compiling_with(client, &declarations);
        if declarations.iter().any(|declaration| declaration.of == TABLE) {
            settings.given = declared;
        }
        let Compiled { program, literals } = self.compile(client, text, &settings, lifts).await?;
        Ok(Arc::new(Prepared { declarations, program, literals, text: text.to_owned() }))
    }

    /// The compilation settings of a text with these parameters.
    pub fn compiling_with(&self, client: &Client, declarations: &[Declaration]) -> Settings {
        let mut settings = self.compiling(client);
        for declaration in declarations.iter().filter(|declaration| declaration.of != TABLE) {
            settings.variables.insert(declaration.name.clone(), Some(declaration.of));
        }
        settings
    }

    async fn prepared_and_kept(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
    ) -> Result<(Arc<Prepared>, i32), ServerMessage> {
        let prepared = self.prepared_from(client, params, 1, 2, false).await?;
        if let Ok(replaced) = handle(client, params) {
            self.prepared.close(replaced);
        }
        let handle = self.prepared.keep(prepared.clone())?;
        Ok((prepared, handle))
    }

    pub fn target_of(&self, client: &Client, params: &[Param<'_>]) -> Result<Target, ServerMessage> {
        let handle = handle(client, params)?;
        self.prepared.get(handle).ok_or_else(|| no_such_handle(handle))
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

    /// sp_prepare: handle, declarations, text, options.
    pub async fn prepare(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
    ) -> Result<Returned, ServerMessage> {
        /// option bit: the client requests the columns at once
        const RETURN_METADATA: i64 = 1;
        let options = params.get(3).and_then(|param| param.value(&client.reply.dialect).ok());
        let wants_columns = matches!(options, Some(Value::Int(options)) if options & RETURN_METADATA != 0);
        let prepared = self.prepared_from(client, params, 1, 2, false).await?;
        // of several statements: the columns of the first
        let first = match prepared.program.statements.as_slice() {
            [Statement { action: Action::Query(query), .. }, others @ ..]
                if others.is_empty() || query.only_reads() =>
            {
                Some(query)
            }
            _ => None,
        };
        if let Some(query) = first {
            let type_of = |name: &String| {
                let declared = prepared.declarations.iter().find(|declaration| declaration.name == *name);
                declared.map_or(SqlType::TEXT, sql_type)
            };
            let (written, described) = self.written_and_described(client, query, type_of).await?;
            let described = described.map_err(|error| error.to_message())?;
            let query = written.as_deref().unwrap_or(query);
            if wants_columns && !described.columns.is_empty() && query.assigns.is_empty() {
                put_description(&described.columns, query.columns.as_deref(), &mut client.reply);
                client.reply.done(Scope::InProcedure, Status::empty(), None);
            }
        }
        let handle = self.prepared.keep(prepared)?;
        Ok(Returned::outputs(0, vec![OutputValue::of_handle(handle)]))
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
        let dialect = client.dialect();
        let rest = params.get(first..).unwrap_or(&[]);
        let arithabort = client.settings().arithabort;
        self.set_texts(client, rest, &texts_taken(&prepared.declarations, rest, &dialect)).await?;
        let mut variables = Variables::bind(&prepared.declarations, rest, first, &dialect, arithabort)
            .map_err(Failure::of_statement)?;
        variables.give(&prepared.literals);
        // its statements are those of a procedure, whose own end follows theirs
        client.reply.nesting += 1;
        let running = self.running.take();
        // a text executed by a text is thus two levels deeper (SQL Server: @@NESTLEVEL)
        let depth = self.depth;
        self.depth += u8::from(depth > 0);
        // boxed: the statements may be calls again
        let ran = Box::pin(self.run_text(client, &prepared.program, &mut variables)).await;
        self.depth = depth;
        self.running = running;
        client.reply.nesting -= 1;
        outputs.extend(variables.returned());
        match ran {
            Ok(()) => {}
            Err(Interrupt::Failed(failure)) if failure.stage == Stage::Reported => {
                // only this text has ended
                if failure.ends != Ends::Text {
                    // the handle is sent nevertheless: the client must close it
                    end_failed_inside(&mut client.reply, &outputs, params, form, &self.gateway.zone());
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

/// The text of a statement.
pub fn statement_of(client: &Client, params: &[Param<'_>], index: usize) -> Result<String, ServerMessage> {
    let missing = "The procedure expects the text of a statement, not NULL.";
    text_of(client, params, index)?.ok_or_else(|| ServerMessage::error(214, 16, missing))
}

pub fn text_of(client: &Client, params: &[Param<'_>], index: usize) -> Result<Option<String>, ServerMessage> {
    let Some(param) = params.get(index) else {
        return Ok(None);
    };
    match param.value(&client.reply.dialect) {
        Ok(Value::Text(text)) => Ok(Some(text.into_owned())),
        Ok(Value::Null) => Ok(None),
        Ok(other) => Err(ServerMessage::error(
            214,
            16,
            format!("Parameter {} must be a text and is {}.", index + 1, other.kind()),
        )),
        Err(error) => {
            Err(ServerMessage::error(error.number(), 16, format!("Parameter {}: {error}", index + 1)))
        }
    }
}

pub fn handle(client: &Client, params: &[Param<'_>]) -> Result<i32, ServerMessage> {
    let value = params.first().and_then(|param| param.value(&client.reply.dialect).ok());
    match value {
        Some(Value::Int(handle)) => i32::try_from(handle).map_err(|_| no_such_handle(handle)),
        _ => Err(ServerMessage::error(214, 16, "The procedure expects the handle of a statement.")),
    }
}

pub fn no_such_handle(handle: impl std::fmt::Display) -> ServerMessage {
    ServerMessage::error(8179, 16, format!("Could not find prepared statement with handle {handle}."))
}
