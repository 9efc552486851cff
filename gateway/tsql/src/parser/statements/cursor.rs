//! Cursors.

use crate::error::Error;
use crate::lexer::TokenKind;
use crate::parser::{expression, names, query, Parser};
use crate::tree::{
    Access, CursorName, CursorOption, DeclareCursor, Direction, Fetch, Position, StatementKind,
};

const OPTIONS: [(&str, CursorOption); 13] = [
    ("local", CursorOption::Local),
    ("global", CursorOption::Global),
    ("forward_only", CursorOption::ForwardOnly),
    ("scroll", CursorOption::Scroll),
    ("static", CursorOption::Static),
    ("insensitive", CursorOption::Insensitive),
    ("keyset", CursorOption::Keyset),
    ("dynamic", CursorOption::Dynamic),
    ("fast_forward", CursorOption::FastForward),
    ("read_only", CursorOption::ReadOnly),
    ("scroll_locks", CursorOption::ScrollLocks),
    ("optimistic", CursorOption::Optimistic),
    ("type_warning", CursorOption::TypeWarning),
];

/// Whether `name [options] cursor` comes next.
pub(super) fn declares_cursor(parser: &Parser<'_>) -> bool {
    if !parser.peek().is_some_and(names::is_free) {
        return false;
    }
    let options = ["insensitive", "scroll", "semi_sensitive", "no"];
    let mut ahead = 1;
    while parser.ahead(ahead).is_some_and(|token| token.is_any(&options)) {
        ahead += 1;
    }
    parser.ahead_is(ahead, "cursor")
}

pub(super) fn declare_cursor(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    let name = CursorName::Name { name: names::name(parser)?, global: false };
    cursor_of(parser, name)
}

/// The rest after the name in DECLARE, or after the = of SET.
pub(super) fn cursor_of(parser: &mut Parser<'_>, name: CursorName) -> Result<StatementKind, Error> {
    let (mut options, at) = (Vec::new(), parser.position());
    cursor_options(parser, &mut options);
    let before = options.len();
    parser.expect_word("cursor")?;
    cursor_options(parser, &mut options);
    if parser.dialect.is_strict {
        refuse_options(&options, before, at)?;
    }
    parser.expect_word("for")?;
    if !parser.next_is_any(&["select", "with"]) && !parser.next_is_symbol("(") {
        let why = "a cursor reads a select";
        return Err(Error::refused("declare … cursor for", why, parser.position()));
    }
    let query = query::query(parser)?;
    let at = parser.position();
    let access = if parser.words(&["for", "update"]) {
        Some(Access::Update(if parser.word("of") { parser.list(names::name)? } else { Vec::new() }))
    } else if parser.word("for") {
        parser.expect_word("read")?;
        parser.expect_word("only")?;
        Some(Access::ReadOnly)
    } else {
        None
    };
    if parser.is_strict() {
        refuse_access(&options, access.as_ref(), at)?;
    }
    Ok(StatementKind::DeclareCursor(Box::new(DeclareCursor { name, options, query, access })))
}

/// Options of which a cursor has one.
const EXCLUSIVE: [&[CursorOption]; 4] = [
    &[CursorOption::Local, CursorOption::Global],
    &[CursorOption::ForwardOnly, CursorOption::Scroll],
    &[CursorOption::Static, CursorOption::Keyset, CursorOption::Dynamic, CursorOption::FastForward],
    &[CursorOption::ReadOnly, CursorOption::ScrollLocks, CursorOption::Optimistic],
];

/// Refuses options that exclude each other, and those of SQL-92, which are the ones before the word CURSOR, together with
/// others (SQL Server, "DECLARE CURSOR").
fn refuse_options(options: &[CursorOption], before: usize, at: Position) -> Result<(), Error> {
    if options[before..].contains(&CursorOption::Insensitive) {
        let text = "Invalid usage of the option INSENSITIVE in the DECLARE CURSOR statement.";
        return Err(Error::new(153, text, at));
    }
    if before > 0 && before < options.len() {
        let text = "Mixing old and new syntax to specify cursor options is not allowed.";
        return Err(Error::new(1049, text, at));
    }
    for (index, other) in options.iter().enumerate() {
        let excluded = |one: &&CursorOption| {
            *one != other && EXCLUSIVE.iter().any(|kind| kind.contains(one) && kind.contains(other))
        };
        if let Some(one) = options[..index].iter().find(excluded) {
            let text = format!("Conflicting cursor options {} and {}.", word(*one), word(*other));
            return Err(Error::new(1048, text, at));
        }
    }
    Ok(())
}

/// Refuses FOR UPDATE and FOR READ ONLY beside options that say the opposite, or how rows are locked.
fn refuse_access(options: &[CursorOption], access: Option<&Access>, at: Position) -> Result<(), Error> {
    use CursorOption::{FastForward, Insensitive, Optimistic, ReadOnly, ScrollLocks, Static};
    let found = |of: &[CursorOption]| options.iter().find(|option| of.contains(option)).map(|one| word(*one));
    match access {
        Some(Access::Update(_)) => match found(&[Static, Insensitive, FastForward, ReadOnly]) {
            None => Ok(()),
            Some(option) => {
                let text = format!("Conflicting cursor options {option} and FOR UPDATE.");
                Err(Error::new(1048, text, at))
            }
        },
        Some(Access::ReadOnly) if found(&[ReadOnly, ScrollLocks, Optimistic]).is_some() => {
            let text = "FOR UPDATE or FOR READ ONLY cannot be specified beside READ_ONLY, SCROLL_LOCKS or OPTIMISTIC.";
            Err(Error::new(1058, text, at))
        }
        _ => Ok(()),
    }
}

fn word(option: CursorOption) -> String {
    let named = OPTIONS.iter().find(|(_, known)| *known == option);
    named.map_or(String::new(), |(word, _)| word.to_uppercase())
}

fn cursor_options(parser: &mut Parser<'_>, options: &mut Vec<CursorOption>) {
    while let Some((_, option)) = OPTIONS.iter().find(|(word, _)| parser.next_is(word)) {
        parser.at += 1;
        options.push(*option);
    }
}

pub(super) fn cursor_name(parser: &mut Parser<'_>) -> Result<CursorName, Error> {
    if names::next_is_variable(parser) {
        return names::own_variable(parser).map(CursorName::Variable);
    }
    let global = parser.next_is("global") && parser.ahead(1).is_some_and(|next| next.is_name());
    parser.at += usize::from(global);
    Ok(CursorName::Name { name: names::name(parser)?, global })
}

pub(super) fn open(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    cursor_name(parser).map(StatementKind::OpenCursor)
}

pub(super) fn close(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    cursor_name(parser).map(StatementKind::CloseCursor)
}

pub(super) fn deallocate(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    if parser.next_is("locator") && parser.ahead(1).is_some_and(|next| next.kind == TokenKind::Variable) {
        return Err(Error::refused("deallocate locator", "texts have no locators", parser.position()));
    }
    parser.word("cursor");
    cursor_name(parser).map(StatementKind::DeallocateCursor)
}

pub(super) fn fetch(parser: &mut Parser<'_>) -> Result<StatementKind, Error> {
    parser.at += 1;
    let direction = direction(parser)?;
    match direction {
        Some(_) => parser.expect_word("from")?,
        None => {
            parser.word("from");
        }
    }
    let cursor = cursor_name(parser)?;
    let into = if parser.word("into") { query::variables(parser)? } else { Vec::new() };
    let direction = direction.unwrap_or(Direction::Next);
    Ok(StatementKind::Fetch(Box::new(Fetch { direction, cursor, into })))
}

fn direction(parser: &mut Parser<'_>) -> Result<Option<Direction>, Error> {
    let plain = [
        ("next", Direction::Next),
        ("prior", Direction::Prior),
        ("first", Direction::First),
        ("last", Direction::Last),
    ];
    for (word, direction) in plain {
        if parser.ahead_is(1, "from") && parser.word(word) {
            return Ok(Some(direction));
        }
    }
    if parser.word("absolute") {
        return expression::operand_with_sign(parser).map(Direction::Absolute).map(Some);
    }
    if parser.word("relative") {
        return expression::operand_with_sign(parser).map(Direction::Relative).map(Some);
    }
    Ok(None)
}
