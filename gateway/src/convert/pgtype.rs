//! The PostgreSQL types with their own conversions.

use tsql::facts::types::{DATETIMEOFFSET_OID, SQL_VARIANT_OID};

/// A PostgreSQL type, resolved from its oid (src/include/catalog/pg_type.dat). A domain is resolved by
/// the caller to its base type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PgType {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Text,
    Varchar,
    Bpchar,
    Name,
    /// `"char"`, one byte.
    Char,
    Bytea,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    /// tsql.datetimeoffset, a composite type.
    DateTimeOffset,
    /// tsql.sql_variant, a composite type.
    SqlVariant,
    Uuid,
    Json,
    Jsonb,
    Xml,
    /// A waveform.
    Array(Element),
    /// The result of a function that returns nothing.
    Void,
    /// All other types, in PostgreSQL's text format.
    Other(u32),
}

impl PgType {
    pub fn from_oid(oid: u32) -> PgType {
        match oid {
            16 => PgType::Bool,
            17 => PgType::Bytea,
            18 => PgType::Char,
            19 => PgType::Name,
            20 => PgType::Int8,
            21 => PgType::Int2,
            23 => PgType::Int4,
            25 => PgType::Text,
            26 => PgType::Oid,
            114 => PgType::Json,
            142 => PgType::Xml,
            700 => PgType::Float4,
            701 => PgType::Float8,
            1042 => PgType::Bpchar,
            1043 => PgType::Varchar,
            1082 => PgType::Date,
            1083 => PgType::Time,
            1114 => PgType::Timestamp,
            1184 => PgType::TimestampTz,
            1700 => PgType::Numeric,
            DATETIMEOFFSET_OID => PgType::DateTimeOffset,
            SQL_VARIANT_OID => PgType::SqlVariant,
            2278 => PgType::Void,
            2950 => PgType::Uuid,
            3802 => PgType::Jsonb,
            other => Element::of_array(other).map_or(PgType::Other(other), PgType::Array),
        }
    }

    /// Values of this type are sent in PostgreSQL's text format (format code 0): [`super::to_pg`] writes text, and
    /// [`super::from_pg`] reads it.
    pub fn wants_text(self) -> bool {
        matches!(self, PgType::Other(_))
    }

    /// The types that hold T-SQL's texts.
    pub fn is_text(self) -> bool {
        matches!(self, PgType::Text | PgType::Varchar | PgType::Bpchar)
    }

    /// The type's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            PgType::Bool => "boolean",
            PgType::Int2 => "smallint",
            PgType::Int4 => "integer",
            PgType::Int8 => "bigint",
            PgType::Oid => "oid",
            PgType::Float4 => "real",
            PgType::Float8 => "double precision",
            PgType::Numeric => "numeric",
            PgType::Text => "text",
            PgType::Varchar => "character varying",
            PgType::Bpchar => "character",
            PgType::Name => "name",
            PgType::Char => "\"char\"",
            PgType::Bytea => "bytea",
            PgType::Date => "date",
            PgType::Time => "time",
            PgType::Timestamp => "timestamp",
            PgType::TimestampTz => "timestamp with time zone",
            PgType::DateTimeOffset => "datetimeoffset",
            PgType::SqlVariant => "sql_variant",
            PgType::Uuid => "uuid",
            PgType::Json => "json",
            PgType::Jsonb => "jsonb",
            PgType::Xml => "xml",
            PgType::Array(element) => element.name(),
            PgType::Void => "void",
            PgType::Other(_) => "a type of PostgreSQL",
        }
    }
}

/// The type of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
}

impl Element {
    /// By the oid of the array type.
    pub fn of_array(oid: u32) -> Option<Element> {
        Some(match oid {
            1000 => Element::Bool,
            1005 => Element::Int2,
            1007 => Element::Int4,
            1016 => Element::Int8,
            1021 => Element::Float4,
            1022 => Element::Float8,
            _ => return None,
        })
    }

    pub fn pg_type(self) -> PgType {
        match self {
            Element::Bool => PgType::Bool,
            Element::Int2 => PgType::Int2,
            Element::Int4 => PgType::Int4,
            Element::Int8 => PgType::Int8,
            Element::Float4 => PgType::Float4,
            Element::Float8 => PgType::Float8,
        }
    }

    pub fn oid(self) -> u32 {
        match self {
            Element::Bool => 16,
            Element::Int2 => 21,
            Element::Int4 => 23,
            Element::Int8 => 20,
            Element::Float4 => 700,
            Element::Float8 => 701,
        }
    }

    /// Bytes of an element.
    pub fn width(self) -> usize {
        match self {
            Element::Bool => 1,
            Element::Int2 => 2,
            Element::Int4 | Element::Float4 => 4,
            Element::Int8 | Element::Float8 => 8,
        }
    }

    /// The array's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Element::Bool => "boolean[]",
            Element::Int2 => "smallint[]",
            Element::Int4 => "integer[]",
            Element::Int8 => "bigint[]",
            Element::Float4 => "real[]",
            Element::Float8 => "double precision[]",
        }
    }
}
