//! SET in a procedure.

use crate::error::Error;
use crate::facts::session::{holds, is_beside_results};
use crate::postgres::Scalar;
use crate::procedure::run;
use crate::procedure::variable::{NOCOUNT_SETTING, SILENTLY};
use crate::procedure::writer::BodyWriter;
use crate::tree::{self, nulls_equal, set_words, SetWord, Statement, StatementKind as Tree};

/// Options that repeat the defaults of a session.
const AT_FIRST: &[&[&str]] = &[
    &["ansi_padding", "on"],
    &["chained", "off"],
    &["implicit_transactions", "off"],
    &["quoted_identifier", "on"],
    &["rowcount", "0"],
    &["transaction", "isolation", "level", "read", "committed"],
    &["transaction", "isolation", "level", "1"],
];

pub(super) fn option(writer: &mut BodyWriter<'_>, set: &[SetWord], line: u32) -> Result<(), Error> {
    let words = set_words(set);
    let nulls_stay = words.len() == 2 && nulls_equal(&words) == Some(writer.scope.nulls_equal);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["nocount", ..] | ["xact_abort", ..] if writer.depth > 1 => {
            let why = "it must be on the procedure's own level";
            return Err(Error::refused(&format!("set {}", words[0]), why, line));
        }
        // the gateway refuses another value when it runs
        ["nocount", value @ ("on" | "off")] => {
            writer.sends_counts = *value != "on";
            writer.sets_nocount = true;
            writer.set(NOCOUNT_SETTING, Scalar::text(if writer.sends_counts { "" } else { SILENTLY }));
        }
        ["xact_abort", "on" | "off"] => {}
        _ if nulls_stay => {}
        words if AT_FIRST.contains(&words) || holds(words) => {}
        words if is_beside_results(words, writer.scope.dialect) => {}
        words => {
            let why = "it would hold in the procedure only";
            return Err(Error::refused(&format!("set {}", words.join(" ")), why, line));
        }
    }
    run::none(writer);
    Ok(())
}

/// The value of XACT_ABORT that the body sets, if any.
pub(in crate::procedure) fn xact_abort(body: &[Statement]) -> Option<bool> {
    tree::every(body).find_map(|statement| match &statement.kind {
        Tree::Set(words) => match &set_words(words)[..] {
            [name, rest @ ..] if name == "xact_abort" => Some(rest != ["off"]),
            _ => None,
        },
        _ => None,
    })
}
