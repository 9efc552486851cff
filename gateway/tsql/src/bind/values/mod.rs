//! Values of PostgreSQL's SQL with their T-SQL types: literals, conversions, lengths, and the operators between them.
//! They know nothing of the statement around them.

pub(super) mod arithmetic;
pub(super) mod assignments;
pub(super) mod column_type;
pub(super) mod lengths;
pub(super) mod literals;

use crate::error::Error;
use crate::facts::conversions::{self, class, Class};
use crate::facts::types::{
    self, Case, Family, Type, DATETIMEOFFSET, INSTANT, MOMENT, MOST_DIGITS, MOST_FRACTION, NULL, SQL_VARIANT,
    VARCHAR,
};
use crate::postgres::{call, Scalar};
use crate::Dialect;

/// An expression of PostgreSQL with its T-SQL type.
#[derive(Clone, Debug)]
pub struct Value {
    pub sql: Scalar,
    pub of: Type,
    pub constant: Constant,
}

/// The kind of a literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// Not a literal.
    None,
    Text(String),
    Integer(i64),
    /// The keyword NULL.
    Null,
}

impl Value {
    pub fn new(sql: Scalar, of: Type) -> Value {
        Value { sql, of, constant: Constant::None }
    }

    /// `sql` as a value of exactly this type.
    pub fn cast(sql: Scalar, of: Type) -> Value {
        Value::new(sql.cast(of.sql()), of)
    }

    /// Money as a domain, by which functions distinguish it from numeric.
    pub fn money(sql: Scalar, of: Type) -> Value {
        Value::new(sql.cast(domain_of_money(of)), of)
    }

    /// The same value with other SQL.
    pub fn with_sql(self, sql: Scalar) -> Value {
        Value { sql, ..self }
    }

    /// Whether PostgreSQL sees that it has this type.
    pub fn is_cast_to(&self, of: Type) -> bool {
        matches!(&self.sql, Scalar::Cast(_, name) if *name == of.sql())
    }

    /// Whether it is a parameter alone, whose type PostgreSQL infers.
    pub fn is_parameter(&self) -> bool {
        matches!(self.sql, Scalar::Parameter(_))
    }

    /// The SQL; a NULL as one of this type.
    pub fn or_null_of(&self, name: &'static str) -> Scalar {
        match self.is_null() {
            true => Scalar::Null.cast(name),
            false => self.sql.clone(),
        }
    }

    pub fn null() -> Value {
        Value { constant: Constant::Null, ..Value::new(Scalar::Null, NULL) }
    }

    pub fn is_null(&self) -> bool {
        self.constant == Constant::Null
    }

    pub fn integer(&self) -> Option<i64> {
        match self.constant {
            Constant::Integer(integer) => Some(integer),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match &self.constant {
            Constant::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn is_text(&self) -> bool {
        self.of.is_text()
    }

    /// Its type in messages.
    pub fn shown_type(&self) -> Type {
        if self.is_null() {
            NULL
        } else {
            self.of
        }
    }

    pub fn family(&self) -> Family {
        self.of.family
    }

    /// A text of any characters, if known.
    pub fn is_national(&self) -> bool {
        !self.is_null() && (!self.of.is_tsql() || self.of.is_national())
    }

    /// A type with its characters: any, if T-SQL does not have its type.
    pub fn characters(&self) -> Type {
        match self.is_national() {
            true if !self.of.is_tsql() => Type { twin: true, kept: true, ..VARCHAR },
            true => self.of,
            false => VARCHAR,
        }
    }

    pub fn case(&self) -> Case {
        self.of.case
    }

    /// The most characters of a text.
    pub fn length(&self) -> Option<u32> {
        self.of.length.filter(|_| self.is_text())
    }
}

/// Precision and scale; an integer literal has the digits as written.
pub fn digits_of(value: &Value, of: Type) -> (u8, u8) {
    match value.integer() {
        Some(integer) => (integer.unsigned_abs().to_string().len() as u8, 0),
        None => of.digits().unwrap_or((MOST_DIGITS, 0)),
    }
}

/// The common type of values: a whole literal beside a decimal has the digits as written; NULL has no type.
pub fn common<'v>(values: impl IntoIterator<Item = &'v Value>) -> Type {
    let values: Vec<&Value> = values.into_iter().filter(|value| !value.is_null()).collect();
    let of = types::unified(values.iter().map(|value| value.of));
    if of.family != Family::Decimal {
        return of;
    }
    let as_written = |value: &&Value| match value.integer() {
        Some(_) => types::decimal(digits_of(value, value.of).0, 0),
        None => value.of,
    };
    types::unified(values.iter().map(as_written))
}

/// Converts the value to another type, as T-SQL does without a style.
pub fn converted(value: Value, target: Type, line: u32, dialect: &Dialect) -> Result<Value, Error> {
    conversion("to", value, target, line, dialect)
}

/// Like `converted`, but null if the value cannot be converted.
pub fn tried(value: Value, target: Type, line: u32, dialect: &Dialect) -> Result<Value, Error> {
    conversion("try", value, target, line, dialect)
}

fn conversion(verb: &str, value: Value, target: Type, line: u32, dialect: &Dialect) -> Result<Value, Error> {
    if value.is_null() {
        return Ok(Value::cast(Scalar::Null, target));
    }
    let of = value.of;
    if of.is_tsql() && !conversions::casts(class(of), class(target), dialect.chart) {
        let text =
            format!("Explicit conversion from data type {} to {} is not allowed.", of.name, target.name);
        return Err(Error::new(529, text, line).with_severity(16));
    }
    let value = of_own_type(value);
    let converted = if target == SQL_VARIANT {
        Value::new(as_variant(verb, &value, line)?, target)
    } else if target.is_text() {
        as_text(verb, &value, target, line, dialect)?
    } else {
        as_other(verb, value, target, line)?
    };
    Ok(match target.domain_from_zero() {
        None => converted,
        Some(_) if verb == "try" => {
            return Err(Error::refused("try_convert to an unsigned type", "ASE has none", line));
        }
        Some((domain, _)) => Value::cast(converted.sql.cast(format!("tsql.{domain}")), target.of_values()),
    })
}

/// Money as its own type, where the type matters: a variable is any numeric for PostgreSQL, and so is a value that
/// PostgreSQL chooses or computes.
pub fn of_own_type(value: Value) -> Value {
    match value.family() == Family::Money && !is_money(&value.sql, value.of) {
        true => Value { constant: value.constant, ..Value::money(value.sql, value.of) },
        false => value,
    }
}

fn domain_of_money(of: Type) -> String {
    format!("tsql.{}", of.name)
}

fn is_money(sql: &Scalar, of: Type) -> bool {
    matches!(sql, Scalar::Cast(_, name) if *name == domain_of_money(of))
}

fn as_text(verb: &str, value: &Value, target: Type, line: u32, dialect: &Dialect) -> Result<Value, Error> {
    if value.family() == Family::Float && !dialect.float_has_text {
        return Err(float_to_text(line));
    }
    // the text of these in an nvarchar differs
    let differs = |of: Type| matches!(of.family, Family::Bit | Family::Integer | Family::Binary);
    let is_wide =
        target.is_national() && dialect.has_wide_texts && (!value.of.is_tsql() || differs(value.of));
    let sql = || value.sql.clone();
    Ok(match (target.length, value.of) {
        (None, _) if is_wide => {
            let most = Scalar::number(MOST_UNITS);
            Value::new(call(format!("tsql.{verb}_nvarchar"), [sql(), most]), target)
        }
        (None, _) => Value::new(text_of(value, dialect), target),
        (Some(_), _) if has_own_text(value, dialect) => Value::cast(text_of(value, dialect), target),
        // it is a text and fits
        (Some(length), of)
            if of.name == "varchar"
                && of.length.is_some_and(|own| own <= length)
                && target.name == "varchar" =>
        {
            Value::cast(sql(), target)
        }
        (Some(length), _) => {
            let is_whole = matches!(value.family(), Family::Bit | Family::Integer | Family::Postgres);
            let reader = match (is_wide, is_whole) {
                (true, _) => "nvarchar",
                (_, true) => dialect.whole_number_as_varchar,
                _ => "varchar",
            };
            Value::cast(call(format!("tsql.{verb}_{reader}"), [sql(), Scalar::number(length)]), target)
        }
    })
}

/// A value with its type.
fn as_variant(verb: &str, value: &Value, line: u32) -> Result<Scalar, Error> {
    let sql = value.sql.clone();
    let of = value.of;
    if !of.is_tsql() {
        return Ok(call(format!("tsql.{verb}_sql_variant"), [sql]));
    }
    if of == SQL_VARIANT {
        return Ok(sql);
    }
    let Some(base) = of.variant_base() else {
        let text =
            format!("Explicit conversion from data type {} to sql_variant is not allowed.", of.declared());
        return Err(Error::new(529, text, line).with_severity(16));
    };
    let typed = match (of.name, of.length, of.fraction) {
        ("char", Some(length), _) => call("rpad", [sql.cast("text"), Scalar::number(length)]),
        ("binary" | "varbinary", Some(length), _) => {
            call(format!("tsql.to_{}", of.name), [sql, Scalar::number(length)])
        }
        ("datetimeoffset", _, Some(digits)) => call("tsql.to_datetimeoffset", [sql, Scalar::number(digits)]),
        _ if of == INSTANT => sql.cast("timestamp"),
        _ => sql.cast(of.sql()),
    };
    Ok(call("tsql.variant_of", [Scalar::text(base), typed]))
}

/// A value as a text of unlimited length; texts unchanged.
pub fn text_of(value: &Value, dialect: &Dialect) -> Scalar {
    let styled = if dialect.shows_declared_digits { styled_text(value, DEFAULT_STYLE) } else { None };
    styled.unwrap_or_else(|| call("tsql.text_of", [of_own_type(value.clone()).sql]))
}

/// The most characters of an nvarchar(max) ("nchar and nvarchar": 2 GB).
const MOST_UNITS: u32 = (1 << 30) - 1;
/// For datetime2 and time, which PostgreSQL's type does not distinguish, and which ASE displays differently.
const DEFAULT_STYLE: i64 = 121;

fn has_own_text(value: &Value, dialect: &Dialect) -> bool {
    dialect.shows_declared_digits && styled_text(value, DEFAULT_STYLE).is_some()
}

/// A datetime2, datetimeoffset or time in a style of CONVERT; None for any other type, whose text PostgreSQL's type
/// determines.
pub fn styled_text(value: &Value, style: i64) -> Option<Scalar> {
    let of = value.of;
    if !matches!(of.name, "datetime2" | "datetimeoffset" | "time") {
        return None;
    }
    let digits = of.fraction.unwrap_or(MOST_FRACTION);
    let arguments = [value.sql.clone(), Scalar::number(style), Scalar::number(digits)];
    Some(call(format!("tsql.{}_text", of.name), arguments))
}

pub fn float_to_text(line: u32) -> Error {
    Error::refused("float to text", "ASE and SQL Server write other digits: use str()", line)
}

fn as_other(verb: &str, value: Value, target: Type, line: u32) -> Result<Value, Error> {
    let is_moment = matches!(target.name, "date" | "datetime" | "smalldatetime") && verb == "to";
    if is_moment && value.of.family == Family::Binary && value.of.name != "image" {
        return Ok(Value::new(call(format!("tsql.{}_of_bytes", target.name), [value.sql]), target));
    }
    if value.of.is_tsql() && !is_known(class(value.of), class(target)) {
        let what = format!("{} to {}", value.of.name, target.name);
        return Err(Error::refused(&what, "there is no such conversion", line));
    }
    if value.of == target && !matches!(target.family, Family::Decimal | Family::Binary) {
        return Ok(value);
    }
    let sql = value.sql;
    let by = |name: &str, sql| call(format!("tsql.{verb}_{name}"), [sql]);
    let with = |name: &str, sql, number| call(format!("tsql.{verb}_{name}"), [sql, number]);
    let converted = match target.name {
        _ if target == MOMENT => call("tsql.moment", [sql]),
        _ if target == INSTANT && value.of.oid == DATETIMEOFFSET.oid => call("tsql.instant", [sql]),
        _ if target == INSTANT => call("tsql.instant", [call("tsql.moment", [sql])]),
        "decimal" => return Ok(Value::cast(by("numeric", sql), target)),
        "binary" | "varbinary" => with(target.name, sql, target.length.map_or(Scalar::Null, Scalar::number)),
        "image" => by("binary", sql),
        "uniqueidentifier" => by("guid", sql),
        "datetime2" => {
            let time = by("datetime2", sql);
            let fitted = match target.fraction {
                Some(digits @ ..=5) => call("tsql.fitted_datetime2", [time, Scalar::number(digits)]),
                _ => time,
            };
            return Ok(Value::cast(fitted, target));
        }
        "time" => match target.fraction {
            Some(digits) => {
                let fitted = call("tsql.fitted_time", [by("time", sql), Scalar::number(digits)]);
                return Ok(Value::cast(fitted, target));
            }
            None => by("time", sql),
        },
        "bit" | "tinyint" | "smallint" | "int" | "bigint" | "real" | "float" | "money" | "smallmoney"
        | "date" | "datetime" | "smalldatetime" => by(target.name, sql),
        "datetimeoffset" => {
            with("datetimeoffset", sql, Scalar::number(target.fraction.unwrap_or(MOST_FRACTION)))
        }
        name => {
            return Err(Error::refused(&format!("convert to {name}"), "there is no such conversion", line))
        }
    };
    Ok(Value::new(converted, target))
}

/// Whether schema tsql has a function for the pair.
fn is_known(source: Class, target: Class) -> bool {
    use Class::{Binary, Bit, DateTime, Guid, Image, Integer, Text, Varchar, Variant};
    match target {
        Binary | Image => matches!(source, Integer | Varchar | Text | Binary | Image | Guid | Variant),
        Guid => matches!(source, Varchar | Text | Binary | Guid | Variant),
        Bit | Integer => true,
        DateTime => source != Binary,
        _ => !matches!(source, Binary | Image),
    }
}
