//! Procedures, functions and triggers, and calls.

use super::column;
use crate::error::Error;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::parser::{expression, function, names, query, statements, wrong_at, Parser};
use crate::tree::*;
use expression::literal;

/// Reserved words that are texts as arguments.
const TEXTS: [&str; 10] = ["on", "off", "all", "any", "key", "user", "public", "default", "index", "table"];

pub(super) fn begins_batch(parser: &Parser<'_>, start: usize, mode: Mode, what: &str) -> Result<(), Error> {
    if start == 0 {
        return Ok(());
    }
    let at = parser.tokens.get(start).map(|token| token.at).unwrap_or_default();
    let either = what == "PROCEDURE" && parser.dialect.is_strict;
    Err(Error::not_first(if either { "create/alter" } else { mode.action() }, what, at))
}

pub(super) fn procedure(parser: &mut Parser<'_>, start: usize, mode: Mode) -> Result<StatementKind, Error> {
    begins_batch(parser, start, mode, "PROCEDURE")?;
    parser.at += 1;
    let name = procedure_name(parser)?;
    names::enter_schema_of(parser, &name);
    let parameters = parameters(parser)?;
    let mut as_owner = None;
    let begins = parser.at;
    while parser.word("with") {
        parser.list(|parser| {
            let at = parser.position();
            if runs_as_owner(parser, &name) {
                as_owner = Some(at);
                return Ok(());
            }
            procedure_option(parser)
        })?;
    }
    let options = &parser.tokens[begins..parser.at];
    if parser.dialect.is_strict && options.iter().filter(|token| token.is("recompile")).count() > 1 {
        let text = "Option 'RECOMPILE' is specified more than once.";
        return Err(Error::new(1039, text, parser.position()));
    }
    if parser.next_is("for") {
        let why = "there is no replication of procedures";
        return Err(Error::refused("for replication", why, parser.position()));
    }
    parser.expect_word("as")?;
    if parser.next_is("external") && parser.ahead_is(1, "name") {
        return Err(Error::refused("external name", "procedures are T-SQL", parser.position()));
    }
    let body = statements::batch(parser)?;
    Ok(StatementKind::CreateProcedure(Box::new(CreateProcedure { mode, name, parameters, as_owner, body })))
}

/// `p;2`: a procedure of a group is a separate one with this name; `p;1` is p.
fn procedure_name(parser: &mut Parser<'_>) -> Result<ObjectName, Error> {
    let mut name = names::called_name(parser)?;
    let number = parser.ahead(1).filter(|next| parser.next_is_symbol(";") && next.kind == TokenKind::Integer);
    let Some(number) = number else { return Ok(name) };
    match number.value.parse() {
        Ok(1_i16) => {}
        Ok(2..) => name.name.push_str(&format!(";{}", number.value.trim_start_matches('0'))),
        _ => return Err(Error::syntax(&number.value, number.at)),
    }
    parser.at += 2;
    Ok(name)
}

/// `execute as owner`; 'dbo' owns the objects of its schema.
fn runs_as_owner(parser: &mut Parser<'_>, procedure: &ObjectName) -> bool {
    if !parser.next_is_any(&["exec", "execute"]) || !parser.ahead_is(1, "as") {
        return false;
    }
    let is_of_dbo = procedure.is_of_dbo();
    let is_dbo = |token: &Token<'_>| {
        matches!(token.kind, TokenKind::Text { .. }) && token.value.eq_ignore_ascii_case("dbo")
    };
    let is_owner = parser.ahead_is(2, "owner") || is_of_dbo && parser.ahead(2).is_some_and(is_dbo);
    parser.at += if is_owner { 3 } else { 0 };
    is_owner
}

fn procedure_option(parser: &mut Parser<'_>) -> Result<(), Error> {
    let at = parser.position();
    if parser.word("recompile")
        || parser.words(&["execute", "as", "caller"])
        || parser.words(&["exec", "as", "caller"])
    {
        return Ok(());
    }
    if parser.next_is_any(&["exec", "execute"]) && parser.ahead_is(1, "as") {
        let who = parser.ahead(2).map_or("", |token| &*token.value).to_lowercase();
        let what = format!("with execute as {who}");
        return Err(Error::refused(&what, "a procedure runs as its caller or its owner", at));
    }
    let option = parser.advance()?;
    if parser.dialect.is_strict
        && !option.is_any(&["encryption", "native_compilation", "schemabinding", "view_metadata"])
    {
        let text = format!("'{}' is not a recognized option.", option.shown());
        return Err(Error::new(195, text, at));
    }
    Err(Error::refused(&format!("with {}", option.shown()), "a procedure shows its text", at))
}

fn rest_of_batch(parser: &mut Parser<'_>) -> Result<Vec<Statement>, Error> {
    let body = statements::batch(parser)?;
    if body.is_empty() {
        return Err(parser.wrong());
    }
    Ok(body)
}

/// Parameters with or without parentheses around them.
fn parameters(parser: &mut Parser<'_>) -> Result<Vec<Parameter>, Error> {
    let enclosed = parser.symbol("(");
    let mut parameters = Vec::new();
    while names::next_is_variable(parser) {
        parameters.push(parameter(parser)?);
        if !parser.symbol(",") {
            break;
        }
    }
    if enclosed {
        parser.expect_symbol(")")?;
    }
    Ok(parameters)
}

pub(in crate::parser) fn parameter(parser: &mut Parser<'_>) -> Result<Parameter, Error> {
    let shown = parser.peek().map(|token| token.value.to_string()).unwrap_or_default();
    let variable = names::own_variable(parser)?;
    parser.word("as");
    let type_ = names::type_name(parser)?;
    if parser.dialect.is_strict && type_.name == "cursor" && !parser.next_is("varying") {
        let text = "Cursor parameters in a stored procedure must be declared with OUTPUT and VARYING options, and they \
                    must be specified in the order CURSOR VARYING OUTPUT.";
        return Err(Error::new(1051, text, variable.at));
    }
    if parser.next_is("varying") {
        return Err(Error::refused("cursor varying", "a procedure gives no cursors", variable.at));
    }
    parser.words(&["not", "null"]);
    parser.word("null");
    let default = if parser.symbol("=") { Some(constant(parser)?) } else { None };
    let output = parser.any_word(&["output", "out"]);
    let readonly = parser.word("readonly");
    Ok(Parameter { variable, shown, type_, default, output, readonly, table: None })
}

/// A literal, NULL, a variable, or a bare word, which is a text.
fn constant(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    let at = parser.position();
    let operator = if parser.symbol("-") {
        Some(UnaryOperator::Minus)
    } else if parser.symbol("+") {
        Some(UnaryOperator::Plus)
    } else {
        None
    };
    let token = parser.advance()?;
    let number =
        matches!(token.kind, TokenKind::Integer | TokenKind::Decimal | TokenKind::Float | TokenKind::Money);
    if token.kind == TokenKind::Variable {
        parser.at -= 1;
    }
    let operand = match token.kind {
        TokenKind::Variable => Expression::Variable(names::variable(parser)?),
        _ if number => Expression::Literal(literal(token)),
        _ if operator.is_some() => return Err(parser.wrong_before()),
        TokenKind::Word(class) if token.is("null") || class == Class::Plain || token.is_any(&TEXTS) => {
            bare_text(parser)
        }
        TokenKind::Word(Class::StatementOrName) | TokenKind::Name => bare_text(parser),
        TokenKind::Text { .. } | TokenKind::Binary => Expression::Literal(literal(token)),
        _ => return Err(parser.wrong_before()),
    };
    Ok(match operator {
        Some(operator) => Expression::Unary { operator, operand: Box::new(operand), at },
        None => operand,
    })
}

/// The previous word as a text, with the parts joined to it by periods; NULL is not a text.
fn bare_text(parser: &mut Parser<'_>) -> Expression {
    let Some(token) = parser.at.checked_sub(1).and_then(|at| parser.tokens.get(at)) else {
        return function::null();
    };
    let mut text = token.value.to_string();
    if token.is("null") {
        let (value, number) = (LiteralValue::Null, TokenNumber(token.index));
        return Expression::Literal(Literal { value, number, at: token.at });
    }
    while parser.next_is_symbol(".") && parser.ahead(1).is_some_and(|next| next.is_name()) {
        text.push('.');
        text.push_str(&parser.tokens[parser.at + 1].value);
        parser.at += 2;
    }
    let value = LiteralValue::Text { text, national: false };
    Expression::Literal(Literal { value, number: TokenNumber(u32::MAX), at: token.at })
}

pub(super) fn function(parser: &mut Parser<'_>, start: usize, mode: Mode) -> Result<StatementKind, Error> {
    begins_batch(parser, start, mode, "FUNCTION")?;
    parser.at += 1;
    let name = names::object_name(parser)?;
    names::enter_schema_of(parser, &name);
    parser.expect_symbol("(")?;
    parser.at -= 1;
    let parameters = parameters(parser)?;
    parser.expect_word("returns")?;
    let returns = if parser.word("table") { None } else { Some(returns(parser)?) };
    let options = if parser.word("with") { parser.list(function_option)? } else { Vec::new() };
    parser.word("as");
    let (returns, body) = match returns {
        None => (Returns::Rows(Box::new(returned_rows(parser)?)), Vec::new()),
        Some(_) if !parser.next_is("begin") => return Err(parser.wrong()),
        Some(returns) if parser.is_strict() => {
            let body = vec![statements::statement(parser)?];
            if statements::skip_semicolons(parser) {
                return Err(parser.wrong());
            }
            (returns, body)
        }
        Some(returns) => (returns, rest_of_batch(parser)?),
    };
    let function = CreateFunction { mode, name, parameters, returns, body, options };
    Ok(StatementKind::CreateFunction(Box::new(function)))
}

fn returns(parser: &mut Parser<'_>) -> Result<Returns, Error> {
    if !names::next_is_variable(parser) {
        return names::type_name(parser).map(Returns::Value);
    }
    let variable = names::own_variable(parser)?;
    parser.expect_word("table")?;
    Ok(Returns::Table { variable, elements: column::variable_elements(parser, Error::syntax)? })
}

/// `return (query)`, at the end of the batch.
fn returned_rows(parser: &mut Parser<'_>) -> Result<Query, Error> {
    parser.expect_word("return")?;
    let query = query::query(parser)?;
    while parser.symbol(";") {}
    if parser.at_end() {
        return Ok(query);
    }
    Err(parser.wrong())
}

fn function_option(parser: &mut Parser<'_>) -> Result<String, Error> {
    let at = parser.position();
    for option in [
        &["schemabinding"][..],
        &["returns", "null", "on", "null", "input"],
        &["called", "on", "null", "input"],
        &["execute", "as", "caller"],
    ] {
        if parser.words(option) {
            return Ok(option.join(" "));
        }
    }
    let what = format!("with {}", parser.advance()?.shown());
    Err(Error::refused(&what, "a function runs as its caller, and shows its text", at))
}

pub(super) fn trigger(parser: &mut Parser<'_>, start: usize, mode: Mode) -> Result<StatementKind, Error> {
    begins_batch(parser, start, mode, "TRIGGER")?;
    parser.at += 1;
    let name = names::object_name(parser)?;
    names::enter_schema_of(parser, &name);
    parser.expect_word("on")?;
    let at = parser.position();
    if parser.any_word(&["database", "all"]) {
        return Err(Error::refused("create trigger on database", "triggers are on tables", at));
    }
    let table = names::object_name(parser)?;
    while parser.word("with") {
        parser.list(procedure_option)?;
    }
    let time = if parser.words(&["instead", "of"]) {
        TriggerTime::InsteadOf
    } else {
        parser.expect_any(&["for", "after"])?;
        TriggerTime::After
    };
    let events = parser.list(|parser| {
        let event = parser.advance()?;
        match &*event.value.to_lowercase() {
            "insert" => Ok(TriggerEvent::Insert),
            "update" => Ok(TriggerEvent::Update),
            "delete" => Ok(TriggerEvent::Delete),
            _ if parser.dialect.is_strict => {
                let text = format!("'{}' is an invalid event type.", event.value);
                Err(Error::new(1084, text, event.at))
            }
            _ => Err(parser.wrong_before()),
        }
    })?;
    parser.words(&["not", "for", "replication"]);
    parser.expect_word("as")?;
    let body = rest_of_batch(parser)?;
    let trigger = CreateTrigger { mode, name, table, time, events, body };
    Ok(StatementKind::CreateTrigger(Box::new(trigger)))
}

// --- calls ---

pub(super) fn execute(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let start = parser.position();
    parser.at += 1;
    if parser.next_is("as") {
        return Err(Error::refused("execute as", "a session has one user", start));
    }
    if parser.symbol("(") {
        let begins = parser.at;
        let text = expression::value(parser)?;
        let called = |pair: &&[Token<'_>]| pair[0].is_name() && pair[1].is_symbol("(");
        if let Some(pair) =
            parser.tokens[begins..parser.at].windows(2).find(called).filter(|_| parser.is_strict())
        {
            return Err(wrong_at(&pair[0]));
        }
        if parser.next_is_symbol(",") {
            let why = "sp_executesql takes parameters";
            return Err(Error::refused("execute (…, arguments)", why, start));
        }
        parser.expect_symbol(")")?;
        if parser.next_is("at") {
            return Err(Error::refused("execute … at", "there are no other servers", start));
        }
        if parser.next_is("as") {
            return Err(Error::refused("execute … as", "a session has one user", start));
        }
        return Ok(StatementKind::ExecuteText(Box::new(ExecuteText { text, at: parser.since(start) })));
    }
    call_statement(parser, start)
}

/// A call, also without the keyword EXECUTE.
pub(super) fn call_statement(parser: &mut Parser<'_>, start: Position) -> Result<StatementKind, Error> {
    let status = if names::next_is_variable(parser) && parser.ahead_is_symbol(1, "=") {
        let status = names::own_variable(parser)?;
        parser.at += 1;
        Some(status)
    } else {
        None
    };
    let first = parser.at;
    let procedure = if names::next_is_variable(parser) {
        Err(names::variable(parser)?)
    } else {
        Ok(procedure_name(parser)?)
    };
    let arguments = if at_statement_end(parser) { Vec::new() } else { parser.list(argument)? };
    refuse_unnamed(parser, &arguments, parser.tokens.get(first))?;
    if parser.next_is("with") && !parser.ahead(1).is_some_and(|next| next.kind == TokenKind::Name) {
        parser.at += 1;
        parser.expect_word("recompile")?;
    }
    let at = parser.since(start);
    Ok(StatementKind::Execute(Box::new(Execute { status, procedure, arguments, at })))
}

/// Whether the next token cannot be part of this statement.
pub(super) fn at_statement_end(parser: &Parser<'_>) -> bool {
    let Some(token) = parser.peek() else { return true };
    match token.kind {
        TokenKind::Symbol => matches!(&*token.value, ";" | ")"),
        TokenKind::Word(Class::Statement | Class::StatementOrName) => true,
        TokenKind::Word(_) => token.is_any(&["else", "end", "with"]),
        _ => false,
    }
}

/// Error 119. ASE takes them.
fn refuse_unnamed(
    parser: &Parser<'_>,
    arguments: &[Argument],
    procedure: Option<&Token<'_>>,
) -> Result<(), Error> {
    let is_behind = |pair: &[Argument]| pair[0].name.is_some() && pair[1].name.is_none();
    // of others it is found when they are called
    let is_asked = parser.dialect.is_strict && procedure.is_some_and(|token| token.is("sp_executesql"));
    let Some(index) = arguments.windows(2).position(is_behind).filter(|_| is_asked) else { return Ok(()) };
    let text = format!(
        "Must pass parameter number {} and subsequent parameters as '@name = value'. After the form '@name = value' has \
         been used, all subsequent parameters must be passed in the form '@name = value'.",
        index + 2
    );
    Err(Error::new(119, text, arguments[index + 1].at))
}

fn argument(parser: &mut Parser<'_>) -> Result<Argument, Error> {
    let at = parser.position();
    let name = match parser.peek() {
        Some(token) if token.kind == TokenKind::Variable && parser.ahead_is_symbol(1, "=") => {
            names::own_variable(parser)?;
            parser.at += 1;
            Some(token.value.to_string())
        }
        _ => None,
    };
    if parser.word("default") {
        return Ok(Argument { name, value: ArgumentValue::Default, at });
    }
    let value = constant(parser)?;
    let output = parser.any_word(&["output", "out"]);
    let value = match value {
        Expression::Variable(variable) if output => ArgumentValue::Output(variable),
        _ if output => {
            let message = "Cannot use the OUTPUT option when passing a constant to a stored procedure.";
            return Err(Error::new(179, message, at));
        }
        value => ArgumentValue::Value(value),
    };
    Ok(Argument { name, value, at })
}
