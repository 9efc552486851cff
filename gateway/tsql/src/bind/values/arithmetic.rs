//! Operators between values: `+ - * / % & | ^`.

use super::{converted, digits_of, lengths, Value};
use crate::error::Error;
use crate::facts::types::{
    decimal, varchar, Family, Type, BINARY, BIT, CHAR, DATETIME, FLOAT, LONGEST_VARCHAR, MONEY, MOST_DIGITS,
    REAL, SMALLDATETIME, SMALLMONEY, TINYINT, UNKNOWN, VARBINARY,
};
use crate::postgres::{call, Scalar};
use crate::tree::BinaryOperator;
use crate::Dialect;

/// `left operator right`
pub fn arithmetic(
    operator: &'static str,
    left: Value,
    right: Value,
    line: u32,
    dialect: &Dialect,
) -> Result<Value, Error> {
    // only here a text beside another number does not become one
    if operator == "%" {
        refuse(operator, &left, &right, line, dialect)?;
    }
    let [left, right] = of_one_kind(operator, left, right, line, dialect)?;
    let (of_left, of_right) = (left.of, right.of);
    if of_left.is_tsql() && of_right.is_tsql() {
        refuse(operator, &left, &right, line, dialect)?;
        let families = [of_left, of_right].map(|of| of.family);
        if families.contains(&Family::Binary) && families[0] != families[1] && dialect.checks_arguments {
            let what = format!("{operator} of {} and {}", of_left.name, of_right.name);
            return Err(Error::refused(
                &what,
                "the bytes of such a value are the server's own: convert it first",
                line,
            ));
        }
        if let Some(known) = known_arithmetic(operator, [&left, &right], [of_left, of_right], line, dialect)?
        {
            return Ok(known);
        }
    }
    Ok(Value::new(plain(operator, &left, &right, dialect), UNKNOWN))
}

/// The error of an operator that is not defined for the types of two values.
pub fn refuse(
    operator: &str,
    left: &Value,
    right: &Value,
    line: u32,
    dialect: &Dialect,
) -> Result<(), Error> {
    if [left, right].iter().any(|value| value.is_null() || !value.of.is_tsql()) {
        return Ok(());
    }
    match (dialect.operator_error)(operator, left.of, right.of) {
        None => Ok(()),
        Some((number, text)) => Err(Error::new(number, text, line).with_severity(16)),
    }
}

/// With a whole number bytes become one, and with a number a text becomes one ("Data type precedence").
fn of_one_kind(
    operator: &str,
    left: Value,
    right: Value,
    line: u32,
    dialect: &Dialect,
) -> Result<[Value; 2], Error> {
    let is_number = |of: Family| match of {
        Family::Money => true,
        Family::Integer | Family::Decimal | Family::Float => "+-*/%".contains(operator),
        _ => false,
    };
    let of = [left.of, right.of];
    Ok(match of.map(|of| of.family) {
        [Family::Binary, Family::Integer] => [converted(left, of[1], line, dialect)?, right],
        [Family::Integer, Family::Binary] => [left, converted(right, of[0], line, dialect)?],
        [number, Family::Text] if is_number(number) => [left, converted(right, of[0], line, dialect)?],
        [Family::Text, number] if is_number(number) => [converted(left, of[1], line, dialect)?, right],
        _ => [left, right],
    })
}

fn plain(operator: &'static str, left: &Value, right: &Value, dialect: &Dialect) -> Scalar {
    let operator = if operator == "+" { dialect.concatenation } else { operator };
    left.sql.clone().tsql(operator, right.sql.clone())
}

fn known_arithmetic(
    operator: &'static str,
    values: [&Value; 2],
    of: [Type; 2],
    line: u32,
    dialect: &Dialect,
) -> Result<Option<Value>, Error> {
    let [left, right] = values;
    let plain = || plain(operator, left, right, dialect);
    if of.iter().all(Type::is_text) {
        return texts(operator, plain(), of, line, dialect).map(Some);
    }
    let families = of.map(|of| of.family);
    if let Some(moment) = moved(operator, of) {
        return Ok(Some(Value::new(call(format!("tsql.to_{}", moment.name), [plain()]), moment)));
    }
    if let Some(moment) = moved_by_moment(operator, of).filter(|_| dialect.times_are_added) {
        let sum = if operator == "+" { "tsql.later" } else { "tsql.earlier" };
        let sides = [(left, of[0]), (right, of[1])].map(|(value, of)| match of {
            BIT => call("tsql.moment", [value.sql.clone().cast("integer")]),
            of if of.is_text() => call("tsql.moment", [value.sql.clone().cast("text")]),
            _ => value.sql.clone(),
        });
        return Ok(Some(Value::new(call(format!("tsql.to_{}", moment.name), [call(sum, sides)]), moment)));
    }
    if let Some(bytes) = concatenated(operator, of) {
        return Ok(Some(Value::new(plain(), bytes)));
    }
    if !of.iter().all(Type::is_exact) {
        if families.contains(&Family::Float) && of.iter().all(Type::is_number) {
            let result = if of.contains(&FLOAT) { FLOAT } else { REAL };
            return Ok(Some(Value::new(plain(), result)));
        }
        return Ok(None);
    }
    let operands = || (numeric(left, of[0]), numeric(right, of[1]));
    if families.contains(&Family::Decimal) {
        let digits = [digits_of(left, of[0]), digits_of(right, of[1])];
        // a bit takes the other's type
        let digits = match [of[0] == BIT, of[1] == BIT] {
            [true, false] => [digits[1]; 2],
            [false, true] => [digits[0]; 2],
            _ => digits,
        };
        let Some((precision, scale)) = digits_of_result(operator, digits[0], digits[1], dialect) else {
            let text = format!("Operand data type numeric is invalid for '{operator}' operator.");
            return Err(Error::new(8117, text, line).with_severity(16));
        };
        let twin = of.iter().any(|of| of.twin);
        let (result, (l, r)) = (Type { twin, ..decimal(precision, scale) }, operands());
        let sql = match operator {
            "/" => call("tsql.quotient", [l, r, Scalar::number(scale)]),
            operator => l.infix(operator, r),
        };
        return Ok(Some(Value::cast(sql, result)));
    }
    if families.contains(&Family::Money) {
        let (l, r) = operands();
        // a whole number as the other operand has a lower precedence
        let result = if of.contains(&MONEY) { MONEY } else { SMALLMONEY };
        return Ok(Some(match operator {
            "/" => Value::money(call("tsql.quotient", [l, r, Scalar::number(4)]), result),
            operator => Value::new(call(format!("tsql.to_{}", result.name), [l.infix(operator, r)]), result),
        }));
    }
    let digits = |of: Type| of.digits().unwrap_or((0, 0)).0;
    let widest = if digits(of[1]) > digits(of[0]) { of[1] } else { of[0] };
    Ok(match widest {
        BIT => None,
        TINYINT => Some(Value::new(call("tsql.as_tinyint", [plain()]), TINYINT)),
        _ => Some(Value::new(plain(), widest)),
    })
}

/// A datetime or smalldatetime plus or minus a number of days.
fn moved(operator: &str, of: [Type; 2]) -> Option<Type> {
    let is_moment = |of: &Type| [DATETIME, SMALLDATETIME].contains(of);
    let all = of.iter().all(|of| is_moment(of) || of.is_number());
    // two of them are added by moved_by_moment
    if !matches!(operator, "+" | "-") || !all || of.iter().all(is_moment) {
        return None;
    }
    [DATETIME, SMALLDATETIME].into_iter().find(|moment| of.contains(moment))
}

/// A datetime or smalldatetime and another, a text or a bit, which counts as a time since 1900 too ("+ (Addition)").
fn moved_by_moment(operator: &str, of: [Type; 2]) -> Option<Type> {
    let is_moment = |of: &Type| [DATETIME, SMALLDATETIME].contains(of);
    let all = of.iter().all(|of| is_moment(of) || of.is_text() || *of == BIT);
    if !matches!(operator, "+" | "-") || !all {
        return None;
    }
    [DATETIME, SMALLDATETIME].into_iter().find(|moment| of.contains(moment))
}

/// Bytes followed by bytes.
fn concatenated(operator: &str, of: [Type; 2]) -> Option<Type> {
    let is_short = |of: &Type| of.name == BINARY.name || of.name == VARBINARY.name;
    if operator != "+" || !of.iter().all(is_short) {
        return None;
    }
    // a row version counts as 40
    let own = |of: &Type| if of.is_row_version() { Some(40) } else { of.length };
    let length = own(&of[0]).zip(own(&of[1])).map(|(left, right)| left + right);
    let result = if of.iter().all(|of| of.name == BINARY.name) { BINARY } else { VARBINARY };
    match length.filter(|length| *length <= LONGEST_VARCHAR) {
        None => Some(VARBINARY),
        length => Some(Type { length, ..result }),
    }
}

fn texts(operator: &str, sql: Scalar, of: [Type; 2], line: u32, dialect: &Dialect) -> Result<Value, Error> {
    if operator != "+" {
        let verb = match operator {
            "-" => "subtract",
            "*" => "multiply",
            "/" => "divide",
            "%" => "modulo",
            other => other,
        };
        let text = format!("Operand data type varchar is invalid for {verb} operator.");
        return Err(Error::new(8117, text, line).with_severity(16));
    }
    let national = of.iter().any(Type::is_national);
    let length = of[0].length.zip(of[1].length).map(|(left, right)| left + right);
    let length = match dialect.limits_lengths {
        true => length.map(|length| lengths::bounded(length.into(), national)),
        false => length.filter(|length| *length <= LONGEST_VARCHAR),
    };
    let base =
        if length.is_some() && of.iter().all(|of| of.name == CHAR.name) { CHAR } else { varchar(None) };
    let result = Type { case: of[0].case.max(of[1].case), length, ..base }.with_characters(of);
    Ok(match length {
        None => Value::new(sql, result),
        Some(_) => Value::cast(sql, result),
    })
}

/// The SQL of an operator between values; None for a comparison.
pub fn sign(operator: BinaryOperator) -> Option<&'static str> {
    Some(match operator {
        BinaryOperator::Multiply => "*",
        BinaryOperator::Divide => "/",
        BinaryOperator::Modulo => "%",
        BinaryOperator::Add | BinaryOperator::Concatenate => "+",
        BinaryOperator::Subtract => "-",
        BinaryOperator::BitAnd => "&",
        BinaryOperator::BitOr => "|",
        BinaryOperator::BitXor => "^",
        _ => return None,
    })
}

/// A value as an operand of PostgreSQL's numeric arithmetic.
fn numeric(value: &Value, of: Type) -> Scalar {
    match of == BIT {
        true => call("tsql.to_numeric", [value.sql.clone()]),
        false => value.sql.clone().cast("numeric"),
    }
}

/// Precision and scale of `left operator right` of decimals: SQL Server's "Precision, scale, and length", and
/// ASE's rule for a quotient. None: decimals have no such operator.
fn digits_of_result(operator: &str, left: (u8, u8), right: (u8, u8), dialect: &Dialect) -> Option<(u8, u8)> {
    let widen = |(precision, scale)| (i16::from(precision), i16::from(scale));
    let (((p1, s1), (p2, s2)), most) = ((widen(left), widen(right)), i16::from(MOST_DIGITS));
    let (mut precision, mut scale) = match operator {
        "+" | "-" => {
            let scale = s1.max(s2);
            ((p1 - s1).max(p2 - s2) + scale + 1, scale)
        }
        "*" => (p1 + p2 + 1, s1 + s2),
        "/" => {
            let scale = (s1 + p2 + 1 - if dialect.quotient_subtracts_scale { s2 } else { 0 }).max(6);
            (p1 - s1 + s2 + scale, scale)
        }
        "%" => {
            let scale = s1.max(s2);
            ((p1 - s1).min(p2 - s2) + scale, scale)
        }
        _ => return None,
    };
    if precision > most {
        let room = most - (precision - scale);
        scale = match operator {
            "*" | "/" => scale.min(room.max(scale.min(6))),
            // the digit for a carry is left out first
            _ => scale.min(room + 1),
        };
        precision = most;
    }
    Some((precision as u8, scale as u8))
}
