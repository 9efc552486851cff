//! The lengths of texts and binaries that functions return (SQL Server, "String functions", with the widths that
//! SQL Server 2025 describes): a result is as long as its arguments can make it, at most 8,000 bytes; of a (max) it is
//! one too. Other rules of ASE: its functions return a text of any length.

use super::calls::CallBinder;
use crate::bind::values::lengths::{bounded, longest, of_text};
use crate::bind::values::Value;
use crate::facts::types::Type;
use crate::tree::{Expression, LiteralValue};

/// The number that an argument is written as, if it is a literal that is not negative.
fn literal(called: &CallBinder<'_, '_, '_>, index: usize) -> Option<u64> {
    match called.arguments.get(index) {
        Some(Expression::Literal(literal)) => match &literal.value {
            LiteralValue::Integer(digits) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Of a part of a text or of binaries, whose length is the argument at `index`.
pub fn of_part(called: &CallBinder<'_, '_, '_>, value: &Value, index: usize) -> Option<u32> {
    if !called.dialect().limits_lengths {
        return value.length();
    }
    let most = match value.of.is_large() {
        true => longest(value.of.is_national()),
        false => of_text(value)?,
    };
    Some(literal(called, index).map_or(most, |length| u64::from(most).min(length) as u32).max(1))
}

/// Of a text repeated by the number at `index`.
pub fn of_repeated(called: &CallBinder<'_, '_, '_>, value: &Value, index: usize) -> Option<u32> {
    if !called.dialect().limits_lengths || value.of.is_large() {
        return None;
    }
    let (length, national) = (of_text(value)?, value.is_national());
    Some(
        literal(called, index)
            .map_or(longest(national), |number| bounded(u64::from(length).saturating_mul(number), national)),
    )
}

/// Of a text made of all of these, with separators between the values.
pub fn of_all(called: &CallBinder<'_, '_, '_>, values: &[Value], separator: Option<&Value>) -> Option<u32> {
    if !called.dialect().limits_lengths {
        return None;
    }
    let national = values.iter().chain(separator).any(Value::is_national);
    let mut total = 0;
    for value in values {
        if value.of.is_large() {
            return None;
        }
        total += u64::from(of_text(value)?);
    }
    if let Some(separator) = separator {
        total += u64::from(of_text(separator)?) * (values.len() as u64).saturating_sub(1);
    }
    Some(bounded(total, national))
}

/// Of the text that a function of fixed arguments returns, and whether a longer one is an error. `texts`: its texts.
pub fn of_function(called: &CallBinder<'_, '_, '_>, texts: &[Value], gives: Type) -> (Option<u32>, bool) {
    if !called.dialect().limits_lengths {
        return (gives.length, false);
    }
    let lengths: Option<Vec<u32>> =
        texts.iter().map(|value| of_text(value).filter(|_| !value.of.is_large())).collect();
    let most = longest(gives.is_national());
    match (called.name, lengths) {
        ("replace" | "translate", Some(_)) => (Some(most), false),
        ("space", _) => (Some(literal(called, 0).map_or(most, |number| bounded(number, false))), false),
        ("stuff", Some(lengths)) => {
            let [length, put] = [lengths[0], lengths[1]].map(u64::from);
            let length = match (literal(called, 1), literal(called, 2)) {
                (Some(start @ 1..), Some(cut)) if start <= length => {
                    length - cut.min(length - start + 1) + put
                }
                _ => u64::from(most),
            };
            (Some(bounded(length, gives.is_national())), length >= u64::from(most))
        }
        _ => (gives.length, false),
    }
}
