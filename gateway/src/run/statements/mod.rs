//! Statements of T-SQL, a file for each kind: queries, inserts of rows that the gateway has, messages, SET, and texts
//! written by their pointers.

pub(super) mod insert_execute;
pub(super) mod insert_rows;
pub(super) mod messages;
pub(super) mod query;
pub(super) mod settings;
pub(super) mod texts;
