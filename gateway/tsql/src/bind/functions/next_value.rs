//! NEXT VALUE FOR: the next number of a sequence, and the places where it is refused.

use super::calls::CallBinder;
use crate::bind::binder::Binder;
use crate::bind::expressions::walk;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::types::BIGINT;
use crate::postgres::{call, Scalar};
use crate::resolve::names::table;
use crate::tree::{Expression, Literal, LiteralValue, ObjectName, Position};

/// The next number of a sequence.
pub fn next_value(called: &mut CallBinder<'_, '_, '_>) -> Result<Value, Error> {
    let part = |index: usize| match called.arguments.get(index) {
        Some(Expression::Literal(Literal { value: LiteralValue::Text { text, .. }, .. })) => text.clone(),
        _ => String::new(),
    };
    let at = called.of.name.at;
    let sequence =
        table(&ObjectName { database: part(0), owner: part(1), name: part(2), at, ..ObjectName::default() })?;
    called.binder.note(|facts| facts.calls = true);
    called.binder.around.next_values += 1;
    Ok(Value::new(call("nextval", [Scalar::Text(sequence)]), BIGINT))
}

/// The position of a NEXT VALUE FOR in an expression.
pub fn next_value_in(value: &Expression) -> Option<Position> {
    let mut is_it =
        |one: &Expression| matches!(one, Expression::Function(call) if call.name.name == "next value for");
    walk::any(value, &mut is_it).then(|| value.at())
}

/// Refuses a NEXT VALUE FOR that was written since there were `before`, in a place where rows that are left out would
/// take numbers too.
pub fn refuse_next_value(binder: &Binder<'_>, before: usize, number: i32, line: u32) -> Result<(), Error> {
    if binder.around.next_values == before {
        return Ok(());
    }
    let why = match number {
        11719 => "is not allowed in check constraints, default objects, computed columns, views, user-defined functions, \
                  user-defined aggregates, user-defined table types, sub-queries, common table expressions, derived \
                  tables or return statements",
        11720 => "is not allowed in the ON, WHERE, GROUP BY, HAVING, or ORDER BY clauses",
        11721 => "cannot be used directly in a statement that uses a DISTINCT, UNION, UNION ALL, EXCEPT or INTERSECT operator",
        11723 => "cannot be used directly in a statement that contains an ORDER BY clause unless the OVER clause is specified",
        11725 => {
            let text = "An expression that contains a NEXT VALUE FOR function cannot be passed as an argument to an aggregate.";
            return Err(Error::new(number, text, line));
        }
        11739 => "cannot be used if the query contains TOP or OFFSET",
        _ => "cannot be used within CASE, CHOOSE, COALESCE, IIF, ISNULL and NULLIF",
    };
    Err(Error::new(number, format!("NEXT VALUE FOR function {why}."), line))
}
