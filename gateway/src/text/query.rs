//! Queries for PostgreSQL: names put into its form, and what would mean something else there refused.

use super::keywords;
use super::lexer::{Kind, Token};
use crate::tds::tokens::message::ServerMessage;

/// The index after the last token of the query that begins at `start`.
pub fn end(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0i32;
    let first = tokens.get(start);
    let is = |token: Option<&Token>, words: &[&str]| {
        token.is_some_and(|token| words.iter().any(|word| token.is(word)))
    };
    let begins_with_select = is(first, &["select", "with", "values"]);
    let is_update = is(first, &["update"]);
    let mut set_seen = false;
    for at in start + 1..tokens.len() {
        let (token, before) = (tokens.get(at), tokens.get(at - 1));
        match token.map(|token| &token.kind) {
            Some(Kind::Symbol('(')) => depth += 1,
            Some(Kind::Symbol(')')) => depth -= 1,
            Some(Kind::Symbol(';')) => return at,
            Some(Kind::Word(_)) if depth <= 0 => {
                if is(token, &["exec", "execute", "use", "begin", "commit", "rollback", "print", "if"]) {
                    return at;
                }
                if before.zip(token).is_some_and(|(before, token)| keywords::ends_query(before, token)) {
                    return at;
                }
                if is(token, &["set"]) {
                    if !is_update || set_seen {
                        return at;
                    }
                    set_seen = true;
                }
                let continues = is(before, &["union", "all", "except", "intersect", "for", "do"]);
                let follows_with = is(first, &["with"]) && before.is_some_and(|token| token.is_symbol(')'));
                if is(token, &["select"]) && !continues && !follows_with && (begins_with_select || set_seen) {
                    return at;
                }
                if is(token, &["insert", "update", "delete"]) && !continues && !follows_with {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// `select @@a [[as] name], …` and nothing else.
pub fn variables(tokens: &[Token]) -> Option<Vec<(String, String)>> {
    let (first, mut rest) = tokens.split_first()?;
    if !first.is("select") {
        return None;
    }
    let mut variables = Vec::new();
    loop {
        let (token, tail) = rest.split_first()?;
        let Kind::Variable(name) = &token.kind else { return None };
        if !name.starts_with("@@") {
            return None;
        }
        rest = tail;
        let mut alias = String::new();
        if let Some((token, tail)) = rest.split_first().filter(|(token, _)| token.is("as")) {
            let _ = token;
            rest = tail;
        }
        if let Some((token, tail)) = rest.split_first() {
            if let Some(found) = token.identifier() {
                found.clone_into(&mut alias);
                rest = tail;
            }
        }
        variables.push((name.to_lowercase(), alias));
        match rest.split_first() {
            None => return Some(variables),
            Some((token, tail)) if token.is_symbol(',') => rest = tail,
            Some(_) => return None,
        }
    }
}

fn refused(what: &str, why: &str) -> ServerMessage {
    ServerMessage::error(102, 15, format!("'{what}' is not understood here: {why}."))
}

/// The text of `tokens` with brackets as quotes, `a..b` and `a.dbo.b` as `a.b`, and with quoted identifiers
/// off "text" as a text. Comments and layout between tokens become single blanks where there was anything.
pub fn for_postgres(text: &str, tokens: &[Token], quoted_identifiers: bool) -> Result<String, ServerMessage> {
    refuse(tokens)?;
    refuse_named_by_equals(tokens)?;
    let mut sql = String::with_capacity(text.len());
    let mut at = 0;
    let mut end_before: Option<usize> = None;
    while let Some(token) = tokens.get(at) {
        if end_before.is_some_and(|end| end < token.span.start) {
            sql.push(' ');
        }
        match &token.kind {
            Kind::Bracketed(name) => push_quoted(&mut sql, name, '"'),
            Kind::DoubleQuoted(name) if quoted_identifiers => push_quoted(&mut sql, name, '"'),
            Kind::DoubleQuoted(text) => push_quoted(&mut sql, text, '\''),
            Kind::Text(text) => push_quoted(&mut sql, text, '\''),
            Kind::Binary(digits) => {
                let odd = if digits.len().is_multiple_of(2) { "" } else { "0" };
                sql.push_str(&format!("'\\x{odd}{digits}'::bytea"));
            }
            _ => sql.push_str(text.get(token.span.clone()).unwrap_or("")),
        }
        end_before = Some(token.span.end);
        if token.identifier().is_some() {
            if let Some(skipped) = owner_after(tokens, at) {
                at += skipped;
                end_before = tokens.get(at).map(|token| token.span.end);
                sql.push('.');
            }
        }
        at += 1;
    }
    Ok(sql)
}

/// After the schema name at `at`: how many tokens `..` or `.dbo.` takes.
fn owner_after(tokens: &[Token], at: usize) -> Option<usize> {
    let symbol = |offset: usize| tokens.get(at + offset).is_some_and(|token| token.is_symbol('.'));
    if !symbol(1) {
        return None;
    }
    if symbol(2) {
        return Some(2);
    }
    let is_owner =
        tokens.get(at + 2).and_then(Token::identifier).is_some_and(|name| name.eq_ignore_ascii_case("dbo"));
    (is_owner && symbol(3)).then_some(3)
}

fn push_quoted(sql: &mut String, content: &str, quote: char) {
    sql.push(quote);
    for character in content.chars() {
        if character == quote {
            sql.push(quote);
        }
        sql.push(character);
    }
    sql.push(quote);
}

/// Constructs that PostgreSQL would read, but differently.
fn refuse(tokens: &[Token]) -> Result<(), ServerMessage> {
    let first = tokens.first();
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match &token.kind {
            Kind::Symbol('(') => depth += 1,
            Kind::Symbol(')') => depth -= 1,
            Kind::Variable(name) => return Err(refused(name, "variables cannot be used in a query")),
            Kind::Word(name) if name.starts_with('#') => {
                return Err(refused(name, "there are no temporary tables"));
            }
            Kind::Symbol('^') => {
                return Err(refused("^", "it is a power in PostgreSQL and not an exclusive or"))
            }
            Kind::Word(_) if token.is("like") => refuse_pattern(tokens.get(at + 1))?,
            Kind::Word(_)
                if depth == 0 && token.is("from") && first.is_some_and(|first| first.is("update")) =>
            {
                return Err(refused("update … from", "rows would be matched otherwise in PostgreSQL"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// `select name = value` names a column in T-SQL and compares in PostgreSQL.
fn refuse_named_by_equals(tokens: &[Token]) -> Result<(), ServerMessage> {
    const ENDS_LIST: [&str; 8] = ["from", "into", "where", "group", "having", "order", "union", "select"];
    // for each open parenthesis: whether a select list is being read, and the depth of CASE in it
    let mut places = vec![(false, 0)];
    for (at, token) in tokens.iter().enumerate() {
        if token.is_symbol('(') {
            places.push((false, 0));
        } else if token.is_symbol(')') {
            places.pop();
        }
        let Some((in_list, cases)) = places.last_mut() else { return Ok(()) };
        match &token.kind {
            Kind::Symbol('=') if *in_list && *cases == 0 => {
                let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                let is_part = before.is_some_and(|before| {
                    before.span.end == token.span.start
                        && matches!(before.kind, Kind::Symbol('<' | '>' | '!'))
                });
                if !is_part {
                    return Err(refused("=", "a column of a result is named by AS"));
                }
            }
            Kind::Word(_) if token.is("case") => *cases += 1,
            Kind::Word(_) if token.is("end") => *cases -= 1,
            Kind::Word(_) if ENDS_LIST.iter().any(|word| token.is(word)) => {
                (*in_list, *cases) = (token.is("select"), 0);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Only a plain pattern means the same: no character class, no backslash.
fn refuse_pattern(token: Option<&Token>) -> Result<(), ServerMessage> {
    match token.map(|token| &token.kind) {
        Some(Kind::Text(pattern)) if !pattern.contains(['[', '\\']) => Ok(()),
        Some(Kind::Text(_)) => {
            Err(refused("like", "patterns with [ or \\ mean something else in PostgreSQL"))
        }
        _ => Err(refused("like", "the pattern must be a text")),
    }
}
