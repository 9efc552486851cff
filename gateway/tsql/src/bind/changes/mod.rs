//! Changes of rows: insert, update, delete, merge, and those of texts by their pointers.

pub(super) mod change;
pub(super) mod current;
pub(super) mod insert;
pub(super) mod merge;
mod output;
pub(super) mod pointers;
pub(super) mod targets;
mod through;
