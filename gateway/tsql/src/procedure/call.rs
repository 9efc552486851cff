//! EXECUTE in a procedure.

use super::context::Context;
use super::run::Run;
use super::statement::OWNERS_RIGHTS;
use super::variable::{BODY, CALL, CONTEXT, DETAIL};
use super::writer::{quoted, BodyWriter, Purpose, Rows, SENT};
use crate::error::Error;
use crate::facts::types::{Type, MOST_FRACTION};
use crate::postgres::Scalar;
use crate::resolve::names::{array, literal, schema_of};
use crate::translate::{self, Value};
use crate::tree::{ArgumentValue, Execute, Expression};

/// The type of an argument for `tsql.converted`: a T-SQL type if PostgreSQL's type does not determine it.
fn kind(of: &Type) -> String {
    match of.name {
        "money" | "smallmoney" => format!("tsql.{}", of.name),
        "datetime2" | "time" | "datetimeoffset" => {
            format!("{}({})", of.name, of.fraction.unwrap_or(MOST_FRACTION))
        }
        _ => of.sql(),
    }
}

impl<'t> BodyWriter<'t> {
    pub(super) fn execute(
        &mut self,
        execute: &Execute,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        self.own_connection = true;
        let name = match &execute.procedure {
            Ok(name) => name,
            Err(variable) => {
                let why = "a procedure is called by its name";
                return Err(Error::refused(&format!("exec {}", variable.name), why, line));
            }
        };
        if name.is_temporary() {
            return Err(Error::refused(&name.name, "what it calls may be run by the gateway", line));
        }
        if name.name.eq_ignore_ascii_case("sp_executesql") {
            return Err(Error::refused("sp_executesql", OWNERS_RIGHTS, line));
        }
        self.declare(CALL, "tsql.call_result");
        let call = quoted(CALL);
        let (mut names, mut outputs, mut values, mut kinds) = (vec![], vec![], vec![], vec![]);
        let (mut takes, mut taken) = (Vec::new(), Vec::new());
        for argument in &execute.arguments {
            let value = match &argument.value {
                ArgumentValue::Default if argument.name.is_some() => continue,
                ArgumentValue::Default => {
                    let why = "name the parameter, or leave it out";
                    return Err(Error::refused("default", why, argument.at));
                }
                ArgumentValue::Value(value) => value.clone(),
                ArgumentValue::Output(variable) => Expression::Variable(variable.clone()),
            };
            let (scope, mut named) = self.named();
            let value = translate::value(&value, scope, &mut named, None)?;
            values.push(value.sql.cast("text").to_string());
            kinds.push(literal(&value.of.map_or_else(|| String::from("text"), |of| kind(&of))));
            names.push(literal(argument.name.as_deref().unwrap_or("")));
            let output = match &argument.value {
                ArgumentValue::Output(variable) => Some(variable),
                _ => None,
            };
            outputs.push(String::from(if output.is_some() { "true" } else { "false" }));
            takes.push(match output {
                Some(variable) => {
                    let of = self.type_of(&variable.name, argument.at.line)?;
                    let place = values.len();
                    taken.push(format!(
                        "{} := ({call}.outputs)[{place}]::{};",
                        quoted(&variable.name),
                        of.sql()
                    ));
                    literal(&self.taken(of, argument.at.line)?)
                }
                None => String::from("null"),
            });
        }
        let status = match &execute.status {
            Some(status) => {
                let of = self.type_of(&status.name, line)?;
                takes.push(literal(&self.taken(of, line)?));
                Some((quoted(&status.name), of.sql()))
            }
            None => None,
        };
        let mut parts = vec![
            literal(&self.schema),
            literal(schema_of(name)),
            literal(&name.name),
            array(names, "text"),
            array(outputs, "boolean"),
            array(values, "text"),
            array(kinds, "text"),
        ];
        let block = context.handler.as_try().filter(|_| self.purpose == Purpose::Procedure);
        let takes_over = block.is_some() || self.hands_over(context);
        parts.push(status.as_ref().map_or_else(|| String::from("null"), |(_, of)| literal(of)));
        parts.push(takes_over.to_string());
        parts.push(array(takes, "text"));
        let mut lines = vec![format!("{call} := tsql.execute({});", parts.join(", "))];
        if takes_over {
            lines.push(String::from("if tsql.is_handed_over() then"));
            let leaving = match block {
                Some(block) => self.to_catch(block, "tsql.handed_over()", None, context),
                None => vec![format!("exit {};", quoted(BODY))],
            };
            lines.extend(leaving.iter().map(|line| format!("  {line}")));
            lines.push(String::from("end if;"));
        }
        let status_of_failed = status.as_ref().map(|(name, of)| {
            let failed = format!("tsql.status_of_failed(sqlstate, {}, {})", quoted(DETAIL), quoted(CONTEXT));
            format!("{name} := coalesce({failed}::{of}, {name});")
        });
        lines.extend(status.map(|(name, of)| format!("{name} := {call}.value::{of};")));
        lines.extend(taken);
        if self.tracks_errors {
            lines.push(format!("\"@@error\" := {call}.error;"));
        }
        let rows = match self.rows {
            Rows::Asked => Some(format!("{call}.rows")),
            _ => Some(String::from(SENT)),
        };
        self.run(context, line, Run { rows, calls: true, sent: status_of_failed, ..Run::new(lines) });
        self.has_sent = true;
        Ok(())
    }

    /// The conversion of a call's result, which `tsql.execute` calls "value", to the type of the variable.
    fn taken(&self, of: Type, line: u32) -> Result<String, Error> {
        let value = Value::unknown(Scalar::column("value"));
        Ok(translate::assigned(value, of, line, self.scope.dialect)?.sql.to_string())
    }
}
