//! A cursor over the tokens of a batch.

use super::keywords;
use super::lexer::Token;
use crate::tds::tokens::message::ServerMessage;

/// How the text is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// "x" is a name, otherwise a text.
    pub quoted_identifiers: bool,
    /// `?` is a place for a parameter, as in dynamic statements of TDS 5.0.
    pub placeholders: bool,
}

pub fn syntax(problem: &str) -> ServerMessage {
    ServerMessage::error(102, 15, format!("Incorrect syntax: {problem}."))
}

/// Words that begin a statement of their own.
const LEADING: [&str; 12] = [
    "select", "insert", "update", "delete", "exec", "execute", "use", "begin", "commit", "rollback", "print",
    "if",
];

pub struct Parser<'a> {
    pub text: &'a str,
    pub tokens: &'a [Token],
    pub at: usize,
    pub syntax: Syntax,
    /// Placeholders seen so far.
    placeholders: usize,
    /// A place in the text and the line it is on.
    seen: (usize, u32),
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, tokens: &'a [Token], syntax: Syntax) -> Parser<'a> {
        Parser { text, tokens, at: 0, syntax, placeholders: 0, seen: (0, 1) }
    }

    pub fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    pub fn advance(&mut self) -> Option<&'a Token> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    /// Takes the next token when it is `symbol`.
    pub fn symbol(&mut self, symbol: char) -> bool {
        let found = self.peek().is_some_and(|token| token.is_symbol(symbol));
        self.at += usize::from(found);
        found
    }

    /// Takes the next token when it is one of the keywords.
    pub fn keyword(&mut self, keywords: &[&str]) -> bool {
        let found = self.peek().is_some_and(|token| keywords.iter().any(|keyword| token.is(keyword)));
        self.at += usize::from(found);
        found
    }

    /// Takes a `?` and names the variable it stands for.
    pub fn placeholder(&mut self) -> Option<String> {
        if !(self.syntax.placeholders && self.symbol('?')) {
            return None;
        }
        self.placeholders += 1;
        Some(placeholder(self.placeholders))
    }

    pub fn placeholders(&self) -> usize {
        self.placeholders
    }

    /// Whether the statement ends here.
    pub fn at_end(&self) -> bool {
        self.peek().is_none_or(|token| {
            token.is_symbol(';')
                || token.is("set")
                || LEADING.iter().any(|leading| token.is(leading))
                || keywords::begins_other_statement(token)
        })
    }

    /// The line of the next token, from 1.
    pub fn line(&mut self) -> u32 {
        let (place, line) = self.seen;
        let next = self.peek().map_or(self.text.len(), |token| token.span.start);
        let between = self.text.get(place..next).unwrap_or("");
        let lines = u32::try_from(between.matches('\n').count()).unwrap_or(u32::MAX);
        self.seen = (next, line.saturating_add(lines));
        self.seen.1
    }

    /// The text of a token, for messages.
    pub fn shown(&self, token: Option<&Token>) -> String {
        token.and_then(|token| self.text.get(token.span.clone())).unwrap_or("the end of the batch").to_owned()
    }
}

/// The name of the n-th placeholder, from 1.
pub fn placeholder(n: usize) -> String {
    format!("?{n}")
}
