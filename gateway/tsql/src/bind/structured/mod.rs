//! Rows as JSON and XML, and JSON as rows.

pub(super) mod json;
pub(super) mod json_property;
pub(super) mod json_rows;
pub(super) mod xml;
