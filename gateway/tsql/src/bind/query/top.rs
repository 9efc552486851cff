//! TOP, and OFFSET … FETCH.

use super::locks::locks_rows;
use super::order;
use super::order::in_order;
use crate::bind::binder::item::{has_star, numbered, renamed, Item};
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::values::converted;
use crate::error::Error;
use crate::facts::session::ROW_LIMIT;
use crate::facts::types::{Family, Type, FLOAT};
use crate::postgres::{self, call, Body, Listed, Order, Scalar};
use crate::tree::{Expression, Ordering, Query, Select, TableSource, Top};

/// A clause with a number of rows, and its errors ("Database Engine events and errors").
struct Clause {
    name: &'static str,
    least: i64,
    no_integer: i32,
    too_small: i32,
    too_small_words: &'static str,
}

const OFFSET: Clause = Clause {
    name: "OFFSET",
    least: 0,
    no_integer: 10743,
    too_small: 10742,
    too_small_words: "The offset specified in a OFFSET clause may not be negative.",
};

const FETCH: Clause = Clause {
    name: "FETCH",
    least: 1,
    no_integer: 10745,
    too_small: 10744,
    too_small_words: "The number of rows provided for a FETCH clause must be greater then zero.",
};

/// Limits a query to its first rows. Returns false if this needs more than a clause after it.
pub fn top(
    binder: &mut Binder<'_>,
    top: &Top,
    select: &Select,
    order_by: &[Ordering],
    items: &[Item],
    query: postgres::Query,
) -> Result<(postgres::Query, bool), Error> {
    let is_ordered = !order_by.is_empty();
    let rows = match top.percent {
        true => percent_of(binder, top, query.clone())?,
        false => row_count(binder, &top.count, top.at.line)?,
    };
    if top.with_ties {
        if !is_ordered {
            let text = "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.";
            return Err(Error::new(1062, text, top.at));
        }
        return Ok((postgres::Query { with_ties: true, ..query.limited(Some(rows)) }, true));
    }
    if is_ordered && !top.percent {
        if let Some(query) = top_by_index(binder, select, order_by, items, &query, &rows)? {
            return Ok((query, false));
        }
    }
    Ok((query.limited(Some(rows)), true))
}

/// A percentage of the rows of a query.
fn percent_of(binder: &mut Binder<'_>, top: &Top, rows: postgres::Query) -> Result<Scalar, Error> {
    let percent = expressions::value(binder, &top.count)?;
    let wrong = match percent.integer() {
        Some(0..=100) | None if !percent.is_null() => None,
        Some(_) => Some((1031, "Percent values must be between 0 and 100.")),
        None => Some((1014, "A TOP or FETCH clause contains an invalid value.")),
    };
    if let Some((number, text)) = wrong {
        return Err(Error::new(number, text, top.at).with_severity(16));
    }
    let percent = converted(percent, FLOAT, top.at.line, binder.dialect())?.sql;
    let count = Listed::from(call("count", [Scalar::Star]));
    let number = postgres::Query::of([count], rows.named("\"counted\"", Vec::new()));
    Ok(call("tsql.top_percent", [percent, Scalar::Query(Box::new(number))]))
}

/// A number of rows. Error 1060 if it is not a number, 127 if it is negative.
pub fn row_count(binder: &mut Binder<'_>, count: &Expression, line: u32) -> Result<Scalar, Error> {
    let number = expressions::value(binder, count)?;
    let is_other = |of: Type| !matches!(of.family, Family::Integer | Family::Bit);
    if number.is_null() || number.of.is_tsql() && is_other(number.of) {
        let text =
            "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.";
        return Err(Error::new(1060, text, line));
    }
    match number.integer() {
        Some(integer) if integer < 0 => {
            Err(Error::new(127, "A TOP N or FETCH rowcount value may not be negative.", line))
        }
        Some(_) => Ok(number.sql),
        None => Ok(call("tsql.top", [number.sql])),
    }
}

/// The most rows that an INSERT, UPDATE or DELETE changes: SQL Server requires parentheses ("TOP").
pub fn changed_at_most(binder: &mut Binder<'_>, top: &Top) -> Result<Scalar, Error> {
    demand_parentheses(binder, top)?;
    row_count(binder, &top.count, top.at.line)
}

fn demand_parentheses(binder: &Binder<'_>, top: &Top) -> Result<(), Error> {
    match top.bare.as_ref().filter(|_| binder.dialect().top_needs_parentheses) {
        None => Ok(()),
        Some(count) => Err(Error::syntax(count, top.at)),
    }
}

/// The most rows, of those selected by a query, that a change of this table affects.
pub fn changed_of(
    binder: &mut Binder<'_>,
    top: Option<&Top>,
    rows: &postgres::Query,
    table: &str,
    line: u32,
) -> Result<Option<Scalar>, Error> {
    let most = match top {
        None => None,
        Some(top) if top.with_ties => return Err(Error::syntax("with", top.at)),
        Some(top) if top.percent => {
            demand_parentheses(binder, top)?;
            Some(percent_of(binder, top, rows.clone())?)
        }
        Some(top) => Some(changed_at_most(binder, top)?),
    };
    rows_within(binder, most, table, line)
}

/// The most rows that a change of this table affects: by its TOP, and by `set rowcount`.
pub fn rows_within(
    binder: &mut Binder<'_>,
    top: Option<Scalar>,
    table: &str,
    line: u32,
) -> Result<Option<Scalar>, Error> {
    if !binder.scope.limits_rows {
        return Ok(top);
    }
    binder.result.limited = Some(table.to_owned());
    let set = call("nullif", [binder.variables.write(ROW_LIMIT, line)?, Scalar::number(0)]);
    Ok(Some(match top {
        Some(top) => call("least", [top, set]),
        None => set,
    }))
}

/// `offset n rows fetch next m rows only`
pub fn offset(binder: &mut Binder<'_>, query: &Query, written: &mut postgres::Query) -> Result<(), Error> {
    let Some(offset) = &query.offset else { return Ok(()) };
    let line = offset.at().line;
    if query.order_by.is_empty() {
        return Err(Error::syntax("offset", line));
    }
    written.offset = Some(skipped_or_fetched(binder, offset, &OFFSET)?);
    if let Some(fetch) = &query.fetch {
        written.limit = Some(skipped_or_fetched(binder, fetch, &FETCH)?);
    }
    Ok(())
}

fn skipped_or_fetched(binder: &mut Binder<'_>, count: &Expression, clause: &Clause) -> Result<Scalar, Error> {
    let number = expressions::value(binder, count)?;
    let fail = |number, text: String| Err(Error::new(number, text, count.at()));
    let no_integer = format!("The number of rows provided for a {} clause must be an integer.", clause.name);
    if number.is_null() || number.text().is_some() {
        return fail(clause.no_integer, no_integer);
    }
    let Clause { least, too_small, too_small_words, .. } = clause;
    match number.integer() {
        Some(integer) if integer < *least => fail(*too_small, (*too_small_words).to_owned()),
        Some(_) => Ok(number.sql),
        None => {
            let [least, error] = [*least, i64::from(clause.no_integer)].map(Scalar::number);
            let (words, small) = (Scalar::Text(no_integer), Scalar::number(too_small));
            let arguments = [number.sql, least, error, words, small, Scalar::text(*too_small_words)];
            Ok(call("tsql.rows_of", arguments))
        }
    }
}

/// The first rows by a column, by an index on it: `select top 5 * from log order by time desc`.
///
/// T-SQL orders nulls first, PostgreSQL's indexes last. So the first rows with a value and the first without one
/// are read separately, and the first of both are returned.
fn top_by_index(
    binder: &mut Binder<'_>,
    select: &Select,
    order_by: &[Ordering],
    items: &[Item],
    query: &postgres::Query,
    rows: &Scalar,
) -> Result<Option<postgres::Query>, Error> {
    let Body::Select(written) = &query.body else { return Ok(None) };
    let is_plain = !select.distinct
        && !locks_rows(select)
        && select.group_by.is_empty()
        && select.having.is_none()
        && binder.around.aggregates.all == 0
        && matches!(select.from.as_slice(), [source] if !matches!(source, TableSource::Join { .. }));
    if !is_plain {
        return Ok(None);
    }
    let mut keys = Vec::with_capacity(order_by.len());
    for ordering in order_by {
        let value = expressions::value(binder, &ordering.value)?;
        match order::plain_key(binder, &ordering.value, items)? {
            None => return Ok(None),
            Some(key) => keys.push((key, value.of, ordering.descending)),
        }
    }
    let Some(((key, of, descending), others)) = keys.split_first().filter(|_| !has_star(items)) else {
        return Ok(None);
    };
    let order = |key: Scalar, of: Type, descending: bool| Order::by(in_order(key, of), descending);
    let rest: Vec<Order> =
        others.iter().map(|(key, of, descending)| order(key.clone(), *of, *descending)).collect();
    let part = |has_key: bool, order_by: Vec<Order>| {
        let mut part = (**written).clone();
        part.list.extend(keys.iter().map(|(key, ..)| Listed::from(key.clone())));
        part.conditions.push(key.clone().is_null(!has_key));
        postgres::Query::from(part).ordered(order_by).limited(Some(rows.clone())).parenthesised()
    };
    let first = Order { has_no_nulls: true, ..order(key.clone(), *of, *descending) };
    let with_value = part(true, [first].into_iter().chain(rest.clone()).collect());
    let both = Body::Combined(Box::new(with_value), vec![("union all", part(false, rest))]);
    let names: Vec<String> = (1..=keys.len()).map(|index| format!("\"k{index}\"")).collect();
    let columns = numbered(items).into_iter().chain(names.clone()).collect();
    let by = keys.iter().zip(names);
    let by = by.map(|((_, of, descending), name)| order(Scalar::column(name), *of, *descending)).collect();
    let top = postgres::Query::of(renamed(items)?, postgres::Query::from(both).named("\"top\"", columns));
    Ok(Some(top.ordered(by).limited(Some(rows.clone()))))
}
