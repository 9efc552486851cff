//! JSON of rows, and rows of JSON.

use super::{Name, Position, TypeName};

/// `for json path | auto, root ('name'), include_null_values, without_array_wrapper`
#[derive(Clone, Debug, PartialEq)]
pub struct ForJson {
    /// Each table of FROM has its own objects.
    pub is_auto: bool,
    pub root: Option<String>,
    pub includes_nulls: bool,
    pub has_wrapper: bool,
    pub at: Position,
}

/// A column of `openjson (…) with (name type 'path' as json)`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonColumn {
    pub name: Name,
    pub type_: TypeName,
    pub path: Option<String>,
    /// It is an object or array, not a scalar.
    pub as_json: bool,
}
