//! VALUES: rows of expressions.

use crate::bind::binder::item::{Item, Written};
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::expressions::conditions;
use crate::bind::values::assignments::implicit;
use crate::bind::values::{common, Value};
use crate::error::Error;
use crate::facts::types::Type;
use crate::postgres::{Body, Scalar};
use crate::tree::Expression;

pub fn values(binder: &mut Binder<'_>, rows: &[Vec<Expression>], line: u32) -> Result<Written, Error> {
    let mut rows = self::rows(binder, rows, line)?;
    for value in rows.iter_mut().flatten() {
        *value = value.take().map(|value| conditions::collated_by_default(binder, value));
    }
    let width = rows.first().map_or(0, Vec::len);
    let item = |of| Item { of, ..Item::new(Scalar::Null, Some(String::new())) };
    let items = (0..width).map(|index| item(column_of(&rows, index))).collect();
    let row = |row: Vec<Option<Value>>| row.into_iter().flatten().map(|value| value.sql).collect();
    let rows = Body::Values(rows.into_iter().map(row).collect());
    Ok(Written { sql: rows.into(), items })
}

/// The values of rows; those of one column have one type. None represents DEFAULT.
pub fn rows(
    binder: &mut Binder<'_>,
    rows: &[Vec<Expression>],
    line: u32,
) -> Result<Vec<Vec<Option<Value>>>, Error> {
    let width = rows.first().map_or(0, Vec::len);
    let mut read = Vec::with_capacity(rows.len());
    for row in rows {
        if row.len() != width {
            let text = "The number of columns for each row in a table value constructor must be the same.";
            return Err(Error::new(10709, text, line).with_severity(16));
        }
        let mut values = Vec::with_capacity(width);
        for value in row {
            values.push(match value {
                Expression::Default(_) => None,
                value => Some(expressions::value(binder, value)?),
            });
        }
        read.push(values);
    }
    if read.len() < 2 {
        return Ok(read);
    }
    for index in 0..width {
        let of = common(read.iter().filter_map(|row| row[index].as_ref()));
        if !of.is_tsql() {
            continue;
        }
        for row in &mut read {
            if let Some(value) = row[index].take_if(|value| !value.is_null() && value.of != of) {
                row[index] = Some(implicit(value, of, line, binder.dialect())?);
            }
        }
    }
    Ok(read)
}

/// The type of a column of rows of values.
fn column_of(rows: &[Vec<Option<Value>>], index: usize) -> Type {
    let values = rows.iter().filter_map(|row| row.get(index)?.as_ref());
    common(values)
}
