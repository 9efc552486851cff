//! Precision and scale of decimals whose operands only PostgreSQL knows, as expressions of its SQL.
//!
//! The scale of a quotient depends on the precision of both sides (SQL Server, "Precision, scale, and length"). A
//! column may be an int, whose digits follow from its type, or a decimal, whose digits are in its declaration:
//! tsql.digits_in(value, n) returns those of whole numbers by their type, and n for a decimal.

use super::precision::{packed, Digits, Operand, Side};
use super::value::Value;
use crate::facts::types::{Family, MOST_DIGITS};
use crate::Dialect;

/// Precision and scale of `left operator right`.
pub fn combined(operator: &'static str, left: &Value, right: &Value, dialect: &Dialect) -> Digits {
    Digits::of_operation(operator, [side(left), side(right)], dialect)
}

fn side(value: &Value) -> Side {
    let of = match (value.of, &value.digits) {
        (Some(of), _) if of.is_exact() => {
            let (precision, scale) = super::value::digits_of(value, of);
            Operand::Known(precision, scale)
        }
        (Some(_), _) => Operand::Known(0, 0),
        (None, _) if value.is_null() => Operand::Known(0, 0),
        (None, None) => Operand::Unknown,
        (None, Some(digits)) => Operand::Of(digits.clone()),
    };
    Side::new(&value.sql, of)
}

/// Those of the one of these values that is chosen; None if none is a decimal.
pub fn widest_decimal(values: &[Value]) -> Option<Digits> {
    let sides = values.iter().filter(|value| !value.is_null()).map(side);
    values.iter().any(may_be_decimal).then(|| Digits::widest(sides.collect()))
}

/// Those of the result of a function of a decimal, by the function of schema tsql that computes them; "": those of the
/// value.
pub fn made_decimal(value: &Value, function: &'static str) -> Option<Digits> {
    may_be_decimal(value).then(|| match function {
        "" => Digits::widest(vec![side(value)]),
        _ => Digits::made(function, side(value)),
    })
}

/// The digits of a value where its columns are not visible, as SQL.
pub fn standalone(value: &Value) -> Option<String> {
    match value.of {
        Some(of) => of.digits().map(|(precision, scale)| packed(precision, scale)),
        None => value.digits.as_ref().and_then(Digits::standalone),
    }
}

/// Whether a value may be a decimal.
pub fn may_be_decimal(value: &Value) -> bool {
    value.digits.is_some() || value.of.is_some_and(|of| of.family == Family::Decimal)
}

/// Precision and scale of `left operator right` of decimals: SQL Server's "Precision, scale, and length", and
/// ASE's rule for a quotient. None: decimals have no such operator.
pub fn of_result(operator: &str, left: (u8, u8), right: (u8, u8), dialect: &Dialect) -> Option<(u8, u8)> {
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
