//! The text of bodies and routines.

use super::{is_empty, Argument, Block, Declared, Raise, Routine, Step};
use crate::postgres::Joined;
use crate::quoting::literal;
use crate::resolve::names::quoted;
use std::fmt::{self, Display, Formatter, Write};

/// Writes steps, each on the line of its T-SQL, which PostgreSQL reports in errors.
#[derive(Default)]
struct Writer {
    text: String,
    /// The line on which the next step is to be.
    line: u32,
    /// The line that has been reached.
    reached: u32,
}

impl Writer {
    fn put(&mut self, part: impl Display) {
        match self.line.saturating_sub(self.reached) {
            0 => self.text.push(' '),
            ahead => (0..ahead).for_each(|_| self.text.push('\n')),
        }
        let from = self.text.len();
        // a String takes everything
        let _ = write!(self.text, "{part}");
        self.reached = self.reached.max(self.line) + self.text[from..].matches('\n').count() as u32;
    }

    fn body(&mut self, body: &[Step]) {
        body.iter().for_each(|step| self.step(step));
        if is_empty(body) {
            self.put("null;");
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Line(line) => self.line = *line,
            Step::Assign(variable, value) => self.put(format_args!("{} := {value};", quoted(variable))),
            Step::Perform(value) => self.put(format_args!("perform {value};")),
            Step::Sql(statement) => self.put(format_args!("{statement};")),
            Step::SqlInto(statement, variable) => {
                self.put(format_args!("{statement} into {};", quoted(variable)))
            }
            Step::Define(definition) => self.put(format_args!("{definition};")),
            Step::If(branches, otherwise) => {
                for (index, (condition, then)) in branches.iter().enumerate() {
                    let word = if index == 0 { "if" } else { "elsif" };
                    self.put(format_args!("{word} {condition} then"));
                    self.body(then);
                }
                if !is_empty(otherwise) {
                    self.put("else");
                    self.body(otherwise);
                }
                self.put("end if;");
            }
            Step::Loop(body) => {
                self.put("loop");
                self.body(body);
                self.put("end loop;");
            }
            Step::For(row, rows, body) => {
                self.put(format_args!("for {} in {rows} loop", quoted(row)));
                self.body(body);
                self.put("end loop;");
            }
            Step::Block(Block { label, body, handler }) => {
                label.iter().for_each(|label| self.put(format_args!("<<{}>>", quoted(label))));
                self.put("begin");
                self.body(body);
                if let Some((condition, steps)) = handler {
                    self.put(format_args!("exception when {condition} then"));
                    self.body(steps);
                }
                self.put("end;");
            }
            Step::Exit(None) => self.put("exit;"),
            Step::Exit(Some(label)) => self.put(format_args!("exit {};", quoted(label))),
            Step::ExitUnless(condition) => self.put(format_args!("exit when {condition} is not true;")),
            Step::Continue => self.put("continue;"),
            Step::Raise(raise) => self.put(format_args!("{raise};")),
            Step::RaiseAgain => self.put("raise;"),
            Step::CountRows(variable) => {
                self.put(format_args!("get diagnostics {} = row_count;", quoted(variable)))
            }
            Step::Diagnose(items) => {
                let items: Vec<_> =
                    items.iter().map(|(variable, item)| format!("{} = {item}", quoted(variable))).collect();
                self.put(format_args!("get stacked diagnostics {};", items.join(", ")));
            }
            Step::Open { cursor, scrolls, query } => {
                let scroll = if *scrolls { "scroll" } else { "no scroll" };
                self.put(format_args!("open {} {scroll} for {query};", quoted(cursor)));
            }
            Step::Fetch { direction, count: None, cursor, into } => {
                self.put(format_args!("fetch {direction} from {} into {};", quoted(cursor), quoted(into)));
            }
            Step::Fetch { direction, count: Some(count), cursor, into } => {
                self.put(format_args!(
                    "fetch {direction} ({count}) from {} into {};",
                    quoted(cursor),
                    quoted(into)
                ));
            }
            Step::Move(direction, cursor) => {
                self.put(format_args!("move {direction} in {};", quoted(cursor)))
            }
            Step::Close(cursor) => self.put(format_args!("close {};", quoted(cursor))),
            Step::Return(None) => self.put("return;"),
            Step::Return(Some(value)) => self.put(format_args!("return {value};")),
            Step::ReturnRows(query) => self.put(format_args!("return query {query};")),
        }
    }
}

/// Steps as a block without variables.
pub fn block(body: &[Step]) -> String {
    let mut writer = Writer::default();
    writer.text.push_str("begin");
    writer.body(body);
    writer.text.push_str(" end");
    writer.text
}

pub fn size(step: &Step) -> usize {
    let mut writer = Writer::default();
    writer.step(step);
    writer.text.len()
}

impl Display for Raise {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "raise {} using ", self.level)?;
        if let Some(code) = self.code {
            write!(to, "errcode = '{code}', ")?;
        }
        write!(to, "message = {}", self.message)?;
        self.detail.iter().try_for_each(|detail| write!(to, ", detail = {detail}"))?;
        self.hint.iter().try_for_each(|hint| write!(to, ", hint = {hint}"))
    }
}

impl Display for Declared {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, " {} {}", quoted(&self.name), self.type_)?;
        self.value.iter().try_for_each(|value| write!(to, " := {value}"))?;
        to.write_str(";")
    }
}

impl Display for Argument {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{} {} {}", self.mode, quoted(&self.name), self.type_)?;
        self.default.iter().try_for_each(|default| write!(to, " default {default}"))
    }
}

impl Display for Routine {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let kind = if self.is_procedure { "procedure" } else { "function" };
        write!(to, "create {kind} {} ({})", self.name, Joined(&self.arguments, ", "))?;
        self.returns.iter().try_for_each(|returns| write!(to, " returns {returns}"))?;
        to.write_str(" language plpgsql")?;
        self.volatility.iter().try_for_each(|volatility| write!(to, " {volatility}"))?;
        to.write_str(if self.is_strict { " strict" } else { "" })?;
        to.write_str(if self.security_definer { " security definer" } else { "" })?;
        write!(to, " set search_path = {} as {}", self.search_path, literal(&self.text()))
    }
}

impl Routine {
    /// The text between its quotes.
    fn text(&self) -> String {
        let mut writer = Writer { line: 1, reached: 1, ..Writer::default() };
        writer.text.push_str("#variable_conflict use_column declare");
        writer.text.extend(self.variables.iter().map(Declared::to_string));
        writer.text.push_str(" begin");
        self.body.iter().for_each(|step| writer.step(step));
        writer.text.push_str(" end\n");
        writer.text.extend(self.notes.iter().map(|note| format!("-- {note}\n")));
        writer.text
    }
}
