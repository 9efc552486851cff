//! The T-SQL declarations of columns that PostgreSQL does not keep: columns are described to clients as declared.
//!
//! Types with their own conversion and rounding are domains in schema tsql (`types/domains.sql`); for the others the
//! column's comment contains name and type (`ddl/declarations.sql`).

use super::announcing::{column_type, user_type};
use super::pgtype::PgType;
use super::sqltype::SqlType;
use crate::tds::dialect::{Dialect, Version};
use crate::tds::tokens::columns::Traits;
use crate::tds::types::{TypeInfo, TypeToken, DEFAULT_COLLATION, MAX, UTF8_COLLATION};
use std::sync::Arc;
use tsql::facts::type_names;
use tsql::facts::types::{self, Type};
use tsql::program::ResultType;

/// The declaration of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// The name in its declared case.
    pub shown: Option<Arc<str>>,
    /// The type, if PostgreSQL's type does not determine it. A decimal without digits has those of the column's
    /// modifier.
    pub of: Option<Type>,
    pub traits: Traits,
    /// The type of an expression, if known.
    pub result_type: Option<ResultType>,
    /// The pointer to a text or image in a table's row.
    pub pointer: Option<Pointer>,
}

/// The components of the pointer to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The index of its row's version among the result's row versions.
    pub version: usize,
    /// The table, as the query names it.
    pub table: Arc<str>,
}

/// The most bytes of a value of a type with a two-byte length.
const LONGEST_SHORT: u32 = 8000;
const LONGEST_BLOB: u32 = i32::MAX as u32;

/// The type of a column from the name of its domain or from its comment: `varchar(20)`, `varbinary(max)`; None if it is
/// PostgreSQL's type.
pub fn of_comment(text: &str) -> Option<Type> {
    let of = type_names::declared(text).filter(says_more)?;
    // PostgreSQL stores the digits of a decimal
    Some(if of.name == "decimal" { Type { precision: None, scale: None, ..of } } else { of })
}

/// The type of an expression; None if it follows from PostgreSQL's.
pub fn of_expression(of: &Type, d: &Dialect) -> Option<Type> {
    // TDS 5.0 has no empty varbinary
    let is_told = says_more(of) && (of.name != "varbinary" || d.is_tds7());
    is_told.then_some(*of)
}

/// Whether the type contains more than PostgreSQL's.
fn says_more(of: &Type) -> bool {
    match of.name {
        "tinyint" | "money" | "smallmoney" | "smalldatetime" | "datetime2" | "datetimeoffset" => true,
        "time" | "text" | "varbinary" | "image" => true,
        // a timestamp of PostgreSQL may be a datetime2
        "datetime" => of.fraction.is_none(),
        "char" => !of.twin && of.length.is_some(),
        "varchar" => !of.twin,
        "binary" => of.length.is_some(),
        "decimal" => of.precision.is_some(),
        _ => false,
    }
}

/// The declared type of a column; None if it follows from PostgreSQL's type and modifier.
pub fn of_column(of: Type, typmod: i32) -> Option<Type> {
    match (of.name, of.precision) {
        ("decimal", None) => {
            let of = types::of_oid(SqlType::NUMERIC.oid, typmod).in_tsql()?;
            Some(Type { twin: false, ..of })
        }
        _ => Some(of),
    }
}

/// The type for a column's comment; None if it follows from PostgreSQL's type.
pub fn written(of: Type) -> Option<String> {
    match of.name {
        "decimal" => (!of.twin).then(|| String::from("decimal")),
        // a domain determines it
        "tinyint" | "money" | "smallmoney" | "datetime" | "smalldatetime" => None,
        _ => Some(of.declared()),
    }
}

/// The most bytes of a binary, and whether shorter ones are padded with zeros.
pub fn bytes(of: Type) -> Option<(usize, bool)> {
    let is_binary = matches!(of.name, "binary" | "varbinary");
    of.length.filter(|_| is_binary).map(|length| (length as usize, of.name == "binary"))
}

/// The type of a column or variable as sent to the client.
pub fn type_sent(of: Type, d: &Dialect) -> TypeInfo {
    client_type(PgType::from_oid(of.oid), of.typmod(), Some(of).filter(says_more), d)
}

/// The type of a result's column as sent to the client. `declared`: the type that does not follow from PostgreSQL's.
pub fn client_type(pg: PgType, typmod: i32, declared: Option<Type>, d: &Dialect) -> TypeInfo {
    declared.and_then(|of| in_dialect(&of, typmod, d)).unwrap_or_else(|| column_type(pg, typmod, d))
}

/// A declared type in the dialect; None if the dialect has only the type that follows from PostgreSQL's. ASE's
/// systypes.usertype is sent with the type at 5.0.
fn in_dialect(of: &Type, typmod: i32, d: &Dialect) -> Option<TypeInfo> {
    let (token, size, user_type) = match (of.name, of.length) {
        ("decimal", _) => {
            let typmod = of.precision.map_or(typmod, |_| of.typmod());
            let numeric = column_type(PgType::Numeric, typmod, d);
            return Some(if of.twin { numeric } else { decimal(numeric, d) });
        }
        ("tinyint", _) => (TypeToken::IntN, 1, user_type::TINYINT),
        ("money", _) => (TypeToken::MoneyN, 8, user_type::MONEY),
        ("smallmoney", _) => (TypeToken::MoneyN, 4, user_type::SMALLMONEY),
        ("datetime", _) => (TypeToken::DateTimeN, 8, user_type::DATETIME),
        ("smalldatetime", _) => (TypeToken::DateTimeN, 4, user_type::SMALLDATETIME),
        ("binary", Some(length)) if of.is_row_version() => {
            return Some(binary(length, d.is_tds7(), d)?.with_user_type(user_type::TIMESTAMP));
        }
        ("binary" | "varbinary", Some(length)) => return binary(length, of.name == "binary", d),
        _ if d.is_tds7() => return in_dialect_7(of, d),
        _ => return None,
    };
    Some(TypeInfo::new(token, size).with_user_type(if d.is_tds7() { 0 } else { user_type }))
}

fn in_dialect_7(of: &Type, d: &Dialect) -> Option<TypeInfo> {
    use TypeToken as T;
    let is_new = d.version >= Version::Tds73;
    let digits = of.fraction.unwrap_or(types::MOST_FRACTION);
    Some(match of.name {
        "char" => single_bytes(T::BigChar, of.length, d),
        "varchar" => single_bytes(T::BigVarChar, of.length, d),
        "text" if of.twin => TypeInfo::new(T::NText, LONGEST_BLOB).with_collation(DEFAULT_COLLATION),
        "text" => TypeInfo::new(T::Text, LONGEST_BLOB).with_collation(collation(d)),
        "image" => TypeInfo::new(T::Image, LONGEST_BLOB),
        "time" if is_new => TypeInfo::of_time(T::TimeN, digits),
        "datetimeoffset" if is_new => TypeInfo::of_time(T::DateTimeOffset, digits),
        "datetime2" if is_new => TypeInfo::of_time(T::DateTime2N, digits),
        _ => return None,
    })
}

/// A numeric as type decimal.
fn decimal(numeric: TypeInfo, d: &Dialect) -> TypeInfo {
    match numeric.token {
        TypeToken::Numeric => TypeInfo { token: TypeToken::Decimal, ..numeric }
            .with_user_type(if d.is_tds7() { 0 } else { user_type::DECIMAL }),
        _ => numeric,
    }
}

/// The collation of single-byte text: the session's code page, or UTF-8 if the client supports it.
fn collation(d: &Dialect) -> [u8; 5] {
    if d.knows_utf8 {
        UTF8_COLLATION
    } else {
        DEFAULT_COLLATION
    }
}

/// char(n) and varchar(n) of 7.x, whose length is in bytes: PostgreSQL counts characters.
fn single_bytes(token: TypeToken, length: Option<u32>, d: &Dialect) -> TypeInfo {
    let most = if d.knows_utf8 { 4 } else { 1 };
    let t = match length.and_then(|length| length.checked_mul(most)) {
        Some(bytes) if bytes <= LONGEST_SHORT => TypeInfo::new(token, bytes),
        _ if d.version >= Version::Tds72 => TypeInfo::new(TypeToken::BigVarChar, MAX),
        _ => TypeInfo::new(TypeToken::Text, LONGEST_BLOB),
    };
    t.with_collation(collation(d))
}

fn binary(length: u32, is_fixed: bool, d: &Dialect) -> Option<TypeInfo> {
    use TypeToken as T;
    if d.is_tds7() {
        let token = if is_fixed { T::BigBinary } else { T::BigVarBinary };
        return (length <= LONGEST_SHORT).then(|| TypeInfo::new(token, length));
    }
    let (token, user) =
        if is_fixed { (T::Binary, user_type::BINARY) } else { (T::VarBinary, user_type::VARBINARY) };
    match length {
        ..=255 => Some(TypeInfo::new(token, length).with_user_type(user)),
        _ if d.takes.long => Some(TypeInfo::new(T::LongBinary, length).with_user_type(user)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsql::facts::type_names::{named, names};
    use tsql::facts::types::{decimal, varchar, BINARY, CHAR, DATETIME2, TEXT, TIME, VARCHAR};

    const CHAR_3: Type = Type { length: Some(3), ..CHAR };
    const BINARY_4: Type = Type { length: Some(4), ..BINARY };

    #[test]
    fn types_as_they_are_written() {
        for (text, expected) in [
            ("varchar(20)", Some(varchar(Some(20)))),
            ("varchar(max)", Some(varchar(None))),
            ("char(3)", Some(CHAR_3)),
            ("time", Some(TIME)),
            ("datetime2(3)", Some(Type { fraction: Some(3), ..DATETIME2 })),
            ("decimal", Some(Type { precision: None, scale: None, ..decimal(18, 0) })),
            ("varchar(x)", None),
            ("varchar(20", None),
            ("nvarchar(20)", None),
        ] {
            assert_eq!(of_comment(text), expected, "{text}");
        }
    }

    #[test]
    fn characters_of_single_bytes_keep_their_types_at_7() {
        use TypeToken::*;
        let sent = |of: Type, d: &Dialect| in_dialect(&of, -1, d).map(|t| (t.token, t.size));
        let d = Dialect::new(Version::Tds74);
        assert_eq!(sent(varchar(Some(20)), &d), Some((BigVarChar, 20)));
        assert_eq!(sent(VARCHAR, &d), Some((BigVarChar, MAX)));
        assert_eq!(sent(CHAR_3, &d), Some((BigChar, 3)));
        assert_eq!(sent(TEXT, &d), Some((Text, LONGEST_BLOB)));
        let utf8 = Dialect { knows_utf8: true, ..d };
        assert_eq!(sent(varchar(Some(20)), &utf8), Some((BigVarChar, 80)));
        assert_eq!(sent(varchar(Some(4000)), &utf8), Some((BigVarChar, MAX)));
        let old = Dialect::new(Version::Tds71);
        assert_eq!(sent(VARCHAR, &old), Some((Text, LONGEST_BLOB)));
        assert_eq!(sent(TIME, &old), None);
        let five = Dialect::new(Version::Tds50);
        assert_eq!(sent(varchar(Some(20)), &five), None);
        assert_eq!(sent(BINARY_4, &five), Some((Binary, 4)));
    }

    /// [MS-TDS] 2.2.5.4: the types of variable length, by their T-SQL names.
    #[test]
    fn every_type_is_told_as_it_is_declared() {
        use TypeToken::*;
        let d = Dialect::new(Version::Tds74);
        for name in names() {
            let of = named(name, &[], 0, 5).unwrap();
            let t = client_type(PgType::from_oid(of.oid), of.typmod(), of_expression(&of, &d), &d);
            let expected = match of.display_name() {
                "bit" => (BitN, 1),
                "tinyint" => (IntN, 1),
                "smallint" => (IntN, 2),
                "int" => (IntN, 4),
                "bigint" => (IntN, 8),
                "real" => (FloatN, 4),
                "float" => (FloatN, 8),
                "smallmoney" => (MoneyN, 4),
                "money" => (MoneyN, 8),
                "decimal" => (Decimal, t.size),
                "numeric" => (Numeric, t.size),
                "smalldatetime" => (DateTimeN, 4),
                "datetime" => (DateTimeN, 8),
                "date" => (DateN, t.size),
                "time" => (TimeN, t.size),
                "datetime2" => (DateTime2N, t.size),
                "datetimeoffset" => (DateTimeOffset, t.size),
                "char" => (BigChar, 5),
                "varchar" => (BigVarChar, 5),
                "nchar" => (NChar, 10),
                "nvarchar" => (NVarChar, 10),
                "sysname" => (NVarChar, 2 * of.length.unwrap()),
                "text" => (Text, LONGEST_BLOB),
                "ntext" => (NText, LONGEST_BLOB),
                "binary" => (BigBinary, 5),
                "timestamp" => (BigBinary, 8),
                "varbinary" => (BigVarBinary, 5),
                "image" => (Image, LONGEST_BLOB),
                "uniqueidentifier" => (Guid, 16),
                // a type that every client reads
                "xml" => (NVarChar, MAX),
                "sql_variant" => (Variant, t.size),
                other => panic!("{other} is not known"),
            };
            assert_eq!((t.token, t.size), expected, "{name}");
        }
    }

    #[test]
    fn a_comment_is_read_as_it_was_written() {
        for name in names() {
            let of = named(name, &[], 0, 5).unwrap();
            let Some(text) = written(of).filter(|_| says_more(&of)) else { continue };
            let read = of_comment(&text).unwrap();
            assert_eq!(of_column(read, of.typmod()), Some(of), "{name}: {text}");
        }
    }
}
