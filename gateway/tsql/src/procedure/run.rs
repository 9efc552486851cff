//! Lines of PL/pgSQL that can fail, and the handling of their errors.

use super::context::{Context, Try};
use super::variable::{
    caught_name, field, variable, BODY, CONTEXT, DETAIL, DOOMED, ERROR, INDEX, MESSAGE, SCHEMA, STATUS,
    TABLE, TEXT,
};
use super::writer::{setting_step, BodyWriter, Purpose, RowCount};
use crate::facts::notices::ENDED;
use crate::plpgsql::{Block, Body, Step};
use crate::postgres::{call, Scalar};

/// The properties read from an error, and the variables that receive them.
const DIAGNOSTICS: [(&str, &str); 6] = [
    (TEXT, "message_text"),
    (DETAIL, "pg_exception_detail"),
    (SCHEMA, "schema_name"),
    (TABLE, "table_name"),
    (INDEX, "constraint_name"),
    (CONTEXT, "pg_exception_context"),
];

/// The bytes of an error's handling, roughly.
const HANDLING: usize = 1000;

/// Steps that can fail, and the @@rowcount that they leave.
pub struct Run {
    pub steps: Body,
    /// None: unchanged.
    pub rows: Option<RowCount>,
    /// It calls a procedure; a CATCH block handles a wrong name.
    pub calls: bool,
    /// T-SQL raises its error, which does not undo the procedure's changes.
    pub raises: bool,
    /// Any error ends the procedure: for THROW, and where it is undefined how to continue.
    pub ends: bool,
    /// The last action of a statement whose error a CATCH block handles.
    pub caught: Option<Step>,
    /// The further action of a statement whose error is only sent.
    pub sent: Option<Step>,
}

impl Run {
    pub fn new(steps: impl Into<Body>) -> Run {
        let (steps, rows) = (steps.into(), Some(RowCount::of(0)));
        Run { steps, rows, calls: false, raises: false, ends: false, caught: None, sent: None }
    }

    pub fn leaving(steps: impl Into<Body>, rows: RowCount) -> Run {
        Run { rows: Some(rows), ..Run::new(steps) }
    }

    pub fn keeping(steps: impl Into<Body>) -> Run {
        Run { rows: None, ..Run::new(steps) }
    }
}

/// Writes a statement whose end is sent to the client without a row count.
///
/// SQL Server does so after every statement (MS-TDS 2.2.7.7), and after each condition of a WHILE
/// (microsoft/go-mssqldb, TestSprocWithCursorNoResult). The ends of PRINT, RAISERROR, cursors and tables are sent,
/// which clients read as results (FreeTDS, src/odbc/unittests/raiserror.c); those of assignments and conditions are
/// not, of which a loop would send one in each pass.
pub(super) fn run_with_end<'t>(writer: &mut BodyWriter<'t>, context: &Context<'t>, line: u32, mut run: Run) {
    run.steps.extend(end_notice(writer, Scalar::text("")));
    self::run(writer, context, line, run);
}

/// The notice of the end of a statement.
pub(super) fn end_notice(writer: &BodyWriter<'_>, detail: Scalar) -> Option<Step> {
    let is_sent = writer.sends_counts && writer.purpose == Purpose::Procedure;
    is_sent.then(|| Step::notice(Some(ENDED), Scalar::text("end"), Some(writer.silently(detail))))
}

/// Writes a statement and the handling of its error.
pub(super) fn run<'t>(writer: &mut BodyWriter<'t>, context: &Context<'t>, line: u32, run: Run) {
    writer.at(line);
    let mut steps = run.steps;
    steps.extend(run.rows.and_then(|rows| writer.kept_rows(rows)));
    // a called procedure sets @@error itself
    if writer.tracks_errors && !run.calls {
        steps.push(Step::assign(ERROR, Scalar::number(0)));
    }
    let hands_over =
        hands_over(writer, context) && (writer.has_sent || run.raises || !context.handler.is_none());
    if context.handler.is_none() && !hands_over {
        steps.into_iter().for_each(|step| writer.add(step));
        return;
    }
    DIAGNOSTICS.iter().for_each(|(part, _)| writer.declare(*part, "text"));
    let error = caught_error(writer, line);
    let items = DIAGNOSTICS.map(|(part, item)| (part.to_owned(), item));
    let mut handling = vec![Step::Diagnose(items.into())];
    if hands_over {
        let mut leaving = vec![Step::Perform(call("tsql.hand_over", [error.clone()]))];
        leaving.extend(run.caught.clone());
        leaving.push(Step::exit(BODY));
        handling.push(Step::if_(call("tsql.hands_over", [sqlstate(), variable(DETAIL)]), leaving));
    }
    match context.handler.as_try() {
        Some(block) => {
            let ends = match run.calls {
                true => sqlstate().infix("in", Scalar::Row(["40001", "40P01"].map(Scalar::text).into())),
                false => call("tsql.ends_its_batch", [sqlstate()]),
            };
            handling.push(Step::if_(ends, [Step::RaiseAgain]));
            handling.extend(to_catch(writer, block, (error, variable(CONTEXT)), run.caught, context));
        }
        None => {
            let keeps = !context.handler.is_none() && self::hands_over(writer, context);
            let ends = raise_again(keeps, &error);
            match context.handler.is_none() || run.ends {
                true => handling.extend(ends),
                false => handling.extend(sent_only(writer, error, ends, run.sent)),
            }
        }
    }
    // the handling is of about the same size for all statements, and not counted each time
    writer.written += HANDLING + steps.iter().map(Step::size).sum::<usize>();
    writer.steps.push(Step::Block(Block { label: None, body: steps, handler: Some(("others", handling)) }));
}

/// The error that is being handled, as a value.
fn caught_error(writer: &BodyWriter<'_>, line: u32) -> Scalar {
    let [text, detail, schema, table, index, stack] = DIAGNOSTICS.map(|(part, _)| variable(part));
    let is_ase = Scalar::Boolean(writer.scope.dialect.is_ase);
    let (line, name) = (Scalar::number(line), Scalar::text(writer.name.as_str()));
    call("tsql.caught", [sqlstate(), text, detail, schema, table, index, stack, is_ase, line, name])
}

/// Sends an error and continues, unless the procedure `ends` with it. `sent`: a further action.
fn sent_only(writer: &mut BodyWriter<'_>, error: Scalar, ends: Body, sent: Option<Step>) -> Body {
    let goes_on = call("tsql.goes_on_after", [sqlstate(), variable(DETAIL)]);
    let mut is_over = goes_on.negated_if(true);
    if writer.scope.dialect.triggers_abort {
        is_over = is_over.or(call("tsql.raised_in_trigger", [variable(CONTEXT)]));
    }
    if writer.scope.dialect.goes_on_after_arithmetic {
        let [text, table, index] = [TEXT, TABLE, INDEX].map(variable);
        is_over = is_over.or(call("tsql.is_arithmetic", [sqlstate(), text, table, index]));
    }
    writer.declare(MESSAGE, "tsql.error");
    let number = call("tsql.tell_caught", [variable(MESSAGE)]);
    let mut steps = vec![
        Step::if_(is_over, ends),
        Step::assign(MESSAGE, error),
        match writer.tracks_errors {
            true => Step::assign(ERROR, number),
            false => Step::Perform(number),
        },
    ];
    steps.extend(sent);
    steps.extend(lower_status(writer, MESSAGE));
    steps.extend(end_notice(writer, Scalar::text("failed")));
    steps.extend(writer.kept_rows(RowCount::of(0)));
    steps
}

/// Whether an error may be passed to a TRY block around the call by a return, which undoes neither the selected
/// rows nor changes. Not out of a transaction, which would remain open for the block.
pub(super) fn hands_over<'t>(writer: &BodyWriter<'t>, context: &Context<'t>) -> bool {
    writer.purpose == Purpose::Procedure && context.region.is_none() && context.handler.as_try().is_none()
}

/// Passes an error, and PostgreSQL's context of it, to the CATCH of a TRY block. `last`: the last action of its statement.
pub(super) fn to_catch<'t>(
    writer: &BodyWriter<'t>,
    block: &Try<'t>,
    (error, stack): (Scalar, Scalar),
    last: Option<Step>,
    context: &Context<'t>,
) -> Body {
    let caught = caught_name(block.number);
    let number = field(&caught, "number");
    let is_inside = Scalar::Boolean(context.region.is_some());
    let doom = Step::Perform(call("tsql.doom", [number.clone(), is_inside, stack]));
    let mut steps = vec![Step::assign(caught.as_str(), error), doom];
    steps.extend(lower_status(writer, &caught));
    if writer.dooms {
        steps.push(Step::assign(DOOMED, Scalar::Boolean(true)));
        steps.push(setting_step("tsql.doomed", Scalar::text("on")));
    }
    if writer.tracks_errors {
        steps.push(Step::assign(ERROR, number));
    }
    steps.extend(last);
    steps.push(Step::exit(block.label.as_str()));
    steps
}

/// An error, in this variable, makes the return status 10 minus its severity, unless an earlier one was worse or
/// RETURN sets another (ASE Reference Manual: Procedures, "Procedure return status").
pub(super) fn lower_status(writer: &BodyWriter<'_>, error: &str) -> Option<Step> {
    let least = Scalar::number(10).infix("-", field(error, "severity"));
    let status = call("least", [variable(STATUS), least]);
    (writer.purpose == Purpose::Procedure).then(|| Step::assign(STATUS, status))
}

/// A statement that cannot fail, and leaves no rows.
pub(super) fn none(writer: &mut BodyWriter<'_>) {
    writer.kept_rows(RowCount::of(0)).into_iter().for_each(|step| writer.add(step));
    if writer.tracks_errors {
        writer.add(Step::assign(ERROR, Scalar::number(0)));
    }
}

/// The state of the error that is being handled.
pub(super) fn sqlstate() -> Scalar {
    Scalar::column("sqlstate")
}

/// Ends the procedure by the error that is being handled. `keeps`: earlier changes remain if it ends only the batch.
fn raise_again(keeps: bool, error: &Scalar) -> Body {
    let ends_with_it = call("tsql.ends_with_it", [sqlstate(), variable(DETAIL)]);
    let hand_over = Step::Perform(call("tsql.hand_over", [error.clone()]));
    let hands_over = keeps.then(|| Step::if_(ends_with_it, [hand_over, Step::exit(BODY)]));
    hands_over.into_iter().chain([Step::RaiseAgain]).collect()
}
