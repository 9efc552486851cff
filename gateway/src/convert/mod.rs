//! Conversion between decoded TDS values and PostgreSQL's own formats.
//!
//! A parameter is converted [`Value`] → [`to_pg`] to the type that the procedure declares; a result [`from_pg`] →
//! [`Value`] → the type of [`column_type`]. Both are exact or refused: only floats are rounded, to their own precision,
//! and times, to the resolution of their type.
//!
//! Types without a binary form here are sent as text in both directions ([`PgType::wants_text`]).

mod announcing;
mod arrays;
mod calendar;
mod capacity;
pub mod declared;
mod from_postgres;
mod numeric;
mod offsets;
mod pgtype;
mod sqltype;
mod text_arrays;
mod to_postgres;
mod variants;
mod zone;

#[cfg(test)]
mod properties;

pub use crate::tds::types::{ConvertError, ErrorKind, Value};
pub use announcing::{column_type, longer_type, output_type};
pub use arrays::{set_big_endian, Packed};
pub use capacity::Capacity;
pub use declared::{client_type, Declaration, Pointer};
pub use from_postgres::{cast, from_pg};
pub use pgtype::{Element, PgType};
pub use sqltype::SqlType;
pub use text_arrays::{put_text_array, text_element};
pub use to_postgres::{copied, repeated, to_pg};
pub use variants::{sent as sent_variant, type_of_wire, wire_of_type};
pub use zone::Zone;
