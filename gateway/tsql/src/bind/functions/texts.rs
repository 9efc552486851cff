//! Functions of texts.

use super::calls::CallBinder;
use super::result_lengths;
use crate::bind::expressions::conversions::wide_bytes;
use crate::bind::values::{lengths, Value};
use crate::error::Error;
use crate::facts::arguments;
use crate::facts::functions::{HASH_RESULT, NONE_SUCH};
use crate::facts::types::{
    nvarchar, varchar, Family, Type, BIGINT, BIT, CHAR, INT, SMALLDATETIME, TINYINT, VARBINARY,
};
use crate::postgres::{call, Scalar};
use crate::tree::Expression;

/// A text made of the characters of `from`.
fn text_result(sql: Scalar, length: Option<u32>, from: &[Value]) -> Value {
    let case = from.iter().map(Value::case).max().unwrap_or_default();
    let of = Type { case, ..varchar(length.map(|length| length.max(1))) };
    let of = of.with_characters(from.iter().map(Value::characters));
    match of.length {
        None if !of.folds() => Value::new(sql, of),
        _ => Value::cast(sql, of),
    }
}

/// Whether a text counts as UTF-16, by the client's server.
fn is_wide(called: &CallBinder<'_, '_, '_>, value: &Value) -> bool {
    called.dialect().has_wide_texts && value.of.is_wide()
}

/// upper, lower, reverse, ltrim, rtrim, trim
pub fn same_length(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let is_trim = ["trim", "ltrim", "rtrim"].contains(&called.name);
    called.count(1, if is_trim && called.dialect().trim_takes_characters { 2 } else { 1 })?;
    let value = called.value(0)?;
    let text = called.as_text(&value)?;
    if called.arguments.len() == 2 && called.binder.scope.folds {
        let characters = called.value(1)?;
        if characters.text().is_none_or(|text| text.chars().any(char::is_alphabetic)) {
            let why = "letters of both cases would go: use replace()";
            return Err(Error::refused(&format!("{}() of characters", called.name), why, called.line));
        }
    }
    let sql = match called.name {
        "trim" if called.arguments.len() == 2 => call("tsql.trim", [text, called.text(1)?]),
        "trim" => call("tsql.ltrim", [call("tsql.rtrim", [text])]),
        name if called.arguments.len() == 2 => call(name.to_owned(), [text, called.text(1)?]),
        name => call(format!("tsql.{name}"), [text]),
    };
    let length = match called.dialect().limits_lengths {
        true if !value.of.is_large() => lengths::of_text(&value),
        _ => value.length(),
    };
    Ok(text_result(sql, length, &[value]))
}

/// left, right
pub fn side(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let value = called.value(0)?;
    if value.family() == Family::Binary && called.dialect().is_ase && called.name == "right" {
        return Ok(Value::new(call("tsql.right", [value.sql, called.integer(1)?]), VARBINARY));
    }
    let sql = call(format!("tsql.{}", called.name), [called.as_text(&value)?, called.integer(1)?]);
    Ok(text_result(sql, result_lengths::of_part(called, &value, 1), &[value]))
}

pub fn substring(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(3, 3)?;
    let value = called.value(0)?;
    let takes = |of: Type| of.is_text() || matches!(of.family, Family::Binary | Family::Variant);
    let is_refused = value.is_null() || value.of.is_tsql() && !takes(value.of);
    if called.dialect().checks_arguments && is_refused {
        return Err(invalid_argument(called, 0, &value));
    }
    let (start, length) = (whole(called, 1)?, whole(called, 2)?);
    if value.family() == Family::Binary {
        let of = Type { length: result_lengths::of_part(called, &value, 2), ..VARBINARY };
        return Ok(Value::new(call("tsql.substring", [value.sql, start, length]), of));
    }
    let sql = call("tsql.substring", [called.as_text(&value)?, start, length]);
    Ok(text_result(sql, result_lengths::of_part(called, &value, 2), &[value]))
}

/// A position or length, which cannot be a text in SQL Server.
pub fn whole(called: &mut CallBinder<'_, '_, '_>, index: usize) -> Result<Scalar, Error> {
    let value = called.value(index)?;
    match value.is_text() && called.dialect().checks_arguments {
        true => Err(invalid_argument(called, index, &value)),
        false => called.integer(index),
    }
}

fn invalid_argument(called: &CallBinder<'_, '_, '_>, index: usize, value: &Value) -> Error {
    called.fail(8116, arguments::message(called.name, index, value.shown_type()))
}

pub fn str(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let number = called.count(1, 3)?;
    let float = called.float(0)?;
    let length = if number > 1 { called.integer(1)? } else { Scalar::number(10) };
    let decimals = if number > 2 { called.integer(2)? } else { Scalar::number(0) };
    let width = if number > 1 { called.value(1)?.integer() } else { Some(10) };
    let width = width.and_then(|width| u32::try_from(width).ok());
    Ok(text_result(call("tsql.str", [float, length, decimals]), width, &[]))
}

pub fn concat(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    if called.arguments.len() < 2 {
        return Err(Error::new(189, "The concat function requires 2 to 254 arguments.", called.line));
    }
    let values = called.values()?;
    let mut parts = Vec::with_capacity(values.len());
    for value in &values {
        parts.push(call("coalesce", [called.as_text(value)?, Scalar::text("")]));
    }
    let length = result_lengths::of_all(called, &values, None);
    Ok(text_result(call("concat", parts), length, &values))
}

/// `concat_ws(separator, …)`: nulls are omitted, with their separators.
pub fn concat_with(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    if called.arguments.len() < 3 {
        let text = "The concat_ws function requires 3 to 254 arguments.";
        return Err(Error::new(189, text, called.line));
    }
    let values = called.values()?;
    let mut parts = Vec::with_capacity(values.len());
    for value in &values {
        parts.push(called.as_text(value)?);
    }
    let separator = parts.remove(0);
    parts.insert(0, call("coalesce", [separator, Scalar::text("")]));
    let length = result_lengths::of_all(called, &values[1..], values.first());
    Ok(text_result(call("concat_ws", parts), length, &values))
}

/// `replicate(text, number)`: cut at 8,000 bytes unless the text is a varchar(max).
pub fn replicate(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let value = called.value(0)?;
    let arguments = [called.as_text(&value)?, called.integer(1)?];
    let is_long = value.is_text() && value.of.length.is_none();
    let sql = match (is_long, is_wide(called, &value)) {
        (true, _) => call("tsql.replicate_max", arguments),
        (false, false) => call("tsql.replicate", arguments),
        (false, true) => call("tsql.cut", [call("tsql.replicate", arguments), Scalar::number(4000)]),
    };
    let length = if is_long { None } else { result_lengths::of_repeated(called, &value, 1) };
    Ok(text_result(sql, length, &[value]))
}

/// `formatmessage(text, …)`: formatted like raiserror.
pub fn format_message(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 21)?;
    if matches!(&called.arguments[0], Expression::Literal(_)) && called.value(0)?.text().is_none() {
        let why = "there are no messages with numbers: give the text";
        return Err(Error::refused("formatmessage(number, …)", why, called.line));
    }
    let text = called.text(0)?;
    let mut parts = Vec::with_capacity(called.arguments.len());
    for index in 1..called.arguments.len() {
        parts.push(called.text(index)?);
    }
    let sql = call("tsql.format_message", [text, Scalar::Array(parts, "text")]);
    Ok(Value::new(sql, nvarchar(Some(2047))))
}

/// FORMAT of a number or a time, whose kind PostgreSQL determines.
pub fn format(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let given = called.count(2, 3)?;
    if !called.dialect().has_format {
        return Err(Error::refused("format()", NONE_SUCH, called.line));
    }
    let value = called.value(0)?;
    let is_formatted = |family| {
        use Family::{Date, DateTime, Decimal, Float, Integer, Money, Time};
        matches!(family, Integer | Money | Decimal | Float | Time | Date | DateTime)
    };
    if value.is_null() || value.of.is_tsql() && !is_formatted(value.family()) {
        return Err(invalid_argument(called, 0, &value));
    }
    let format = called.text(1)?;
    let culture = if given == 3 { called.text(2)? } else { Scalar::text("en-US") };
    Ok(Value::cast(call("tsql.format", [value.sql, format, culture]), nvarchar(Some(4000))))
}

/// UTF-16 units, or bytes of binaries; PostgreSQL counts if only it knows the type.
pub fn length(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let value = called.value(0)?;
    let counted = match value.family() {
        Family::Postgres | Family::Binary if !value.is_null() => value.sql,
        _ => called.as_text(&value)?,
    };
    Ok(number(called, call("tsql.len", [counted]), value.of))
}

/// A length, which is a bigint of a (max).
fn number(called: &CallBinder<'_, '_, '_>, sql: Scalar, counted: Type) -> Value {
    match called.dialect().limits_lengths && lengths::is_endless(counted) {
        true => Value::cast(sql, BIGINT),
        false => Value::new(sql, INT),
    }
}

/// Bytes, if they follow from the type; otherwise PostgreSQL counts them.
pub fn data_length(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let value = called.value(0)?;
    let fixed = match (value.of, value.of.name) {
        (TINYINT | BIT, _) => Some(1),
        (SMALLDATETIME, _) | (_, "smallmoney") => Some(4),
        (_, "money") => Some(8),
        (_, "date") => Some(3),
        (_, "time") => Some(5),
        _ => None,
    };
    if value.family() == Family::Decimal {
        let arguments = [value.sql.cast("numeric"), Scalar::number(value.of.scale.unwrap_or(0))];
        return Ok(Value::new(call("tsql.decimal_size", arguments), INT));
    }
    Ok(match fixed {
        Some(bytes) => {
            let is_filled = value.sql.is_null(false);
            Value::new(Scalar::Case(vec![(is_filled, Scalar::number(bytes))], None), INT)
        }
        None if !value.of.is_tsql() || value.of.is_text() => {
            let sql = match is_wide(called, &value) {
                false => call("tsql.datalength", [value.sql]),
                true => {
                    let text = match value.of.name == CHAR.name {
                        true => call("tsql.padded", [value.sql]),
                        false => called.as_text(&value)?,
                    };
                    call("tsql.datalength_wide", [text])
                }
            };
            number(called, sql, value.of)
        }
        None => number(called, call("tsql.datalength", [value.sql]), value.of),
    })
}

/// `hashbytes('algorithm', value)`
pub fn hash_bytes(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let algorithm = called.text(0)?;
    let value = called.value(1)?;
    if value.of.is_tsql() && !value.is_text() && value.family() != Family::Binary {
        return Err(invalid_argument(called, 1, &value));
    }
    let bytes = match is_wide(called, &value) {
        false => call("tsql.varbytes", [value.sql]),
        true => wide_bytes(&value).sql,
    };
    Ok(Value::new(call("tsql.hashbytes", [algorithm, bytes]), HASH_RESULT))
}
