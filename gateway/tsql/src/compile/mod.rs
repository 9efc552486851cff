//! Compiles a batch: its tree becomes the program that the session runs. Everything is compiled or refused before any
//! statement runs.

mod call;
mod compiler;
mod cursor;
mod keyed;
mod labels;
mod padding;
mod procedure;
mod session;
mod undeclared;
mod value;
mod written;

pub use call::{insert_of_rows, text_for};
pub use keyed::{keyed, Keyed};
pub(crate) use procedure::declaration;
pub use undeclared::{undeclared, Undeclared};
pub use value::bytes_of;
pub(crate) use value::of_number;

use crate::bind::{self, Numbered};
use crate::digest;
use crate::error::Error;
use crate::facts::collations::Collation;
use crate::facts::types::{self, Type, INT, LONGEST_VARCHAR, VARCHAR};
use crate::lexer::{self, Token};
use crate::long_names::LongNames;
use crate::message;
use crate::parser::wrong_at;
use crate::plpgsql;
use crate::postgres::{call, Scalar};
use crate::procedure::{Created, Inside};
use crate::program::{
    demanded, Action, Condition, CursorAction, Declaration, Define, Definition, Executed, Filled, GivenTable,
    Lifted, Program, Query, QueryKind, Settings, Sql, Statement, Tree as Bindable, Uses,
    LONGEST_TRANSACTION_NAME,
};
use crate::resolve::names::Relation;
use crate::resolve::{changing, defined_tables, names, Scope};
use crate::schema::{Schema, Unknown};
use crate::tree::{
    self, AlterDatabase, Assign, CreateProcedure, Declared, DropObjects, ObjectKind, Raise,
    StatementKind as Tree, TableVariable, TransactionName,
};
use compiler::{selected, Compiler};
use procedure::Given;
use std::sync::Arc;
use value::literal;
use written::Written;

/// The most bytes of all SQL of a program.
const LONGEST: usize = 16 << 20;

/// The program of a batch. `text`: its source, which a procedure stores. `lifted`: literals that are variables in the
/// tree.
pub(crate) fn program(
    batch: &[tree::Statement],
    text: &str,
    settings: &Settings,
    schema: &Arc<dyn Schema>,
    placeholders: usize,
    lifted: Vec<Lifted>,
    parameters: &[tree::Parameter],
) -> Result<Program, Error> {
    let procedure::Parts { parameters, given, statements } = procedure::parts(batch, parameters, settings)?;
    program_of((parameters, &given), statements, text, settings, schema, placeholders, lifted)
}

/// The program of a procedure's body. `text`: the batch that creates it.
fn body(create: &CreateProcedure, text: &str, settings: &Settings) -> Result<Program, Error> {
    let settings = Settings { procedure: true, ..settings.clone() };
    let parameters = procedure::declarations(create, &settings)?;
    let schema: Arc<dyn Schema> = Arc::new(Unknown);
    let given = procedure::given(&create.parameters);
    program_of((parameters, &given), &create.body, text, &settings, &schema, 0, Vec::new())
}

fn program_of(
    (parameters, given): (Vec<Declaration>, &[Given]),
    batch: &[tree::Statement],
    text: &str,
    settings: &Settings,
    schema: &Arc<dyn Schema>,
    placeholders: usize,
    lifted: Vec<Lifted>,
) -> Result<Program, Error> {
    let base = base_scope(settings, schema);
    let mut variables = base.variables;
    let scalars = parameters.iter().filter(|parameter| parameter.of != types::TABLE);
    variables.extend(scalars.map(|parameter| (parameter.name.clone(), Some(parameter.of))));
    variables.extend((1..=placeholders).map(|number| (crate::program::placeholder(number), None)));
    variables.extend(lifted.iter().map(|literal| (literal.name.clone(), Some(literal.of))));
    let tables = table_variables(batch, given)?;
    // a procedure's table variables are distinct from those of its callers
    let table_owner = match settings.procedure || !given.is_empty() {
        true => digest::md5(text.as_bytes())[..8].to_owned(),
        false => String::new(),
    };
    let (made, redefined) = defined_tables(batch)?;
    let mut changing = changing(batch, &redefined)?;
    for (table, _) in &tables {
        changing.insert(names::relation(&names::table_variable(&table.variable, &table_owner))?.own);
    }
    let scope = Scope {
        variables,
        limits_rows: settings.limits_rows || sets_rowcount(text),
        changing,
        table_variables: tables.iter().map(|(table, _)| table.variable.name.clone()).collect(),
        given_tables: given.iter().map(|(table, _)| table.variable.name.clone()).collect(),
        table_owner,
        ..base
    };
    let mut compiler = Compiler {
        scope,
        settings,
        text,
        batch,
        catches: 0,
        length: 0,
        asked: Vec::new(),
        makes_temporary: false,
        labels: Vec::new(),
        last_label: 0,
    };
    let mut statements = Vec::with_capacity(batch.len() + 3 * tables.len());
    // a table variable is a temporary table, created before the batch runs and dropped after it
    for (table, line) in &tables {
        statements.push(forgotten(table, *line, &compiler.scope.table_owner)?);
    }
    for (table, line) in &tables {
        compiler.make_variable(table, *line, &mut statements)?;
    }
    for (table, type_name) in given {
        statements.push(filled(table, type_name, &compiler.scope)?);
    }
    compiler.enter(batch)?;
    compiler.body(batch, &mut statements)?;
    let Compiler { asked, makes_temporary, scope, .. } = compiler;
    for (table, line) in &tables {
        statements.push(forgotten(table, *line, &scope.table_owner)?);
    }
    let own =
        |(table, _): &(&TableVariable, u32)| names::table_variable(&table.variable, &scope.table_owner).name;
    let table_variables = tables.iter().map(own).collect();
    let mut uses = Uses::of_all(&statements, &scope);
    uses.note(asked, &**schema);
    let demanded = match settings.dialect.demands_tables && !settings.procedure {
        true => demanded(&statements, &made),
        false => Vec::new(),
    };
    Ok(Program {
        parameters,
        statements,
        placeholders,
        lifted,
        table_variables,
        makes_temporary,
        demanded,
        redefined,
        long_names: LongNames::default(),
        uses,
    })
}

/// The scope of a text without tables of its own.
fn base_scope(settings: &Settings, schema: &Arc<dyn Schema>) -> Scope {
    let variable = |(name, of): (&String, &Option<Type>)| (name.to_lowercase(), *of);
    Scope {
        variables: settings.variables.iter().map(variable).collect(),
        dialect: settings.dialect,
        nulls_equal: settings.nulls_equal,
        limits_rows: settings.limits_rows,
        database: settings.database.clone(),
        databases: settings.databases.clone(),
        folds: settings.databases.folding.contains(&settings.database),
        schema: Some(schema.clone()),
        partial: settings.partial.clone(),
        identity_insert: settings.identity_insert.clone(),
        ..Scope::default()
    }
}

/// Whether a text contains `set rowcount`, with only blanks between the two words.
fn sets_rowcount(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut words = text.split_ascii_whitespace().peekable();
    while let Some(word) = words.next() {
        if word.ends_with("set") && words.peek().is_some_and(|next| next.starts_with("rowcount")) {
            return true;
        }
    }
    false
}

impl Compiler<'_> {
    /// The text of a view: it is the whole batch, but in ASE its statement (ASE Transact-SQL User's Guide, "Rules for
    /// using batches").
    fn text_of_view(&self, view: &tree::Statement, mode: tree::Mode) -> Result<&str, Error> {
        match self.batch {
            _ if self.settings.dialect.is_ase => Ok(&self.text[view.at.range()]),
            [only] if only.at.start == view.at.start => Ok(self.text),
            [first, next, ..] if first.at.start == view.at.start => {
                let words = lexer::read(&self.text[next.at.range()])?;
                let wrong = |token: &Token<'_>| wrong_at(&Token { at: next.at, ..token.clone() });
                Err(words.first().map_or_else(|| Error::syntax("", next.at), wrong))
            }
            _ => Err(Error::not_first(mode.action(), "VIEW", view.at)),
        }
    }

    fn body(&mut self, body: &[tree::Statement], into: &mut Vec<Statement>) -> Result<(), Error> {
        for statement in body {
            self.statement(statement, into)?;
        }
        Ok(())
    }

    fn block(&mut self, body: &[tree::Statement]) -> Result<Vec<Statement>, Error> {
        let mut statements = Vec::with_capacity(body.len());
        self.enter(body)?;
        self.body(body, &mut statements)?;
        self.labels.pop();
        Ok(statements)
    }

    /// The body of a branch or loop: one statement, or those of a block.
    fn branch(&mut self, statement: &tree::Statement) -> Result<Vec<Statement>, Error> {
        match &statement.kind {
            Tree::Block(body) => self.block(body),
            _ => self.block(std::slice::from_ref(statement)),
        }
    }

    fn statement(&mut self, statement: &tree::Statement, into: &mut Vec<Statement>) -> Result<(), Error> {
        let line = statement.at.line;
        match &statement.kind {
            Tree::Block(body) => return self.body(body, into),
            Tree::Declare(variables) => {
                return variables.iter().try_for_each(|variable| self.declare(variable, into))
            }
            // created before the batch
            Tree::DeclareTable(_) => return Ok(()),
            _ => {}
        }
        if self.settings.procedure {
            procedure::check(&statement.kind, line)?;
        }
        let action = self.action(statement)?;
        self.length += action.size();
        if self.length > LONGEST {
            return Err(Error::nested_too_deeply(line));
        }
        into.push(Statement { line, action });
        Ok(())
    }

    fn action(&mut self, statement: &tree::Statement) -> Result<Action, Error> {
        let line = statement.at.line;
        Ok(match &statement.kind {
            Tree::Block(_) | Tree::Declare(_) | Tree::DeclareTable(_) => {
                unreachable!("these are several statements or none")
            }
            Tree::Select(query) => match self.variables_only(query) {
                Some(names) => Action::Variables(names),
                None => self.query(statement)?,
            },
            Tree::Insert(insert) => match &insert.source {
                tree::InsertSource::Execute(execute) => {
                    let execute = Executed::Procedure(self.execute(execute)?);
                    self.insert_execute(insert, execute, line)?
                }
                tree::InsertSource::ExecuteText(text) => {
                    let text = Executed::Text(self.value(&text.text, Some(VARCHAR))?);
                    self.insert_execute(insert, text, line)?
                }
                _ => self.query(statement)?,
            },
            Tree::Update(_) | Tree::Delete(_) | Tree::Merge(_) | Tree::Readtext(_) => {
                self.query(statement)?
            }
            Tree::Writetext(_) | Tree::Updatetext(_) => self.text_change(&statement.kind, line)?,
            Tree::Assign(assign) => self.assign(assign)?,
            Tree::If { condition, then, otherwise } => Action::If {
                condition: self.condition(condition)?,
                then: self.branch(then)?,
                otherwise: match otherwise {
                    Some(otherwise) => self.branch(otherwise)?,
                    None => Vec::new(),
                },
            },
            Tree::While { condition, body } => {
                Action::While { condition: self.condition(condition)?, body: self.branch(body)? }
            }
            Tree::Break => Action::Break,
            Tree::Continue => Action::Continue,
            Tree::Return(None) => Action::Return(None),
            Tree::Return(Some(_)) if !self.settings.procedure => return Err(Error::returns_a_value(line)),
            Tree::Return(Some(value)) => Action::Return(Some(self.value(value, Some(INT))?)),
            Tree::Goto(label) => self.goto(label, self.batch)?,
            Tree::Label(label) => Action::Label(self.label(label).unwrap_or(0)),
            Tree::TryCatch { body, catch } => {
                let body = self.block(body)?;
                self.catches += 1;
                let catch = self.block(catch)?;
                self.catches -= 1;
                Action::Try { body, catch }
            }
            Tree::WaitforDelay(delay) => self.wait("delay", delay)?,
            Tree::WaitforTime(time) => self.wait("until", time)?,
            Tree::Print { text, arguments } => self.print(text, arguments)?,
            Tree::Raise(raise) => self.raise(raise, line)?,
            Tree::Throw(None) if self.catches == 0 => return Err(message::no_rethrow(line)),
            Tree::Throw(None) => Action::Throw(None),
            Tree::Throw(Some(throw)) => {
                let mut numbered = Numbered::default();
                let sql = message::thrown(throw, &self.scope, &mut numbered)?;
                Action::Throw(Some(selected(&sql, numbered)))
            }
            Tree::Execute(execute) => Action::Execute(self.execute(execute)?),
            Tree::ExecuteText(text) => Action::ExecuteText(self.value(&text.text, Some(VARCHAR))?),
            Tree::DeclareCursor(declare) => self.declare_cursor(declare)?,
            Tree::OpenCursor(name) => Action::Cursor(CursorAction::Open(name.known())),
            Tree::Fetch(fetch) => self.fetch(fetch)?,
            Tree::CloseCursor(name) => Action::Cursor(CursorAction::Close(name.known())),
            Tree::DeallocateCursor(name) => Action::Cursor(CursorAction::Deallocate(name.known())),
            Tree::WritetextBulk(text) => self.sent_text(text, line)?,
            Tree::InsertBulk(bulk) => Action::InsertBulk(session::insert_bulk(bulk)?),
            Tree::Use(name) => {
                // the next statements use that database; only the session knows `master` and similar names
                self.scope.database.clear();
                self.scope.folds = self.scope.databases.folding.contains(&name.text.to_lowercase());
                self.scope.schema = None;
                if name.is("tempdb") {
                    return Err(Error::refused("use tempdb", "every database makes #t and ##t there", line));
                }
                Action::Use(name.text.clone())
            }
            Tree::Set(words) => Action::Set(self.option(words, line)?),
            Tree::BeginTransaction(name) => Action::Begin(self.transaction_name(name.as_ref())?),
            Tree::Commit(name) => {
                self.transaction_name(name.as_ref())?;
                Action::Commit
            }
            Tree::Rollback(name) => Action::Rollback(self.transaction_name(name.as_ref())?),
            Tree::RollbackTrigger(_) => {
                let why = "it undoes the statement that has fired a trigger";
                return Err(Error::refused("rollback trigger", why, line));
            }
            Tree::Save(name) => Action::Save(self.transaction_name(Some(name))?),
            Tree::CreateProcedure(create) => {
                let here = |settings: &Settings| body(create, self.text, settings).map(|_| ());
                let text = lexer::as_created(self.text)?;
                let created =
                    crate::procedure::create(create, &text, line, &self.scope, self.settings, here)?;
                self.created(created)
            }
            Tree::CreateFunction(create) => {
                let text = lexer::as_created(self.text)?;
                let created =
                    crate::procedure::create_function(create, &text, line, &self.scope, self.settings)?;
                self.created(created)
            }
            Tree::CreateTrigger(create) => {
                let text = lexer::as_created(self.text)?;
                let created =
                    crate::procedure::create_trigger(create, &text, line, &self.scope, self.settings)?;
                self.created(created)
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
                self.scope.identity_insert = on.then(|| table.clone());
                Action::IdentityInsert { table, on: *on }
            }
            Tree::CreateView(create) => {
                let text = self.text_of_view(statement, create.mode)?;
                // PostgreSQL lets nobody change the types of its columns
                let inside =
                    self.scope.schema.clone().map(|schema| Arc::new(Inside::new(schema, Vec::new(), None)));
                let schema = inside.clone().map(|inside| inside as Arc<dyn Schema>);
                let scope = Scope { schema, ..self.scope.clone() };
                let definition = bind::create_view(create, lexer::as_created(text)?.trim(), &scope);
                self.asked.extend(inside.iter().flat_map(|inside| inside.asked()));
                let definition = definition?;
                defined(&definition, QueryKind::Definition(Definition::Other), changed(&statement.kind)?)
            }
            Tree::CreateBindable(create) => {
                let source = lexer::as_created(self.text)?;
                let definition = bind::create_bindable(create, source.trim(), &self.scope)?;
                defined(&definition, QueryKind::Definition(Definition::Other), changed(&statement.kind)?)
            }
            Tree::CreateTable(create) => {
                self.makes_temporary |= create.table.is_temporary();
                self.definition(&statement.kind)?
            }
            _ => self.definition(&statement.kind)?,
        })
    }

    /// A select, insert, update or delete.
    fn query(&mut self, statement: &tree::Statement) -> Result<Action, Error> {
        let tree = &statement.kind;
        let Some(written) = written::statement(tree, &self.scope)? else {
            return self.definition(tree);
        };
        let facts = &written.query.sql.facts;
        self.makes_temporary |= facts.defines_temporary() && !facts.names_global();
        Ok(Action::Query(self.bound(written, statement.at, || Bindable::Statement(tree.clone()))))
    }

    fn definition(&mut self, statement: &Tree) -> Result<Action, Error> {
        let kind = match statement {
            Tree::CreateTable(_) | Tree::CreateIndex(_) => Definition::Create,
            Tree::AlterTable { .. } => Definition::AlterTable,
            Tree::Truncate(_) => Definition::Truncate,
            Tree::Drop(_) | Tree::DropIndexes(_) => Definition::Drop,
            _ => Definition::Other,
        };
        let definition = bind::defined(statement, &self.scope)?;
        if self.changes_databases(statement) {
            let define =
                Define { statements: vec![definition.to_string()], is_temporary: false, notice: None };
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
    fn changes_databases(&mut self, definition: &Tree) -> bool {
        let (name, collation) = match definition {
            Tree::CreateSchema { name, collation: Some(collation), .. } => (name, collation),
            Tree::AlterDatabase(AlterDatabase { collation, .. }) => return collation.is_some(),
            Tree::CreateSchema { kind, .. } => return *kind == ObjectKind::Schema,
            Tree::Drop(DropObjects { kind, .. }) => {
                return matches!(kind, ObjectKind::Schema | ObjectKind::Database)
            }
            _ => return false,
        };
        if self.scope.collation(&collation.text) == Some(Collation::Insensitive) {
            Arc::make_mut(&mut self.scope.databases).folding.insert(name.text.to_lowercase());
        }
        true
    }

    fn declare(&mut self, declared: &Declared, into: &mut Vec<Statement>) -> Result<(), Error> {
        let name = &declared.variable.name;
        let line = declared.variable.at.line;
        if self.scope.variables.contains_key(name) {
            return Err(Error::declared_twice(name, line));
        }
        if declared.type_.is_cursor() {
            return Ok(());
        }
        let of = types::of_variable(&declared.type_, self.scope.dialect)?;
        self.scope.variables.insert(name.clone(), Some(of));
        let declaration =
            Declaration { name: name.clone(), shown: name.clone(), of, output: false, value: None };
        into.push(Statement { line, action: Action::Declare(declaration) });
        if let Some(value) = &declared.value {
            let action = Action::Assign(name.clone(), self.value(value, Some(of))?);
            into.push(Statement { line, action });
        }
        Ok(())
    }

    fn assign(&mut self, assign: &Assign) -> Result<Action, Error> {
        let of = self.declared(&assign.variable)?;
        let value = match assign.value_assigned() {
            Some(value) => self.value(&value, of)?,
            None => self.value(&assign.value, of)?,
        };
        Ok(Action::Assign(assign.variable.name.clone(), value))
    }

    /// The name of a transaction or savepoint, or its variable, with @; "" for none.
    fn transaction_name(&self, name: Option<&TransactionName>) -> Result<String, Error> {
        if let Some(TransactionName::Variable(variable)) = name {
            self.declared(variable)?;
        }
        if let Some(TransactionName::Name(name)) = name {
            let start: String = name.text.chars().take(LONGEST_TRANSACTION_NAME).collect();
            if start.len() < name.text.len() && self.scope.dialect.limits_transaction_names {
                let text = format!(
                    "The identifier that starts with '{start}' is too long. \
                     Maximum length is {LONGEST_TRANSACTION_NAME}."
                );
                return Err(Error::new(103, text, name.at));
            }
        }
        Ok(name.map(|name| name.text().to_owned()).unwrap_or_default())
    }

    /// The type of a variable that receives a value. None: PostgreSQL's type.
    fn declared(&self, variable: &tree::Variable) -> Result<Option<types::Type>, Error> {
        if variable.is_global() {
            return Err(Error::syntax(&variable.name, variable.at));
        }
        self.scope.type_of(&variable.name, variable.at.line)
    }

    fn condition(&mut self, condition: &tree::Expression) -> Result<Condition, Error> {
        if value::asks_for_transaction(condition) {
            return Ok(Condition::InTransaction);
        }
        let mut numbered = Numbered::default();
        let sql = bind::condition(condition, &self.scope, &mut numbered)?;
        let written = Written::value(sql, numbered, &self.scope);
        let tree = || Bindable::Condition(condition.clone());
        Ok(Condition::Sql(self.bound(written, condition.at(), tree).sql))
    }

    /// `function`: the SQL function that converts the value to seconds.
    fn wait(&mut self, function: &str, value: &tree::Expression) -> Result<Action, Error> {
        let mut numbered = Numbered::default();
        let value = bind::value(value, &self.scope, &mut numbered, None)?.sql;
        let sql = selected(&[call(format!("tsql.{function}"), [value])], numbered);
        Ok(Action::Wait(crate::program::Expression::Sql(sql)))
    }

    fn print(&mut self, text: &tree::Expression, arguments: &[tree::Expression]) -> Result<Action, Error> {
        let longest = types::varchar(Some(LONGEST_VARCHAR));
        if arguments.is_empty() {
            if let Some(literal) = literal(text, &self.scope, Some(longest)) {
                return Ok(Action::Print(crate::program::Expression::Literal(literal)));
            }
        }
        let mut numbered = Numbered::default();
        let sql = message::printed(text, arguments, &self.scope, &mut numbered)?;
        Ok(Action::Print(crate::program::Expression::Sql(selected(&[sql], numbered))))
    }

    fn raise(&mut self, raise: &Raise, line: u32) -> Result<Action, Error> {
        let mut numbered = Numbered::default();
        let sql = message::raised(raise, line, &self.scope, &mut numbered)?;
        let (sets_error, at_once) = match raise {
            Raise::Severity { set_error, nowait, .. } => (*set_error, *nowait),
            Raise::Number { .. } => (false, false),
        };
        Ok(Action::Raise { message: selected(&sql, numbered), sets_error, at_once })
    }

    fn created(&mut self, created: Created) -> Action {
        self.asked.extend(created.asked);
        Action::Define(created.define)
    }

    fn make_variable(
        &mut self,
        table: &TableVariable,
        line: u32,
        into: &mut Vec<Statement>,
    ) -> Result<(), Error> {
        let name = names::table_variable(&table.variable, &self.scope.table_owner);
        let create = tree::CreateTable { table: name, elements: table.elements.clone(), indexes: Vec::new() };
        let mut action = self.definition(&Tree::CreateTable(Box::new(create)))?;
        if let Action::Query(query) = &mut action {
            query.kind = QueryKind::Unsaid;
        }
        into.push(Statement { line, action });
        Ok(())
    }
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
fn defined(definition: &plpgsql::Definition, kind: QueryKind, changed: Vec<Relation>) -> Action {
    let mut sql = Sql::plain(definition.to_string());
    sql.facts.changed = changed;
    Action::Query(definition_of(sql, kind))
}

fn definition_of(sql: Sql, kind: QueryKind) -> Query {
    Query {
        sql,
        kind,
        assigns: Vec::new(),
        current: None,
        columns: None,
        into: None,
        limited: None,
        padded: None,
        filled: None,
        browses: false,
    }
}

/// Drops the table of a variable if it exists.
fn forgotten(table: &TableVariable, line: u32, owner: &str) -> Result<Statement, Error> {
    let drop = bind::forgotten(&names::table_variable(&table.variable, owner))?;
    Ok(Statement { line, action: defined(&drop, QueryKind::Unsaid, Vec::new()) })
}

/// Fills the table of a parameter.
fn filled(table: &TableVariable, type_name: &str, scope: &Scope) -> Result<Statement, Error> {
    let target = names::table(&names::table_variable(&table.variable, &scope.table_owner))?;
    let parameter = table.variable.name.clone();
    let fill = plpgsql::Definition::Call(call(
        "tsql.fill_table",
        [Scalar::text(target.as_str()), Scalar::Parameter(0)],
    ));
    let copy = definition_of(Sql::written(&fill.to_string(), vec![parameter.clone()]), QueryKind::Unsaid);
    let columns = table.elements.iter().filter_map(|element| match element {
        tree::TableElement::Column(column) => Some(column),
        tree::TableElement::Constraint(_) => None,
    });
    let folded = |name: &tree::Name| names::folded(&name.text, name.at.line);
    let is_computed = |column: &&tree::ColumnDefinition| !matches!(column.kind, tree::ColumnKind::Typed(_));
    let places = columns.clone().enumerate();
    let given = GivenTable {
        parameter,
        type_name: type_name.to_owned(),
        identity: columns.clone().position(|column| column.identity.is_some()),
        computed: places.filter(|(_, column)| is_computed(column)).map(|(place, _)| place).collect(),
        target: Filled {
            table: target,
            columns: Some(columns.map(|column| folded(&column.name)).collect::<Result<_, _>>()?),
            with_identity: false,
        },
        copy,
    };
    Ok(Statement { line: table.variable.at.line, action: Action::GiveTable(Box::new(given)) })
}

/// The table variables that a batch declares anywhere, except inside procedures, after those passed to it.
fn table_variables<'t>(
    batch: &'t [tree::Statement],
    given: &'t [Given],
) -> Result<Vec<(&'t TableVariable, u32)>, Error> {
    let mut found: Vec<_> = given.iter().map(|(table, _)| (table, table.variable.at.line)).collect();
    for statement in tree::every(batch) {
        if let Tree::DeclareTable(table) = &statement.kind {
            found.push((table, statement.at.line));
        }
    }
    if !found.is_empty() {
        for statement in tree::every(batch) {
            if matches!(statement.kind, Tree::Rollback(_)) {
                let why = "it would roll back the rows of the table variable";
                return Err(Error::refused("rollback with a table variable", why, statement.at));
            }
        }
    }
    Ok(found)
}
