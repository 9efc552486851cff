//! The PostgreSQL type that holds a client's variable or parameter exactly.

use super::Value;
use crate::tds::types::{TypeInfo, TypeToken};
use tsql::facts::types::{self, DATETIMEOFFSET_OID, SQL_VARIANT_OID};

/// A PostgreSQL type with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlType {
    /// The type's oid in PostgreSQL (pg_type.oid).
    pub oid: u32,
    /// The modifier as in RowDescription, -1 for none.
    pub typmod: i32,
}

impl SqlType {
    pub const BOOL: SqlType = SqlType::of(16);
    pub const BYTEA: SqlType = SqlType::of(17);
    pub const INT8: SqlType = SqlType::of(20);
    pub const INT2: SqlType = SqlType::of(21);
    pub const INT4: SqlType = SqlType::of(23);
    pub const TEXT: SqlType = SqlType::of(25);
    pub const XML: SqlType = SqlType::of(142);
    pub const FLOAT4: SqlType = SqlType::of(700);
    pub const FLOAT8: SqlType = SqlType::of(701);
    pub const DATE: SqlType = SqlType::of(1082);
    pub const TIME: SqlType = SqlType::of(1083);
    pub const TIMESTAMP: SqlType = SqlType::of(1114);
    pub const DATETIMEOFFSET: SqlType = SqlType::of(DATETIMEOFFSET_OID);
    pub const SQL_VARIANT: SqlType = SqlType::of(SQL_VARIANT_OID);
    pub const NUMERIC: SqlType = SqlType::of(1700);
    pub const UUID: SqlType = SqlType::of(2950);

    /// The type that contains all values of this kind.
    pub fn of_value(value: &Value<'_>) -> SqlType {
        match value {
            Value::Null | Value::Text(_) => SqlType::TEXT,
            Value::Bit(_) => SqlType::BOOL,
            Value::Int(_) => SqlType::INT8,
            Value::Real(_) => SqlType::FLOAT4,
            Value::Float(_) => SqlType::FLOAT8,
            Value::Decimal(_) | Value::Money(_) => SqlType::NUMERIC,
            Value::Binary(_) => SqlType::BYTEA,
            Value::Date(_) => SqlType::DATE,
            Value::Time(_) => SqlType::TIME,
            Value::DateTime(_) => SqlType::TIMESTAMP,
            Value::DateTimeOffset { .. } => SqlType::DATETIMEOFFSET,
            Value::Guid(_) => SqlType::UUID,
            Value::Variant(_) => SqlType::SQL_VARIANT,
        }
    }

    /// The gateway's type for a type of schema tsql that is not a domain.
    pub fn of_own(name: &str) -> Option<SqlType> {
        Some(match name {
            "datetimeoffset" => SqlType::DATETIMEOFFSET,
            "sql_variant" => SqlType::SQL_VARIANT,
            // values have no collation
            "ci_varchar" => SqlType::varchar(None),
            "ci_char" => SqlType::char(None),
            _ => return None,
        })
    }

    /// The name of a type of schema tsql that is not a domain.
    pub fn own_name(self) -> Option<&'static str> {
        match self {
            SqlType::DATETIMEOFFSET => Some("datetimeoffset"),
            SqlType::SQL_VARIANT => Some("sql_variant"),
            _ => None,
        }
    }

    pub const fn of(oid: u32) -> SqlType {
        SqlType { oid, typmod: -1 }
    }

    /// char(n), padded.
    pub fn char(length: Option<u32>) -> SqlType {
        SqlType { oid: 1042, typmod: of_length(length) }
    }

    pub fn varchar(length: Option<u32>) -> SqlType {
        SqlType { oid: 1043, typmod: of_length(length) }
    }

    /// A numeric with this precision and scale (numeric.c, make_numeric_typmod).
    pub fn numeric(precision: u8, scale: u8) -> SqlType {
        SqlType { typmod: ((i32::from(precision) << 16) | i32::from(scale)) + 4, ..SqlType::NUMERIC }
    }

    /// A type of schema tsql, whose oid differs between databases: its values are sent as texts.
    pub fn is_composite(self) -> bool {
        matches!(self, SqlType::DATETIMEOFFSET | SqlType::SQL_VARIANT)
    }

    /// Texts: PostgreSQL infers the type of such a value from its position in a query.
    pub fn is_characters(self) -> bool {
        matches!(self.oid, 25 | 1042 | 1043)
    }

    /// The type of T-SQL that such values have; a text may have any characters.
    pub fn in_tsql(&self) -> types::Type {
        types::Type { kept: self.is_characters(), ..types::of_oid(self.oid, self.typmod) }
    }

    /// Precision and scale of a numeric that declares them.
    pub fn digits(self) -> Option<(u8, u8)> {
        let packed = self.typmod.checked_sub(4).filter(|packed| self.oid == 1700 && *packed >= 0)?;
        Some(((packed >> 16) as u8, (packed & 0xFF) as u8))
    }

    /// The type of a value of this wire type, unless the client declares another.
    pub fn of_wire(t: &TypeInfo) -> SqlType {
        use TypeToken::*;
        match t.token {
            Bit | BitN => SqlType::BOOL,
            Int1 | SInt1 | UInt1 | Int2 => SqlType::INT2,
            UInt2 | Int4 => SqlType::INT4,
            UInt4 | Int8 => SqlType::INT8,
            UInt8 => SqlType::numeric(20, 0),
            IntN => match t.size {
                1 | 2 => SqlType::INT2,
                4 => SqlType::INT4,
                _ => SqlType::INT8,
            },
            UIntN => match t.size {
                1 => SqlType::INT2,
                2 => SqlType::INT4,
                4 => SqlType::INT8,
                _ => SqlType::numeric(20, 0),
            },
            Real => SqlType::FLOAT4,
            FloatN if t.size == 4 => SqlType::FLOAT4,
            Float | FloatN => SqlType::FLOAT8,
            Decimal | Numeric => SqlType::numeric(t.precision, t.scale),
            SmallMoney | Money | MoneyN => SqlType::numeric(19, 4),
            Guid => SqlType::UUID,
            LongBinary | BlobBinary if t.is_unichar() => SqlType::TEXT,
            Binary | VarBinary | LongBinary | BigBinary | BigVarBinary | Image | BlobBinary => SqlType::BYTEA,
            SmallDateTime | DateTime | DateTimeN | BigDateTimeN | DateTime2N => SqlType::TIMESTAMP,
            SybDate | SybDateN | DateN => SqlType::DATE,
            SybTime | SybTimeN | BigTimeN | TimeN => SqlType::TIME,
            DateTimeOffset => SqlType::DATETIMEOFFSET,
            Xml => SqlType::XML,
            Char | VarChar | LongChar | BigChar | BigVarChar | NChar | NVarChar | Text | NText | UniText
            | BlobText | BlobUniText | Null | Udt => SqlType::TEXT,
            Variant => SqlType::SQL_VARIANT,
        }
    }
}

fn of_length(length: Option<u32>) -> i32 {
    length.and_then(|length| i32::try_from(length).ok()).map_or(-1, |length| length.saturating_add(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_types_have_a_type_in_postgresql() {
        let of = |token, size| SqlType::of_wire(&TypeInfo::new(token, size)).oid;
        assert_eq!(of(TypeToken::IntN, 1), SqlType::INT2.oid);
        assert_eq!(of(TypeToken::UIntN, 4), SqlType::INT8.oid);
        assert_eq!(of(TypeToken::FloatN, 4), SqlType::FLOAT4.oid);
        let unichar = TypeInfo::new(TypeToken::LongBinary, 20).with_user_type(35);
        assert_eq!(SqlType::of_wire(&unichar), SqlType::TEXT);
        let decimal = TypeInfo::new(TypeToken::Decimal, 17).with_scale(20, 4);
        assert_eq!(SqlType::of_wire(&decimal).digits(), Some((20, 4)));
    }
}
