//! `=` and `<>` where null equals null: `set ansi_nulls off`, ASE's `set ansinull off`.
//!
//! The setting matters where an operand is a variable that is null or the literal NULL; then the comparison is true or
//! false, never unknown (SQL Server: "SET ANSI_NULLS", "Remarks"; ASE Reference Manual: "set", ansinull).

use super::translation::Translation;
use super::value::{Constant, Value};
use crate::tree::Expression;

/// What a comparison of values lacks.
pub enum Nulls {
    /// An operand is the literal NULL: this is the comparison.
    Whole(String),
    /// It is true in this case too.
    Or(String),
    /// Where it would be unknown, it is this.
    Else(String),
}

impl Translation<'_> {
    /// None: the setting makes no difference.
    pub fn nulls(&self, sign: &str, sides: [&Expression; 2], values: &[Value; 2]) -> Option<Nulls> {
        let is_equal = match sign {
            _ if !self.scope.nulls_equal => return None,
            "=" => true,
            "<>" => false,
            _ => return None,
        };
        let is_null = if is_equal { "is null" } else { "is not null" };
        let [left, right] = values.each_ref().map(|value| value.sql.as_str());
        match values.each_ref().map(Value::is_null) {
            [_, true] => return Some(Nulls::Whole(format!("({left} {is_null})"))),
            [true, false] => return Some(Nulls::Whole(format!("({right} {is_null})"))),
            [false, false] => {}
        }
        let (variable, place) = match sides.map(is_variable) {
            [true, true] => {
                let sign = if is_equal { "=" } else { "<>" };
                return Some(Nulls::Else(format!("(({left} is null) {sign} ({right} is null))")));
            }
            [true, false] => (left, 1),
            [false, true] => (right, 0),
            [false, false] => return None,
        };
        let (side, other) = (sides[place], &values[place]);
        if is_literal(side, other) {
            // false and unknown make a difference only under NOT
            return (!is_equal || self.around.under_not).then(|| Nulls::Else(format!("{}", !is_equal)));
        }
        if is_equal && !self.around.under_not && matches!(side, Expression::Column(_)) {
            // of which an index can be used
            return Some(Nulls::Or(format!("({variable} is null and {} is null)", other.sql)));
        }
        Some(Nulls::Else(format!("case when {variable} is null then {} {is_null} end", other.sql)))
    }
}

/// One of the text's own: not @@error and the like, nor one that a literal was replaced by.
fn is_variable(side: &Expression) -> bool {
    matches!(side, Expression::Variable(variable) if !variable.is_literal() && !variable.is_global())
}

fn is_literal(side: &Expression, value: &Value) -> bool {
    value.constant != Constant::None
        || matches!(side, Expression::Literal(_))
        || matches!(side, Expression::Variable(variable) if variable.is_literal())
}
