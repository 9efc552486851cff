//! PRINT, RAISERROR and THROW in a procedure.

use super::context::Context;
use super::run::Run;
use super::variable::{caught_name, DOOMED, MESSAGE};
use super::writer::{quoted, BodyWriter, Purpose};
use crate::error::Error;
use crate::message;
use crate::postgres::Joined;
use crate::resolve::names::literal;
use crate::tree::{Expression, Raise, Throw};

impl<'t> BodyWriter<'t> {
    pub(super) fn print(
        &mut self,
        text: &Expression,
        arguments: &[Expression],
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let (scope, mut named) = self.named();
        let text = message::printed(text, arguments, scope, &mut named)?;
        self.run_with_end(context, line, Run::new(vec![format!("raise notice using message = {text};")]));
        Ok(())
    }

    pub(super) fn raise(&mut self, raise: &Raise, line: u32, context: &Context<'t>) -> Result<(), Error> {
        self.declare(MESSAGE, "tsql.error");
        let message = quoted(MESSAGE);
        let name = literal(&self.name);
        let said = format!(
            "{message}.number, {message}.severity, {message}.state, {message}.message, {line}, {name}"
        );
        let (scope, mut named) = self.named();
        let error = message::raised(raise, line, scope, &mut named)?;
        let error = Joined(&error, ", ");
        let mut lines = vec![format!("{message} := row({error}, {line}, {name})::tsql.error;")];
        let handler = context.handler.only_try();
        if !handler.is_none() {
            lines.push(format!("if {message}.severity > 10 then perform tsql.raise({said}); end if;"));
        }
        lines.push(format!("perform tsql.tell({said});"));
        let failed = format!("case when {message}.severity > 10 then 'failed' else '' end");
        lines.extend(self.end_notice(&failed));
        let run = Run { raises: true, ..Run::new(lines) };
        self.run(&Context { handler, ..context.clone() }, line, run);
        self.lower_status();
        if self.tracks_errors {
            let sets = match raise {
                Raise::Severity { set_error: true, .. } => String::from("true"),
                _ => format!("{message}.severity > 10"),
            };
            self.add(format!("\"@@error\" := case when {sets} then {message}.number else 0 end;"));
        }
        Ok(())
    }

    pub(super) fn undoes_its_statement(&self) -> bool {
        self.scope.dialect.errors_of_triggers_undo && matches!(self.purpose, Purpose::Trigger { .. })
    }

    /// The error ends the trigger and undoes the statement that fired it (ASE Reference Manual: Commands, "rollback
    /// trigger").
    pub(super) fn rollback_trigger(
        &mut self,
        raise: &Raise,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let (scope, mut named) = self.named();
        let error = message::raised(raise, line, scope, &mut named)?;
        let error = Joined(&error, ", ");
        let raise = format!("perform tsql.raise({error}, {line}, {});", literal(&self.name));
        let context = Context { handler: context.handler.only_try(), ..context.clone() };
        self.run(&context, line, Run { raises: true, ..Run::keeping(vec![raise]) });
        Ok(())
    }

    pub(super) fn throw(
        &mut self,
        throw: Option<&Throw>,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let name = literal(&self.name);
        let raise = match (throw, context.caught) {
            (None, None) => return Err(message::no_rethrow(line).with_severity(16)),
            (None, Some(number)) => {
                let caught = quoted(&caught_name(number));
                let fields = ["number", "severity", "state", "message", "line", "procedure"];
                let said: Vec<String> = fields.iter().map(|field| format!("{caught}.{field}")).collect();
                format!("perform tsql.raise({});", said.join(", "))
            }
            (Some(throw), _) => {
                let (scope, mut named) = self.named();
                let error = message::thrown(throw, scope, &mut named)?;
                let error = Joined(&error, ", ");
                format!(
                    "perform tsql.raise(\"@@r\".number, 16, \"@@r\".state, \"@@r\".message, {line}, {name}) \
                     from (select {error}) as \"@@r\" (number, message, state);"
                )
            }
        };
        if self.dooms {
            self.add(format!("{} := true;", quoted(DOOMED)));
        }
        self.run(context, line, Run { raises: true, ends: true, ..Run::keeping(vec![raise]) });
        Ok(())
    }
}
