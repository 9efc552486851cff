//! The columns that a change fills.

use crate::resolve::names::quoted_list;
use crate::tree::Expression;

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

/// Columns that an insert or update fills, and their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledBy {
    /// A query of these columns without rows.
    pub columns: String,
    /// The placeholder that is the whole value of each column.
    pub placeholders: Vec<Option<String>>,
}

impl FilledBy {
    /// None if no placeholder fills one of the columns. `columns`: names in PostgreSQL, None for all of the table.
    pub fn new<'a>(
        table: &str,
        columns: Option<&[String]>,
        values: impl Iterator<Item = &'a Expression>,
    ) -> Option<FilledBy> {
        let placeholder = |value: &Expression| match value {
            Expression::Variable(variable) if variable.is_placeholder() => Some(variable.name.clone()),
            _ => None,
        };
        let placeholders: Vec<_> = values.map(placeholder).collect();
        let listed = columns.map_or_else(|| String::from("*"), quoted_list);
        let columns = format!("select {listed} from {table} where false");
        placeholders.iter().any(Option::is_some).then_some(FilledBy { columns, placeholders })
    }
}
