//! PRINT, RAISERROR and THROW in a procedure.

use crate::error::Error;
use crate::message;
use crate::plpgsql::Step;
use crate::postgres::{call, Body, Listed, Query, Scalar};
use crate::procedure::context::Context;
use crate::procedure::run;
use crate::procedure::run::Run;
use crate::procedure::variable::{caught_name, field, DOOMED, ERROR, MESSAGE};
use crate::procedure::writer::{BodyWriter, Purpose};
use crate::tree::{Expression, Raise, Throw};

pub(super) fn print<'t>(
    writer: &mut BodyWriter<'t>,
    text: &Expression,
    arguments: &[Expression],
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let (scope, mut named) = writer.named();
    let text = message::printed(text, arguments, scope, &mut named)?;
    run::run_with_end(writer, context, line, Run::new([Step::notice(None, text, None)]));
    Ok(())
}

pub(super) fn raise<'t>(
    writer: &mut BodyWriter<'t>,
    raise: &Raise,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    writer.declare(MESSAGE, "tsql.error");
    let parts = ["number", "severity", "state", "message"].map(|part| field(MESSAGE, part));
    let parts = with_origin(writer, parts, line);
    let (scope, mut named) = writer.named();
    let error = message::raised(raise, line, scope, &mut named)?;
    let error = call("row", with_origin(writer, error, line)).cast("tsql.error");
    let mut steps = vec![Step::assign(MESSAGE, error)];
    let is_error = field(MESSAGE, "severity").infix(">", Scalar::number(10));
    let handler = context.handler.only_try();
    if !handler.is_none() {
        let raise = Step::Perform(call("tsql.raise", parts.as_slice()));
        steps.push(Step::if_(is_error.clone(), [raise]));
    }
    steps.push(Step::Perform(call("tsql.tell", parts)));
    let failed = Scalar::either(is_error.clone(), Scalar::text("failed"), Scalar::text(""));
    steps.extend(run::end_notice(writer, failed));
    let run = Run { raises: true, ..Run::new(steps) };
    run::run(writer, &Context { handler, ..context.clone() }, line, run);
    run::lower_status(writer, MESSAGE).into_iter().for_each(|step| writer.add(step));
    if writer.tracks_errors {
        let number = field(MESSAGE, "number");
        let error = match raise {
            Raise::Severity { set_error: true, .. } => number,
            _ => Scalar::either(is_error, number, Scalar::number(0)),
        };
        writer.add(Step::assign(ERROR, error));
    }
    Ok(())
}

/// Raises an error of T-SQL, of severity 16 and state 1.
pub(in crate::procedure) fn raise_error(
    writer: &BodyWriter<'_>,
    number: u32,
    text: impl Into<String>,
    line: u32,
) -> Step {
    let [number, severity, state] = [number, 16, 1].map(Scalar::number);
    Step::Perform(call(
        "tsql.raise",
        with_origin(writer, [number, severity, state, Scalar::text(text)], line),
    ))
}

/// The parts of an error of this line.
fn with_origin(writer: &BodyWriter<'_>, parts: impl IntoIterator<Item = Scalar>, line: u32) -> Vec<Scalar> {
    parts.into_iter().chain([Scalar::number(line), Scalar::text(writer.name.as_str())]).collect()
}

pub(super) fn undoes_its_statement(writer: &BodyWriter<'_>) -> bool {
    writer.scope.dialect.errors_of_triggers_undo && matches!(writer.purpose, Purpose::Trigger { .. })
}

/// The error ends the trigger and undoes the statement that fired it (ASE Reference Manual: Commands, "rollback
/// trigger").
pub(super) fn rollback_trigger<'t>(
    writer: &mut BodyWriter<'t>,
    raise: &Raise,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let (scope, mut named) = writer.named();
    let error = message::raised(raise, line, scope, &mut named)?;
    let raise = Step::Perform(call("tsql.raise", with_origin(writer, error, line)));
    let context = Context { handler: context.handler.only_try(), ..context.clone() };
    run::run(writer, &context, line, Run { raises: true, ..Run::keeping([raise]) });
    Ok(())
}

pub(super) fn throw<'t>(
    writer: &mut BodyWriter<'t>,
    throw: Option<&Throw>,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let raise = match (throw, context.caught) {
        (None, None) => return Err(message::no_rethrow(line).with_severity(16)),
        (None, Some(number)) => {
            let fields = ["number", "severity", "state", "message", "line", "procedure"];
            call("tsql.raise", fields.map(|part| field(&caught_name(number), part)))
        }
        (Some(throw), _) => {
            let (scope, mut named) = writer.named();
            let values = message::thrown(throw, scope, &mut named)?.to_vec();
            let columns = ["number", "message", "state"].map(str::to_owned);
            let row = Query::from(Body::Values(vec![values])).named("\"@@r\"", columns.into());
            let [number, text, state] = ["number", "message", "state"].map(|part| field("@@r", part));
            let error = with_origin(writer, [number, Scalar::number(16), state, text], line);
            Scalar::Query(Box::new(Query::of([Listed::from(call("tsql.raise", error))], row)))
        }
    };
    if writer.dooms {
        writer.add(Step::assign(DOOMED, Scalar::Boolean(true)));
    }
    run::run(writer, context, line, Run { raises: true, ends: true, ..Run::keeping([Step::Perform(raise)]) });
    Ok(())
}
