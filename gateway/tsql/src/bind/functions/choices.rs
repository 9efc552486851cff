//! Functions that give one of their arguments: isnull, coalesce, nullif, iif, choose, greatest and least.

use super::calls::CallBinder;
use crate::bind::expressions;
use crate::bind::expressions::conditions;
use crate::bind::values::assignments::implicit;
use crate::bind::values::{common, converted, Constant, Value};
use crate::error::Error;
use crate::facts::types::{Family, GUID, INT, SMALLINT, TINYINT};
use crate::postgres::{call, Scalar};

pub fn is_null(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let (first, second) = (called.value(0)?, called.value(1)?);
    if first.is_null() {
        return Ok(second);
    }
    let of = first.of;
    if !of.is_tsql() {
        return Ok(Value::new(call("coalesce", [first.sql, second.sql]), of));
    }
    // the result has the length of the variable or literal
    let keeps_length = of.name == "varchar" && of.length.is_some();
    if second.is_null() && !keeps_length {
        return Ok(first);
    }
    let second = implicit(second, of, called.line, called.dialect())?.sql;
    Ok(Value::new(call("coalesce", [first.sql, expressions::reached(called.binder, second)]), of))
}

pub fn coalesce(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    if called.arguments.len() < 2 {
        return Err(Error::new(174, "The coalesce function requires 2 or more arguments.", called.line));
    }
    let mut values = Vec::with_capacity(called.arguments.len());
    for argument in called.arguments {
        let value = expressions::value(called.binder, argument)?;
        if !value.is_null() {
            values.push(value);
        }
    }
    if values.is_empty() {
        let text = "At least one of the arguments to COALESCE must be an expression that is not NULL.";
        return Err(Error::new(4127, text, called.line));
    }
    let of = common(&values);
    let mut parts = Vec::with_capacity(values.len());
    for value in values {
        let part = match of.is_tsql() {
            true if value.of != of => implicit(value, of, called.line, called.dialect())?.sql,
            _ => value.sql,
        };
        parts.push(if parts.is_empty() { part } else { expressions::reached(called.binder, part) });
    }
    Ok(Value::new(call("coalesce", parts), of))
}

/// greatest and least: nulls do not count.
pub fn of_all(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    if called.arguments.is_empty() {
        let text = format!("The {} function requires 1 to 254 arguments.", called.name);
        return Err(Error::new(189, text, called.line));
    }
    let mut values = Vec::with_capacity(called.arguments.len());
    for argument in called.arguments {
        values.push(expressions::value(called.binder, argument)?);
    }
    let of = conditions::type_by_default(called.binder, common(&values));
    if !of.is_tsql() {
        let parts: Vec<Scalar> = values.into_iter().map(|value| value.sql).collect();
        return Ok(Value::new(call(called.name.to_owned(), parts), of));
    }
    let mut parts = Vec::with_capacity(values.len());
    for value in values {
        parts.push(implicit(value, of, called.line, called.dialect())?.sql);
    }
    let schema = if of == GUID { "tsql." } else { "" };
    Ok(Value::cast(call(format!("{schema}{}", called.name), parts), of))
}

pub fn null_if(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let (first, second) = (called.value(0)?, called.value(1)?);
    if first.is_null() && called.dialect().checks_arguments {
        let text =
            "The type of the first argument to NULLIF cannot be the NULL constant because the type of the \
                        first argument has to be known.";
        return Err(called.fail(4151, text));
    }
    // a literal alone has the smallest type here, as in no other function (measured of SQL Server: nullif(60, 76))
    let of = match first.constant {
        Constant::Integer(0..=255) => TINYINT,
        Constant::Integer(-32768..=32767) => SMALLINT,
        _ => first.of,
    };
    let first = match called.dialect().checks_arguments && of != first.of {
        true => Value::cast(first.sql, of),
        false => first,
    };
    let compared = conditions::collated_together(called.binder, [first.clone(), second.clone()]);
    let [left, right] = compared.map(|value| value.sql);
    let sql = Scalar::either(left.tsql("=", right), Scalar::Null, first.sql);
    Ok(match first.of {
        of if of.family == Family::Money => Value::money(sql, of),
        of => Value::new(sql, of),
    })
}

pub fn iif(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(3, 3)?;
    let condition = conditions::condition(called.binder, &called.arguments[0])?;
    expressions::branches(
        called.binder,
        vec![(condition, &called.arguments[1])],
        Some(&called.arguments[2]),
        called.line,
    )
}

/// `choose(index, first, second, …)`: null beyond the last.
pub fn choose(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    if called.arguments.len() < 2 {
        return Err(Error::new(174, "The choose function requires 2 or more arguments.", called.line));
    }
    let index = called.value(0)?;
    let index = converted(index, INT, called.line, called.dialect())?.sql;
    let branches = called.arguments[1..].iter().zip(1..);
    let is = |number: i32| index.clone().infix("=", Scalar::number(number));
    let branches = branches.map(|(value, number)| (is(number), value)).collect();
    expressions::branches(called.binder, branches, None, called.line)
}
