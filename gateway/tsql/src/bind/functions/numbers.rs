//! Functions of numbers.

use super::calls::CallBinder;
use crate::bind::values::{converted, Value};
use crate::error::Error;
use crate::facts::types::{decimal, Family, Type, BIT, FLOAT, INT, MONEY, REAL, SMALLINT, TINYINT, UNKNOWN};
use crate::postgres::{call, Scalar};

fn argument(value: &Value) -> Scalar {
    value.or_null_of("integer")
}

fn is_small(of: Type) -> bool {
    [TINYINT, SMALLINT, BIT].contains(&of)
}

/// abs, ceiling, floor, sign, degrees, radians: the value keeps its kind of number.
pub fn keeps_kind(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let mut value = called.value(0)?;
    if value.is_text() {
        value = converted(value, FLOAT, called.line, called.dialect())?;
    }
    // in ASE of the type of its argument
    let keeps_type = called.name == "abs" && called.dialect().is_ase;
    if value.of == BIT || value.of == REAL && !keeps_type {
        value = converted(value, FLOAT, called.line, called.dialect())?;
    } else if is_small(value.of) {
        value = converted(value, INT, called.line, called.dialect())?;
    }
    let is_abs = called.name == "abs";
    let of = value.of;
    let of = match of.family {
        _ if keeps_type => of,
        Family::Decimal if matches!(called.name, "ceiling" | "floor") => {
            Type { twin: of.twin, ..decimal(of.precision.unwrap_or(38), 0) }
        }
        Family::Decimal if called.name == "sign" => of,
        Family::Money if is_abs || called.name == "sign" => MONEY,
        Family::Money if matches!(called.name, "degrees" | "radians") => UNKNOWN,
        Family::Decimal if !is_abs => UNKNOWN,
        _ => of,
    };
    Ok(Value::new(call(format!("tsql.{}", called.name), [argument(&value)]), of))
}

pub fn round(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let number = called.count(2, 3)?;
    let mut value = called.value(0)?;
    if value.is_text() {
        value = converted(value, FLOAT, called.line, called.dialect())?;
    }
    if is_small(value.of) {
        value = converted(value, INT, called.line, called.dialect())?;
    }
    let digits = called.integer(1)?;
    let cut = match number {
        3 => called.integer(2)?.infix("<>", Scalar::number(0)),
        _ => Scalar::Boolean(false),
    };
    let of = match value.of {
        REAL => FLOAT,
        of if of.family == Family::Money => MONEY,
        of => of,
    };
    let sql = call("tsql.round", [argument(&value), digits, cut]);
    Ok(match of.family {
        Family::Decimal => Value::cast(sql, of),
        _ => Value::new(sql, of),
    })
}

pub fn power(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let mut value = called.value(0)?;
    if value.of == REAL || value.is_text() {
        value = converted(value, FLOAT, called.line, called.dialect())?;
    }
    let sql = call("tsql.power", [argument(&value), called.float(1)?]);
    Ok(match value.of {
        of if is_small(of) => Value::new(sql, INT),
        of if of.family == Family::Decimal => {
            let of = Type { twin: of.twin, ..decimal(38, of.scale.unwrap_or(0)) };
            Value::cast(sql, of)
        }
        of if of.family == Family::Money => Value::new(sql, MONEY),
        of => Value::new(sql, of),
    })
}

pub fn rand(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    if !called.arguments.is_empty() {
        return Err(Error::refused("rand(seed)", "PostgreSQL's numbers are others", called.line));
    }
    Ok(Value::new(call("random", []).once(), FLOAT))
}

pub fn is_numeric(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let value = called.value(0)?;
    if value.of == BIT {
        return Ok(Value::new(Scalar::number(0), INT));
    }
    if value.of.is_number() {
        let arms = vec![(value.sql.is_null(true), Scalar::number(0))];
        return Ok(Value::new(Scalar::Case(arms, Some(Box::new(Scalar::number(1)))), INT));
    }
    Ok(Value::new(call("tsql.isnumeric", [value.sql]), INT))
}
