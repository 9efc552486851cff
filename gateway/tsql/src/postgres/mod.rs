//! PostgreSQL's SQL as trees, and their text.

mod late;
mod tree;
mod write;

pub use late::late;
pub use tree::{
    call, Alias, Body, Call, Change, ChangeKind, Create, Filling, Grouping, Listed, Lock, Mark, MergeAction,
    MergeClause, Operator, Order, Over, Query, Scalar, Select, Source, Statement, With,
};
pub use write::{Joined, Rest};
