//! SET in a procedure.

use super::variable::{NOCOUNT_SETTING, SILENTLY};
use super::writer::BodyWriter;
use crate::error::Error;
use crate::facts::session::{holds, is_beside_results};
use crate::postgres::Scalar;
use crate::tree::{nulls_equal, set_words, SetWord};

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

impl BodyWriter<'_> {
    pub(super) fn option(&mut self, set: &[SetWord], line: u32) -> Result<(), Error> {
        let words = set_words(set);
        let nulls_stay = words.len() == 2 && nulls_equal(&words) == Some(self.scope.nulls_equal);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["nocount", ..] | ["xact_abort", ..] if self.depth > 1 => {
                let why = "it must be on the procedure's own level";
                return Err(Error::refused(&format!("set {}", words[0]), why, line));
            }
            ["nocount", rest @ ..] => {
                self.sends_counts = *rest != ["on"];
                self.sets_nocount = true;
                self.set(NOCOUNT_SETTING, Scalar::text(if self.sends_counts { "" } else { SILENTLY }));
            }
            ["xact_abort", ..] => {}
            _ if nulls_stay => {}
            words if AT_FIRST.contains(&words) || holds(words) => {}
            words if is_beside_results(words, self.scope.dialect) => {}
            words => {
                let why = "it would hold in the procedure only";
                return Err(Error::refused(&format!("set {}", words.join(" ")), why, line));
            }
        }
        self.none();
        Ok(())
    }
}
