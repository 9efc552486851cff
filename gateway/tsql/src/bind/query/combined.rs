//! UNION, INTERSECT and EXCEPT.

use super::locks::{holding_tables, locks_rows};
use super::{order, rows, select};
use crate::bind::binder::item::{has_star, numbered, Item, Stands, Written};
use crate::bind::binder::title::ResultType;
use crate::bind::binder::Binder;
use crate::bind::functions::next_value::refuse_next_value;
use crate::bind::values::assignments::implicit;
use crate::bind::values::{common, Constant, Value};
use crate::error::Error;
use crate::facts::conversions::is_sorted;
use crate::facts::types::{unified, Family, Type, INT, UNKNOWN};
use crate::postgres::{Body, Listed, Query, Scalar};
use crate::tree::{ColumnName, Expression, Ordering, QueryBody, SetOperator};
use crate::Dialect;

/// The name of one of the queries.
const PART: &str = "\"part\"";

pub fn combined_in_order(
    binder: &mut Binder<'_>,
    first: &QueryBody,
    others: &[(SetOperator, QueryBody)],
    order_by: &[Ordering],
    stands: Stands,
) -> Result<Written, Error> {
    let mut written = combined(binder, first, others, stands)?;
    if !order_by.is_empty() {
        let by: Vec<Ordering> = order_by.iter().map(of_result).collect();
        written.sql = order::order_of_columns(binder, written.sql, &by, &written.items)?.0;
    }
    Ok(written)
}

pub fn combined(
    binder: &mut Binder<'_>,
    first: &QueryBody,
    others: &[(SetOperator, QueryBody)],
    stands: Stands,
) -> Result<Written, Error> {
    let stands = if stands == Stands::Inside { Stands::Inside } else { Stands::First };
    binder.around.combining |= binder.around.selects == 0;
    let numbers = binder.around.next_values;
    let mut parts = vec![operand(binder, first, stands)?];
    for (_, other) in others {
        parts.push(operand(binder, other, Stands::Inside)?);
    }
    let line = first.first_select().map_or(1, |select| select.at.line);
    if !others.is_empty() {
        refuse_next_value(binder, numbers, 11721, line)?;
    }
    let mut widths = parts.iter().filter(|part| !has_star(&part.items)).map(|part| part.items.len());
    let first_width = widths.next();
    if widths.any(|width| Some(width) != first_width) {
        return Err(other_width(line));
    }
    if binder.dialect().combined_columns_convert {
        alike(&mut parts, line, binder.dialect())?;
    }
    let Written { sql: first, mut items } = parts.remove(0);
    let mut rest = Vec::with_capacity(others.len());
    for ((operator, _), other) in others.iter().zip(parts) {
        let word = match operator {
            SetOperator::Union => "union",
            SetOperator::UnionAll => "union all",
            SetOperator::Except => "except",
            SetOperator::Intersect => "intersect",
        };
        if *operator != SetOperator::UnionAll {
            demand_comparable(items.iter().chain(&other.items), line, binder.dialect())?;
        }
        together(&mut items, &other.items);
        rest.push((word, other.sql));
    }
    let sql = if rest.is_empty() { first } else { Body::Combined(Box::new(first), rest).into() };
    Ok(Written { sql, items })
}

pub fn operand(binder: &mut Binder<'_>, body: &QueryBody, stands: Stands) -> Result<Written, Error> {
    let in_parentheses = |written: Written| Written { sql: written.sql.parenthesised(), ..written };
    match body {
        QueryBody::Select(select) => {
            let held = locks_rows(select).then(|| holding_tables(select));
            let select = held.as_ref().unwrap_or(select);
            let written = select::select(binder, select, &[], false, stands)?;
            // a query with a LIMIT must be in parentheses
            Ok(if select.top.is_some() { in_parentheses(written) } else { written })
        }
        QueryBody::Combined { first, others } => Ok(in_parentheses(combined(binder, first, others, stands)?)),
        QueryBody::Values(rows) => rows::values(binder, rows, 0),
        QueryBody::Parenthesised(query) => Ok(in_parentheses(select::query(binder, query, stands)?)),
    }
}

/// 205: the queries have different numbers of columns.
pub fn other_width(line: u32) -> Error {
    let text =
        "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of \
                expressions in their target lists.";
    Error::new(205, text, line).with_severity(16)
}

/// Error 5335: values of these types are not compared, so they cannot be distinct.
fn demand_comparable<'i>(
    items: impl Iterator<Item = &'i Item>,
    line: u32,
    dialect: &Dialect,
) -> Result<(), Error> {
    let Some(of) = items.map(|item| item.of).find(|of| !is_sorted(*of, dialect)) else { return Ok(()) };
    let text = format!(
        "The data type {} cannot be used as an operand to the UNION, INTERSECT or EXCEPT operators because it is not \
         comparable.",
        of.display_name()
    );
    Err(Error::new(5335, text, line).with_severity(16))
}

/// The types of the columns of several selects: the common ones.
fn together(items: &mut [Item], others: &[Item]) {
    let are_aligned = items.len() == others.len();
    for (index, item) in items.iter_mut().enumerate() {
        let both = |other: &Item| common(&[item.beside(item.of), other.beside(other.of)]);
        item.of = others.get(index).map_or(UNKNOWN, both);
        // a NULL has the type of the others
        let null = ResultType { of: INT, not_null: false };
        let known = |item: &Item| {
            let own = item.result_type.or((item.constant == Constant::Null).then_some(null));
            own.filter(|_| are_aligned)
        };
        item.result_type = match (known(item), others.get(index).and_then(known)) {
            (Some(one), Some(other)) => {
                let of = common(&[item.beside(one.of), others[index].beside(other.of)]);
                of.in_tsql().map(|of| ResultType { of, not_null: one.not_null && other.not_null })
            }
            _ => None,
        };
        item.constant = match (&item.constant, others.get(index).map(|other| &other.constant)) {
            (Constant::Integer(one), Some(Constant::Integer(other))) => Constant::Integer(*one.max(other)),
            _ => Constant::None,
        };
    }
}

/// Converts columns of different kinds in several selects, such as int and varchar, to the type of the highest rank
/// ("Data type precedence"), if the types are known: PostgreSQL only combines those of one kind.
fn alike(parts: &mut [Written], line: u32, dialect: &Dialect) -> Result<(), Error> {
    let width = parts.first().map_or(0, |part| part.items.len());
    if parts.iter().any(|part| has_star(&part.items)) {
        return Ok(());
    }
    let mut targets = vec![None; width];
    for (index, target) in targets.iter_mut().enumerate() {
        let types: Option<Vec<Type>> =
            parts.iter().map(|part| part.items[index].result_type.map(|known| known.of)).collect();
        let Some(types) = types else { continue };
        if types.iter().any(|of| kind(*of) != kind(types[0])) {
            *target = unified(types).in_tsql();
        }
    }
    if targets.iter().all(Option::is_none) {
        return Ok(());
    }
    for part in parts {
        let mut columns = Vec::with_capacity(width);
        for ((item, target), column) in part.items.iter().zip(&targets).zip(numbered(&part.items)) {
            let own = Scalar::of_row(PART, column);
            let value = match (target, item.result_type) {
                (Some(target), Some(known)) => {
                    implicit(Value::new(own, known.of), *target, line, dialect)?.sql
                }
                _ => own,
            };
            columns.push(Listed::named(value, item.shown(line)?));
        }
        let rows = std::mem::replace(&mut part.sql, Body::Values(Vec::new()).into());
        part.sql = Query::of(columns, rows.named(PART, numbered(&part.items)));
    }
    Ok(())
}

/// PostgreSQL combines types of one kind as T-SQL does.
fn kind(of: Type) -> Family {
    match of.family {
        Family::Money | Family::Decimal | Family::Float => Family::Integer,
        Family::Date => Family::DateTime,
        family => family,
    }
}

/// An ORDER BY item of a combined result, which has only its own columns.
fn of_result(ordering: &Ordering) -> Ordering {
    let value = match &ordering.value {
        Expression::Column(column) => Expression::Column(ColumnName { table: None, ..column.clone() }),
        other => other.clone(),
    };
    Ordering { value, ..*ordering }
}
