//! Statements about the session.

use super::compiler::Compiler;
use crate::error::Error;
use crate::program::InsertBulk;
use crate::resolve::names::{folded, table};
use crate::tree::{self, nulls_equal, set_words, SetWord};

impl Compiler<'_> {
    /// The words of SET.
    pub(super) fn option(&mut self, words: &[SetWord], line: u32) -> Result<Vec<String>, Error> {
        let words = set_words(words);
        if let Some(nulls_equal) = nulls_equal(&words).filter(|wanted| *wanted != self.scope.nulls_equal) {
            // statements are compiled in the order in which they run only there
            let is_own_level = self.labels.iter().all(|of| of.is_empty()) && self.labels.len() == 1;
            if self.settings.procedure || !is_own_level {
                let why =
                    "it must be on a batch's own level, and procedures have the setting of their creation";
                return Err(Error::refused(&format!("set {}", words.join(" ")), why, line));
            }
            self.scope.nulls_equal = nulls_equal;
        }
        Ok(words)
    }
}

/// Where the rows of a bulk copy go. The declared types say nothing new: the rows come with their own.
pub fn insert_bulk(bulk: &tree::InsertBulk) -> Result<InsertBulk, Error> {
    let columns = bulk.columns.iter().map(|column| folded(&column.text, column.at.line));
    Ok(InsertBulk {
        table: table(&bulk.table)?,
        columns: columns.collect::<Result<_, _>>()?,
        keep_nulls: bulk.hints.iter().any(|hint| hint == "keep_nulls"),
    })
}
