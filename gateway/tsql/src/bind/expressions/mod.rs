//! Expressions: values and conditions.

pub(super) mod conditions;
pub(super) mod conversions;
mod nulls;
pub(super) mod walk;

use crate::bind::binder::item::Written;
use crate::bind::binder::{bound, changed_rows, Binder};
use crate::bind::functions::next_value::refuse_next_value;
use crate::bind::functions::times;
use crate::bind::query::{select, sources};
use crate::bind::structured::xml;
use crate::bind::values::arithmetic::{arithmetic, sign};
use crate::bind::values::assignments::implicit;
use crate::bind::values::{arithmetic, common, literals, Constant, Value};
use crate::bind::{functions, values};
use crate::error::Error;
use crate::facts::collations::{self, Collation};
use crate::facts::types::{self, nvarchar, varchar, Family, Type, BIT, MONEY, SMALLINT, TINYINT, UNKNOWN};
use crate::postgres::{call, late, Operator, Scalar};
use crate::resolve::names::{identifier, stored};
use crate::tree::{
    BinaryOperator, Case, ColumnName, Expression, Literal, LiteralValue, Query, QueryBody, UnaryOperator,
    Variable,
};
use crate::Dialect;

pub fn value(binder: &mut Binder<'_>, expression: &Expression) -> Result<Value, Error> {
    let value = written_value(binder, expression)?;
    binder.wrote(value.sql.size(), expression.at().line)?;
    Ok(value)
}

fn written_value(binder: &mut Binder<'_>, expression: &Expression) -> Result<Value, Error> {
    let line = expression.at().line;
    match expression {
        Expression::Literal(literal) => self::literal(binder, literal),
        Expression::Variable(variable) => self::variable(binder, variable),
        Expression::Column(column) => self::column(binder, column),
        Expression::Default(at) => Err(Error::keyword("default", *at)),
        Expression::Unary { operator, operand, .. } => unary(binder, *operator, operand),
        Expression::Binary { operator, .. } if sign(*operator).is_some() => chain(binder, expression),
        Expression::Case(case) => self::case(binder, case),
        Expression::Cast(cast) => conversions::cast(binder, cast),
        Expression::Function(call) => functions::function(binder, call),
        Expression::Subquery(query) => scalar(binder, query),
        Expression::Xml(xml) => xml::xml(binder, xml),
        Expression::Collate { operand, collation } => {
            let value = value(binder, operand)?;
            refuse_collation(&value, operand)?;
            let found =
                binder.scope.collation(&collation.text).filter(|found| *found != Collation::Sensitive);
            let Some(found) = found.filter(|_| !collations::needs_language(&collation.text)) else {
                let why = "its order is that of a language; it is for =, <>, in and like";
                return Err(Error::refused(&format!("collate {}", collation.text), why, collation.at));
            };
            Ok(as_collated(value, found))
        }
        Expression::AtTimeZone { operand, zone } => times::at_time_zone(binder, operand, zone),
        _ => Err(Error::new(102, "Incorrect syntax: a condition where a value is expected.", line)),
    }
}

fn literal(binder: &mut Binder<'_>, literal: &Literal) -> Result<Value, Error> {
    let line = literal.at.line;
    match &literal.value {
        LiteralValue::Null => Ok(Value::null()),
        LiteralValue::Integer(digits) => literals::of_integer(digits, line),
        LiteralValue::Decimal(digits) => literals::of_decimal(digits, line),
        LiteralValue::Float(digits) => Ok(literals::of_float(digits)),
        LiteralValue::Money(amount) => literals::of_money(amount, line),
        LiteralValue::Binary(digits) => Ok(literals::of_binary(digits)),
        LiteralValue::Text { text, national } => Ok(literals::of_text(text, *national, binder.dialect())),
    }
}

pub fn variable(binder: &mut Binder<'_>, variable: &Variable) -> Result<Value, Error> {
    if let Some(value) = binder.assigned.get(&variable.name) {
        return Ok(value.clone());
    }
    let line = variable.at.line;
    let of = binder.scope.type_of(&variable.name, line)?;
    let sql = binder.variables.write(&variable.name, line)?;
    Ok(match of.of_values() {
        MONEY => Value::money(sql, MONEY),
        // it is sent without a type
        of if of.is_text() => Value::cast(sql, of),
        of => Value::new(sql, of),
    })
}

pub fn column(binder: &mut Binder<'_>, column: &ColumnName) -> Result<Value, Error> {
    if let Some(action) = changed_rows::action(binder, column) {
        return Ok(Value::cast(action.clone(), changed_rows::TYPE_OF_ACTION));
    }
    let of = if column.table.is_none() && !binder.column_types.is_empty() {
        binder.column_types.get(&stored(&column.column)).copied().unwrap_or(UNKNOWN)
    } else {
        bound::type_of_column(binder, column)?
    };
    let of = if binder.scope.folds { of.with_case(types::Case::Counts) } else { of };
    Ok(Value::new(column_sql(binder, column)?, of))
}

/// A column with its qualifier.
pub fn column_sql(binder: &Binder<'_>, column: &ColumnName) -> Result<Scalar, Error> {
    let own = identifier(&column.column, column.at.line)?;
    let qualifier = column.table.as_ref().map(|table| sources::qualifier(binder, table)).transpose()?;
    let row = match qualifier {
        None if binder.unchanged.is_some() => Some(String::from("old")),
        Some(table) if binder.unchanged.as_ref() == Some(&table) => Some(String::from("old")),
        qualifier => qualifier,
    };
    Ok(Scalar::Column(row, own))
}

fn unary(binder: &mut Binder<'_>, operator: UnaryOperator, operand: &Expression) -> Result<Value, Error> {
    if operator == UnaryOperator::Minus && is_least_int(operand) {
        return Ok(Value::cast(Scalar::text("-2147483648"), types::INT));
    }
    let value = value(binder, operand)?;
    if value.family() == Family::Variant && operator != UnaryOperator::Plus {
        let sign = if operator == UnaryOperator::Minus { "minus" } else { "'~'" };
        let text = format!("Operand data type sql_variant is invalid for {sign} operator.");
        return Err(Error::new(8117, text, operand.at()).with_severity(16));
    }
    match operator {
        UnaryOperator::Plus => Ok(value),
        UnaryOperator::Complement if value.of == BIT => Ok(Value::new(value.sql.negated_if(true), value.of)),
        UnaryOperator::Complement => {
            if value.of.is_tsql() && value.family() != Family::Integer {
                let of = value.of.display_name();
                let text = format!("Operand data type {of} is invalid for '~' operator.");
                return Err(Error::new(8117, text, operand.at()).with_severity(16));
            }
            let bits = match value.of {
                TINYINT => value.sql.cast("tsql.tinyint"),
                _ => value.sql,
            };
            Ok(Value::new(call("tsql.complement", [bits]), value.of))
        }
        UnaryOperator::Minus => negated(value, operand.at().line),
    }
}

/// Its positive number is a numeric.
fn is_least_int(operand: &Expression) -> bool {
    let Expression::Literal(Literal { value: LiteralValue::Integer(digits), .. }) = operand else {
        return false;
    };
    digits.trim_start_matches('0') == "2147483648"
}

fn negated(value: Value, line: u32) -> Result<Value, Error> {
    if let Some(integer) = value.integer() {
        let sql = Scalar::number(-integer);
        return Ok(Value { constant: Constant::Integer(-integer), ..Value::new(sql, value.of) });
    }
    if value.is_text() {
        let text = "Operand data type varchar is invalid for minus operator.";
        return Err(Error::new(8117, text, line).with_severity(16));
    }
    if value.is_null() {
        return Ok(value);
    }
    if value.of == TINYINT {
        // it has no sign ("- (Negative)")
        return Ok(Value::new(value.sql.cast("smallint").negative(Operator::Plain("-")), SMALLINT));
    }
    let minus = match value.family() {
        // the result is money, which PostgreSQL alone may know
        Family::Money | Family::Postgres => Operator::Tsql("-"),
        _ => Operator::Plain("-"),
    };
    Ok(Value::new(value.sql.negative(minus), value.of))
}

/// A chain of operators may be of any length: no recursion along its left side.
fn chain(binder: &mut Binder<'_>, expression: &Expression) -> Result<Value, Error> {
    let mut operations = Vec::new();
    let mut first = expression;
    while let Expression::Binary { operator, left, right, .. } = first {
        let Some(sign) = sign(*operator) else { break };
        operations.push((*operator, sign, &**right));
        first = left;
    }
    let mut value = value(binder, first)?;
    for (operator, sign, right) in operations.into_iter().rev() {
        let line = right.at().line;
        let mut right = self::value(binder, right)?;
        if operator == BinaryOperator::Concatenate {
            arithmetic::refuse("||", &value, &right, line, binder.dialect())?;
            value = as_text(value, binder.dialect());
            right = as_text(right, binder.dialect());
        }
        value = arithmetic(sign, value, right, line, binder.dialect())?;
        binder.wrote(value.sql.size(), line)?;
    }
    Ok(value)
}

fn case(binder: &mut Binder<'_>, case: &Case) -> Result<Value, Error> {
    let line = case.at.line;
    let numbers = binder.around.next_values;
    let operand = case.operand.as_ref().map(|operand| value(binder, operand)).transpose()?;
    let mut branches = Vec::with_capacity(case.branches.len());
    for (when, then) in &case.branches {
        let condition = match &operand {
            None => conditions::condition(binder, when)?,
            Some(operand) => {
                let right = value(binder, when)?;
                let compared = conditions::compared(binder, "=", operand, &right, line)?;
                binder.wrote(compared.size(), line)?;
                compared
            }
        };
        branches.push((condition, then));
    }
    let value = self::branches(binder, branches, case.otherwise.as_ref(), line)?;
    refuse_next_value(binder, numbers, 11741, line)?;
    Ok(value)
}

/// CASE: converts the values to a common type.
pub fn branches(
    binder: &mut Binder<'_>,
    branches: Vec<(Scalar, &Expression)>,
    otherwise: Option<&Expression>,
    line: u32,
) -> Result<Value, Error> {
    let mut values = Vec::with_capacity(branches.len() + 1);
    for (_, then) in &branches {
        values.push(value(binder, then)?);
    }
    values.push(otherwise.map_or(Ok(Value::null()), |last| value(binder, last))?);
    if values.iter().all(Value::is_null) {
        let text = "At least one of the result expressions in a CASE specification must be an expression \
                        other than the NULL constant.";
        return Err(Error::new(8133, text, line).with_severity(16));
    }
    let of = common(&values);
    let dialect = binder.dialect();
    let mut written = values.into_iter().map(|value| match of.is_tsql() {
        true if !value.is_null() && value.of != of => {
            implicit(value, of, line, dialect).map(|value| value.sql)
        }
        _ => Ok(value.sql),
    });
    let mut arms = Vec::with_capacity(branches.len());
    for ((condition, _), value) in branches.into_iter().zip(&mut written) {
        arms.push((condition, reached(binder, value?)));
    }
    let otherwise = written.next().transpose()?.map(|value| Box::new(reached(binder, value)));
    let sql = Scalar::Case(arms, otherwise);
    Ok(match of {
        of if of.family == Family::Money => Value::money(sql, of),
        of if matches!(of.family, Family::Text | Family::Decimal) => Value::cast(sql, of),
        of => Value::new(sql, of),
    })
}

/// A value that is calculated only where it is reached; that of a definition is no query's.
pub fn reached(binder: &Binder<'_>, value: Scalar) -> Scalar {
    match binder.scope.definition || binder.scope.stored {
        true => value,
        false => late(value),
    }
}

fn scalar(binder: &mut Binder<'_>, query: &Query) -> Result<Value, Error> {
    let Written { sql, mut items } = select::subquery(binder, query, Some(1))?;
    let rows = Scalar::Query(Box::new(sql));
    if query.for_json.is_some() {
        return Ok(Value::new(rows, nvarchar(None)));
    }
    let of = items.pop().map(|item| item.of).filter(|_| matches!(query.body, QueryBody::Select(_)));
    Ok(Value::new(rows, of.unwrap_or(UNKNOWN)))
}

/// 447: only texts have a collation.
pub fn refuse_collation(value: &Value, written: &Expression) -> Result<(), Error> {
    match value.family() {
        Family::Text | Family::Variant | Family::Postgres => Ok(()),
        _ => {
            let text = format!("Expression type {} is invalid for COLLATE clause.", value.of.name);
            Err(Error::new(447, text, written.at()).with_severity(16))
        }
    }
}

/// A text under another collation.
pub fn as_collated(value: Value, collation: Collation) -> Value {
    let case = if collation == Collation::Insensitive { types::Case::Ignored } else { types::Case::Counts };
    let folds = case == types::Case::Ignored;
    match value.of {
        _ if value.is_null() => value,
        of if of.is_text() && of.folds() == folds => Value { of: Type { case, ..of }, ..value },
        of if of.is_text() => {
            let of = Type { case, ..of };
            Value::cast(value.sql, of)
        }
        _ => value,
    }
}

/// A value as an operand of `||`.
pub fn as_text(value: Value, dialect: &Dialect) -> Value {
    if value.is_text() || value.is_null() {
        value
    } else {
        let of = varchar(None).with_characters([value.characters()]);
        Value::new(values::text_of(&value, dialect), of)
    }
}
