//! Constructs that ringlog does not have, and that the parser does not know: a syntax error there names them.

use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};

/// Their words in order; `*` is any name. One that ends with a parenthesis is a call, in which the error may be.
const CONSTRUCTS: &[&[&str]] = &[
    &["as", "edge"],
    &["as", "node"],
    &["change_tracking"],
    &["changetable", "("],
    &["columnstore"],
    &["contains", "("],
    &["freetext", "("],
    &["generated", "always"],
    &["ignore", "nulls"],
    &["json_object", "("],
    &["masked"],
    &["match", "("],
    &["offsets", "select"],
    &["opendatasource", "("],
    &["openrowset", "("],
    &["over", "*"],
    &["partition", "."],
    &["regexp_like", "("],
    &["respect", "nulls"],
    &["tablesample"],
    &["with", "(", "partitions"],
    &["with", "mark"],
    &["with", "result", "sets"],
    &["{", "t"],
    &["<", "<"],
    &[">", ">"],
];

/// How many tokens a call may have before the error.
const LONGEST_CALL: usize = 12;

/// The construct at or just before the token of a syntax error, with its first token.
pub fn construct<'t>(tokens: &'t [Token<'t>], at: usize) -> Option<(String, &'t Token<'t>)> {
    let begins = |first: usize, words: &[&str]| {
        words.iter().zip(first..).all(|(word, at)| {
            let is_it = |token: &Token<'_>| match *word {
                "*" => matches!(token.kind, TokenKind::Name | TokenKind::Word(Class::Plain)),
                word => token.is(word) || token.is_symbol(word),
            };
            tokens.get(at).is_some_and(is_it)
        })
    };
    CONSTRUCTS.iter().find_map(|words| {
        let is_call = words.len() > 1 && words.ends_with(&["("]);
        let back = if is_call { LONGEST_CALL } else { words.len() };
        let first = (at.saturating_sub(back)..=at).rev().find(|first| begins(*first, words))?;
        let name = if is_call { format!("{}()", words[0]) } else { words.join(" ") };
        let name = name.replace("< <", "<<").replace("> >", ">>").replace(" *", " name").replace(" .", "");
        Some((name, tokens.get(first)?))
    })
}
