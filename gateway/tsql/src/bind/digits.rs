//! Precision and scale of the results of arithmetic.

use crate::facts::types::MOST_DIGITS;
use crate::Dialect;

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
