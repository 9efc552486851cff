//! The rows that a change returns, as the columns of its OUTPUT name them: `inserted`, `deleted` and `$action`.

use super::Binder;
use crate::error::Error;
use crate::facts::types::{nvarchar, Type};
use crate::lexer::ACTION;
use crate::postgres::Scalar;
use crate::tree::{ColumnName, ObjectName};

/// PostgreSQL's own columns by which a row is found.
pub const LOCATION: [&str; 2] = ["tableoid", "ctid"];

/// RETURNING's names of `inserted` and `deleted`; None if a statement has no such rows.
#[derive(Clone, Debug, Default)]
pub struct ChangedRows {
    /// Their table, by its name in SQL.
    pub table: String,
    pub inserted: Option<String>,
    pub deleted: Option<String>,
    /// The name of `$action`; None likewise.
    pub action: Option<Scalar>,
}

impl ChangedRows {
    /// For an update of a table whose rows are named `inserted`.
    pub fn updated(table: String, inserted: String) -> ChangedRows {
        ChangedRows { table, inserted: Some(inserted), deleted: Some(String::from("old")), action: None }
    }
}

/// `$action` of a MERGE.
pub const TYPE_OF_ACTION: Type = nvarchar(Some(10));

/// The value of a column if it is `$action`.
pub fn action<'b>(binder: &'b Binder<'_>, column: &ColumnName) -> Option<&'b Scalar> {
    let action = binder.output.as_ref()?.action.as_ref()?;
    (column.table.is_none() && column.column.eq_ignore_ascii_case(ACTION)).then_some(action)
}

/// The table, by its name in SQL, whose rows `inserted` and `deleted` are; None for any other name.
pub fn changed_table<'b>(binder: &'b Binder<'_>, name: &ObjectName) -> Option<&'b str> {
    let rows = binder.output.as_ref().filter(|_| name.is_bare())?;
    let is_changed = ["inserted", "deleted"].iter().any(|own| name.name.eq_ignore_ascii_case(own));
    is_changed.then_some(&*rows.table)
}

/// The rows of `inserted` or `deleted`; None for any other table.
pub fn output_rows<'b>(binder: &'b Binder<'_>, name: &ObjectName) -> Result<Option<&'b str>, Error> {
    let Some(rows) = binder.output.as_ref().filter(|_| name.is_bare()) else { return Ok(None) };
    let row = if name.name.eq_ignore_ascii_case("inserted") {
        &rows.inserted
    } else if name.name.eq_ignore_ascii_case("deleted") {
        &rows.deleted
    } else {
        return Ok(None);
    };
    row.as_deref().map(Some).ok_or_else(|| {
        let text = format!("The multi-part identifier '{}' could not be bound.", name.name);
        Error::new(4104, text, name.at).with_severity(16)
    })
}
