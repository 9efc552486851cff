//! Statements: dispatch by the first word, and control flow.

mod change;
pub(super) mod column;
mod cursor;
mod dbcc;
mod definition;
mod pointers;
pub(super) mod procedure;
mod sequence;
mod session;
mod variables;

use super::query::source;
use super::{expression, names, query, Parser};
use crate::error::Error;
use crate::facts::without_effect;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::*;

/// Statements that are not supported, with the reasons.
const REFUSED: [(&str, &str); 11] = [
    ("backup", "backups are the operator's, with PostgreSQL's tools"),
    ("bulk", "load with insert, or with freebcp"),
    ("deny", "rights are granted and revoked"),
    ("dump", "backups are the operator's, with PostgreSQL's tools"),
    ("kill", "sessions are the operator's to end"),
    ("load", "backups are the operator's, with PostgreSQL's tools"),
    ("restore", "backups are the operator's, with PostgreSQL's tools"),
    ("setuser", "a session has one user"),
    ("shutdown", "the server is the operator's to stop"),
    ("lineno", "lines are those of the text"),
    ("revert", "a session has one user"),
];

/// Statements up to the end of the text.
pub(super) fn batch(parser: &mut Parser<'_>) -> Result<Vec<Statement>, Error> {
    let mut statements = Vec::new();
    while skip_semicolons(parser) {
        statements.push(statement(parser)?);
    }
    Ok(statements)
}

/// Returns whether anything follows.
pub(super) fn skip_semicolons(parser: &mut Parser<'_>) -> bool {
    while parser.symbol(";") {}
    !parser.at_end()
}

pub(super) fn statement(parser: &mut Parser<'_>) -> Result<Statement, Error> {
    let start = parser.position();
    let kind = parser.deeper(statement_kind)?;
    parser.ended = parser.at;
    Ok(Statement { kind, at: parser.since(start) })
}

fn statement_kind(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let Some(token) = parser.peek() else { return Err(parser.wrong()) };
    if let TokenKind::Word(class) = token.kind {
        if class != Class::Plain {
            if let Some(kind) = worded_statement(parser, token)? {
                return Ok(kind);
            }
        }
        if let Some((word, why)) = REFUSED.iter().find(|(word, _)| token.is(word)) {
            if class != Class::Plain || parser.ahead(1).is_none() {
                return Err(Error::refused(word, why, token.at));
            }
        }
        if class == Class::Plain && parser.ahead_is_symbol(1, ":") {
            let label = names::name(parser)?;
            parser.at += 1;
            return Ok(StatementKind::Label(label));
        }
    }
    if token.is_symbol("(") && source::opens_query(parser) {
        return query::query(parser).map(Box::new).map(StatementKind::Select);
    }
    // a batch may begin with the bare name of a procedure
    if parser.at == 0 && names::is_free(token) {
        return procedure::call_statement(parser, token.at);
    }
    Err(parser.wrong())
}

/// A statement that begins with a keyword; None if the word begins none.
fn worded_statement(parser: &mut Parser<'_>, token: &Token<'_>) -> Result<Option<StatementKind>, Error> {
    let word = token.value.to_ascii_lowercase();
    if let Some(message) = without_effect(parser, &word)? {
        return Ok(Some(message));
    }
    let read: fn(&mut Parser<'_>) -> Result<StatementKind, Error> = match &*word {
        "alter" => definition::alter,
        "begin" => begin,
        "break" => |parser| of_loop(parser, StatementKind::Break, 135, "BREAK"),
        "close" => cursor::close,
        "commit" => session::commit,
        "continue" => |parser| of_loop(parser, StatementKind::Continue, 136, "CONTINUE"),
        "create" => definition::create,
        "deallocate" => cursor::deallocate,
        "dbcc" => dbcc::dbcc,
        "declare" => variables::declare,
        "delete" => |parser| change::delete(parser, Vec::new()),
        "disable" | "enable" if parser.ahead_is(1, "trigger") => definition::switch_trigger,
        "drop" => definition::drop,
        "exec" | "execute" => procedure::execute,
        "fetch" => cursor::fetch,
        "goto" => goto,
        "grant" | "revoke" => definition::grant,
        "if" => if_,
        "insert" => |parser| change::insert(parser, Vec::new()),
        "merge" => |parser| change::merge(parser, Vec::new()),
        "open" => cursor::open,
        "print" => print,
        "raiserror" => raiserror,
        "readtext" => pointers::readtext,
        "return" => return_,
        "rollback" => session::rollback,
        "save" => session::save,
        "select" => |parser| query::query(parser).map(Box::new).map(StatementKind::Select),
        "set" => variables::set,
        "throw" => throw,
        "truncate" => definition::truncate,
        "update" => |parser| change::update(parser, Vec::new()),
        "updatetext" => pointers::updatetext,
        "use" => session::use_,
        "waitfor" => waitfor,
        "while" => while_,
        "with" => change::with,
        "writetext" => pointers::writetext,
        _ => return Ok(None),
    };
    read(parser).map(Some)
}

/// The message of a statement without effect, which ends where the next one begins.
fn without_effect(parser: &mut Parser<'_>, word: &str) -> Result<Option<StatementKind>, Error> {
    let is_next = |words: &[&str]| (1..).zip(words).all(|(ahead, word)| parser.ahead_is(ahead, word));
    let found = without_effect::beginning_with(word).find(|(words, _)| is_next(words));
    let Some((words, message)) = found else { return Ok(None) };
    let at = parser.position();
    let priority = parser.ahead(2).filter(|_| words.contains(&"deadlock_priority") && parser.is_strict());
    let is_priority = |token: &Token<'_>| match token.kind {
        TokenKind::Variable => true,
        TokenKind::Integer => token.value.parse::<u32>().is_ok_and(|number| number <= 10),
        _ => token.is_any(&["low", "normal", "high"]) || token.is_symbol("-"),
    };
    if priority.is_some_and(|token| !is_priority(token)) {
        let text = "SET DEADLOCK_PRIORITY takes LOW, NORMAL, HIGH, or an integer from -10 to 10.";
        return Err(Error::new(2755, text, at).with_severity(16));
    }
    parser.at += 1 + words.len();
    let mut open = 0_u32;
    while open > 0 && !parser.at_end() || !procedure::at_statement_end(parser) || parser.next_is("with") {
        if parser.symbol("(") {
            open += 1;
        } else {
            open -= u32::from(open > 0 && parser.next_is_symbol(")"));
            parser.at += 1;
        }
    }
    Ok(Some(nothing_changed(parser, at, message)))
}

/// Replaces a statement without effect that began at this position.
pub(super) fn nothing_changed(parser: &Parser<'_>, began: Position, message: &str) -> StatementKind {
    let value = LiteralValue::Text { text: message.to_owned(), national: false };
    let text = Expression::Literal(Literal { value, number: TokenNumber(u32::MAX), at: parser.since(began) });
    StatementKind::Print { text, arguments: Vec::new() }
}

// --- control ---

fn begin(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let line = parser.position();
    parser.at += 1;
    if parser.any_word(&["tran", "transaction"]) {
        return session::transaction_name(parser).map(StatementKind::BeginTransaction);
    }
    if parser.next_is_any(&["dialog", "conversation"]) {
        return Err(Error::refused("begin dialog", "there are no queues of messages", line));
    }
    if parser.word("distributed") {
        return Err(Error::refused("begin distributed transaction", "there is one server", line));
    }
    if parser.word("try") {
        return try_catch(parser);
    }
    if parser.next_is("catch") {
        return Err(parser.wrong());
    }
    let body = body(parser)?;
    refuse_empty(parser, &body)?;
    parser.expect_word("end")?;
    Ok(StatementKind::Block(body))
}

/// Statements up to the keyword END.
fn body(parser: &mut Parser<'_>) -> Result<Vec<Statement>, Error> {
    let mut statements = Vec::new();
    while skip_semicolons(parser) && !parser.next_is("end") {
        statements.push(statement(parser)?);
    }
    Ok(statements)
}

fn refuse_empty(parser: &Parser<'_>, body: &[Statement]) -> Result<(), Error> {
    match (body, parser.peek()) {
        ([], Some(end)) if parser.dialect.is_strict => Err(Error::syntax(&end.value, end.at)),
        ([], _) => Err(parser.wrong()),
        _ => Ok(()),
    }
}

fn try_catch(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let body = body(parser)?;
    refuse_empty(parser, &body)?;
    parser.expect_word("end")?;
    parser.expect_word("try")?;
    parser.expect_word("begin")?;
    parser.expect_word("catch")?;
    let catch = self::body(parser)?;
    parser.expect_word("end")?;
    parser.expect_word("catch")?;
    Ok(StatementKind::TryCatch { body, catch })
}

fn branch(parser: &mut Parser<'_>) -> Result<Box<Statement>, Error> {
    if parser.at_end() || parser.next_is_symbol(";") {
        return Err(parser.wrong());
    }
    statement(parser).map(Box::new)
}

fn if_(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    let condition = expression::condition(parser)?;
    let then = branch(parser)?;
    // a semicolon may end the statement before ELSE
    if parser.next_is_symbol(";") && parser.ahead_is(1, "else") {
        parser.at += 1;
    }
    let otherwise = if parser.word("else") { Some(branch(parser)?) } else { None };
    Ok(StatementKind::If { condition, then, otherwise })
}

fn while_(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    let condition = expression::condition(parser)?;
    parser.loops += 1;
    let body = branch(parser);
    parser.loops -= 1;
    Ok(StatementKind::While { condition, body: body? })
}

fn of_loop(
    parser: &mut Parser<'_>,
    kind: StatementKind,
    number: i32,
    word: &str,
) -> Result<StatementKind, Error> {
    let at = parser.position();
    parser.at += 1;
    if parser.loops > 0 {
        return Ok(kind);
    }
    let text = format!("Cannot use a {word} statement outside the scope of a WHILE statement.");
    Err(Error::new(number, text, at))
}

fn return_(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if !expression::begins_expression(parser) || begins_label(parser) {
        return Ok(StatementKind::Return(None));
    }
    expression::value(parser).map(Some).map(StatementKind::Return)
}

fn begins_label(parser: &Parser<'_>) -> bool {
    parser.ahead_is_symbol(1, ":") && parser.peek().is_some_and(Token::is_name)
}

fn goto(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    names::name(parser).map(StatementKind::Goto)
}

fn waitfor(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let line = parser.position();
    parser.at += 1;
    if parser.next_is_any(&["errorexit", "processexit", "mirrorexit"]) {
        let what = format!("waitfor {}", parser.advance()?.value);
        return Err(Error::refused(&what, "only WAITFOR DELAY and WAITFOR TIME are", line));
    }
    if parser.next_is_symbol("(") {
        return Err(Error::refused("waitfor (…)", "there are no queues of messages", line));
    }
    if parser.word("time") {
        return waited(parser).map(StatementKind::WaitforTime);
    }
    parser.expect_word("delay")?;
    waited(parser).map(StatementKind::WaitforDelay)
}

/// SQL Server takes a text or a variable, and no number.
fn waited(parser: &mut Parser<'_>) -> Result<Expression, Error> {
    match parser.peek() {
        Some(token) if token.kind == TokenKind::Integer && parser.dialect.is_strict => Err(parser.wrong()),
        _ => parser.plain_value(),
    }
}

// --- messages ---

fn print(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    let at = parser.position();
    let text = expression::value(parser)?;
    if parser.is_strict() && matches!(text, Expression::Subquery(_)) {
        return Err(Error::no_subquery(at));
    }
    let arguments = if parser.symbol(",") { parser.list(expression::value)? } else { Vec::new() };
    Ok(StatementKind::Print { text, arguments })
}

fn raiserror(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if parser.next_is_symbol("(") {
        return raiserror_with_severity(parser);
    }
    numbered(parser).map(Box::new).map(StatementKind::Raise)
}

/// The rest after RAISERROR: `number [text] [, arguments]`
pub(super) fn numbered(parser: &mut Parser<'_>) -> Result<Raise, Error> {
    let line = parser.position();
    let number = raised_number(parser)?;
    let message = match parser.peek() {
        Some(token) if matches!(token.kind, TokenKind::Text { .. } | TokenKind::Variable) => {
            Some(expression::value(parser)?)
        }
        _ => None,
    };
    let arguments = if parser.symbol(",") { parser.list(expression::value)? } else { Vec::new() };
    if parser.next_is("with") && parser.ahead_is(1, "errordata") {
        let why = "there is no extended error data";
        return Err(Error::refused("raiserror … with errordata", why, line));
    }
    Ok(Raise::Number { number, message, arguments })
}

fn raised_number(parser: &mut Parser<'_>) -> Result<crate::tree::Expression, Error> {
    let ahead = usize::from(parser.next_is_symbol("-"));
    match parser.ahead(ahead) {
        Some(token) if matches!(token.kind, TokenKind::Integer | TokenKind::Variable) => {
            expression::operand_with_sign(parser)
        }
        _ => Err(parser.wrong()),
    }
}

fn raiserror_with_severity(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let mut values = parser.in_parentheses(Parser::plain_value)?.into_iter();
    let (Some(message), Some(severity), Some(state)) = (values.next(), values.next(), values.next()) else {
        return Err(parser.wrong());
    };
    let arguments = values.collect();
    let (mut set_error, mut nowait, mut log) = (false, false, false);
    if parser.word("with") {
        parser.list(|parser| {
            set_error |= parser.next_is("seterror");
            nowait |= parser.next_is("nowait");
            log |= parser.next_is("log");
            parser.expect_any(&["seterror", "nowait", "log"])
        })?;
    }
    let raise = Raise::Severity { message, severity, state, arguments, set_error, nowait, log };
    Ok(StatementKind::Raise(Box::new(raise)))
}

fn throw(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    // SQL Server, "THROW": a semicolon ends the statement before it
    if parser.dialect.is_strict && parser.follows_unended() {
        return Err(parser.wrong());
    }
    parser.at += 1;
    if !expression::begins_expression(parser) || begins_label(parser) {
        return Ok(StatementKind::Throw(None));
    }
    let number = expression::value(parser)?;
    parser.expect_symbol(",")?;
    let message = expression::value(parser)?;
    parser.expect_symbol(",")?;
    let state = expression::value(parser)?;
    Ok(StatementKind::Throw(Some(Box::new(Throw { number, message, state }))))
}
