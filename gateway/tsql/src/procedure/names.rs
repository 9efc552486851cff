//! Names that have a meaning in PL/pgSQL.

use crate::error::Error;
use crate::lexer::{Token, TokenKind};
use crate::resolve::names::stored;

/// The schema of objects that end with their session.
pub const TEMPORARY: &str = "pg_temp";

/// Refuses names that PL/pgSQL could confuse with its own variables if no column has them. `tokens`: the body of a
/// procedure.
pub fn check(tokens: &[Token<'_>], procedure: &str) -> Result<(), Error> {
    let mut before: Option<&Token<'_>> = None;
    for token in tokens {
        if token.kind == TokenKind::Name && token.value.starts_with('@') {
            return Err(Error::refused(
                &format!("[{}]", token.value),
                "no name begins with @ in a procedure",
                token.at,
            ));
        }
        let qualified = before.is_some_and(|before| before.is_symbol("."));
        if token.is_name() && !qualified && token.value.eq_ignore_ascii_case("found") {
            return Err(Error::refused(&token.value, "write it with its table, as t.found", token.at));
        }
        if let Some(before) = before.filter(|_| token.is_symbol(".")) {
            if before.is_name() && stored(&before.value) == procedure {
                let why = "name the table otherwise than the procedure, with an alias";
                return Err(Error::refused(&format!("{}.", before.value), why, token.at));
            }
        }
        before = Some(token);
    }
    Ok(())
}
