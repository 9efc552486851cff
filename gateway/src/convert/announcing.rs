//! The TDS type of a column: the narrowest type of the client's dialect that holds every value of the PostgreSQL
//! type, and NULL.

use super::pgtype::PgType;
use crate::tds::dialect::{Dialect, Version};
use crate::tds::types::{bytes_of_precision, TypeInfo, TypeToken, DEFAULT_COLLATION, LONGEST_VARIANT, MAX};

/// Precision and scale sent for a numeric column without declared digits.
const NUMERIC: (u8, u8) = (38, 18);
const LONGEST_VARCHAR: u32 = 255;
/// Characters of NVARCHAR(n); bytes of VARBINARY(n) are twice that.
const LONGEST_NVARCHAR: u32 = 4000;
/// Characters of yyyy-mm-dd hh:mm:ss.nnnnnnn +hh:mm
const LONGEST_OFFSET: u32 = 34;
const LONGEST_BLOB: u32 = i32::MAX as u32;

/// The type of a result column. `typmod` as in RowDescription, -1 for none.
///
/// * TDS 5.0 has no NULL in its BIT, and only FreeTDS knows its BITN: a boolean is sent as a TINYINT, which every
///   client reads as 0, 1 or NULL.
/// * TDS 5.0: text is TEXT, which every client of that protocol knows; only clients of ASE 12.5 and later know
///   LONGCHAR. A varchar(n) of more than 255 bytes is LONGCHAR, as in ASE.
/// * Types that a TDS 5.0 client's capabilities exclude are sent as older types: a bigint as NUMERIC(19), a date as
///   DATETIME, a time as DATETIME on 1900-01-01, LONGCHAR as TEXT.
/// * A timestamp is DATETIME2(6) from 7.3 on, BIGDATETIME at 5.0 if the client's capabilities include it, else
///   DATETIME, rounded to its 1/300 s. A time without a type in the dialect is sent as text, as is datetimeoffset below
///   7.3.
/// * A numeric without precision is NUMERIC(38, 18); a value that needs more is refused.
pub fn column_type(pg: PgType, typmod: i32, d: &Dialect) -> TypeInfo {
    use TypeToken as T;
    match pg {
        PgType::Bool if d.is_tds7() => TypeInfo::new(T::BitN, 1),
        PgType::Bool => TypeInfo::new(T::IntN, 1).with_user_type(user_type::TINYINT),
        PgType::Int2 => TypeInfo::new(T::IntN, 2).with_user_type(of_sybase(d, user_type::SMALLINT)),
        PgType::Int4 | PgType::Void => TypeInfo::new(T::IntN, 4).with_user_type(of_sybase(d, user_type::INT)),
        PgType::Int8 | PgType::Oid if !d.is_tds7() && !d.takes.int8 => digits(19, 0, d),
        PgType::Int8 | PgType::Oid => {
            TypeInfo::new(T::IntN, 8).with_user_type(of_sybase(d, user_type::BIGINT))
        }
        PgType::Float4 => TypeInfo::new(T::FloatN, 4).with_user_type(of_sybase(d, user_type::REAL)),
        PgType::Float8 => TypeInfo::new(T::FloatN, 8).with_user_type(of_sybase(d, user_type::FLOAT)),
        PgType::Numeric => numeric(typmod, d),
        PgType::Varchar => characters(length(typmod), false, d),
        PgType::Bpchar => characters(length(typmod), true, d),
        PgType::Name => characters(Some(63), false, d),
        PgType::Char => characters(Some(1), false, d),
        PgType::Text | PgType::Json | PgType::Jsonb | PgType::Xml | PgType::Other(_) => {
            characters(None, false, d)
        }
        PgType::Bytea | PgType::Array(_) => bytes(d),
        PgType::Uuid if d.is_tds7() => TypeInfo::new(T::Guid, 16),
        PgType::Uuid => TypeInfo::new(T::Char, 36).with_user_type(user_type::CHAR),
        PgType::Date if d.version >= Version::Tds73 => TypeInfo::new(T::DateN, 3),
        PgType::Date if !d.is_tds7() && d.takes.date => {
            TypeInfo::new(T::SybDateN, 4).with_user_type(user_type::DATE)
        }
        PgType::Time if d.version >= Version::Tds73 => TypeInfo::new(T::TimeN, 5).with_scale(0, 6),
        PgType::Time if d.is_tds7() => characters(Some(15), false, d),
        PgType::Time if d.takes.big_time => TypeInfo::new(T::BigTimeN, 8).with_scale(0, 6),
        PgType::Time if d.takes.time => TypeInfo::new(T::SybTimeN, 4).with_user_type(user_type::TIME),
        PgType::Timestamp | PgType::TimestampTz if d.version >= Version::Tds73 => {
            TypeInfo::new(T::DateTime2N, 8).with_scale(0, 6)
        }
        PgType::Timestamp | PgType::TimestampTz if !d.is_tds7() && d.takes.big_datetime => {
            TypeInfo::new(T::BigDateTimeN, 8).with_scale(0, 6)
        }
        PgType::DateTimeOffset if d.version >= Version::Tds73 => TypeInfo::of_time(T::DateTimeOffset, 7),
        PgType::DateTimeOffset => characters(Some(LONGEST_OFFSET), false, d),
        PgType::SqlVariant if d.is_tds7() => TypeInfo::new(T::Variant, LONGEST_VARIANT),
        // for nulls: TDS 5.0 has no type for other values
        PgType::SqlVariant => characters(Some(LONGEST_VARCHAR), false, d),
        PgType::Date | PgType::Time | PgType::Timestamp | PgType::TimestampTz => {
            TypeInfo::new(T::DateTimeN, 8).with_user_type(of_sybase(d, user_type::DATETIME))
        }
    }
}

/// The type of an output parameter, which cannot be TEXT, IMAGE or NTEXT: at TDS 5.0 and 7.1 long values are sent as
/// LONGCHAR, LONGBINARY, NVARCHAR(4000) and VARBINARY(8000), and longer ones are refused.
pub fn output_type(pg: PgType, typmod: i32, d: &Dialect) -> TypeInfo {
    let t = column_type(pg, typmod, d);
    match t.token {
        TypeToken::Text if !d.takes.long => {
            TypeInfo::new(TypeToken::VarChar, LONGEST_VARCHAR).with_user_type(user_type::VARCHAR)
        }
        TypeToken::Image if !d.is_tds7() && !d.takes.long => {
            TypeInfo::new(TypeToken::VarBinary, LONGEST_VARCHAR).with_user_type(user_type::VARBINARY)
        }
        TypeToken::Text => {
            TypeInfo::new(TypeToken::LongChar, LONGEST_BLOB).with_user_type(user_type::VARCHAR)
        }
        TypeToken::Image if !d.is_tds7() => {
            TypeInfo::new(TypeToken::LongBinary, LONGEST_BLOB).with_user_type(user_type::VARBINARY)
        }
        TypeToken::NText => {
            TypeInfo::new(TypeToken::NVarChar, 2 * LONGEST_NVARCHAR).with_collation(DEFAULT_COLLATION)
        }
        TypeToken::Image => TypeInfo::new(TypeToken::BigVarBinary, 2 * LONGEST_NVARCHAR),
        _ => t,
    }
}

/// The next longer type of the same kind, for an output that exceeds the declared type: some clients of TDS 5.0 declare
/// the value they send, not the one they expect (DBD::Sybase).
pub fn longer_type(t: &TypeInfo, d: &Dialect) -> Option<TypeInfo> {
    use TypeToken as T;
    const LONGEST_SHORT: u32 = 8000;
    let wider = |token: TypeToken, size: u32| TypeInfo { token, size, ..*t };
    match t.token {
        T::Char | T::VarChar if t.size < LONGEST_VARCHAR => Some(wider(T::VarChar, LONGEST_VARCHAR)),
        T::Binary | T::VarBinary if t.size < LONGEST_VARCHAR => Some(wider(T::VarBinary, LONGEST_VARCHAR)),
        T::Char | T::VarChar if !d.is_tds7() && d.takes.long => Some(wider(T::LongChar, LONGEST_BLOB)),
        T::Binary | T::VarBinary if !d.is_tds7() && d.takes.long => Some(wider(T::LongBinary, LONGEST_BLOB)),
        T::NChar | T::NVarChar if t.size < LONGEST_SHORT => Some(wider(T::NVarChar, LONGEST_SHORT)),
        T::BigChar | T::BigVarChar if t.size < LONGEST_SHORT => Some(wider(T::BigVarChar, LONGEST_SHORT)),
        T::BigBinary | T::BigVarBinary if t.size < LONGEST_SHORT => {
            Some(wider(T::BigVarBinary, LONGEST_SHORT))
        }
        T::NVarChar | T::BigVarChar | T::BigVarBinary if !t.is_max() && d.version >= Version::Tds72 => {
            Some(wider(t.token, MAX))
        }
        _ => None,
    }
}

/// ASE's systypes.usertype, which its clients read with the type byte; in TDS 7.x only a timestamp has one.
pub(super) mod user_type {
    pub const CHAR: u32 = 1;
    pub const VARCHAR: u32 = 2;
    pub const BINARY: u32 = 3;
    pub const VARBINARY: u32 = 4;
    pub const TINYINT: u32 = 5;
    pub const SMALLINT: u32 = 6;
    pub const INT: u32 = 7;
    pub const FLOAT: u32 = 8;
    pub const NUMERIC: u32 = 10;
    pub const MONEY: u32 = 11;
    pub const DATETIME: u32 = 12;
    pub const TEXT: u32 = 19;
    pub const IMAGE: u32 = 20;
    pub const SMALLMONEY: u32 = 21;
    pub const DECIMAL: u32 = 26;
    pub const SMALLDATETIME: u32 = 22;
    pub const REAL: u32 = 23;
    pub const DATE: u32 = 37;
    pub const TIME: u32 = 38;
    pub const BIGINT: u32 = 43;
    pub const TIMESTAMP: u32 = 80;
}

fn of_sybase(d: &Dialect, user_type: u32) -> u32 {
    if d.is_tds7() {
        0
    } else {
        user_type
    }
}

/// n of varchar(n) and char(n); None if unlimited.
fn length(typmod: i32) -> Option<u32> {
    u32::try_from(typmod).ok()?.checked_sub(4)
}

fn characters(length: Option<u32>, padded: bool, d: &Dialect) -> TypeInfo {
    use TypeToken as T;
    if d.is_tds7() {
        let t = match length {
            Some(n) if n <= LONGEST_NVARCHAR && padded => TypeInfo::new(T::NChar, nchar_bytes(n)),
            Some(n) if n <= LONGEST_NVARCHAR => TypeInfo::new(T::NVarChar, nchar_bytes(n)),
            _ if d.version >= Version::Tds72 => TypeInfo::new(T::NVarChar, MAX),
            _ => TypeInfo::new(T::NText, LONGEST_BLOB),
        };
        return t.with_collation(DEFAULT_COLLATION);
    }
    let per_char = d.charset.max_bytes_per_char();
    match length.and_then(|n| n.checked_mul(per_char)) {
        // padded to n characters, which are n bytes only in a single-byte character set
        Some(bytes) if bytes <= LONGEST_VARCHAR && padded && per_char == 1 => {
            TypeInfo::new(T::Char, bytes).with_user_type(user_type::CHAR)
        }
        Some(bytes) if bytes <= LONGEST_VARCHAR => {
            TypeInfo::new(T::VarChar, bytes.max(1)).with_user_type(user_type::VARCHAR)
        }
        Some(bytes) if d.takes.long => TypeInfo::new(T::LongChar, bytes).with_user_type(user_type::VARCHAR),
        _ => TypeInfo::new(T::Text, d.text_size).with_user_type(user_type::TEXT),
    }
}

/// Two bytes per UTF-16 code unit. A text with characters beyond the BMP may need more units than it has characters: a
/// value that does not fit is refused.
fn nchar_bytes(characters: u32) -> u32 {
    2 * characters.max(1)
}

fn bytes(d: &Dialect) -> TypeInfo {
    if d.version >= Version::Tds72 {
        return TypeInfo::new(TypeToken::BigVarBinary, MAX);
    }
    let size = if d.is_tds7() { LONGEST_BLOB } else { d.text_size };
    TypeInfo::new(TypeToken::Image, size).with_user_type(of_sybase(d, user_type::IMAGE))
}

/// numeric's typmod is (precision << 16 | scale) + 4 with an 11-bit signed scale (numeric.c).
fn numeric(typmod: i32, d: &Dialect) -> TypeInfo {
    let (precision, scale) = match typmod.checked_sub(4).filter(|_| typmod >= 4) {
        None => NUMERIC,
        Some(packed) => {
            let precision = (packed >> 16) & 0xFFFF;
            let scale = ((packed & 0x7FF) ^ 1024) - 1024;
            // PostgreSQL allows a negative scale (whole thousands) and one above the precision
            let digits = (precision - scale.min(0)).max(scale);
            match (u8::try_from(digits), u8::try_from(scale.max(0))) {
                (Ok(digits @ ..=38), Ok(scale)) => (digits, scale),
                (_, Ok(scale @ ..=38)) => (38, scale),
                _ => NUMERIC,
            }
        }
    };
    digits(precision, scale, d)
}

fn digits(precision: u8, scale: u8, d: &Dialect) -> TypeInfo {
    let size = u32::from(bytes_of_precision(precision, d));
    TypeInfo::new(TypeToken::Numeric, size)
        .with_scale(precision, scale)
        .with_user_type(of_sybase(d, user_type::NUMERIC))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Takes;

    fn announced(pg: PgType, typmod: i32, version: Version) -> (TypeToken, u32) {
        let t = column_type(pg, typmod, &Dialect::new(version));
        (t.token, t.size)
    }

    #[test]
    fn characters_by_dialect_and_length() {
        use TypeToken::*;
        assert_eq!(announced(PgType::Varchar, 4 + 20, Version::Tds74), (NVarChar, 40));
        assert_eq!(announced(PgType::Varchar, 4 + 5000, Version::Tds74), (NVarChar, MAX));
        assert_eq!(announced(PgType::Varchar, 4 + 5000, Version::Tds71), (NText, LONGEST_BLOB));
        assert_eq!(announced(PgType::Varchar, -1, Version::Tds72), (NVarChar, MAX));
        assert_eq!(announced(PgType::Bpchar, 4 + 8, Version::Tds74), (NChar, 16));
        assert_eq!(announced(PgType::Varchar, 4 + 20, Version::Tds50), (VarChar, 20));
        assert_eq!(announced(PgType::Varchar, 4 + 300, Version::Tds50), (LongChar, 300));
        assert_eq!(announced(PgType::Text, -1, Version::Tds50).0, Text);
        let utf8 = Dialect { charset: &crate::tds::charset::UTF_8, ..Dialect::new(Version::Tds50) };
        assert_eq!(column_type(PgType::Varchar, 4 + 64, &utf8).token, LongChar);
        assert_eq!(column_type(PgType::Bpchar, 4 + 8, &utf8).token, VarChar);
    }

    #[test]
    fn outputs_grow_as_far_as_their_dialect_goes() {
        use TypeToken::*;
        let longest = |token, version| {
            let d = Dialect::new(version);
            let mut t = TypeInfo::new(token, 1);
            while let Some(longer) = longer_type(&t, &d) {
                assert!(longer.size > t.size && longer.token.to_wire(&d).is_some());
                t = longer;
            }
            (t.token, t.size)
        };
        assert_eq!(longest(Char, Version::Tds50), (LongChar, LONGEST_BLOB));
        assert_eq!(longest(Binary, Version::Tds50), (LongBinary, LONGEST_BLOB));
        assert_eq!(longest(NChar, Version::Tds71), (NVarChar, 8000));
        assert_eq!(longest(BigChar, Version::Tds74), (BigVarChar, MAX));
        assert_eq!(longest(IntN, Version::Tds74), (IntN, 1));
    }

    #[test]
    fn numerics_by_typmod() {
        let digits = |typmod| {
            let t = column_type(PgType::Numeric, typmod, &Dialect::new(Version::Tds74));
            (t.precision, t.scale, t.size)
        };
        let typmod = |precision: i32, scale: i32| (precision << 16 | (scale & 0x7FF)) + 4;
        assert_eq!(digits(-1), (38, 18, 17));
        assert_eq!(digits(typmod(10, 2)), (10, 2, 9));
        assert_eq!(digits(typmod(3, 5)), (5, 5, 5));
        assert_eq!(digits(typmod(2, -3)), (5, 0, 5));
        assert_eq!(digits(typmod(100, 10)), (38, 10, 17));
        assert_eq!(digits(typmod(100, 50)), (38, 18, 17));
    }

    #[test]
    fn times_by_dialect() {
        use TypeToken::*;
        assert_eq!(announced(PgType::TimestampTz, -1, Version::Tds73), (DateTime2N, 8));
        assert_eq!(announced(PgType::TimestampTz, -1, Version::Tds72), (DateTimeN, 8));
        assert_eq!(announced(PgType::Timestamp, -1, Version::Tds50), (BigDateTimeN, 8));
        let old = Dialect { takes: Takes::NONE, ..Dialect::new(Version::Tds50) };
        for pg in [PgType::Timestamp, PgType::Date, PgType::Time] {
            assert_eq!(column_type(pg, -1, &old).token, DateTimeN);
        }
        let newer = Dialect { takes: Takes { date: true, time: true, ..Takes::NONE }, ..old };
        assert_eq!(column_type(PgType::Date, -1, &newer).token, SybDateN);
        assert_eq!(column_type(PgType::Time, -1, &newer).token, SybTimeN);
        assert_eq!(announced(PgType::Time, -1, Version::Tds71), (NVarChar, 30));
        assert_eq!(announced(PgType::DateTimeOffset, -1, Version::Tds73), (DateTimeOffset, 10));
        assert_eq!(announced(PgType::DateTimeOffset, -1, Version::Tds72), (NVarChar, 68));
        assert_eq!(announced(PgType::DateTimeOffset, -1, Version::Tds50), (VarChar, 34));
    }

    #[test]
    fn older_types_for_older_clients() {
        use TypeToken::*;
        let old = Dialect { takes: Takes::NONE, ..Dialect::new(Version::Tds50) };
        let bigint = column_type(PgType::Int8, -1, &old);
        assert_eq!((bigint.token, bigint.precision, bigint.scale), (Numeric, 19, 0));
        assert_eq!(column_type(PgType::Varchar, 4 + 300, &old).token, Text);
        assert_eq!(output_type(PgType::Text, -1, &old).token, VarChar);
        assert_eq!(output_type(PgType::Bytea, -1, &old).token, VarBinary);
        assert_eq!(longer_type(&TypeInfo::new(VarChar, 255), &old), None);
    }

    #[test]
    fn every_type_exists_in_the_dialect_it_is_announced_to() {
        let types = (0..4000).map(PgType::from_oid);
        for version in [Version::Tds50, Version::Tds71, Version::Tds72, Version::Tds73, Version::Tds74] {
            let d = Dialect::new(version);
            for pg in types.clone() {
                for t in [column_type(pg, -1, &d), output_type(pg, -1, &d)] {
                    assert!(t.token.to_wire(&d).is_some(), "{pg:?} as {:?} at {version:?}", t.token);
                    assert!(!d.is_tds7() || t.user_type == 0, "{pg:?} at {version:?}");
                }
            }
        }
    }
}
