//! Between decoded TDS values and PostgreSQL's own formats.
//!
//! A parameter goes [`Value`] → [`to_pg`] in the type that the procedure declares; a result goes
//! [`from_pg`] → [`Value`] → the type that [`column_type`] announced. Both are exact or refused: nothing is
//! rounded but floats to their own precision, and times to what the type counts in.
//!
//! Types without a binary form here go as text in both directions ([`PgType::wants_text`]).

mod announcing;
mod calendar;
mod numeric;
mod pgtype;
mod reading;
mod sqltype;
mod writing;
mod zone;

#[cfg(test)]
mod properties;

pub use crate::tds::types::{ConvertError, ErrorKind, Value};
pub use announcing::{column_type, longer_type, output_type};
pub use pgtype::PgType;
pub use reading::from_pg;
pub use sqltype::{cast, SqlType};
pub use writing::to_pg;
pub use zone::Zone;
