//! Collations: how texts are compared. The database compares by code points, or without regard to case by those that
//! Unicode's simple case folding gives.

/// What a collation's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collation {
    /// By code points, as the database does.
    Binary,
    /// Equal texts are those of the database; their order is another.
    Sensitive,
    /// Letters are equal to their capitals; the order is another.
    Insensitive,
}

/// The collation of this name; None for one that texts cannot be compared by here: accents that do not count,
/// widths and kinds of kana that do.
pub fn named(name: &str) -> Option<Collation> {
    let name = name.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if name == "database_default" || ends(&["_bin", "_bin2", "_bin_utf8", "_bin2_utf8"]) {
        Some(Collation::Binary)
    } else if ends(&["_cs_as", "_cs_as_utf8", "_cs_as_sc", "_cs_as_sc_utf8"]) {
        Some(Collation::Sensitive)
    } else if ends(&["_ci_as", "_ci_as_utf8", "_ci_as_sc", "_ci_as_sc_utf8"]) {
        Some(Collation::Insensitive)
    } else {
        None
    }
}

/// Whether the order of a collation without case follows a language: that of Latin1_General does so only for letters with
/// accents and for punctuation.
pub fn needs_language(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    named(&name) == Some(Collation::Insensitive)
        && !name.starts_with("latin1_general_")
        && !name.starts_with("sql_latin1_general_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, expected) in [
            ("database_default", Some(Collation::Binary)),
            ("Latin1_General_100_BIN2_UTF8", Some(Collation::Binary)),
            ("SQL_Latin1_General_CP1_CI_AS", Some(Collation::Insensitive)),
            ("Latin1_General_CS_AS", Some(Collation::Sensitive)),
            ("Latin1_General_CI_AI", None),
            ("Japanese_CI_AS_KS_WS", None),
        ] {
            assert_eq!(named(name), expected, "{name}");
        }
    }
}
