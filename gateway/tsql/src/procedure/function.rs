//! Functions: scalar ones and those that fill a table, in PL/pgSQL, and those that return the rows of one query, in
//! SQL.
//!
//! Like a procedure, a function runs with the rights of its owner and a fixed search path. It changes only its own
//! table variables; without any, PostgreSQL may call it any number of times within a statement.

use super::arguments::{arguments, fitted};
use super::context::Context;
use super::inside::{self, Inside, Noted};
use super::names::read_names;
use super::statements::query;
use super::variable::{variable, STATUS};
use super::writer::Purpose;
use super::{body, header, mark, notes, Created, Header};
use crate::bind::{self, collated, column_type, Variables};
use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types::{self, Family};
use crate::lexer;
use crate::plpgsql::{Routine, Step};
use crate::postgres::{call, Joined, Listed, Query as Rows, Scalar, Select, Source};
use crate::program::{Define, Settings};
use crate::resolve::names::{self, folded, quoted};
use crate::resolve::Scope;
use crate::schema::Schema;
use crate::tree::{
    self, ColumnKind, CreateFunction, Output, Query, Returns, Statement, StatementKind as Tree, TableElement,
    TableSource, TableVariable, Target, Variable,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The statements that create a function. `text`: its batch.
pub fn create(
    create: &CreateFunction,
    text: &str,
    line: u32,
    scope: &Scope,
    settings: &Settings,
) -> Result<Created, Error> {
    let header = header(&create.name, &create.parameters, line, scope)?;
    if scope.dialect.is_strict {
        refuse_effects(text)?;
    }
    if let Some(at) = lexer::temporary_name(text)? {
        let text = "Cannot access temporary tables from within a function.";
        return Err(Error::new(2772, text, at).with_severity(16));
    }
    if let Some((parameter, _)) = header.parameters.iter().find(|(parameter, _)| parameter.output) {
        let text = "Mixing old and new syntax to specify output of a function is not possible.";
        return Err(Error::refused(&format!("{} output", parameter.shown), text, parameter.variable.at));
    }
    let (statement, asked) = match &create.returns {
        Returns::Value(of) => {
            let of = type_names::of_returned(of, scope.dialect)?;
            value(create, &header, of, text, scope, settings)?
        }
        Returns::Rows(query) => rows(create, &header, query, text, scope, settings)?,
        Returns::Table { variable, elements } => {
            table(create, &header, (variable, elements), text, scope, settings)?
        }
    };
    let define = Define { statements: vec![statement], is_temporary: false, notice: None };
    Ok(Created { define, asked })
}

fn value(
    create: &CreateFunction,
    header: &Header<'_>,
    of: types::Type,
    text: &str,
    scope: &Scope,
    settings: &Settings,
) -> Result<(String, Vec<String>), Error> {
    check(&create.body, false)?;
    let mentioned = read_names(text, &header.name)?;
    let mut writer = header.writer(Purpose::Function(of), scope, None);
    writer.write(&create.body, &mentioned)?;
    let source = text.trim();
    // PostgreSQL creates no tables inside a stable function
    let volatility = if writer.scope.table_variables.is_empty() { "stable" } else { "volatile" };
    let mut notes = notes(header, &writer, source, settings);
    // for the reply to a call: PostgreSQL stores no length of a function's result
    notes.push(format!("returns {}", of.declared()));
    // the text of a numeric differs from that of money
    let returned = match of.family {
        Family::Money => column_type(of, create.name.at.line)?,
        _ => collated(of, None, &writer.scope)?.sql(),
    };
    let definition = Routine {
        arguments: arguments(header, scope)?,
        returns: Some(returned),
        volatility: Some(volatility),
        is_strict: create.options.iter().any(|option| option == "returns null on null input"),
        notes,
        ..body(header, &writer, Step::Return(Some(variable(STATUS))))
    };
    Ok((header.created(create.mode, &definition, source), writer.asked()))
}

/// `returns @t table (…)`: the table variable is created first, and its rows are returned.
fn table(
    create: &CreateFunction,
    header: &Header<'_>,
    (variable, elements): (&Variable, &[TableElement]),
    text: &str,
    scope: &Scope,
    settings: &Settings,
) -> Result<(String, Vec<String>), Error> {
    check(&create.body, true)?;
    let mentioned = read_names(text, &header.name)?;
    let mut names = Vec::new();
    let (mut columns, mut declared) = (Vec::new(), Vec::new());
    for element in elements {
        let TableElement::Column(column) = element else { continue };
        let ColumnKind::Typed(of) = &column.kind else {
            let what = format!("returns {} table with {} as …", variable.name, column.name.text);
            return Err(Error::refused(&what, "the columns have types", column.name.at));
        };
        let line = column.name.at.line;
        let name = folded(&column.name.text, line)?;
        let of = type_names::of_name(of, 1, scope.dialect)?;
        let of = collated(of, column.collation.as_ref(), &scope.in_schema(&header.schema))?;
        columns.push(format!("{} {}", quoted(&name), column_type(of, line)?));
        declared.push(of.declared());
        names.push(name);
    }
    let mut writer = header.writer(Purpose::Procedure, scope, None);
    let own = names::table(&names::table_variable(variable, &writer.scope.table_owner))?;
    let listed = names.iter().map(|name| Listed::from(Scalar::column(quoted(name))));
    writer.purpose = Purpose::Table(Rows::of(listed, Source::Table(own, None)));
    for name in names {
        // hides PL/pgSQL's variable of the column, to which a wrong name in a query would refer
        writer.declare(name, "record");
    }
    let variable = TableVariable { variable: variable.clone(), elements: elements.to_vec() };
    query::declare_table(&mut writer, &variable, variable.variable.at.line, &Context::default())?;
    writer.write(&create.body, &mentioned)?;
    let source = text.trim();
    let mut notes = notes(header, &writer, source, settings);
    notes.push(format!("rows {}", declared.join(";")));
    let definition = Routine {
        arguments: arguments(header, scope)?,
        returns: Some(format!("table ({})", columns.join(", "))),
        volatility: Some("volatile"),
        notes,
        ..body(header, &writer, Step::Return(None))
    };
    Ok((header.created(create.mode, &definition, source), writer.asked()))
}

/// Error 443: functions whose next value depends on this one.
fn refuse_effects(text: &str) -> Result<(), Error> {
    let tokens = lexer::read(text)?;
    let has_effect = |pair: &&[lexer::Token<'_>]| {
        pair[0].is_any(&["newid", "newsequentialid", "rand"]) && pair[1].is_symbol("(")
    };
    match tokens.windows(2).find(has_effect) {
        None => Ok(()),
        Some(pair) => {
            let name = pair[0].value.to_lowercase();
            let text = format!("Invalid use of a side-effecting operator '{name}' within a function.");
            Err(Error::new(443, text, pair[0].at).with_severity(16))
        }
    }
}

/// Refuses statements that a function must not contain.
fn check(body: &[Statement], fills_a_table: bool) -> Result<(), Error> {
    for statement in tree::every(body) {
        let name = match &statement.kind {
            Tree::Declare(_)
            | Tree::DeclareTable(_)
            | Tree::Assign(_)
            | Tree::Block(_)
            | Tree::If { .. }
            | Tree::While { .. }
            | Tree::Break
            | Tree::Continue
            | Tree::Select(_)
            | Tree::DeclareCursor(_)
            | Tree::OpenCursor(_)
            | Tree::Fetch(_)
            | Tree::CloseCursor(_)
            | Tree::DeallocateCursor(_) => continue,
            Tree::Insert(insert) if is_own(&insert.target, &[], insert.output.as_ref()) => continue,
            Tree::Update(update) if is_own(&update.target, &update.from, update.output.as_ref()) => continue,
            Tree::Delete(delete) if is_own(&delete.target, &delete.from, delete.output.as_ref()) => continue,
            Tree::Return(value) if value.is_none() == fills_a_table => continue,
            Tree::Return(Some(_)) => return Err(Error::returns_a_value(statement.at)),
            Tree::Return(None) => {
                let text = "RETURN statements in scalar valued functions must include an argument.";
                return Err(Error::new(1075, text, statement.at));
            }
            Tree::Insert(_) => "INSERT",
            Tree::Update(_) => "UPDATE",
            Tree::Delete(_) => "DELETE",
            Tree::Merge(_) => "MERGE",
            Tree::Execute(_) | Tree::ExecuteText(_) => "EXECUTE",
            Tree::Print { .. } => "PRINT",
            Tree::Raise(_) => "RAISERROR",
            Tree::Throw(_) => "THROW",
            Tree::TryCatch { .. } => "BEGIN TRY",
            Tree::Set(_) => "SET OPTION",
            _ => "this statement",
        };
        let text = format!("Invalid use of a side-effecting operator '{name}' within a function.");
        return Err(Error::new(443, text, statement.at));
    }
    let mut last = body.last();
    while let Some(Statement { kind: Tree::Block(inner), .. }) = last {
        last = inner.last();
    }
    match last {
        Some(Statement { kind: Tree::Return(_), .. }) => Ok(()),
        other => {
            let text = "The last statement included within a function must be a return statement.";
            Err(Error::new(455, text, other.map_or(1, |statement| statement.at.line)))
        }
    }
}

/// Whether a change affects only table variables.
fn is_own(target: &Target, from: &[TableSource], output: Option<&Output>) -> bool {
    let target_is_own = match target {
        Target::Variable(_) => true,
        Target::Table(name) => {
            name.is_bare() && from.iter().any(|source| is_variable_named(source, &name.name))
        }
    };
    let into = output.and_then(|output| output.into.as_ref());
    target_is_own && into.is_none_or(|(into, _)| matches!(into, Target::Variable(_)))
}

fn is_variable_named(source: &TableSource, name: &str) -> bool {
    match source {
        TableSource::Variable { alias: Some(alias), .. } => alias.is(name),
        TableSource::Join { left, right, .. } => {
            is_variable_named(left, name) || is_variable_named(right, name)
        }
        _ => false,
    }
}

/// The rows of a query. Only PostgreSQL knows their types: they are queried when the function is created, with nulls
/// for the parameters.
fn rows(
    create: &CreateFunction,
    header: &Header<'_>,
    query: &Query,
    text: &str,
    scope: &Scope,
    settings: &Settings,
) -> Result<(String, Vec<String>), Error> {
    let of = header.parameters.iter().map(|(parameter, of)| (parameter.variable.name.clone(), *of));
    let path = header.schemas().map(str::to_owned).collect();
    let inside = scope.schema.clone().map(|schema| Arc::new(Inside::new(schema, path, None)));
    let scope_inside = Scope {
        schema: inside.clone().map(|inside| inside as Arc<dyn Schema>),
        variables: of.collect(),
        dialect: scope.dialect,
        nulls_equal: scope.nulls_equal,
        database: header.schema.clone(),
        databases: scope.databases.clone(),
        folds: scope.databases.folding.contains(&header.schema),
        ..Scope::default()
    };
    let kinds = |null: bool| -> HashMap<String, Scalar> {
        let written = |name: &str, of: &types::Type| match null {
            true => Scalar::Null.cast(of.sql()),
            false => {
                let name = Scalar::column(quoted(name));
                fitted(name.clone(), of, scope.dialect).unwrap_or(name)
            }
        };
        let each = header.parameters.iter().map(|(parameter, of)| {
            let name = parameter.variable.name.clone();
            let sql = written(&name, of);
            (name, sql)
        });
        each.collect()
    };
    bind::refuse_order(query, scope.dialect)?;
    let statement = Tree::Select(Box::new(query.clone()));
    let (mut noted, mut asked_for) = (Noted::default(), Vec::new());
    let mut translated = |null: bool| {
        let mut parameters = Parameters { written: kinds(null), noted: &mut noted };
        let found = bind::statement(&statement, &scope_inside, &mut parameters);
        asked_for.extend(inside.iter().flat_map(|inside| inside.asked()));
        found?.ok_or_else(|| Error::keyword("return", query.at))
    };
    let (asked, written) = (translated(true)?, translated(false)?);
    if written.kind != bind::Verb::Select || !written.assigns.is_empty() {
        let text = "Select statements included within a function cannot return data to a client.";
        return Err(Error::new(444, text, query.at));
    }
    if let Some(index) = written.columns.iter().flatten().position(|title| title.text.is_empty()) {
        let text = format!(
            "CREATE FUNCTION failed because a column name is not specified for column {}.",
            index + 1
        );
        return Err(Error::new(4514, text, query.at).with_severity(16));
    }
    let named = written.columns.iter().flatten().map(|title| title.text.as_str());
    if let Some(name) = bind::named_twice(named).filter(|_| scope.dialect.is_strict) {
        let text = format!(
            "Column names in each view or function must be unique. Column name '{name}' in view or function '{}' is specified \
             more than once.",
            create.name.name
        );
        return Err(Error::new(4506, text, query.at).with_severity(16));
    }
    let source = text.trim();
    let declared = inside.map(|inside| inside.declared(&noted)).unwrap_or_default();
    let (rows, bound) = match written.sql.into_query() {
        Some(query) if !declared.is_empty() => {
            let mut checked = Select { list: vec![Scalar::Star.into()], ..Select::default() };
            checked.from.push(query.named("\"rows\"", Vec::new()));
            checked.conditions.push(inside::condition(&declared));
            (Some(Rows::from(checked)), format!("-- {}\n", inside::bound(settings, &declared, &[])))
        }
        query => (query, String::new()),
    };
    let rows = rows.ok_or_else(|| Error::keyword("return", query.at))?;
    let parts = [
        create.mode.action(),
        &header.schema,
        &header.name,
        &Joined(&arguments(header, scope)?, ", ").to_string(),
        &header.path(),
        &asked.sql.to_string(),
        &format!("\n{bound}-- {}\n{rows}\n", mark(source)),
        source,
    ];
    Ok((format!("select {}", call("tsql.create_rows_function", parts.map(Scalar::text))), asked_for))
}

/// The parameters of a function of one query.
struct Parameters<'n> {
    written: HashMap<String, Scalar>,
    noted: &'n mut Noted,
}

impl Variables for Parameters<'_> {
    fn write(&mut self, name: &str, line: u32) -> Result<Scalar, Error> {
        let found = self.written.get(name).cloned();
        found.ok_or_else(|| Error::refused(name, "a function does not know it", line))
    }

    fn note_use(&mut self, table: &str, column: Option<&str>) {
        self.noted.entry(table.to_owned()).or_default().extend(column.map(str::to_owned));
    }
}
