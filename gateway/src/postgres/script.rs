//! The script of a scripted PostgreSQL: answers by the statements that they belong to.

use std::collections::VecDeque;

/// A value; its column has the type.
#[derive(Clone, Copy, Debug)]
pub enum Cell {
    Bool(bool),
    Int(i32),
    Text(&'static str),
}

/// The outcome of a statement.
#[derive(Clone, Debug)]
pub enum Answer {
    Rows(Vec<Vec<Cell>>),
    /// The tag of a command without rows.
    Done(&'static str),
    /// SQLSTATE and text of an error at execution, or at preparation.
    Fails(&'static str, &'static str),
    Refused(&'static str, &'static str),
    /// It runs until it is cancelled.
    Hangs,
    /// The connection ends.
    Dies,
}

/// The answers to statements, each by a part of the statement's text, under which the server records it. The last
/// answer of each is repeated.
#[derive(Clone, Default)]
pub struct Script(pub(super) Vec<(&'static str, VecDeque<Answer>)>);

impl Script {
    pub fn on(mut self, part: &'static str, answers: impl IntoIterator<Item = Answer>) -> Script {
        self.0.push((part, answers.into_iter().collect()));
        self
    }
}

/// Rows of one column.
pub fn rows(values: impl IntoIterator<Item = i32>) -> Answer {
    Answer::Rows(values.into_iter().map(|value| vec![Cell::Int(value)]).collect())
}

/// One row.
pub fn row(values: impl IntoIterator<Item = Cell>) -> Answer {
    Answer::Rows(vec![values.into_iter().collect()])
}

/// Successive answers to a condition.
pub fn holds<const N: usize>(answers: [bool; N]) -> [Answer; N] {
    answers.map(|is_true| row([Cell::Bool(is_true)]))
}

/// A change of one row.
pub fn inserted() -> [Answer; 1] {
    [Answer::Done("INSERT 0 1")]
}
