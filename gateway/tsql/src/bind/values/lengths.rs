//! The lengths of texts and binaries.

use super::Value;
use crate::facts::types::{Family, Type, LONGEST_VARCHAR};

/// The most characters of a text that is national, or not.
pub fn longest(national: bool) -> u32 {
    if national {
        LONGEST_VARCHAR / 2
    } else {
        LONGEST_VARCHAR
    }
}

/// A length that a type can have.
pub fn bounded(length: u64, national: bool) -> u32 {
    length.clamp(1, longest(national).into()) as u32
}

/// The most characters of a value as a text; None: any number, or its type is not known.
pub fn of_text(value: &Value) -> Option<u32> {
    if value.is_null() || value.text() == Some("") {
        return Some(0);
    }
    let of = value.of;
    Some(match of.family {
        Family::Text if of.is_large() => longest(of.is_national()),
        Family::Text | Family::Binary => return of.length,
        Family::Bit => 1,
        Family::Integer => match of.name {
            "tinyint" => 4,
            "smallint" => 6,
            "int" => 12,
            _ => 24,
        },
        Family::Float => 23,
        Family::Decimal => 41,
        Family::Money | Family::Guid | Family::Time | Family::Date | Family::DateTime => 40,
        Family::Xml | Family::Variant | Family::Postgres => return None,
    })
}

/// A varchar(max), nvarchar(max) or varbinary(max), whose lengths and positions are bigints.
pub fn is_endless(of: Type) -> bool {
    matches!(of.name, "varchar" | "varbinary") && of.length.is_none()
}
