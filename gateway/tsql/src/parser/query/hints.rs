//! OPTION of a query.

use crate::error::Error;
use crate::lexer::TokenKind;
use crate::parser::Parser;
use crate::tree::Position;

/// Hints of OPTION that only affect the plan, and whether a number follows.
const PLAN_HINTS: [(&str, bool); 19] = [
    ("concat union", false),
    ("expand views", false),
    ("fast", true),
    ("force order", false),
    ("hash group", false),
    ("hash join", false),
    ("hash union", false),
    ("ignore_nonclustered_columnstore_index", false),
    ("keep plan", false),
    ("keepfixed plan", false),
    ("loop join", false),
    ("maxdop", true),
    ("merge join", false),
    ("merge union", false),
    ("no_performance_spool", false),
    ("optimize for unknown", false),
    ("order group", false),
    ("recompile", false),
    ("robust plan", false),
];

/// `option (hint, …)`: planning hints are ignored, as PostgreSQL plans. A hint that would change the result is
/// refused, except maxrecursion, whose number is returned.
pub(in crate::parser) fn plan_hints(parser: &mut Parser<'_>) -> Result<Option<u16>, Error> {
    let mut max_recursion = None;
    if !parser.word("option") {
        return Ok(max_recursion);
    }
    parser.expect_symbol("(")?;
    loop {
        let at = parser.position();
        if parser.words(&["use", "hint"]) {
            parser.in_parentheses(named_hint)?;
            if parser.symbol(")") {
                return Ok(max_recursion);
            }
            parser.expect_symbol(",")?;
            continue;
        }
        let hint: Vec<&str> = std::iter::from_fn(|| {
            let token = parser.peek().filter(|token| !token.is_symbol(",") && !token.is_symbol(")"))?;
            parser.at += 1;
            Some(&*token.value)
        })
        .collect();
        let hint = hint.join(" ").to_lowercase();
        if let Some(number) = hint.strip_prefix("maxrecursion ") {
            max_recursion = Some(recursions(number, at)?);
        }
        let is_known = max_recursion.is_some() && hint.starts_with("maxrecursion ")
            || PLAN_HINTS.iter().any(|(first, counts)| match hint.strip_prefix(first) {
                Some("") => !counts,
                Some(number) => *counts && number.trim_start().parse::<u32>().is_ok(),
                None => false,
            });
        if !is_known {
            return Err(Error::refused(&format!("option ({hint})"), "PostgreSQL plans by itself", at));
        }
        if parser.symbol(")") {
            return Ok(max_recursion);
        }
        parser.expect_symbol(",")?;
    }
}

/// A name of `use hint ('name', …)`: those of sys.dm_exec_valid_use_hints, all of which only affect the plan.
fn named_hint(parser: &mut Parser<'_>) -> Result<(), Error> {
    const BEGINNINGS: [&str; 11] = [
        "ABORT_QUERY_EXECUTION",
        "ALLOW_",
        "ASSUME_",
        "DISABLE_",
        "DISALLOW_",
        "ENABLE_",
        "FORCE_DEFAULT_CARDINALITY_ESTIMATION",
        "FORCE_LEGACY_CARDINALITY_ESTIMATION",
        "OPTIMIZED_",
        "QUERY_OPTIMIZER_COMPATIBILITY_LEVEL_",
        "QUERY_PLAN_PROFILE",
    ];
    let token = parser.advance()?;
    let name = token.value.to_uppercase();
    match token.kind {
        TokenKind::Text { .. } if BEGINNINGS.iter().any(|known| name.starts_with(known)) => Ok(()),
        TokenKind::Text { .. } => {
            Err(Error::new(10715, format!("'{}' is not a valid hint.", token.value), token.at))
        }
        _ => Err(parser.wrong_before()),
    }
}

/// The number of `option (maxrecursion n)`.
fn recursions(number: &str, at: Position) -> Result<u16, Error> {
    const MOST: u32 = 32_767;
    match number.parse::<u32>() {
        Ok(number) if number <= MOST => Ok(number as u16),
        Ok(number) => {
            let text = format!(
                "The value {number} specified for the MAXRECURSION option exceeds the allowed maximum of {MOST}."
            );
            Err(Error::new(310, text, at).with_severity(15))
        }
        Err(_) => Err(Error::refused(&format!("option (maxrecursion {number})"), "it takes a number", at)),
    }
}
