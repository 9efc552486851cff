//! Transactions of a procedure as blocks of PL/pgSQL.

use super::{control, transaction};
use crate::error::Error;
use crate::plpgsql::{Block, Body, Raise, Step};
use crate::postgres::{call, Scalar};
use crate::procedure::context::{Context, Handler, Region, Rest, Segment, Site, Statements, Try};
use crate::procedure::run::Run;
use crate::procedure::variable::{caught_name, variable, ROLLED_BACK, TRANCOUNT_SETTING, TRY_SETTING};
use crate::procedure::writer::{BodyWriter, Purpose};
use crate::procedure::{run, statements};
use crate::tree::{Statement, StatementKind as Tree, TransactionName};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub(super) fn region<'t>(
    writer: &mut BodyWriter<'t>,
    begin: &Statement,
    statements: &Statements<'t>,
    context: &Context<'t>,
) -> Result<(), Error> {
    let line = begin.at.line;
    let number = writer.number();
    let region = Rc::new(Region {
        number,
        line,
        name: match &begin.kind {
            Tree::BeginTransaction(name) => name.clone(),
            _ => None,
        },
        loops: context.loops,
        sites: RefCell::default(),
        results: Cell::default(),
        rolls_back: Cell::default(),
    });
    writer.declare(ended_name(number), "integer");
    let body = writer.nested(|writer| region_steps(writer, statements, &region, context))?;
    let (label, handler) = (region_name(number), ("sqlstate 'TS002'", Body::new()));
    writer.steps.push(Step::Block(Block { label: Some(label), body, handler: Some(handler) }));
    if let (true, Some(results)) = (region.rolls_back.get(), region.results.get()) {
        let why = format!("its rows would be lost with the transaction begun in line {line}");
        return Err(Error::refused("select", &why, results));
    }
    after_region(writer, &region, context)
}

fn region_steps<'t>(
    writer: &mut BodyWriter<'t>,
    statements: &Statements<'t>,
    region: &Rc<Region<'t>>,
    context: &Context<'t>,
) -> Result<(), Error> {
    writer.add(Step::Perform(call("tsql.begin_transaction", [])));
    run::none(writer);
    let inside = Context {
        region: Some(region.clone()),
        rest: Rest::default(),
        guard: None,
        leaves: None,
        ..context.clone()
    };
    let Handler::Try(block) = &context.handler else { return statements::body(writer, statements, &inside) };
    if block.outer.as_try().is_some() {
        return Err(Error::refused("begin transaction", "inside two TRY blocks", region.line));
    }
    let work = format!("@@work {}", region.number);
    let label = Try {
        number: block.number,
        label: work.clone(),
        outer: block.outer.clone(),
        catch: block.catch,
        loops: block.loops,
        marks: block.marks,
    };
    let inner = Context { handler: Handler::Try(Rc::new(label)), ..inside.clone() };
    writer.labelled_block(&work, |writer| statements::body(writer, statements, &inner))?;
    // errors are handled here: the CATCH block begins inside the transaction
    if block.marks {
        writer.set(TRY_SETTING, control::marked_by(writer, &block.outer));
    }
    check_catch(block.catch, region.line)?;
    let catch = Context {
        handler: block.outer.clone(),
        caught: Some(block.number),
        leaves: Some(block.clone()),
        ..inside
    };
    statements::body(writer, &Statements::of(block.catch), &catch)
}

/// The statements after each COMMIT and ROLLBACK, now that the transaction has ended.
fn after_region<'t>(
    writer: &mut BodyWriter<'t>,
    region: &Region<'t>,
    context: &Context<'t>,
) -> Result<(), Error> {
    let mut branches = Vec::new();
    let sites = region.sites.take();
    for (number, site) in (1..).zip(&sites) {
        let segments = site.rest.joined();
        if segments.is_empty() && site.leaves.is_none() {
            continue;
        }
        let handler = site.leaves.as_ref().map_or_else(|| context.handler.clone(), |left| left.outer.clone());
        let steps = writer.nested(|writer| {
            if let Some(left) = site.leaves.as_ref().filter(|left| left.marks) {
                // the setting of the CATCH block has gone with the transaction
                writer.set(TRY_SETTING, control::marked_by(writer, &left.outer));
            }
            for Segment { body, caught, guard } in segments {
                let outside = Context { caught, handler: handler.clone(), ..context.clone() };
                match guard {
                    Some(guard) => control::try_catch(writer, &body, guard, &outside)?,
                    None => statements::body(writer, &body, &outside)?,
                }
            }
            if let Some(left) = &site.leaves {
                writer.add(Step::assign(caught_name(left.number), Scalar::Null));
                writer.add(Step::exit(left.label.as_str()));
            }
            Ok(())
        })?;
        let is_here = variable(&ended_name(region.number)).infix("=", Scalar::number(number));
        branches.push((is_here, steps));
    }
    if !branches.is_empty() {
        writer.steps.push(Step::If(branches, Body::new()));
    }
    Ok(())
}

/// Records that the transaction has ended at this COMMIT or ROLLBACK.
fn site<'t>(region: &Region<'t>, context: &Context<'t>) -> Step {
    let mut sites = region.sites.borrow_mut();
    sites.push(Site { rest: context.rest.clone(), leaves: context.leaves.clone() });
    Step::assign(ended_name(region.number), Scalar::number(sites.len()))
}

pub(super) fn commit<'t>(writer: &mut BodyWriter<'t>, line: u32, context: &Context<'t>) -> Result<(), Error> {
    let Some(region) = &context.region else {
        run::run(writer, context, line, Run::new([outside(writer, "tsql.commit_outside", line)]));
        return Ok(());
    };
    writer.add(Step::Perform(call("tsql.commit_transaction", [])));
    run::none(writer);
    if let Some(block) = context.handler.as_try() {
        if block.marks && block.number > region.number {
            writer.set(TRY_SETTING, control::marked_by(writer, &block.outer));
        }
    }
    let site = site(region, context);
    writer.add(site);
    writer.add(Step::exit(region_name(region.number)));
    Ok(())
}

/// A function of schema tsql that ends a transaction of the caller.
fn outside(writer: &BodyWriter<'_>, function: &'static str, line: u32) -> Step {
    Step::Perform(call(function, [Scalar::number(line), Scalar::text(writer.name.as_str())]))
}

pub(super) fn rollback<'t>(
    writer: &mut BodyWriter<'t>,
    name: Option<&TransactionName>,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let is_trigger = matches!(writer.purpose, Purpose::Trigger { .. });
    if !is_trigger && writer.cursors.values().any(|cursor| cursor.is_static) {
        return Err(Error::refused("rollback with a static cursor", "the cursor stays open", line));
    }
    let Some(region) = &context.region else {
        if is_trigger {
            // the body runs on, and the statement that fired it ends with it
            writer.declare_as(ROLLED_BACK, "boolean", Scalar::Boolean(false));
            writer.add(Step::assign(ROLLED_BACK, Scalar::Boolean(true)));
            writer.set(TRANCOUNT_SETTING, Scalar::text("0"));
            run::none(writer);
            return Ok(());
        }
        run::run(writer, context, line, Run::new([outside(writer, "tsql.rollback_outside", line)]));
        return Ok(());
    };
    let is_it = |name: &TransactionName| region.name.as_ref().is_some_and(|own| own.is(name));
    if name.is_some_and(|name| !is_it(name)) {
        let why = format!("the transaction begun in line {} has another name", region.line);
        return Err(Error::refused("rollback", &why, line));
    }
    if !writer.scope.table_variables.is_empty() {
        return Err(Error::refused("rollback with a table variable", "it would remove its rows", line));
    }
    region.rolls_back.set(true);
    writer.add(outside(writer, "tsql.roll_back", line));
    run::none(writer);
    let site = site(region, context);
    writer.add(site);
    writer.add(Step::Raise(Raise {
        level: "exception",
        code: Some("TS002"),
        message: Scalar::text("rollback transaction"),
        detail: None,
        hint: None,
    }));
    Ok(())
}

fn region_name(number: u32) -> String {
    format!("@@transaction {number}")
}

fn ended_name(number: u32) -> String {
    format!("@@ended {number}")
}

/// Refuses a CATCH block that leaves the transaction of its TRY block open.
pub(super) fn check_catch(catch: &[Statement], line: u32) -> Result<(), Error> {
    if transaction::ends_everywhere(catch)? {
        return Ok(());
    }
    let why = "the CATCH block must roll it back, or commit it, on every path";
    Err(Error::refused("begin transaction", why, line))
}
