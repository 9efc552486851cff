//! The statements of a body.

use super::context::{Context, Guard, Segment, Statements};
use super::inside::outdated;
use super::run::Run;
use super::transaction;
use super::writer::{BodyWriter, RowCount};
use crate::bind;
use crate::error::Error;
use crate::facts::types;
use crate::plpgsql::Step;
use crate::postgres::{call, Listed, Query, Scalar, Source};
use crate::resolve::names::{folded, own_name};
use crate::tree::{self, Statement, StatementKind as Tree};

/// The most bytes of PL/pgSQL of one procedure.
const LONGEST: usize = 4 << 20;

/// The reason for which executing a text is refused.
pub const OWNERS_RIGHTS: &str = "its text would have the rights of the procedure's owner";

impl<'t> BodyWriter<'t> {
    pub(super) fn body(&mut self, body: &Statements<'t>, context: &Context<'t>) -> Result<(), Error> {
        let statements = body.statements();
        let mut at = 0;
        while let Some(statement) = statements.get(at) {
            if matches!(statement.kind, Tree::BeginTransaction(_)) && context.region.is_none() {
                let following = body.after(at + 1);
                let following_statements = following.statements().iter().copied();
                let end = transaction::end_of_region(following_statements, statement.at.line)?;
                self.region(statement, &following.until(end + 1), context)?;
                at += end + 2;
                continue;
            }
            self.rows_follow = statements.get(at + 1).is_some_and(|next| leaves_rows(&next.kind));
            if context.region.is_some() {
                let following =
                    Segment { body: body.after(at + 1), caught: context.caught, guard: context.guard };
                let inside = Context { rest: context.rest.before(following), ..context.clone() };
                self.statement(statement, &inside)?;
                let ends = matches!(
                    statement.kind,
                    Tree::Commit(_) | Tree::Rollback(_) | Tree::Return(_) | Tree::Throw(_)
                );
                if ends {
                    return Ok(());
                }
            } else {
                self.statement(statement, context)?;
            }
            at += 1;
        }
        Ok(())
    }

    pub(super) fn statement(&mut self, statement: &'t Statement, context: &Context<'t>) -> Result<(), Error> {
        let before = self.steps.len();
        let misses = self.inside.as_ref().map_or(0, |inside| inside.misses());
        self.known_statement(statement, context)?;
        match self.inside.as_ref().and_then(|inside| inside.missed_after(misses)) {
            None => Ok(()),
            Some(name) => {
                self.steps.truncate(before);
                // the line was among them
                self.line = 0;
                self.unbound(&name, statement.at.line, context)
            }
        }
    }

    /// A statement that names a table whose columns are not known: it fails until the body is compiled again, which the
    /// definition of the table does.
    fn unbound(&mut self, name: &str, line: u32, context: &Context<'t>) -> Result<(), Error> {
        if name.starts_with("pg_temp.") {
            let why = "its columns are known only when it runs";
            return Err(Error::refused(own_name(name), why, line));
        }
        // PostgreSQL reports that it is missing
        let table = Source::Table(name.to_owned(), None);
        let rows = Query::of([Listed::from(Scalar::Null)], table).limited(Some(Scalar::number(0)));
        let steps = [Step::Perform(Scalar::Query(Box::new(rows))), outdated(name)];
        self.run(context, line, Run::new(steps));
        Ok(())
    }

    fn known_statement(&mut self, statement: &'t Statement, context: &Context<'t>) -> Result<(), Error> {
        if self.written > LONGEST {
            return Err(Error::nested_too_deeply(statement.at));
        }
        let line = statement.at.line;
        self.at(line);
        self.caught = context.caught;
        match &statement.kind {
            Tree::Declare(variables) => self.declare_variables(variables, context),
            Tree::DeclareTable(table) => self.declare_table(table, line, context),
            Tree::Assign(assign) => {
                let compound = assign.value_assigned();
                let value = compound.as_ref().unwrap_or(&assign.value);
                self.assign(&assign.variable, value, line, context)
            }
            Tree::If { condition, then, otherwise } => {
                let otherwise = otherwise.as_deref().map_or(&[][..], Statement::body);
                self.if_(condition, then.body(), otherwise, context)
            }
            Tree::Goto(name) => self.goto(name, context),
            Tree::While { condition, body } => self.while_(condition, body.body(), context),
            Tree::Break => self.leave_loop(Step::Exit(None), line, context),
            Tree::Continue => self.leave_loop(Step::Continue, line, context),
            Tree::Block(body) => self.body(&Statements::of(body), context),
            Tree::Return(value) => self.return_(value.as_ref(), line, context),
            Tree::Select(_) | Tree::Update(_) | Tree::Delete(_) | Tree::Merge(_) => {
                self.query(&statement.kind, line, context)
            }
            Tree::Insert(insert) => match &insert.source {
                tree::InsertSource::Execute(_) | tree::InsertSource::ExecuteText(_) => {
                    Err(Error::refused("insert … execute", "PostgreSQL has no rows of a call", line))
                }
                _ => self.query(&statement.kind, line, context),
            },
            Tree::Execute(execute) => self.execute(execute, line, context),
            Tree::Print { text, arguments } => self.print(text, arguments, line, context),
            Tree::Raise(raise) => self.raise(raise, line, context),
            Tree::Throw(throw) => self.throw(throw.as_deref(), line, context),
            Tree::WaitforDelay(delay) => {
                self.own_connection = true;
                let (scope, mut named) = self.named();
                let delay = bind::value(delay, scope, &mut named, None)?.sql;
                let sleep = call("pg_sleep", [call("tsql.delay", [delay])]);
                self.run(context, line, Run::new([Step::Perform(sleep)]));
                Ok(())
            }
            Tree::WaitforTime(_) => Err(Error::refused("waitfor time", "use waitfor delay", line)),
            Tree::TryCatch { body, catch } => {
                let guard = Guard { catch, line };
                self.try_catch(&Statements::of(body), guard, context)
            }
            Tree::Commit(_) => self.commit(line, context),
            Tree::Rollback(name) => self.rollback(name.as_ref(), line, context),
            Tree::RollbackTrigger(Some(raise)) if self.undoes_its_statement() => {
                self.rollback_trigger(raise, line, context)
            }
            Tree::Set(words) => self.option(words, line),
            Tree::DeclareCursor(cursor) => self.declare_cursor(cursor, line, context),
            Tree::OpenCursor(name) => self.open(name, line, context),
            Tree::Fetch(fetch) => self.fetch(fetch, line, context),
            Tree::CloseCursor(name) => self.close(name, line, context),
            Tree::DeallocateCursor(name) => self.deallocate(name, line, context),
            Tree::CreateTable(_) | Tree::CreateIndex(_) | Tree::DropIndexes(_) | Tree::Truncate(_) => {
                self.define(&statement.kind, line, context)
            }
            Tree::Drop(objects) if objects.kind == tree::ObjectKind::Table => {
                self.define(&statement.kind, line, context)
            }
            other => Err(refused(other, line)),
        }
    }

    fn declare_variables(
        &mut self,
        variables: &'t [tree::Declared],
        context: &Context<'t>,
    ) -> Result<(), Error> {
        for declared in variables {
            let name = &declared.variable.name;
            let line = declared.variable.at.line;
            // a CATCH block may be written twice
            let again = self.variables.get(name).is_some_and(|known| std::ptr::eq(*known, declared));
            if self.scope.variables.contains_key(name) && !again {
                return Err(Error::declared_twice(name, line));
            }
            folded(name, line)?;
            let of = types::of_variable(&declared.type_, self.scope.dialect)?;
            self.variables.insert(name.clone(), declared);
            self.declare(name.clone(), of.sql());
            self.scope.variables.insert(name.clone(), Some(of));
            if let Some(value) = &declared.value {
                self.assign(&declared.variable, value, line, context)?;
            }
        }
        Ok(())
    }

    fn assign(
        &mut self,
        variable: &tree::Variable,
        value: &tree::Expression,
        line: u32,
        context: &Context<'t>,
    ) -> Result<(), Error> {
        let of = self.type_of(&variable.name, line)?;
        let assign = Step::assign(variable.name.as_str(), self.value(value, of)?);
        let run = Run::leaving([assign], RowCount::of(1));
        self.run(context, line, run);
        Ok(())
    }
}

/// Whether a statement always sets the number of rows.
fn leaves_rows(kind: &Tree) -> bool {
    matches!(
        kind,
        Tree::Assign(_)
            | Tree::Select(_)
            | Tree::Insert(_)
            | Tree::Update(_)
            | Tree::Delete(_)
            | Tree::Merge(_)
            | Tree::Print { .. }
            | Tree::If { .. }
            | Tree::While { .. }
    )
}

/// The error for a statement that a procedure cannot run, named by its first words.
pub fn refused(kind: &Tree, line: u32) -> Error {
    if let Tree::CreateView(create) = kind {
        return Error::not_first(create.mode.action(), "VIEW", line);
    }
    let what = first_words(kind);
    let (what, why) = match kind {
        Tree::ExecuteText(_) => ("execute (…)", OWNERS_RIGHTS),
        Tree::RollbackTrigger(None) => ("rollback trigger", "say why: rollback trigger with raiserror …"),
        Tree::RollbackTrigger(_) => ("rollback trigger", "it stands in triggers that Sybase clients make"),
        Tree::Save(_) => ("save transaction", "a part of a transaction cannot be taken back alone"),
        Tree::BeginTransaction(_) => ("begin transaction", "one inside another"),
        Tree::Goto(_) | Tree::Label(_) => ("goto", "the label is not further down, outside of all blocks"),
        _ => (what.as_str(), "not inside a procedure"),
    };
    Error::refused(what, why, line)
}

/// The words by which an error names a statement that a body must not contain.
fn first_words(kind: &Tree) -> String {
    match kind {
        Tree::AlterTable { .. } => "alter table".to_owned(),
        Tree::AlterDatabase(_) => "alter database".to_owned(),
        Tree::CreateProcedure(create) => format!("{} procedure", create.mode.action()),
        Tree::CreateFunction(create) => format!("{} function", create.mode.action()),
        Tree::CreateTrigger(create) => format!("{} trigger", create.mode.action()),
        Tree::CreateType(_) | Tree::CreateTableType(_) => "create type".to_owned(),
        Tree::CreateSchema { kind, .. } => format!("create {kind}"),
        Tree::CreateBindable(create) => format!("create {}", create.kind),
        Tree::Sequence(sequence) if sequence.creates => "create sequence".to_owned(),
        Tree::Sequence(_) => "alter sequence".to_owned(),
        Tree::Drop(drop) => format!("drop {}", drop.kind),
        Tree::Grant(grant) => if grant.revoke { "revoke" } else { "grant" }.to_owned(),
        Tree::CheckIdentity(_) => "dbcc checkident".to_owned(),
        Tree::SetIdentityInsert { .. } => "set identity_insert".to_owned(),
        Tree::Use(_) => "use".to_owned(),
        Tree::InsertBulk(_) => "insert bulk".to_owned(),
        Tree::Readtext(_) => "readtext".to_owned(),
        Tree::Updatetext(_) => "updatetext".to_owned(),
        Tree::Writetext(_) | Tree::WritetextBulk(_) => "writetext".to_owned(),
        _ => "this statement".to_owned(),
    }
}
