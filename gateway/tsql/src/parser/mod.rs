//! Parses the text of a batch to a tree of statements, by recursive descent: statements are made of queries, these of
//! expressions.

mod expression;
mod function;
mod names;
mod query;
mod statements;

use crate::databases::Known;
use crate::error::Error;
use crate::facts::outside;
use crate::keywords::Class;
use crate::lexer::{self, Syntax, Token, TokenKind};
use crate::tree::{Expression, Parameter, Position, Statement, TableElement, UserType};
use crate::Dialect;
use statements::{column, procedure};

/// The most levels of nested statements, parentheses, queries and operands.
pub const DEEPEST: u32 = 100;
/// The most operators of one precedence in a row, as in `a + b + c`, each of which is an operand of the next.
pub const LONGEST_CHAIN: u32 = 250;

/// A parsed batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    pub statements: Vec<Statement>,
    /// The number of its `?`.
    pub placeholders: u32,
}

/// Parses a whole batch. The error names the line and the invalid token.
pub fn parse(text: &str, syntax: Syntax) -> Result<Batch, Error> {
    let tokens = lexer::tokens(text, syntax)?;
    parse_tokens(&tokens, syntax, None)
}

/// Parses a whole batch, whose names must be of these databases.
pub fn parse_in(text: &str, syntax: Syntax, known: Known<'_>) -> Result<Batch, Error> {
    let tokens = lexer::tokens(text, syntax)?;
    parse_tokens(&tokens, syntax, Some(known))
}

/// Parses a batch given as tokens. Error 208: names a schema that its database does not have, if these are known.
pub fn parse_tokens(tokens: &[Token<'_>], syntax: Syntax, known: Option<Known<'_>>) -> Result<Batch, Error> {
    let mut parser =
        Parser { is_stored: syntax.is_stored, dialect: syntax.dialect, known, ..Parser::of(tokens) };
    let statements = statements::batch(&mut parser).map_err(|error| named(error, &parser))?;
    let placeholders = tokens.iter().filter(|token| is_placeholder(token)).count();
    Ok(Batch { statements, placeholders: u32::try_from(placeholders).unwrap_or(u32::MAX) })
}

/// A syntax error in a construct that ringlog does not have names it.
fn named(error: Error, parser: &Parser<'_>) -> Error {
    let is_syntax =
        matches!(error.number, 102 | 156 | 319 | 4145) && !error.text.contains("is not supported");
    match outside::construct(parser.tokens, parser.at).filter(|_| is_syntax) {
        Some((what, token)) => Error::refused(&what, "ringlog does not have it", token.at),
        None => error,
    }
}

/// Parses `@a int, @b nvarchar(40) = 'x' output`: the parameters of a text of sp_executesql and sp_prepare.
pub fn parse_parameters(text: &str) -> Result<Vec<Parameter>, Error> {
    let tokens = lexer::tokens(text, Syntax::default())?;
    let mut parser = Parser::of(&tokens);
    if parser.at_end() {
        return Ok(Vec::new());
    }
    let parameters = parser.list(procedure::parameter)?;
    if parser.at_end() {
        return Ok(parameters);
    }
    Err(parser.wrong())
}

/// Parses `"Tids" table (…)`, the declaration of a table type; None: the declaration of another user type.
pub(crate) fn parse_table_type(text: &str) -> Result<Option<Vec<TableElement>>, Error> {
    let tokens = lexer::tokens(text, Syntax { quoted_identifiers: true, ..Syntax::default() })?;
    let mut parser = Parser::of(&tokens);
    names::name(&mut parser)?;
    if !parser.word("table") {
        return Ok(None);
    }
    column::table_elements(&mut parser).map(Some)
}

/// Parses `"Tid" varchar(11) not null`, the declaration of a user type.
pub(crate) fn parse_user_type(text: &str) -> Result<UserType, Error> {
    let tokens = lexer::tokens(text, Syntax { quoted_identifiers: true, ..Syntax::default() })?;
    let mut parser = Parser::of(&tokens);
    let name = names::name(&mut parser)?.text;
    let type_ = names::type_name(&mut parser)?;
    let identity = parser.word("identity");
    let nullable = !identity && !parser.words(&["not", "null"]);
    Ok(UserType { name, type_, nullable, identity })
}

fn is_placeholder(token: &Token<'_>) -> bool {
    token.kind == TokenKind::Variable && token.value.starts_with('?')
}

struct Parser<'t> {
    tokens: &'t [Token<'t>],
    at: usize,
    depth: u32,
    /// The number of CASE around the current expression.
    cases: u32,
    /// The number of loops around the current statement.
    loops: u32,
    /// Where the last statement ended.
    ended: usize,
    is_stored: bool,
    dialect: &'static Dialect,
    known: Option<Known<'t>>,
}

impl<'t> Parser<'t> {
    fn of(tokens: &'t [Token<'t>]) -> Parser<'t> {
        Parser {
            tokens,
            at: 0,
            depth: 0,
            cases: 0,
            loops: 0,
            ended: 0,
            is_stored: false,
            dialect: <&Dialect>::default(),
            known: None,
        }
    }

    fn peek(&self) -> Option<&'t Token<'t>> {
        self.tokens.get(self.at)
    }

    fn ahead(&self, ahead: usize) -> Option<&'t Token<'t>> {
        self.tokens.get(self.at + ahead)
    }

    fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// The position of the next token; at the end, of the last one.
    fn position(&self) -> Position {
        self.peek().or(self.tokens.last()).map_or(Position { line: 1, start: 0, end: 0 }, |token| token.at)
    }

    /// The text from `start` to the previous token.
    fn since(&self, start: Position) -> Position {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map_or(start, |last| start.to(last.at))
    }

    /// Whether the next token follows a statement that no semicolon has ended.
    fn follows_unended(&self) -> bool {
        self.at > 0 && self.ended == self.at && !self.is_stored
    }

    fn advance(&mut self) -> Result<&'t Token<'t>, Error> {
        let token = self.peek().ok_or_else(|| self.wrong())?;
        self.at += 1;
        Ok(token)
    }

    fn next_is(&self, word: &str) -> bool {
        self.peek().is_some_and(|token| token.is(word))
    }

    fn next_is_any(&self, words: &[&str]) -> bool {
        self.peek().is_some_and(|token| token.is_any(words))
    }

    fn ahead_is(&self, ahead: usize, word: &str) -> bool {
        self.ahead(ahead).is_some_and(|token| token.is(word))
    }

    fn next_is_symbol(&self, symbol: &str) -> bool {
        self.peek().is_some_and(|token| token.is_symbol(symbol))
    }

    fn ahead_is_symbol(&self, ahead: usize, symbol: &str) -> bool {
        self.ahead(ahead).is_some_and(|token| token.is_symbol(symbol))
    }

    /// Consumes the next token if it is this word.
    fn word(&mut self, word: &str) -> bool {
        let found = self.next_is(word);
        self.at += usize::from(found);
        found
    }

    fn any_word(&mut self, words: &[&str]) -> bool {
        let found = self.next_is_any(words);
        self.at += usize::from(found);
        found
    }

    /// Consumes the next tokens if they are these words in order.
    fn words(&mut self, sequence: &[&str]) -> bool {
        let found = sequence.iter().enumerate().all(|(ahead, word)| self.ahead_is(ahead, word));
        self.at += if found { sequence.len() } else { 0 };
        found
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = self.next_is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<(), Error> {
        if self.word(word) {
            return Ok(());
        }
        Err(self.wrong())
    }

    fn expect_any(&mut self, words: &[&str]) -> Result<(), Error> {
        if self.any_word(words) {
            return Ok(());
        }
        Err(self.wrong())
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<(), Error> {
        if self.symbol(symbol) {
            return Ok(());
        }
        Err(self.wrong())
    }

    /// 102 or 156 at the next token, or at the last one.
    fn wrong(&self) -> Error {
        match self.peek() {
            Some(token) => wrong_at(token),
            None => match self.tokens.last() {
                Some(last) => Error::syntax(&last.shown(), last.at),
                None => Error::syntax("", 1_u32),
            },
        }
    }

    /// 102 or 156 at the previous token.
    fn wrong_before(&self) -> Error {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.map_or_else(|| self.wrong(), wrong_at)
    }

    /// Runs `read` one nesting level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth >= DEEPEST {
            return Err(Error::nested_too_deeply(self.position()));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Whether the text is refused where SQL Server refuses it: a stored one keeps what was accepted before.
    fn is_strict(&self) -> bool {
        self.dialect.is_strict && !self.is_stored
    }

    /// The value of an argument that SQL Server takes as a constant or a variable only.
    fn plain_value(&mut self) -> Result<Expression, Error> {
        let is_plain = self.peek().is_some_and(|token| match token.kind {
            TokenKind::Word(_) => token.is("null"),
            TokenKind::Symbol => token.is_symbol("-") || token.is_symbol("+"),
            kind => kind != TokenKind::Name,
        });
        match self.is_strict() {
            true if is_plain => expression::operand_with_sign(self),
            true => Err(self.wrong()),
            false => expression::value(self),
        }
    }

    /// Runs `read` one level of CASE deeper; error 125.
    fn nested_case<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        const DEEPEST_CASE: u32 = 10;
        if self.cases >= DEEPEST_CASE && self.is_strict() {
            let text = format!("Case expressions may only be nested to level {DEEPEST_CASE}.");
            return Err(Error::new(125, text, self.position()));
        }
        self.cases += 1;
        let read = self.deeper(read);
        self.cases -= 1;
        read
    }

    /// A comma-separated list of at least one item.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let mut items = vec![read(self)?];
        while self.symbol(",") {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// A comma-separated list of at least one item, in parentheses.
    fn in_parentheses<T>(
        &mut self,
        read: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        self.expect_symbol("(")?;
        let items = self.list(read)?;
        self.expect_symbol(")")?;
        Ok(items)
    }
}

/// 102, or 156 for a keyword.
pub(crate) fn wrong_at(token: &Token<'_>) -> Error {
    match token.kind {
        TokenKind::Word(Class::Reserved | Class::Statement) => Error::keyword(&token.value, token.at),
        _ => Error::syntax(&token.shown(), token.at),
    }
}
