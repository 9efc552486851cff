//! T-SQL names longer than PostgreSQL's limit: in PostgreSQL they end with a digest, and comments contain them in full.

use crate::digest;
use crate::error::Error;
use crate::lexer::{Token, TokenKind};
use crate::units;

/// The longest name in PostgreSQL, in bytes.
pub const LONGEST_STORED: usize = 63;
/// The longest name in T-SQL, in characters.
const LONGEST: usize = 128;
/// Characters of the digest.
const DIGEST: usize = 16;

/// The name as PostgreSQL stores it, in lower case, like `tsql.stored_name`.
pub fn stored(name: &str) -> String {
    let name = name.to_lowercase();
    if name.len() <= LONGEST_STORED {
        return name;
    }
    let begin = name.floor_char_boundary(LONGEST_STORED - DIGEST - 1);
    format!("{}~{}", &name[..begin], &digest::md5(name.as_bytes())[..DIGEST])
}

/// Error 103 for a name that is too long for T-SQL.
pub fn check(name: &str, line: impl Into<u32>) -> Result<(), Error> {
    if units::units(name) <= LONGEST {
        return Ok(());
    }
    let start: String = name.chars().take(LONGEST).collect();
    let text = format!("The identifier that starts with '{start}' is too long. Maximum length is {LONGEST}.");
    Err(Error::new(103, text, line))
}

/// Refuses a name longer than PostgreSQL's limit for an object whose full name cannot be stored. `what`: its kind.
pub fn demand_short(name: &str, what: &str, line: impl Into<u32>) -> Result<(), Error> {
    if name.len() <= LONGEST_STORED {
        return Ok(());
    }
    Err(Error::refused(name, &format!("the name of a {what} has at most {LONGEST_STORED} bytes"), line))
}

/// The long names of a text, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongNames(Vec<String>);

impl LongNames {
    /// Error 103: a name is too long for T-SQL.
    pub fn of(tokens: &[Token<'_>]) -> Result<LongNames, Error> {
        let mut names = Vec::new();
        for token in tokens.iter().filter(|token| token.value.len() > LONGEST_STORED) {
            if matches!(token.kind, TokenKind::Word(_) | TokenKind::Name | TokenKind::Variable) {
                check(&token.value, token.at)?;
                names.push(token.value.to_string());
            }
        }
        Ok(LongNames(names))
    }

    /// Restores the original names in a message.
    pub fn restored(&self, message: String) -> String {
        self.0.iter().fold(message, |message, name| message.replace(&stored(name), name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::{tokens, Syntax};

    #[test]
    fn names_that_begin_alike_stay_two() {
        let [one, other] = ["A", "B"].map(|end| format!("{}{end}", "Long_".repeat(25)));
        let digest = digest::md5(one.to_lowercase().as_bytes());
        assert_eq!(stored(&one), format!("{}l~{}", "long_".repeat(9), &digest[..16]));
        assert_ne!(stored(&one), stored(&other));
        assert_eq!(stored(&stored(&one)), stored(&one));
        assert_eq!(stored(&"X".repeat(63)), "x".repeat(63));
        // characters are not split
        assert!(stored(&"加".repeat(22)).starts_with(&format!("{}~", "加".repeat(15))));
    }

    #[test]
    fn messages_have_them_as_they_were_written() {
        let name = "Long_".repeat(20);
        let text = format!("select [{name}] from t");
        let names = LongNames::of(&tokens(&text, Syntax::default()).unwrap()).unwrap();
        assert_eq!(names.restored(format!("no '{}'", stored(&name))), format!("no '{name}'"));
        let text = format!("select @{name}{name}");
        assert_eq!(LongNames::of(&tokens(&text, Syntax::default()).unwrap()).unwrap_err().number, 103);
    }
}
