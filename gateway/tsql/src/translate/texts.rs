//! Functions of texts.

use super::calls::CallTranslation;
use super::conversions::wide_bytes;
use super::translation::Translation;
use super::value::Value;
use crate::error::Error;
use crate::facts::functions::{rule, Rule, HASH_RESULT, NONE_SUCH};
use crate::facts::types::{
    self, nvarchar, varchar, Family, Type, BIT, CHAR, INT, SMALLDATETIME, TINYINT, VARBINARY,
};
use crate::resolve::names::array;
use crate::tree::{Arguments, BinaryOperator, Expression, LiteralValue};
use crate::units;

/// A text made of `from`, with its characters.
fn text_result(sql: String, length: Option<u32>, from: &[Value]) -> Value {
    let of =
        Type { twin: from.iter().any(Value::is_national), ..varchar(length.map(|length| length.max(1))) };
    match of.length {
        None => Value::new(sql, of),
        Some(length) => Value::new(format!("{sql}::varchar({length})"), of),
    }
}

impl CallTranslation<'_, '_, '_> {
    /// upper, lower, reverse, ltrim, rtrim, trim
    pub fn same_length(&mut self) -> Result<Value, Error> {
        self.count(1, if self.name == "trim" { 2 } else { 1 })?;
        let value = self.value(0)?;
        let text = self.as_text(&value)?;
        let sql = match self.name {
            "trim" if self.arguments.len() == 2 => format!("tsql.trim({text}, {})", self.text(1)?),
            "trim" => format!("tsql.ltrim(tsql.rtrim({text}))"),
            name => format!("tsql.{name}({text})"),
        };
        Ok(text_result(sql, value.length(), &[value]))
    }

    /// left, right
    pub fn side(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let value = self.value(0)?;
        let (text, number) = (self.as_text(&value)?, self.integer(1)?);
        let sql = format!("tsql.{}({text}, {number})", self.name);
        Ok(text_result(sql, value.length(), &[value]))
    }

    pub fn substring(&mut self) -> Result<Value, Error> {
        self.count(3, 3)?;
        let value = self.value(0)?;
        let (start, length) = (self.integer(1)?, self.integer(2)?);
        if value.family() == Some(Family::Binary) {
            return Ok(Value::new(format!("tsql.substring({}, {start}, {length})", value.sql), VARBINARY));
        }
        let sql = format!("tsql.substring({}, {start}, {length})", self.as_text(&value)?);
        Ok(text_result(sql, value.length(), &[value]))
    }

    pub fn str(&mut self) -> Result<Value, Error> {
        let number = self.count(1, 3)?;
        let float = self.float(0)?;
        let length = if number > 1 { self.integer(1)? } else { "10".into() };
        let decimals = if number > 2 { self.integer(2)? } else { "0".into() };
        let width = if number > 1 { self.value(1)?.integer() } else { Some(10) };
        let width = width.and_then(|width| u32::try_from(width).ok());
        Ok(text_result(format!("tsql.str({float}, {length}, {decimals})"), width, &[]))
    }

    pub fn concat(&mut self) -> Result<Value, Error> {
        if self.arguments.len() < 2 {
            return Err(Error::new(189, "The concat function requires 2 to 254 arguments.", self.line));
        }
        let values = self.values()?;
        let mut parts = Vec::with_capacity(values.len());
        for value in &values {
            parts.push(format!("coalesce({}, '')", self.as_text(value)?));
        }
        Ok(text_result(format!("concat({})", parts.join(", ")), None, &values))
    }

    /// `concat_ws(separator, …)`: nulls are left out, with their separators.
    pub fn concat_with(&mut self) -> Result<Value, Error> {
        if self.arguments.len() < 3 {
            let text = "The concat_ws function requires 3 to 254 arguments.";
            return Err(Error::new(189, text, self.line));
        }
        let values = self.values()?;
        let mut parts = Vec::with_capacity(values.len());
        for value in &values {
            parts.push(self.as_text(value)?);
        }
        let separator = parts.remove(0);
        let sql = format!("concat_ws(coalesce({separator}, ''), {})", parts.join(", "));
        Ok(text_result(sql, None, &values))
    }

    /// `replicate(text, number)`: cut at 8,000 bytes unless the text is a varchar(max).
    pub fn replicate(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let value = self.value(0)?;
        let (text, number) = (self.as_text(&value)?, self.integer(1)?);
        let sql = if self.translation.is_long(&self.arguments[0])? {
            format!("tsql.replicate_max({text}, {number})")
        } else if self.translation.is_wide(&self.arguments[0])? {
            format!("tsql.cut(tsql.replicate({text}, {number}), 4000)")
        } else {
            format!("tsql.replicate({text}, {number})")
        };
        Ok(text_result(sql, None, &[value]))
    }

    /// `formatmessage(text, …)`: as raiserror writes it.
    pub fn format_message(&mut self) -> Result<Value, Error> {
        self.count(1, 21)?;
        if matches!(&self.arguments[0], Expression::Literal(_)) && self.value(0)?.text().is_none() {
            let why = "there are no messages with numbers: give the text";
            return Err(Error::refused("formatmessage(number, …)", why, self.line));
        }
        let text = self.text(0)?;
        let mut parts = Vec::with_capacity(self.arguments.len());
        for place in 1..self.arguments.len() {
            parts.push(self.text(place)?);
        }
        let sql = format!("tsql.format_message({text}, {})", array(parts, "text"));
        Ok(Value::new(sql, nvarchar(Some(2047))))
    }

    /// Of a number or a time, whose kind PostgreSQL knows.
    pub fn format(&mut self) -> Result<Value, Error> {
        let given = self.count(2, 3)?;
        if self.sybase() {
            return Err(Error::refused("format()", NONE_SUCH, self.line));
        }
        let value = self.value(0)?;
        let is_formatted = |family| {
            use Family::{Date, DateTime, Decimal, Float, Integer, Money, Time};
            matches!(family, Integer | Money | Decimal | Float | Time | Date | DateTime)
        };
        if value.is_null() || value.family().is_some_and(|family| !is_formatted(family)) {
            let name = value.of.filter(|_| !value.is_null()).map_or("NULL", |of| of.name);
            let text = format!("Argument data type {name} is invalid for argument 1 of format function.");
            return Err(self.fail(8116, text));
        }
        let format = self.text(1)?;
        let culture = if given == 3 { self.text(2)? } else { String::from("'en-US'") };
        Ok(Value::new(format!("tsql.format({}, {format}, {culture})", value.sql), nvarchar(Some(4000))))
    }

    /// Units of UTF-16, or bytes of binaries; where only PostgreSQL knows the type, it counts.
    pub fn length(&mut self) -> Result<Value, Error> {
        self.count(1, 1)?;
        let value = self.value(0)?;
        let counted = match value.family() {
            None | Some(Family::Binary) if !value.is_null() => value.sql,
            _ => self.as_text(&value)?,
        };
        Ok(Value::new(format!("tsql.len({counted})"), INT))
    }

    /// Bytes, where they follow from the type; otherwise PostgreSQL counts them.
    pub fn data_length(&mut self) -> Result<Value, Error> {
        self.count(1, 1)?;
        let value = self.value(0)?;
        let fixed = value.of.and_then(|of| match (of, of.name, of.family) {
            (TINYINT | BIT, ..) => Some(1),
            (SMALLDATETIME, ..) => Some(4),
            (_, "money", _) => Some(8),
            (_, "smallmoney", _) => Some(4),
            (_, "date", _) => Some(3),
            (_, "time", _) => Some(5),
            _ => None,
        });
        if let Some(of) = value.of.filter(|of| of.family == Family::Decimal) {
            let scale = of.scale.unwrap_or(0);
            return Ok(Value::new(format!("tsql.decimal_size({}::numeric, {scale})", value.sql), INT));
        }
        Ok(match fixed {
            Some(bytes) => Value::new(format!("(case when {} is not null then {bytes} end)", value.sql), INT),
            // two bytes a character
            None if value.is_text() && self.translation.is_wide(&self.arguments[0])? => {
                let text = match value.of {
                    Some(of) if of.name == CHAR.name => format!("tsql.padded({})", value.sql),
                    _ => self.as_text(&value)?,
                };
                Value::new(format!("tsql.datalength_wide({text})"), INT)
            }
            None => Value::new(format!("tsql.datalength({})", value.sql), INT),
        })
    }

    /// `hashbytes('algorithm', value)`
    pub fn hash_bytes(&mut self) -> Result<Value, Error> {
        self.count(2, 2)?;
        let algorithm = self.text(0)?;
        let value = self.value(1)?;
        if value.of.is_some_and(|of| !of.is_text() && of.family != Family::Binary) {
            return Err(
                self.fail(8116, "Argument data type is invalid for argument 2 of hashbytes function.")
            );
        }
        let value = match self.translation.is_wide(&self.arguments[1])? {
            true => wide_bytes(&value),
            false => value,
        };
        Ok(Value::new(format!("tsql.hashbytes({algorithm}, tsql.varbytes({}))", value.sql), HASH_RESULT))
    }
}

impl Translation<'_> {
    /// Whether a text is declared to be longer than 8,000 bytes may be: a variable of varchar(max) or text, a conversion to
    /// one, a longer literal, and what is put together of these.
    fn is_long(&self, text: &Expression) -> Result<bool, Error> {
        self.is_made_of(text, &|part| match part {
            Part::Literal { text, .. } => !units::fits(text, 8000),
            Part::Declared(of) => of.is_text() && of.length.is_none(),
            Part::Result(_) => false,
        })
    }

    /// Whether a text is declared to be a national one, whose characters have two bytes in SQL Server: a literal, a
    /// variable, a conversion, and what is put together of these. Of columns only PostgreSQL knows, which does not
    /// distinguish them.
    pub fn is_wide(&self, text: &Expression) -> Result<bool, Error> {
        if self.sybase() {
            return Ok(false);
        }
        self.is_made_of(text, &|part| match part {
            Part::Literal { national, .. } => national,
            Part::Declared(of) => of.is_national(),
            Part::Result(function) => matches!(function, "nchar" | "quotename"),
        })
    }

    /// Whether one of the parts that decide the type of a text is as asked for.
    fn is_made_of(&self, text: &Expression, is_so: &dyn Fn(Part) -> bool) -> Result<bool, Error> {
        Ok(match text {
            Expression::Literal(literal) => match &literal.value {
                LiteralValue::Text { text, national, .. } => {
                    is_so(Part::Literal { text, national: *national })
                }
                _ => false,
            },
            Expression::Variable(variable) => {
                let of = self.scope.type_of(&variable.name, variable.at.line)?;
                of.is_some_and(|of| is_so(Part::Declared(of)))
            }
            Expression::Cast(cast) => is_so(Part::Declared(types::of_name(&cast.target, 1)?)),
            Expression::Binary { operator: BinaryOperator::Add, left, right, .. } => {
                self.is_made_of(left, is_so)? || self.is_made_of(right, is_so)?
            }
            Expression::Function(call) if call.name.is_bare() => {
                let name = call.name.name.to_lowercase();
                match &call.arguments {
                    Arguments::Values(values) if keeps_kind(&name) => {
                        for value in values {
                            if self.is_made_of(value, is_so)? {
                                return Ok(true);
                            }
                        }
                        false
                    }
                    _ => is_so(Part::Result(&name)),
                }
            }
            _ => false,
        })
    }
}

/// What decides the type of a text that is put together.
enum Part<'a> {
    Literal {
        text: &'a str,
        national: bool,
    },
    /// A variable or the target of a conversion.
    Declared(Type),
    /// The result of a function, by its name in small letters.
    Result(&'a str),
}

/// Whether the result of a function is a text as its arguments are: national, or long.
fn keeps_kind(name: &str) -> bool {
    use Rule::{Coalesce, Concat, IsNull, Replicate, SameLength, Side, Substring};
    matches!(rule(name), Some(SameLength | Side | Substring | Concat | IsNull | Coalesce | Replicate))
        || matches!(name, "replace" | "stuff" | "translate")
}
