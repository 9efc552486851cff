//! Statements about the session.

use super::compiler::{numbered_sql, Compiler};
use crate::bind::{self, Numbered};
use crate::error::Error;
use crate::program::{Action, InsertBulk, SentText, Sql};
use crate::resolve::names::{folded, relation};
use crate::tree::{self, nulls_equal, set_words, SetWord};

/// The arguments of SET.
pub(super) fn option(
    compiler: &mut Compiler<'_>,
    words: &[SetWord],
    line: u32,
) -> Result<Vec<String>, Error> {
    let words = set_words(words);
    if let Some(nulls_equal) = nulls_equal(&words).filter(|wanted| *wanted != compiler.scope.nulls_equal) {
        // only there are statements compiled in the order in which they run
        let is_own_level = compiler.labels.iter().all(|of| of.is_empty()) && compiler.labels.len() == 1;
        if compiler.settings.procedure || !is_own_level {
            let why = "it must be on a batch's own level, and procedures have the setting of their creation";
            return Err(Error::refused(&format!("set {}", words.join(" ")), why, line));
        }
        compiler.scope.nulls_equal = nulls_equal;
    }
    Ok(words)
}

/// Writetext and updatetext.
pub(super) fn text_change(
    compiler: &mut Compiler<'_>,
    statement: &tree::StatementKind,
    line: u32,
) -> Result<Action, Error> {
    let mut numbered = Numbered::default();
    let sql = bind::text_change(statement, &compiler.scope, &mut numbered)?;
    let sql = sql.ok_or_else(|| Error::nested_too_deeply(line))?;
    numbered.facts.calls = true;
    Ok(Action::ChangeText(numbered_sql(&sql, numbered)))
}

/// WRITETEXT with a value that follows in the next message.
pub(super) fn sent_text(
    compiler: &mut Compiler<'_>,
    text: &tree::WritetextBulk,
    line: u32,
) -> Result<Action, Error> {
    if compiler.batch.len() != 1 || compiler.settings.procedure {
        let why = "it must be the only statement of its batch: the text follows it";
        return Err(Error::refused("writetext bulk", why, line));
    }
    let (mut checking, mut writing) = (Numbered::default(), Numbered::default());
    let check = bind::check_of_text(text, &compiler.scope, &mut checking)?;
    let (column, change) = bind::change_of_text(text, &compiler.scope, &mut writing)?;
    writing.facts.calls = true;
    Ok(Action::SendText(Box::new(SentText {
        check: numbered_sql(&check, checking),
        column: Sql::plain(column),
        change: numbered_sql(&change, writing),
    })))
}

/// The target of a bulk copy. The declared types are ignored: the rows have their own.
pub fn insert_bulk(bulk: &tree::InsertBulk) -> Result<InsertBulk, Error> {
    let columns = bulk.columns.iter().map(|column| folded(&column.text, column.at.line));
    Ok(InsertBulk {
        table: relation(&bulk.table)?,
        columns: columns.collect::<Result<_, _>>()?,
        keep_nulls: bulk.hints.iter().any(|hint| hint == "keep_nulls"),
    })
}
