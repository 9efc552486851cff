//! How a column of a result is described: its name and, if it is not a table's column, its type.

use crate::facts::types::Type;

/// The heading of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    /// As the query writes it; "" for a column without a name.
    pub text: String,
    /// The name is that of a table's column, which is sent as it was declared.
    pub is_own: bool,
    /// The type of an expression, if known.
    pub result_type: Option<ResultType>,
    /// A text may contain any character, whatever its type.
    pub is_wide: bool,
}

/// The T-SQL type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultType {
    pub of: Type,
    /// It is never null.
    pub not_null: bool,
}

/// An item of the outermost list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// `*` or `t.*`
    Star,
    /// Its type, if known.
    Value(Option<ResultType>),
}

impl Title {
    /// A name specified by the query.
    pub fn given(text: impl Into<String>) -> Title {
        Title { text: text.into(), is_own: false, result_type: None, is_wide: false }
    }

    /// The name of a table's column.
    pub fn own(text: impl Into<String>) -> Title {
        Title { is_own: true, ..Title::given(text) }
    }
}
