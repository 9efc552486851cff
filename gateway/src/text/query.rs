//! Queries for PostgreSQL: names put into its form, and what would mean something else there refused.

use super::keywords;
use super::lexer::{Kind, Token};
use super::parser::Parser;
use crate::tds::tokens::message::ServerMessage;

/// A query in PostgreSQL's form, with the places of its variables.
#[derive(Debug, Default)]
pub struct Query {
    /// What stands before, between and behind the variables.
    pieces: Vec<String>,
    /// Which variable stands between two pieces, as an index into `variables`.
    places: Vec<usize>,
    /// By their names with @, or `?1`; each once.
    pub variables: Vec<String>,
    /// Those of them that are a pattern of `like`.
    pub patterns: Vec<usize>,
    /// `select @a = …`: the variables that take the last row's values.
    pub assigns: Vec<String>,
}

impl Query {
    /// The SQL with `$n` for variable n, followed by what `cast` says of it.
    pub fn sql(&self, cast: impl Fn(usize) -> String) -> String {
        let mut sql = String::with_capacity(self.pieces.iter().map(|piece| piece.len() + 4).sum());
        for (index, piece) in self.pieces.iter().enumerate() {
            sql.push_str(piece);
            if let Some(variable) = self.places.get(index) {
                sql.push_str(&format!("${}{}", variable + 1, cast(*variable)));
            }
        }
        sql
    }

    fn last(&mut self) -> &mut String {
        if self.pieces.len() <= self.places.len() {
            self.pieces.push(String::new());
        }
        let last = self.pieces.len() - 1;
        &mut self.pieces[last]
    }

    /// Puts a variable where the text has got to. Returns its index.
    fn variable(&mut self, name: String) -> usize {
        self.last();
        let known = self.variables.iter().position(|known| *known == name);
        let index = known.unwrap_or(self.variables.len());
        if known.is_none() {
            self.variables.push(name);
        }
        self.places.push(index);
        index
    }
}

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

/// `select @a [[as] name], @@b …` and nothing else: variables and the names of their columns.
pub fn variables(tokens: &[Token]) -> Option<Vec<(String, String)>> {
    let (first, mut rest) = tokens.split_first()?;
    if !first.is("select") {
        return None;
    }
    let mut variables = Vec::new();
    loop {
        let (token, tail) = rest.split_first()?;
        let Kind::Variable(name) = &token.kind else { return None };
        rest = tail;
        let mut alias = String::new();
        if let Some((_, tail)) = rest.split_first().filter(|(token, _)| token.is("as")) {
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

/// The query of the parser's tokens up to `end`, with brackets as quotes, `a..b` and `a.dbo.b` as `a.b`, and
/// with quoted identifiers off "text" as a text. Comments and layout between tokens become single blanks
/// where there was anything.
pub fn for_postgres(parser: &mut Parser<'_>, end: usize) -> Result<Query, ServerMessage> {
    let text = parser.text;
    let tokens = parser.tokens.get(parser.at..end).unwrap_or(&[]);
    refuse(tokens)?;
    let assignments = assignments(tokens)?;
    refuse_named_by_equals(tokens, &assignments)?;
    let mut query = Query::default();
    let mut at = 0;
    let mut end_before: Option<usize> = None;
    while let Some(token) = tokens.get(at) {
        if end_before.is_some_and(|end| end < token.span.start) {
            query.last().push(' ');
        }
        if let (Kind::Variable(name), true) = (&token.kind, assignments.contains(&at)) {
            query.assigns.push(name.to_lowercase());
            end_before = tokens.get(at + 1).map(|token| token.span.end);
            at += 2;
            continue;
        }
        let variable = match &token.kind {
            Kind::Variable(name) => Some(name.to_lowercase()),
            Kind::Symbol('?') if parser.syntax.placeholders => Some(parser.next_placeholder()),
            _ => None,
        };
        if let Some(name) = variable {
            let index = query.variable(name);
            if at.checked_sub(1).and_then(|before| tokens.get(before)).is_some_and(|token| token.is("like")) {
                query.patterns.push(index);
            }
        } else {
            put_token(query.last(), token, text, parser.syntax.quoted_identifiers);
        }
        end_before = Some(token.span.end);
        if token.identifier().is_some() {
            if let Some(skipped) = owner_after(tokens, at) {
                at += skipped;
                end_before = tokens.get(at).map(|token| token.span.end);
                query.last().push('.');
            }
        }
        at += 1;
    }
    parser.at = end;
    Ok(query)
}

fn put_token(sql: &mut String, token: &Token, text: &str, quoted_identifiers: bool) {
    match &token.kind {
        Kind::Bracketed(name) => push_quoted(sql, name, '"'),
        Kind::DoubleQuoted(name) if quoted_identifiers => push_quoted(sql, name, '"'),
        Kind::DoubleQuoted(text) | Kind::Text(text) => push_quoted(sql, text, '\''),
        Kind::Binary(digits) => {
            let odd = if digits.len().is_multiple_of(2) { "" } else { "0" };
            sql.push_str(&format!("'\\x{odd}{digits}'::bytea"));
        }
        _ => sql.push_str(text.get(token.span.clone()).unwrap_or("")),
    }
}

/// Where in `select @a = …, @b = … from …` the variables stand that take values. A select assigns to
/// variables or gives rows, not both.
fn assignments(tokens: &[Token]) -> Result<Vec<usize>, ServerMessage> {
    let mut found = Vec::new();
    if !tokens.first().is_some_and(|token| token.is("select")) {
        return Ok(found);
    }
    let mut depth = 0;
    let mut items = 1;
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match &token.kind {
            Kind::Symbol('(') => depth += 1,
            Kind::Symbol(')') => depth -= 1,
            Kind::Symbol(',') if depth == 0 => items += 1,
            Kind::Word(_) if depth == 0 && token.is("from") => break,
            Kind::Variable(_) if depth == 0 => {
                let before = tokens.get(at - 1);
                let begins = before.is_some_and(|token| token.is("select") || token.is_symbol(','));
                if begins && tokens.get(at + 1).is_some_and(|token| token.is_symbol('=')) {
                    found.push(at);
                }
            }
            _ => {}
        }
    }
    if !found.is_empty() && found.len() != items {
        return Err(ServerMessage::error(
            141,
            15,
            "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval \
             operations.",
        ));
    }
    Ok(found)
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
            Kind::Variable(name)
                if depth == 0
                    && first.is_some_and(|first| first.is("update"))
                    && tokens.get(at + 1).is_some_and(|token| token.is_symbol('='))
                    && at
                        .checked_sub(1)
                        .and_then(|before| tokens.get(before))
                        .is_some_and(|token| token.is("set") || token.is_symbol(',')) =>
            {
                return Err(refused(name, "an update cannot assign to a variable"));
            }
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
fn refuse_named_by_equals(tokens: &[Token], assignments: &[usize]) -> Result<(), ServerMessage> {
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
                let assigns = at.checked_sub(1).is_some_and(|before| assignments.contains(&before));
                if !is_part && !assigns {
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
        Some(Kind::Text(_)) => Err(pattern_refused()),
        // what the variable holds is looked at when the query runs
        Some(Kind::Variable(_) | Kind::Symbol('?')) => Ok(()),
        _ => Err(refused("like", "the pattern must be a text or a variable")),
    }
}

/// Whether a pattern of `like` means the same in PostgreSQL; otherwise why not.
pub fn check_pattern(pattern: &str) -> Result<(), ServerMessage> {
    if pattern.contains(['[', '\\']) {
        return Err(pattern_refused());
    }
    Ok(())
}

fn pattern_refused() -> ServerMessage {
    refused("like", "patterns with [ or \\ mean something else in PostgreSQL")
}
