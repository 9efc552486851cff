//! Tables that lack rows of some times: a select on one checks in PostgreSQL whether its rows are present, by the
//! bounds of their times in its conditions.

use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::expressions::conditions::is_column;
use crate::bind::expressions::walk::{any, has_query};
use crate::bind::values::assignments::assigned;
use crate::error::Error;
use crate::facts::types::{DATETIME2, DATETIMEOFFSET};
use crate::postgres::{call, Scalar};
use crate::quoting::quoted;
use crate::resolve::names::table;
use crate::schema::Partial;
use crate::tree::{BinaryOperator, ColumnName, Expression, JoinKind, Name, ObjectName, Select, TableSource};

/// The bounds of a column in conditions, as SQL: the lower ones and the upper ones.
#[derive(Default)]
struct Bounds {
    low: Vec<Scalar>,
    high: Vec<Scalar>,
}

/// For each such table of a select a condition that is true or fails: a subquery, so that it is evaluated once.
pub fn demands(binder: &mut Binder<'_>, select: &Select) -> Result<Vec<Scalar>, Error> {
    let mut demands = Vec::new();
    if binder.scope.partial.is_empty() {
        return Ok(demands);
    }
    let mut conditions: Vec<&Expression> = select.condition.iter().collect();
    let mut tables = Vec::new();
    for source in &select.from {
        sources(source, &mut tables, &mut conditions);
    }
    for (name, alias) in tables {
        let own = table(name)?;
        let own = if own.contains('.') { own } else { format!("{}.{own}", quoted(&binder.scope.database)) };
        let Some(partial) = binder.scope.partial.get(&own).cloned() else { continue };
        let qualifier = alias.as_ref().map_or(&name.name, |alias| &alias.text);
        let mut bounds = Bounds::default();
        for condition in &conditions {
            self::bounds(binder, condition, &partial, qualifier, &mut bounds);
        }
        let one = |function: &'static str, bounds: Vec<Scalar>| match bounds.is_empty() {
            true => Scalar::Null,
            false => call(function, bounds),
        };
        binder.note(|facts| facts.varies = true);
        let (low, high) = (one("greatest", bounds.low), one("least", bounds.high));
        demands.push(call(partial.demand, [Scalar::Text(own), low, high]).once());
    }
    Ok(demands)
}

fn bounds(
    binder: &mut Binder<'_>,
    condition: &Expression,
    partial: &Partial,
    qualifier: &str,
    bounds: &mut Bounds,
) {
    let is_time = |one: &Expression| {
        let Expression::Column(ColumnName { table, column, .. }) = one else { return false };
        let is_own = table.as_ref().is_none_or(|table| table.name.eq_ignore_ascii_case(qualifier));
        is_own && column.eq_ignore_ascii_case(&partial.time)
    };
    match condition {
        Expression::And(operands) => {
            operands.iter().for_each(|one| self::bounds(binder, one, partial, qualifier, bounds));
        }
        Expression::Between { operand, low, high, negated: false } if is_time(operand) => {
            bounds.low.extend(instant(binder, low, false));
            bounds.high.extend(instant(binder, high, true));
        }
        Expression::Binary { operator, left, right, .. } => {
            use BinaryOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
            let (operator, value) = match (operator, is_time(left), is_time(right)) {
                (operator, true, false) => (*operator, right),
                (Greater, false, true) => (Less, left),
                (GreaterOrEqual, false, true) => (LessOrEqual, left),
                (Less, false, true) => (Greater, left),
                (LessOrEqual, false, true) => (GreaterOrEqual, left),
                (Equal, false, true) => (Equal, left),
                _ => return,
            };
            if matches!(operator, Greater | GreaterOrEqual | Equal) {
                bounds.low.extend(instant(binder, value, false));
            }
            if matches!(operator, Less | LessOrEqual | Equal) {
                bounds.high.extend(instant(binder, value, operator != Less));
            }
        }
        _ => {}
    }
}

/// A value that does not depend on rows, as an instant; `next`: the instant after it. None: other values.
fn instant(binder: &mut Binder<'_>, value: &Expression, next: bool) -> Option<Scalar> {
    if any(value, &mut is_column) || has_query(value) {
        return None;
    }
    let line = value.at().line;
    let value = expressions::value(binder, value)
        .ok()
        .filter(|value| !value.is_null() && value.of != DATETIMEOFFSET)?;
    let sql = match value.of.is_tsql() {
        true => assigned(value, DATETIME2, line, binder.dialect()).ok()?.sql,
        false => value.sql,
    };
    let instant = sql.cast("timestamptz");
    Some(match next {
        true => instant.infix("+", Scalar::text("1 microsecond").cast("interval")),
        false => instant,
    })
}

/// The tables among sources, and the conditions of inner joins.
fn sources<'t>(
    source: &'t TableSource,
    tables: &mut Vec<(&'t ObjectName, &'t Option<Name>)>,
    conditions: &mut Vec<&'t Expression>,
) {
    match source {
        TableSource::Table { name, alias, .. } => tables.push((name, alias)),
        TableSource::Join { kind, left, right, condition } => {
            sources(left, tables, conditions);
            sources(right, tables, conditions);
            conditions.extend(condition.iter().filter(|_| *kind == JoinKind::Inner));
        }
        TableSource::Variable { .. } | TableSource::Function { .. } | TableSource::Query { .. } => {}
    }
}
