//! Values that are calculated only where they are reached, as those of CASE ("CASE", "Remarks"): PostgreSQL calculates a
//! constant when it plans a query, so that `case when a = 0 then 1 / 0 end` would always fail.

use super::tree::{call, Operator, Scalar};

/// The function of schema tsql that returns its argument, which is no constant for PostgreSQL then.
const LATE: &str = "tsql.late";

/// The same value, in which no constant part can fail before it is reached.
pub fn late(mut value: Scalar) -> Scalar {
    delay(&mut value);
    value
}

/// Returns whether PostgreSQL may calculate the value when it plans a query.
fn delay(value: &mut Scalar) -> bool {
    let can_fail = can_fail(value);
    let mut parts = parts(value);
    let mut is_constant = true;
    for part in &mut parts {
        is_constant &= delay(part);
    }
    if parts.is_empty() {
        return is_literal(value);
    }
    match parts.into_iter().find(|part| has_type(part)) {
        Some(part) if is_constant && can_fail => {
            let own = std::mem::replace(part, Scalar::Null);
            *part = call(LATE, [own]);
            false
        }
        _ => is_constant,
    }
}

fn is_literal(value: &Scalar) -> bool {
    matches!(value, Scalar::Number(_) | Scalar::Text(_) | Scalar::Bytes(_) | Scalar::Parameter(_))
}

/// Whether PostgreSQL sees the type of a value: that of a text or parameter alone is inferred.
fn has_type(value: &Scalar) -> bool {
    !matches!(value, Scalar::Text(_) | Scalar::Parameter(_))
}

/// The operands of an operator, a call or a cast; none of any other value.
fn parts(value: &mut Scalar) -> Vec<&mut Scalar> {
    match value {
        Scalar::Infix(_, sides) => sides.iter_mut().collect(),
        Scalar::Prefix(_, of) | Scalar::Cast(of, _) => vec![of],
        Scalar::Call(call) if call.over.is_none() => call.arguments.iter_mut().collect(),
        _ => Vec::new(),
    }
}

/// Whether an operator or function can fail for some constants.
fn can_fail(value: &Scalar) -> bool {
    match value {
        Scalar::Infix(Operator::Tsql(sign), _) => matches!(*sign, "+" | "-" | "*" | "/" | "%"),
        Scalar::Call(call) => {
            let is_number = |value: &Scalar| match value {
                Scalar::Cast(of, _) => matches!(**of, Scalar::Number(_)),
                value => matches!(value, Scalar::Number(_)),
            };
            let converts = call.function.starts_with("tsql.to_");
            call.function.starts_with("tsql.") && !(converts && call.arguments.iter().all(is_number))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_constants_that_can_fail_are_delayed() {
        let number = Scalar::number;
        let quotient = || number(1).tsql("/", number(0));
        let a = || Scalar::column("a");
        for (value, expected) in [
            (quotient(), "(tsql.late(1) operator(tsql./) 0)"),
            (quotient().tsql("+", a()), "((tsql.late(1) operator(tsql./) 0) operator(tsql.+) a)"),
            (
                quotient().tsql("+", quotient()),
                "((tsql.late(1) operator(tsql./) 0) operator(tsql.+) (tsql.late(1) operator(tsql./) 0))",
            ),
            (a().tsql("/", number(0)), "(a operator(tsql./) 0)"),
            (number(7), "7"),
            (Scalar::Parameter(0).tsql("/", number(0)), "(\x000\x00 operator(tsql./) tsql.late(0))"),
            (
                call("tsql.variant_of", [Scalar::text("int"), number(1).cast("integer")]),
                "tsql.variant_of('int', tsql.late(1::integer))",
            ),
            (
                call("tsql.to_int", [Scalar::text("x").cast("varchar")]),
                "tsql.to_int(tsql.late('x'::varchar))",
            ),
            (call("tsql.to_numeric", [number(1)]).cast("numeric(4,1)"), "tsql.to_numeric(1)::numeric(4,1)"),
            (call("tsql.rand", []), "tsql.rand()"),
        ] {
            assert_eq!(late(value).to_string(), expected);
        }
    }
}
