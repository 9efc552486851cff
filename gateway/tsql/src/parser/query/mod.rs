//! Queries: select, union, order by.

pub(super) mod hints;
mod json;
mod pivot;
pub(super) mod source;
pub(super) mod xml;

use super::{expression, names, wrong_at, Parser};
use crate::error::Error;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

/// A query with all its clauses.
pub(super) fn query(parser: &mut Parser<'_>) -> Result<Query, Error> {
    let query = query_before_options(parser)?;
    with_options(parser, query)
}

/// A query up to FOR or OPTION, which may follow it.
pub(super) fn query_before_options(parser: &mut Parser<'_>) -> Result<Query, Error> {
    let start = parser.position();
    let with = common_tables(parser)?;
    query_with(parser, with, start)
}

pub(super) fn query_with(
    parser: &mut Parser<'_>,
    with: Vec<CommonTable>,
    start: Position,
) -> Result<Query, Error> {
    let first = parser.deeper(operand)?;
    let query = query_after(parser, first, start)?;
    Ok(Query { with, ..query })
}

/// The rest of a query whose first select has been read, up to FOR or OPTION.
pub(super) fn query_after(
    parser: &mut Parser<'_>,
    first: QueryBody,
    start: Position,
) -> Result<Query, Error> {
    let body = combined(parser, first)?;
    let order_by = if parser.next_is("order") { order_by(parser)? } else { Vec::new() };
    let (mut offset, mut fetch) = (None, None);
    let fetches = |parser: &Parser<'_>| {
        parser.next_is("fetch") && parser.ahead(1).is_some_and(|next| next.is_any(&["next", "first"]))
    };
    let is_late = fetches(parser) && parser.ahead(3).is_some_and(|token| token.is_any(&["row", "rows"]));
    if parser.dialect.is_strict && !order_by.is_empty() && is_late {
        let text = "Invalid usage of the option next in the FETCH statement.";
        return Err(Error::new(153, text, parser.position()));
    }
    if !order_by.is_empty() && parser.word("offset") {
        offset = Some(expression::value(parser)?);
        parser.expect_any(&["row", "rows"])?;
        if fetches(parser) {
            parser.at += 2;
            fetch = Some(expression::value(parser)?);
            parser.expect_any(&["row", "rows"])?;
            parser.expect_word("only")?;
        }
    }
    let at = parser.since(start);
    Ok(Query {
        with: Vec::new(),
        body,
        order_by,
        offset,
        fetch,
        max_recursion: None,
        is_held: false,
        for_browse: false,
        for_json: None,
        at,
    })
}

/// The clauses that may follow a query that is not a value.
pub(super) fn with_options(parser: &mut Parser<'_>, query: Query) -> Result<Query, Error> {
    let for_browse = parser.words(&["for", "browse"]);
    let for_json = json::for_json(parser)?;
    let max_recursion = query_options(parser)?;
    let is_held = at_isolation(parser)?;
    let at = parser.since(query.at);
    Ok(Query { max_recursion, is_held, for_browse, for_json, at, ..query })
}

/// `(select …)`
pub(super) fn subquery(parser: &mut Parser<'_>) -> Result<Query, Error> {
    parser.expect_symbol("(")?;
    if !parser.next_is("select") && !parser.next_is_symbol("(") {
        return Err(parser.wrong());
    }
    let query = parser.deeper(query)?;
    parser.expect_symbol(")")?;
    Ok(query)
}

/// `with a (b) as (select …), …`, if there is one.
pub(super) fn common_tables(parser: &mut Parser<'_>) -> Result<Vec<CommonTable>, Error> {
    if !parser.word("with") {
        return Ok(Vec::new());
    }
    if parser.next_is("xmlnamespaces") {
        return Err(Error::refused("with xmlnamespaces", "a result is rows and columns", parser.position()));
    }
    parser.list(|parser| {
        let name = names::name(parser)?;
        let columns =
            if parser.next_is_symbol("(") { names::names_in_parentheses(parser)? } else { Vec::new() };
        parser.expect_word("as")?;
        Ok(CommonTable { name, columns, query: subquery(parser)? })
    })
}

/// Selects combined by UNION, EXCEPT and, with higher precedence, INTERSECT.
fn combined(parser: &mut Parser<'_>, first: QueryBody) -> Result<QueryBody, Error> {
    let first = intersected(parser, first)?;
    let mut others = Vec::new();
    loop {
        let operator = if parser.word("union") {
            if parser.word("all") {
                SetOperator::UnionAll
            } else {
                SetOperator::Union
            }
        } else if parser.word("except") {
            SetOperator::Except
        } else {
            break;
        };
        parser.word("distinct");
        let operand = parser.deeper(operand)?;
        others.push((operator, intersected(parser, operand)?));
    }
    Ok(joined(first, others))
}

fn intersected(parser: &mut Parser<'_>, first: QueryBody) -> Result<QueryBody, Error> {
    let mut others = Vec::new();
    while parser.word("intersect") {
        others.push((SetOperator::Intersect, parser.deeper(operand)?));
    }
    Ok(joined(first, others))
}

fn operand(parser: &mut Parser<'_>) -> Result<QueryBody, Error> {
    if parser.next_is_symbol("(") {
        return subquery(parser).map(Box::new).map(QueryBody::Parenthesised);
    }
    select(parser).map(Box::new).map(QueryBody::Select)
}

fn select(parser: &mut Parser<'_>) -> Result<Select, Error> {
    let start = parser.position();
    parser.expect_word("select")?;
    let distinct = parser.word("distinct");
    if !distinct {
        parser.word("all");
    }
    let top = top(parser)?;
    let items = parser.list(item)?;
    let into = if parser.word("into") { Some(names::object_name(parser)?) } else { None };
    let from = if parser.word("from") { parser.list(source::table_source)? } else { Vec::new() };
    let condition = if parser.word("where") { Some(expression::condition(parser)?) } else { None };
    let group_by = if parser.word("group") { group_by(parser)? } else { Vec::new() };
    let having = if parser.word("having") { Some(expression::condition(parser)?) } else { None };
    let at = parser.since(start);
    Ok(Select { distinct, top, items, into, from, condition, group_by, having, at })
}

fn group_by(parser: &mut Parser<'_>) -> Result<Vec<Grouping>, Error> {
    parser.expect_word("by")?;
    if parser.next_is("all") {
        return Err(Error::refused("group by all", "it gives groups without rows", parser.position()));
    }
    let items = parser.list(grouping)?;
    Ok(if parser.words(&["with", "rollup"]) {
        vec![Grouping::Rollup(items)]
    } else if parser.words(&["with", "cube"]) {
        vec![Grouping::Cube(items)]
    } else {
        items
    })
}

fn grouping(parser: &mut Parser<'_>) -> Result<Grouping, Error> {
    if parser.words(&["grouping", "sets"]) {
        return parser.in_parentheses(grouping_set).map(Grouping::Sets);
    }
    grouping_set(parser)
}

fn grouping_set(parser: &mut Parser<'_>) -> Result<Grouping, Error> {
    for (word, of) in [("rollup", Grouping::Rollup as fn(_) -> _), ("cube", Grouping::Cube)] {
        if parser.next_is(word) && parser.ahead_is_symbol(1, "(") {
            parser.at += 1;
            return parser.in_parentheses(grouped_values).map(of);
        }
    }
    grouped_values(parser)
}

/// `a`, `(a, b)`, `()`
fn grouped_values(parser: &mut Parser<'_>) -> Result<Grouping, Error> {
    let at = parser.position();
    if parser.dialect.is_strict && parser.next_is_symbol("(") && parser.ahead_is(1, "select") {
        let text = "Cannot use an aggregate or a subquery in an expression used for the group by list of a GROUP BY clause.";
        return Err(Error::new(144, text, at));
    }
    let start = parser.at;
    if parser.symbol("(") {
        if parser.symbol(")") {
            return Ok(Grouping::Values(Vec::new()));
        }
        let values = parser.list(expression::value)?;
        if values.len() > 1 {
            parser.expect_symbol(")")?;
            return Ok(Grouping::Values(values));
        }
        parser.at = start;
    }
    expression::value(parser).map(Grouping::Value)
}

/// `top n`, `top (n)`, with PERCENT and WITH TIES.
pub(super) fn top(parser: &mut Parser<'_>) -> Result<Option<Top>, Error> {
    let at = parser.position();
    if !parser.word("top") {
        return Ok(None);
    }
    let in_parentheses = parser.next_is_symbol("(");
    let bare = parser.peek().filter(|_| !in_parentheses).map(Token::shown);
    let count = if in_parentheses && parser.ahead_is(1, "select") {
        expression::operand_with_sign(parser)?
    } else if in_parentheses {
        parser.at += 1;
        let count = expression::value(parser)?;
        parser.expect_symbol(")")?;
        count
    } else {
        let plain = |token: &Token<'_>| {
            matches!(
                token.kind,
                TokenKind::Integer | TokenKind::Decimal | TokenKind::Float | TokenKind::Variable
            )
        };
        match parser.peek() {
            Some(token) if token.kind == TokenKind::Variable => {
                Expression::Variable(names::variable(parser)?)
            }
            Some(token) if plain(token) => {
                parser.at += 1;
                Expression::Literal(expression::literal(token))
            }
            Some(sign) if sign.kind == TokenKind::Symbol => return Err(Error::syntax(&sign.value, at)),
            _ => return Err(Error::keyword("top", at)),
        }
    };
    let percent = parser.word("percent");
    let with_ties = parser.words(&["with", "ties"]);
    Ok(Some(Top { count, bare, percent, with_ties, at }))
}

/// `*`, `t.*`, `value as alias`, `alias = value`, `@variable = value`.
pub(super) fn item(parser: &mut Parser<'_>) -> Result<SelectItem, Error> {
    let start = parser.position();
    if parser.symbol("*") {
        return Ok(SelectItem::Star { table: None, at: start });
    }
    if let Some(parts) = parts_before_star(parser) {
        let table = object_name_parts(parser, parts)?;
        parser.at += 2;
        return Ok(SelectItem::Star { table: Some(table), at: start });
    }
    if names::next_is_variable(parser) {
        if let Some(operator) = parser.ahead(1).and_then(assign_operator) {
            let variable = names::own_variable(parser)?;
            parser.at += 1;
            return Ok(SelectItem::Assign { variable, operator, value: expression::value(parser)? });
        }
    }
    if parser.next_is("identity") && parser.ahead_is_symbol(1, "(") {
        return identity_item(parser);
    }
    if parser.ahead_is_symbol(1, "=") {
        if let Some(alias) = parser.peek().and_then(alias) {
            parser.at += 2;
            return Ok(SelectItem::Value { value: expression::value(parser)?, alias: Some(alias) });
        }
    }
    let value = expression::value(parser)?;
    Ok(SelectItem::Value { value, alias: column_alias(parser)? })
}

/// The number of tokens before `.*`, if a name with `.*` follows.
fn parts_before_star(parser: &Parser<'_>) -> Option<usize> {
    let mut ahead = 0;
    loop {
        if !parser.ahead(ahead).is_some_and(Token::is_name) {
            return None;
        }
        ahead += 1;
        while parser.ahead_is_symbol(ahead, ".") && parser.ahead_is_symbol(ahead + 1, ".") {
            ahead += 1;
        }
        if !parser.ahead_is_symbol(ahead, ".") {
            return None;
        }
        if parser.ahead_is_symbol(ahead + 1, "*") {
            return Some(ahead);
        }
        ahead += 1;
    }
}

/// The name of an object in the next tokens.
fn object_name_parts(parser: &mut Parser<'_>, tokens: usize) -> Result<crate::tree::ObjectName, Error> {
    let end = parser.at + tokens;
    let part = Parser { tokens: parser.tokens.get(..end).unwrap_or_default(), ..*parser };
    let mut part = part;
    let name = names::object_name(&mut part)?;
    parser.at = end;
    Ok(name)
}

/// `identity (type, seed, increment) as name`
fn identity_item(parser: &mut Parser<'_>) -> Result<SelectItem, Error> {
    let start = parser.position();
    parser.at += 1;
    parser.expect_symbol("(")?;
    let type_ = names::type_name(parser)?;
    let mut identity = Identity { seed: 1, increment: 1 };
    if parser.symbol(",") {
        identity.seed = names::integer(parser)?;
        parser.expect_symbol(",")?;
        identity.increment = names::integer(parser)?;
    }
    parser.expect_symbol(")")?;
    let alias = column_alias(parser)?;
    Ok(SelectItem::Identity { type_, identity, alias, at: start })
}

/// `as name`, `name`, `'name'`.
fn column_alias(parser: &mut Parser<'_>) -> Result<Option<Name>, Error> {
    let has_as = parser.word("as");
    let is_alias =
        |token: &&Token<'_>| has_as || begins_no_statement(token) && !parser.ahead_is_symbol(1, ":");
    let found = parser.peek().filter(is_alias).and_then(alias);
    if has_as && found.is_none() {
        return Err(parser.wrong());
    }
    parser.at += usize::from(found.is_some());
    Ok(found)
}

pub(super) fn order_by(parser: &mut Parser<'_>) -> Result<Vec<Ordering>, Error> {
    parser.expect_word("order")?;
    parser.expect_word("by")?;
    parser.list(|parser| {
        let value = expression::value(parser)?;
        let descending = parser.word("desc");
        if !descending {
            parser.word("asc");
        }
        Ok(Ordering { value, descending })
    })
}

/// OPTION with hints that only affect the plan; other clauses after a query are refused.
fn query_options(parser: &mut Parser<'_>) -> Result<Option<u16>, Error> {
    let Some(token) = parser.peek() else { return Ok(None) };
    let of_cursor = parser.ahead(1).is_some_and(|next| next.is_any(&["read", "update"]));
    if token.is("option") {
        return hints::plan_hints(parser);
    }
    if token.is("compute") || (token.is("for") && !of_cursor) {
        return Err(refused_word(parser, token));
    }
    Ok(None)
}

/// ASE's `at isolation`: whether writers must wait for the end of the transaction. Levels 0 and 1 require no more
/// than every query here does.
pub(super) fn at_isolation(parser: &mut Parser<'_>) -> Result<bool, Error> {
    if !parser.words(&["at", "isolation"]) {
        return Ok(false);
    }
    if parser.word("read") {
        return parser.expect_any(&["uncommitted", "committed"]).map(|_| false);
    }
    if parser.words(&["repeatable", "read"]) || parser.word("serializable") {
        return Ok(true);
    }
    let token = parser.advance()?;
    match &*token.value {
        "0" | "1" => Ok(false),
        "2" | "3" => Ok(true),
        _ => Err(wrong_at(token)),
    }
}

/// The error for a keyword of queries that is not supported.
pub(super) fn refused_word(parser: &Parser<'_>, token: &Token<'_>) -> Error {
    let word = token.value.to_lowercase();
    let why = match &*word {
        "compute" => "use group by, or two queries",
        "for" => "a result is rows and columns",
        "pivot" => "it takes a query in parentheses whose columns are named",
        "unpivot" => "it takes a query in parentheses whose columns are named",
        "values" => "select … union all does the same",
        _ => return parser.wrong(),
    };
    Error::refused(&word, why, token.at)
}

fn joined(first: QueryBody, others: Vec<(SetOperator, QueryBody)>) -> QueryBody {
    if others.is_empty() {
        return first;
    }
    QueryBody::Combined { first: Box::new(first), others }
}

/// A word that can follow a value without beginning a statement.
pub(super) fn begins_no_statement(token: &Token<'_>) -> bool {
    !matches!(token.kind, TokenKind::Word(class) if class != Class::Plain)
}

/// The name of a result's column, which may be written as a text.
fn alias(token: &Token<'_>) -> Option<Name> {
    let is_text = matches!(token.kind, TokenKind::Text { .. });
    (is_text || names::is_free(token)).then(|| Name { text: token.value.to_string(), at: token.at })
}

/// `=`, `+=` and other assignment operators.
pub(super) fn assign_operator(token: &Token<'_>) -> Option<AssignOperator> {
    use AssignOperator as Operator;
    if token.kind != TokenKind::Symbol {
        return None;
    }
    Some(match &*token.value {
        "=" => Operator::Set,
        "+=" => Operator::Add,
        "-=" => Operator::Subtract,
        "*=" => Operator::Multiply,
        "/=" => Operator::Divide,
        "%=" => Operator::Modulo,
        "&=" => Operator::BitAnd,
        "|=" => Operator::BitOr,
        "^=" => Operator::BitXor,
        _ => return None,
    })
}

/// A comma-separated list of variables.
pub(super) fn variables(parser: &mut Parser<'_>) -> Result<Vec<Variable>, Error> {
    parser.list(names::own_variable)
}
