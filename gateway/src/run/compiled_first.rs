//! Checks all statements of a text before any of it runs.

use super::interpreter::Interpreter;
use super::session_variables::type_of;
use super::variables::Variables;
use crate::backend::Unfinished;
use crate::client::Client;
use crate::convert::SqlType;
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::program::{sql_type, Declaration, Program, Sql, CLOCKS};
use tsql::facts::errors::is_deferred;

impl Interpreter {
    /// Reports the error of the first statement that does not fit its tables, of those behind a statement with an
    /// effect: then nothing of the text runs. A procedure was checked when it was created.
    pub async fn compile_first(
        &mut self,
        client: &mut Client,
        program: &Program,
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        if self.running.is_some() || client.settings().only_formats {
            return Ok(());
        }
        let statements = program.compiled_first();
        if statements.is_empty() {
            return Ok(());
        }
        let declared = program.declarations();
        for (line, sql) in statements {
            let Some(types) = types_of(sql, variables, &declared) else { continue };
            match self.procedures.backend.compile(client, sql, &types).await {
                Ok(()) => {}
                Err(Unfinished::Refused(error) | Unfinished::Failed(error)) => {
                    self.procedures.backend.check(&error, client);
                    let failure = Failure::from(&error);
                    let is_wrong = failure.ends == Ends::Text && !is_deferred(failure.message.number);
                    if is_wrong || error.is_fatal() {
                        return self.failed(client, failure, line).await;
                    }
                }
                Err(unfinished) => return Err(unfinished.into()),
            }
        }
        Ok(())
    }
}

/// The types of the variables of `sql`; None if one is known only when it runs.
fn types_of(sql: &Sql, variables: &Variables<'_>, declared: &[&Declaration]) -> Option<Vec<SqlType>> {
    let of = |name: &String| {
        if let Some(variable) = variables.get(name) {
            return Some(variable.sql_type);
        }
        if CLOCKS.contains(&name.as_str()) {
            return Some(SqlType::TIMESTAMP);
        }
        match declared.iter().find(|declaration| declaration.name == *name) {
            Some(declaration) => Some(sql_type(declaration)),
            None => name.starts_with("@@").then(|| type_of(name)),
        }
    };
    sql.variables.iter().map(of).collect()
}
