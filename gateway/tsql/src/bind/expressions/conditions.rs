//! Conditions as PostgreSQL's booleans, in parentheses if needed.

use super::nulls::Nulls;
use super::walk::{any, has_query};
use super::{as_collated, as_text, nulls, refuse_collation};
use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::query::select;
use crate::bind::values::arithmetic::refuse;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::collations::Collation;
use crate::facts::conversions::verb;
use crate::facts::functions::{date_part, rule, Rule};
use crate::facts::types::{Case, Family, Type};
use crate::facts::variants;
use crate::postgres::{call, Scalar};
use crate::resolve::names::folded;
use crate::resolve::Fired;
use crate::schema::CHANGED;
use crate::tree::{Arguments, BinaryOperator, ColumnName, Expression, FunctionCall, Quantifier};

/// The operator of a comparison; None for an operator between values and for an old outer join.
fn sign(operator: BinaryOperator) -> Option<&'static str> {
    Some(match operator {
        BinaryOperator::Equal => "=",
        BinaryOperator::NotEqual => "<>",
        BinaryOperator::Less => "<",
        BinaryOperator::LessOrEqual => "<=",
        BinaryOperator::Greater => ">",
        BinaryOperator::GreaterOrEqual => ">=",
        _ => return None,
    })
}

pub fn condition(binder: &mut Binder<'_>, expression: &Expression) -> Result<Scalar, Error> {
    let line = expression.at().line;
    let sql = match expression {
        Expression::And(operands) => Scalar::And(conditions(binder, operands)?),
        Expression::Or(operands) => Scalar::Or(conditions(binder, operands)?),
        Expression::Not(operand) => {
            let outer = std::mem::replace(&mut binder.around.under_not, true);
            let condition = condition(binder, operand);
            binder.around.under_not = outer;
            condition?.negated_if(true)
        }
        Expression::IsNull { operand, negated } => expressions::value(binder, operand)?.sql.is_null(!negated),
        Expression::IsDistinct { .. } => {
            return Err(Error::refused("is distinct from", "compare, and ask for is null", line));
        }
        Expression::Between { operand, low, high, negated } => {
            note_clock(binder, operand, &[low, high]);
            let (value, low, high) = (
                expressions::value(binder, operand)?,
                expressions::value(binder, low)?,
                expressions::value(binder, high)?,
            );
            binder.variables.meets(&low, value.of, true);
            binder.variables.meets(&high, value.of, true);
            let at_least = compared(binder, ">=", &value, &low, line)?;
            let at_most = compared(binder, "<=", &value, &high, line)?;
            at_least.and(at_most).negated_if(*negated)
        }
        Expression::Like { operand, pattern: pattern_text, escape, negated } => {
            let escape = escape.as_ref().map(|escape| expressions::value(binder, escape)).transpose()?;
            let [value, pattern] = collated(binder, "like", [operand, pattern_text])?;
            binder.variables.meets(&pattern, value.of, true);
            for (index, side) in [&value, &pattern].into_iter().enumerate() {
                let refused = variants::refusal("like", index);
                if let (Family::Variant, Some((number, text))) = (side.family(), refused) {
                    return Err(Error::new(number, text, line).with_severity(16));
                }
            }
            let character = escape.map_or(Scalar::Null, |value| value.sql);
            let is_wide =
                binder.dialect().has_wide_texts && [&value, &pattern].iter().any(|text| text.of.is_wide());
            let texts = [value, pattern].map(|value| as_text(value, binder.dialect()));
            let [value, pattern] = collated_together(binder, texts);
            let like = if is_wide { "tsql.is_wide_like" } else { "tsql.is_like" };
            call(like, [value.sql, pattern.sql, character]).negated_if(*negated)
        }
        Expression::In { operand, values, negated } => {
            let mut equal = Vec::with_capacity(values.len());
            let is_collated = |one: &Expression| matches!(one, Expression::Collate { .. });
            let each = is_collated(operand) || values.iter().any(is_collated);
            let value = if each { None } else { Some(expressions::value(binder, operand)?) };
            for item in values {
                let [value, item] = match &value {
                    Some(value) => [value.clone(), expressions::value(binder, item)?],
                    None => collated(binder, "=", [operand, item])?,
                };
                binder.variables.meets(&item, value.of, false);
                let compared = compared(binder, "=", &value, &item, line)?;
                binder.wrote(compared.size(), line)?;
                equal.push(compared);
            }
            if binder.scope.definition {
                // as the catalogue shows it
                equal.reverse();
            }
            Scalar::Or(equal).negated_if(*negated)
        }
        Expression::InQuery { operand, query, negated } => {
            let value = expressions::value(binder, operand)?;
            let rows = Scalar::Quantified("any", select::subselect(binder, query, Some(1))?);
            value.sql.tsql("=", rows).negated_if(*negated)
        }
        Expression::Exists(query) => Scalar::Exists(select::subselect(binder, query, None)?),
        Expression::Quantified { operator, left, quantifier, query } => {
            let Some(sign) = sign(*operator) else { return Err(outer_join_misplaced(line)) };
            let word = match quantifier {
                Quantifier::All => "all",
                Quantifier::Any => "any",
            };
            let value = expressions::value(binder, left)?;
            let rows = Scalar::Quantified(word, select::subselect(binder, query, Some(1))?);
            value.sql.tsql(sign, rows)
        }
        Expression::Binary { operator, left, right, .. } if operator.is_comparison() => {
            let Some(sign) = sign(*operator) else { return Err(outer_join_misplaced(line)) };
            note_clock(binder, left, &[right]);
            note_clock(binder, right, &[left]);
            let sides = collated(binder, sign, [left, right])?;
            let by_order = !matches!(sign, "=" | "<>");
            binder.variables.meets(&sides[0], sides[1].of, by_order);
            binder.variables.meets(&sides[1], sides[0].of, by_order);
            let compared = |binder: &Binder<'_>| compared(binder, sign, &sides[0], &sides[1], line);
            match nulls::nulls(binder, sign, [left, right], &sides) {
                None => compared(binder)?,
                Some(Nulls::Whole(sql)) => sql,
                Some(Nulls::Or(sql)) => compared(binder)?.or(sql),
                Some(Nulls::Else(sql)) => call("coalesce", [compared(binder)?, sql]),
            }
        }
        Expression::Function(call) if expression.is_condition() => updates(binder, call)?,
        _ => {
            let text = "An expression of non-boolean type specified in a context where a condition is \
                            expected.";
            return Err(Error::new(4145, text, line));
        }
    };
    binder.wrote(sql.size(), line)?;
    Ok(sql)
}

/// Notes that a column is compared with the current time.
fn note_clock(binder: &mut Binder<'_>, column: &Expression, others: &[&Expression]) {
    let is_clock = |one: &Expression| any(one, &mut is_clock) && !any(one, &mut is_column) && !has_query(one);
    if matches!(column, Expression::Column(_)) && others.iter().any(|other| is_clock(other)) {
        binder.variables.note_clock();
    }
}

fn conditions(binder: &mut Binder<'_>, operands: &[Expression]) -> Result<Vec<Scalar>, Error> {
    operands.iter().map(|operand| condition(binder, operand)).collect()
}

pub fn compared(
    binder: &Binder<'_>,
    sign: &'static str,
    left: &Value,
    right: &Value,
    line: u32,
) -> Result<Scalar, Error> {
    // for IN and CASE the documentation does not specify whether null equals null
    let is_open = binder.scope.nulls_equal && (binder.dialect().every_sign_takes_nulls || sign == "=");
    if is_open && (left.is_null() || right.is_null()) {
        return Err(Error::refused(&format!("{sign} null"), "is null asks for it", line));
    }
    refuse(sign, left, right, line, binder.dialect())?;
    let [left, right] = collated_together(binder, [left.clone(), right.clone()]);
    Ok(left.sql.tsql(sign, right.sql))
}

/// The sides of a comparison, under the collation that one of them names, which precedes that of a column; 468 for
/// two named ones ("Collation Precedence").
fn collated(binder: &mut Binder<'_>, sign: &str, sides: [&Expression; 2]) -> Result<[Value; 2], Error> {
    if let [Expression::Collate { collation: left, .. }, Expression::Collate { collation: right, .. }] = sides
    {
        if !left.text.eq_ignore_ascii_case(&right.text) {
            return Err(conflict(&left.text, &right.text, sign, left.at.line));
        }
    }
    let named = sides.iter().find_map(|side| match side {
        Expression::Collate { collation, .. } => binder.scope.collation(&collation.text),
        _ => None,
    });
    // a column's type determines how it is searched, and whether a collation changes it
    let is_typed = sign == "like" || named.is_some();
    let values = [side(binder, sign, sides[0], is_typed)?, side(binder, sign, sides[1], is_typed)?];
    if let Some(found) = named {
        return Ok(values.map(|value| as_collated(value, found)));
    }
    Ok(values)
}

/// Texts of no column, under the collation of the database if it is one without case.
pub fn collated_together<const N: usize>(binder: &Binder<'_>, values: [Value; N]) -> [Value; N] {
    let is_of_database = |value: &Value| value.is_text() && value.case() == Case::OfDatabase;
    // PostgreSQL infers the type of a parameter
    let is_open = |value: &Value| !value.of.is_tsql() && value.is_parameter();
    if !binder.scope.folds || !values.iter().all(|value| is_of_database(value) || is_open(value)) {
        return values;
    }
    values.map(|value| as_collated(value, Collation::Insensitive))
}

/// A type of values of no column, under that collation.
pub fn type_by_default(binder: &Binder<'_>, of: Type) -> Type {
    match of.case {
        Case::OfDatabase if binder.scope.folds => of.with_case(Case::Ignored),
        _ => of,
    }
}

/// The same of one value.
pub fn collated_by_default(binder: &Binder<'_>, value: Value) -> Value {
    let [value] = collated_together(binder, [value]);
    value
}

fn side(binder: &mut Binder<'_>, sign: &str, side: &Expression, is_typed: bool) -> Result<Value, Error> {
    match side {
        Expression::Collate { operand, collation } if matches!(sign, "=" | "<>" | "like") => {
            let value = expressions::value(binder, operand)?;
            refuse_collation(&value, operand)?;
            match binder.scope.collation(&collation.text) {
                Some(found) => Ok(as_collated(value, found)),
                // which refuses it
                None => expressions::value(binder, side),
            }
        }
        _ if is_typed => expressions::value(binder, side),
        _ => expressions::value(binder, side),
    }
}

/// `update (column)` of a trigger: whether its statement names the column ("UPDATE (Transact-SQL)").
fn updates(binder: &Binder<'_>, called: &FunctionCall) -> Result<Scalar, Error> {
    let at = called.name.at;
    let Arguments::Values(arguments) = &called.arguments else { return Err(Error::syntax("*", at)) };
    let [Expression::Column(ColumnName { table: None, column, .. })] = arguments.as_slice() else {
        return Err(Error::syntax("update", at));
    };
    let own = folded(column, at.line)?;
    let changed = binder.scope.table(CHANGED).filter(|_| binder.dialect().is_strict);
    if changed.is_some_and(|table| table.column(&own).is_none()) {
        return Err(Error::invalid_column(column, at));
    }
    match &binder.scope.trigger {
        None => Err(Error::new(140, "Can only use IF UPDATE within a CREATE TRIGGER statement.", at)),
        Some(Fired::Insert) => Ok(Scalar::Boolean(true)),
        Some(Fired::Delete) => Ok(Scalar::Boolean(false)),
        Some(Fired::Update(mark)) => Ok(call("tsql.updates", [Scalar::text(mark), Scalar::Text(own)])),
    }
}

fn outer_join_misplaced(line: u32) -> Error {
    Error::refused("*= and =*", "they must be connected by AND, in a query of two tables", line)
}

/// The error for two explicit collations.
fn conflict(left: &str, right: &str, sign: &str, line: u32) -> Error {
    let text = format!(
        "Cannot resolve the collation conflict between \"{left}\" and \"{right}\" in the {} operation.",
        verb(sign)
    );
    Error::new(468, text, line).with_severity(16)
}

fn is_clock(expression: &Expression) -> bool {
    let Expression::Function(call) = expression else { return false };
    call.name.is_bare() && matches!(rule(&call.name.name.to_lowercase()), Some(Rule::Now { .. }))
}

/// Excludes the parts of dates (`day`), which are parsed like columns.
pub fn is_column(expression: &Expression) -> bool {
    let Expression::Column(column) = expression else { return false };
    column.table.is_some() || date_part(&column.column).is_none()
}
