//! Calls of functions, also of those with special syntax.

use super::{expression, names, query, Parser};
use crate::error::Error;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

pub(super) fn niladic(token: &Token<'_>) -> Expression {
    let name = ObjectName { name: token.value.to_lowercase(), at: token.at, ..ObjectName::default() };
    Expression::Function(Box::new(plain_call(name, Vec::new())))
}

/// The rest of a call after the name of the function.
pub(super) fn call(parser: &mut Parser<'_>, name: ObjectName) -> Result<Expression, Error> {
    let of = if name.is_bare() { name.name.to_lowercase() } else { String::new() };
    let call = match &*of {
        "iif" => parser.nested_case(|parser| function_call(parser, name, &of))?,
        _ => function_call(parser, name, &of)?,
    };
    Ok(Expression::Function(Box::new(call)))
}

pub(super) fn function_call(
    parser: &mut Parser<'_>,
    mut name: ObjectName,
    of: &str,
) -> Result<FunctionCall, Error> {
    parser.expect_symbol("(")?;
    if of == "trim" {
        trimmed_side(parser, &mut name);
    }
    let mut distinct = false;
    let arguments = if parser.symbol(")") {
        Arguments::Values(Vec::new())
    } else if parser.next_is_symbol("*") && parser.ahead_is_symbol(1, ")") {
        parser.at += 2;
        Arguments::Star
    } else {
        distinct = parser.word("distinct");
        if !distinct {
            parser.word("all");
        }
        let values = arguments(parser, of)?;
        parser.expect_symbol(")")?;
        Arguments::Values(values)
    };
    let within_group = if parser.words(&["within", "group"]) {
        parser.expect_symbol("(")?;
        let orderings = query::order_by(parser)?;
        parser.expect_symbol(")")?;
        orderings
    } else {
        Vec::new()
    };
    let over = if parser.word("over") { Some(window(parser)?) } else { None };
    Ok(FunctionCall { name, distinct, arguments, within_group, over })
}

/// `trim (leading …)` is `ltrim`, `trim (trailing …)` is `rtrim`.
fn trimmed_side(parser: &mut Parser<'_>, name: &mut ObjectName) {
    // a column may have such a name
    if parser.ahead(1).is_none_or(|token| token.kind == TokenKind::Symbol) {
        return;
    }
    if parser.word("leading") {
        "ltrim".clone_into(&mut name.name);
    } else if parser.word("trailing") {
        "rtrim".clone_into(&mut name.name);
    } else {
        parser.word("both");
    }
}

fn arguments(parser: &mut Parser<'_>, of: &str) -> Result<Vec<Expression>, Error> {
    if of == "trim" {
        let first = expression::value(parser)?;
        // trim (characters from text)
        if parser.word("from") {
            return Ok(vec![expression::value(parser)?, first]);
        }
        return Ok(vec![first]);
    }
    let mut index = 0;
    parser.list(|parser| {
        index += 1;
        if parser.word("default") {
            return Ok(Expression::Default(parser.position()));
        }
        if of == "iif" && index == 1 {
            return expression::condition(parser);
        }
        expression::value(parser)
    })
}

fn window(parser: &mut Parser<'_>) -> Result<Window, Error> {
    parser.expect_symbol("(")?;
    let partition_by =
        if parser.words(&["partition", "by"]) { parser.list(expression::value)? } else { Vec::new() };
    let order_by = if parser.next_is("order") { query::order_by(parser)? } else { Vec::new() };
    let frame = if parser.next_is_any(&["rows", "range"]) { Some(frame(parser)?) } else { None };
    parser.expect_symbol(")")?;
    Ok(Window { partition_by, order_by, frame })
}

fn frame(parser: &mut Parser<'_>) -> Result<Frame, Error> {
    let at = parser.position();
    let unit = if parser.word("rows") { FrameUnit::Rows } else { FrameUnit::Range };
    parser.at += usize::from(unit == FrameUnit::Range);
    let is_between = parser.word("between");
    let start = frame_bound(parser)?;
    let end = if is_between {
        parser.expect_word("and")?;
        Some(frame_bound(parser)?)
    } else {
        None
    };
    let counts = |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
    if unit == FrameUnit::Range && (counts(&start) || end.as_ref().is_some_and(counts)) {
        let text = "RANGE is only supported with UNBOUNDED and CURRENT ROW window frame delimiters.";
        return Err(Error::new(4194, text, at).with_severity(16));
    }
    Ok(Frame { unit, start, end })
}

fn frame_bound(parser: &mut Parser<'_>) -> Result<FrameBound, Error> {
    if parser.words(&["current", "row"]) {
        return Ok(FrameBound::CurrentRow);
    }
    if parser.words(&["unbounded", "preceding"]) {
        return Ok(FrameBound::UnboundedPreceding);
    }
    if parser.words(&["unbounded", "following"]) {
        return Ok(FrameBound::UnboundedFollowing);
    }
    let rows = u32::try_from(names::integer(parser)?).map_err(|_| parser.wrong_before())?;
    if parser.word("preceding") {
        return Ok(FrameBound::Preceding(rows));
    }
    parser.expect_word("following")?;
    Ok(FrameBound::Following(rows))
}

/// `cast (value as type)`, `convert (type, value, style)`, `parse (text as type using culture)`.
pub(super) fn conversion(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let token = parser.advance()?;
    let kind = match &*token.value.to_lowercase() {
        "cast" => CastKind::Cast,
        "try_cast" => CastKind::TryCast,
        "convert" => CastKind::Convert,
        "try_convert" => CastKind::TryConvert,
        "parse" => CastKind::Parse,
        _ => CastKind::TryParse,
    };
    parser.expect_symbol("(")?;
    let cast = if matches!(kind, CastKind::Convert | CastKind::TryConvert) {
        let target = names::type_name(parser)?;
        // ASE: convert (int null, value)
        parser.words(&["not", "null"]);
        parser.word("null");
        parser.expect_symbol(",")?;
        let operand = expression::value(parser)?;
        let style = if parser.symbol(",") { Some(expression::value(parser)?) } else { None };
        Cast { kind, operand, target, style, at: token.at }
    } else {
        let operand = expression::value(parser)?;
        parser.expect_word("as")?;
        let target = names::type_name(parser)?;
        let parses = matches!(kind, CastKind::Parse | CastKind::TryParse);
        let style = if parses && parser.word("using") { Some(expression::value(parser)?) } else { None };
        Cast { kind, operand, target, style, at: token.at }
    };
    parser.expect_symbol(")")?;
    Ok(Expression::Cast(Box::new(cast)))
}

/// ODBC's `{d '2000-01-01'}` and `{ts …}`, which are datetimes, `{guid …}` and `{fn function(…)}`.
pub(super) fn escape_sequence(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    parser.expect_symbol("{")?;
    let token = parser.advance()?;
    let expression = if token.is("fn") {
        expression::value(parser)?
    } else {
        let target = match &*token.value.to_lowercase() {
            "d" | "ts" => "datetime",
            "guid" => "uniqueidentifier",
            _ => return Err(parser.wrong_before()),
        };
        let text = parser.advance()?;
        if !matches!(text.kind, TokenKind::Text { .. }) {
            return Err(parser.wrong_before());
        }
        let target = TypeName::named(target, token.at);
        let operand = Expression::Literal(expression::literal(text));
        let at = token.at;
        Expression::Cast(Box::new(Cast { kind: CastKind::Cast, operand, target, style: None, at }))
    };
    parser.expect_symbol("}")?;
    Ok(expression)
}

pub(super) fn plain_call(name: ObjectName, values: Vec<Expression>) -> FunctionCall {
    let arguments = Arguments::Values(values);
    FunctionCall { name, distinct: false, arguments, within_group: Vec::new(), over: None }
}

/// A NULL that is not in the text.
pub(super) fn null() -> Expression {
    let (number, at) = Default::default();
    Expression::Literal(Literal { value: LiteralValue::Null, number, at })
}

/// `next value for name`, as a call of a function of this name with database, owner and name.
pub(super) fn next_value(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let at = parser.position();
    parser.at += 3;
    let sequence = names::object_name(parser)?;
    if parser.next_is("over") {
        return Err(Error::refused("next value for … over", "rows are numbered as they come", at));
    }
    let ObjectName { database, owner, name, at: index, .. } = sequence;
    let part = |text: String| {
        let value = LiteralValue::Text { text, national: false };
        Expression::Literal(Literal { value, number: TokenNumber(u32::MAX), at: index })
    };
    let parts = [database, owner, name].map(part).into();
    let name = ObjectName { name: String::from("next value for"), at, ..ObjectName::default() };
    Ok(Expression::Function(Box::new(plain_call(name, parts))))
}
