//! Collations, which determine how texts are compared. The database compares by code points, or case-insensitively by
//! Unicode's simple case folding.

/// The comparison that a collation's name specifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collation {
    /// By code points, as the database does.
    Binary,
    /// Texts are equal as in the database; the order differs.
    Sensitive,
    /// Letters are equal to their capitals; the order differs.
    Insensitive,
}

/// The collation of this name; None for a collation that is not supported: accent-insensitive, width-sensitive or
/// kana-sensitive.
pub fn named(name: &str) -> Option<Collation> {
    let name = name.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if ends(&["_bin", "_bin2", "_bin_utf8", "_bin2_utf8"]) {
        Some(Collation::Binary)
    } else if ends(&["_cs_as", "_cs_as_utf8", "_cs_as_sc", "_cs_as_sc_utf8"]) {
        Some(Collation::Sensitive)
    } else if ends(&["_ci_as", "_ci_as_utf8", "_ci_as_sc", "_ci_as_sc_utf8"]) {
        Some(Collation::Insensitive)
    } else {
        None
    }
}

/// Whether the order of a case-insensitive collation follows a language: in Latin1_General only for accented letters
/// and punctuation.
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
