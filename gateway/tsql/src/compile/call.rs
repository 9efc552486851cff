//! Procedure calls of a batch.

use super::compiler::{numbered_sql, Compiler};
use crate::error::Error;
use crate::facts::system;
use crate::program::{Action, Argument, Execute, Expression, Kind, Query};
use crate::resolve::names;
use crate::translate::{self, Numbered};
use crate::tree::{self, ArgumentValue};

impl Compiler<'_> {
    pub(super) fn execute(&mut self, execute: &tree::Execute) -> Result<Execute, Error> {
        if let Some(status) = &execute.status {
            self.declared(status)?;
        }
        let qualified = match &execute.procedure {
            Ok(procedure) => match names::schema_of(procedure)? {
                "" => procedure.name.clone(),
                schema => format!("{schema}.{}", procedure.name),
            },
            Err(variable) => {
                self.declared(variable)?;
                variable.name.clone()
            }
        };
        let arguments = execute.arguments.iter().map(|argument| self.argument(argument));
        Ok(Execute {
            status: execute.status.as_ref().map(|status| status.name.clone()),
            procedure: qualified,
            arguments: arguments.collect::<Result<_, _>>()?,
        })
    }

    fn argument(&mut self, argument: &tree::Argument) -> Result<Argument, Error> {
        let name = argument.name.as_deref().unwrap_or("").trim_start_matches('@').to_owned();
        Ok(match &argument.value {
            ArgumentValue::Default => Argument { name, value: None, output: false, taken: None },
            ArgumentValue::Value(value) => {
                Argument { name, value: Some(self.value(value, None)?), output: false, taken: None }
            }
            ArgumentValue::Output(variable) => {
                let of = self.scope.type_of(&variable.name, variable.at.line)?;
                let taken = match of.filter(|of| !of.is_plain()) {
                    Some(of) => Some(self.taken(&[Some(of)], variable.at.line)?),
                    None => None,
                };
                let value = Some(Expression::Variable(variable.name.clone()));
                Argument { name, value, output: true, taken }
            }
        })
    }

    /// `insert … execute` of a system procedure, which is a function of PostgreSQL that gives rows.
    pub(super) fn insert_execute(
        &mut self,
        insert: &tree::Insert,
        execute: &tree::Execute,
        line: u32,
    ) -> Result<Action, Error> {
        let rows = match &execute.procedure {
            Ok(name) if execute.status.is_none() => {
                let own = name.name.to_lowercase();
                let schema = system::rows_of(&own, self.scope.sybase);
                schema
                    .filter(|_| matches!(names::schema_of(name), Ok("" | "sys")))
                    .map(|schema| (schema, own))
            }
            _ => None,
        };
        let Some((schema, own)) = rows else { return Err(no_insert_execute(line)) };
        let mut numbered = Numbered::default();
        let mut arguments = Vec::new();
        for argument in &execute.arguments {
            let ArgumentValue::Value(value) = &argument.value else {
                let why = "it takes no default and no output";
                return Err(Error::refused("insert … execute", why, argument.at));
            };
            let value = translate::value(value, &self.scope, &mut numbered, None)?.sql;
            arguments.push(match &argument.name {
                Some(name) => {
                    let name = names::identifier(name.trim_start_matches('@'), argument.at.line)?;
                    format!("{name} => {value}")
                }
                None => value,
            });
        }
        let into = match &insert.target {
            tree::Target::Table(table) => names::table(table)?,
            tree::Target::Variable(variable) => names::table(&names::table_variable(variable))?,
        };
        let columns = names::in_parentheses(&insert.columns)?;
        let arguments = arguments.join(", ");
        let rows = format!("select * from {schema}.{}({arguments})", names::quoted(&own));
        let sql = numbered_sql(&format!("insert into {into}{columns} {rows}"), numbered)?;
        let query = Query {
            sql,
            kind: Kind::Change,
            assigns: Vec::new(),
            columns: None,
            into: Some(into),
            made: None,
        };
        Ok(Action::Query(query))
    }
}

pub(super) fn no_insert_execute(line: u32) -> Error {
    let why = "that is for system procedures; run the procedure's query, or select into a table";
    Error::refused("insert … execute", why, line)
}
