//! Whether a text is national (nchar, nvarchar), with two bytes for each UTF-16 unit in SQL Server: this determines its
//! length in bytes, its bytes, and the effect of trailing blanks in LIKE.

use super::binder::Binder;
use super::named::Origin;
use super::{bound, declared};
use crate::error::Error;
use crate::facts::functions::{rule, Rule};
use crate::facts::type_names;
use crate::facts::types::Type;
use crate::resolve::names::stored;
use crate::tree::{
    Arguments, BinaryOperator, ColumnName, Expression, LiteralValue, Query, QueryBody, SelectItem,
};
use crate::units;

/// The question about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    IsNational,
    /// It may have more than 8,000 bytes: varchar(max), text, a longer literal.
    IsLong,
}

impl Question {
    fn of_literal(self, text: &str, national: bool) -> bool {
        match self {
            Question::IsNational => national,
            Question::IsLong => !units::fits(text, 8000),
        }
    }

    fn of_type(self, of: Type) -> bool {
        match self {
            Question::IsNational => of.is_national(),
            Question::IsLong => of.is_text() && of.length.is_none(),
        }
    }
}

/// Whether a text is national: a literal, a variable, a column, a conversion, and texts made of these.
pub fn is_wide(binder: &mut Binder<'_>, text: &Expression) -> Result<bool, Error> {
    match binder.dialect().has_wide_texts {
        false => Ok(false),
        true => answer(binder, Question::IsNational, text),
    }
}

/// Whether a text may be longer than 8,000 bytes.
pub fn is_long(binder: &mut Binder<'_>, text: &Expression) -> Result<bool, Error> {
    answer(binder, Question::IsLong, text)
}

fn answer(binder: &mut Binder<'_>, question: Question, text: &Expression) -> Result<bool, Error> {
    Ok(match text {
        Expression::Literal(literal) => match &literal.value {
            LiteralValue::Text { text, national, .. } => question.of_literal(text, *national),
            _ => false,
        },
        Expression::Variable(variable) => {
            let of = binder.scope.type_of(&variable.name, variable.at.line)?;
            of.is_some_and(|of| question.of_type(of))
        }
        Expression::Column(column) => of_column(binder, question, column)?,
        Expression::Cast(cast) => question.of_type(type_names::of_name(&cast.target, 1, binder.dialect())?),
        Expression::Collate { operand, .. } => answer(binder, question, operand)?,
        Expression::Binary { operator: BinaryOperator::Add, left, right, .. } => {
            answer(binder, question, left)? | answer(binder, question, right)?
        }
        Expression::Case(case) => {
            let then = case.branches.iter().map(|(_, then)| then);
            any(binder, question, then.chain(case.otherwise.as_ref()))?
        }
        Expression::Subquery(query) => of_query(binder, question, query)?,
        Expression::Function(call) if call.name.is_bare() => {
            let name = call.name.name.to_lowercase();
            match &call.arguments {
                Arguments::Values(values) => match deciding(&name, values) {
                    Some(deciding) => any(binder, question, deciding)?,
                    None => question == Question::IsNational && is_national(&name),
                },
                Arguments::Star => false,
            }
        }
        _ => false,
    })
}

fn any<'e>(
    binder: &mut Binder<'_>,
    question: Question,
    texts: impl IntoIterator<Item = &'e Expression>,
) -> Result<bool, Error> {
    let mut is_so = false;
    for text in texts {
        is_so |= answer(binder, question, text)?;
    }
    Ok(is_so)
}

fn of_column(binder: &mut Binder<'_>, question: Question, column: &ColumnName) -> Result<bool, Error> {
    if let Some(of) = binder.column_types.get(&stored(&column.column)) {
        return Ok(question.of_type(*of));
    }
    if let Some(of) = bound::type_of_column(binder, column)? {
        return Ok(question.of_type(of));
    }
    Ok(match declared::origin(binder, column)? {
        Origin::Query(of) => question == Question::IsNational && of.is_wide,
        Origin::Tables(_) => false,
    })
}

/// The single column of a query used as a value.
fn of_query(binder: &mut Binder<'_>, question: Question, query: &Query) -> Result<bool, Error> {
    let QueryBody::Select(select) = &query.body else { return Ok(false) };
    let [SelectItem::Value { value, .. }] = select.items.as_slice() else { return Ok(false) };
    let named = declared::named_sources(binder, &select.from)?;
    binder.names.sources.push(named);
    let is_so = answer(binder, question, value);
    binder.names.sources.pop();
    is_so
}

/// The arguments that determine whether the result of a function is national, or long; None if it is fixed.
fn deciding<'e>(name: &str, values: &'e [Expression]) -> Option<&'e [Expression]> {
    use Rule::{
        Choose, Coalesce, Concat, ConcatWith, Edge, Extreme, Iif, IsNull, Neighbour, NullIf, OfAll,
        Replicate, SameLength, Side, StringAgg, Substring,
    };
    let number = values.len();
    Some(match rule(name)? {
        SameLength | Side | Substring | IsNull | NullIf | Replicate | Extreme | Edge | Neighbour
        | StringAgg => &values[..number.min(1)],
        Iif | Choose => &values[number.min(1)..],
        Concat | ConcatWith | Coalesce | OfAll => values,
        _ if matches!(name, "replace" | "stuff" | "translate" | "str_replace") => values,
        _ => return None,
    })
}

/// Whether the result of a function is always national: those that return nvarchar or sysname.
fn is_national(name: &str) -> bool {
    matches!(
        name,
        "nchar" | "quotename" | "datename" | "format" | "formatmessage" | "error_message" | "error_procedure"
    ) || matches!(
        name,
        "app_name"
            | "col_name"
            | "current_user"
            | "db_name"
            | "host_name"
            | "object_definition"
            | "object_name"
            | "object_schema_name"
            | "original_login"
            | "parsename"
            | "schema_name"
            | "session_user"
            | "suser_name"
            | "suser_sname"
            | "system_user"
            | "type_name"
            | "user"
            | "user_name"
    )
}
