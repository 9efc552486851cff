//! ORDER BY. T-SQL orders uniqueidentifiers by their last bytes first, PostgreSQL from left to right: such a key is
//! written as `tsql.guid_key(key)`, and one whose type only PostgreSQL knows as `tsql.ordered(key)`.

use crate::bind::binder::item::{has_star, numbered, renamed, Item};
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::expressions::{conditions, walk};
use crate::bind::values::{Constant, Value};
use crate::error::Error;
use crate::facts::conversions::{is_sorted, unsorted};
use crate::facts::types::{Family, Type, GUID, INT, UNKNOWN};
use crate::postgres::{call, Order, Query, Scalar};
use crate::resolve::names::{folded, stored};
use crate::tree::{self, Expression, LiteralValue, Ordering, Position, QueryBody};
use crate::Dialect;

/// The name of a query.
const ROWS: &str = "\"rows\"";

/// The keys by which rows are ordered.
struct Key {
    /// Its item of the list.
    column: Option<usize>,
    /// Its SQL in ORDER BY, unless a function must be applied to it.
    sql: Scalar,
    /// Its type, if known.
    of: Type,
    descending: bool,
}

/// The order of a select of these items.
pub fn order_by(binder: &mut Binder<'_>, order_by: &[Ordering], items: &[Item]) -> Result<Vec<Order>, Error> {
    let mut by = Vec::with_capacity(order_by.len());
    let keys = keys(binder, order_by, items, false)?;
    for (ordering, key) in order_by.iter().zip(keys) {
        let sql = match key.column {
            Some(index) if !is_plain(key.of) => {
                let item = &items[index];
                if item.has_new_id {
                    let why = "it would be another value: put the rows into a table first";
                    return Err(Error::refused("order by a newid() of the list", why, ordering.value.at()));
                }
                in_order(item.value.clone(), key.of)
            }
            _ => in_order(key.sql, key.of),
        };
        by.push(Order::by(sql, key.descending));
    }
    Ok(by)
}

/// A query with its ORDER BY, which is by its own columns only: a UNION or a SELECT DISTINCT. Returns false if the result
/// is a query inside another select.
pub fn order_of_columns(
    binder: &mut Binder<'_>,
    query: Query,
    order_by: &[Ordering],
    items: &[Item],
) -> Result<(Query, bool), Error> {
    let keys = keys(binder, order_by, items, true)?;
    let has_star = has_star(items);
    let is_own = |key: &Key| is_plain(key.of) || key.column.is_none() || has_star;
    if keys.iter().all(is_own) {
        let by: Vec<_> = keys.into_iter().map(|key| Order::by(key.sql, key.descending)).collect();
        return Ok((query.ordered(by), true));
    }
    // an expression over a column is not a column of the result: the result becomes a subquery
    let column = |key: &Key| match key.column {
        Some(index) => Scalar::column(format!("\"c{}\"", index + 1)),
        None => key.sql.clone(),
    };
    let by = keys.iter().map(|key| Order::by(in_order(column(key), key.of), key.descending));
    let by: Vec<_> = by.collect();
    Ok((Query::of(renamed(items)?, query.named(ROWS, numbered(items))).ordered(by), false))
}

/// The columns that ORDER BY adds to the list of a SELECT DISTINCT.
pub fn keys_beside(
    binder: &mut Binder<'_>,
    order_by: &[Ordering],
    items: &[Item],
) -> Result<Vec<Scalar>, Error> {
    if has_star(items) {
        return Ok(Vec::new());
    }
    let keys = keys(binder, order_by, items, true)?;
    let unlisted = keys.iter().zip(order_by).filter(|(key, _)| key.column.is_none());
    let is_beside = |ordering: &Ordering| match &ordering.value {
        Expression::Column(column) => {
            let own = stored(&column.column);
            !items.iter().any(|item| item.name.as_deref().is_some_and(|name| stored(name) == own))
        }
        _ => false,
    };
    // PostgreSQL reports errors of others
    Ok(match unlisted.clone().all(|(_, ordering)| is_beside(ordering)) {
        true => unlisted.map(|(key, _)| key.sql.clone()).collect(),
        false => Vec::new(),
    })
}

/// A SELECT DISTINCT with the columns of `keys_beside` after its own, and its ORDER BY.
pub fn order_beside(
    binder: &mut Binder<'_>,
    query: Query,
    order_by: &[Ordering],
    items: &[Item],
) -> Result<Query, Error> {
    let mut columns = numbered(items);
    let mut by = Vec::with_capacity(order_by.len());
    for (index, key) in keys(binder, order_by, items, true)?.into_iter().enumerate() {
        let column = match key.column {
            Some(index) => format!("\"c{}\"", index + 1),
            None => {
                columns.push(format!("\"k{index}\""));
                format!("\"k{index}\"")
            }
        };
        by.push(Order::by(in_order(Scalar::column(column), key.of), key.descending));
    }
    Ok(Query::of(renamed(items)?, query.named(ROWS, columns)).ordered(by))
}

fn keys(
    binder: &mut Binder<'_>,
    order_by: &[Ordering],
    items: &[Item],
    in_list: bool,
) -> Result<Vec<Key>, Error> {
    let mut keys: Vec<Key> = Vec::with_capacity(order_by.len());
    for (index, ordering) in order_by.iter().enumerate() {
        let key = key(binder, ordering, index, items, in_list)?;
        demand_sorted(key.of, ordering.value.at(), binder.dialect())?;
        let is_same = |(other, of): (&Key, &Ordering)| {
            are_alike(&of.value, &ordering.value)
                && other.column == key.column
                && (key.column.is_some() || other.sql == key.sql)
        };
        if binder.dialect().is_strict && keys.iter().zip(&order_by[..index]).any(is_same) {
            let text =
                "A column has been specified more than once in the order by list. Columns in the order \
                            by list must be unique.";
            return Err(Error::new(169, text, ordering.value.at()));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// An item of ORDER BY; a number is the position of a column. `in_list`: it is in the list.
fn key(
    binder: &mut Binder<'_>,
    ordering: &Ordering,
    index: usize,
    items: &[Item],
    in_list: bool,
) -> Result<Key, Error> {
    if let (Expression::Variable(variable), true) = (&ordering.value, binder.dialect().is_strict) {
        let text = "A variable is not allowed as an item of ORDER BY: variables are only allowed when ordering by an \
                    expression referencing a column name.";
        return Err(Error::new(1008, text, variable.at).with_severity(16));
    }
    let own = match &ordering.value {
        Expression::Column(column) if in_list || column.table.is_none() => stored(&column.column),
        _ => String::new(),
    };
    let is_named = |item: &Item| item.name.as_deref().is_some_and(|name| stored(name) == own);
    let named = items.iter().position(|item| !own.is_empty() && is_named(item));
    let value = match (&ordering.value, named) {
        (Expression::Column(column), Some(_)) => {
            Value::new(expressions::column_sql(binder, column)?, UNKNOWN)
        }
        (other, _) => expressions::value(binder, other)?,
    };
    let is_constant = || value.integer().is_none() && walk::is_constant(&ordering.value);
    if value.is_null() || value.text().is_some() || binder.dialect().is_strict && is_constant() {
        let index = index + 1;
        let text = format!("A constant expression was encountered in the ORDER BY list, position {index}.");
        return Err(Error::new(408, text, ordering.value.at()).with_severity(16));
    }
    let value = conditions::collated_by_default(binder, value);
    let descending = ordering.descending;
    let of_item =
        |index: usize, sql: Scalar| Key { column: Some(index), sql, of: items[index].of, descending };
    if let Some(number) = value.integer() {
        let sql = value.sql;
        let before = items.iter().take_while(|item| item.name.is_some()).count();
        let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        return Ok(match index {
            Some(index) if index < before => of_item(index, sql),
            // PostgreSQL reports that there is none
            _ => Key { column: None, sql, of: INT, descending },
        });
    }
    let by_value = || items.iter().position(|item| item.value == value.sql);
    let is_bare = matches!(&ordering.value, Expression::Column(column) if column.table.is_none());
    // the columns of the list precede those of the tables
    let index = if is_bare { named.or_else(by_value) } else { by_value().or(named) };
    if let Some(index) = index {
        let item = &items[index];
        if is_bare && items.iter().any(|other| is_named(other) && other.value != item.value) {
            // PostgreSQL reports that it is ambiguous
            return Ok(Key { column: None, sql: value.sql, of: INT, descending });
        }
        return Ok(of_item(index, value.sql));
    }
    Ok(Key { column: None, of: value.of, sql: value.sql, descending })
}

/// ORDER BY of a window or of STRING_AGG.
pub fn ordered_by(binder: &mut Binder<'_>, orderings: &[Ordering]) -> Result<Vec<Order>, Error> {
    let mut by = Vec::with_capacity(orderings.len());
    for ordering in orderings {
        let value = expressions::value(binder, &ordering.value)?;
        if value.constant != Constant::None
            || binder.dialect().is_strict && walk::is_constant(&ordering.value)
        {
            let (number, what) = match value.family() {
                Family::Integer => (5308, "integer indices"),
                _ => (5309, "constants"),
            };
            let text = format!(
                    "Windowed functions, aggregates and NEXT VALUE FOR functions do not support {what} as ORDER BY \
                     clause expressions."
                );
            return Err(Error::new(number, text, ordering.value.at()).with_severity(16));
        }
        demand_sorted(value.of, ordering.value.at(), binder.dialect())?;
        let value = conditions::collated_by_default(binder, value);
        by.push(Order::by(in_order(value.sql, value.of), ordering.descending));
    }
    Ok(by)
}

/// 306: values of this type are not sorted.
pub fn demand_sorted(of: Type, at: Position, dialect: &Dialect) -> Result<(), Error> {
    if is_sorted(of, dialect) {
        return Ok(());
    }
    let (number, text) = unsorted();
    Err(Error::new(number, text, at).with_severity(16))
}

/// The column by which rows are ordered; None for anything else, such as the name of a result column.
pub fn plain_key(
    binder: &Binder<'_>,
    expression: &Expression,
    items: &[Item],
) -> Result<Option<Scalar>, Error> {
    let Expression::Column(column) = expression else { return Ok(None) };
    let sql = expressions::column_sql(binder, column)?;
    let own = folded(&column.column, column.at.line)?;
    let is_other = |item: &Item| {
        let name = item.name.as_deref().unwrap_or("");
        !name.is_empty() && stored(name) == own && item.value != sql
    };
    Ok((!items.iter().any(is_other)).then_some(sql))
}

/// Whether two items of ORDER BY name the same column, or one of them is its number.
fn are_alike(one: &Expression, other: &Expression) -> bool {
    let is_number = |of: &Expression| matches!(of, Expression::Literal(literal) if matches!(literal.value, LiteralValue::Integer(_)));
    match (one, other) {
        (Expression::Column(one), Expression::Column(other)) => {
            one.column.eq_ignore_ascii_case(&other.column)
        }
        (Expression::Column(_), other) => is_number(other),
        (one, Expression::Column(_)) => is_number(one),
        (one, other) => is_number(one) && is_number(other),
    }
}

/// 1033: the order of the rows of a view, function or subquery is undefined.
pub fn refuse_order(query: &tree::Query, dialect: &Dialect) -> Result<(), Error> {
    if let QueryBody::Parenthesised(inner) = &query.body {
        refuse_order(inner, dialect)?;
    }
    let has_top = matches!(&query.body, QueryBody::Select(select) if select.top.is_some());
    match query.order_by.first() {
        Some(first)
            if query.offset.is_none() && !has_top && query.for_json.is_none() && dialect.is_strict =>
        {
            let text =
                "The ORDER BY clause is invalid in views, inline functions, derived tables, subqueries, and \
                        common table expressions, unless TOP, OFFSET or FOR XML is also specified.";
            Err(Error::new(1033, text, first.value.at()))
        }
        _ => Ok(()),
    }
}

/// Whether PostgreSQL orders the values of a type as T-SQL does.
fn is_plain(of: Type) -> bool {
    of.is_tsql() && of != GUID
}

/// The key by which PostgreSQL orders values of this type as T-SQL does.
pub fn in_order(value: Scalar, of: Type) -> Scalar {
    match of.family {
        Family::Guid => call("tsql.guid_key", [value]),
        Family::Postgres => call("tsql.ordered", [value]),
        _ => value,
    }
}
