//! The statements of a body, each as steps of PL/pgSQL.

mod control;
mod current;
mod cursor;
mod execute;
pub(super) mod labels;
pub(super) mod message;
pub(super) mod option;
pub(super) mod query;
mod region;
mod transaction;

use crate::bind;
use crate::error::Error;
use crate::facts::type_names;
use crate::plpgsql::Step;
use crate::postgres::{call, Listed, Query, Scalar, Source};
use crate::procedure::context::{Context, Guard, Segment, Statements};
use crate::procedure::inside::outdated;
use crate::procedure::run;
use crate::procedure::run::Run;
use crate::procedure::writer::{BodyWriter, RowCount};
use crate::resolve::names::{folded, own_name};
use crate::tree::{self, Statement, StatementKind as Tree};

/// The most bytes of PL/pgSQL of one procedure.
const LONGEST: usize = 4 << 20;

/// The reason for which executing a text is refused.
pub const OWNERS_RIGHTS: &str = "its text would have the rights of the procedure's owner";

pub(super) fn body<'t>(
    writer: &mut BodyWriter<'t>,
    body: &Statements<'t>,
    context: &Context<'t>,
) -> Result<(), Error> {
    let statements = body.statements();
    let mut at = 0;
    while let Some(statement) = statements.get(at) {
        if matches!(statement.kind, Tree::BeginTransaction(_)) && context.region.is_none() {
            let following = body.after(at + 1);
            let following_statements = following.statements().iter().copied();
            let end = transaction::end_of_region(following_statements, statement.at.line)?;
            region::region(writer, statement, &following.until(end + 1), context)?;
            at += end + 2;
            continue;
        }
        writer.rows_follow = statements.get(at + 1).is_some_and(|next| leaves_rows(&next.kind));
        if context.region.is_some() {
            let following =
                Segment { body: body.after(at + 1), caught: context.caught, guard: context.guard };
            let inside = Context { rest: context.rest.before(following), ..context.clone() };
            self::statement(writer, statement, &inside)?;
            let ends = matches!(
                statement.kind,
                Tree::Commit(_) | Tree::Rollback(_) | Tree::Return(_) | Tree::Throw(_)
            );
            if ends {
                return Ok(());
            }
        } else {
            self::statement(writer, statement, context)?;
        }
        at += 1;
    }
    Ok(())
}

pub(super) fn statement<'t>(
    writer: &mut BodyWriter<'t>,
    statement: &'t Statement,
    context: &Context<'t>,
) -> Result<(), Error> {
    let before = writer.steps.len();
    let misses = writer.inside.as_ref().map_or(0, |inside| inside.misses());
    known_statement(writer, statement, context)?;
    match writer.inside.as_ref().and_then(|inside| inside.missed_after(misses)) {
        None => Ok(()),
        Some(name) => {
            writer.steps.truncate(before);
            // the line was among them
            writer.line = 0;
            unbound(writer, &name, statement.at.line, context)
        }
    }
}

/// A statement that names a table whose columns are not known: it fails until the body is compiled again, which the
/// definition of the table does.
fn unbound<'t>(
    writer: &mut BodyWriter<'t>,
    name: &str,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    if name.starts_with("pg_temp.") {
        let why = "its columns are known only when it runs";
        return Err(Error::refused(own_name(name), why, line));
    }
    // PostgreSQL reports that it is missing
    let table = Source::Table(name.to_owned(), None);
    let rows = Query::of([Listed::from(Scalar::Null)], table).limited(Some(Scalar::number(0)));
    let steps = [Step::Perform(Scalar::Query(Box::new(rows))), outdated(name)];
    run::run(writer, context, line, Run::new(steps));
    Ok(())
}

fn known_statement<'t>(
    writer: &mut BodyWriter<'t>,
    statement: &'t Statement,
    context: &Context<'t>,
) -> Result<(), Error> {
    if writer.written > LONGEST {
        return Err(Error::nested_too_deeply(statement.at));
    }
    let line = statement.at.line;
    writer.at(line);
    writer.caught = context.caught;
    match &statement.kind {
        Tree::Declare(variables) => declare_variables(writer, variables, context),
        Tree::DeclareTable(table) => query::declare_table(writer, table, line, context),
        Tree::Assign(assign) => {
            let compound = assign.value_assigned();
            let value = compound.as_ref().unwrap_or(&assign.value);
            self::assign(writer, &assign.variable, value, line, context)
        }
        Tree::If { condition, then, otherwise } => {
            let otherwise = otherwise.as_deref().map_or(&[][..], Statement::body);
            control::if_(writer, condition, then.body(), otherwise, context)
        }
        Tree::Goto(name) => labels::goto(writer, name, context),
        Tree::While { condition, body } => control::while_(writer, condition, body.body(), context),
        Tree::Break => control::leave_loop(writer, Step::Exit(None), line, context),
        Tree::Continue => control::leave_loop(writer, Step::Continue, line, context),
        Tree::Block(body) => self::body(writer, &Statements::of(body), context),
        Tree::Return(value) => control::return_(writer, value.as_ref(), line, context),
        Tree::Select(_) | Tree::Update(_) | Tree::Delete(_) | Tree::Merge(_) => {
            query::query(writer, &statement.kind, line, context)
        }
        Tree::Insert(insert) => match &insert.source {
            tree::InsertSource::Execute(_) | tree::InsertSource::ExecuteText(_) => {
                Err(Error::refused("insert … execute", "PostgreSQL has no rows of a call", line))
            }
            _ => query::query(writer, &statement.kind, line, context),
        },
        Tree::Execute(execute) => execute::execute(writer, execute, line, context),
        Tree::Print { text, arguments } => message::print(writer, text, arguments, line, context),
        Tree::Raise(raise) => message::raise(writer, raise, line, context),
        Tree::Throw(throw) => message::throw(writer, throw.as_deref(), line, context),
        Tree::WaitforDelay(delay) => {
            writer.own_connection = true;
            let (scope, mut named) = writer.named();
            let delay = bind::value(delay, scope, &mut named, None)?.sql;
            let sleep = call("pg_sleep", [call("tsql.delay", [delay])]);
            run::run(writer, context, line, Run::new([Step::Perform(sleep)]));
            Ok(())
        }
        Tree::WaitforTime(_) => Err(Error::refused("waitfor time", "use waitfor delay", line)),
        Tree::TryCatch { body, catch } => {
            let guard = Guard { catch, line };
            control::try_catch(writer, &Statements::of(body), guard, context)
        }
        Tree::Commit(_) => region::commit(writer, line, context),
        Tree::Rollback(name) => region::rollback(writer, name.as_ref(), line, context),
        Tree::RollbackTrigger(Some(raise)) if message::undoes_its_statement(writer) => {
            message::rollback_trigger(writer, raise, line, context)
        }
        Tree::Set(words) => option::option(writer, words, line),
        Tree::DeclareCursor(cursor) => cursor::declare_cursor(writer, cursor, line, context),
        Tree::OpenCursor(name) => cursor::open(writer, name, line, context),
        Tree::Fetch(fetch) => cursor::fetch(writer, fetch, line, context),
        Tree::CloseCursor(name) => cursor::close(writer, name, line, context),
        Tree::DeallocateCursor(name) => cursor::deallocate(writer, name, line, context),
        Tree::CreateTable(_) | Tree::CreateIndex(_) | Tree::DropIndexes(_) | Tree::Truncate(_) => {
            query::define(writer, &statement.kind, line, context)
        }
        Tree::Drop(objects) if objects.kind == tree::ObjectKind::Table => {
            query::define(writer, &statement.kind, line, context)
        }
        other => Err(refused(other, line)),
    }
}

fn declare_variables<'t>(
    writer: &mut BodyWriter<'t>,
    variables: &'t [tree::Declared],
    context: &Context<'t>,
) -> Result<(), Error> {
    for declared in variables {
        let name = &declared.variable.name;
        let line = declared.variable.at.line;
        // a CATCH block may be written twice
        let again = writer.variables.get(name).is_some_and(|known| std::ptr::eq(*known, declared));
        let is_known = writer.scope.variables.contains_key(name) && !again;
        if is_known || writer.scope.table_variables.contains(name) {
            return Err(Error::declared_twice(name, line));
        }
        folded(name, line)?;
        let of = type_names::of_variable(&declared.type_, writer.scope.dialect)?;
        writer.variables.insert(name.clone(), declared);
        writer.declare(name.clone(), of.sql());
        writer.scope.variables.insert(name.clone(), of);
        if let Some(value) = &declared.value {
            assign(writer, &declared.variable, value, line, context)?;
        }
    }
    Ok(())
}

fn assign<'t>(
    writer: &mut BodyWriter<'t>,
    variable: &tree::Variable,
    value: &tree::Expression,
    line: u32,
    context: &Context<'t>,
) -> Result<(), Error> {
    let of = writer.type_of(&variable.name, line)?;
    let assign = Step::assign(variable.name.as_str(), writer.value(value, of)?);
    let run = Run::leaving([assign], RowCount::of(1));
    run::run(writer, context, line, run);
    Ok(())
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
