//! Quotes texts and names for PostgreSQL's SQL. Neither may contain a NUL, which PostgreSQL refuses.

use crate::long_names::{stored, LONGEST_STORED};

/// A text as a literal, valid for any standard_conforming_strings.
pub fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
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
    format!("\"{}\"", name.replace('"', "\"\""))
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
