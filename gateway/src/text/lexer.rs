//! The tokens of T-SQL.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A bare word: keyword or identifier.
    Word(String),
    /// `[name]`
    Bracketed(String),
    /// `"name"` or, with quoted identifiers off, "text"
    DoubleQuoted(String),
    /// 'text', with or without N before it
    Text(String),
    /// `@name` or `@@name`, with its @
    Variable(String),
    Number(String),
    /// The hexadecimal digits of `0x…`
    Binary(String),
    Symbol(char),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    pub kind: Kind,
    /// Its bytes in the text.
    pub span: Range<usize>,
}

impl Token {
    /// Whether it is this keyword (given in lower case).
    pub fn is(&self, keyword: &str) -> bool {
        matches!(&self.kind, Kind::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    pub fn is_symbol(&self, symbol: char) -> bool {
        self.kind == Kind::Symbol(symbol)
    }

    /// An identifier in any of its forms.
    pub fn identifier(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(name) | Kind::Bracketed(name) | Kind::DoubleQuoted(name) => Some(name),
            _ => None,
        }
    }
}

/// Splits `text`; comments and blanks vanish. The error says what never ends.
pub fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn token(&mut self) -> Result<Option<Token>, String> {
        self.skip_blanks_and_comments()?;
        let start = self.at;
        let mut characters = self.rest().chars();
        let Some(first) = characters.next() else { return Ok(None) };
        let second = characters.next();
        let kind = match (first, second) {
            ('\'', _) => Kind::Text(self.enclosed('\'', "a text")?),
            ('N' | 'n', Some('\'')) => {
                self.at += 1;
                Kind::Text(self.enclosed('\'', "a text")?)
            }
            ('"', _) => Kind::DoubleQuoted(self.enclosed('"', "a quoted name")?),
            ('[', _) => Kind::Bracketed(self.enclosed(']', "a bracketed name")?),
            ('0', Some('x' | 'X')) => {
                self.at += 2;
                Kind::Binary(self.run(|character| character.is_ascii_hexdigit()))
            }
            ('@', _) => Kind::Variable(self.run(is_word_character)),
            _ if first.is_ascii_digit()
                || (first == '.' && second.is_some_and(|next| next.is_ascii_digit())) =>
            {
                Kind::Number(self.number())
            }
            _ if first.is_alphabetic() || first == '_' || first == '#' => {
                Kind::Word(self.run(is_word_character))
            }
            _ => {
                self.at += first.len_utf8();
                Kind::Symbol(first)
            }
        };
        Ok(Some(Token { kind, span: start..self.at }))
    }

    fn skip_blanks_and_comments(&mut self) -> Result<(), String> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            self.at += blanks;
            let rest = self.rest();
            if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.at += comment_length(rest).ok_or("a comment does not end: */ is missing")?;
            } else {
                return Ok(());
            }
        }
    }

    /// What stands up to `end`, which is doubled to mean itself. The opening character is skipped.
    fn enclosed(&mut self, end: char, what: &str) -> Result<String, String> {
        self.at += 1;
        let mut content = String::new();
        loop {
            let rest = self.rest();
            let Some(length) = rest.find(end) else {
                return Err(format!("{what} does not end: {end} is missing"));
            };
            content.push_str(&rest[..length]);
            self.at += length + 1;
            if !self.rest().starts_with(end) {
                return Ok(content);
            }
            content.push(end);
            self.at += 1;
        }
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let rest = self.rest();
        let length = rest.find(|character| !belongs(character)).unwrap_or(rest.len());
        let run = rest[..length].to_owned();
        self.at += length;
        run
    }

    fn number(&mut self) -> String {
        let mut number = self.run(|character| character.is_ascii_digit() || character == '.');
        let rest = self.rest().as_bytes();
        if matches!(rest.first(), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
            if rest.get(1 + sign).is_some_and(u8::is_ascii_digit) {
                number.push_str(&self.rest()[..1 + sign]);
                self.at += 1 + sign;
                number.push_str(&self.run(|character| character.is_ascii_digit()));
            }
        }
        number
    }
}

/// Bytes of the comment `text` begins with; comments nest.
fn comment_length(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next()?.len_utf8();
        }
    }
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '@' | '#' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn words_texts_and_numbers() {
        assert_eq!(
            kinds("exec p @a = N'it''s', -1.5e-3 /* c /* nested */ */, 0xFF -- end"),
            vec![
                Kind::Word("exec".into()),
                Kind::Word("p".into()),
                Kind::Variable("@a".into()),
                Kind::Symbol('='),
                Kind::Text("it's".into()),
                Kind::Symbol(','),
                Kind::Symbol('-'),
                Kind::Number("1.5e-3".into()),
                Kind::Symbol(','),
                Kind::Binary("FF".into()),
            ]
        );
    }

    #[test]
    fn what_does_not_end_is_named() {
        assert_eq!(tokens("select 'abc"), Err("a text does not end: ' is missing".into()));
        assert_eq!(tokens("select /* a"), Err("a comment does not end: */ is missing".into()));
    }

    proptest! {
        #[test]
        fn every_text_is_split_or_refused(text in ".{0,60}") {
            if let Ok(tokens) = tokens(&text) {
                for token in tokens {
                    prop_assert!(text.get(token.span).is_some_and(|part| !part.is_empty()));
                }
            }
        }
    }
}
