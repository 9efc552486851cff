//! T-SQL procedures run by the gateway itself.
//!
//! PostgreSQL stores their name, arguments, rights and text. The statements run with the caller's rights, as dynamic
//! SQL does (SQL Server: "Customizing Permissions with Impersonation": no ownership chain covers dynamic SQL).

use super::errors::fail;
use super::fitted::fitted;
use super::interpreter::Interpreter;
use super::state::nesting::Running;
use super::state::State;
use super::variables::{bare, check_table, parameter_value, Variables};
use crate::backend::Backend;
use crate::calls::{end_failed_inside, Form, OutputValue, Returned};
use crate::catalogue::{assign, Function, Reason, Text, TEMPORARY};
use crate::client::Client;
use crate::convert::{cast, PgType};
use crate::interrupt::{Failure, Interrupt, Stage};
use crate::postgres::PgError;
use crate::program::{sql_type, Program, Settings};
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use std::sync::Arc;
use std::time::Instant;
use tsql::Dialect;

/// A procedure's text in PostgreSQL, and the session's temporary tables before its run, an array of oids.
struct Stored {
    text: String,
    tables: String,
}

impl Interpreter {
    /// Calls a procedure that the gateway runs.
    pub async fn call_text(
        &mut self,
        client: &mut Client,
        function: &Arc<Function>,
        params: &[Param<'_>],
        form: Form,
    ) -> Result<Returned, Interrupt> {
        self.state.nesting.check(&client.dialect())?;
        let start = Instant::now();
        let (function, stored) = stored(&mut self.state, client, function, params).await?;
        let Some(read_as) = function.runs_here() else {
            let text = format!("Procedure '{}' is another one now: call it again.", function.name);
            return Err(Failure::of_statement(ServerMessage::error(2812, 16, text)).into());
        };
        let caller = self.state.procedures.backend.database.clone();
        if function.schema != TEMPORARY {
            self.state.procedures.backend.database.clone_from(&function.schema);
        }
        // a call outside of a batch is one level deep too
        let depth = self.state.nesting.depth;
        self.state.nesting.depth = depth.max(1);
        client.reply.nesting += 1;
        let around = self.state.identities.enter();
        let nulls_equal = client.set_nulls_equal(read_as.nulls_equal);
        let ran = Box::pin(self.run_procedure(client, &function, read_as, &stored.text, params)).await;
        client.set_nulls_equal(nulls_equal);
        client.reply.nesting -= 1;
        self.state.identities.leave(around);
        self.state.nesting.depth = depth;
        let ran = match ran {
            Err(Interrupt::Session(error)) => return Err(Interrupt::Session(error)),
            ran => {
                let forgotten =
                    forget_tables(&mut self.state.procedures.backend, client, &stored.tables).await;
                ran.and_then(|ran| forgotten.map(|()| ran))
            }
        };
        self.state.procedures.backend.database = caller;
        self.state.procedures.answered(&function, start, &ran);
        match ran {
            Ok(returned) => Ok(returned),
            Err(interrupt) => {
                if matches!(&interrupt, Interrupt::Failed(failure) if failure.stage == Stage::Reported) {
                    end_failed_inside(&mut client.reply, &[], params, form, &self.state.gateway.zone());
                }
                Err(interrupt)
            }
        }
    }

    async fn run_procedure(
        &mut self,
        client: &mut Client,
        function: &Function,
        read_as: &Text,
        text: &str,
        params: &[Param<'_>],
    ) -> Result<Returned, Interrupt> {
        let settings = Settings {
            procedure: true,
            identity_insert: client.settings().identity_insert.clone(),
            ..self.state.compiling_stored(read_as)
        };
        let compiled =
            self.state.compile(client, text, &settings, false).await.map_err(Failure::of_statement)?;
        let program = compiled.program;
        let (mut variables, asked) = bind(&mut self.state, client, function, &program, params).await?;
        let running = Running { name: function.name.clone(), oid: function.oid, status: None };
        let transactions = self.state.procedures.backend.transaction_depth();
        let caller = self.state.nesting.running.replace(running);
        let errors_of_caller = std::mem::take(&mut self.state.nesting.worst);
        let ran = self.run_text(client, &program, &mut variables).await;
        let running = std::mem::replace(&mut self.state.nesting.running, caller);
        let worst = std::mem::replace(&mut self.state.nesting.worst, errors_of_caller);
        ran?;
        let now = self.state.procedures.backend.transaction_depth();
        if now != transactions {
            let message = mismatch(transactions, now, read_as.dialect);
            fail(&mut self.state, client, message.in_procedure(&function.name).into()).await?;
        }
        let output = |(index, parameter): &(usize, usize)| {
            let declaration = program.parameters.get(*parameter)?;
            let variable = variables.get(&declaration.name)?;
            Some(OutputValue {
                index: *index,
                name: bare(&declaration.name).to_owned(),
                value: variable.value.clone().into_owned(),
                pg_type: PgType::from_oid(variable.sql_type.oid),
            })
        };
        let status = running.map_or(0, |running| running.status(worst));
        Ok(Returned {
            error: client.reply.error,
            row_count: Some(client.reply.row_count),
            ..Returned::outputs(status, asked.iter().filter_map(output).collect())
        })
    }
}

/// Reads the procedure, or the one that has replaced it, from PostgreSQL, which checks that the caller may execute
/// it.
async fn stored(
    state: &mut State,
    client: &mut Client,
    function: &Arc<Function>,
    params: &[Param<'_>],
) -> Result<(Arc<Function>, Stored), Interrupt> {
    let mut function = function.clone();
    let mut tried = false;
    loop {
        let error = match ask_for(&mut state.procedures.backend, &function).await {
            Ok(stored) => return Ok((function, stored)),
            Err(error) => error,
        };
        // undefined_function: it was created anew
        if tried || error.sqlstate() != Some("42883") {
            state.procedures.backend.check(&error, client);
            return Err(Failure::of_call(&error).into());
        }
        tried = true;
        state.gateway.reload_catalogue(Reason::Refused).await;
        function = match state.procedures.find_again(client, &function, params).await {
            Some(again) => again,
            None => return Err(Failure::of_call(&error).into()),
        };
    }
}

async fn ask_for(backend: &mut Backend, function: &Function) -> Result<Stored, PgError> {
    backend.leave_standby().await?;
    backend.pin();
    let rows = backend.ask(&format!("select * from tsql.text_to_run({})", function.oid)).await?;
    let mut values = rows.into_iter().flatten().map(Option::unwrap_or_default);
    Ok(Stored { text: values.next().unwrap_or_default(), tables: values.next().unwrap_or_default() })
}

/// Binds the parameters to their values; for the requested outputs, the positions in the call and in the procedure.
async fn bind(
    state: &mut State,
    client: &mut Client,
    function: &Function,
    program: &Program,
    params: &[Param<'_>],
) -> Result<(Variables<'static>, Vec<(usize, usize)>), Interrupt> {
    let dialect = client.dialect();
    let (slots, asked) = assign(function, params, &dialect)
        .map_err(|error| Failure::of_statement(error.to_message(function)))?;
    let zone = state.gateway.zone();
    let mut variables = Variables::default();
    for (position, declaration) in program.parameters.iter().enumerate() {
        let given = slots.get(position).copied().flatten().and_then(|index| params.get(index));
        if let Some(param) = given {
            check_table(param, declaration).map_err(Failure::of_statement)?;
        }
        let sent = given.and_then(Param::table);
        let value = match (given.filter(|_| sent.is_none()), &declaration.value) {
            (Some(param), _) => parameter_value(param, declaration, &dialect)
                .map(|value| value.into_owned())
                .map_err(Failure::of_statement)?,
            (None, Some(default)) => state.value(client, default, &Variables::default()).await?,
            (None, None) => return Err(missing(&function.name, &declaration.shown).into()),
        };
        let refused = |number: i32, text: &str| {
            let text = format!("Parameter '{}' of {}: {text}", declaration.shown, function.name);
            Failure::of_statement(ServerMessage::error(number, 16, text).in_procedure(&function.name))
        };
        let value = cast(value, sql_type(declaration), &zone)
            .map_err(|error| refused(error.number(), &error.to_string()))?;
        let value = fitted(value, &declaration.of, client.settings().arithabort)
            .map_err(|error| refused(error.number, &error.text))?;
        variables.declare(declaration);
        variables.fill(&declaration.name, value).map_err(Failure::of_statement)?;
        if let Some(sent) = sent {
            variables.send(&declaration.name, sent.clone().into_owned()).map_err(Failure::of_statement)?;
        }
    }
    Ok((variables, asked))
}

/// The session's temporary tables, an array of oids.
pub async fn temporary_tables(backend: &mut Backend, client: &mut Client) -> Result<String, Interrupt> {
    let rows = backend.rows(client, "select tsql.temporary_tables()").await?;
    Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default())
}

/// Drops the temporary tables that did not exist `before`: those that a procedure or a text has left.
pub async fn forget_tables(
    backend: &mut Backend,
    client: &mut Client,
    before: &str,
) -> Result<(), Interrupt> {
    if backend.is_open() {
        backend.rows(client, &format!("select tsql.forget_tables('{before}')")).await?;
    }
    Ok(())
}

/// 266: a procedure ended with more or fewer transactions than at its start.
fn mismatch(before: i32, now: i32, dialect: &Dialect) -> ServerMessage {
    let what = match dialect.is_ase {
        true => "Transaction count after EXECUTE indicates that a COMMIT or ROLLBACK TRAN is missing.",
        false => {
            "Transaction count after EXECUTE indicates a mismatching number of BEGIN and COMMIT statements."
        }
    };
    let text = format!("{what} Previous count = {before}, current count = {now}.");
    ServerMessage { state: 2, ..ServerMessage::error(266, 16, text) }
}

fn missing(procedure: &str, parameter: &str) -> Failure {
    let text = format!(
        "Procedure or function '{procedure}' expects parameter '{parameter}', which was not supplied."
    );
    Failure::of_statement(ServerMessage { state: 4, ..ServerMessage::error(201, 16, text) })
}
