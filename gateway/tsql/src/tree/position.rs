//! The position of a part of a tree in its text.

use std::ops::Range;

/// The line and the range of bytes of a part. Positions do not affect the meaning of a tree: all are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    /// From 1.
    pub line: u32,
    pub start: u32,
    pub end: u32,
}

impl Position {
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From the start of `self` to the end of `last`.
    pub fn to(self, last: Position) -> Position {
        Position { end: last.end, ..self }
    }
}

impl PartialEq for Position {
    fn eq(&self, _: &Position) -> bool {
        true
    }
}

impl Eq for Position {}

impl From<Position> for u32 {
    fn from(position: Position) -> u32 {
        position.line
    }
}

/// The number of a token of its kind in the text, from 0. All are equal, like positions.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenNumber(pub u32);

impl PartialEq for TokenNumber {
    fn eq(&self, _: &TokenNumber) -> bool {
        true
    }
}

impl Eq for TokenNumber {}
