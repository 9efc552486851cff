//! What a column of a result is told as: its name and, where it is no column of a table, its type.

use crate::facts::types::Type;

/// The heading of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    /// As the query writes it; "" for a column without a name.
    pub text: String,
    /// The name is that of the table's column: shown is what was declared.
    pub is_own: bool,
    /// Of an expression whose type is known.
    pub told: Option<Told>,
}

/// The type of an expression as T-SQL has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub of: Type,
    /// It is never null.
    pub not_null: bool,
}

impl Title {
    /// A name that the query gives.
    pub fn given(text: impl Into<String>) -> Title {
        Title { text: text.into(), is_own: false, told: None }
    }

    /// The name of a table's column.
    pub fn own(text: impl Into<String>) -> Title {
        Title { is_own: true, ..Title::given(text) }
    }
}
