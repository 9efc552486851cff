//! IF, WHILE, RETURN, TRY and CATCH.

use super::query::may_send;
use super::transaction;
use crate::bind;
use crate::error::Error;
use crate::facts::types::INT;
use crate::plpgsql::Step;
use crate::postgres::{call, Scalar};
use crate::procedure::context::{Context, Guard, Handler, Rest, Statements, Try};
use crate::procedure::run::Run;
use crate::procedure::variable::{caught_name, field, variable, BODY, CONDITION, STATUS, TRY, TRY_SETTING};
use crate::procedure::writer::{BodyWriter, Purpose, RowCount, Rows};
use crate::procedure::{run, statements};
use crate::tree::{self, Expression, Statement, StatementKind as Tree};
use std::rc::Rc;

/// The condition for a statement of PL/pgSQL.
fn condition<'t>(
    writer: &mut BodyWriter<'t>,
    condition: &Expression,
    context: &Context<'t>,
) -> Result<Scalar, Error> {
    let (scope, mut named) = writer.named();
    let value = bind::condition(condition, scope, &mut named)?;
    let hands_over = writer.has_sent && run::hands_over(writer, context);
    if context.handler.is_none() && !hands_over && !writer.tracks_errors && writer.rows != Rows::Asked {
        run::none(writer);
        return Ok(value);
    }
    writer.declare(CONDITION, "boolean");
    // after an error it is undefined which branch the procedure would take
    let run = Run { ends: true, ..Run::new([Step::assign(CONDITION, value)]) };
    run::run(writer, context, condition.at().line, run);
    Ok(variable(CONDITION))
}

pub(super) fn if_<'t>(
    writer: &mut BodyWriter<'t>,
    condition: &'t Expression,
    then: &'t [Statement],
    otherwise: &'t [Statement],
    context: &Context<'t>,
) -> Result<(), Error> {
    if context.region.is_some() {
        if let Some(known) = transaction::always(condition) {
            run::none(writer);
            return statements::body(writer, &Statements::of(if known { then } else { otherwise }), context);
        }
    }
    let condition = self::condition(writer, condition, context)?;
    let then = writer.nested(|writer| statements::body(writer, &Statements::of(then), context))?;
    let otherwise = writer.nested(|writer| statements::body(writer, &Statements::of(otherwise), context))?;
    writer.steps.push(Step::If(vec![(condition, then)], otherwise));
    Ok(())
}

pub(super) fn while_<'t>(
    writer: &mut BodyWriter<'t>,
    condition: &'t Expression,
    body: &'t [Statement],
    context: &Context<'t>,
) -> Result<(), Error> {
    // in the next pass its first statement follows its last one
    writer.has_sent |= tree::every(body).any(|statement| may_send(&statement.kind));
    let body = writer.nested(|writer| {
        let condition = self::condition(writer, condition, context)?;
        writer.add(Step::ExitUnless(condition));
        let inside = Context { loops: context.loops + 1, rest: Rest::default(), ..context.clone() };
        statements::body(writer, &Statements::of(body), &inside)
    })?;
    writer.steps.push(Step::Loop(body));
    Ok(())
}

/// BREAK and CONTINUE: `step` leaves the loop or its pass.
pub(super) fn leave_loop<'t>(
    writer: &mut BodyWriter<'t>,
    step: Step,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    if let Some(region) = context.region.as_ref().filter(|region| region.loops == context.loops) {
        let what = if step == Step::Continue { "continue" } else { "break" };
        let why = format!("it would leave the transaction begun in line {} open", region.line);
        return Err(Error::refused(what, &why, line));
    }
    leave_tries(writer, context, |block| block.loops == context.loops);
    writer.add(step);
    Ok(())
}

/// The settings outside of the TRY blocks that are left, from the inner ones on.
pub(super) fn leave_tries<'t>(
    writer: &mut BodyWriter<'t>,
    context: &Context<'t>,
    is_left: impl Fn(&Try<'t>) -> bool,
) {
    let mut handler = &context.handler;
    while let Some(block) = handler.as_try().filter(|block| is_left(block)) {
        if block.marks {
            writer.set(TRY_SETTING, marked_by(writer, &block.outer));
        }
        handler = &block.outer;
    }
}

pub(super) fn return_<'t>(
    writer: &mut BodyWriter<'t>,
    value: Option<&Expression>,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    if let Some(value) = value {
        let status = match writer.purpose {
            Purpose::Procedure => call("coalesce", [writer.value(value, INT)?, Scalar::number(0)]),
            Purpose::Function(of) => writer.value(value, of)?,
            Purpose::Table(_) | Purpose::Trigger { .. } => return Err(Error::returns_a_value(line)),
        };
        // RETURN leaves @@error unchanged
        let tracks = std::mem::replace(&mut writer.tracks_errors, false);
        let run = Run { ends: true, ..Run::keeping([Step::assign(STATUS, status)]) };
        run::run(writer, context, line, run);
        writer.tracks_errors = tracks;
    }
    if writer.scope.dialect.return_counts_itself {
        // a statement below it is not the next one
        writer.rows_follow = false;
        // with a value it counts one, like every assignment
        let rows = RowCount::of(u32::from(value.is_some()));
        writer.kept_rows(rows).into_iter().for_each(|step| writer.add(step));
    }
    writer.add(Step::exit(BODY));
    Ok(())
}

pub(super) fn try_catch<'t>(
    writer: &mut BodyWriter<'t>,
    body: &Statements<'t>,
    guard: Guard<'t>,
    context: &Context<'t>,
) -> Result<(), Error> {
    let number = writer.number();
    let marks = body
        .statements()
        .iter()
        .any(|statement| tree::every(statement.alone()).any(|inner| runs_others(&inner.kind)));
    let label = format!("@@try {number}");
    let block = Rc::new(Try {
        number,
        label: label.clone(),
        outer: context.handler.clone(),
        catch: guard.catch,
        loops: context.loops,
        marks,
    });
    let caught = caught_name(number);
    writer.declare(caught.as_str(), "tsql.error");
    writer.add(Step::assign(caught.as_str(), Scalar::Null));
    if marks {
        writer.marks_try = true;
        writer.set(TRY_SETTING, marked(writer));
    }
    if context.guard.is_some() {
        return Err(Error::refused("begin transaction", "around two TRY blocks", guard.line));
    }
    let handler = Handler::Try(block);
    let inside = Context { handler, guard: context.region.is_some().then_some(guard), ..context.clone() };
    writer.labelled_block(&label, |writer| statements::body(writer, body, &inside))?;
    if marks {
        writer.set(TRY_SETTING, marked_by(writer, &context.handler));
    }
    let inside = Context { caught: Some(number), ..context.clone() };
    let steps = writer.nested(|writer| statements::body(writer, &Statements::of(guard.catch), &inside))?;
    writer.steps.push(Step::if_(field(&caught, "number").is_null(false), steps));
    writer.kept_rows(RowCount::of(0)).into_iter().for_each(|step| writer.add(step));
    Ok(())
}

/// The setting inside a TRY block: whether errors of calls are passed to it by a return.
fn marked(writer: &BodyWriter<'_>) -> Scalar {
    Scalar::text(if writer.purpose == Purpose::Procedure { "returned" } else { "on" })
}

/// The setting outside a TRY block, inside this one.
pub(super) fn marked_by<'t>(writer: &BodyWriter<'t>, handler: &Handler<'t>) -> Scalar {
    let mut handler = handler;
    while let Some(block) = handler.as_try() {
        if block.marks {
            return marked(writer);
        }
        handler = &block.outer;
    }
    variable(TRY)
}

/// Whether a statement runs procedures or triggers, which must be informed of a TRY block around it.
fn runs_others(kind: &Tree) -> bool {
    matches!(
        kind,
        Tree::Execute(_)
            | Tree::ExecuteText(_)
            | Tree::Insert(_)
            | Tree::Update(_)
            | Tree::Delete(_)
            | Tree::Merge(_)
    )
}
