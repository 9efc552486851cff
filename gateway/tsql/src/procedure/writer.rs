//! Writes the body of a procedure in PL/pgSQL.
//!
//! Every variable is named with its @ ("@a"), which no column name contains, so PL/pgSQL never confuses them. Variables
//! of the compiler begin with two ("@@status").
//!
//! Each statement runs in a block of its own, and the procedure continues after the errors after which T-SQL continues.
//! A procedure that does only one thing needs no block: an error leaves nothing to keep and nothing to continue with.
//! Under SET XACT_ABORT ON, and in functions, an error ends the whole. In a TRY block each statement has a block too,
//! so that changes made before the error remain. A transaction is a block that ends where every path has ended it
//! (`statements/transaction.rs`).

use super::context::{Context, Handler, Label};
use super::declared::{changed_cursors, Cursor, FETCH_STATUS};
use super::inside::{Inside, Noted};
use super::statements::option::xact_abort;
use super::statements::query::drop_temporary;
use super::statements::{labels, message};
use super::variable::{
    variable, Named, ABORTS, ABORTS_SETTING, BODY, DOOMED, ERROR, FIRED, LEFT, NOCOUNT_SETTING,
    OUTER_TRANCOUNT, ROLLED_BACK, ROWCOUNT, SCOPE_IDENTITY, SILENT, STATUS, TRANCOUNT, TRANCOUNT_SETTING,
    TRY, TRY_SETTING,
};
use crate::bind;
use crate::digest;
use crate::error::Error;
use crate::facts::notices::LEFT_ROWS;
use crate::facts::session;
use crate::facts::types::{Type, INT};
use crate::fragments::Facts;
use crate::plpgsql::{Block, Body, Declared, Step};
use crate::postgres::{call, Query, Scalar, Source};
use crate::resolve::{changing, defined_tables, Scope};
use crate::schema::Table;
use crate::tree::{self, Statement, StatementKind as Tree};
use crate::Dialect;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::{replace, take};
use std::sync::Arc;

/// The purpose of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    Procedure,
    /// It returns a value of this type.
    Function(Type),
    /// It returns the rows of this query, from the table variable that it fills.
    Table(Query),
    /// `changed`: the table of the rows that have changed, `inserted` or `deleted`.
    Trigger {
        changed: &'static str,
    },
}

/// How a body records the @@rowcount of its statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Not at all: it is never read.
    Unknown,
    /// For its caller at the end, in LEFT; null: that of the latest result set or row count.
    Left,
    /// The body itself reads it.
    Asked,
}

/// The @@rowcount that a statement leaves.
#[derive(Clone, Debug)]
pub enum RowCount {
    /// That of GET DIAGNOSTICS.
    Counted,
    /// Null: the one last sent to the client.
    Value(Scalar),
}

impl RowCount {
    pub fn of(rows: u32) -> RowCount {
        RowCount::Value(Scalar::number(rows))
    }

    pub const SENT: RowCount = RowCount::Value(Scalar::Null);
}

/// Writes the body of one procedure, function or trigger.
pub struct BodyWriter<'t> {
    pub purpose: Purpose,
    pub name: String,
    pub schema: String,
    pub scope: Scope,
    /// The tables that it knows; None: it has no schema.
    pub inside: Option<Arc<Inside>>,
    pub(super) noted: RefCell<Noted>,
    /// The steps of the block that is being written.
    pub steps: Body,
    /// The T-SQL line of the next step.
    pub(super) line: u32,
    /// Its variables, in the order of declaration.
    pub declared: Vec<Declared>,
    known: HashSet<String>,
    /// It returns rows, calls procedures, waits or creates tables: it cannot run on a shared connection.
    pub own_connection: bool,
    /// The number of blocks around the next step.
    pub(super) depth: usize,
    /// Temporary tables that end with the procedure.
    pub(super) temporary: Vec<String>,
    pub(super) variables: HashMap<String, *const tree::Declared>,
    /// Its table variables.
    pub(super) tables: HashMap<String, *const tree::TableVariable>,
    pub(super) cursors: HashMap<String, Cursor<'t>>,
    pub(super) changed_cursors: HashSet<String>,
    /// Variables that replace others while a cursor is opened.
    pub(super) copies: HashMap<String, String>,
    /// Later labels, the next one last.
    pub(super) labels: Vec<Label>,
    pub(super) caught: Option<u32>,
    pub(super) sends_counts: bool,
    /// It has a SET NOCOUNT of its own: the caller's setting no longer applies.
    pub(super) sets_nocount: bool,
    pub(super) calls: bool,
    pub(super) rows: Rows,
    /// The next statement sets another row count.
    pub(super) rows_follow: bool,
    pub(super) tracks_errors: bool,
    pub(super) marks_try: bool,
    /// Rows may have been selected before the next statement.
    pub(super) has_sent: bool,
    /// It is a trigger, where no transaction can be committed after an error in a TRY block.
    pub(super) dooms: bool,
    numbers: u32,
    /// Bytes written so far.
    pub(super) written: usize,
}

impl<'t> BodyWriter<'t> {
    pub fn new(
        purpose: Purpose,
        name: String,
        schema: String,
        parameters: HashMap<String, Type>,
        dialect: &'static Dialect,
    ) -> Self {
        let mut variables = parameters;
        for own in ["@@procid", FETCH_STATUS[0], FETCH_STATUS[1]] {
            variables.insert(String::from(own), INT);
        }
        let scope = Scope {
            variables,
            dialect,
            procedure: true,
            database: schema.clone(),
            table_owner: digest::md5(format!("{schema}.{name}").as_bytes())[..8].to_owned(),
            ..Scope::default()
        };
        BodyWriter {
            purpose,
            name,
            schema,
            scope,
            inside: None,
            noted: RefCell::default(),
            steps: Body::new(),
            line: 1,
            declared: Vec::new(),
            known: HashSet::new(),
            own_connection: false,
            depth: 0,
            temporary: Vec::new(),
            variables: HashMap::new(),
            tables: HashMap::new(),
            cursors: HashMap::new(),
            changed_cursors: HashSet::new(),
            copies: HashMap::new(),
            labels: Vec::new(),
            caught: None,
            sends_counts: true,
            sets_nocount: false,
            calls: false,
            rows: Rows::Unknown,
            rows_follow: false,
            tracks_errors: false,
            marks_try: false,
            has_sent: false,
            dooms: false,
            numbers: 0,
            written: 0,
        }
    }

    /// Writes the whole body. `mentioned`: the variables that its text names.
    pub fn write(&mut self, body: &'t [Statement], mentioned: &HashSet<String>) -> Result<(), Error> {
        let holds = |wanted: fn(&Tree) -> bool| tree::every(body).any(|statement| wanted(&statement.kind));
        self.calls = holds(|kind| matches!(kind, Tree::Execute(_) | Tree::ExecuteText(_)));
        self.changed_cursors = changed_cursors(body);
        // of temporary tables it notes which it has made
        let mut changing = changing(body, &defined_tables(body)?.1)?;
        changing.retain(|table| !table.starts_with('#'));
        self.scope.changing = changing;
        // the caller may read @@error after a RAISERROR here, or in a procedure called from here
        let asks = mentioned.contains("@@error");
        let raises = self.calls || holds(|kind| matches!(kind, Tree::Raise(_)));
        let is_procedure = self.purpose == Purpose::Procedure;
        self.rows = match mentioned.contains("@@rowcount") {
            true => Rows::Asked,
            false if is_procedure => Rows::Left,
            false => Rows::Unknown,
        };
        let xact_abort = xact_abort(body);
        let sets_off = xact_abort == Some(false);
        let goes_on = match xact_abort {
            Some(aborts) => !aborts,
            None => asks || is_procedure && does_more_than_one_thing(body),
        };
        self.tracks_errors = asks || ((raises || goes_on) && is_procedure);
        let mut rows = Scalar::number(0);
        match &self.purpose {
            Purpose::Procedure => self.declare_as(STATUS, "integer", Scalar::number(0)),
            Purpose::Function(of) => {
                let of = of.sql();
                self.declare(STATUS, of);
            }
            Purpose::Table(_) => {}
            Purpose::Trigger { changed } => {
                let count = call("count", [Scalar::Star]);
                let changed = Source::Table(String::from(*changed), None);
                rows = Scalar::Query(Box::new(Query::of([count.into()], changed)));
            }
        }
        let own = Scalar::text(format!("{}.{}", self.schema, self.name));
        let is_trigger = matches!(self.purpose, Purpose::Trigger { .. });
        self.sends_counts = is_procedure || is_trigger;
        if self.sends_counts {
            self.declare_as_set(SILENT, NOCOUNT_SETTING);
        }
        let may_catch = is_trigger && (self.calls || holds(|kind| matches!(kind, Tree::TryCatch { .. })));
        self.dooms = may_catch && !sets_off && self.scope.dialect.triggers_abort;
        if self.dooms {
            self.declare_as(DOOMED, "boolean", Scalar::Boolean(false));
        }
        if is_trigger {
            self.declare_as(FIRED, "text", call("tsql.fired", []));
            // a trigger that fires itself is not run again
            self.add(Step::if_(variable(FIRED).infix("=", own.clone()), [Step::Return(Some(Scalar::Null))]));
            self.set("tsql.trigger", own);
        }
        // the statement that fired it has a transaction, though nobody has begun one
        let counts = is_trigger && (self.calls || mentioned.contains(TRANCOUNT));
        if counts {
            self.declare_as_set(OUTER_TRANCOUNT, TRANCOUNT_SETTING);
            let count = call("greatest", [call("tsql.transaction_count", []), Scalar::number(1)]);
            self.set(TRANCOUNT_SETTING, count.cast("text"));
        }
        if may_catch {
            self.declare_as_set(ABORTS, ABORTS_SETTING);
            self.set(ABORTS_SETTING, Scalar::text(if self.dooms { "on" } else { "" }));
        }
        match self.rows {
            Rows::Asked => self.declare_as(ROWCOUNT, "integer", rows),
            Rows::Left => self.declare(LEFT, "bigint"),
            Rows::Unknown => {}
        }
        if self.tracks_errors {
            self.declare_as(ERROR, "integer", Scalar::number(0));
        }
        if mentioned.contains(SCOPE_IDENTITY) {
            self.declare(SCOPE_IDENTITY, "numeric");
        }
        let handler = if goes_on { Handler::GoOn } else { Handler::None };
        let context = Context { handler, ..Context::default() };
        self.labelled_block(BODY, |writer| labels::labelled(writer, body, &context))?;
        if self.is_declared(ROLLED_BACK) {
            let text = "The transaction ended in the trigger. The batch has been aborted.";
            self.add(Step::if_(variable(ROLLED_BACK), [message::raise_error(self, 3609, text, self.line)]));
        }
        if self.marks_try {
            self.declare_as_set(TRY, TRY_SETTING);
            self.set(TRY_SETTING, variable(TRY));
        }
        if is_trigger {
            self.set("tsql.trigger", variable(FIRED));
        }
        if counts {
            self.set(TRANCOUNT_SETTING, variable(OUTER_TRANCOUNT));
        }
        if may_catch {
            self.set(ABORTS_SETTING, variable(ABORTS));
        }
        if self.sets_nocount {
            self.set(NOCOUNT_SETTING, variable(SILENT));
        }
        if self.dooms {
            // if a called procedure handled the error, the transaction is only marked
            let is_doomed = variable(DOOMED).or(call("tsql.is_doomed", []));
            self.add(Step::if_(is_doomed, [message::raise_error(self, 3616, RAISED, self.line)]));
        }
        if is_procedure {
            self.add(Step::Perform(call("tsql.tell_handed_over", [])));
        }
        if self.tracks_errors && is_procedure {
            self.add(Step::Perform(call("tsql.leave_error", [variable(ERROR), Scalar::Boolean(self.calls)])));
        }
        if self.rows == Rows::Asked && is_procedure {
            let rows = call("coalesce", [variable(ROWCOUNT).cast("text"), Scalar::text("")]);
            self.set("tsql.rowcount", rows);
        }
        if let (true, Some(left)) = (is_procedure, self.rows_in()) {
            let notice = Step::notice(Some(LEFT_ROWS), variable(left).cast("text"), None);
            self.add(Step::if_(variable(left).is_null(false), [notice]));
        }
        if let Purpose::Table(rows) = &self.purpose {
            self.add(Step::ReturnRows(rows.clone()));
        }
        if !self.temporary.is_empty() {
            self.add(drop_temporary(self.temporary.iter(), true));
        }
        Ok(())
    }

    /// Sets a setting for the rest of the transaction.
    pub(super) fn set(&mut self, setting: &str, value: Scalar) {
        self.add(setting_step(setting, value));
    }

    /// Declares a variable with the value of a setting at the start of the body.
    fn declare_as_set(&mut self, variable: &str, setting: &str) {
        let value = call("current_setting", [Scalar::text(setting), Scalar::Boolean(true)]);
        self.declare_as(variable, "text", call("coalesce", [value, Scalar::text("")]));
    }

    /// The variable with the row count.
    fn rows_in(&self) -> Option<&'static str> {
        match self.rows {
            Rows::Asked => Some(ROWCOUNT),
            Rows::Left => Some(LEFT),
            Rows::Unknown => None,
        }
    }

    /// The detail of a notice of a statement's end, from its own detail.
    pub(super) fn silently(&self, detail: Scalar) -> Scalar {
        match self.sets_nocount {
            true => detail,
            false => detail.concatenated(variable(SILENT)),
        }
    }

    /// Records a statement's row count.
    pub(super) fn kept_rows(&self, rows: RowCount) -> Option<Step> {
        let variable = self.rows_in()?;
        match rows {
            _ if self.rows == Rows::Left && self.rows_follow => None,
            RowCount::Counted => Some(Step::CountRows(variable.to_owned())),
            RowCount::Value(rows) => Some(Step::assign(variable, rows)),
        }
    }

    // --- steps ---

    /// The next steps are on this line of the T-SQL.
    pub(super) fn at(&mut self, line: u32) {
        if self.line != line {
            self.line = line;
            self.steps.push(Step::Line(line));
        }
    }

    pub(super) fn add(&mut self, step: Step) {
        self.written += step.size();
        self.steps.push(step);
    }

    /// The steps that are added by `write`, for a block inside this one.
    pub(super) fn nested(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<Body, Error> {
        let around = take(&mut self.steps);
        self.depth += 1;
        write(self)?;
        self.depth -= 1;
        Ok(replace(&mut self.steps, around))
    }

    /// A block that can be left by its label.
    pub(super) fn labelled_block(
        &mut self,
        label: &str,
        write: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let body = self.nested(write)?;
        self.steps.push(Step::Block(Block { label: Some(label.to_owned()), body, handler: None }));
        Ok(())
    }

    pub(super) fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn declare(&mut self, name: impl Into<String>, type_: impl Into<Cow<'static, str>>) {
        self.declare_with(name.into(), type_.into(), None);
    }

    /// Declares a variable with its first value.
    pub(super) fn declare_as(&mut self, name: impl Into<String>, type_: &'static str, value: Scalar) {
        self.declare_with(name.into(), type_.into(), Some(value));
    }

    fn declare_with(&mut self, name: String, type_: Cow<'static, str>, value: Option<Scalar>) {
        if self.known.insert(name.clone()) {
            self.declared.push(Declared { name, type_, value });
        }
    }

    pub(super) fn is_declared(&self, name: &str) -> bool {
        self.known.contains(name)
    }

    // --- values ---

    /// The type of a variable that receives a value.
    pub(super) fn type_of(&self, name: &str, line: u32) -> Result<Type, Error> {
        let of = self.scope.variables.get(name).copied();
        of.filter(|_| !session::is_global(name)).ok_or_else(|| Error::undeclared(name, line))
    }

    pub(super) fn value(&mut self, value: &tree::Expression, target: Type) -> Result<Scalar, Error> {
        let (scope, mut named) = self.named();
        Ok(bind::value(value, scope, &mut named, Some(target))?.sql)
    }

    /// The arguments of a translation here.
    pub(super) fn named(&self) -> (&Scope, Named<'_>) {
        let fetches = self.is_declared(FETCH_STATUS[0]);
        let named = Named {
            procedure: &self.name,
            schema: &self.schema,
            database: self.scope.databases.around(&self.schema),
            copies: &self.copies,
            cursors: &self.cursors,
            caught: self.caught,
            calls: self.calls,
            fetches,
            has_time: false,
            marks_lists: false,
            uses_time: false,
            facts: Facts::default(),
            noted: &self.noted,
            scope: &self.scope,
            texts: Vec::new(),
        };
        (&self.scope, named)
    }

    // --- tables ---

    /// The declarations that it was written with, as JSON, by tables.
    pub fn declared_tables(&self) -> BTreeMap<String, String> {
        self.inside.as_ref().map(|inside| inside.declared(&self.noted.borrow())).unwrap_or_default()
    }

    /// The tables that were missing when it was written.
    pub fn absent_tables(&self) -> Vec<String> {
        self.inside.as_ref().map(|inside| inside.absent()).unwrap_or_default()
    }

    /// The names that the schema was asked for.
    pub fn asked(&self) -> Vec<String> {
        self.inside.as_ref().map(|inside| inside.asked()).unwrap_or_default()
    }

    /// A temporary table is made, with these columns.
    pub(super) fn make(&self, table: String, columns: Option<Table>) {
        if let Some(inside) = &self.inside {
            inside.make(table, columns);
        }
    }
}

/// Sets a setting for the rest of the transaction.
pub(super) fn setting_step(setting: &str, value: Scalar) -> Step {
    Step::Perform(call("set_config", [Scalar::text(setting), value, Scalar::Boolean(true)]))
}

const RAISED: &str = "An error was raised during trigger execution. The batch has been aborted and the user \
                      transaction, if any, has been rolled back.";

/// Whether the body contains two statements, or one in a loop, that change, send or compute something.
fn does_more_than_one_thing(body: &[Statement]) -> bool {
    let mut acts = 0;
    for statement in tree::every(body) {
        acts += match &statement.kind {
            Tree::Block(_) | Tree::If { .. } | Tree::Set(_) | Tree::Return(_) | Tree::Label(_) => 0,
            Tree::Declare(declared) => usize::from(declared.iter().any(|one| one.value.is_some())),
            Tree::While { .. } => 2,
            _ => 1,
        };
    }
    acts > 1
}
