//! Definitions: tables, indexes, views, rights.

mod alter;
mod blanks;
mod constraints;
mod declaring;
mod sequences;
pub(super) mod tables;

use crate::bind::binder::item::{named_twice, refuse_number};
use crate::bind::binder::title::Title;
use crate::bind::binder::variables::{NoVariables, Variables};
use crate::bind::binder::{Binder, Verb};
use crate::bind::expressions::walk;
use crate::bind::functions::next_value::refuse_next_value;
use crate::bind::query::order::refuse_order;
use crate::bind::query::select;
use crate::bind::values::column_type::collated;
use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types::{Type, SYSNAME, UNKNOWN, VARCHAR, XML};
use crate::plpgsql::{Definition, Index, Step};
use crate::postgres::{call, Scalar};
use crate::resolve::names::{self, all_folded, folded, identifier, schema_of, table, temporary_schema};
use crate::resolve::Scope;
use crate::tree::{
    AlterDatabase, AlterTable, CheckIdentity, CreateBindable, CreateIndex, CreateTable, CreateType,
    CreateView, DropIndex, DropObjects, Expression, Grant, Mode, Name, ObjectKind, ObjectName, Reseed,
    StatementKind, TableElement,
};
use crate::{lexer, long_names};
use constraints::{clustering, keys, untyped_default};
use std::iter::repeat;

/// The definition of a statement.
pub fn defined(statement: &StatementKind, scope: &Scope) -> Result<Definition, Error> {
    let no_definition = || Error::new(8623, "This statement is not understood.", 1_u32).with_severity(16);
    definition(statement, scope)?.ok_or_else(no_definition)
}

/// The base of an alias type: in SQL Server no other such type, nor sysname, rowversion (222) or xml (15226).
fn base_of_type(create: &CreateType, scope: &Scope) -> Result<Type, Error> {
    let at = create.type_.at;
    let wrong = || {
        let text = format!(
            "The base type \"{}\" is not a valid base type for the alias data type.",
            create.type_.name
        );
        Error::new(222, text, at).with_severity(16)
    };
    let base = type_names::of_name(&create.type_, 1, scope.dialect);
    if !scope.dialect.is_strict {
        return base;
    }
    match base {
        Err(error) if error.number == 2715 => Err(wrong()),
        Ok(of) if of.is_row_version() || of.name == SYSNAME.name => Err(wrong()),
        Ok(XML) => {
            Err(Error::new(15226, "Cannot create alias types from an XML datatype.", at).with_severity(16))
        }
        base => base,
    }
}

/// None for a statement that is not one of these definitions.
fn definition(statement: &StatementKind, scope: &Scope) -> Result<Option<Definition>, Error> {
    if let Some((name, missing, draft)) = of_global(statement, scope) {
        let definition = defined(&draft, scope)?.to_string();
        let parts = [folded(&name.name, name.at.line)?, definition].map(Scalar::Text);
        let parts: Vec<_> = parts.into_iter().chain(missing.map(Scalar::number)).collect();
        return Ok(Some(Definition::Call(call("tsql.define_global", parts))));
    }
    Ok(Some(match statement {
        StatementKind::CreateTable(create) => {
            let mut steps = vec![tables::create(create, scope)?];
            steps.extend(clustering(&create.elements, &create.table, true)?);
            for index in &create.indexes {
                steps.push(create_index(index, scope)?);
            }
            together(steps)
        }
        StatementKind::AlterTable { table, action } => {
            let table = in_database(table, scope)?;
            let alter = alter::alter(&table, action, scope)?;
            match &**action {
                AlterTable::Add { elements, .. } => {
                    let mut steps = demanding_indexable(elements, &table, scope)?;
                    steps.push(alter);
                    steps.extend(clustering(elements, &table, false)?);
                    together(steps)
                }
                _ => alter,
            }
        }
        StatementKind::Truncate(name) => {
            let missing = scope.dialect.unknown_table.unwrap_or(4701);
            let (procedure, target) = match name.is_global() {
                true => ("tsql.truncate_global", folded(&name.name, name.at.line)?),
                false => ("tsql.truncate_table", table(&in_database(name, scope)?)?),
            };
            Definition::Call(call(procedure, [Scalar::Text(target), Scalar::number(missing)]))
        }
        StatementKind::CreateIndex(create) => create_index(create, scope)?,
        StatementKind::DropIndexes(indexes) => drop_indexes(indexes, scope)?,
        StatementKind::Drop(drop) => match drop.kind {
            ObjectKind::Table => drop_relations("table", &drop.names, drop.if_exists)?,
            ObjectKind::View => drop_relations("view", &drop.names, drop.if_exists)?,
            ObjectKind::Sequence => drop_each("tsql.drop_sequence", None, drop)?,
            ObjectKind::Database | ObjectKind::Schema => drop_schemas(drop)?,
            ObjectKind::Type => drop_each("tsql.drop_type", None, drop)?,
            ObjectKind::Rule => drop_each("tsql.drop_bindable", Some("rule"), drop)?,
            ObjectKind::Default => drop_each("tsql.drop_bindable", Some("default"), drop)?,
            _ => return Ok(None),
        },
        StatementKind::Sequence(sequence) => sequences::defined(sequence, scope)?,
        StatementKind::CreateSchema { kind, name, collation } => {
            long_names::demand_short(&name.text, &kind.to_string(), name.at)?;
            let collation = collation.as_ref().map(|collation| of_database(collation, scope)).transpose()?;
            let parts = [kind.to_string(), name.text.clone()].map(Scalar::Text).into_iter().chain(collation);
            Definition::Call(call("tsql.create_schema", parts.collect::<Vec<_>>()))
        }
        StatementKind::CreateType(create) => {
            let declared = base_of_type(create, scope)?.declared();
            let nullable = if create.nullable { "null" } else { "not null" };
            create_type(&create.name, format!("{declared} {nullable}"))?
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
            create_type(&create.name, create.declared.clone())?
        }
        StatementKind::Grant(grant) => self::grant(grant)?,
        StatementKind::AlterDatabase(alter) => alter_database(alter, scope)?,
        StatementKind::CheckIdentity(check) => check_identity(check, scope)?,
        _ => return Ok(None),
    }))
}

/// For the definition of a global temporary table: its name, the number of the error if it is missing, and the definition
/// of its draft.
fn of_global<'s>(
    statement: &'s StatementKind,
    scope: &Scope,
) -> Option<(&'s ObjectName, Option<i32>, StatementKind)> {
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
    Some((name, missing, draft))
}

/// The checks of the types of existing columns that become keys.
fn demanding_indexable(
    elements: &[TableElement],
    of: &ObjectName,
    scope: &Scope,
) -> Result<Vec<Definition>, Error> {
    let one = |columns| {
        let columns = Scalar::texts(all_folded(columns)?);
        Ok(Definition::Call(call("tsql.demand_indexable", [Scalar::Text(table(of)?), columns])))
    };
    keys(elements).filter(|_| scope.dialect.is_strict).map(|(_, columns, _)| one(columns)).collect()
}

/// Several definitions as one.
fn together(mut steps: Vec<Definition>) -> Definition {
    match steps.len() {
        1 => steps.remove(0),
        _ => Definition::Do(steps.into_iter().map(Step::Define).collect()),
    }
}

/// Schema and name as arguments, the name as written.
fn named(name: &ObjectName) -> Result<[Scalar; 2], Error> {
    let line = name.at.line;
    long_names::demand_short(&name.name, "type, rule, default or sequence", line)?;
    Ok([folded(schema_of(name), line)?, name.name.clone()].map(Scalar::Text))
}

fn create_type(name: &ObjectName, declared: String) -> Result<Definition, Error> {
    let [schema, name] = named(name)?;
    Ok(Definition::Call(call("tsql.create_type", [schema, name, Scalar::Text(declared)])))
}

/// Calls a procedure with the arguments kind, if there is one, schema, name and whether it may be missing.
fn drop_each(
    procedure: &'static str,
    kind: Option<&'static str>,
    drop: &DropObjects,
) -> Result<Definition, Error> {
    let one = |name: &ObjectName| {
        let parts = kind.map(Scalar::text).into_iter().chain(named(name)?);
        let parts: Vec<_> = parts.chain([Scalar::Boolean(drop.if_exists)]).collect();
        Ok(Step::Define(Definition::Call(call(procedure, parts))))
    };
    Ok(Definition::Do(drop.names.iter().map(one).collect::<Result<_, Error>>()?))
}

/// Drops databases or schemas, whose names have no schema.
fn drop_schemas(drop: &DropObjects) -> Result<Definition, Error> {
    let one = |name: &ObjectName| {
        folded(&name.name, name.at.line)?;
        let [kind, name] = [drop.kind.to_string(), name.name.clone()].map(Scalar::Text);
        let drop = call("tsql.drop_schema", [kind, name, Scalar::Boolean(drop.if_exists)]);
        Ok(Step::Define(Definition::Call(drop)))
    };
    Ok(Definition::Do(drop.names.iter().map(one).collect::<Result<_, Error>>()?))
}

/// Writes the variable of a rule as the parameter of its function.
struct RuledValue;

impl Variables for RuledValue {
    fn write(&mut self, _name: &str, _line: u32) -> Result<Scalar, Error> {
        Ok(Scalar::column("\"@value\""))
    }
}

/// A rule or a default. `source`: its T-SQL, which is stored with it.
pub fn create_bindable(create: &CreateBindable, source: &str, scope: &Scope) -> Result<Definition, Error> {
    let body = match &create.variable {
        Some(variable) => {
            let variables = [(variable.clone(), UNKNOWN)].into();
            let scope = Scope { definition: true, variables, ..scope.clone() };
            crate::bind::condition(&create.value, &scope, &mut RuledValue)?
        }
        None => untyped_default(&create.value, scope)?,
    };
    let [schema, name] = named(&create.name)?;
    let [kind, body] = [create.kind.to_string(), body.to_string()].map(Scalar::Text);
    Ok(Definition::Call(call("tsql.create_bindable", [kind, schema, name, body, Scalar::text(source)])))
}

/// The name with its database: a table to change is not searched for in other databases, unlike one to read.
fn in_database(name: &ObjectName, scope: &Scope) -> Result<ObjectName, Error> {
    if name.is_temporary() || !schema_of(name).is_empty() || scope.database.is_empty() {
        return Ok(name.clone());
    }
    Ok(ObjectName { owner: String::new(), database: scope.database.clone(), ..name.clone() })
}

/// Drops tables or views of the current or the named databases only.
fn drop_relations(kind: &str, names: &[ObjectName], if_exists: bool) -> Result<Definition, Error> {
    let one = |name: &ObjectName| {
        // refuses a name that a table cannot have
        table(name)?;
        let line = name.at.line;
        let schema = match schema_of(name) {
            _ if name.is_temporary() => Scalar::text(temporary_schema(name)),
            "" => call("current_schema", []),
            schema => Scalar::Text(folded(schema, line)?),
        };
        let own = Scalar::Text(folded(&name.name, line)?);
        let parts = [Scalar::text(kind), schema, own, Scalar::Boolean(if_exists)];
        Ok(Step::Perform(call("tsql.drop_relation", parts)))
    };
    Ok(Definition::Do(names.iter().map(one).collect::<Result<_, Error>>()?))
}

/// Two tables may have indexes of the same name in T-SQL; in PostgreSQL index names are unique per schema.
fn index_name(name: &Name, of: &ObjectName) -> String {
    names::stored(&format!("{}.{}", names::stored(&of.name), name.text))
}

fn create_index(create: &CreateIndex, scope: &Scope) -> Result<Definition, Error> {
    let name = index_name(&create.name, &create.table);
    let key = |(column, descending): &(Name, bool)| Ok((folded(&column.text, column.at.line)?, *descending));
    let keys = create.columns.iter().map(key).collect::<Result<Vec<_>, Error>>()?;
    let target = table(&in_database(&create.table, scope)?)?;
    let has_or = |condition| walk::any(condition, &mut |one| matches!(one, Expression::Or(_)));
    if scope.dialect.is_strict && create.condition.as_ref().is_some_and(has_or) {
        let text = format!(
            "Incorrect WHERE clause for filtered index '{}' on table '{}'.",
            create.name.text, create.table.name
        );
        return Err(Error::new(10735, text, create.name.at));
    }
    let condition = create.condition.as_ref().map(|condition| {
        let mut none = NoVariables("an index names no variables");
        crate::bind::condition(condition, &Scope { definition: true, ..scope.clone() }, &mut none)
    });
    let index = Index {
        name: name.clone(),
        table: target.clone(),
        is_unique: create.unique,
        included: all_folded(&create.include)?,
        condition: condition.transpose()?,
        keys,
    };
    let columns = index.keys.iter().map(|(column, _)| column).chain(&index.included);
    let columns = Scalar::texts(columns.map(String::as_str));
    let parts = [
        Scalar::Text(Definition::Index(index).to_string()),
        Scalar::Text(target),
        Scalar::Text(names::quoted(&name)),
        columns,
        Scalar::number(scope.dialect.unknown_table.unwrap_or(1088)),
        Scalar::text(create.name.text.as_str()),
    ];
    // ASE's text and image are not refused
    let number = scope.dialect.is_strict.then(|| Scalar::number(create.columns.len()));
    let parts: Vec<_> = parts.into_iter().chain(number).collect();
    let mut steps = vec![Definition::Call(call("tsql.create_index", parts))];
    if create.clustered {
        let index = Scalar::Text(full_name(&create.name, &create.table, scope)?);
        steps.push(Definition::Call(call("tsql.cluster", [index, Scalar::Boolean(true)])));
    }
    Ok(together(steps))
}

/// The name of an index with its schema, as SQL writes it.
fn full_name(name: &Name, of: &ObjectName, scope: &Scope) -> Result<String, Error> {
    Ok(format!("{}{}", beside(&in_database(of, scope)?)?, names::quoted(&index_name(name, of))))
}

fn drop_indexes(indexes: &[DropIndex], scope: &Scope) -> Result<Definition, Error> {
    let names = indexes.iter().map(|index| full_name(&index.name, &index.table, scope));
    let names = names.collect::<Result<_, Error>>()?;
    let drop = Definition::DropIndexes { names, if_exists: indexes.iter().all(|index| index.if_exists) };
    let demand = |index: &DropIndex| {
        let target = Scalar::Text(table(&in_database(&index.table, scope)?)?);
        let name = Scalar::Text(folded(&index.name.text, index.name.at.line)?);
        Ok(Definition::Call(call("tsql.demand_no_key", [target, name, Scalar::text(&index.table.name)])))
    };
    match scope.dialect.is_strict {
        true => {
            let steps = indexes.iter().map(demand).chain([Ok(drop)]);
            Ok(together(steps.collect::<Result<_, Error>>()?))
        }
        false => Ok(drop),
    }
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

/// A view. `source`: its T-SQL, which is stored with it.
pub fn create_view(create: &CreateView, source: &str, scope: &Scope) -> Result<Definition, Error> {
    if let Some(at) = lexer::temporary_name(source)? {
        let text =
            "Views or functions are not allowed on temporary tables. Table names that begin with '#' denote \
                    temporary tables.";
        return Err(Error::new(4508, text, at).with_severity(16));
    }
    let mut none = NoVariables("a view names no variables");
    let mut binder = Binder::new(scope, &mut none);
    refuse_order(&create.query, scope.dialect)?;
    let (kind, query) = select::outermost(&mut binder, &create.query)?;
    if kind != Verb::Select || !binder.result.assigns.is_empty() {
        return Err(Error::refused("create view", "a view is a select", create.name.at));
    }
    refuse_next_value(&binder, 0, 11719, create.name.at.line)?;
    let names = binder.result.columns.iter().flatten();
    if let Some(index) = names.into_iter().position(|name| name.text.is_empty() && create.columns.is_empty())
    {
        let text = format!(
            "Create View or Function failed because no column name was specified for column {}.",
            index + 1
        );
        return Err(Error::new(4511, text, create.name.at).with_severity(16));
    }
    if let (Some(titles), false) = (&binder.result.columns, create.columns.is_empty()) {
        refuse_number(titles.len(), create.columns.len(), &create.name.name, create.name.at)?;
    }
    refuse_twice(create, binder.result.columns.iter().flatten())?;
    let whole = table(&create.name)?;
    let titles = binder.result.columns.as_deref().unwrap_or_default();
    let types = titles.iter().map(|title| title.result_type.map(|known| known.of));
    let given: Vec<_> = match &create.columns[..] {
        [] => titles.iter().map(given).zip(types).collect(),
        names => names.iter().map(|name| name.text.clone()).zip(types.chain(repeat(None))).collect(),
    };
    let view = Definition::View {
        replaces: create.mode != Mode::Create,
        name: whole.clone(),
        columns: all_folded(&create.columns)?,
        query: query.into(),
        checks: create.check_option,
    };
    let declared = declaring::declaring_view(&view, &whole, &given, create.name.at.line)?;
    let parts = [Scalar::text(create.mode.action())].into_iter().chain(declared);
    let parts: Vec<_> = parts.chain([Scalar::text(source)]).collect();
    Ok(Definition::Call(call("tsql.create_view", parts)))
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

fn grant(grant: &Grant) -> Result<Definition, Error> {
    let parts = [
        Scalar::text(if grant.revoke { "revoke" } else { "grant" }),
        Scalar::texts(&grant.rights),
        Scalar::Text(table(&grant.object)?),
        Scalar::texts(all_folded(&grant.roles)?),
    ];
    Ok(Definition::Call(call("tsql.change_rights", parts)))
}

fn check_identity(check: &CheckIdentity, scope: &Scope) -> Result<Definition, Error> {
    if !scope.dialect.has_checkident {
        return Err(Error::refused("dbcc checkident", "ASE has none", check.at));
    }
    let (raises, value) = match check.reseed {
        Reseed::No => (false, Scalar::Null),
        Reseed::Raise => (true, Scalar::Null),
        Reseed::To(value) => (false, Scalar::number(value)),
    };
    let [raises, silent] = [raises, check.silent].map(Scalar::Boolean);
    let parts = [Scalar::text(&check.table), raises, value, silent, Scalar::number(check.at.line)];
    Ok(Definition::Call(call("sys.check_identity", parts)))
}

/// The name of a database's collation, by which texts can be ordered.
fn of_database(collation: &Name, scope: &Scope) -> Result<Scalar, Error> {
    collated(VARCHAR, Some(collation), scope)?;
    if collation.is("database_default") {
        return Err(Error::new(448, "Invalid collation 'database_default'.", collation.at).with_severity(16));
    }
    Ok(Scalar::text(collation.text.as_str()))
}

fn alter_database(alter: &AlterDatabase, scope: &Scope) -> Result<Definition, Error> {
    let name = match &alter.name {
        Some(name) => Scalar::Text(folded(&name.text, name.at.line)?),
        None => Scalar::Null,
    };
    Ok(Definition::Call(match &alter.collation {
        Some(collation) => call("tsql.set_collation", [name, of_database(collation, scope)?]),
        None => {
            let options = alter.options.join(", ").to_uppercase();
            call("tsql.alter_database", [name, Scalar::Text(options)])
        }
    }))
}
