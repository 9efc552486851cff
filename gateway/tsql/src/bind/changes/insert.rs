//! Inserts.

use super::output;
use super::targets::{Filled, Targets};
use crate::bind::binder::changed_rows::ChangedRows;
use crate::bind::binder::item::{has_star, numbered, Stands, Written};
use crate::bind::binder::named::{flat, named_variable};
use crate::bind::binder::variables::{NoVariables, NO_VARIABLES};
use crate::bind::binder::Binder;
use crate::bind::query::{common_tables, locks, rows, select, sources, top};
use crate::bind::structured::json::not_allowed;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::types::Type;
use crate::postgres::{self, call, Body, Change, ChangeKind, Filling, Listed, Scalar, Select, Source};
use crate::resolve::names::{self, all_folded, table};
use crate::resolve::Scope;
use crate::schema::Table;
use crate::tree::{
    Expression, Insert, InsertSource, Name, ObjectName, Query, QueryBody, TableSource, Target,
};
use crate::Dialect;
use std::sync::Arc;

/// For rows of values, whether the last of them may be omitted: a single row always fits the limit, and DEFAULT is not
/// a value of a query.
fn may_be_cut(rows: &[Vec<Expression>]) -> bool {
    let is_default = |value: &Expression| matches!(value, Expression::Default(_));
    rows.len() > 1 && !rows.iter().flatten().any(is_default)
}

/// The name of the rows of a query.
const SOURCE: &str = "\"source\"";

pub fn insert(binder: &mut Binder<'_>, insert: &Insert) -> Result<Change, Error> {
    let target = target(binder, &insert.target)?;
    let line = target.at.line;
    if insert.locks_table {
        locks::lock_table(binder, &target)?;
    }
    let into = sources::table(binder, &target)?;
    let max_recursion = match &insert.source {
        InsertSource::Query(query) => query.max_recursion,
        _ => None,
    };
    let with = common_tables::with(binder, &insert.with, max_recursion)?;
    let only_defaults = insert.source == InsertSource::DefaultValues && insert.columns.is_empty();
    let targets = match only_defaults {
        true => Targets::unknown(&into),
        false => inserted(binder, &into, &insert.columns)?,
    };
    demand_identity(binder, insert, &targets, line)?;
    refuse_defaults(binder, insert, &targets, line)?;
    let top = match &insert.top {
        None => None,
        Some(top) if top.percent || top.with_ties => {
            return Err(Error::refused("insert top … percent", "put the top into the select", top.at));
        }
        Some(top) => Some(top::changed_at_most(binder, top)?),
    };
    let rows_at_most = match &insert.source {
        InsertSource::Values(rows) if top.is_none() && !may_be_cut(rows) => {
            binder.result.limited = (binder.scope.limits_rows && rows.len() == 1).then(|| into.clone());
            None
        }
        InsertSource::DefaultValues if top.is_none() => {
            binder.result.limited = binder.scope.limits_rows.then(|| into.clone());
            None
        }
        _ => top::rows_within(binder, top, &into, line)?,
    };
    let rows = match &insert.source {
        InsertSource::DefaultValues if only_defaults => None,
        InsertSource::DefaultValues => {
            Some(Body::Values(vec![vec![Scalar::Default; insert.columns.len()]]).into())
        }
        InsertSource::Values(rows) => {
            let values = values_of(binder, rows, &targets, line)?;
            Some(match rows_at_most {
                None => values,
                limit => {
                    let all = [Listed::from(Scalar::Star)];
                    postgres::Query::of(all, values.named(SOURCE, Vec::new())).limited(limit)
                }
            })
        }
        InsertSource::Query(query) => {
            if query.for_json.is_some() {
                return Err(not_allowed("INSERT", query.at));
            }
            Some(rows_from(binder, query, &targets, line)?.limited(rows_at_most))
        }
        InsertSource::Execute(execute) => return Err(refused_execute(execute.at.line)),
        InsertSource::ExecuteText(execute) => return Err(refused_execute(execute.at.line)),
    };
    let new = names::qualifier(&target)?;
    binder.result.into = Some(into.clone());
    let changed = ChangedRows { table: into.clone(), inserted: Some(new), ..ChangedRows::default() };
    let with_identity = binder.scope.identity_insert.as_ref() == Some(&into) && !insert.columns.is_empty();
    let filling = Filling { columns: targets.names.clone(), with_identity };
    let change = Change { with, ..ChangeKind::Insert { into, filling, rows }.into() };
    output::with_output(binder, change, insert.output.as_ref(), &target, changed)
}

/// The table filled by `insert … execute`.
pub fn filled(binder: &mut Binder<'_>, insert: &Insert) -> Result<Filled, Error> {
    let target = target(binder, &insert.target)?;
    let into = table(&target)?;
    if insert.locks_table {
        let why = "the procedure runs before it";
        return Err(Error::refused("with (holdlock) of insert … execute", why, target.at));
    }
    if let Some(with) = insert.with.first() {
        return Err(Error::refused("with … insert … execute", "the procedure does not see it", with.name.at));
    }
    let with_identity = binder.scope.identity_insert.as_ref() == Some(&into) && !insert.columns.is_empty();
    Ok(Filled { table: into, columns: listed(&insert.columns)?, with_identity })
}

/// The table that a statement changes.
pub fn target(binder: &Binder<'_>, target: &Target) -> Result<ObjectName, Error> {
    match target {
        Target::Table(name) => Ok(name.clone()),
        Target::Variable(variable) if binder.scope.given_tables.contains(&variable.name) => {
            let text = format!(
                "The table-valued parameter \"{}\" is READONLY and cannot be modified.",
                variable.name
            );
            Err(Error::new(10700, text, variable.at).with_severity(16))
        }
        Target::Variable(variable) => named_variable(binder, variable),
    }
}

/// The columns that an insert fills: those of its list, or all that take values.
pub fn inserted<'t>(binder: &mut Binder<'_>, into: &'t str, columns: &[Name]) -> Result<Targets<'t>, Error> {
    let declared = binder.scope.table(into);
    let mut targets = Targets { table: into, names: listed(columns)?, declared, is_listed: true };
    for name in columns {
        targets.demand_column(&name.text, name.at)?;
    }
    if targets.names.is_none() {
        targets.is_listed = false;
        binder.variables.note_use(into, None);
        let filled = targets.declared.iter().flat_map(|declared| declared.filled());
        let filled: Vec<String> = filled.map(|column| column.name.clone()).collect();
        let is_all = |declared: &Arc<Table>| declared.columns().len() == filled.len();
        targets.names = targets.declared.as_ref().is_some_and(|declared| !is_all(declared)).then_some(filled);
    }
    Ok(targets)
}

/// 545 and 339: while IDENTITY_INSERT is ON for a table, each row has a value for its identity column.
fn demand_identity(binder: &Binder<'_>, insert: &Insert, targets: &Targets, line: u32) -> Result<(), Error> {
    let declared = targets.declared.as_ref().filter(|_| {
        binder.scope.identity_insert.as_deref() == Some(targets.table) && !insert.columns.is_empty()
    });
    let identity = declared.and_then(|table| table.columns().iter().find(|column| column.is_identity));
    let (Some(identity), Some(names)) = (identity, &targets.names) else { return Ok(()) };
    let Some(index) = names.iter().position(|name| *name == identity.name) else {
        let text = format!(
            "Explicit value must be specified for identity column in table '{}' when IDENTITY_INSERT is set to ON.",
            names::own_name(targets.table)
        );
        return Err(Error::new(545, text, line).with_severity(16));
    };
    match has_default(insert, index) {
        true => Err(no_identity(line)),
        false => Ok(()),
    }
}

/// 339 and 271: DEFAULT is no value for a listed identity or computed column.
fn refuse_defaults(binder: &Binder<'_>, insert: &Insert, targets: &Targets, line: u32) -> Result<(), Error> {
    if insert.columns.is_empty() || !binder.dialect().is_strict {
        return Ok(());
    }
    for (index, name) in insert.columns.iter().enumerate() {
        match targets.column(index).filter(|_| has_default(insert, index)) {
            Some(column) if column.is_identity => return Err(no_identity(line)),
            Some(column) if column.is_computed => return Err(computed(&name.text, line)),
            _ => {}
        }
    }
    Ok(())
}

fn has_default(insert: &Insert, index: usize) -> bool {
    let InsertSource::Values(rows) = &insert.source else { return false };
    rows.iter().any(|row| matches!(row.get(index), Some(Expression::Default(_))))
}

fn no_identity(line: u32) -> Error {
    let text = "DEFAULT or NULL are not allowed as explicit identity values.";
    Error::new(339, text, line).with_severity(16)
}

fn computed(column: &str, line: u32) -> Error {
    let text = format!(
        "The column \"{column}\" cannot be modified because it is either a computed column or is the result of a UNION \
         operator."
    );
    Error::new(271, text, line).with_severity(16)
}

/// The column that a change fills.
pub fn target_column<'t>(binder: &Binder<'_>, table: &'t str, column: Option<String>) -> Targets<'t> {
    let names = column.into_iter().collect();
    Targets { table, names: Some(names), declared: binder.scope.table(table), is_listed: true }
}

/// VALUES and its rows.
fn values_of(
    binder: &mut Binder<'_>,
    rows: &[Vec<Expression>],
    targets: &Targets,
    line: u32,
) -> Result<postgres::Query, Error> {
    let given = rows.first().map_or(0, Vec::len);
    targets.demand_number(given, |width| mismatch(width, given, line), line)?;
    let rows = rows::rows(binder, rows, line)?;
    let Some(guard) = targets.guard(given) else {
        return stored_rows(binder, &rows, targets, line, |_, _, value| value);
    };
    let all = || rows.iter().flatten();
    if all().all(|value| value.as_ref().is_some_and(Value::is_null)) {
        let numbers = call("generate_series", [1, rows.len()].map(Scalar::number));
        return Ok(postgres::Query::from(Select {
            list: vec![Listed::from(Scalar::Null); given],
            from: vec![Source::Call(numbers, None)],
            conditions: vec![guard],
            ..Select::default()
        }));
    }
    // the guard is around one of the values, a null only if all are nulls or defaults
    let is_given = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
    let index = all().position(is_given).or_else(|| all().position(Option::is_some));
    let guarded = |row: usize, column: usize, value: Scalar| match index {
        Some(index) if index == row * given + column => {
            // PostgreSQL takes the type of a null alone for text
            let of = targets.type_of(column);
            let value = match value {
                Scalar::Null if of.is_tsql() => Scalar::Null.cast(of.sql()),
                value => value,
            };
            Scalar::Case(vec![(guard.clone(), value)], None)
        }
        _ => value,
    };
    stored_rows(binder, &rows, targets, line, guarded)
}

/// The rows of a select, converted for columns.
fn rows_from(
    binder: &mut Binder<'_>,
    query: &Query,
    targets: &Targets,
    line: u32,
) -> Result<postgres::Query, Error> {
    let Written { sql, items } = select::query(binder, query, Stands::Inside)?;
    if has_star(&items) {
        // it is written again when its tables exist
        if binder.variables.are_parameters() && is_of_tables(query) {
            return Ok(sql);
        }
        return Err(Error::refused("insert … select *", "name the columns", line));
    }
    targets.demand_number(items.len(), |width| mismatch_of_query(width, items.len(), line), line)?;
    let names = numbered(&items);
    let mut values = Vec::with_capacity(names.len());
    for (index, (name, item)) in names.iter().zip(&items).enumerate() {
        binder.variables.meets(&Value::new(item.value.clone(), item.of), targets.type_of(index), false);
        values.push(Listed::from(targets.stored(binder, index, &item.column(name), line)?));
    }
    Ok(postgres::Query::from(Select {
        list: values,
        from: vec![sql.named(SOURCE, names)],
        conditions: targets.guard(items.len()).into_iter().collect(),
        ..Select::default()
    }))
}

fn is_of_tables(query: &Query) -> bool {
    let is_table = |source: &TableSource| matches!(source, TableSource::Table { .. });
    matches!(&query.body, QueryBody::Select(select) if flat(&select.from).into_iter().all(is_table))
}

/// The insert of `number` rows of values of these types, which are parameters, into a table of this declaration.
pub fn insert_of_rows(
    filled: &Filled,
    declared: Option<Arc<Table>>,
    types: &[Type],
    number: usize,
    dialect: &'static Dialect,
) -> Result<Change, Error> {
    let scope = Scope { dialect, ..Scope::default() };
    let width = types.len();
    let names: Vec<String> = (1..=width).map(|index| format!("c{index}")).collect();
    let targets = Targets { names: filled.columns.clone(), declared, ..Targets::unknown(&filled.table) };
    let mut variables = NoVariables(NO_VARIABLES);
    let binder = &mut Binder::new(&scope, &mut variables);
    let mut values = Vec::with_capacity(width);
    for (index, (name, of)) in names.iter().zip(types).enumerate() {
        let value = Value::new(Scalar::column(name), *of);
        values.push(Listed::from(targets.stored(binder, index, &value, 1)?));
    }
    let row = |row: usize| (0..width).map(|index| Scalar::Parameter(row * width + index)).collect();
    let rows = postgres::Query::from(Body::Values((0..number).map(row).collect()));
    let rows = postgres::Query::of(values, rows.named(SOURCE, names));
    let Filled { table: into, columns, with_identity } = filled.clone();
    let filling = Filling { columns, with_identity };
    Ok(ChangeKind::Insert { into, filling, rows: Some(rows) }.into())
}

/// Rows converted for columns; `write` returns each value.
fn stored_rows(
    binder: &mut Binder<'_>,
    rows: &[Vec<Option<Value>>],
    targets: &Targets,
    line: u32,
    write: impl Fn(usize, usize, Scalar) -> Scalar,
) -> Result<postgres::Query, Error> {
    let mut stored = Vec::with_capacity(rows.len());
    for (row, values) in rows.iter().enumerate() {
        let mut listed = Vec::with_capacity(values.len());
        for (column, value) in values.iter().enumerate() {
            listed.push(match value {
                None => Scalar::Default,
                Some(value) => write(row, column, targets.stored(binder, column, value, line)?),
            });
        }
        stored.push(listed);
    }
    Ok(Body::Values(stored).into())
}

/// The columns of a list; None for none.
fn listed(columns: &[Name]) -> Result<Option<Vec<String>>, Error> {
    Ok(Some(all_folded(columns)?).filter(|columns| !columns.is_empty()))
}

pub fn mismatch(columns: usize, values: usize, line: u32) -> Error {
    let (number, fewer, more) =
        if columns < values { (110, "columns", "values") } else { (109, "values", "columns") };
    let text = format!("There are fewer {fewer} in the INSERT statement than {more} specified.");
    Error::new(number, text, line)
}

pub fn mismatch_of_query(columns: usize, items: usize, line: u32) -> Error {
    let (number, how_many) = if columns < items { (121, "more") } else { (120, "fewer") };
    let text = format!(
        "The select list for the INSERT statement contains {how_many} items than the insert list. The number of \
         SELECT values must match the number of INSERT columns."
    );
    Error::new(number, text, line)
}

fn refused_execute(line: u32) -> Error {
    Error::refused("insert … execute", "it is not a query", line)
}
