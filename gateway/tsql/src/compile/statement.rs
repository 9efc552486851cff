//! The statements of a batch, each as the action that runs it.

use super::compiler::{selected, Compiler};
use super::value::literal;
use super::written::Written;
use super::{cursor, execute, labels, padding, procedure, session, value, written, LONGEST};
use crate::bind::{self, Numbered};
use crate::error::Error;
use crate::facts::collations::Collation;
use crate::facts::type_names;
use crate::facts::types::{self, INT, LONGEST_VARCHAR, VARCHAR};
use crate::lexer::{self, Token};
use crate::message;
use crate::parser::wrong_at;
use crate::plpgsql;
use crate::postgres::call;
use crate::procedure::{Created, Inside};
use crate::program::{
    Action, Condition, CursorAction, Declaration, Define, Definition, Executed, Query, QueryKind, Settings,
    Sql, Statement, Tree as Bindable, LONGEST_TRANSACTION_NAME,
};
use crate::resolve::names::Relation;
use crate::resolve::{names, Scope};
use crate::schema::Schema;
use crate::tree::{
    self, AlterDatabase, Assign, Declared, DropObjects, ObjectKind, Raise, StatementKind as Tree,
    TableVariable, TransactionName,
};
use std::sync::Arc;

/// The text of a view: it is the whole batch, but in ASE its statement (ASE Transact-SQL User's Guide, "Rules for
/// using batches").
fn text_of_view<'c>(
    compiler: &'c Compiler<'_>,
    view: &tree::Statement,
    mode: tree::Mode,
) -> Result<&'c str, Error> {
    match compiler.batch {
        _ if compiler.settings.dialect.is_ase => Ok(&compiler.text[view.at.range()]),
        [only] if only.at.start == view.at.start => Ok(compiler.text),
        [first, next, ..] if first.at.start == view.at.start => {
            let words = lexer::read(&compiler.text[next.at.range()])?;
            let wrong = |token: &Token<'_>| wrong_at(&Token { at: next.at, ..token.clone() });
            Err(words.first().map_or_else(|| Error::syntax("", next.at), wrong))
        }
        _ => Err(Error::not_first(mode.action(), "VIEW", view.at)),
    }
}

pub(super) fn body(
    compiler: &mut Compiler<'_>,
    body: &[tree::Statement],
    into: &mut Vec<Statement>,
) -> Result<(), Error> {
    for statement in body {
        self::statement(compiler, statement, into)?;
    }
    Ok(())
}

fn block(compiler: &mut Compiler<'_>, body: &[tree::Statement]) -> Result<Vec<Statement>, Error> {
    let mut statements = Vec::with_capacity(body.len());
    labels::enter(compiler, body)?;
    self::body(compiler, body, &mut statements)?;
    compiler.labels.pop();
    Ok(statements)
}

/// The body of a branch or loop: one statement, or those of a block.
fn branch(compiler: &mut Compiler<'_>, statement: &tree::Statement) -> Result<Vec<Statement>, Error> {
    match &statement.kind {
        Tree::Block(body) => block(compiler, body),
        _ => block(compiler, std::slice::from_ref(statement)),
    }
}

fn statement(
    compiler: &mut Compiler<'_>,
    statement: &tree::Statement,
    into: &mut Vec<Statement>,
) -> Result<(), Error> {
    let line = statement.at.line;
    match &statement.kind {
        Tree::Block(body) => return self::body(compiler, body, into),
        Tree::Declare(variables) => {
            return variables.iter().try_for_each(|variable| declare(compiler, variable, into))
        }
        // created before the batch
        Tree::DeclareTable(_) => return Ok(()),
        _ => {}
    }
    if compiler.settings.procedure {
        procedure::check(&statement.kind, line)?;
    }
    let action = action(compiler, statement)?;
    compiler.length += action.size();
    if compiler.length > LONGEST {
        return Err(Error::nested_too_deeply(line));
    }
    into.push(Statement { line, action });
    Ok(())
}

fn action(compiler: &mut Compiler<'_>, statement: &tree::Statement) -> Result<Action, Error> {
    let line = statement.at.line;
    Ok(match &statement.kind {
        Tree::Block(_) | Tree::Declare(_) | Tree::DeclareTable(_) => {
            unreachable!("these are several statements or none")
        }
        Tree::Select(query) => match value::variables_only(compiler, query) {
            Some(names) => Action::Variables(names),
            None => self::query(compiler, statement)?,
        },
        Tree::Insert(insert) => match &insert.source {
            tree::InsertSource::Execute(execute) => {
                let execute = Executed::Procedure(execute::execute(compiler, execute)?);
                execute::insert_execute(compiler, insert, execute, line)?
            }
            tree::InsertSource::ExecuteText(text) => {
                let text = Executed::Text(value::value(compiler, &text.text, Some(VARCHAR))?);
                execute::insert_execute(compiler, insert, text, line)?
            }
            _ => query(compiler, statement)?,
        },
        Tree::Update(_) | Tree::Delete(_) | Tree::Merge(_) | Tree::Readtext(_) => query(compiler, statement)?,
        Tree::Writetext(_) | Tree::Updatetext(_) => session::text_change(compiler, &statement.kind, line)?,
        Tree::Assign(assign) => self::assign(compiler, assign)?,
        Tree::If { condition, then, otherwise } => Action::If {
            condition: self::condition(compiler, condition)?,
            then: branch(compiler, then)?,
            otherwise: match otherwise {
                Some(otherwise) => branch(compiler, otherwise)?,
                None => Vec::new(),
            },
        },
        Tree::While { condition, body } => {
            Action::While { condition: self::condition(compiler, condition)?, body: branch(compiler, body)? }
        }
        Tree::Break => Action::Break,
        Tree::Continue => Action::Continue,
        Tree::Return(None) => Action::Return(None),
        Tree::Return(Some(_)) if !compiler.settings.procedure => return Err(Error::returns_a_value(line)),
        Tree::Return(Some(value)) => Action::Return(Some(value::value(compiler, value, Some(INT))?)),
        Tree::Goto(label) => labels::goto(compiler, label, compiler.batch)?,
        Tree::Label(label) => Action::Label(labels::label(compiler, label).unwrap_or(0)),
        Tree::TryCatch { body, catch } => {
            let body = block(compiler, body)?;
            compiler.catches += 1;
            let catch = block(compiler, catch)?;
            compiler.catches -= 1;
            Action::Try { body, catch }
        }
        Tree::WaitforDelay(delay) => wait(compiler, "delay", delay)?,
        Tree::WaitforTime(time) => wait(compiler, "until", time)?,
        Tree::Print { text, arguments } => print(compiler, text, arguments)?,
        Tree::Raise(raise) => self::raise(compiler, raise, line)?,
        Tree::Throw(None) if compiler.catches == 0 => return Err(message::no_rethrow(line)),
        Tree::Throw(None) => Action::Throw(None),
        Tree::Throw(Some(throw)) => {
            let mut numbered = Numbered::default();
            let sql = message::thrown(throw, &compiler.scope, &mut numbered)?;
            Action::Throw(Some(selected(&sql, numbered)))
        }
        Tree::Execute(execute) => Action::Execute(execute::execute(compiler, execute)?),
        Tree::ExecuteText(text) => Action::ExecuteText(value::value(compiler, &text.text, Some(VARCHAR))?),
        Tree::DeclareCursor(declare) => cursor::declare_cursor(compiler, declare)?,
        Tree::OpenCursor(name) => Action::Cursor(CursorAction::Open(name.known())),
        Tree::Fetch(fetch) => cursor::fetch(compiler, fetch)?,
        Tree::CloseCursor(name) => Action::Cursor(CursorAction::Close(name.known())),
        Tree::DeallocateCursor(name) => Action::Cursor(CursorAction::Deallocate(name.known())),
        Tree::WritetextBulk(text) => session::sent_text(compiler, text, line)?,
        Tree::InsertBulk(bulk) => Action::InsertBulk(session::insert_bulk(bulk)?),
        Tree::Use(name) => {
            // the next statements use that database; only the session knows `master` and similar names
            compiler.scope.database.clear();
            compiler.scope.folds = compiler.scope.databases.folding.contains(&name.text.to_lowercase());
            compiler.scope.schema = None;
            if name.is("tempdb") {
                return Err(Error::refused("use tempdb", "every database makes #t and ##t there", line));
            }
            Action::Use(name.text.clone())
        }
        Tree::Set(words) => Action::Set(session::option(compiler, words, line)?),
        Tree::BeginTransaction(name) => Action::Begin(transaction_name(compiler, name.as_ref())?),
        Tree::Commit(name) => {
            transaction_name(compiler, name.as_ref())?;
            Action::Commit
        }
        Tree::Rollback(name) => Action::Rollback(transaction_name(compiler, name.as_ref())?),
        Tree::RollbackTrigger(_) => {
            let why = "it undoes the statement that has fired a trigger";
            return Err(Error::refused("rollback trigger", why, line));
        }
        Tree::Save(name) => Action::Save(transaction_name(compiler, Some(name))?),
        Tree::CreateProcedure(create) => {
            let here = |settings: &Settings| super::body(create, compiler.text, settings).map(|_| ());
            let text = lexer::as_created(compiler.text)?;
            let created =
                crate::procedure::create(create, &text, line, &compiler.scope, compiler.settings, here)?;
            self::created(compiler, created)
        }
        Tree::CreateFunction(create) => {
            let text = lexer::as_created(compiler.text)?;
            let created =
                crate::procedure::create_function(create, &text, line, &compiler.scope, compiler.settings)?;
            self::created(compiler, created)
        }
        Tree::CreateTrigger(create) => {
            let text = lexer::as_created(compiler.text)?;
            let created =
                crate::procedure::create_trigger(create, &text, line, &compiler.scope, compiler.settings)?;
            self::created(compiler, created)
        }
        Tree::Drop(objects)
            if matches!(
                objects.kind,
                tree::ObjectKind::Procedure | tree::ObjectKind::Function | tree::ObjectKind::Trigger
            ) =>
        {
            Action::Define(crate::procedure::drop(objects)?)
        }
        Tree::SetIdentityInsert { table, on } => {
            let table = names::table(table)?;
            compiler.scope.identity_insert = on.then(|| table.clone());
            Action::IdentityInsert { table, on: *on }
        }
        Tree::CreateView(create) => {
            let text = text_of_view(compiler, statement, create.mode)?;
            // PostgreSQL lets nobody change the types of its columns
            let inside =
                compiler.scope.schema.clone().map(|schema| Arc::new(Inside::new(schema, Vec::new(), None)));
            let schema = inside.clone().map(|inside| inside as Arc<dyn Schema>);
            let scope = Scope { schema, ..compiler.scope.clone() };
            let definition = bind::create_view(create, lexer::as_created(text)?.trim(), &scope);
            compiler.asked.extend(inside.iter().flat_map(|inside| inside.asked()));
            let definition = definition?;
            defined(&definition, QueryKind::Definition(Definition::Other), changed(&statement.kind)?)
        }
        Tree::CreateBindable(create) => {
            let source = lexer::as_created(compiler.text)?;
            let definition = bind::create_bindable(create, source.trim(), &compiler.scope)?;
            defined(&definition, QueryKind::Definition(Definition::Other), changed(&statement.kind)?)
        }
        Tree::CreateTable(create) => {
            compiler.makes_temporary |= create.table.is_temporary();
            definition(compiler, &statement.kind)?
        }
        _ => definition(compiler, &statement.kind)?,
    })
}

/// A select, insert, update or delete.
fn query(compiler: &mut Compiler<'_>, statement: &tree::Statement) -> Result<Action, Error> {
    let tree = &statement.kind;
    let Some(written) = written::statement(tree, &compiler.scope)? else {
        return definition(compiler, tree);
    };
    let facts = &written.query.sql.facts;
    compiler.makes_temporary |= facts.defines_temporary() && !facts.names_global();
    Ok(Action::Query(written::bound(compiler, written, statement.at, || Bindable::Statement(tree.clone()))))
}

fn definition(compiler: &mut Compiler<'_>, statement: &Tree) -> Result<Action, Error> {
    let kind = match statement {
        Tree::CreateTable(_) | Tree::CreateIndex(_) => Definition::Create,
        Tree::AlterTable { .. } => Definition::AlterTable,
        Tree::Truncate(_) => Definition::Truncate,
        Tree::Drop(_) | Tree::DropIndexes(_) => Definition::Drop,
        _ => Definition::Other,
    };
    let definition = bind::defined(statement, &compiler.scope)?;
    if changes_databases(compiler, statement) {
        let define = Define { statements: vec![definition.to_string()], is_temporary: false, notice: None };
        return Ok(Action::Define(define));
    }
    let mut action = defined(&definition, QueryKind::Definition(kind), changed(statement)?);
    if let Action::Query(query) = &mut action {
        query.padded = padding::padded(statement);
        if let Tree::CreateTable(create) = statement {
            query.sql.facts.created = Some(names::relation(&create.table)?);
        }
    }
    Ok(action)
}

/// Whether a definition adds or drops a schema, or gives a database a collation: the next texts depend on these.
fn changes_databases(compiler: &mut Compiler<'_>, definition: &Tree) -> bool {
    let (name, collation) = match definition {
        Tree::CreateSchema { name, collation: Some(collation), .. } => (name, collation),
        Tree::AlterDatabase(AlterDatabase { collation, .. }) => return collation.is_some(),
        Tree::CreateSchema { kind, .. } => return *kind == ObjectKind::Schema,
        Tree::Drop(DropObjects { kind, .. }) => {
            return matches!(kind, ObjectKind::Schema | ObjectKind::Database)
        }
        _ => return false,
    };
    if compiler.scope.collation(&collation.text) == Some(Collation::Insensitive) {
        Arc::make_mut(&mut compiler.scope.databases).folding.insert(name.text.to_lowercase());
    }
    true
}

fn declare(compiler: &mut Compiler<'_>, declared: &Declared, into: &mut Vec<Statement>) -> Result<(), Error> {
    let name = &declared.variable.name;
    let line = declared.variable.at.line;
    if compiler.scope.variables.contains_key(name) || compiler.scope.table_variables.contains(name) {
        return Err(Error::declared_twice(name, line));
    }
    if declared.type_.is_cursor() {
        return Ok(());
    }
    let of = type_names::of_variable(&declared.type_, compiler.scope.dialect)?;
    compiler.scope.variables.insert(name.clone(), of);
    let declaration = Declaration { name: name.clone(), shown: name.clone(), of, output: false, value: None };
    into.push(Statement { line, action: Action::Declare(declaration) });
    if let Some(value) = &declared.value {
        let action = Action::Assign(name.clone(), value::value(compiler, value, Some(of))?);
        into.push(Statement { line, action });
    }
    Ok(())
}

fn assign(compiler: &mut Compiler<'_>, assign: &Assign) -> Result<Action, Error> {
    let of = declared(compiler, &assign.variable)?.in_tsql();
    let value = match assign.value_assigned() {
        Some(value) => value::value(compiler, &value, of)?,
        None => value::value(compiler, &assign.value, of)?,
    };
    Ok(Action::Assign(assign.variable.name.clone(), value))
}

/// The name of a transaction or savepoint, or its variable, with @; "" for none.
fn transaction_name(compiler: &Compiler<'_>, name: Option<&TransactionName>) -> Result<String, Error> {
    if let Some(TransactionName::Variable(variable)) = name {
        declared(compiler, variable)?;
    }
    if let Some(TransactionName::Name(name)) = name {
        let start: String = name.text.chars().take(LONGEST_TRANSACTION_NAME).collect();
        if start.len() < name.text.len() && compiler.scope.dialect.limits_transaction_names {
            let text = format!(
                "The identifier that starts with '{start}' is too long. \
                     Maximum length is {LONGEST_TRANSACTION_NAME}."
            );
            return Err(Error::new(103, text, name.at));
        }
    }
    Ok(name.map(|name| name.text().to_owned()).unwrap_or_default())
}

/// The type of a variable that receives a value.
pub(super) fn declared(compiler: &Compiler<'_>, variable: &tree::Variable) -> Result<types::Type, Error> {
    if variable.is_global() {
        return Err(Error::syntax(&variable.name, variable.at));
    }
    compiler.scope.type_of(&variable.name, variable.at.line)
}

fn condition(compiler: &mut Compiler<'_>, condition: &tree::Expression) -> Result<Condition, Error> {
    if value::asks_for_transaction(condition) {
        return Ok(Condition::InTransaction);
    }
    let mut numbered = Numbered::default();
    let sql = bind::condition(condition, &compiler.scope, &mut numbered)?;
    let written = Written::value(sql, numbered, &compiler.scope);
    let tree = || Bindable::Condition(condition.clone());
    Ok(Condition::Sql(written::bound(compiler, written, condition.at(), tree).sql))
}

/// `function`: the SQL function that converts the value to seconds.
fn wait(compiler: &mut Compiler<'_>, function: &str, value: &tree::Expression) -> Result<Action, Error> {
    let mut numbered = Numbered::default();
    let line = value.at();
    let value = bind::value(value, &compiler.scope, &mut numbered, None)?;
    let of = value.of.name;
    if matches!(of, "date" | "time" | "datetime2" | "datetimeoffset") {
        let text = format!("Waitfor delay and waitfor time cannot be of type {of}.");
        return Err(Error::new(9815, text, line).with_severity(16));
    }
    let sql = selected(&[call(format!("tsql.{function}"), [value.sql])], numbered);
    Ok(Action::Wait(crate::program::Expression::Sql(sql)))
}

fn print(
    compiler: &mut Compiler<'_>,
    text: &tree::Expression,
    arguments: &[tree::Expression],
) -> Result<Action, Error> {
    let longest = types::varchar(Some(LONGEST_VARCHAR));
    if arguments.is_empty() {
        if let Some(literal) = literal(text, &compiler.scope, Some(longest)) {
            return Ok(Action::Print(crate::program::Expression::Literal(literal)));
        }
    }
    if let (Some(at), true) = (bind::next_value_in(text), compiler.scope.dialect.is_strict) {
        let text = "The use of NEXT VALUE FOR function is not allowed in this context.";
        return Err(Error::new(11738, text, at));
    }
    let mut numbered = Numbered::default();
    let sql = message::printed(text, arguments, &compiler.scope, &mut numbered)?;
    Ok(Action::Print(crate::program::Expression::Sql(selected(&[sql], numbered))))
}

fn raise(compiler: &mut Compiler<'_>, raise: &Raise, line: u32) -> Result<Action, Error> {
    let mut numbered = Numbered::default();
    let sql = message::raised(raise, line, &compiler.scope, &mut numbered)?;
    let (sets_error, at_once) = match raise {
        Raise::Severity { set_error, nowait, .. } => (*set_error, *nowait),
        Raise::Number { .. } => (false, false),
    };
    Ok(Action::Raise { message: selected(&sql, numbered), sets_error, at_once })
}

fn created(compiler: &mut Compiler<'_>, created: Created) -> Action {
    compiler.asked.extend(created.asked);
    Action::Define(created.define)
}

pub(super) fn make_variable(
    compiler: &mut Compiler<'_>,
    table: &TableVariable,
    line: u32,
    into: &mut Vec<Statement>,
) -> Result<(), Error> {
    let name = names::table_variable(&table.variable, &compiler.scope.table_owner);
    let create = tree::CreateTable { table: name, elements: table.elements.clone(), indexes: Vec::new() };
    let mut action = definition(compiler, &Tree::CreateTable(Box::new(create)))?;
    if let Action::Query(query) = &mut action {
        query.kind = QueryKind::Unsaid;
    }
    into.push(Statement { line, action });
    Ok(())
}

/// The tables and views that a definition changes.
fn changed(definition: &Tree) -> Result<Vec<Relation>, Error> {
    let named: Vec<_> = match definition {
        Tree::AlterTable { table, .. } | Tree::Truncate(table) => vec![table],
        Tree::CreateIndex(index) => vec![&index.table],
        Tree::CreateView(view) => vec![&view.name],
        Tree::Drop(dropped) => dropped.names.iter().collect(),
        Tree::DropIndexes(indexes) => indexes.iter().map(|index| &index.table).collect(),
        Tree::Grant(grant) => vec![&grant.object],
        _ => Vec::new(),
    };
    named.into_iter().map(names::relation).collect()
}

/// `changed`: see `Facts`.
pub(super) fn defined(definition: &plpgsql::Definition, kind: QueryKind, changed: Vec<Relation>) -> Action {
    let mut sql = Sql::plain(definition.to_string());
    sql.facts.changed = changed;
    Action::Query(definition_of(sql, kind))
}

pub(super) fn definition_of(sql: Sql, kind: QueryKind) -> Query {
    Query {
        sql,
        kind,
        assigns: Vec::new(),
        current: None,
        columns: None,
        into: None,
        limited: None,
        padded: None,
        met: Default::default(),
        browses: false,
    }
}
