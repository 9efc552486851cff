//! Statements about the session.

use crate::error::Error;
use crate::program::InsertBulk;
use crate::resolve::names::{folded, table};
use crate::tree::{self, SetWord};

/// The words of SET; a variable stands by its name with @.
pub fn words(words: &[SetWord]) -> Vec<String> {
    let word = |word: &SetWord| match word {
        SetWord::Word(word) => word.clone(),
        SetWord::Variable(variable) => variable.name.clone(),
    };
    words.iter().map(word).collect()
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
