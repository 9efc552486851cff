//! The tokens of T-SQL.

use crate::error::Error;
use crate::keywords::{self, Class};
use crate::tree::Position;
use crate::Dialect;
use std::borrow::Cow;

/// The most characters of a text.
pub const LONGEST: usize = 1 << 20;

/// The action of MERGE on a row, which OUTPUT may name.
pub const ACTION: &str = "$action";

/// The syntax options of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// "x" is a name and not a text.
    pub quoted_identifiers: bool,
    /// `?` is a variable, ?1 the first.
    pub placeholders: bool,
    /// The text was stored, perhaps by a version that did not demand semicolons.
    pub is_stored: bool,
    pub dialect: &'static Dialect,
}

impl Default for Syntax {
    fn default() -> Syntax {
        Syntax {
            quoted_identifiers: true,
            placeholders: false,
            is_stored: false,
            dialect: <&Dialect>::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Keyword or identifier.
    Word(Class),
    /// `[name]`, or `"name"` with quoted identifiers on.
    Name,
    /// `'text'`, or `"text"` with quoted identifiers off.
    Text {
        national: bool,
    },
    /// `@name` or `@@name` as written; `?1` and so on.
    Variable,
    Integer,
    /// Digits with a decimal point.
    Decimal,
    /// Digits with an exponent.
    Float,
    /// A currency sign and an amount; the value is the amount alone.
    Money,
    /// The value is the hexadecimal digits of `0x…`.
    Binary,
    /// An operator or a punctuation mark.
    Symbol,
}

#[derive(Clone, Debug)]
pub struct Token<'a> {
    pub kind: TokenKind,
    /// The value without quotes and brackets.
    pub value: Cow<'a, str>,
    pub at: Position,
    /// For a literal: the number of literals before it.
    pub index: u32,
}

impl Token<'_> {
    /// Whether it is this word, given in lower case, without brackets or quotes.
    pub fn is(&self, word: &str) -> bool {
        matches!(self.kind, TokenKind::Word(_)) && self.value.eq_ignore_ascii_case(word)
    }

    pub fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.value == symbol
    }

    /// Whether it has the form of an identifier; a reserved word can be one only after a point.
    pub fn is_name(&self) -> bool {
        matches!(self.kind, TokenKind::Word(_) | TokenKind::Name)
    }

    /// Whether it can be the name of a temporary table: `#t`, or `##t` for all sessions.
    pub fn is_temporary(&self) -> bool {
        self.is_name() && self.value.starts_with('#')
    }

    pub fn is_global(&self) -> bool {
        self.is_name() && self.value.starts_with("##")
    }

    pub fn is_literal(&self) -> bool {
        use TokenKind::{Binary, Decimal, Float, Integer, Money, Text};
        matches!(self.kind, Text { .. } | Integer | Decimal | Float | Money | Binary)
    }

    /// The token as T-SQL that reads as the same with any settings.
    pub fn written(&self) -> String {
        match self.kind {
            TokenKind::Name => format!("[{}]", self.value.replace(']', "]]")),
            TokenKind::Text { national } => {
                format!("{}'{}'", if national { "N" } else { "" }, as_quoted(&self.value))
            }
            TokenKind::Money => format!("${}", self.value),
            TokenKind::Binary => format!("0x{}", self.value),
            _ => self.value.to_string(),
        }
    }

    /// The token in an error message.
    pub fn shown(&self) -> String {
        if self.kind == TokenKind::Binary {
            return format!("0x{}", self.value);
        }
        if self.value.chars().count() <= 128 {
            return self.value.to_string();
        }
        self.value.chars().take(125).chain("...".chars()).collect()
    }
}

/// Splits a text; blanks and comments, which may be nested, are removed.
///
/// Errors: 105 for an unterminated text or name, 113 for an unterminated comment, 1038 for an empty name, 103 for a
/// text that is too long.
pub fn tokens(text: &str, syntax: Syntax) -> Result<Vec<Token<'_>>, Error> {
    if text.len() > LONGEST {
        let length = text.chars().count();
        if length > LONGEST {
            let message = format!("The batch has {length} characters; {LONGEST} are the most ringlog reads.");
            return Err(Error::new(103, message, 1_u32));
        }
    }
    // PostgreSQL accepts no NUL, not even in texts and names
    if let Some(at) = text.find('\0') {
        let lines = text[..at].matches('\n').count();
        let line = u32::try_from(lines).unwrap_or(u32::MAX - 1) + 1;
        return Err(Error::new(102, "Incorrect syntax: the batch holds a NUL character.", line));
    }
    let mut lexer = Lexer { text, at: 0, line: 1, placeholders: 0, literals: 0, syntax };
    let mut tokens = Vec::with_capacity(text.len() / 6 + 1);
    while let Some(token) = lexer.token()? {
        tokens.push(token);
    }
    Ok(tokens)
}

/// The text of a definition as the catalogue stores it: SQL Server replaces ALTER by CREATE.
pub fn as_created(text: &str) -> Result<Cow<'_, str>, Error> {
    Ok(match read(text)?.first() {
        Some(alter) if alter.is("alter") => {
            let word = alter.at.range();
            Cow::Owned([&text[..word.start], "CREATE", &text[word.end..]].concat())
        }
        _ => Cow::Borrowed(text),
    })
}

/// The ALTER statement for the object of a CREATE statement.
pub fn as_altered(text: &str) -> Result<String, Error> {
    let tokens = read(text)?;
    let word = tokens.first().filter(|first| first.is("create")).map_or(0..0, |create| create.at.range());
    // `create or alter` replaces an existing object
    let is_both = tokens.get(1).is_some_and(|or| or.is("or"));
    Ok(if is_both { text.to_owned() } else { [&text[..word.start], "ALTER", &text[word.end..]].concat() })
}

/// The position of the first name of a temporary table.
pub fn temporary_name(text: &str) -> Result<Option<Position>, Error> {
    Ok(read(text)?.iter().find(|token| token.is_temporary()).map(|token| token.at))
}

/// The tokens of a text that has been parsed: where "" is in it, "x" is a text too.
pub fn read(text: &str) -> Result<Vec<Token<'_>>, Error> {
    let syntax = |quoted_identifiers| Syntax { quoted_identifiers, ..Syntax::default() };
    tokens(text, syntax(true)).or_else(|_| tokens(text, syntax(false)))
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    placeholders: u32,
    literals: u32,
    syntax: Syntax,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Skips bytes and counts their lines.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let skipped = &self.rest()[..bytes];
        let lines = skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.line += u32::try_from(lines).unwrap_or(u32::MAX);
        self.at += bytes;
        skipped
    }

    fn skip_blanks(&mut self) -> Result<(), Error> {
        loop {
            let rest = self.rest();
            let blanks = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
            self.skip(blanks);
            let rest = self.rest();
            if rest.starts_with("--") {
                self.skip(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                self.comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn comment(&mut self) -> Result<(), Error> {
        let line = self.line;
        let mut depth = 0_u32;
        loop {
            let rest = self.rest();
            let edge = rest.as_bytes().windows(2).position(|pair| pair == b"/*" || pair == b"*/");
            let Some(edge) = edge else {
                return Err(Error::new(113, "Missing end comment mark '*/'.", line));
            };
            depth = if rest.as_bytes()[edge] == b'/' { depth + 1 } else { depth - 1 };
            self.skip(edge + 2);
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Option<Token<'a>>, Error> {
        self.skip_blanks()?;
        let (start, line) = (self.at, self.line);
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let (kind, value) = match first {
            'N' | 'n' if self.byte(1) == Some(b'\'') => {
                self.at += 1;
                (TokenKind::Text { national: true }, continued(self.quoted('\'')?))
            }
            '\'' => (TokenKind::Text { national: false }, continued(self.quoted('\'')?)),
            '"' if self.syntax.quoted_identifiers => (TokenKind::Name, self.quoted('"')?),
            '"' => (TokenKind::Text { national: false }, continued(self.quoted('"')?)),
            '[' => (TokenKind::Name, self.quoted(']')?),
            '0'..='9' => self.number()?,
            '.' if self.byte(1).is_some_and(|byte| byte.is_ascii_digit()) => self.number()?,
            '$' if self.is_action() => {
                (TokenKind::Word(Class::Plain), Cow::Borrowed(self.skip(ACTION.len())))
            }
            '$' | '£' | '¥' | '€' => self.money(first)?,
            '@' => self.variable(),
            '?' if self.syntax.placeholders => {
                self.at += 1;
                self.placeholders += 1;
                (TokenKind::Variable, Cow::Owned(format!("?{}", self.placeholders)))
            }
            '_' | '#' => self.word(first),
            _ if first.is_alphabetic() => self.word(first),
            _ => (TokenKind::Symbol, self.symbol(first)),
        };
        if kind == TokenKind::Name && value.is_empty() {
            return Err(Error::new(1038, "An object or column name is missing or empty.", line));
        }
        let position = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        let at = Position { line, start: position(start), end: position(self.at) };
        let token = Token { kind, value, at, index: self.literals };
        self.literals += u32::from(token.is_literal());
        Ok(Some(token))
    }

    /// A text or a name up to its closing mark, which is doubled inside.
    fn quoted(&mut self, mark: char) -> Result<Cow<'a, str>, Error> {
        let line = self.line;
        self.at += 1;
        let begin = self.at;
        let mut doubled = false;
        let mut from = 0;
        let end = loop {
            let rest = self.rest();
            let Some(found) = rest[from..].find(mark) else {
                let shown: String = rest.chars().take(60).collect();
                let message =
                    format!("Unclosed quotation mark after the character string '{}'.", shown.trim());
                return Err(Error::new(105, message, line));
            };
            let at = from + found;
            if rest[at + 1..].starts_with(mark) {
                doubled = true;
                from = at + 2;
            } else {
                break at;
            }
        };
        self.skip(end + 1);
        let inner = &self.text[begin..begin + end];
        if !doubled {
            return Ok(Cow::Borrowed(inner));
        }
        let mut two = String::from(mark);
        two.push(mark);
        Ok(Cow::Owned(inner.replace(&two, mark.encode_utf8(&mut [0; 4]))))
    }

    fn digits(&mut self) {
        while self.byte(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<(TokenKind, Cow<'a, str>), Error> {
        let start = self.at;
        if self.byte(0) == Some(b'0') && matches!(self.byte(1), Some(b'x' | b'X')) {
            self.at += 2;
            let begin = self.at;
            while self.byte(0).is_some_and(|byte| byte.is_ascii_hexdigit()) {
                self.at += 1;
            }
            return Ok((TokenKind::Binary, Cow::Borrowed(&self.text[begin..self.at])));
        }
        let mut kind = TokenKind::Integer;
        self.digits();
        if self.byte(0) == Some(b'.') {
            kind = TokenKind::Decimal;
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            kind = TokenKind::Float;
            self.at += 1;
            let signed = usize::from(matches!(self.byte(0), Some(b'+' | b'-')));
            if self.byte(signed).is_some_and(|byte| byte.is_ascii_digit()) {
                self.at += signed;
                self.digits();
            }
        }
        let written = &self.text[start..self.at];
        if kind == TokenKind::Float && !is_double(written) {
            let text = format!(
                "The floating point value '{written}' is out of the range of computer representation (8 bytes)."
            );
            return Err(Error::new(168, text, self.line));
        }
        Ok((kind, Cow::Borrowed(written)))
    }

    /// Whether `$action` comes next.
    fn is_action(&self) -> bool {
        let is_named = self.rest().get(..ACTION.len()).is_some_and(|name| name.eq_ignore_ascii_case(ACTION));
        is_named && !self.rest()[ACTION.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
    }

    /// The amount after a currency sign, perhaps with a sign and blanks before it; 0 if there is none.
    fn money(&mut self, sign: char) -> Result<(TokenKind, Cow<'a, str>), Error> {
        let (line, before) = (self.line, self.at);
        self.at += sign.len_utf8();
        let amount = self.rest().trim_start().trim_start_matches(['-', '+']).trim_start();
        if !amount.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return Ok((TokenKind::Money, Cow::Borrowed("0")));
        }
        let lead = self.rest().len() - amount.len();
        let negative = self.skip(lead).contains('-');
        let start = self.at;
        self.digits();
        if self.byte(0) == Some(b',') && self.byte(1).is_some_and(|byte| byte.is_ascii_digit()) {
            let whole = &self.text[before..self.at];
            // SQL Server ignores the comma, other parsers see two values
            let why = "write an amount without commas, or a blank between two values";
            return Err(Error::refused(whole, why, line));
        }
        if self.byte(0) == Some(b'.') {
            self.at += 1;
            self.digits();
        }
        let digits = &self.text[start..self.at];
        Ok((
            TokenKind::Money,
            if negative { Cow::Owned(format!("-{digits}")) } else { Cow::Borrowed(digits) },
        ))
    }

    fn variable(&mut self) -> (TokenKind, Cow<'a, str>) {
        let start = self.at;
        self.at += 1;
        self.name_characters();
        (TokenKind::Variable, Cow::Borrowed(&self.text[start..self.at]))
    }

    fn word(&mut self, first: char) -> (TokenKind, Cow<'a, str>) {
        let start = self.at;
        self.at += first.len_utf8();
        self.name_characters();
        let word = &self.text[start..self.at];
        (TokenKind::Word(keywords::class(word)), Cow::Borrowed(word))
    }

    fn name_characters(&mut self) {
        let rest = self.rest();
        let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '@');
        self.at += rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
    }

    /// The two characters of a comparison may be separated by blanks.
    fn symbol(&mut self, first: char) -> Cow<'a, str> {
        let start = self.at;
        self.at += first.len_utf8();
        let second = self.byte(0).map(char::from);
        let joined = matches!(
            (first, second),
            ('+' | '-' | '*' | '/' | '%' | '&' | '|' | '^', Some('='))
                | ('=', Some('*'))
                | ('|', Some('|'))
                | (':', Some(':'))
        );
        if joined {
            self.at += 1;
            return Cow::Borrowed(&self.text[start..self.at]);
        }
        if matches!(first, '<' | '>' | '!') {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            let comparison = match (first, rest.trim_start().chars().next()) {
                ('<', Some('>')) | ('!', Some('=')) => Some("<>"),
                ('<', Some('=')) | ('!', Some('>')) => Some("<="),
                ('>', Some('=')) | ('!', Some('<')) => Some(">="),
                _ => None,
            };
            if let Some(comparison) = comparison {
                self.skip(blanks + 1);
                return Cow::Borrowed(comparison);
            }
        }
        Cow::Borrowed(&self.text[start..self.at])
    }
}

/// Whether a double can represent the number: it is neither too large, nor rounded to zero.
fn is_double(written: &str) -> bool {
    let mantissa = written.split(['e', 'E']).next().unwrap_or(written);
    // `1e` is 1e0
    let whole = if written.ends_with(['e', 'E']) { mantissa } else { written };
    let is_zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    whole.parse::<f64>().is_ok_and(|value| value.is_finite() && (value != 0.0 || is_zero))
}

/// Removes the line breaks that follow a backslash, and the backslashes ("Backslash (Line Continuation)"; ASE Reference
/// Manual, "Using the continuation character").
fn continued(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains("\\\n") && !text.contains("\\\r\n") {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some((before, behind)) = rest.split_once('\\') {
        whole.push_str(before);
        let next = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix('\n'));
        if next.is_none() {
            whole.push('\\');
        }
        rest = next.unwrap_or(behind);
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// A text as written between quotes.
fn as_quoted(text: &str) -> String {
    let text = text.replace('\'', "''");
    text.replace("\\\r\n", "\\\\\r\n\r\n").replace("\\\n", "\\\\\n\n")
}
