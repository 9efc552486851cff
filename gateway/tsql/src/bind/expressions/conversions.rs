//! CAST, CONVERT, TRY_CAST and TRY_CONVERT.

use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::values::{converted, float_to_text, styled_text, tried, Constant, Value};
use crate::error::Error;
use crate::facts::functions::{is_disputed_style, is_style};
use crate::facts::type_names;
use crate::facts::types::{Family, Type, CHAR, DATETIME2, DATETIMEOFFSET, SQL_VARIANT, VARBINARY};
use crate::postgres::{call, Scalar};
use crate::tree::{Cast, CastKind, Expression, LiteralValue};

/// The length of char, varchar, binary and varbinary without one, in a conversion.
const DEFAULT_LENGTH: u32 = 30;

/// A conversion to a decimal: "When an explicit conversion results in a loss of scale, the results are truncated
/// without warning" (ASE Reference Manual: Building Blocks, "Scale errors").
fn truncated(value: Value, target: Type) -> Value {
    let loses = |of: Type| matches!(of.family, Family::Decimal | Family::Money);
    if value.is_null() || target.family != Family::Decimal || value.of.is_tsql() && !loses(value.of) {
        return value;
    }
    let scale = Scalar::number(target.scale.unwrap_or(0));
    let sql = call("tsql.truncated", [value.sql.clone(), scale]);
    value.with_sql(sql)
}

pub fn cast(binder: &mut Binder<'_>, cast: &Cast) -> Result<Value, Error> {
    let line = cast.at.line;
    let tries = match cast.kind {
        CastKind::Cast | CastKind::Convert => false,
        CastKind::TryCast | CastKind::TryConvert => true,
        CastKind::Parse | CastKind::TryParse => {
            return Err(Error::refused("parse()", "it reads by a culture: use convert", line));
        }
    };
    let target = type_names::of_name(&cast.target, DEFAULT_LENGTH, binder.dialect());
    let target = target.map_err(|error| match error.number {
        2715 if binder.dialect().is_strict => {
            let text = format!("Type {} is not a defined system type.", cast.target.name);
            Error::new(243, text, line).with_severity(16)
        }
        _ => error,
    })?;
    let value = expressions::value(binder, &cast.operand)?;
    binder.variables.meets(&value, target, false);
    let has_digits = cast.style.as_ref().is_some_and(|style| !is_zero(style));
    let gives_bytes = target.family == Family::Binary && !has_digits;
    let is_wide = binder.dialect().has_wide_texts && value.of.is_wide();
    let value = if gives_bytes && is_wide { wide_bytes(&value) } else { value };
    cast_of(binder, value, cast, target, tries)
}

fn cast_of(
    binder: &mut Binder<'_>,
    value: Value,
    cast: &Cast,
    target: Type,
    tries: bool,
) -> Result<Value, Error> {
    let (line, dialect) = (cast.at.line, binder.dialect());
    let value = if dialect.decimals_keep_digits { truncated(value, target) } else { value };
    // texts of any characters remain such: they are not encoded in a code page
    let is_kept = value.is_national() && !value.text().is_some_and(str::is_ascii);
    let target = target.with_case(value.case());
    let kept = match target.is_text() && !target.twin && is_kept {
        true => Type { twin: true, kept: true, ..target },
        false => target,
    };
    let convert = if tries { tried } else { converted };
    let Some(style) = &cast.style else {
        let value = convert(value, target, line, dialect)?;
        // it has the digits of its type, and no longer those of a literal
        let constant = match value.constant {
            Constant::Integer(_) => Constant::None,
            other => other,
        };
        return Ok(Value { of: kept, constant, ..value });
    };
    let style = expressions::value(binder, style)?;
    if dialect.checks_arguments && style.of.is_tsql() && style.family() != Family::Integer {
        let name = if tries { "try_convert" } else { "convert" };
        let of = style.of.name;
        let text = format!("Argument data type {of} is invalid for argument 3 of {name} function.");
        return Err(Error::new(8116, text, line).with_severity(16));
    }
    let Some(style) = style.integer() else {
        return Err(Error::refused("a style that is not a number", "write the style out", line));
    };
    let verb = if tries { "try" } else { "to" };
    styled(binder, value, kept, style, verb, line)
}

fn styled(
    binder: &mut Binder<'_>,
    value: Value,
    target: Type,
    style: i64,
    verb: &str,
    line: u32,
) -> Result<Value, Error> {
    let dialect = binder.dialect();
    let convert = if verb == "try" { tried } else { converted };
    let of = value.of;
    let is_time = !of.is_tsql() || of.is_time() || target.is_time();
    if dialect.refuses_disputed_styles && is_disputed_style(style) && is_time {
        let why = "ASE formats it otherwise than SQL Server";
        return Err(Error::refused(&format!("style {style}"), why, line));
    }
    if of == SQL_VARIANT && !target.is_text() && target != SQL_VARIANT {
        let why = "which of its meanings the style has is not known before: cast the value to its type";
        return Err(Error::refused(&format!("style {style} of a sql_variant"), why, line));
    }
    if target.is_text() && !of.is_text() {
        if of.family == Family::Binary && matches!(style, 0..=2) {
            return match style {
                0 => convert(value, target, line, dialect),
                _ => Ok(bytes_as_digits(&value, target, style)),
            };
        }
        if of.family == Family::Float && !dialect.float_has_text {
            return Err(float_to_text(line));
        }
        if let Some(text) = styled_text(&value, style).filter(|_| dialect.shows_declared_digits) {
            return Ok(of_length(text, target));
        }
        let length = target.length.map_or(Scalar::Null, Scalar::number);
        let text = call(format!("tsql.{verb}_varchar"), [value.sql, length, Scalar::number(style)]);
        return Ok(of_length(text, target));
    }
    let may_be_text = of.is_text() || !of.is_tsql();
    if target.is_time() && may_be_text {
        if !is_style(style) {
            let text = format!("{style} is not a valid style number.");
            return Err(Error::new(281, text, line).with_severity(16));
        }
        let text = if value.is_null() {
            Scalar::Null.cast("text")
        } else if of.name != CHAR.name {
            // for an unknown type: PostgreSQL determines whether it is a text to parse
            value.sql
        } else {
            call("tsql.text_of", [value.sql])
        };
        let (reader, gives) = match target.name {
            "datetimeoffset" => ("read_datetimeoffset", DATETIMEOFFSET),
            _ => ("read_datetime", DATETIME2),
        };
        let tries = if verb == "try" { "try_" } else { "" };
        let mut arguments = vec![text, Scalar::number(dialect.sign_of_read_style * style)];
        // these have other errors
        if matches!(target.name, "datetime" | "smalldatetime") {
            arguments.push(Scalar::text(target.name));
        }
        let moment = Value::new(call(format!("tsql.{tries}{reader}"), arguments), gives);
        return convert(moment, target, line, dialect);
    }
    let is_of_text = of.is_text() && target.family == Family::Binary;
    if is_of_text && dialect.binary_has_styles && !(0..=2).contains(&style) {
        let (from, to) = (of.name, target.name);
        let text = format!("The style {style} is not supported for conversions from {from} to {to}.");
        return Err(Error::new(9809, text, line).with_severity(16));
    }
    if target.family == Family::Binary && matches!(style, 1 | 2) && may_be_text {
        if verb == "try" {
            let why = "try_convert of digits is not known here";
            return Err(Error::refused(&format!("style {style} of {}", target.name), why, line));
        }
        let arguments = [value.sql.cast("text"), Scalar::number(style)];
        let bytes = Value::new(call("tsql.bytes_of_digits", arguments), VARBINARY);
        return convert(bytes, target, line, dialect);
    }
    convert(value, target, line, dialect)
}

fn is_zero(style: &Expression) -> bool {
    let Expression::Literal(literal) = style else { return false };
    matches!(&literal.value, LiteralValue::Integer(digits) if digits == "0")
}

/// A text with the length of its type, if it has one.
fn of_length(text: Scalar, target: Type) -> Value {
    match target.length {
        None => Value::new(text, target),
        Some(_) => Value::cast(text, target),
    }
}

/// A national text as the bytes of SQL Server, UTF-16.
pub fn wide_bytes(text: &Value) -> Value {
    Value::new(call("tsql.wide_bytes", [text.sql.clone()]), VARBINARY)
}

/// Style 1: `0x` and the digits, style 2: the digits alone; whole bytes if the text is shorter.
fn bytes_as_digits(value: &Value, target: Type, style: i64) -> Value {
    let digits = call("upper", [call("encode", [value.sql.clone(), Scalar::text("hex")])]);
    let digits = if style == 1 { Scalar::text("0x").infix("||", digits) } else { digits };
    match target.length {
        Some(length) if length % 2 == 1 => {
            Value::cast(call("pg_catalog.left", [digits, Scalar::number(length - 1)]), target)
        }
        _ => of_length(digits, target),
    }
}
