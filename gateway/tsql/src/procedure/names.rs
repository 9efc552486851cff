//! The names in the text of a procedure: its variables, and those that have a meaning in PL/pgSQL.

use super::variable::{SCOPE_IDENTITY, TRANCOUNT};
use crate::error::Error;
use crate::lexer::{self, Token, TokenKind};
use crate::resolve::names::stored;
use std::collections::HashSet;

/// Refuses names that PL/pgSQL could confuse with its own variables if no column has them. `tokens`: the body of a
/// procedure.
fn check(tokens: &[Token<'_>], procedure: &str) -> Result<(), Error> {
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

/// The variables that the text of a procedure names. Refuses names that PL/pgSQL would confuse with its own.
pub fn read_names(text: &str, procedure: &str) -> Result<HashSet<String>, Error> {
    let tokens = lexer::read(text)?;
    // the name of the procedure itself may be qualified by its schema
    let body = tokens.iter().position(|token| token.is("as")).map_or(0, |at| at + 1);
    check(&tokens[body..], procedure)?;
    if let Some(token) = tokens.iter().find(|token| token.is_global()) {
        // before each statement the gateway checks whether its session has ended
        return Err(Error::refused(&token.value, "PostgreSQL cannot tell whether it has ended", token.at));
    }
    let variables = tokens.iter().filter(|token| token.kind == TokenKind::Variable);
    let mut names: HashSet<String> = variables.map(|token| token.value.to_lowercase()).collect();
    for (function, variable) in [("scope_identity", SCOPE_IDENTITY), ("xact_state", TRANCOUNT)] {
        if tokens.iter().any(|token| token.is(function)) {
            names.insert(variable.to_owned());
        }
    }
    Ok(names)
}

/// A function of the user named in the text.
pub fn asks_for_user(text: &str) -> Result<Option<String>, Error> {
    const OF_USER: [&str; 12] = [
        "current_user",
        "has_perms_by_name",
        "is_member",
        "is_srvrolemember",
        "session_user",
        "suser_id",
        "suser_name",
        "suser_sname",
        "system_user",
        "user",
        "user_id",
        "user_name",
    ];
    let tokens = lexer::read(text)?;
    Ok(tokens.iter().find(|token| token.is_any(&OF_USER)).map(|token| token.value.to_lowercase()))
}
