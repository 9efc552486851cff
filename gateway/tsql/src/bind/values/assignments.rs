//! Values that are assigned: to a variable, whose type they get exactly, or to a column, whose length PostgreSQL enforces.

use super::{converted, of_own_type, text_of, Value};
use crate::error::Error;
use crate::facts::conversions::{self, class};
use crate::facts::types::{self, Family, Type, DATETIME, MOST_DIGITS, SQL_VARIANT, UNKNOWN, VARCHAR, XML};
use crate::postgres::{call, Scalar};
use crate::Dialect;

/// A value converted for a variable; the type of the SQL is exactly the variable's. Errors 206 and 257 if there is no
/// implicit conversion.
pub fn assigned(value: Value, target: Type, line: u32, dialect: &Dialect) -> Result<Value, Error> {
    let value = by_itself(value, target, line, dialect)?;
    let value = if dialect.decimals_keep_digits { scaled(value, target) } else { value };
    if target == XML {
        return Ok(Value::new(as_xml(value, line)?, target));
    }
    let value = converted(value, target, line, dialect)?;
    let target = target.of_values();
    Ok(match value.is_cast_to(target) {
        true => Value { of: target, ..value },
        false => Value::cast(value.sql, target),
    })
}

/// Converts a decimal to one of fewer decimals, or to a whole number: error 241 if it would lose digits (ASE Reference
/// Manual: Building Blocks, "Scale errors", "Converting between numeric types").
fn scaled(value: Value, target: Type) -> Value {
    let loses = |of: Type| match target.family {
        Family::Decimal => matches!(of.family, Family::Decimal | Family::Money),
        _ => of.family == Family::Decimal,
    };
    let is_number = matches!(target.family, Family::Decimal | Family::Integer);
    if value.is_null() || !is_number || value.of.is_tsql() && !loses(value.of) {
        return value;
    }
    let sql = scaled_to(value.sql.clone(), target);
    value.with_sql(sql)
}

/// Converts a decimal, given as SQL, to a number type in ASE.
pub fn scaled_to(sql: Scalar, target: Type) -> Scalar {
    let shown = if target.family == Family::Decimal { "NUMERIC" } else { target.name };
    let (precision, scale) = (target.precision.unwrap_or(38), target.scale.unwrap_or(0));
    let digits = [precision, scale].map(Scalar::number);
    let [precision, scale] = digits;
    call("tsql.scaled", [sql, precision, scale, Scalar::Text(shown.to_uppercase())])
}

/// Like `converted`, where T-SQL converts implicitly: errors 206 and 257 for conversions that need CAST.
pub fn implicit(value: Value, target: Type, line: u32, dialect: &Dialect) -> Result<Value, Error> {
    converted(by_itself(value, target, line, dialect)?, target, line, dialect)
}

fn by_itself(value: Value, target: Type, line: u32, dialect: &Dialect) -> Result<Value, Error> {
    let of = value.of;
    if value.is_null() || !of.is_tsql() {
        // every value that has a text converts to text
        if value.is_null() || target.is_text() {
            return Ok(value);
        }
        let name = conversions::name(class(target));
        let arguments = [value.sql.clone(), Scalar::text(name), Scalar::Boolean(dialect.is_ase)];
        return Ok(value.with_sql(call("tsql.assigned", arguments)));
    }
    let is_long = matches!(of.family, Family::Text | Family::Binary) && of.length.is_none();
    let is_wide_for_bytes = of.is_wide() && target.family == Family::Binary && dialect.has_wide_texts;
    let error = match conversions::assignment_error(class(of), class(target), dialect.chart) {
        None if target == SQL_VARIANT && is_long => Some(conversions::CLASH),
        None if is_wide_for_bytes => Some(conversions::NOT_BY_ITSELF),
        error => error,
    };
    match error {
        None => Ok(value),
        Some(number) => {
            let source = if is_long { of.declared() } else { of.display_name().to_owned() };
            let text = conversions::message(number, &source, target.name);
            Err(Error::new(number, text, line).with_severity(16))
        }
    }
}

/// A value converted for a column of this type, whose length PostgreSQL enforces; one of PostgreSQL's own types it
/// converts by itself. Errors 206 and 257 if there is no implicit conversion.
pub fn stored(value: &Value, target: Type, line: u32, dialect: &Dialect) -> Result<Scalar, Error> {
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    let value = value.clone().with_sql(typed_parameter(value));
    if target == types::ANY_NUMERIC {
        let value = by_itself(value, types::decimal(MOST_DIGITS, 0), line, dialect)?;
        return Ok(call("tsql.to_numeric", [value.sql]));
    }
    if !target.is_tsql() {
        return Ok(value.sql);
    }
    // a placeholder, which is described only
    if value.of == UNKNOWN && value.is_parameter() {
        return Ok(value.sql.cast(target.sql()));
    }
    let value = by_itself(value, target, line, dialect)?;
    match (target.family, value.family()) {
        (Family::Text, _) => Ok(stored_text(&value, target, dialect)),
        (Family::Binary, Family::Binary) => Ok(value.sql),
        (Family::Binary, Family::Text | Family::Guid) => Ok(call("tsql.varbytes", [value.sql])),
        (Family::Xml, _) => as_xml(value, line),
        // PostgreSQL's domain demands the steps of a datetime
        (Family::DateTime, Family::DateTime) if target == DATETIME => {
            Ok(call("tsql.to_datetime", [value.sql]))
        }
        _ => {
            let value = if dialect.decimals_keep_digits { scaled(value, target) } else { value };
            Ok(converted(value, target, line, dialect)?.sql)
        }
    }
}

fn as_xml(value: Value, line: u32) -> Result<Scalar, Error> {
    match value.family() {
        Family::Binary => Err(Error::refused("varbinary to xml", "convert it to varchar or nvarchar", line)),
        _ => Ok(value.sql.cast("xml")),
    }
}

fn stored_text(value: &Value, target: Type, dialect: &Dialect) -> Scalar {
    let of = value.of;
    let fits = |length| of.length.is_some_and(|own| own <= length);
    if of.name == VARCHAR.name && target.name != types::CHAR.name && target.length.is_none_or(fits) {
        return value.sql.clone();
    }
    let text = match of.family {
        Family::Binary if target.is_wide() && dialect.has_wide_texts => {
            call("tsql.wide_text", [value.sql.clone()])
        }
        _ => text_of(value, dialect),
    };
    // PostgreSQL counts characters, T-SQL units
    let counts =
        matches!(of.family, Family::Text | Family::Binary | Family::Xml | Family::Variant | Family::Postgres);
    match target.length.filter(|_| counts) {
        Some(length) => call("tsql.fitting", [text, Scalar::number(length)]),
        None => text,
    }
}

/// A value with its type if it is a parameter, which PostgreSQL would otherwise treat as a text.
fn typed_parameter(value: &Value) -> Scalar {
    match value.family() {
        Family::Text | Family::Money | Family::Variant | Family::Postgres => of_own_type(value.clone()).sql,
        _ if value.is_parameter() => {
            let plain = Type { precision: None, scale: None, fraction: None, ..value.of };
            value.sql.clone().cast(plain.sql())
        }
        _ => value.sql.clone(),
    }
}
