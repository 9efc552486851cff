//! Lines of PL/pgSQL that can fail, and the handling of their errors.

use super::place::Place;
use super::variable::{caught_name, CONTEXT, DETAIL, INDEX, MESSAGE, SCHEMA, STATUS, TABLE, TEXT};
use super::writer::{quoted, BodyWriter, Purpose};
use crate::facts::notices::ENDED;
use crate::resolve::names::literal;

/// What is asked of an error, and the variables that take it.
const DIAGNOSTICS: [(&str, &str); 6] = [
    (TEXT, "message_text"),
    (DETAIL, "pg_exception_detail"),
    (SCHEMA, "schema_name"),
    (TABLE, "table_name"),
    (INDEX, "constraint_name"),
    (CONTEXT, "pg_exception_context"),
];

/// Lines of PL/pgSQL that can fail, and what they leave in @@rowcount.
pub struct Run {
    pub lines: Vec<String>,
    /// None: what it was.
    pub rows: Option<String>,
    /// A procedure's, whose wrong names are errors for a CATCH block.
    pub calls: bool,
    /// What a statement whose error a CATCH block gets does in the end.
    pub caught: Option<String>,
    /// What one whose error is only sent does beside.
    pub sent: Option<String>,
}

impl Run {
    pub fn new(lines: Vec<String>) -> Run {
        Run { lines, rows: Some(String::from("0")), calls: false, caught: None, sent: None }
    }

    pub fn leaving(lines: Vec<String>, rows: impl Into<String>) -> Run {
        Run { rows: Some(rows.into()), ..Run::new(lines) }
    }

    pub fn keeping(lines: Vec<String>) -> Run {
        Run { rows: None, ..Run::new(lines) }
    }
}

impl<'t> BodyWriter<'t> {
    /// Writes a statement of which the client is told the end, but no number of rows.
    ///
    /// SQL Server does so after every statement (MS-TDS 2.2.7.7), and after each condition of a WHILE
    /// (microsoft/go-mssqldb, TestSprocWithCursorNoResult). Those of PRINT, RAISERROR, cursors and tables are sent, which
    /// clients read as results (FreeTDS, src/odbc/unittests/raiserror.c); of assignments and conditions a loop would only
    /// send as many as it has turns.
    pub(super) fn run_told(&mut self, place: &Place<'t>, line: u32, mut run: Run) {
        run.lines.extend(self.told_end("''"));
        self.run(place, line, run);
    }

    /// The notice of the end of a statement. `detail`: of the notice, an expression.
    pub(super) fn told_end(&self, detail: &str) -> Option<String> {
        let is_told = self.sends_counts && self.purpose == Purpose::Procedure;
        is_told
            .then(|| format!("raise notice using errcode = '{ENDED}', message = 'end', detail = {detail};"))
    }

    /// Writes a statement and the handling of its error.
    pub(super) fn run(&mut self, place: &Place<'t>, line: u32, run: Run) {
        self.line = line;
        let mut lines = run.lines;
        lines.extend(run.rows.as_deref().and_then(|rows| self.kept_rows(rows)));
        // a called procedure sets @@error itself
        if self.tracks_errors && !run.calls {
            lines.push(String::from("\"@@error\" := 0;"));
        }
        if place.handler.is_none() {
            for text in lines {
                self.add(text);
            }
            return;
        }
        for (part, _) in DIAGNOSTICS {
            self.declare(part, "text");
        }
        let [text, detail, schema, table, index, context] = DIAGNOSTICS.map(|(part, _)| quoted(part));
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
        self.add(match (place.handler.as_try(), run.calls) {
            (None, _) if self.scope.sybase => format!(
                "if not tsql.ends_its_statement(sqlstate, {detail}) \
                 or tsql.is_arithmetic(sqlstate, {text}, {table}, {index}) then raise; end if;"
            ),
            (None, _) => format!("if not tsql.ends_its_statement(sqlstate, {detail}) then raise; end if;"),
            (Some(_), true) => String::from("if sqlstate in ('40001', '40P01') then raise; end if;"),
            (Some(_), false) => String::from("if tsql.ends_its_batch(sqlstate) then raise; end if;"),
        });
        let error = format!(
            "tsql.caught(sqlstate, {text}, {detail}, {schema}, {table}, {index}, {context}, {}, {line}, {})",
            self.scope.sybase,
            literal(&self.name)
        );
        match place.handler.as_try() {
            Some(block) => {
                let caught = quoted(&caught_name(block.number));
                self.add(format!("{caught} := {error};"));
                self.add(format!("perform tsql.doom({caught}.\"number\", {});", place.region.is_some()));
                if self.tracks_errors {
                    self.add(format!("\"@@error\" := {caught}.\"number\";"));
                }
                if let Some(line) = run.caught {
                    self.add(line);
                }
                self.add(format!("exit {};", quoted(&block.label)));
            }
            None => {
                let told = quoted(MESSAGE);
                self.declare(MESSAGE, "tsql.error");
                self.add(format!("{told} := {error};"));
                let number = format!("tsql.tell_caught({told})");
                self.add(match self.tracks_errors {
                    true => format!("\"@@error\" := {number};"),
                    false => format!("perform {number};"),
                });
                if let Some(line) = run.sent {
                    self.add(line);
                }
                self.lower_status();
                if let Some(line) = self.told_end("'failed'") {
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

    /// An error that the client has been told of, in MESSAGE, makes the return status 10 less its severity, unless an
    /// earlier one was worse or RETURN gives another (ASE Reference Manual: Procedures, "Procedure return status").
    pub(super) fn lower_status(&mut self) {
        if self.purpose == Purpose::Procedure {
            let (status, told) = (quoted(STATUS), quoted(MESSAGE));
            self.add(format!("{status} := least({status}, 10 - {told}.severity);"));
        }
    }

    /// A statement that cannot fail and leaves this in @@rowcount.
    pub(super) fn none(&mut self, rows: Option<&str>) {
        if let Some(line) = rows.and_then(|rows| self.kept_rows(rows)) {
            self.add(line);
        }
        if self.tracks_errors {
            self.add("\"@@error\" := 0;");
        }
    }
}
