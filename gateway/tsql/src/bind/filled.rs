//! The columns that a change fills.

/// A table and those of its columns that take values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Its name in SQL.
    pub table: String,
    /// Names in PostgreSQL; None: all columns, or those that a definition leaves.
    pub columns: Option<Vec<String>>,
    /// Identity columns take values too.
    pub with_identity: bool,
}
