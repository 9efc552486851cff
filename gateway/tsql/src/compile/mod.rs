//! Compiles a batch: its tree becomes the program that the session runs. Everything is compiled or refused before any
//! statement runs.

mod compiler;
mod cursor;
mod execute;
mod keyed;
mod labels;
mod padding;
mod procedure;
mod session;
mod statement;
mod undeclared;
mod value;
mod written;

pub use execute::{insert_of_rows, stored_parameter, text_for};
pub use keyed::{keyed, Keyed};
pub(crate) use procedure::declaration;
pub use undeclared::{undeclared, Undeclared};
pub use value::bytes_of;
pub(crate) use value::of_number;

use crate::bind::{self};
use crate::digest;
use crate::error::Error;
use crate::facts::types::{self, Type, UNKNOWN};
use crate::long_names::LongNames;
use crate::plpgsql;
use crate::postgres::{call, Scalar};
use crate::program::{
    demanded, Action, Declaration, Filled, GivenTable, Lifted, Program, QueryKind, Settings, Sql, Statement,
    Uses,
};
use crate::resolve::{changing, defined_tables, names, Scope};
use crate::schema::{Schema, Unknown};
use crate::tree::{self, CreateProcedure, StatementKind as Tree, TableVariable};
use compiler::Compiler;
use procedure::Given;
use statement::{defined, definition_of};
use std::sync::Arc;

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
    variables.extend(scalars.map(|parameter| (parameter.name.clone(), parameter.of)));
    for number in 1..=placeholders {
        variables.entry(crate::program::placeholder(number)).or_insert(UNKNOWN);
    }
    variables.extend(lifted.iter().map(|literal| (literal.name.clone(), literal.of)));
    let tables = table_variables(batch, given)?;
    // table variables of a procedure, or of a text inside another, are distinct from those around it
    let table_owner = match settings.procedure || settings.is_inside || !given.is_empty() {
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
        statement::make_variable(&mut compiler, table, *line, &mut statements)?;
    }
    for (table, type_name) in given {
        statements.push(filled(table, type_name, &compiler.scope)?);
    }
    labels::enter(&mut compiler, batch)?;
    statement::body(&mut compiler, batch, &mut statements)?;
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
        long_names: LongNames::default(),
        uses,
    })
}

/// The scope of a text without tables of its own.
fn base_scope(settings: &Settings, schema: &Arc<dyn Schema>) -> Scope {
    let variable = |(name, of): (&String, &Type)| (name.to_lowercase(), *of);
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
    let indexes = columns.clone().enumerate();
    let given = GivenTable {
        parameter,
        type_name: type_name.to_owned(),
        identity: columns.clone().position(|column| column.identity.is_some()),
        computed: indexes.filter(|(_, column)| is_computed(column)).map(|(index, _)| index).collect(),
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
            let name = &table.variable.name;
            if found.iter().any(|(other, _)| other.variable.name == *name) {
                return Err(Error::declared_twice(name, statement.at.line));
            }
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
