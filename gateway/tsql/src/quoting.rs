//! Quotes texts and names for PostgreSQL's SQL. Neither may contain a NUL, which PostgreSQL refuses.

use crate::long_names::{stored, LONGEST_STORED};
use std::fmt::{self, Display, Formatter};

/// A text as a literal, valid for any standard_conforming_strings.
pub fn literal(text: &str) -> String {
    Literal(text).to_string()
}

pub struct Literal<'a>(pub &'a str);

impl Display for Literal<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(if self.0.contains('\\') { "E'" } else { "'" })?;
        doubled(self.0, &['\'', '\\'], to)?;
        to.write_str("'")
    }
}

/// Writes a text with each of these characters twice.
fn doubled(text: &str, characters: &[char], to: &mut Formatter<'_>) -> fmt::Result {
    let mut from = 0;
    for (at, character) in text.match_indices(characters) {
        to.write_str(&text[from..at])?;
        to.write_str(character)?;
        from = at;
    }
    to.write_str(&text[from..])
}

/// A name in SQL.
pub fn quoted(name: &str) -> String {
    if name.len() > LONGEST_STORED {
        in_quotes(&stored(name))
    } else {
        in_quotes(name)
    }
}

/// A name as written, of any length, in quotes.
pub fn in_quotes(name: &str) -> String {
    InQuotes(name).to_string()
}

struct InQuotes<'a>(&'a str);

impl Display for InQuotes<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str("\"")?;
        doubled(self.0, &['"'], to)?;
        to.write_str("\"")
    }
}

/// The SQL of an array of expressions.
pub fn array(values: impl IntoIterator<Item = String>, kind: &str) -> String {
    let values: Vec<String> = values.into_iter().collect();
    format!("array[{}]::{kind}[]", values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PostgreSQL, "Lexical Structure": a quote is doubled; a backslash is special only in a string that begins with E.
    #[test]
    fn nothing_ends_a_literal_before_its_end() {
        for (text, expected) in [
            ("", "''"),
            ("plain", "'plain'"),
            ("it's", "'it''s'"),
            ("'; drop table t; --", "'''; drop table t; --'"),
            (r"C:\temp", r"E'C:\\temp'"),
            (r"\'; drop table t; --", r"E'\\''; drop table t; --'"),
            ("加速器\n", "'加速器\n'"),
        ] {
            assert_eq!(literal(text), expected);
        }
    }

    #[test]
    fn nothing_ends_a_name_before_its_end() {
        for (name, expected) in
            [("a b", r#""a b""#), (r#"a"b"#, r#""a""b""#), (r"a\b", r#""a\b""#), ("A'b", r#""A'b""#)]
        {
            assert_eq!(quoted(name), expected);
        }
    }
}
