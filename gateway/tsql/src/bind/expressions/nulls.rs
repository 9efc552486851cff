//! `=` and `<>` where null equals null: `set ansi_nulls off`, ASE's `set ansinull off`.
//!
//! The setting matters if an operand is a null variable or the literal NULL; then the comparison is true or false,
//! never unknown (SQL Server: "SET ANSI_NULLS", "Remarks"; ASE Reference Manual: "set", ansinull).

use crate::bind::binder::Binder;
use crate::bind::values::{Constant, Value};
use crate::postgres::Scalar;
use crate::tree::Expression;

/// The correction of a comparison of values.
pub enum Nulls {
    /// An operand is the literal NULL: this replaces the comparison.
    Whole(Scalar),
    /// It is true also in this case.
    Or(Scalar),
    /// This replaces unknown.
    Else(Scalar),
}

/// None: the setting makes no difference.
pub fn nulls(binder: &Binder<'_>, sign: &str, sides: [&Expression; 2], values: &[Value; 2]) -> Option<Nulls> {
    let is_equal = match sign {
        _ if !binder.scope.nulls_equal => return None,
        "=" => true,
        "<>" => false,
        _ => return None,
    };
    let [left, right] = values.each_ref().map(|value| value.sql.clone());
    match values.each_ref().map(Value::is_null) {
        [_, true] => return Some(Nulls::Whole(left.is_null(is_equal))),
        [true, false] => return Some(Nulls::Whole(right.is_null(is_equal))),
        [false, false] => {}
    }
    let (variable, index) = match sides.map(is_variable) {
        [true, true] => {
            let sign = if is_equal { "=" } else { "<>" };
            return Some(Nulls::Else(left.is_null(true).infix(sign, right.is_null(true))));
        }
        [true, false] => (left, 1),
        [false, true] => (right, 0),
        [false, false] => return None,
    };
    let (side, other) = (sides[index], &values[index]);
    if is_literal(side, other) {
        // false differs from unknown only under NOT
        let differs = !is_equal || binder.around.under_not;
        return differs.then_some(Nulls::Else(Scalar::Boolean(!is_equal)));
    }
    if is_equal && !binder.around.under_not && matches!(side, Expression::Column(_)) {
        // an index can be used for it
        return Some(Nulls::Or(variable.is_null(true).and(other.sql.clone().is_null(true))));
    }
    let other = other.sql.clone().is_null(is_equal);
    Some(Nulls::Else(Scalar::Case(vec![(variable.is_null(true), other)], None)))
}

/// A variable of the text: not @@error or similar, nor a lifted literal.
fn is_variable(side: &Expression) -> bool {
    matches!(side, Expression::Variable(variable) if !variable.is_literal() && !variable.is_global())
}

fn is_literal(side: &Expression, value: &Value) -> bool {
    value.constant != Constant::None
        || matches!(side, Expression::Literal(_))
        || matches!(side, Expression::Variable(variable) if variable.is_literal())
}
