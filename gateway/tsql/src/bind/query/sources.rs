//! FROM and WHERE of a select.

use super::common_tables::alias;
use super::order::refuse_order;
use super::{outer_join, partial, select};
use crate::bind::binder::item::{refuse_names, Stands};
use crate::bind::binder::named::{named_variable, refuse_repeated, source_name, Named};
use crate::bind::binder::{changed_rows, declared, Around, Binder};
use crate::bind::expressions::conditions;
use crate::bind::functions::calls::CallBinder;
use crate::bind::functions::next_value::refuse_next_value;
use crate::bind::structured::json_rows;
use crate::bind::structured::json_rows::names_openjson;
use crate::bind::values::{Constant, Value};
use crate::bind::{expressions, functions};
use crate::error::Error;
use crate::facts::functions::{rule, Rule};
use crate::facts::types::{nvarchar, Type, BIGINT, UNKNOWN};
use crate::fragments::RowSource;
use crate::postgres::{self, call, Alias, Call, Listed, Mark, Scalar, Source};
use crate::resolve::names::{self, stored, Relation};
use crate::schema::{Column, Table};
use crate::tree::{
    Arguments, Expression, FunctionCall, JoinKind, Name, ObjectName, Query, Select, TableSource,
};

/// The sources of rows, and the conditions on them.
#[derive(Debug, Default)]
pub struct Sources {
    pub from: Vec<Source>,
    pub conditions: Vec<Scalar>,
}

pub fn sources_of(binder: &mut Binder<'_>, select: &Select) -> Result<Sources, Error> {
    if binder.dialect().is_strict {
        refuse_repeated(&select.from)?;
    }
    let aggregates = binder.around.aggregates;
    let mut sources = match outer_join::outer_join(binder, select)? {
        Some(sources) => sources,
        None => {
            let from = from(binder, &select.from)?;
            let condition =
                select.condition.as_ref().map(|condition| conditions::condition(binder, condition));
            Sources { from, conditions: condition.transpose()?.into_iter().collect() }
        }
    };
    // an inner query may aggregate a column of an outer one
    if binder.around.selects == 1 && binder.around.aggregates.plain > aggregates.plain {
        let text = "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause \
                    or a select list, and the column being aggregated is an outer reference.";
        return Err(Error::new(147, text, select.at).with_severity(16));
    }
    sources.conditions.extend(partial::demands(binder, select)?);
    Ok(sources)
}

pub fn from(binder: &mut Binder<'_>, sources: &[TableSource]) -> Result<Vec<Source>, Error> {
    sources.iter().map(|source| self::source(binder, source)).collect()
}

pub fn source(binder: &mut Binder<'_>, source: &TableSource) -> Result<Source, Error> {
    match source {
        TableSource::Table { name, alias, .. } if empty(binder, name).is_some() => {
            let of = empty(binder, name).unwrap_or_default();
            let rows = postgres::Select {
                list: vec![Listed::from(Scalar::Star)],
                from: vec![Source::Table(of, None)],
                conditions: vec![Scalar::Boolean(false)],
                ..Default::default()
            };
            let own = Alias { name: names::quoted(&stored(&name.name)), columns: Vec::new() };
            let alias = named(alias, &[])?.unwrap_or(own);
            Ok(Source::Query(Box::new(rows.into()), Some(alias)))
        }
        TableSource::Table { name, alias, .. } => Ok(Source::Table(table(binder, name)?, named(alias, &[])?)),
        TableSource::Variable { variable, alias } => {
            let name = named_variable(binder, variable)?;
            Ok(Source::Table(table(binder, &name)?, named(alias, &[])?))
        }
        TableSource::Function { call, schema, alias, columns } if names_openjson(call) => {
            json_rows::opened_json(binder, call, schema, alias, columns)
        }
        TableSource::Function { call, alias, columns, .. } => {
            let (rows, known) = rows_of(binder, call)?;
            if let (Some(known), []) = (known, columns.as_slice()) {
                declared::know(binder, Named::of_rows(source_name(source).unwrap_or_default(), &known));
            }
            let own = || Alias {
                name: names::quoted(&source_name(source).unwrap_or_default()),
                columns: Vec::new(),
            };
            Ok(Source::Call(rows, Some(named(alias, columns)?.unwrap_or_else(own))))
        }
        TableSource::Query { query, alias, columns } => derived(binder, query, alias, columns),
        TableSource::Join { .. } => joined(binder, source),
    }
}

/// A table or view by its name in SQL, which is noted unless it is a query of the WITH.
pub fn table(binder: &mut Binder<'_>, name: &ObjectName) -> Result<String, Error> {
    let relation = names::relation(name)?;
    let sql = relation.sql.clone();
    let is_common = name.is_bare() && binder.names.written.contains_key(&relation.own);
    if !is_common {
        binder.note_table(relation);
    }
    Ok(sql)
}

fn empty(binder: &Binder<'_>, name: &ObjectName) -> Option<String> {
    let own = stored(&name.name);
    binder.scope.empty.get(&own).filter(|_| name.is_bare()).cloned()
}

/// A function that returns a table of rows, and the columns of these, if known.
fn rows_of(binder: &mut Binder<'_>, called: &FunctionCall) -> Result<(Scalar, Option<Table>), Error> {
    let name = called.name.name.to_lowercase();
    if let (Some(Rule::Refused(why)), true) = (rule(&name), called.name.is_bare()) {
        return Err(Error::refused(&format!("{name}()"), why, called.name.at));
    }
    let Arguments::Values(arguments) = &called.arguments else {
        return Err(Error::syntax("*", called.name.at));
    };
    let is_system = called.name.is_bare() || called.name.owner.eq_ignore_ascii_case("sys");
    if let (Some(Rule::SystemRows), true) = (rule(&name), is_system) {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(match argument {
                Expression::Default(_) => Scalar::Null,
                argument => expressions::value(binder, argument)?.sql,
            });
        }
        binder.note_table(Relation::system_function(&name));
        let name = format!("sys.{name}");
        let known = functions::signature(binder, &name, &vec![UNKNOWN; values.len()]);
        return Ok((call(name, values), known.map(|known| known.rows)));
    }
    if let (Some(Rule::Rows), true) = (rule(&name), called.name.is_bare()) {
        return split(binder, called, arguments).map(|(rows, known)| (rows, Some(known)));
    }
    let is_series =
        called.name.is_bare() && name == "generate_series" && binder.dialect().has_generate_series;
    let mark = if binder.dialect().refuses_unknown_functions { Mark::OfRows } else { Mark::None };
    let (function, arguments, types) = functions::passed_on_of(binder, &called.name, arguments, true)?;
    // PostgreSQL has more variants: those of times
    let are_numbers = types.iter().all(|of| of.is_exact() || !of.is_tsql());
    if let (true, Some(index)) = (is_series, types.iter().position(Type::is_text)) {
        let of = types[index].name;
        let text = format!(
            "Argument data type {of} is invalid for argument {} of generate_series function.",
            index + 1
        );
        return Err(Error::new(8116, text, called.name.at).with_severity(16));
    }
    let mut known = types.iter().filter(|of| of.is_tsql()).map(|of| of.name);
    let first = known.next();
    if is_series && known.any(|name| Some(name) != first) {
        let text = "All the input parameters should be of the same type. Supported types are tinyint, smallint, int, bigint, \
                    decimal and numeric.";
        return Err(Error::new(5373, text, called.name.at).with_severity(16));
    }
    let signature =
        functions::signature(binder, &function, &types).filter(|of| !of.rows.columns().is_empty());
    let is_own = is_series && are_numbers;
    let function = if is_own { format!("tsql.{function}") } else { function };
    let rows = Call { function: function.into(), arguments, mark, ..Call::default() };
    Ok((rows.into(), signature.filter(|_| !is_own).map(|signature| signature.rows)))
}

/// `string_split(text, separator [, enable_ordinal])`
fn split(
    binder: &mut Binder<'_>,
    called: &FunctionCall,
    arguments: &[Expression],
) -> Result<(Scalar, Table), Error> {
    let line = called.name.at.line;
    let name = called.name.name.to_lowercase();
    let mut of = CallBinder { binder, name: &name, of: called, arguments, over: None, line };
    let with_ordinal = match of.count(2, 3)? {
        2 => false,
        _ => match of.value(2)? {
            flag if flag.is_null() => false,
            Value { constant: Constant::Integer(flag @ (0 | 1)), .. } => flag == 1,
            Value { constant: Constant::Integer(flag), .. } => {
                let text =
                    format!("Argument value {flag} is invalid for argument 3 of string_split function.");
                return Err(of.fail(4199, text));
            }
            _ => {
                return Err(of.fail(
                    8748,
                    "The enable_ordinal argument for string_split only supports constant values.",
                ))
            }
        },
    };
    let function = if with_ordinal { "string_split_with_ordinal" } else { &*name };
    let [whole, separator] = [of.value(0)?, of.value(1)?];
    let whole = conditions::collated_by_default(of.binder, whole);
    let part = if whole.is_text() { whole.of } else { nvarchar(None) };
    let mut rows = Table::default();
    for (name, of) in [("value", part), ("ordinal", BIGINT)].into_iter().take(1 + usize::from(with_ordinal)) {
        rows.add(Column { name: name.to_owned(), of, ..Column::default() });
    }
    Ok((call(format!("tsql.{function}"), [of.as_text(&whole)?, of.as_text(&separator)?]), rows))
}

fn derived(
    binder: &mut Binder<'_>,
    query: &Query,
    alias: &Option<Name>,
    columns: &[Name],
) -> Result<Source, Error> {
    let Some(name) = alias else { return Err(Error::syntax(")", query.at)) };
    refuse_order(query, binder.dialect())?;
    let Around { aggregates, next_values, .. } = binder.around;
    let written = select::query(binder, query, Stands::Inside)?;
    binder.around.aggregates = aggregates;
    refuse_next_value(binder, next_values, 11719, query.at.line)?;
    refuse_names(&written.items, columns, name, binder.dialect())?;
    declared::know(binder, Named::of_query(stored(&name.text), &written.items, columns));
    Ok(Source::Query(Box::new(written.sql), named(alias, columns)?))
}

/// A join chain may be of any length, so there is no recursion along its left side.
fn joined(binder: &mut Binder<'_>, source: &TableSource) -> Result<Source, Error> {
    let mut joins = Vec::new();
    let mut first = source;
    while let TableSource::Join { kind, left, right, condition } = first {
        joins.push((*kind, &**right, condition.as_ref()));
        first = left;
    }
    let mut rows = self::source(binder, first)?;
    for (kind, right, condition) in joins.into_iter().rev() {
        let other = self::source(binder, right)?;
        // in PostgreSQL LATERAL precedes a source that may refer to the left side
        let may_refer = matches!(right, TableSource::Function { .. } | TableSource::Query { .. });
        let join = match kind {
            JoinKind::CrossApply if !may_refer => "cross join",
            JoinKind::OuterApply if !may_refer => "left join",
            JoinKind::Inner => "inner join",
            JoinKind::Left => "left join",
            JoinKind::Right => "right join",
            JoinKind::Full => "full join",
            JoinKind::Cross => "cross join",
            JoinKind::CrossApply => "cross join lateral",
            JoinKind::OuterApply => "left join lateral",
        };
        let is_outer = !matches!(kind, JoinKind::Inner | JoinKind::Cross | JoinKind::CrossApply);
        binder.note(|facts| facts.adds_nulls |= is_outer);
        let on = match condition {
            Some(condition) => Some(conditions::condition(binder, condition)?),
            None if kind == JoinKind::OuterApply => Some(Scalar::Boolean(true)),
            None => None,
        };
        rows = rows.join(join, other, on);
    }
    Ok(rows)
}

/// The tables and views among the sources; none if there are others.
pub fn row_sources(binder: &Binder<'_>, from: &[TableSource]) -> Result<Vec<RowSource>, Error> {
    let mut found = Vec::new();
    let mut rest: Vec<&TableSource> = from.iter().collect();
    while let Some(source) = rest.pop() {
        match source {
            TableSource::Join { left, right, .. } => rest.extend([&**right, &**left]),
            TableSource::Table { name, alias, .. } => {
                let own = stored(&name.name);
                let is_query = name.is_bare() && binder.names.common.contains(&own);
                let relation = names::relation(name)?;
                if is_query || empty(binder, name).is_some() || relation.is_of_system() {
                    return Ok(Vec::new());
                }
                let qualifier = match alias {
                    Some(alias) => names::name(alias)?,
                    None => names::qualifier(name)?,
                };
                found.push(RowSource { qualifier, table: relation.sql, shown: name.shown() });
            }
            _ => return Ok(Vec::new()),
        }
    }
    Ok(found)
}

/// `t` of `t.*` and `t.column`.
pub fn qualifier(binder: &Binder<'_>, table: &ObjectName) -> Result<String, Error> {
    match changed_rows::output_rows(binder, table)? {
        Some(rows) => Ok(rows.to_owned()),
        None => names::qualifier(table),
    }
}

/// The alias of a source.
pub fn named(name: &Option<Name>, columns: &[Name]) -> Result<Option<Alias>, Error> {
    name.as_ref().map(|name| alias(name, columns)).transpose()
}

/// The conditions connected by AND.
pub fn conjuncts(condition: &Expression) -> Vec<&Expression> {
    match condition {
        Expression::And(operands) => operands.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}
