//! Lines of PL/pgSQL that can fail, and the handling of their errors.

use super::context::{Context, Try};
use super::variable::{
    caught_name, BODY, CONTEXT, DETAIL, DOOMED, INDEX, MESSAGE, SCHEMA, STATUS, TABLE, TEXT,
};
use super::writer::{quoted, BodyWriter, Purpose};
use crate::facts::notices::ENDED;
use crate::resolve::names::literal;

/// The properties read from an error, and the variables that receive them.
const DIAGNOSTICS: [(&str, &str); 6] = [
    (TEXT, "message_text"),
    (DETAIL, "pg_exception_detail"),
    (SCHEMA, "schema_name"),
    (TABLE, "table_name"),
    (INDEX, "constraint_name"),
    (CONTEXT, "pg_exception_context"),
];

/// Lines of PL/pgSQL that can fail, and the @@rowcount that they leave.
pub struct Run {
    pub lines: Vec<String>,
    /// None: unchanged.
    pub rows: Option<String>,
    /// It calls a procedure; a CATCH block handles a wrong name.
    pub calls: bool,
    /// T-SQL raises its error, which does not undo the procedure's changes.
    pub raises: bool,
    /// Any error ends the procedure: for THROW, and where it is undefined how to continue.
    pub ends: bool,
    /// The last action of a statement whose error a CATCH block handles.
    pub caught: Option<String>,
    /// The further action of a statement whose error is only sent.
    pub sent: Option<String>,
}

impl Run {
    pub fn new(lines: Vec<String>) -> Run {
        let rows = Some(String::from("0"));
        Run { lines, rows, calls: false, raises: false, ends: false, caught: None, sent: None }
    }

    pub fn leaving(lines: Vec<String>, rows: impl Into<String>) -> Run {
        Run { rows: Some(rows.into()), ..Run::new(lines) }
    }

    pub fn keeping(lines: Vec<String>) -> Run {
        Run { rows: None, ..Run::new(lines) }
    }
}

impl<'t> BodyWriter<'t> {
    /// Writes a statement whose end is sent to the client without a row count.
    ///
    /// SQL Server does so after every statement (MS-TDS 2.2.7.7), and after each condition of a WHILE
    /// (microsoft/go-mssqldb, TestSprocWithCursorNoResult). The ends of PRINT, RAISERROR, cursors and tables are sent,
    /// which clients read as results (FreeTDS, src/odbc/unittests/raiserror.c); those of assignments and conditions are
    /// not, of which a loop would send one in each pass.
    pub(super) fn run_with_end(&mut self, context: &Context<'t>, line: u32, mut run: Run) {
        run.lines.extend(self.end_notice("''"));
        self.run(context, line, run);
    }

    /// The notice of the end of a statement. `detail`: the notice's detail, an expression.
    pub(super) fn end_notice(&self, detail: &str) -> Option<String> {
        let is_told = self.sends_counts && self.purpose == Purpose::Procedure;
        let detail = self.silently(format!("({detail})"));
        is_told
            .then(|| format!("raise notice using errcode = '{ENDED}', message = 'end', detail = {detail};"))
    }

    /// Writes a statement and the handling of its error.
    pub(super) fn run(&mut self, context: &Context<'t>, line: u32, run: Run) {
        self.line = line;
        let mut lines = run.lines;
        lines.extend(run.rows.as_deref().and_then(|rows| self.kept_rows(rows)));
        // a called procedure sets @@error itself
        if self.tracks_errors && !run.calls {
            lines.push(String::from("\"@@error\" := 0;"));
        }
        let hands_over =
            self.hands_over(context) && (self.has_sent || run.raises || !context.handler.is_none());
        if context.handler.is_none() && !hands_over {
            for text in lines {
                self.add(text);
            }
            return;
        }
        for (part, _) in DIAGNOSTICS {
            self.declare(part, "text");
        }
        let [text, detail, schema, table, index, stack] = DIAGNOSTICS.map(|(part, _)| quoted(part));
        self.add("begin");
        self.indent += 1;
        for text in lines {
            self.add(text);
        }
        self.indent -= 1;
        self.add("exception when others then");
        self.indent += 1;
        let diagnostics = DIAGNOSTICS.map(|(part, item)| format!("{} = {item}", quoted(part)));
        self.add(format!("get stacked diagnostics {};", diagnostics.join(", ")));
        let error = format!(
            "tsql.caught(sqlstate, {text}, {detail}, {schema}, {table}, {index}, {stack}, {}, {line}, {})",
            self.scope.dialect.is_ase,
            literal(&self.name)
        );
        if hands_over {
            self.add(format!("if tsql.hands_over(sqlstate, {detail}) then"));
            self.add(format!("  perform tsql.hand_over({error});"));
            if let Some(line) = &run.caught {
                self.add(format!("  {line}"));
            }
            self.add(format!("  exit {};", quoted(BODY)));
            self.add("end if;");
        }
        let keeps =
            context.handler.as_try().is_none() && !context.handler.is_none() && self.hands_over(context);
        if context.handler.is_none() || run.ends && context.handler.as_try().is_none() {
            self.raise_again(keeps, &error);
            self.indent -= 1;
            self.add("end;");
            return;
        }
        match (context.handler.as_try(), run.calls) {
            (None, _) => {
                let arithmetic = match self.scope.dialect.goes_on_after_arithmetic {
                    true => format!(" or tsql.is_arithmetic(sqlstate, {text}, {table}, {index})"),
                    false => String::new(),
                };
                self.add(format!("if not tsql.goes_on_after(sqlstate, {detail}){arithmetic} then"));
                self.indent += 1;
                self.raise_again(keeps, &error);
                self.indent -= 1;
                self.add("end if;");
            }
            (Some(_), true) => self.add("if sqlstate in ('40001', '40P01') then raise; end if;"),
            (Some(_), false) => self.add("if tsql.ends_its_batch(sqlstate) then raise; end if;"),
        }
        match context.handler.as_try() {
            Some(block) => {
                for text in self.to_catch(block, &error, run.caught, context) {
                    self.add(text);
                }
            }
            None => {
                let message = quoted(MESSAGE);
                self.declare(MESSAGE, "tsql.error");
                self.add(format!("{message} := {error};"));
                let number = format!("tsql.tell_caught({message})");
                self.add(match self.tracks_errors {
                    true => format!("\"@@error\" := {number};"),
                    false => format!("perform {number};"),
                });
                if let Some(line) = run.sent {
                    self.add(line);
                }
                self.lower_status();
                if let Some(line) = self.end_notice("'failed'") {
                    self.add(line);
                }
                if let Some(line) = self.kept_rows("0") {
                    self.add(line);
                }
            }
        }
        self.indent -= 1;
        self.add("end;");
    }

    /// Ends the procedure by an error. `keeps`: earlier changes remain if the error ends only the batch.
    fn raise_again(&mut self, keeps: bool, error: &str) {
        if keeps {
            self.add(format!("if tsql.ends_with_it(sqlstate, {}) then", quoted(DETAIL)));
            self.add(format!("  perform tsql.hand_over({error});"));
            self.add(format!("  exit {};", quoted(BODY)));
            self.add("end if;");
        }
        self.add("raise;");
    }

    /// Whether an error may be passed to a TRY block around the call by a return, which undoes neither the selected
    /// rows nor changes. Not out of a transaction, which would remain open for the block.
    pub(super) fn hands_over(&self, context: &Context<'t>) -> bool {
        self.purpose == Purpose::Procedure && context.region.is_none() && context.handler.as_try().is_none()
    }

    /// The lines that pass an error to the CATCH of a TRY block. `last`: the last action of its statement.
    pub(super) fn to_catch(
        &self,
        block: &Try<'t>,
        error: &str,
        last: Option<String>,
        context: &Context<'t>,
    ) -> Vec<String> {
        let caught = quoted(&caught_name(block.number));
        let mut lines = vec![
            format!("{caught} := {error};"),
            format!("perform tsql.doom({caught}.\"number\", {});", context.region.is_some()),
        ];
        if self.dooms {
            // RAISERROR does not honor SET XACT_ABORT, and has no number of SQL Server
            lines.push(format!("if sqlstate <> 'TS001' or {caught}.\"number\" < 13000 then"));
            lines.push(format!("  {} := true;", quoted(DOOMED)));
            lines.push(String::from("  perform set_config('tsql.doomed', 'on', true);"));
            lines.push(String::from("end if;"));
        }
        if self.tracks_errors {
            lines.push(format!("\"@@error\" := {caught}.\"number\";"));
        }
        lines.extend(last);
        lines.push(format!("exit {};", quoted(&block.label)));
        lines
    }

    /// An error sent to the client, in MESSAGE, makes the return status 10 minus its severity, unless an earlier one
    /// was worse or RETURN sets another (ASE Reference Manual: Procedures, "Procedure return status").
    pub(super) fn lower_status(&mut self) {
        if self.purpose == Purpose::Procedure {
            let (status, message) = (quoted(STATUS), quoted(MESSAGE));
            self.add(format!("{status} := least({status}, 10 - {message}.severity);"));
        }
    }

    /// A statement that cannot fail, and its @@rowcount.
    pub(super) fn none(&mut self, rows: Option<&str>) {
        if let Some(line) = rows.and_then(|rows| self.kept_rows(rows)) {
            self.add(line);
        }
        if self.tracks_errors {
            self.add("\"@@error\" := 0;");
        }
    }
}
