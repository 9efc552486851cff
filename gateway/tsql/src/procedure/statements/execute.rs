//! EXECUTE in a procedure.

use super::OWNERS_RIGHTS;
use crate::bind::{self, Value};
use crate::error::Error;
use crate::facts::types::{Type, MOST_FRACTION, UNKNOWN};
use crate::plpgsql::Step;
use crate::postgres::{call, Scalar};
use crate::procedure::context::Context;
use crate::procedure::run;
use crate::procedure::run::{sqlstate, Run};
use crate::procedure::variable::{field, variable, BODY, CALL, CONTEXT, DETAIL, ERROR};
use crate::procedure::writer::{BodyWriter, Purpose, RowCount, Rows};
use crate::resolve::names::schema_of;
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

pub(super) fn execute<'t>(
    writer: &mut BodyWriter<'t>,
    execute: &Execute,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    writer.own_connection = true;
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
    writer.declare(CALL, "tsql.call_result");
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
        let (scope, mut named) = writer.named();
        let value = bind::value(&value, scope, &mut named, None)?;
        values.push(value.sql.cast("text"));
        kinds.push(Scalar::Text(value.of.in_tsql().map_or_else(|| String::from("text"), |of| kind(&of))));
        names.push(Scalar::text(argument.name.as_deref().unwrap_or("")));
        let output = match &argument.value {
            ArgumentValue::Output(variable) => Some(variable),
            _ => None,
        };
        outputs.push(Scalar::Boolean(output.is_some()));
        takes.push(match output {
            Some(variable) => {
                let of = writer.type_of(&variable.name, argument.at.line)?;
                let output = Scalar::Element(Box::new(field(CALL, "outputs")), values.len());
                taken.push(Step::assign(variable.name.as_str(), output.cast(of.sql())));
                self::taken(writer, of, argument.at.line)?
            }
            None => Scalar::Null,
        });
    }
    let status = match &execute.status {
        Some(status) => {
            let of = writer.type_of(&status.name, line)?;
            takes.push(self::taken(writer, of, line)?);
            Some((status.name.as_str(), of.sql()))
        }
        None => None,
    };
    let block = context.handler.as_try().filter(|_| writer.purpose == Purpose::Procedure);
    let takes_over = block.is_some() || run::hands_over(writer, context);
    let parts = [
        Scalar::text(writer.schema.as_str()),
        Scalar::text(schema_of(name)),
        Scalar::text(name.name.as_str()),
        Scalar::Array(names, "text"),
        Scalar::Array(outputs, "boolean"),
        Scalar::Array(values, "text"),
        Scalar::Array(kinds, "text"),
        status.as_ref().map_or(Scalar::Null, |(_, of)| Scalar::text(of.as_str())),
        Scalar::Boolean(takes_over),
        Scalar::Array(takes, "text"),
    ];
    let mut steps = vec![Step::assign(CALL, call("tsql.execute", parts))];
    if takes_over {
        let leaving = match block {
            Some(block) => {
                run::to_catch(writer, block, (call("tsql.handed_over", []), Scalar::Null), None, context)
            }
            None => vec![Step::exit(BODY)],
        };
        steps.push(Step::if_(call("tsql.is_handed_over", []), leaving));
    }
    let status_of_failed = status.as_ref().map(|(name, of)| {
        let parts = [sqlstate(), variable(DETAIL), variable(CONTEXT)];
        let failed = call("tsql.status_of_failed", parts).cast(of.clone());
        Step::assign(*name, call("coalesce", [failed, variable(name)]))
    });
    steps.extend(status.map(|(name, of)| Step::assign(name, field(CALL, "value").cast(of))));
    steps.extend(taken);
    if writer.tracks_errors {
        steps.push(Step::assign(ERROR, field(CALL, "error")));
    }
    let rows = match writer.rows {
        Rows::Asked => RowCount::Value(field(CALL, "rows")),
        _ => RowCount::SENT,
    };
    run::run(writer, context, line, Run { calls: true, sent: status_of_failed, ..Run::leaving(steps, rows) });
    writer.has_sent = true;
    Ok(())
}

/// The conversion of a call's result, which `tsql.execute` calls "value", to the type of the variable.
fn taken(writer: &BodyWriter<'_>, of: Type, line: u32) -> Result<Scalar, Error> {
    let value = Value::new(Scalar::column("value"), UNKNOWN);
    let conversion = bind::assigned(value, of, line, writer.scope.dialect)?.sql;
    Ok(Scalar::text(conversion.to_string()))
}
