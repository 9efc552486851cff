//! The body of a procedure in PL/pgSQL.
//!
//! Every variable is named with its @ ("@a"), as no column can be: PL/pgSQL takes neither for the other. What the
//! compiler adds for itself is named with two ("@@status").
//!
//! A statement that fails ends the procedure, and all it did is undone. Where the procedure asks for @@error, or
//! says SET XACT_ABORT OFF, each statement runs in a block of its own, and the procedure goes on after those
//! errors that T-SQL goes on after. In a TRY block each statement has a block too, so that what was done before
//! the error stays. A transaction is a block that ends where every path has ended it (`transaction`).

use super::declared::{Cursor, FETCH_STATUS};
use super::place::{Body, Handler, Place, Segment};
use super::transaction;
use super::variable::{caught_name, Named};
use crate::error::Error;
use crate::facts::types::{Type, INT};
use crate::resolve::names::{folded, literal};
use crate::resolve::Scope;
use crate::translate;
use crate::tree::{self, Statement, StatementKind as Tree};
use std::collections::{HashMap, HashSet};

pub(super) use crate::resolve::names::quoted;

/// The variable that holds the return status.
pub const STATUS: &str = "@@status";

/// Of GET DIAGNOSTICS.
pub const COUNTED: &str = "row_count";

/// The trigger that has fired this one.
const FIRED: &str = "@@fired";

/// Bytes of PL/pgSQL that one procedure becomes at most.
const LONGEST: usize = 4 << 20;

/// Lines of PL/pgSQL that can fail, and what they leave in @@rowcount.
pub struct Run {
    pub lines: Vec<String>,
    /// None: what it was.
    pub rows: Option<String>,
    /// A procedure's, whose wrong names are errors for a CATCH block.
    pub calls: bool,
}

impl Run {
    pub fn new(lines: Vec<String>) -> Run {
        Run { lines, rows: Some(String::from("0")), calls: false }
    }

    pub fn leaving(lines: Vec<String>, rows: impl Into<String>) -> Run {
        Run { rows: Some(rows.into()), ..Run::new(lines) }
    }

    pub fn keeping(lines: Vec<String>) -> Run {
        Run { rows: None, ..Run::new(lines) }
    }
}

/// What a body is written for.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    Procedure,
    /// It returns a value of this type.
    Function(Type),
    /// `changed`: the table of the rows that have changed, `inserted` or `deleted`.
    Trigger {
        changed: &'static str,
    },
}

/// Writes the body of one procedure, function or trigger.
pub struct Writer<'t> {
    pub purpose: Purpose,
    pub name: String,
    pub schema: String,
    pub scope: Scope,
    /// Its statements.
    pub lines: Vec<String>,
    /// The lines of T-SQL that each of `lines` is for.
    pub places: Vec<u32>,
    line: u32,
    /// Its variables with their types, in the order in which they are declared.
    pub declared: Vec<(String, String)>,
    known: HashSet<String>,
    /// It sends rows, calls procedures, waits or makes tables: nothing for a connection of several.
    pub own_connection: bool,
    pub(super) indent: usize,
    /// Temporary tables that end with the procedure.
    pub(super) temporary: Vec<String>,
    pub(super) variables: HashMap<String, *const tree::Declared>,
    pub(super) cursors: HashMap<String, Cursor<'t>>,
    /// Variables that stand for others while a cursor is opened.
    pub(super) copies: HashMap<String, String>,
    pub(super) caught: Option<u32>,
    pub(super) tells_counts: bool,
    pub(super) calls: bool,
    pub(super) tracks_rows: bool,
    pub(super) tracks_errors: bool,
    pub(super) marks_try: bool,
    numbers: u32,
    written: usize,
}

impl<'t> Writer<'t> {
    pub fn new(
        purpose: Purpose,
        name: String,
        schema: String,
        parameters: HashMap<String, Option<Type>>,
        sybase: bool,
    ) -> Self {
        let mut variables = parameters;
        for own in ["@@procid", FETCH_STATUS[0], FETCH_STATUS[1]] {
            variables.insert(String::from(own), Some(INT));
        }
        let scope =
            Scope { variables, sybase, procedure: true, database: schema.clone(), ..Scope::default() };
        Writer {
            purpose,
            name,
            schema,
            scope,
            lines: Vec::new(),
            places: Vec::new(),
            line: 1,
            declared: Vec::new(),
            known: HashSet::new(),
            own_connection: false,
            indent: 1,
            temporary: Vec::new(),
            variables: HashMap::new(),
            cursors: HashMap::new(),
            copies: HashMap::new(),
            caught: None,
            tells_counts: true,
            calls: false,
            tracks_rows: false,
            tracks_errors: false,
            marks_try: false,
            numbers: 0,
            written: 0,
        }
    }

    /// Writes the whole body. `mentioned`: the variables that its text names.
    pub fn write(&mut self, body: &'t [Statement], mentioned: &HashSet<String>) -> Result<(), Error> {
        let holds = |wanted: fn(&Tree) -> bool| tree::every(body).any(|statement| wanted(&statement.kind));
        self.calls = holds(|kind| matches!(kind, Tree::Execute(_) | Tree::ExecuteText(_)));
        self.tracks_rows = mentioned.contains("@@rowcount");
        // who calls may ask for @@error after a RAISERROR here, or in what is called from here
        let asks = mentioned.contains("@@error");
        let tells = self.calls || holds(|kind| matches!(kind, Tree::Raise(_)));
        let is_procedure = self.purpose == Purpose::Procedure;
        self.tracks_errors = asks || (tells && is_procedure);
        let mut rows = String::from("integer := 0");
        match &self.purpose {
            Purpose::Procedure => self.declare(STATUS, "integer := 0"),
            Purpose::Function(of) => {
                let of = of.sql();
                self.declare(STATUS, of);
            }
            Purpose::Trigger { changed } => {
                rows = format!("integer := (select count(*) from {changed})");
                self.tells_counts = false;
            }
        }
        let own = literal(&format!("{}.{}", self.schema, self.name));
        let is_trigger = matches!(self.purpose, Purpose::Trigger { .. });
        if is_trigger {
            self.declare(FIRED, "text := tsql.fired()");
            // a trigger that fires itself is not run again
            self.add(format!("if {} = {own} then return null; end if;", quoted(FIRED)));
            self.add(format!("perform set_config('tsql.trigger', {own}, true);"));
        }
        if self.tracks_rows {
            self.declare("@@rowcount", rows);
        }
        if self.tracks_errors {
            self.declare("@@error", "integer := 0");
        }
        self.add(format!("<<{}>>", quoted(super::BODY)));
        let handler = if goes_on(body, asks) { Handler::GoOn } else { Handler::None };
        self.block("begin", "end;", |writer| {
            writer.body(&Body::of(body), &Place { handler, ..Place::default() })?;
            if !writer.lines.last().is_some_and(|line| line.trim().ends_with(';')) {
                writer.add("null;");
            }
            Ok(())
        })?;
        if self.marks_try {
            self.declare(
                super::TRY,
                format!("text := coalesce(current_setting('{}', true), '')", super::TRY_SETTING),
            );
            self.set_try(&quoted(super::TRY));
        }
        if is_trigger {
            self.add(format!("perform set_config('tsql.trigger', {}, true);", quoted(FIRED)));
        }
        if self.tracks_errors && is_procedure {
            self.add(format!("perform tsql.leave_error(\"@@error\", {});", self.calls));
        }
        if self.tracks_rows && is_procedure {
            self.add("perform set_config('tsql.rowcount', coalesce(\"@@rowcount\"::text, ''), true);");
        }
        if !self.temporary.is_empty() {
            let names = array(self.temporary.iter().map(|name| literal(&name.to_lowercase())), "text");
            self.add(format!("perform tsql.drop_temporary({names}, true);"));
        }
        Ok(())
    }

    // --- lines ---

    pub(super) fn add(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        self.written += line.len() + 2 * self.indent;
        self.lines.push(format!("{:indent$}{line}", "", indent = 2 * self.indent));
        self.places.push(self.line);
    }

    pub(super) fn block(
        &mut self,
        start: &str,
        end: &str,
        inside: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.add(start);
        self.indent += 1;
        let before = self.lines.len();
        inside(self)?;
        if self.lines.len() == before {
            self.add("null;");
        }
        self.indent -= 1;
        self.add(end);
        Ok(())
    }

    pub(super) fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn declare(&mut self, name: impl Into<String>, kind: impl Into<String>) {
        let name = name.into();
        if self.known.insert(name.clone()) {
            self.declared.push((name, kind.into()));
        }
    }

    pub(super) fn is_declared(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    /// A statement and what becomes of its error.
    pub(super) fn run(&mut self, place: &Place<'t>, line: u32, run: Run) {
        self.line = line;
        let mut lines = run.lines;
        if self.tracks_rows {
            match run.rows.as_deref() {
                Some(COUNTED) => lines.push(String::from("get diagnostics \"@@rowcount\" = row_count;")),
                Some(rows) => lines.push(format!("\"@@rowcount\" := {rows};")),
                None => {}
            }
        }
        if self.tracks_errors {
            lines.push(String::from("\"@@error\" := 0;"));
        }
        if place.handler.is_none() {
            for text in lines {
                self.add(text);
            }
            return;
        }
        for part in [super::TEXT, super::DETAIL, super::TABLE, super::INDEX] {
            self.declare(part, "text");
        }
        let [text, detail, table, index] =
            [super::TEXT, super::DETAIL, super::TABLE, super::INDEX].map(quoted);
        self.add("begin");
        self.indent += 1;
        for text in lines {
            self.add(text);
        }
        self.indent -= 1;
        self.add("exception when others then");
        self.indent += 1;
        self.add(format!(
            "get stacked diagnostics {text} = message_text, {detail} = pg_exception_detail, \
             {table} = table_name, {index} = constraint_name;"
        ));
        self.add(match (place.handler.as_try(), run.calls) {
            (None, _) => format!("if not tsql.ends_its_statement(sqlstate, {detail}) then raise; end if;"),
            (Some(_), true) => String::from("if sqlstate in ('40001', '40P01') then raise; end if;"),
            (Some(_), false) => String::from("if tsql.ends_its_batch(sqlstate) then raise; end if;"),
        });
        let state = format!("tsql.own_state(sqlstate, {table}, {index}, {})", self.scope.sybase);
        let said = format!("{state}, {text}, {detail}, {line}, {}", literal(&self.name));
        match place.handler.as_try() {
            Some(block) => {
                let caught = quoted(&caught_name(block.number));
                self.add(format!("{caught} := tsql.caught({said});"));
                if self.tracks_errors {
                    self.add(format!("\"@@error\" := {caught}.\"number\";"));
                }
                self.add(format!("exit {};", quoted(&block.label)));
            }
            None => {
                let told = format!("tsql.tell_caught({said})");
                self.add(match self.tracks_errors {
                    true => format!("\"@@error\" := {told};"),
                    false => format!("perform {told};"),
                });
                if self.tracks_rows {
                    self.add("\"@@rowcount\" := 0;");
                }
            }
        }
        self.indent -= 1;
        self.add("end;");
    }

    /// A statement that cannot fail and leaves this in @@rowcount.
    pub(super) fn none(&mut self, rows: Option<&str>) {
        if let (true, Some(rows)) = (self.tracks_rows, rows) {
            self.add(format!("\"@@rowcount\" := {rows};"));
        }
        if self.tracks_errors {
            self.add("\"@@error\" := 0;");
        }
    }

    // --- statements ---

    pub(super) fn body(&mut self, body: &Body<'t>, place: &Place<'t>) -> Result<(), Error> {
        let statements = body.statements();
        let mut at = 0;
        while let Some(statement) = statements.get(at) {
            if matches!(statement.kind, Tree::BeginTransaction(_)) && place.region.is_none() {
                let following = body.after(at + 1);
                let following_statements = following.statements().iter().copied();
                let end = transaction::end_of_region(following_statements, statement.at.line)?;
                self.region(statement, &following.until(end + 1), place)?;
                at += end + 2;
                continue;
            }
            if place.region.is_some() {
                let following =
                    Segment { body: body.after(at + 1), caught: place.caught, guard: place.guard };
                let inside = Place { rest: place.rest.before(following), ..place.clone() };
                self.statement(statement, &inside)?;
                let ends = matches!(
                    statement.kind,
                    Tree::Commit(_) | Tree::Rollback(_) | Tree::Return(_) | Tree::Throw(_)
                );
                if ends {
                    return Ok(());
                }
            } else {
                self.statement(statement, place)?;
            }
            at += 1;
        }
        Ok(())
    }

    pub(super) fn statement(&mut self, statement: &'t Statement, place: &Place<'t>) -> Result<(), Error> {
        if self.written > LONGEST {
            return Err(Error::nested_too_deeply(statement.at));
        }
        let line = statement.at.line;
        self.line = line;
        self.caught = place.caught;
        match &statement.kind {
            Tree::Declare(variables) => self.declare_variables(variables, place),
            Tree::DeclareTable(table) => self.declare_table(table, line, place),
            Tree::Assign(assign) => {
                let compound = assign.value_assigned();
                let value = compound.as_ref().unwrap_or(&assign.value);
                self.assign(&assign.variable, value, line, place)
            }
            Tree::If { condition, then, otherwise } => {
                let otherwise = otherwise.as_deref().map_or(&[][..], Statement::body);
                self.if_(condition, then.body(), otherwise, place)
            }
            Tree::While { condition, body } => self.while_(condition, body.body(), place),
            Tree::Break => self.leave_loop("exit", line, place),
            Tree::Continue => self.leave_loop("continue", line, place),
            Tree::Block(body) => self.body(&Body::of(body), place),
            Tree::Return(value) => self.return_(value.as_ref(), line, place),
            Tree::Select(_) | Tree::Update(_) | Tree::Delete(_) => self.query(&statement.kind, line, place),
            Tree::Insert(insert) => match &insert.source {
                tree::InsertSource::Execute(_) | tree::InsertSource::ExecuteText(_) => {
                    Err(Error::refused("insert … execute", "not inside a procedure", line))
                }
                _ => self.query(&statement.kind, line, place),
            },
            Tree::Execute(execute) => self.execute(execute, line, place),
            Tree::Print { text, arguments } => self.print(text, arguments, line, place),
            Tree::Raise(raise) => self.raise(raise, line, place),
            Tree::Throw(throw) => self.throw(throw.as_deref(), line, place),
            Tree::WaitforDelay(delay) => {
                self.own_connection = true;
                let (scope, mut named) = self.named();
                let delay = translate::value(delay, scope, &mut named, None)?.sql;
                self.run(place, line, Run::new(vec![format!("perform pg_sleep(tsql.delay({delay}));")]));
                Ok(())
            }
            Tree::WaitforTime(_) => Err(Error::refused("waitfor time", "waitfor delay says how long", line)),
            Tree::TryCatch { body, catch } => {
                let guard = super::place::Guard { catch, line };
                self.try_catch(&Body::of(body), guard, place)
            }
            Tree::Commit(_) => self.commit(line, place),
            Tree::Rollback(_) => self.rollback(line, place),
            Tree::Set(words) => self.option(words, line),
            Tree::DeclareCursor(cursor) => self.declare_cursor(cursor, line),
            Tree::OpenCursor(name) => self.open(name, line, place),
            Tree::Fetch(fetch) => self.fetch(fetch, line, place),
            Tree::CloseCursor(name) => self.close(name, line, place),
            Tree::DeallocateCursor(name) => self.deallocate(name, line),
            Tree::CreateTable(_) | Tree::CreateIndex(_) | Tree::DropIndexes(_) | Tree::Truncate(_) => {
                self.define(&statement.kind, line, place)
            }
            Tree::Drop(objects) if objects.kind == tree::ObjectKind::Table => {
                self.define(&statement.kind, line, place)
            }
            other => Err(refused(other, line)),
        }
    }

    fn declare_variables(&mut self, variables: &'t [tree::Declared], place: &Place<'t>) -> Result<(), Error> {
        for declared in variables {
            let name = &declared.variable.name;
            let line = declared.variable.at.line;
            // a CATCH block may be written twice
            let again = self.variables.get(name).is_some_and(|known| std::ptr::eq(*known, declared));
            if self.scope.variables.contains_key(name) && !again {
                return Err(Error::declared_twice(name, line));
            }
            folded(name, line)?;
            let of = crate::facts::types::of_name(&declared.type_, 1)?;
            self.variables.insert(name.clone(), declared);
            self.declare(name.clone(), of.sql());
            self.scope.variables.insert(name.clone(), Some(of));
            if let Some(value) = &declared.value {
                self.assign(&declared.variable, value, line, place)?;
            }
        }
        Ok(())
    }

    fn assign(
        &mut self,
        variable: &tree::Variable,
        value: &tree::Expression,
        line: u32,
        place: &Place<'t>,
    ) -> Result<(), Error> {
        let of = self.type_of(&variable.name, line)?;
        let text = self.value(value, of)?;
        let run = Run::leaving(vec![format!("{} := {text};", quoted(&variable.name))], "1");
        self.run(place, line, run);
        Ok(())
    }

    // --- values ---

    /// The type of a variable that takes a value.
    pub(super) fn type_of(&self, name: &str, line: u32) -> Result<Type, Error> {
        let of = self.scope.variables.get(name).copied().flatten();
        of.filter(|_| !name.starts_with("@@")).ok_or_else(|| Error::undeclared(name, line))
    }

    pub(super) fn value(&mut self, value: &tree::Expression, target: Type) -> Result<String, Error> {
        let (scope, mut named) = self.named();
        Ok(translate::value(value, scope, &mut named, Some(target))?.sql)
    }

    /// What a translation needs here.
    pub(super) fn named(&self) -> (&Scope, Named<'_>) {
        let fetches = self.is_declared(FETCH_STATUS[0]);
        let named = Named {
            procedure: &self.name,
            schema: &self.schema,
            copies: &self.copies,
            caught: self.caught,
            calls: self.calls,
            fetches,
        };
        (&self.scope, named)
    }
}

/// Whether the procedure goes on after an error; `asks`: for @@error.
fn goes_on(body: &[Statement], asks: bool) -> bool {
    for statement in tree::every(body) {
        if let Tree::Set(words) = &statement.kind {
            let words = tree::set_words(words);
            if let Some(("xact_abort", rest)) =
                words.split_first().map(|(first, rest)| (first.as_str(), rest))
            {
                return rest == ["off"];
            }
        }
    }
    asks
}

fn refused(kind: &Tree, line: u32) -> Error {
    const NOT_INSIDE: &str = "not inside a procedure";
    let (what, why) = match kind {
        Tree::ExecuteText(_) => ("execute (…)", super::OWNER),
        Tree::Save(_) => ("save transaction", "a part of a transaction cannot be taken back alone"),
        Tree::BeginTransaction(_) => ("begin transaction", "one inside another"),
        Tree::Use(_) => ("use", NOT_INSIDE),
        Tree::Goto(_) | Tree::Label(_) => ("goto", "there is no goto"),
        Tree::AlterTable { .. } => ("alter table", NOT_INSIDE),
        Tree::CreateView(_) => ("create view", NOT_INSIDE),
        Tree::CreateProcedure(_) => ("create procedure", NOT_INSIDE),
        Tree::CreateFunction(_) => ("create function", NOT_INSIDE),
        Tree::CreateTrigger(_) => ("create trigger", NOT_INSIDE),
        Tree::Drop(_) => ("drop", NOT_INSIDE),
        Tree::Grant(_) => ("grant", NOT_INSIDE),
        Tree::SetIdentityInsert { .. } => ("set identity_insert", NOT_INSIDE),
        Tree::Writetext(_) => ("writetext", NOT_INSIDE),
        _ => ("this statement", NOT_INSIDE),
    };
    Error::refused(what, why, line)
}

pub(super) fn array(values: impl IntoIterator<Item = String>, kind: &str) -> String {
    let values: Vec<String> = values.into_iter().collect();
    format!("array[{}]::{kind}[]", values.join(", "))
}
