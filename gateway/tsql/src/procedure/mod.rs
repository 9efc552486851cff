//! Compiles T-SQL procedures to functions and procedures of PostgreSQL.
//!
//! A procedure runs with the rights of its owner (SECURITY DEFINER), like T-SQL's ownership chains: its callers need no
//! right on the tables it uses. Its search path is fixed.
//!
//! A procedure that reads and writes tables and returns a status, outputs and messages becomes a function, which may
//! share a transaction with other calls (group commit); one that returns rows, calls procedures, waits or creates
//! tables becomes a procedure. One that cannot be compiled is stored as text, and run by the gateway. Parameters keep
//! their @, which distinguishes them from all columns; the return status of a function with outputs is an OUT argument
//! named return_status. The T-SQL is stored as the comment.

mod arguments;
mod context;
mod declared;
mod function;
mod inside;
mod interpreted;
mod names;
mod run;
mod statements;
mod trigger;
mod variable;
mod writer;

pub use function::create as create_function;
pub use inside::Inside;
pub use statements::refused as not_inside;
pub use trigger::create as create_trigger;

use crate::digest;
use crate::error::Error;
use crate::facts::errors;
use crate::facts::type_names;
use crate::facts::types::{self, Type};
use crate::lexer;
use crate::long_names;
use crate::plpgsql::{Argument, Body, Routine, Step};
use crate::postgres::{call, Scalar};
use crate::program::{Define, Settings};
use crate::resolve::names::{folded, quoted, schema_of};
use crate::resolve::Scope;
use crate::tree::{CreateProcedure, DropObjects, Mode, ObjectKind, ObjectName, Parameter};
use arguments::{arguments, fitted};
use names::{asks_for_user, read_names};
use std::collections::HashSet;
use std::sync::Arc;
use variable::{variable, STATUS};
use writer::{BodyWriter, Purpose};

/// These follow the procedure's own schema, as in a database of ringlog; none is writable by everybody.
const SEARCH_PATH: [&str; 3] = ["online", "log", "ringlog"];

/// The schema of objects that end with their session.
const TEMPORARY: &str = "pg_temp";

/// The argument with the return status.
const RETURN_STATUS: &str = "return_status";

/// PostgreSQL's functions have at most 100; one is the return status.
const MOST_ARGUMENTS: usize = 99;

/// A procedure or function and its arguments, with their types.
struct Header<'t> {
    name: String,
    /// The schema in which its body resolves names first.
    schema: String,
    /// The database that has the schema in it.
    database: Option<String>,
    /// It belongs to the session, and ends with it.
    is_temporary: bool,
    parameters: Vec<(&'t Parameter, Type)>,
}

/// A procedure, function or trigger to create.
pub struct Created {
    pub define: Define,
    /// The tables whose declarations it was written with.
    pub asked: Vec<String>,
}

/// The statements that create a procedure. `text`: its batch. `check_here`: whether the gateway can run it under some
/// settings.
pub fn create(
    create: &CreateProcedure,
    text: &str,
    line: u32,
    scope: &Scope,
    settings: &Settings,
    check_here: impl Fn(&Settings) -> Result<(), Error>,
) -> Result<Created, Error> {
    // SQL Server creates a procedure without statements
    if create.body.is_empty() && scope.dialect.is_ase {
        return Err(Error::syntax("as", line));
    }
    let header = header_of(&create.name, ObjectKind::Procedure, &create.parameters, line, scope)?;
    if let Some(at) = create.as_owner {
        if let Some(function) = asks_for_user(text)? {
            let why = format!("{function} returns the caller here");
            return Err(Error::refused("with execute as owner", &why, at));
        }
    }
    let source = text.trim();
    let mut asked = Vec::new();
    let written = compiled(create, &header, text, scope, settings, &mut asked);
    let (definition, notice) = match written {
        Ok(definition) => (definition, None),
        // SQL Server finds them at the creation where the table is there
        Err(error) if scope.dialect.is_strict && errors::is_of_names(error.number) => return Err(error),
        Err(refusal) => {
            let notice = interpreted::notice(&header, &refusal);
            // procedures of this schema are PostgreSQL's
            if header.schema == "ringlog" {
                return Err(refusal);
            }
            check_here(&Settings { database: header.schema.clone(), ..settings.clone() })?;
            if let Some(at) = create.as_owner {
                let why = "the gateway would run it, with the rights of its callers";
                return Err(Error::refused("with execute as owner", why, at));
            }
            (interpreted::definition(&header, source, scope, settings)?, Some(notice))
        }
    };
    let statements = vec![header.created(create.mode, &definition, source)];
    Ok(Created { define: Define { statements, is_temporary: header.is_temporary, notice }, asked })
}

/// Its definition in PL/pgSQL.
fn compiled(
    create: &CreateProcedure,
    header: &Header<'_>,
    text: &str,
    scope: &Scope,
    settings: &Settings,
    asked: &mut Vec<String>,
) -> Result<Routine, Error> {
    if let Some((parameter, _)) = header.parameters.iter().find(|(_, of)| *of == types::TABLE) {
        let why = "tables are passed by the gateway";
        return Err(Error::refused("readonly", why, parameter.variable.at));
    }
    let mentioned = read_names(text, &header.name)?;
    let mut writer = header.writer(Purpose::Procedure, scope, None);
    let written = writer.write(&create.body, &mentioned);
    asked.append(&mut writer.asked());
    written?;
    if header.is_temporary && writer.calls {
        let why = "what a temporary procedure calls may be run by the gateway";
        return Err(Error::refused("execute", why, create.name.at));
    }
    definition(header, &writer, text.trim(), scope, settings)
}

impl Header<'_> {
    /// `target`: the table of a trigger, in SQL.
    fn writer<'t>(&self, purpose: Purpose, scope: &Scope, target: Option<&str>) -> BodyWriter<'t> {
        let of = self.parameters.iter().map(|(parameter, of)| (parameter.variable.name.clone(), *of));
        let mut writer =
            BodyWriter::new(purpose, self.name.clone(), self.schema.clone(), of.collect(), scope.dialect);
        writer.scope.nulls_equal = scope.nulls_equal;
        writer.scope.databases.clone_from(&scope.databases);
        writer.scope.folds = scope.databases.folding.contains(&self.schema);
        writer.scope.partial.clone_from(&scope.partial);
        if let Some(schema) = &scope.schema {
            let path = self.schemas().map(str::to_owned).collect();
            let inside = Arc::new(Inside::new(schema.clone(), path, target.map(str::to_owned)));
            writer.scope.schema = Some(inside.clone());
            writer.inside = Some(inside);
        }
        writer
    }

    /// Its schema.
    fn stands_in(&self) -> &str {
        if self.is_temporary {
            TEMPORARY
        } else {
            &self.schema
        }
    }

    /// A function of its name without a body, which has the rights of its owner.
    fn routine(&self) -> Routine {
        Routine {
            is_procedure: false,
            name: format!("{}.{}", quoted(self.stands_in()), quoted(&self.name)),
            arguments: Vec::new(),
            returns: None,
            volatility: None,
            is_strict: false,
            security_definer: true,
            search_path: self.path(),
            variables: Vec::new(),
            body: Body::new(),
            notes: Vec::new(),
        }
    }

    /// The statement that creates it. `source`: its T-SQL, which is stored with it.
    fn created(&self, mode: Mode, definition: &Routine, source: &str) -> String {
        let definition = definition.to_string();
        let parts = [mode.action(), self.stands_in(), &self.name, &definition, source].map(Scalar::text);
        format!("select {}", call("tsql.create_procedure", parts))
    }

    /// The schemas where its body looks names up.
    fn schemas(&self) -> impl Iterator<Item = &str> {
        let (own, database) = (self.schema.as_str(), self.database.as_deref());
        let others = SEARCH_PATH.into_iter().filter(move |other| *other != own && Some(*other) != database);
        std::iter::once(own).chain(database).chain(others)
    }

    /// The search path of its body.
    fn path(&self) -> String {
        let path: Vec<String> = self.schemas().chain(["pg_temp"]).map(quoted).collect();
        path.join(", ")
    }
}

/// The statements that drop procedures, functions or triggers.
pub fn drop(objects: &DropObjects) -> Result<Define, Error> {
    let kind = match objects.kind {
        ObjectKind::Function => "function",
        ObjectKind::Trigger => "trigger",
        _ => "procedure",
    };
    let statement = |name: &ObjectName| {
        let parts = [
            call("current_schema", []),
            Scalar::text(schema_of(name)),
            Scalar::Text(own_name(name, objects.kind)?),
            Scalar::Boolean(objects.if_exists),
        ];
        Ok(format!("select {}", call(format!("tsql.drop_{kind}"), parts)))
    };
    let statements = objects.names.iter().map(statement).collect::<Result<_, _>>()?;
    let is_temporary = objects.names.iter().all(ObjectName::is_temporary);
    Ok(Define { statements, is_temporary, notice: None })
}

/// The note that links a body to its comment, which is its T-SQL.
fn mark(source: &str) -> String {
    format!("compiled from T-SQL, {}: its text is the comment", digest::md5(source.as_bytes()))
}

fn own_name(name: &ObjectName, kind: ObjectKind) -> Result<String, Error> {
    if name.is_global() {
        let why =
            "only tables are temporary for all sessions: a temporary procedure is the session's own (#name)";
        return Err(Error::refused(&name.name, why, name.at));
    }
    if name.is_temporary() && kind != ObjectKind::Procedure {
        let why = "only tables and procedures are temporary: drop it when it is of no use";
        return Err(Error::refused(&name.name, why, name.at));
    }
    if name.name.contains(';') {
        long_names::demand_short(&name.name, "numbered procedure", name.at)?;
    }
    folded(&name.name, name.at.line)
}

/// The header of a function or trigger.
fn header<'t>(
    name: &ObjectName,
    all: &'t [Parameter],
    line: u32,
    scope: &Scope,
) -> Result<Header<'t>, Error> {
    header_of(name, ObjectKind::Function, all, line, scope)
}

fn header_of<'t>(
    name: &ObjectName,
    kind: ObjectKind,
    all: &'t [Parameter],
    line: u32,
    scope: &Scope,
) -> Result<Header<'t>, Error> {
    let at = name.at.line;
    let is_temporary = name.is_temporary();
    let schema = match schema_of(name) {
        // `tempdb..#p` resolves names in the session's database
        _ if is_temporary => &scope.database,
        schema => schema,
    };
    let schema = match schema {
        "" if scope.database.is_empty() => "public",
        "" => &scope.database,
        schema => schema,
    };
    let schema = folded(schema, at)?;
    let name = own_name(name, kind)?;
    let count = all.len();
    if count > MOST_ARGUMENTS {
        let why = format!("a function of PostgreSQL has at most {MOST_ARGUMENTS}, unless it takes a row");
        return Err(Error::refused(&format!("{count} parameters"), &why, line));
    }
    let mut parameters = Vec::with_capacity(count);
    let mut seen = HashSet::new();
    for parameter in all {
        let name = &parameter.variable.name;
        let at = parameter.variable.at.line;
        long_names::demand_short(name, "procedure's parameter", at)?;
        if !seen.insert(name.as_str()) {
            return Err(Error::declared_twice(name, at));
        }
        let of = match parameter.table {
            None => type_names::of_name(&parameter.type_, 1, scope.dialect)?,
            Some(_) if kind == ObjectKind::Procedure => types::TABLE,
            Some(_) => {
                return Err(Error::refused("readonly", "a procedure takes tables, a function does not", at))
            }
        };
        parameters.push((parameter, of));
    }
    let database = scope.databases.of_schema(&schema).map(str::to_owned);
    Ok(Header { name, schema, database, is_temporary, parameters })
}

fn definition(
    header: &Header<'_>,
    writer: &BodyWriter<'_>,
    source: &str,
    scope: &Scope,
    settings: &Settings,
) -> Result<Routine, Error> {
    let mut arguments = arguments(header, scope)?;
    // a temporary table that it does not create belongs to the caller's connection
    let own_connection = writer.own_connection || names_temporary(source, header)?;
    let has_outputs = header.parameters.iter().any(|(parameter, _)| parameter.output);
    let has_own_status = !own_connection && !has_outputs;
    let status = variable(STATUS);
    let end = match has_own_status {
        true => Step::Return(Some(status)),
        false => {
            // first, as no OUT argument of a procedure may follow one with a default
            arguments.insert(0, status_argument());
            Step::assign(RETURN_STATUS, status)
        }
    };
    let mut notes = notes(header, writer, source, settings);
    // if the gateway runs a called procedure, it runs this one too
    if writer.calls {
        notes.push(interpreted::read_as(settings, false));
    }
    Ok(Routine {
        is_procedure: own_connection,
        arguments,
        returns: has_own_status.then(|| String::from("integer")),
        notes,
        ..body(header, writer, end)
    })
}

/// The argument that returns the return status.
fn status_argument() -> Argument {
    Argument { mode: "out", name: RETURN_STATUS.to_owned(), type_: String::from("integer"), default: None }
}

/// Whether the text of a procedure names a temporary table, other than its own name.
fn names_temporary(source: &str, header: &Header<'_>) -> Result<bool, Error> {
    let tokens = lexer::read(source)?;
    let temporary = tokens.iter().filter(|token| token.is_temporary());
    Ok(temporary.count() > usize::from(header.is_temporary))
}

/// The routine of a body, which ends with `end`.
fn body(header: &Header<'_>, writer: &BodyWriter<'_>, end: Step) -> Routine {
    let mut body = inside::demand(&writer.declared_tables(), &writer.absent_tables());
    for (parameter, of) in &header.parameters {
        let name = &parameter.variable.name;
        let value = fitted(variable(name), of, writer.scope.dialect);
        body.extend(value.map(|value| Step::assign(name.as_str(), value)));
    }
    body.extend(writer.steps.iter().cloned());
    body.push(end);
    Routine { variables: writer.declared.clone(), body, ..header.routine() }
}

/// The notes of a body: what its arguments are, which tables it was written with, and its T-SQL.
fn notes(header: &Header<'_>, writer: &BodyWriter<'_>, source: &str, settings: &Settings) -> Vec<String> {
    let (declared, absent) = (writer.declared_tables(), writer.absent_tables());
    let is_bound = !declared.is_empty() || !absent.is_empty();
    let bound = is_bound.then(|| inside::bound(settings, &declared, &absent));
    takes(header.parameters.iter().map(|(_, of)| of)).into_iter().chain(bound).chain([mark(source)]).collect()
}

/// The note with the types of its parameters: PostgreSQL stores no lengths of arguments.
fn takes<'p>(parameters: impl Iterator<Item = &'p Type>) -> Option<String> {
    let types: Vec<_> = parameters.map(Type::declared).collect();
    (!types.is_empty()).then(|| format!("takes {}", types.join(";")))
}
