//! Transactions of a procedure as blocks of PL/pgSQL.

use super::context::{Body, Context, Handler, Region, Rest, Site, Try};
use super::run::Run;
use super::transaction;
use super::variable::{caught_name, TRY_SETTING};
use super::writer::{quoted, BodyWriter, Purpose};
use crate::error::Error;
use crate::resolve::names::literal;
use crate::tree::{Statement, StatementKind as Tree, TransactionName};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

impl<'t> BodyWriter<'t> {
    pub(super) fn region(
        &mut self,
        begin: &Statement,
        statements: &Body<'t>,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let line = begin.at.line;
        let number = self.number();
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
        self.declare(ended_name(number), "integer");
        self.add(format!("<<{}>>", quoted(&region_name(number))));
        self.add("begin");
        self.indent += 1;
        self.add("perform tsql.begin_transaction();");
        self.none(Some("0"));
        let inside = Context {
            region: Some(region.clone()),
            rest: Rest::default(),
            guard: None,
            leaves: None,
            ..context.clone()
        };
        match &context.handler {
            Handler::Try(block) => {
                if block.outer.as_try().is_some() {
                    return Err(Error::refused("begin transaction", "inside two TRY blocks", line));
                }
                let work = format!("@@work {number}");
                self.add(format!("<<{}>>", quoted(&work)));
                let label = Try {
                    number: block.number,
                    label: work,
                    outer: block.outer.clone(),
                    catch: block.catch,
                    loops: block.loops,
                    calls: block.calls,
                };
                let inner = Context { handler: Handler::Try(Rc::new(label)), ..inside.clone() };
                self.block("begin", "end;", |writer| writer.body(statements, &inner))?;
                // errors are handled here: the CATCH block begins inside the transaction
                if block.calls {
                    let marked = self.marked_by(&block.outer);
                    self.set(TRY_SETTING, &marked);
                }
                check_catch(block.catch, line)?;
                let catch = Context {
                    handler: block.outer.clone(),
                    caught: Some(block.number),
                    leaves: Some(block.clone()),
                    ..inside
                };
                self.body(&Body::of(block.catch), &catch)?;
            }
            _ => self.body(statements, &inside)?,
        }
        self.indent -= 1;
        self.add("exception when sqlstate 'TS002' then null;");
        self.add("end;");
        if let (true, Some(results)) = (region.rolls_back.get(), region.results.get()) {
            let why = format!("its rows would be lost with the transaction begun in line {line}");
            return Err(Error::refused("select", &why, results));
        }
        self.after_region(&region, context)
    }

    /// The statements after each COMMIT and ROLLBACK, now that the transaction has ended.
    fn after_region(&mut self, region: &Region<'t>, context: &Context<'t>) -> Result<(), Error> {
        let mut word = "if";
        let sites = region.sites.take();
        for (number, site) in (1..).zip(&sites) {
            let segments = site.rest.joined();
            if segments.is_empty() && site.leaves.is_none() {
                continue;
            }
            self.add(format!("{word} {} = {number} then", quoted(&ended_name(region.number))));
            self.indent += 1;
            let before = self.lines.len();
            let handler =
                site.leaves.as_ref().map_or_else(|| context.handler.clone(), |left| left.outer.clone());
            for segment in segments {
                let outside = Context { caught: segment.caught, handler: handler.clone(), ..context.clone() };
                match segment.guard {
                    Some(guard) => self.try_catch(&segment.body, guard, &outside)?,
                    None => self.body(&segment.body, &outside)?,
                }
            }
            if let Some(left) = &site.leaves {
                self.add(format!("{} := null;", quoted(&caught_name(left.number))));
                self.add(format!("exit {};", quoted(&left.label)));
            }
            if self.lines.len() == before {
                self.add("null;");
            }
            self.indent -= 1;
            word = "elsif";
        }
        if word == "elsif" {
            self.add("end if;");
        }
        Ok(())
    }

    /// Records that the transaction has ended at this COMMIT or ROLLBACK.
    fn site(&self, region: &Region<'t>, context: &Context<'t>) -> String {
        let mut sites = region.sites.borrow_mut();
        sites.push(Site { rest: context.rest.clone(), leaves: context.leaves.clone() });
        format!("{} := {};", quoted(&ended_name(region.number)), sites.len())
    }

    pub(super) fn commit(&mut self, line: u32, context: &Context<'t>) -> Result<(), Error> {
        let Some(region) = &context.region else {
            let lines = vec![format!("perform tsql.commit_outside({line}, {});", literal(&self.name))];
            self.run(context, line, Run::new(lines));
            return Ok(());
        };
        self.add("perform tsql.commit_transaction();");
        self.none(Some("0"));
        if let Some(block) = context.handler.as_try() {
            if block.calls && block.number > region.number {
                let marked = self.marked_by(&block.outer);
                self.set(TRY_SETTING, &marked);
            }
        }
        let site = self.site(region, context);
        self.add(site);
        self.add(format!("exit {};", quoted(&region_name(region.number))));
        Ok(())
    }

    pub(super) fn rollback(
        &mut self,
        name: Option<&TransactionName>,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let is_trigger = matches!(self.purpose, Purpose::Trigger { .. });
        if !is_trigger && self.cursors.values().any(|cursor| cursor.is_static) {
            return Err(Error::refused("rollback with a static cursor", "the cursor stays open", line));
        }
        let Some(region) = &context.region else {
            let name = literal(&self.name);
            let lines = vec![match self.purpose {
                Purpose::Trigger { .. } => {
                    let text = "'The transaction ended in the trigger. The batch has been aborted.'";
                    format!("perform tsql.raise(3609, 16, 1, {text}, {line}, {name});")
                }
                _ => format!("perform tsql.rollback_outside({line}, {name});"),
            }];
            self.run(context, line, Run::new(lines));
            return Ok(());
        };
        let is_it = |name: &TransactionName| region.name.as_ref().is_some_and(|own| own.is(name));
        if name.is_some_and(|name| !is_it(name)) {
            let why = format!("the transaction begun in line {} has another name", region.line);
            return Err(Error::refused("rollback", &why, line));
        }
        if !self.scope.table_variables.is_empty() {
            return Err(Error::refused("rollback with a table variable", "it would remove its rows", line));
        }
        region.rolls_back.set(true);
        self.add(format!("perform tsql.roll_back({line}, {});", literal(&self.name)));
        self.none(Some("0"));
        let site = self.site(region, context);
        self.add(site);
        self.add("raise exception using errcode = 'TS002', message = 'rollback transaction';");
        Ok(())
    }
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
