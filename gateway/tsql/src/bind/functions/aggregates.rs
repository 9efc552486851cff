//! Aggregates and window functions.

use super::calls::CallBinder;
use super::next_value::refuse_next_value;
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::expressions::{conditions, walk};
use crate::bind::query::order;
use crate::bind::values::{converted, lengths, Value};
use crate::error::Error;
use crate::facts::conversions::is_sorted;
use crate::facts::functions::Rule;
use crate::facts::types::{
    decimal, varchar, Family, Type, BIGINT, BIT, CHAR, FLOAT, INT, MONEY, REAL, SMALLINT, TINYINT,
};
use crate::postgres::{call, Call, Over, Scalar};
use crate::tree::{Arguments, Window};
use std::borrow::Cow;

/// The window of a function.
pub fn window(
    binder: &mut Binder<'_>,
    window: &Window,
    rule: Rule,
    name: &str,
    line: u32,
) -> Result<Over, Error> {
    if rule == Rule::StringAgg && binder.dialect().is_strict {
        let text =
            format!("The function '{name}' is not a valid windowing function, and cannot be used with the OVER clause.");
        return Err(Error::new(4113, text, line));
    }
    let mut partition_by = Vec::with_capacity(window.partition_by.len());
    for part in &window.partition_by {
        partition_by.push(expressions::value(binder, part)?.sql);
    }
    let order_by = order::ordered_by(binder, &window.order_by)?;
    if order_by.is_empty() && rule.is_ranking() {
        let text = format!("The function '{name}' must have an OVER clause with ORDER BY.");
        return Err(Error::new(4112, text, line));
    }
    if window.frame.is_some() {
        if rule.is_ranking() && rule != Rule::Edge {
            let text = format!("The function '{name}' may not have a window frame.");
            return Err(Error::new(10752, text, line));
        }
        if order_by.is_empty() {
            let text = "Window frame with ROWS or RANGE must have an ORDER BY clause.";
            return Err(Error::new(10756, text, line));
        }
    }
    Ok(Over { partition_by, order_by, frame: window.frame.clone() })
}

/// An aggregate over its window.
fn aggregate(
    called: &mut CallBinder<'_, '_, '_>,
    function: impl Into<Cow<'static, str>>,
    arguments: impl Into<Vec<Scalar>>,
) -> Scalar {
    count(called);
    let (function, arguments) = (function.into(), arguments.into());
    let (distinct, over) = (called.of.distinct, called.over.clone());
    Scalar::from(Call { function, arguments, distinct, over, ..Call::default() })
}

fn count(called: &mut CallBinder<'_, '_, '_>) {
    let aggregates = &mut called.binder.around.aggregates;
    aggregates.all += 1;
    aggregates.plain += usize::from(called.over.is_none());
}

fn aggregated(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    if called.of.arguments == Arguments::Star {
        return Err(Error::syntax("*", called.line));
    }
    called.count(1, 1)?;
    let is_plain = called.over.is_none();
    let aggregates = called.binder.around.aggregates;
    let has_query = called.dialect().is_strict && is_plain && walk::has_query(&called.arguments[0]);
    let numbers = called.binder.around.next_values;
    let value = called.value(0)?;
    refuse_next_value(called.binder, numbers, 11725, called.line)?;
    if has_query || is_plain && called.binder.around.aggregates.plain > aggregates.plain {
        let text =
            "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.";
        return Err(called.fail(130, text));
    }
    if value.is_null() && called.dialect().checks_arguments {
        let text = format!("Operand data type NULL is invalid for {} operator.", called.name);
        return Err(called.fail(8117, text));
    }
    let sorts = called.of.distinct || matches!(called.name, "min" | "max");
    if sorts && !is_sorted(value.of, called.dialect()) {
        let of = value.of.display_name();
        let text = format!("Operand data type {of} is invalid for {} operator.", called.name);
        return Err(called.fail(8117, text));
    }
    Ok(conditions::collated_by_default(called.binder, value))
}

pub fn number_of_rows(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let counted = if called.of.arguments == Arguments::Star {
        if called.of.distinct {
            return Err(Error::syntax("*", called.line));
        }
        Scalar::Star
    } else {
        aggregated(called)?.sql
    };
    let sql = aggregate(called, "count", [counted]);
    Ok(match called.name {
        "count_big" => Value::new(sql, BIGINT),
        _ => Value::cast(sql, INT),
    })
}

/// sum and avg
pub fn sum(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let value = aggregated(called)?;
    refuse_operand(called, value.of, true)?;
    let of = match value.of {
        TINYINT | SMALLINT => INT,
        REAL => FLOAT,
        of if of.family == Family::Decimal && called.name == "avg" => {
            return Ok(decimal_average(called, value.sql, of));
        }
        of if of.family == Family::Decimal => {
            let of = Type { twin: of.twin, ..decimal(38, of.scale.unwrap_or(0)) };
            return Ok(Value::cast(aggregate(called, "tsql.sum", [value.sql]), of));
        }
        of if of.family == Family::Money => MONEY,
        of => of,
    };
    Ok(Value::new(aggregate(called, format!("tsql.{}", called.name), [value.sql]), of))
}

fn decimal_average(called: &mut CallBinder<'_, '_, '_>, value: Scalar, of: Type) -> Value {
    let scale = of.scale.unwrap_or(0).max(6);
    let total = aggregate(called, "tsql.sum", [value.clone()]);
    let number = call("nullif", [aggregate(called, "count", [value]), Scalar::number(0)]).cast("numeric");
    let of = Type { twin: of.twin, ..decimal(38, scale) };
    Value::cast(call("tsql.quotient", [total, number, Scalar::number(scale)]), of)
}

/// min and max
pub fn extreme(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let value = aggregated(called)?;
    // PostgreSQL has none for these, or orders them differently
    let is_own = |of: Type| {
        of.folds()
            || !of.is_tsql()
            || matches!(
                of.name,
                "datetimeoffset" | "sql_variant" | "uniqueidentifier" | "money" | "smallmoney"
            )
    };
    let schema = if is_own(value.of) { "tsql." } else { "" };
    refuse_operand(called, value.of, false)?;
    let sql = aggregate(called, format!("{schema}{}", called.name), [value.sql]);
    Ok(match value.of {
        of if of.name == CHAR.name => Value::cast(sql, of),
        of if of.is_text() => {
            Value::cast(sql, Type { case: of.case, ..varchar(of.length) }.with_characters([of]))
        }
        of => Value::new(sql, of),
    })
}

fn refuse_operand(called: &CallBinder<'_, '_, '_>, of: Type, numbers: bool) -> Result<(), Error> {
    if of == BIT || (numbers && of.is_tsql() && !of.is_number()) {
        let text = format!("Operand data type {} is invalid for {} operator.", of.name, called.name);
        return Err(called.fail(8117, text));
    }
    Ok(())
}

pub fn spread(called: &mut CallBinder<'_, '_, '_>, function: &'static str) -> Result<Value, Error> {
    let value = aggregated(called)?;
    if value.family() == Family::Variant {
        refuse_operand(called, value.of, true)?;
    }
    let float = converted(value, FLOAT, called.line, called.dialect())?.sql;
    Ok(Value::new(aggregate(called, function, [float]), FLOAT))
}

/// `string_agg(text, separator) [within group (order by …)]`
pub fn string_agg(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    if called.over.is_some() || called.of.distinct {
        return Err(Error::syntax("string_agg", called.line));
    }
    let separator = &called.arguments[1];
    if walk::has_column(separator) || walk::has_query(separator) {
        let text = "Separator parameter for STRING_AGG must be a string literal or variable.";
        return Err(called.fail(8733, text));
    }
    let value = called.value(0)?;
    let (text, separator) = (called.as_text(&value)?, called.text(1)?);
    let order_by = order::ordered_by(called.binder, &called.of.within_group)?;
    // a number becomes an nvarchar
    let is_number = value.of.is_tsql() && !value.is_text();
    let twin = is_number && called.dialect().limits_lengths;
    let of = Type { twin, case: value.case(), ..varchar(None) }.with_characters([value.characters()]);
    let is_bounded = called.dialect().limits_lengths && lengths::of_text(&value).is_some();
    let length = is_bounded.then(|| lengths::longest(of.is_national()));
    let of = Type { length, ..of };
    let text = if of.folds() { text.cast("text") } else { text };
    count(called);
    let (function, arguments) = ("string_agg".into(), vec![text, separator]);
    let sql = Scalar::from(Call { function, arguments, order_by, ..Call::default() });
    let sql = match length {
        Some(length) => call("tsql.aggregated_text", [sql, Scalar::number(length)]),
        None => sql,
    };
    Ok(if of.folds() || length.is_some() { Value::cast(sql, of) } else { Value::new(sql, of) })
}

/// row_number, rank, dense_rank
pub fn ranking(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(0, 0)?;
    Ok(Value::new(aggregate(called, called.name.to_owned(), []), BIGINT))
}

pub fn n_tile(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let number = called.integer(0)?;
    Ok(Value::cast(aggregate(called, "ntile", [number]), BIGINT))
}

/// first_value and last_value
pub fn edge(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let value = called.value(0)?;
    Ok(Value::new(aggregate(called, called.name.to_owned(), [value.sql]), value.of))
}

/// percent_rank and cume_dist
pub fn share(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(0, 0)?;
    Ok(Value::new(aggregate(called, called.name.to_owned(), []), FLOAT))
}

/// grouping and grouping_id: a bit for each column, set if the row's group is not by this column
pub fn grouping(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let most = if called.name == "grouping" { 1 } else { 32 };
    let number = called.count(1, most)?;
    let values: Result<Vec<_>, _> = (0..number).map(|index| called.value(index)).collect();
    let values: Vec<_> = values?.into_iter().map(|value| value.sql).collect();
    let sql = aggregate(called, "grouping", values);
    Ok(match called.name {
        "grouping" => Value::cast(sql, TINYINT),
        _ => Value::new(sql, INT),
    })
}

/// lag and lead
pub fn neighbour(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let number = called.count(1, 3)?;
    let value = called.value(0)?;
    let mut arguments = vec![value.sql];
    if number > 1 {
        if called.value(1)?.integer().is_some_and(|offset| offset < 0) {
            let text = "Offset parameter for Lag and Lead functions cannot be a negative value.";
            return Err(called.fail(8730, text));
        }
        arguments.push(called.integer(1)?);
    }
    if number > 2 {
        let default = called.value(2)?;
        let default = match value.of.is_tsql() {
            true => converted(default, value.of, called.line, called.dialect())?,
            false => default,
        };
        arguments.push(default.sql);
    }
    Ok(Value::new(aggregate(called, called.name.to_owned(), arguments), value.of))
}
