//! A row of a bulk copy.

use super::types::TypeInfo;
use std::borrow::Cow;

/// A column as the client sends it.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub type_info: TypeInfo,
}

/// The values of one row in wire form, None for NULL.
pub type Row<'a> = Vec<Option<Cow<'a, [u8]>>>;
