//! Expressions, by operator precedence.

use super::names::is_free;
use super::query::xml;
use super::{function, names, query, Parser, LONGEST_CHAIN};
use crate::error::Error;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

/// `+ - & | ^ ||` have the lowest precedence, `* / %` the next, `~` the highest.
fn arithmetic(token: &Token<'_>) -> Option<(BinaryOperator, u8)> {
    use BinaryOperator as Operator;
    if token.kind != TokenKind::Symbol {
        return None;
    }
    Some(match &*token.value {
        "*" => (Operator::Multiply, 2),
        "/" => (Operator::Divide, 2),
        "%" => (Operator::Modulo, 2),
        "+" => (Operator::Add, 1),
        "-" => (Operator::Subtract, 1),
        "||" => (Operator::Concatenate, 1),
        "&" => (Operator::BitAnd, 1),
        "|" => (Operator::BitOr, 1),
        "^" => (Operator::BitXor, 1),
        _ => return None,
    })
}

fn comparison_operator(token: &Token<'_>) -> Option<BinaryOperator> {
    use BinaryOperator as Operator;
    if token.kind != TokenKind::Symbol {
        return None;
    }
    Some(match &*token.value {
        "=" => Operator::Equal,
        "<>" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        "*=" => Operator::LeftOuter,
        "=*" => Operator::RightOuter,
        _ => return None,
    })
}

/// Functions without parentheses.
const NILADIC: [&str; 6] =
    ["current_user", "session_user", "system_user", "user", "current_timestamp", "current_date"];

/// Reserved words that begin a function.
const CALLED: [&str; 8] =
    ["left", "right", "nullif", "convert", "update", "user", "current_date", "current_time"];

/// A value.
pub(super) fn value(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let start = parser.at;
    let value = binary(parser, 1)?;
    expect_value(parser, &value, start)?;
    Ok(value)
}

pub(super) fn value_or_default(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    if parser.next_is("default") {
        let at = parser.position();
        parser.at += 1;
        return Ok(Expression::Default(at));
    }
    value(parser)
}

/// A condition.
pub(super) fn condition(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let condition = any(parser)?;
    if condition.is_condition() {
        return Ok(condition);
    }
    let near = parser.peek().or(parser.tokens.last()).map(Token::shown).unwrap_or_default();
    let message = format!(
            "An expression of non-boolean type specified in a context where a condition is expected, near '{near}'."
        );
    Err(Error::new(4145, message, parser.position()))
}

/// A value or a condition.
pub(super) fn any(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let mut operands = vec![conjunction(parser)?];
    while parser.next_is("or") {
        operand_of_junction(parser, &operands)?;
        parser.at += 1;
        operands.push(conjunction(parser)?);
    }
    junction(parser, operands, Expression::Or)
}

fn conjunction(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let mut operands = vec![negation(parser)?];
    while parser.next_is("and") {
        operand_of_junction(parser, &operands)?;
        parser.at += 1;
        operands.push(negation(parser)?);
    }
    junction(parser, operands, Expression::And)
}

fn junction(
    parser: &mut Parser<'_>,
    mut operands: Vec<Expression>,
    of: fn(Vec<Expression>) -> Expression,
) -> Result<Expression, Error> {
    if operands.len() > 1 {
        operand_of_junction(parser, &operands)?;
        return Ok(of(operands));
    }
    operands.pop().ok_or_else(|| parser.wrong())
}

/// The last operand of AND or OR is a condition.
fn operand_of_junction(parser: &Parser<'_>, operands: &[Expression]) -> Result<(), Error> {
    match operands.last() {
        Some(last) if !last.is_condition() => {
            let near = parser.peek().or(parser.tokens.last()).map(Token::shown).unwrap_or_default();
            let message = format!(
                    "An expression of non-boolean type specified in a context where a condition is expected, near '{near}'."
                );
            Err(Error::new(4145, message, parser.position()))
        }
        _ => Ok(()),
    }
}

fn negation(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    if !parser.word("not") {
        return comparison(parser);
    }
    let operand = parser.deeper(negation)?;
    operand_of_junction(parser, std::slice::from_ref(&operand))?;
    Ok(Expression::Not(Box::new(operand)))
}

fn comparison(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    if parser.next_is("exists") && parser.ahead_is_symbol(1, "(") {
        parser.at += 1;
        return exists(parser);
    }
    let start = parser.at;
    let left = binary(parser, 1)?;
    let Some(token) = parser.peek() else { return Ok(left) };
    if let Some(operator) = comparison_operator(token) {
        expect_value(parser, &left, start)?;
        parser.at += 1;
        return compared(parser, left, operator, token.at);
    }
    if token.is("is") {
        expect_value(parser, &left, start)?;
        parser.at += 1;
        return is(parser, left);
    }
    let negated =
        token.is("not") && parser.ahead(1).is_some_and(|next| next.is_any(&["between", "in", "like"]));
    parser.at += usize::from(negated);
    if parser.next_is_any(&["between", "in", "like"]) {
        expect_value(parser, &left, start)?;
    }
    let operand = Box::new(left);
    if parser.word("between") {
        let low = Box::new(value(parser)?);
        parser.expect_word("and")?;
        let high = Box::new(value(parser)?);
        return Ok(Expression::Between { operand, low, high, negated });
    }
    if parser.word("like") {
        let pattern = Box::new(value(parser)?);
        let escape = if parser.word("escape") { Some(Box::new(value(parser)?)) } else { None };
        return Ok(Expression::Like { operand, pattern, escape, negated });
    }
    if parser.word("in") {
        return within(parser, operand, negated);
    }
    Ok(*operand)
}

fn compared(
    parser: &mut Parser<'_>,
    left: Expression,
    operator: BinaryOperator,
    at: Position,
) -> Result<Expression, Error> {
    let quantified = parser.next_is_any(&["all", "any", "some"]) && parser.ahead_is_symbol(1, "(");
    if !quantified {
        let right = Box::new(value(parser)?);
        return Ok(Expression::Binary { operator, left: Box::new(left), right, at });
    }
    let quantifier = if parser.word("all") { Quantifier::All } else { Quantifier::Any };
    parser.at += usize::from(quantifier == Quantifier::Any);
    let query = Box::new(query::subquery(parser)?);
    Ok(Expression::Quantified { operator, left: Box::new(left), quantifier, query })
}

fn is(parser: &mut Parser<'_>, left: Expression) -> Result<Expression, Error> {
    let negated = parser.word("not");
    if parser.words(&["distinct", "from"]) {
        let right = Box::new(value(parser)?);
        return Ok(Expression::IsDistinct { left: Box::new(left), right, negated });
    }
    parser.expect_word("null")?;
    Ok(Expression::IsNull { operand: Box::new(left), negated })
}

fn within(parser: &mut Parser<'_>, operand: Box<Expression>, negated: bool) -> Result<Expression, Error> {
    if parser.ahead_is(1, "select") && parser.next_is_symbol("(") {
        let query = Box::new(query::subquery(parser)?);
        return Ok(Expression::InQuery { operand, query, negated });
    }
    let mut values = parser.in_parentheses(value)?;
    if let [Expression::Subquery(_)] = &*values {
        if let Some(Expression::Subquery(query)) = values.pop() {
            return Ok(Expression::InQuery { operand, query, negated });
        }
    }
    Ok(Expression::In { operand, values, negated })
}

fn exists(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    query::subquery(parser).map(Box::new).map(Expression::Exists)
}

/// Operators of at least this precedence, and their operands.
fn binary(parser: &mut Parser<'_>, least: u8) -> Result<Expression, Error> {
    let start = parser.at;
    let mut left = unary(parser)?;
    let mut chain = 0;
    while let Some((operator, power)) = parser.peek().and_then(arithmetic).filter(|(_, p)| *p >= least) {
        expect_value(parser, &left, start)?;
        chain += 1;
        if chain > LONGEST_CHAIN {
            return Err(Error::nested_too_deeply(parser.position()));
        }
        let at = parser.position();
        parser.at += 1;
        let begin = parser.at;
        let right = if power == 1 { binary(parser, 2)? } else { unary(parser)? };
        expect_value(parser, &right, begin)?;
        left = Expression::Binary { operator, left: Box::new(left), right: Box::new(right), at };
    }
    Ok(left)
}

/// Refuses a condition, which may be in parentheses, in place of a value.
fn expect_value(parser: &Parser<'_>, value: &Expression, start: usize) -> Result<(), Error> {
    if !value.is_condition() {
        return Ok(());
    }
    match parser.peek().or_else(|| parser.tokens.get(start)) {
        Some(token) => Err(super::wrong_at(token)),
        None => Err(parser.wrong()),
    }
}

/// A value that is a single operand with its sign, since another value may follow without a comma.
pub(super) fn operand_with_sign(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    signed(parser, true)
}

fn unary(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    signed(parser, parser.dialect.close_signs)
}

/// `is_close`: the sign applies to its operand alone.
fn signed(parser: &mut Parser<'_>, is_close: bool) -> Result<Expression, Error> {
    let operator = match parser.peek() {
        Some(token) if token.is_symbol("-") => UnaryOperator::Minus,
        Some(token) if token.is_symbol("+") => UnaryOperator::Plus,
        Some(token) if token.is_symbol("~") => UnaryOperator::Complement,
        _ => return postfix(parser),
    };
    let at = parser.position();
    parser.at += 1;
    let begin = parser.at;
    let operand = parser.deeper(|parser| match operator {
        UnaryOperator::Complement => signed(parser, is_close),
        _ if is_close => signed(parser, true),
        _ => binary(parser, 2),
    })?;
    expect_value(parser, &operand, begin)?;
    Ok(Expression::Unary { operator, operand: Box::new(operand), at })
}

/// `value.method (…)` and `type::method (…)`
pub(super) fn refuse_method(parser: &Parser<'_>) -> Result<(), Error> {
    let Some(name) = parser.ahead(1).filter(|name| name.is_name()) else { return Ok(()) };
    if parser.next_is_symbol(".") && parser.ahead_is_symbol(2, "(") {
        let what = format!(".{}()", name.value);
        return Err(Error::refused(&what, "ringlog has no types with methods", name.at));
    }
    if parser.next_is_symbol("::") {
        let what = format!("::{}", name.value);
        return Err(Error::refused(&what, "ringlog has no types with methods", name.at));
    }
    Ok(())
}

fn postfix(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let mut operand = primary(parser)?;
    refuse_method(parser)?;
    let mut chain = 0;
    loop {
        if parser.word("collate") {
            let collation = names::name(parser)?;
            if parser.is_strict() && parser.next_is("collate") {
                return Err(parser.wrong());
            }
            operand = Expression::Collate { operand: Box::new(operand), collation };
        } else if parser.words(&["at", "time", "zone"]) {
            let zone = Box::new(primary(parser)?);
            operand = Expression::AtTimeZone { operand: Box::new(operand), zone };
        } else {
            return Ok(operand);
        }
        chain += 1;
        if chain > LONGEST_CHAIN {
            return Err(Error::nested_too_deeply(parser.position()));
        }
    }
}

fn primary(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let Some(token) = parser.peek() else { return Err(parser.wrong()) };
    match token.kind {
        TokenKind::Variable => names::variable(parser).map(Expression::Variable),
        TokenKind::Symbol if token.value == "(" => parser.deeper(parenthesised),
        TokenKind::Symbol if token.value == "{" => parser.deeper(function::escape_sequence),
        TokenKind::Symbol => Err(parser.wrong()),
        TokenKind::Name => named(parser),
        TokenKind::Word(_) => worded(parser, token),
        _ => {
            parser.at += 1;
            Ok(Expression::Literal(literal(token)))
        }
    }
}

fn worded<'t>(parser: &mut Parser<'t>, token: &'t Token<'t>) -> Result<Expression, Error> {
    let called = parser.ahead_is_symbol(1, "(");
    if token.is("null") {
        parser.at += 1;
        let number = TokenNumber(token.index);
        return Ok(Expression::Literal(Literal { value: LiteralValue::Null, number, at: token.at }));
    }
    if token.is("case") {
        return parser.nested_case(case);
    }
    if called && token.is_any(&["cast", "try_cast", "convert", "try_convert", "parse", "try_parse"]) {
        return parser.deeper(function::conversion);
    }
    if token.is_any(&NILADIC) && !called {
        parser.at += 1;
        return Ok(function::niladic(token));
    }
    if token.is("next") && parser.ahead_is(1, "value") && parser.ahead_is(2, "for") {
        return function::next_value(parser);
    }
    if token.is_any(&["values", "pivot", "unpivot", "compute"]) {
        return Err(query::refused_word(parser, token));
    }
    if is_free(token) || (called && (token.is("update") || token.is_any(&CALLED))) {
        return named(parser);
    }
    Err(parser.wrong())
}

fn case(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let at = parser.position();
    parser.at += 1;
    let operand = if parser.next_is("when") { None } else { Some(value(parser)?) };
    let mut branches = Vec::new();
    while parser.word("when") {
        let when = if operand.is_some() { value(parser)? } else { condition(parser)? };
        parser.expect_word("then")?;
        branches.push((when, value(parser)?));
    }
    if branches.is_empty() {
        return Err(parser.wrong());
    }
    let otherwise = if parser.word("else") { Some(value(parser)?) } else { None };
    parser.expect_word("end")?;
    Ok(Expression::Case(Box::new(Case { operand, branches, otherwise, at: parser.since(at) })))
}

/// The contents of parentheses: a query, a condition or a value.
fn parenthesised(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    if parser.ahead_is(1, "select") {
        return xml::select_as_value(parser);
    }
    parser.at += 1;
    let inner = any(parser)?;
    let Expression::Subquery(query) = inner else {
        parser.expect_symbol(")")?;
        return Ok(inner);
    };
    // ((select …) union (select …))
    let at = query.at;
    let first = QueryBody::Parenthesised(query);
    let query = query::query_after(parser, first, at)?;
    let query = query::with_options(parser, query)?;
    parser.expect_symbol(")")?;
    Ok(Expression::Subquery(Box::new(unwrapped(query))))
}

/// A column or a call.
fn named(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let start = parser.position();
    let first = names::part(parser)?;
    let mut parts = vec![first];
    while parser.next_is_symbol(".") {
        if parser.ahead_is_symbol(1, "*") {
            return Err(parser.wrong());
        }
        parser.at += 1;
        parts.push(if parser.next_is_symbol(".") { String::new() } else { names::part(parser)? });
    }
    if parts.len() > 4 {
        let message = format!("The multi-part identifier '{}' is not known.", parts.join("."));
        return Err(Error::new(4104, message, start).with_severity(16));
    }
    let at = parser.since(start);
    if parser.next_is_symbol("(") && !is_outer_mark(parser) {
        let name = names::placed(parser, object_name(parts, at))?;
        return parser.deeper(|parser| function::call(parser, name));
    }
    let column = parts.pop().unwrap_or_default();
    let table = match parts.is_empty() {
        true => None,
        false => Some(Box::new(names::placed(parser, object_name(parts, at))?)),
    };
    Ok(Expression::Column(ColumnName { table, column, at }))
}

/// `column (+)`, the outer join of another system.
fn is_outer_mark(parser: &Parser<'_>) -> bool {
    parser.ahead_is_symbol(1, "+") && parser.ahead_is_symbol(2, ")")
}

/// Whether the next token can begin an expression.
pub(super) fn begins_expression(parser: &Parser<'_>) -> bool {
    let Some(token) = parser.peek() else { return false };
    match token.kind {
        TokenKind::Symbol => matches!(&*token.value, "(" | "+" | "-" | "~" | "{"),
        TokenKind::Word(Class::Statement | Class::StatementOrName) => false,
        TokenKind::Word(Class::Reserved) => {
            token.is_any(&["null", "case", "not", "exists", "values"])
                || token.is_any(&NILADIC)
                || (token.is_any(&CALLED) && parser.ahead_is_symbol(1, "("))
        }
        _ => true,
    }
}

/// A name of at most four parts. The first of four, the server's, is checked when the name is resolved.
pub(super) fn object_name(mut parts: Vec<String>, at: Position) -> ObjectName {
    let name = parts.pop().unwrap_or_default();
    let owner = parts.pop().unwrap_or_default();
    let database = parts.pop().unwrap_or_default();
    ObjectName { database, owner, name, at, ..ObjectName::default() }
}

/// Unwraps a query that consists only of parentheses around another.
fn unwrapped(query: crate::tree::Query) -> crate::tree::Query {
    let plain =
        query.with.is_empty() && query.order_by.is_empty() && query.offset.is_none() && query.fetch.is_none();
    match query.body {
        QueryBody::Parenthesised(inner) if plain => *inner,
        _ => query,
    }
}

pub(super) fn literal(token: &Token<'_>) -> Literal {
    let value = token.value.to_string();
    let value = match token.kind {
        TokenKind::Integer => LiteralValue::Integer(value),
        TokenKind::Decimal => LiteralValue::Decimal(value),
        TokenKind::Float => LiteralValue::Float(value),
        TokenKind::Money => LiteralValue::Money(value),
        TokenKind::Binary => LiteralValue::Binary(value),
        TokenKind::Text { national } => LiteralValue::Text { text: value, national },
        // a word that represents a text
        _ => LiteralValue::Text { text: value, national: false },
    };
    Literal { value, number: TokenNumber(token.index), at: token.at }
}
