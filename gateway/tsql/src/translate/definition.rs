//! Definitions: tables, indexes, views, rights.

use super::constraints::carried_constant;
use super::item::{named_twice, refuse_number};
use super::order::refuse_order;
use super::title::Title;
use super::translation::{Translation, Verb};
use super::variables::{NoVariables, Variables};
use super::{alter, collated, declaring, sequence, tables};
use crate::error::Error;
use crate::facts::types::{self, VARCHAR};
use crate::lexer;
use crate::long_names;
use crate::postgres::Scalar;
use crate::resolve::names::{
    self, array, folded, identifier, in_parentheses, listed, literal, schema_of, table, temporary_schema,
};
use crate::resolve::Scope;
use crate::tree::{
    AlterDatabase, CheckIdentity, CreateBindable, CreateIndex, CreateTable, CreateView, DropIndex,
    DropObjects, Grant, Mode, Name, ObjectKind, ObjectName, Reseed, StatementKind,
};
use std::iter::repeat;

/// The SQL of a definition.
pub fn defined(statement: &StatementKind, scope: &Scope) -> Result<String, Error> {
    let no_definition = || Error::new(8623, "This statement is not understood.", 1_u32).with_severity(16);
    definition(statement, scope)?.ok_or_else(no_definition)
}

/// None for a statement that is not one of these definitions.
fn definition(statement: &StatementKind, scope: &Scope) -> Result<Option<String>, Error> {
    if let Some((name, missing, draft)) = of_global(statement, scope) {
        let definition = defined(&draft, scope)?;
        let [name, definition] = [&folded(&name.name, name.at.line)?, &definition].map(|part| literal(part));
        return Ok(Some(format!("call tsql.define_global({name}, {definition}{missing})")));
    }
    Ok(Some(match statement {
        StatementKind::CreateTable(create) => {
            let table = tables::create(create, scope)?;
            let indexes = create.indexes.iter().map(|index| create_index(index, scope));
            with_indexes(table, indexes.collect::<Result<Vec<_>, Error>>()?)
        }
        StatementKind::AlterTable { table, action } => {
            alter::alter(&in_database(table, scope)?, action, scope)?
        }
        StatementKind::Truncate(name) => {
            let missing = scope.dialect.unknown_table.unwrap_or(4701);
            match name.is_global() {
                true => {
                    let own = literal(&folded(&name.name, name.at.line)?);
                    format!("call tsql.truncate_global({own}, {missing})")
                }
                false => {
                    let target = literal(&table(&in_database(name, scope)?)?);
                    format!("call tsql.truncate_table({target}, {missing})")
                }
            }
        }
        StatementKind::CreateIndex(create) => create_index(create, scope)?,
        StatementKind::DropIndexes(indexes) => drop_indexes(indexes, scope)?,
        StatementKind::Drop(drop) => match drop.kind {
            ObjectKind::Table => drop_relations("table", &drop.names, drop.if_exists)?,
            ObjectKind::View => drop_relations("view", &drop.names, drop.if_exists)?,
            ObjectKind::Sequence => drop_each("drop_sequence(", drop)?,
            ObjectKind::Database | ObjectKind::Schema => drop_schemas(drop)?,
            ObjectKind::Type => drop_each("drop_type(", drop)?,
            ObjectKind::Rule => drop_each("drop_bindable('rule', ", drop)?,
            ObjectKind::Default => drop_each("drop_bindable('default', ", drop)?,
            _ => return Ok(None),
        },
        StatementKind::Sequence(sequence) => sequence::defined(sequence, scope)?,
        StatementKind::CreateSchema { kind, name, collation } => {
            long_names::demand_short(&name.text, &kind.to_string(), name.at)?;
            let collation = match collation {
                Some(collation) => format!(", {}", of_database(collation, scope)?),
                None => String::new(),
            };
            format!("call tsql.create_schema('{kind}', {}{collation})", literal(&name.text))
        }
        StatementKind::CreateType(create) => {
            let declared = types::of_name(&create.type_, 1, scope.dialect)?.declared();
            let nullable = if create.nullable { "null" } else { "not null" };
            let declared = literal(&format!("{declared} {nullable}"));
            format!("call tsql.create_type({}, {declared})", named(&create.name)?)
        }
        StatementKind::CreateTableType(create) => {
            // refuses names that a table cannot have
            let name = ObjectName {
                name: format!("#{}", create.name.name),
                at: create.name.at,
                ..ObjectName::default()
            };
            let elements = create.elements.clone();
            tables::create(&CreateTable { table: name, elements, indexes: Vec::new() }, scope)?;
            format!("call tsql.create_type({}, {})", named(&create.name)?, literal(&create.declared))
        }
        StatementKind::Grant(grant) => self::grant(grant)?,
        StatementKind::AlterDatabase(alter) => alter_database(alter, scope)?,
        StatementKind::CheckIdentity(check) => check_identity(check, scope)?,
        _ => return Ok(None),
    }))
}

/// For the definition of a global temporary table: its name, the error if it is missing, as an argument, and the
/// definition of its draft.
fn of_global<'s>(
    statement: &'s StatementKind,
    scope: &Scope,
) -> Option<(&'s ObjectName, String, StatementKind)> {
    let (name, missing) = match statement {
        StatementKind::CreateTable(create) => (&create.table, None),
        StatementKind::AlterTable { table, .. } => (table, Some(4902)),
        StatementKind::CreateIndex(create) => (&create.table, Some(1088)),
        StatementKind::DropIndexes(indexes) => (&indexes.first()?.table, Some(3701)),
        _ => return None,
    };
    if !name.is_global() {
        return None;
    }
    let mut draft = statement.clone();
    match &mut draft {
        StatementKind::CreateTable(create) => {
            create.table.is_draft = true;
            create.indexes.iter_mut().for_each(|index| index.table.is_draft = true);
        }
        StatementKind::AlterTable { table, .. } => table.is_draft = true,
        StatementKind::CreateIndex(create) => create.table.is_draft = true,
        StatementKind::DropIndexes(indexes) => {
            indexes
                .iter_mut()
                .filter(|index| index.table == *name)
                .for_each(|index| index.table.is_draft = true);
        }
        _ => {}
    }
    let missing = missing.map(|number| scope.dialect.unknown_table.unwrap_or(number));
    Some((name, missing.map_or_else(String::new, |number| format!(", {number}")), draft))
}

/// Combines the statements of a table and its indexes.
fn with_indexes(table: String, indexes: Vec<String>) -> String {
    if indexes.is_empty() {
        return table;
    }
    in_one(&format!("{table}; {};", indexes.join("; ")))
}

/// Combines several statements in one of PL/pgSQL.
fn in_one(statements: &str) -> String {
    format!("do {}", literal(&format!("begin {statements} end")))
}

/// Schema and name as arguments, the name as written.
fn named(name: &ObjectName) -> Result<String, Error> {
    let line = name.at.line;
    long_names::demand_short(&name.name, "type, rule, default or sequence", line)?;
    Ok(format!("{}, {}", literal(&folded(schema_of(name), line)?), literal(&name.name)))
}

/// `call` begins the call of a procedure of schema tsql with the further arguments schema, name and whether it may be
/// missing.
fn drop_each(call: &str, drop: &DropObjects) -> Result<String, Error> {
    let one = |name: &ObjectName| Ok(format!("call tsql.{call}{}, {});", named(name)?, drop.if_exists));
    let calls = drop.names.iter().map(one).collect::<Result<Vec<_>, Error>>()?;
    Ok(in_one(&calls.join(" ")))
}

/// Drops databases or schemas, whose names have no schema.
fn drop_schemas(drop: &DropObjects) -> Result<String, Error> {
    let one = |name: &ObjectName| {
        folded(&name.name, name.at.line)?;
        Ok(format!("call tsql.drop_schema('{}', {}, {});", drop.kind, literal(&name.name), drop.if_exists))
    };
    let calls = drop.names.iter().map(one).collect::<Result<Vec<_>, Error>>()?;
    Ok(in_one(&calls.join(" ")))
}

/// Writes the variable of a rule as the parameter of its function.
struct RuledValue;

impl Variables for RuledValue {
    fn write(&mut self, _name: &str, _line: u32) -> Result<Scalar, Error> {
        Ok(Scalar::column("\"@value\""))
    }
}

/// The SQL of a rule or a default. `source`: its T-SQL, which is stored with it.
pub fn create_bindable(create: &CreateBindable, source: &str, scope: &Scope) -> Result<String, Error> {
    let body = match &create.variable {
        Some(variable) => {
            let variables = [(variable.clone(), None)].into();
            let scope = Scope { definition: true, variables, ..scope.clone() };
            super::condition(&create.value, &scope, &mut RuledValue)?
        }
        None => carried_constant(&create.value, scope)?,
    };
    let (name, body, source) = (named(&create.name)?, literal(&body.to_string()), literal(source));
    Ok(format!("call tsql.create_bindable('{}', {name}, {body}, {source})", create.kind))
}

/// The name with its database: a table to change is not searched for in other databases, unlike one to read.
fn in_database(name: &ObjectName, scope: &Scope) -> Result<ObjectName, Error> {
    if name.is_temporary() || !schema_of(name).is_empty() || scope.database.is_empty() {
        return Ok(name.clone());
    }
    Ok(ObjectName { owner: String::new(), database: scope.database.clone(), ..name.clone() })
}

/// Drops tables or views of the current or the named databases only.
fn drop_relations(kind: &str, names: &[ObjectName], if_exists: bool) -> Result<String, Error> {
    let mut drops = Vec::with_capacity(names.len());
    for name in names {
        // refuses a name that a table cannot have
        table(name)?;
        let line = name.at.line;
        let place = match schema_of(name) {
            _ if name.is_temporary() => literal(temporary_schema(name)),
            "" => "current_schema()".to_owned(),
            schema => literal(&folded(schema, line)?),
        };
        let own = literal(&folded(&name.name, line)?);
        drops.push(format!("perform tsql.drop_relation('{kind}', {place}, {own}, {if_exists});"));
    }
    Ok(in_one(&drops.join(" ")))
}

/// Two tables may have indexes of the same name in T-SQL; in PostgreSQL index names are unique per schema.
fn index_name(name: &Name, of: &ObjectName) -> String {
    names::quoted(&names::stored(&format!("{}.{}", names::stored(&of.name), name.text)))
}

fn create_index(create: &CreateIndex, scope: &Scope) -> Result<String, Error> {
    let index = index_name(&create.name, &create.table);
    let mut columns = Vec::with_capacity(create.columns.len());
    for (column, descending) in &create.columns {
        let order = if *descending { "desc nulls last" } else { "nulls first" };
        columns.push(format!("{} {order}", names::name(column)?));
    }
    let target = table(&in_database(&create.table, scope)?)?;
    let mut sql = format!(
        "create {}index {index} on {target} ({})",
        if create.unique { "unique " } else { "" },
        columns.join(", ")
    );
    if !create.include.is_empty() {
        sql.push_str(&format!(" include ({})", listed(&create.include)?));
    }
    if create.unique {
        // a unique index of T-SQL allows one null
        sql.push_str(" nulls not distinct");
    }
    if let Some(condition) = &create.condition {
        let mut none = NoVariables("an index names no variables");
        let scope = Scope { definition: true, ..scope.clone() };
        sql.push_str(&format!(" where {}", super::condition(condition, &scope, &mut none)?));
    }
    let named = create.columns.iter().map(|(column, _)| column).chain(&create.include);
    let named = named.map(|name| folded(&name.text, name.at.line)).collect::<Result<Vec<_>, _>>()?;
    Ok(format!(
        "call tsql.create_index({}, {}, {}, {}, {}, {})",
        literal(&sql),
        literal(&target),
        literal(&index),
        array(named.iter().map(|name| literal(name)), "text"),
        scope.dialect.unknown_table.unwrap_or(1088),
        literal(&create.name.text)
    ))
}

fn drop_indexes(indexes: &[DropIndex], scope: &Scope) -> Result<String, Error> {
    let mut names = Vec::with_capacity(indexes.len());
    for index in indexes {
        let own = index_name(&index.name, &index.table);
        names.push(format!("{}{own}", beside(&in_database(&index.table, scope)?)?));
    }
    let may_miss = if indexes.iter().all(|index| index.if_exists) { "if exists " } else { "" };
    Ok(format!("drop index {may_miss}{}", names.join(", ")))
}

/// The schema of objects next to a table, with a period, or nothing.
fn beside(of: &ObjectName) -> Result<String, Error> {
    if of.is_temporary() {
        return Ok(format!("{}.", temporary_schema(of)));
    }
    Ok(match schema_of(of) {
        "" => String::new(),
        schema => format!("{}.", identifier(schema, of.at.line)?),
    })
}

/// The SQL of a view. `source`: its T-SQL, which is stored with it.
pub fn create_view(create: &CreateView, source: &str, scope: &Scope) -> Result<String, Error> {
    if let Some(at) = lexer::temporary_name(source)? {
        let text =
            "Views or functions are not allowed on temporary tables. Table names that begin with '#' denote \
                    temporary tables.";
        return Err(Error::new(4508, text, at).with_severity(16));
    }
    let mut none = NoVariables("a view names no variables");
    let mut translation = Translation::new(scope, &mut none);
    refuse_order(&create.query, scope.dialect)?;
    let (kind, sql) = translation.outermost(&create.query)?;
    if kind != Verb::Select || !translation.result.assigns.is_empty() {
        return Err(Error::refused("create view", "a view is a select", create.name.at));
    }
    let names = translation.result.columns.iter().flatten();
    if let Some(place) = names.into_iter().position(|name| name.text.is_empty() && create.columns.is_empty())
    {
        let text = format!(
            "Create View or Function failed because no column name was specified for column {}.",
            place + 1
        );
        return Err(Error::new(4511, text, create.name.at).with_severity(16));
    }
    if let (Some(titles), false) = (&translation.result.columns, create.columns.is_empty()) {
        refuse_number(titles.len(), create.columns.len(), &create.name.name, create.name.at)?;
    }
    refuse_twice(create, translation.result.columns.iter().flatten())?;
    let verb = match create.mode {
        Mode::Create => "create view",
        Mode::Alter | Mode::CreateOrAlter => "create or replace view",
    };
    let columns = in_parentheses(&create.columns)?;
    let check = if create.check_option { " with check option" } else { "" };
    let whole = table(&create.name)?;
    let titles = translation.result.columns.as_deref().unwrap_or_default();
    let types = titles.iter().map(|title| title.result_type.map(|known| known.of));
    let given: Vec<_> = match &create.columns[..] {
        [] => titles.iter().map(given).zip(types).collect(),
        names => names.iter().map(|name| name.text.clone()).zip(types.chain(repeat(None))).collect(),
    };
    let sql = format!("{verb} {whole}{columns} as {sql}{check}");
    let arguments = declaring::declaring_view(sql, &whole, &given, create.name.at.line)?;
    let action = create.mode.action();
    Ok(format!("call tsql.create_view('{action}', {arguments}, {})", literal(source)))
}

/// 4506: the names of a view's columns must be distinct.
fn refuse_twice<'t>(create: &CreateView, titles: impl Iterator<Item = &'t Title>) -> Result<(), Error> {
    let twice = match create.columns.as_slice() {
        [] => named_twice(titles.map(|title| title.text.as_str())),
        columns => named_twice(columns.iter().map(|name| name.text.as_str())),
    };
    let Some(twice) = twice else { return Ok(()) };
    let text = format!(
        "Column names in each view or function must be unique. Column name '{twice}' in view or function '{}' is \
         specified more than once.",
        create.name.name
    );
    Err(Error::new(4506, text, create.name.at).with_severity(16))
}

/// The name of a view's column if the view specifies it.
fn given(title: &Title) -> String {
    if title.is_own {
        String::new()
    } else {
        title.text.clone()
    }
}

fn grant(grant: &Grant) -> Result<String, Error> {
    let mut roles = Vec::with_capacity(grant.roles.len());
    for role in &grant.roles {
        roles.push(literal(&folded(&role.text, role.at.line)?));
    }
    Ok(format!(
        "call tsql.change_rights({}, {}, {}, {})",
        literal(if grant.revoke { "revoke" } else { "grant" }),
        array(grant.rights.iter().map(|right| literal(right)), "text"),
        literal(&table(&grant.object)?),
        array(roles, "text")
    ))
}

fn check_identity(check: &CheckIdentity, scope: &Scope) -> Result<String, Error> {
    if !scope.dialect.has_checkident {
        return Err(Error::refused("dbcc checkident", "ASE has none", check.at));
    }
    let (raises, value) = match check.reseed {
        Reseed::No => (false, String::from("null")),
        Reseed::Raise => (true, String::from("null")),
        Reseed::To(value) => (false, value.to_string()),
    };
    let table = literal(&check.table);
    Ok(format!("call sys.check_identity({table}, {raises}, {value}, {}, {})", check.silent, check.at.line))
}

/// The name of a database's collation, by which texts can be ordered.
fn of_database(collation: &Name, scope: &Scope) -> Result<String, Error> {
    collated(VARCHAR, Some(collation), scope)?;
    if collation.is("database_default") {
        return Err(Error::new(448, "Invalid collation 'database_default'.", collation.at).with_severity(16));
    }
    Ok(literal(&collation.text))
}

fn alter_database(alter: &AlterDatabase, scope: &Scope) -> Result<String, Error> {
    let name = match &alter.name {
        Some(name) => literal(&folded(&name.text, name.at.line)?),
        None => String::from("null"),
    };
    if let Some(collation) = &alter.collation {
        return Ok(format!("call tsql.set_collation({name}, {})", of_database(collation, scope)?));
    }
    Ok(format!("call tsql.alter_database({name}, {})", literal(&alter.options.join(", ").to_uppercase())))
}
