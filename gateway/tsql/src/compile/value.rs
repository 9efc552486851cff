//! Values of a statement. Literals, and variables of the same type, are evaluated without PostgreSQL.

use super::compiler::Compiler;
use super::written;
use super::written::Written;
use crate::bind::{self, Numbered};
use crate::error::Error;
use crate::facts::types::Type;
use crate::program::{Expression, Literal, Tree as Bindable};
use crate::resolve::Scope;
use crate::tree::{
    self, BinaryOperator, Expression as Tree, LiteralValue, QueryBody, SelectItem, UnaryOperator,
};
use crate::units;

/// The value, converted to type `target` if given.
pub(super) fn value(
    compiler: &mut Compiler<'_>,
    value: &Tree,
    target: Option<Type>,
) -> Result<Expression, Error> {
    if let Some(literal) = literal(value, &compiler.scope, target) {
        return Ok(Expression::Literal(literal));
    }
    if let Tree::Variable(variable) = value {
        let of = compiler.scope.type_of(&variable.name, variable.at.line)?;
        if target.is_none() || of.in_tsql() == target {
            return Ok(Expression::Variable(variable.name.clone()));
        }
    }
    let mut numbered = Numbered::default();
    let sql = bind::value(value, &compiler.scope, &mut numbered, target)?.sql;
    let written = Written::value(sql, numbered, &compiler.scope);
    let sql = written::bound(compiler, written, value.at(), || Bindable::Value(value.clone(), target)).sql;
    Ok(match sql.as_variable() {
        Some(name) => Expression::Variable(name.to_owned()),
        None => Expression::Sql(sql),
    })
}

/// The variables of a query that consists only of `select @a, @@b name`, with the names of their columns.
pub(super) fn variables_only(compiler: &Compiler<'_>, query: &tree::Query) -> Option<Vec<(String, String)>> {
    let QueryBody::Select(select) = &query.body else { return None };
    let is_bare = query.with.is_empty()
        && query.order_by.is_empty()
        && query.offset.is_none()
        && !select.distinct
        && select.top.is_none()
        && select.into.is_none()
        && select.from.is_empty()
        && select.condition.is_none()
        && select.group_by.is_empty()
        && select.having.is_none();
    let variable = |item: &SelectItem| match item {
        SelectItem::Value { value: Tree::Variable(variable), alias } => {
            compiler.scope.type_of(&variable.name, 0).ok()?;
            // a lifted literal is not a variable of the text
            let named = !variable.is_literal();
            let alias = alias.as_ref().map(|alias| alias.text.clone()).unwrap_or_default();
            named.then(|| (variable.name.clone(), alias))
        }
        _ => None,
    };
    if is_bare {
        select.items.iter().map(variable).collect()
    } else {
        None
    }
}

/// A literal value that needs no conversion to `target`.
pub(crate) fn literal(value: &Tree, scope: &Scope, target: Option<Type>) -> Option<Literal> {
    let (value, negative) = signed(value)?;
    if let (LiteralValue::Text { text, .. }, false) = (value, negative) {
        let text = if scope.dialect.empty_text_is_blank && text.is_empty() { " " } else { text };
        let fits = target.is_none_or(|of| {
            let room = of.length.map_or(usize::MAX, |length| length as usize);
            of.is_text() && of.name != "char" && units::fits(text, room)
        });
        return fits.then(|| Literal::Text(text.to_owned()));
    }
    let literal = of_number(value, negative)?;
    let Some(target) = target else { return Some(literal) };
    let Literal::Integer(number) = literal else {
        return (literal == Literal::Null).then_some(literal);
    };
    if let Some((_, greatest)) = target.domain_from_zero() {
        return u64::try_from(number).is_ok_and(|number| number <= greatest).then_some(literal);
    }
    let range = match target.name {
        "tinyint" => 0..=255,
        "smallint" => i64::from(i16::MIN)..=i64::from(i16::MAX),
        // a larger literal is a decimal and is converted
        "int" | "bigint" => i64::from(i32::MIN) + 1..=i64::from(i32::MAX),
        _ => return None,
    };
    range.contains(&number).then_some(literal)
}

/// A literal, and whether it is preceded by a minus.
fn signed(value: &Tree) -> Option<(&LiteralValue, bool)> {
    match value {
        Tree::Literal(literal) => Some((&literal.value, false)),
        Tree::Unary { operator: UnaryOperator::Minus, operand, .. } => match operand.as_ref() {
            Tree::Literal(literal) if literal.value != LiteralValue::Null => Some((&literal.value, true)),
            _ => None,
        },
        _ => None,
    }
}

/// Any literal except a text.
pub(crate) fn of_number(value: &LiteralValue, negative: bool) -> Option<Literal> {
    let sign = if negative { "-" } else { "" };
    match value {
        LiteralValue::Null => Some(Literal::Null),
        LiteralValue::Text { .. } => None,
        LiteralValue::Integer(digits) => match format!("{sign}{digits}").parse() {
            Ok(number) => Some(Literal::Integer(number)),
            Err(_) => decimal(sign, digits),
        },
        LiteralValue::Decimal(digits) => decimal(sign, digits),
        LiteralValue::Float(digits) => {
            // 1e is 1e0
            let exponent = digits.ends_with(|last: char| last.is_ascii_digit());
            let written =
                if exponent { digits.clone() } else { format!("{}0", digits.trim_end_matches(['+', '-'])) };
            let value: f64 = format!("{sign}{written}").parse().ok()?;
            value.is_finite().then_some(Literal::Float(value))
        }
        LiteralValue::Money(amount) => money(amount, negative),
        LiteralValue::Binary(digits) if !negative => bytes_of(digits).map(Literal::Binary),
        LiteralValue::Binary(_) => None,
    }
}

fn decimal(sign: &str, digits: &str) -> Option<Literal> {
    let count = digits.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
    let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    (count.max(scale) <= 38).then(|| Literal::Decimal(format!("{sign}{digits}")))
}

/// Money keeps four decimals; a literal with more is refused by the general conversion.
fn money(amount: &str, negative: bool) -> Option<Literal> {
    let (written, minus) = match amount.strip_prefix('-') {
        Some(rest) => (rest, !negative),
        None => (amount.strip_prefix('+').unwrap_or(amount), negative),
    };
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    if fraction.len() > 4 {
        return None;
    }
    let amount: i64 = format!("0{whole}{fraction:0<4}").parse().ok()?;
    Some(Literal::Money(if minus { -amount } else { amount }))
}

/// The bytes of the hexadecimal digits of a literal.
pub fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    // an odd number of digits means a leading zero
    let padded = if digits.len().is_multiple_of(2) { digits.to_owned() } else { format!("0{digits}") };
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    padded.as_bytes().chunks_exact(2).map(byte).collect()
}

/// `@@trancount > 0`
pub fn asks_for_transaction(condition: &Tree) -> bool {
    let Tree::Binary { operator: BinaryOperator::Greater, left, right, .. } = condition else { return false };
    matches!(left.as_ref(), Tree::Variable(variable) if variable.name == "@@trancount")
        && matches!(right.as_ref(), Tree::Literal(literal)
            if literal.value == LiteralValue::Integer(String::from("0")))
}
