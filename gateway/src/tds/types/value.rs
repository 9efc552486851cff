//! Values without a wire format, and the errors of their conversion.

use super::info::TypeInfo;
use std::borrow::Cow;

/// The reasons why a value does not fit, as legacy error numbers distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Out of the target's range (8115, 220).
    Overflow,
    /// Longer than the target (8152).
    Truncation,
    /// Not in a form that can be converted to the target (8114).
    Conversion,
    /// NaN or an infinity for a type of exact numbers (8023).
    NoNumber,
    /// Bytes outside the client's character set, or a character that it lacks.
    Charset,
    /// An unsupported type.
    Unsupported,
}

/// A value that cannot be converted. The text names types, never the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ConvertError {
    pub kind: ErrorKind,
    pub text: String,
}

pub type Result<T> = std::result::Result<T, ConvertError>;

impl ConvertError {
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> ConvertError {
        ConvertError { kind, text: text.into() }
    }

    pub fn overflow(from: &str, to: &str) -> ConvertError {
        let of = if from == to { String::new() } else { format!(" of type {from}") };
        ConvertError::new(ErrorKind::Overflow, format!("a value{of} is out of range for {to}"))
    }

    pub fn truncation(from: &str, to: &str) -> ConvertError {
        ConvertError::new(ErrorKind::Truncation, format!("a value of type {from} is too long for {to}"))
    }

    /// `from` is a type, or a phrase such as "a text that is not a number".
    pub fn conversion(from: &str, to: &str) -> ConvertError {
        ConvertError::new(ErrorKind::Conversion, format!("cannot convert {from} to {to}"))
    }

    pub fn charset(text: impl Into<String>) -> ConvertError {
        ConvertError::new(ErrorKind::Charset, text)
    }

    pub fn unsupported(what: &str) -> ConvertError {
        ConvertError::new(ErrorKind::Unsupported, format!("{what} is not supported"))
    }
}

/// A number of up to 38 digits: `magnitude` / 10^`scale`, `scale` at most 38.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    pub negative: bool,
    pub magnitude: u128,
    pub scale: u8,
}

/// A value of a sql_variant, with its base type.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant<'a> {
    /// One of the types that a sql_variant can hold, in its form without NULL.
    pub of: TypeInfo,
    pub value: Value<'a>,
}

/// One decoded value, independent of the wire.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Bit(bool),
    Int(i64),
    Real(f32),
    Float(f64),
    Decimal(Decimal),
    /// In 1/10000 of the currency unit.
    Money(i64),
    Text(Cow<'a, str>),
    Binary(Cow<'a, [u8]>),
    /// Days since 2000-01-01.
    Date(i32),
    /// Microseconds since midnight, 0 ..= 86,400,000,000 (24:00:00, which PostgreSQL allows).
    Time(i64),
    /// Microseconds since 2000-01-01 00:00 of a clock without a zone.
    DateTime(i64),
    /// An instant in microseconds since 2000-01-01 00:00 UTC, and its offset.
    DateTimeOffset {
        utc: i64,
        offset_minutes: i16,
    },
    /// In the byte order of RFC 4122.
    Guid([u8; 16]),
    /// A SSVARIANT, which contains its type.
    Variant(Box<Variant<'a>>),
}

impl Value<'_> {
    /// The bytes of a text or of binary data; 0 for values without memory of their own.
    pub fn length(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Binary(bytes) => bytes.len(),
            Value::Variant(variant) => variant.value.length(),
            _ => 0,
        }
    }

    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Bit(_) => "bit",
            Value::Int(_) => "integer",
            Value::Real(_) => "real",
            Value::Float(_) => "float",
            Value::Decimal(_) => "decimal",
            Value::Money(_) => "money",
            Value::Text(_) => "text",
            Value::Binary(_) => "binary",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::DateTime(_) => "datetime",
            Value::DateTimeOffset { .. } => "datetimeoffset",
            Value::Guid(_) => "uniqueidentifier",
            Value::Variant(_) => "sql_variant",
        }
    }

    /// The same value owning its bytes.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Binary(bytes) => Value::Binary(Cow::Owned(bytes.into_owned())),
            Value::Null => Value::Null,
            Value::Bit(v) => Value::Bit(v),
            Value::Int(v) => Value::Int(v),
            Value::Real(v) => Value::Real(v),
            Value::Float(v) => Value::Float(v),
            Value::Decimal(v) => Value::Decimal(v),
            Value::Money(v) => Value::Money(v),
            Value::Date(v) => Value::Date(v),
            Value::Time(v) => Value::Time(v),
            Value::DateTime(v) => Value::DateTime(v),
            Value::DateTimeOffset { utc, offset_minutes } => Value::DateTimeOffset { utc, offset_minutes },
            Value::Guid(v) => Value::Guid(v),
            Value::Variant(variant) => Value::Variant(Box::new(variant.into_owned())),
        }
    }
}
