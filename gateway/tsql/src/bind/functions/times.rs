//! Functions of times.

use super::calls::CallBinder;
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::values::assignments::implicit;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::functions::{Clock, TZOFFSET};
use crate::facts::types::{
    nvarchar, Family, Type, DATE, DATETIME, DATETIME2, DATETIMEOFFSET, INT, MOST_FRACTION, SMALLDATETIME,
};
use crate::postgres::{call, Scalar};
use crate::tree::Expression;

fn moment(value: &Value) -> Scalar {
    value.or_null_of("timestamp")
}

/// A time, or the part of it that has this type.
fn in_part(time: Scalar, part: &Option<&'static str>) -> Scalar {
    match part {
        None => time,
        Some(part) => time.cast(*part),
    }
}

/// The name of a part of a date; a text, where PostgreSQL cannot infer it.
fn part_name(part: &str, is_open: bool) -> Scalar {
    match is_open {
        true => Scalar::text(part).cast("text"),
        false => Scalar::text(part),
    }
}

/// Whether a part of a date is one of its time of day.
fn is_clock(part: &str) -> bool {
    matches!(part, "hour" | "minute" | "second" | "millisecond" | "microsecond" | "nanosecond")
}

/// The decimals of the second that a type must have for DATETRUNC to a part ("Fractional time scale precision").
fn least_fraction(part: &str) -> u8 {
    match part {
        "millisecond" => 3,
        "microsecond" => 6,
        _ => 0,
    }
}

fn fraction_of(of: Type) -> u8 {
    match of.name {
        "datetime" if of.fraction.is_none() => 3,
        "smalldatetime" => 0,
        _ => of.fraction.unwrap_or(MOST_FRACTION),
    }
}

/// The current time.
pub fn now(called: &mut CallBinder<'_, '_, '_>, clock: &Clock, gives: Type) -> Result<Value, Error> {
    called.count(0, 0)?;
    let Clock { function, part, .. } = clock;
    let scope = called.binder.scope;
    if !scope.procedure && !scope.definition {
        let given = called.binder.variables.clock(clock);
        let time = given.unwrap_or_else(|| call(format!("tsql.{function}"), []));
        return Ok(Value::new(in_part(time, part), gives));
    }
    // a procedure is one statement for PostgreSQL, whose clock would stand still
    let began = if scope.definition { None } else { called.binder.variables.began() };
    let time = began.unwrap_or_else(|| call("clock_timestamp", []));
    let asked = in_part(call(format!("tsql.{function}"), [time]), part);
    // a column's default must not contain a select
    Ok(Value::new(if scope.definition { asked } else { asked.once() }, gives))
}

/// A value's offset, in minutes.
fn offset(called: &mut CallBinder<'_, '_, '_>, index: usize) -> Result<Scalar, Error> {
    let value = called.value(index)?;
    match value.of.name == DATETIMEOFFSET.name || value.is_text() || !value.of.is_tsql() {
        true => Ok(call("tsql.tzoffset", [value.sql])),
        false => Err(refused_part(called, 9810, TZOFFSET)),
    }
}

fn moment_of(called: &mut CallBinder<'_, '_, '_>, index: usize) -> Result<Scalar, Error> {
    Ok(call("tsql.moment", [moment(&called.value(index)?)]))
}

/// The time whose part is requested. Error 9810: its type lacks the part (hours of a date, days of a time). A text
/// may be either, and has the parts of 1900-01-01 if it names no date ("DATEPART (Transact-SQL)").
fn moment_with(called: &mut CallBinder<'_, '_, '_>, part: &str, index: usize) -> Result<Scalar, Error> {
    let value = called.value(index)?;
    let of_text = |sql| call("tsql.moment_with", [Scalar::text(part), Scalar::text(called.name), sql]);
    let lacks = match value.family() {
        Family::Date => is_clock(part),
        Family::Time => !is_clock(part),
        Family::Postgres if !value.is_null() && !called.binder.scope.stored => return Ok(of_text(value.sql)),
        Family::Text => return Ok(of_text(moment(&value))),
        _ => false,
    };
    if lacks {
        return Err(lacks_part(called, part, &value));
    }
    Ok(call("tsql.moment", [moment(&value)]))
}

/// Error 9810: the type of a value has no such part.
fn lacks_part(called: &CallBinder<'_, '_, '_>, part: &str, value: &Value) -> Error {
    let of = value.of.name;
    let text =
        format!("The datepart {part} is not supported by date function {} for data type {of}.", called.name);
    called.fail(9810, text)
}

fn refused_part(called: &CallBinder<'_, '_, '_>, number: i32, part: &str) -> Error {
    called.fail(number, format!("The datepart {part} is not supported by date function {}.", called.name))
}

/// Refuses date parts that depend on SET DATEFIRST in stored values: T-SQL computes them by the reader's setting.
fn check_stored(called: &CallBinder<'_, '_, '_>, part: &str) -> Result<(), Error> {
    if !called.binder.scope.stored || !matches!(part, "week" | "weekday") {
        return Ok(());
    }
    let what = format!("{}({part}, …) in a computed column", called.name);
    let why = "it would have the DATEFIRST of the session that wrote the row: compute it in the query, or in a view";
    Err(Error::refused(&what, why, called.line))
}

pub fn date_add(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(3, 3)?;
    let part = called.date_part(0)?;
    if part.starts_with("iso_") || part == TZOFFSET {
        return Err(refused_part(called, 9810, part));
    }
    let number = called.integer(1)?;
    let value = called.value(2)?;
    let of = if value.of.is_tsql() && !value.of.is_time() { DATETIME } else { value.of };
    // "DATEADD (Transact-SQL)", "datepart"; the resolution of a text is as written
    let is_coarse = [DATETIME, SMALLDATETIME].contains(&value.of);
    if is_coarse && matches!(part, "microsecond" | "nanosecond") {
        return Err(refused_part(called, 9810, part));
    }
    // PostgreSQL determines by all types together which type a placeholder has
    let is_open = !value.of.is_tsql() && !value.is_null();
    let sql = call("tsql.dateadd", [part_name(part, is_open), number, moment(&value)]);
    let added = |sql, to: &str| call("tsql.added", [sql, Scalar::text(to)]);
    Ok(match of {
        DATETIME => Value::new(call("tsql.to_datetime", [added(sql, "datetime")]), of),
        SMALLDATETIME => Value::new(call("tsql.to_smalldatetime", [added(sql, "smalldatetime")]), of),
        time if time.name == "datetime2" && time.fraction.is_some() => Value::cast(sql, time),
        of => Value::new(sql, of),
    })
}

pub fn date_diff(called: &mut CallBinder<'_, '_, '_>, gives: Type) -> Result<Value, Error> {
    called.count(3, 3)?;
    let part = called.date_part(0)?;
    let is_refused = part == "iso_week" && called.dialect().is_strict;
    if is_refused || matches!(part, "iso_year" | "iso_weekday" | TZOFFSET) {
        return Err(refused_part(called, 9806, part));
    }
    let sql = call("tsql.datediff", [Scalar::text(part), counted(called, 1)?, counted(called, 2)?]);
    Ok(Value::new(if gives == INT { call("tsql.datediff_int", [sql]) } else { sql }, gives))
}

/// The time from which is counted.
fn counted(called: &mut CallBinder<'_, '_, '_>, index: usize) -> Result<Scalar, Error> {
    let value = called.value(index)?;
    if value.of.name == DATETIMEOFFSET.name {
        let why = "the documentation does not say by which clock: convert to datetime2";
        return Err(Error::refused("datediff of a datetimeoffset", why, called.line));
    }
    Ok(call("tsql.datediff", [moment(&value)]))
}

pub fn date_of(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let part = called.date_part(0)?;
    if part == TZOFFSET {
        return Ok(Value::new(offset(called, 1)?, INT));
    }
    check_stored(called, part)?;
    let moment = moment_with(called, part, 1)?;
    Ok(Value::new(call("tsql.datepart", [Scalar::text(part), moment]), INT))
}

pub fn date_name(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let part = called.date_part(0)?;
    if part == TZOFFSET {
        let sql = call("tsql.offset_text", [offset(called, 1)?.cast("smallint")]);
        return Ok(Value::cast(sql, nvarchar(Some(30))));
    }
    // the name of a day does not depend on the first day of weeks
    if part != "weekday" {
        check_stored(called, part)?;
    }
    let moment = moment_with(called, part, 1)?;
    Ok(Value::cast(call("tsql.datename", [Scalar::text(part), moment]), nvarchar(Some(30))))
}

/// year, month, day
pub fn part(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(1, 1)?;
    let moment = moment_with(called, called.name, 0)?;
    Ok(Value::new(call("tsql.datepart", [Scalar::text(called.name), moment]), INT))
}

/// datetime2fromparts, datetimeoffsetfromparts, timefromparts: the fraction is in units of the last decimal, whose
/// number is the last argument.
pub fn of_parts(called: &mut CallBinder<'_, '_, '_>, gives: Type) -> Result<Value, Error> {
    let number = match gives.name {
        "time" => 5,
        "datetimeoffset" => 10,
        _ => 8,
    };
    called.count(number, number)?;
    let digits = called.value(number - 1)?.integer();
    if let Some(digits) = digits.filter(|digits| !(0..=7).contains(digits)) {
        let text = format!("Line {}: Specified scale {digits} is invalid.", called.line);
        return Err(Error::new(1002, text, called.line));
    }
    let digits = digits.and_then(|digits| u8::try_from(digits).ok());
    let Some(digits) = digits.filter(|digits| *digits <= 7) else {
        let text = format!(
            "Scale argument is not valid. Valid expressions for data type {} scale argument are integer \
                 constants and integer constant expressions.",
            gives.name
        );
        return Err(called.fail(10760, text));
    };
    let mut parts = Vec::with_capacity(number);
    for index in 0..number {
        parts.push(called.integer(index)?);
    }
    let gives = Type { fraction: Some(digits), ..gives };
    Ok(Value::new(call(format!("tsql.{}", called.name), parts), gives))
}

pub fn date_trunc(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let part = called.date_part(0)?;
    if matches!(part, "weekday" | "nanosecond" | "iso_year" | "iso_weekday" | TZOFFSET) {
        return Err(refused_part(called, 9810, part));
    }
    check_stored(called, part)?;
    let value = called.value(1)?;
    let fits = match value.of.family {
        Family::Date => !is_clock(part),
        Family::Time if !is_clock(part) => false,
        Family::Time | Family::DateTime => fraction_of(value.of) >= least_fraction(part),
        _ => true,
    };
    if !fits {
        return Err(lacks_part(called, part, &value));
    }
    // as in date_add
    let is_open = !value.of.is_tsql() && least_fraction(part) > 0;
    let sql = call("tsql.datetrunc", [part_name(part, is_open), moment(&value)]);
    let of = if value.of.is_tsql() && !value.of.is_time() { DATETIME2 } else { value.of };
    Ok(Value::new(sql, of))
}

pub fn end_of_month(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let number = called.count(1, 2)?;
    let moment = moment_of(called, 0)?;
    // null is not a month
    let none = Scalar::number(0);
    let months = if number == 2 { call("coalesce", [called.integer(1)?, none]) } else { none };
    Ok(Value::new(call("tsql.eomonth", [moment, months]), DATE))
}

/// switchoffset, todatetimeoffset
pub fn at_offset(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    called.count(2, 2)?;
    let (value, zone) = (called.value(0)?, called.value(1)?);
    let takes = if called.name == "switchoffset" { DATETIMEOFFSET } else { DATETIME2 };
    let of = value.of;
    let value = implicit(value, takes, called.line, called.dialect())?.sql;
    let zone = match zone.family() {
        Family::Integer => zone.sql,
        _ => call("tsql.offset_minutes", [zone.sql]),
    };
    let fraction = of.fraction;
    let sql = call(format!("tsql.{}", called.name), [value, zone]);
    Ok(Value::new(sql, Type { fraction, ..DATETIMEOFFSET }))
}

/// `time at time zone 'UTC'`: a time without an offset is taken as UTC.
pub fn at_time_zone(
    binder: &mut Binder<'_>,
    operand: &Expression,
    zone: &Expression,
) -> Result<Value, Error> {
    let line = operand.at().line;
    let zone = expressions::value(binder, zone)?;
    if !zone.text().is_some_and(|zone| zone.eq_ignore_ascii_case("utc")) {
        let why = "PostgreSQL's zones are not those of Windows: only 'UTC' is, and todatetimeoffset() takes an offset";
        return Err(Error::refused("at time zone", why, line));
    }
    let value = expressions::value(binder, operand)?;
    let of = value.of;
    if !of.is_tsql() {
        let why = "the type before it is not known here: convert it to datetime2 or datetimeoffset";
        return Err(Error::refused("at time zone", why, line));
    }
    if of.family != Family::DateTime {
        let text = "Argument data type is invalid for argument 1 of AT TIME ZONE function.";
        return Err(Error::new(8116, text, line).with_severity(16));
    }
    let value = implicit(value, DATETIMEOFFSET, line, binder.dialect())?.sql;
    let fraction = match of.name {
        "datetime" | "smalldatetime" if of.fraction.is_none() => Some(3),
        _ => of.fraction,
    };
    let sql = call("tsql.switchoffset", [value, Scalar::number(0)]);
    Ok(Value::new(sql, Type { fraction, ..DATETIMEOFFSET }))
}
