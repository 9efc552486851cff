//! IF, WHILE, RETURN, TRY and CATCH.

use super::context::{Body, Context, Guard, Handler, Rest, Try};
use super::query::may_send;
use super::run::Run;
use super::transaction;
use super::variable::{caught_name, BODY, CONDITION, STATUS, TRY, TRY_SETTING};
use super::writer::{quoted, BodyWriter, Purpose, Rows};
use crate::error::Error;
use crate::facts::types::INT;
use crate::translate;
use crate::tree::{self, Expression, Statement, StatementKind as Tree};
use std::rc::Rc;

impl<'t> BodyWriter<'t> {
    /// The condition for a statement of PL/pgSQL.
    fn condition(&mut self, condition: &Expression, context: &Context<'t>) -> Result<String, Error> {
        let (scope, mut named) = self.named();
        let text = translate::condition(condition, scope, &mut named)?.to_string();
        let hands_over = self.has_sent && self.hands_over(context);
        if context.handler.is_none() && !hands_over && !self.tracks_errors && self.rows != Rows::Asked {
            self.none(Some("0"));
            return Ok(text);
        }
        self.declare(CONDITION, "boolean");
        // after an error it is undefined which branch the procedure would take
        let run = Run { ends: true, ..Run::new(vec![format!("{} := {text};", quoted(CONDITION))]) };
        self.run(context, condition.at().line, run);
        Ok(quoted(CONDITION))
    }

    pub(super) fn if_(
        &mut self,
        condition: &'t Expression,
        then: &'t [Statement],
        otherwise: &'t [Statement],
        context: &Context<'t>,
    ) -> Result<(), Error> {
        if context.region.is_some() {
            if let Some(known) = transaction::always(condition) {
                self.none(Some("0"));
                return self.body(&Body::of(if known { then } else { otherwise }), context);
            }
        }
        let condition = self.condition(condition, context)?;
        self.block(&format!("if {condition} then"), "end if;", |writer| {
            let before = writer.lines.len();
            writer.body(&Body::of(then), context)?;
            if otherwise.is_empty() {
                return Ok(());
            }
            if writer.lines.len() == before {
                writer.add("null;");
            }
            writer.indent -= 1;
            writer.add("else");
            writer.indent += 1;
            let before = writer.lines.len();
            writer.body(&Body::of(otherwise), context)?;
            if writer.lines.len() == before {
                writer.add("null;");
            }
            Ok(())
        })
    }

    pub(super) fn while_(
        &mut self,
        condition: &'t Expression,
        body: &'t [Statement],
        context: &Context<'t>,
    ) -> Result<(), Error> {
        // in the next pass its first statement follows its last one
        self.has_sent |= tree::every(body).any(|statement| may_send(&statement.kind));
        self.block("loop", "end loop;", |writer| {
            let condition = writer.condition(condition, context)?;
            writer.add(format!("exit when {condition} is not true;"));
            let inside = Context { loops: context.loops + 1, rest: Rest::default(), ..context.clone() };
            writer.body(&Body::of(body), &inside)
        })
    }

    /// BREAK and CONTINUE: `word` is PL/pgSQL's keyword.
    pub(super) fn leave_loop(&mut self, word: &str, line: u32, context: &Context<'t>) -> Result<(), Error> {
        if let Some(region) = context.region.as_ref().filter(|region| region.loops == context.loops) {
            let what = if word == "exit" { "break" } else { "continue" };
            let why = format!("it would leave the transaction begun in line {} open", region.line);
            return Err(Error::refused(what, &why, line));
        }
        let mut handler = context.handler.clone();
        while let Some(block) = handler.as_try().filter(|block| block.loops == context.loops).cloned() {
            if block.calls {
                let marked = self.marked_by(&block.outer);
                self.set(TRY_SETTING, &marked);
            }
            handler = block.outer.clone();
        }
        self.add(format!("{word};"));
        Ok(())
    }

    pub(super) fn return_(
        &mut self,
        value: Option<&Expression>,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        if let Some(value) = value {
            let text = match self.purpose {
                Purpose::Procedure => format!("coalesce({}, 0)", self.value(value, INT)?),
                Purpose::Function(of) => self.value(value, of)?,
                Purpose::Table(_) | Purpose::Trigger { .. } => return Err(Error::returns_a_value(line)),
            };
            // RETURN leaves @@rowcount and @@error unchanged
            let tracks = std::mem::replace(&mut self.tracks_errors, false);
            let run = Run { ends: true, ..Run::keeping(vec![format!("{} := {text};", quoted(STATUS))]) };
            self.run(context, line, run);
            self.tracks_errors = tracks;
        }
        self.add(format!("exit {};", quoted(BODY)));
        Ok(())
    }

    pub(super) fn try_catch(
        &mut self,
        body: &Body<'t>,
        guard: Guard<'t>,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let number = self.number();
        let calls = body.statements().iter().any(|statement| {
            tree::every(statement.alone())
                .any(|inner| matches!(inner.kind, Tree::Execute(_) | Tree::ExecuteText(_)))
        });
        let block = Rc::new(Try {
            number,
            label: format!("@@try {number}"),
            outer: context.handler.clone(),
            catch: guard.catch,
            loops: context.loops,
            calls,
        });
        let caught = quoted(&caught_name(number));
        self.declare(caught_name(number), "tsql.error");
        self.add(format!("{caught} := null;"));
        if calls {
            self.marks_try = true;
            self.set(TRY_SETTING, self.marked());
        }
        self.add(format!("<<{}>>", quoted(&block.label)));
        self.block("begin", "end;", |writer| {
            if context.guard.is_some() {
                return Err(Error::refused("begin transaction", "around two TRY blocks", guard.line));
            }
            let inside = Context {
                handler: Handler::Try(block),
                guard: context.region.is_some().then_some(guard),
                ..context.clone()
            };
            writer.body(body, &inside)
        })?;
        if calls {
            let marked = self.marked_by(&context.handler);
            self.set(TRY_SETTING, &marked);
        }
        self.block(&format!("if {caught}.number is not null then"), "end if;", |writer| {
            writer.body(&Body::of(guard.catch), &Context { caught: Some(number), ..context.clone() })
        })?;
        if let Some(line) = self.kept_rows("0") {
            self.add(line);
        }
        Ok(())
    }

    /// The setting inside a TRY block: whether errors of calls are passed to it by a return.
    fn marked(&self) -> &'static str {
        match self.purpose {
            Purpose::Procedure => "'returned'",
            _ => "'on'",
        }
    }

    /// The setting outside a TRY block, inside this one.
    pub(super) fn marked_by(&self, handler: &Handler<'t>) -> String {
        let mut handler = handler;
        while let Some(block) = handler.as_try() {
            if block.calls {
                return self.marked().to_owned();
            }
            handler = &block.outer;
        }
        quoted(TRY)
    }
}
