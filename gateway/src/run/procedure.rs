//! T-SQL procedures run by the gateway itself.
//!
//! PostgreSQL stores their name, arguments, rights and text. The statements run with the caller's rights, as dynamic
//! SQL does (SQL Server: "Customizing Permissions with Impersonation": no ownership chain covers dynamic SQL).

use super::fitted::fitted;
use super::interpreter::Interpreter;
use super::running::{deepest, too_deep, Running};
use super::variables::{bare, check_table, parameter_value, Variables};
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
    /// Calls a procedure that the gateway runs. None: it failed and the call has been ended.
    pub async fn call_text(
        &mut self,
        client: &mut Client,
        function: &Arc<Function>,
        params: &[Param<'_>],
        form: Form,
    ) -> Result<Returned, Interrupt> {
        if self.depth > deepest(&client.dialect()) {
            return Err(too_deep(&client.dialect()).into());
        }
        let start = Instant::now();
        let (function, stored) = self.stored(client, function, params).await?;
        let Some(read_as) = function.runs_here() else {
            let text = format!("Procedure '{}' is another one now: call it again.", function.name);
            return Err(Failure::of_statement(ServerMessage::error(2812, 16, text)).into());
        };
        let caller = self.procedures.backend.database.clone();
        if function.schema != TEMPORARY {
            self.procedures.backend.database.clone_from(&function.schema);
        }
        // a call outside of a batch is one level deep too
        let depth = self.depth;
        self.depth = depth.max(1);
        client.reply.nesting += 1;
        let around = self.identities.enter();
        let nulls_equal = client.set_nulls_equal(read_as.nulls_equal);
        let ran = Box::pin(self.run_procedure(client, &function, read_as, &stored.text, params)).await;
        client.set_nulls_equal(nulls_equal);
        client.reply.nesting -= 1;
        self.identities.leave(around);
        self.depth = depth;
        let ran = match ran {
            Err(Interrupt::Session(error)) => return Err(Interrupt::Session(error)),
            ran => {
                let forgotten = self.forget_tables(client, &stored.tables).await;
                ran.and_then(|ran| forgotten.map(|()| ran))
            }
        };
        self.procedures.backend.database = caller;
        self.procedures.answered(&function, start, &ran);
        match ran {
            Ok(returned) => Ok(returned),
            Err(interrupt) => {
                if matches!(&interrupt, Interrupt::Failed(failure) if failure.stage == Stage::Reported) {
                    end_failed_inside(&mut client.reply, &[], params, form, &self.gateway.zone());
                }
                Err(interrupt)
            }
        }
    }

    /// Reads the procedure, or the one that has replaced it, from PostgreSQL, which checks that the caller may execute
    /// it.
    async fn stored(
        &mut self,
        client: &mut Client,
        function: &Arc<Function>,
        params: &[Param<'_>],
    ) -> Result<(Arc<Function>, Stored), Interrupt> {
        let mut function = function.clone();
        let mut tried = false;
        loop {
            let error = match self.ask_for(&function).await {
                Ok(stored) => return Ok((function, stored)),
                Err(error) => error,
            };
            // undefined_function: it was created anew
            if tried || error.sqlstate() != Some("42883") {
                self.procedures.backend.check(&error, client);
                return Err(Failure::of_call(&error).into());
            }
            tried = true;
            self.gateway.reload_catalogue(Reason::Outdated).await;
            function = match self.procedures.find_again(client, &function, params).await {
                Some(again) => again,
                None => return Err(Failure::of_call(&error).into()),
            };
        }
    }

    async fn ask_for(&mut self, function: &Function) -> Result<Stored, PgError> {
        let backend = &mut self.procedures.backend;
        backend.leave_standby().await?;
        backend.pin();
        let rows = backend.ask(&format!("select * from tsql.text_to_run({})", function.oid)).await?;
        let mut values = rows.into_iter().flatten().map(Option::unwrap_or_default);
        Ok(Stored { text: values.next().unwrap_or_default(), tables: values.next().unwrap_or_default() })
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
            database: self.procedures.backend.database.clone(),
            databases: self.databases(),
            quoted_identifiers: read_as.quoted_identifiers,
            dialect: read_as.dialect,
            nulls_equal: read_as.nulls_equal,
            procedure: true,
            identity_insert: client.settings().identity_insert.clone(),
            ..Settings::default()
        };
        let compiled = self.compile(client, text, &settings, false).await.map_err(Failure::of_statement)?;
        let program = compiled.program;
        let (mut variables, asked) = self.bind(client, function, &program, params).await?;
        let running = Running::new(function.name.clone(), function.oid);
        let transactions = self.procedures.backend.transaction_depth();
        let caller = self.running.replace(running);
        let errors_of_caller = std::mem::take(&mut self.worst);
        let ran = self.run_text(client, &program, &mut variables).await;
        let running = std::mem::replace(&mut self.running, caller);
        let worst = std::mem::replace(&mut self.worst, errors_of_caller);
        ran?;
        let now = self.procedures.backend.transaction_depth();
        if now != transactions {
            let message = mismatch(transactions, now, read_as.dialect);
            self.fail(client, message.in_procedure(&function.name).into()).await?;
        }
        let output = |(index, place): &(usize, usize)| {
            let declaration = program.parameters.get(*place)?;
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

    /// Binds the parameters to their values; for the requested outputs, the positions in the call and in the procedure.
    async fn bind(
        &mut self,
        client: &mut Client,
        function: &Function,
        program: &Program,
        params: &[Param<'_>],
    ) -> Result<(Variables<'static>, Vec<(usize, usize)>), Interrupt> {
        let dialect = client.dialect();
        let (slots, asked) = assign(function, params, &dialect)
            .map_err(|error| Failure::of_statement(error.to_message(function)))?;
        let zone = self.gateway.zone();
        let mut variables = Variables::default();
        for (place, declaration) in program.parameters.iter().enumerate() {
            let given = slots.get(place).copied().flatten().and_then(|index| params.get(index));
            if let Some(param) = given {
                check_table(param, declaration).map_err(Failure::of_statement)?;
            }
            let sent = given.and_then(Param::table);
            let value = match (given.filter(|_| sent.is_none()), &declaration.value) {
                (Some(param), _) => parameter_value(param, declaration, &dialect)
                    .map(|value| value.into_owned())
                    .map_err(Failure::of_statement)?,
                (None, Some(default)) => self.value(client, default, &Variables::default()).await?,
                (None, None) => return Err(missing(&function.name, &declaration.shown).into()),
            };
            let refused = |number: i32, text: &str| {
                let text = format!("Parameter '{}' of {}: {text}", declaration.shown, function.name);
                Failure::of_statement(ServerMessage::error(number, 16, text).in_procedure(&function.name))
            };
            let value = cast(&value, sql_type(declaration), &zone)
                .map_err(|error| refused(error.number(), &error.to_string()))?;
            let value = fitted(value, &declaration.of, client.settings().arithabort)
                .map_err(|error| refused(error.number, &error.text))?;
            variables.declare(declaration);
            variables.fill(&declaration.name, value).map_err(Failure::of_statement)?;
            if let Some(sent) = sent {
                variables
                    .send(&declaration.name, sent.clone().into_owned())
                    .map_err(Failure::of_statement)?;
            }
        }
        Ok((variables, asked))
    }

    /// The session's temporary tables, an array of oids.
    pub async fn temporary_tables(&mut self, client: &mut Client) -> Result<String, Interrupt> {
        let backend = &mut self.procedures.backend;
        match backend.ask("select tsql.temporary_tables()").await {
            Ok(rows) => Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default()),
            Err(error) => {
                backend.check(&error, client);
                Err((&error).into())
            }
        }
    }

    /// Drops the temporary tables that did not exist `before`: those that a procedure or a text has left.
    pub async fn forget_tables(&mut self, client: &mut Client, before: &str) -> Result<(), Interrupt> {
        let backend = &mut self.procedures.backend;
        if !backend.is_open() {
            return Ok(());
        }
        match backend.ask(&format!("select tsql.forget_tables('{before}')")).await {
            Ok(_) => Ok(()),
            Err(error) => {
                backend.check(&error, client);
                Err((&error).into())
            }
        }
    }

    /// Notes an error sent to the client.
    pub fn note(&mut self, error: &ServerMessage) {
        self.worst = self.worst.max(error.severity);
    }

    /// A message with the line of its statement and the procedure that contains it.
    pub fn placed(&self, message: ServerMessage, line: u32) -> ServerMessage {
        let message = ServerMessage { line, ..message };
        match &self.running {
            Some(running) => message.in_procedure(&running.name),
            None => message,
        }
    }
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
