//! How a column of a result is described: its name and, if it is not a table's column, its type.

use crate::facts::types::Type;

/// The heading of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    /// As the query writes it; "" for a column without a name.
    pub text: String,
    /// The name is that of a table's column, which is sent as it was declared.
    pub is_own: bool,
    /// The type of an expression, where it is known.
    pub result_type: Option<ResultType>,
    /// A text there may have any characters, whatever its type is.
    pub is_wide: bool,
}

/// The type of an expression as T-SQL has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultType {
    pub of: Type,
    /// It is never null.
    pub not_null: bool,
}

impl ResultType {
    /// The same of a text of any characters.
    pub fn widened(self) -> ResultType {
        let twin = self.of.twin || self.of.is_text();
        ResultType { of: Type { twin, ..self.of }, ..self }
    }
}

/// An item of the outermost list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// `*` or `t.*`
    Star,
    /// Its type, where it is known.
    Value(Option<ResultType>),
}

impl Title {
    /// A name that the query gives.
    pub fn given(text: impl Into<String>) -> Title {
        Title { text: text.into(), is_own: false, result_type: None, is_wide: false }
    }

    /// The name of a table's column.
    pub fn own(text: impl Into<String>) -> Title {
        Title { is_own: true, ..Title::given(text) }
    }
}
