//! What a column of a result is called.

/// The name over a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Title {
    /// As the query names it; "" for a column without a name.
    Given(String),
    /// That of the table's column, here as the query writes it: shown is what was declared.
    Own(String),
}

impl Title {
    /// As the query writes it.
    pub fn text(&self) -> &str {
        match self {
            Title::Given(text) | Title::Own(text) => text,
        }
    }
}
