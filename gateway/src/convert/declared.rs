//! What T-SQL declares of columns and PostgreSQL does not keep: columns are described to clients as declared.
//!
//! Types that convert and round in their own way are domains in schema tsql (`01_types.sql`); for the others the
//! column's comment has name and type (`11_declarations.sql`).

use super::announcing::{column_type, user_type};
use super::pgtype::PgType;
use super::sqltype::SqlType;
use crate::tds::dialect::{Dialect, Version};
use crate::tds::tokens::columns::Traits;
use crate::tds::types::{TypeInfo, TypeToken, DEFAULT_COLLATION, MAX, UTF8_COLLATION};
use std::sync::Arc;
use tsql::facts::types::{self, Type};
use tsql::program::ResultType;

/// A type as it was declared. Lengths: None for max.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declared {
    TinyInt,
    Money,
    SmallMoney,
    DateTime,
    SmallDateTime,
    Char(u32),
    VarChar(Option<u32>),
    Text,
    NText,
    Binary(u32),
    VarBinary(Option<u32>),
    Image,
    /// Digits behind the second.
    Time(u8),
    DateTime2(u8),
    DateTimeOffset(u8),
    /// decimal, and numeric where PostgreSQL does not say its digits.
    Decimal,
    Digits {
        precision: u8,
        scale: u8,
        is_numeric: bool,
    },
}

/// The declaration of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// Its name in the case that it was declared with.
    pub shown: Option<Arc<str>>,
    pub of: Option<Declared>,
    pub traits: Traits,
    /// Of an expression, where its type is known.
    pub result_type: Option<ResultType>,
    /// Of a text or image of a table's row.
    pub pointer: Option<Pointer>,
}

/// How the pointer to a text is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Which of the result's versions of rows is that of its row.
    pub version: usize,
    /// The table, as the query names it.
    pub table: Arc<str>,
}

/// Most bytes of a value of a type with a length in two bytes.
const LONGEST_SHORT: u32 = 8000;
const LONGEST_BLOB: u32 = i32::MAX as u32;
/// Digits behind the second that T-SQL's types have where they say none.
const DIGITS: u8 = 7;

impl Declared {
    /// By the name of its domain, or as it is written: `varchar(20)`, `varbinary(max)`.
    pub fn named(text: &str) -> Option<Declared> {
        let (name, argument) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some((name, "max")) => (name, None),
            Some((name, argument)) => (name, Some(argument.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let digits = || argument.map_or(Some(DIGITS), |digits| u8::try_from(digits).ok());
        Some(match name {
            "tinyint" => Declared::TinyInt,
            "money" => Declared::Money,
            "smallmoney" => Declared::SmallMoney,
            "datetime" => Declared::DateTime,
            "smalldatetime" => Declared::SmallDateTime,
            "char" => Declared::Char(argument?),
            "varchar" => Declared::VarChar(argument),
            "text" => Declared::Text,
            "ntext" => Declared::NText,
            "binary" => Declared::Binary(argument?),
            "varbinary" => Declared::VarBinary(argument),
            "image" => Declared::Image,
            "time" => Declared::Time(digits()?),
            "datetime2" => Declared::DateTime2(digits()?),
            "datetimeoffset" => Declared::DateTimeOffset(digits()?),
            "decimal" => Declared::Decimal,
            _ => return None,
        })
    }

    /// The declaration of an expression; None where it follows from PostgreSQL's type.
    pub fn of_expression(of: &Type, d: &Dialect) -> Option<Declared> {
        let digits = of.fraction.unwrap_or(DIGITS);
        Some(match of.name {
            "tinyint" => Declared::TinyInt,
            "money" => Declared::Money,
            "smallmoney" => Declared::SmallMoney,
            // a timestamp of PostgreSQL's may be a datetime2
            "datetime" if of.fraction.is_none() => Declared::DateTime,
            "smalldatetime" => Declared::SmallDateTime,
            "char" if !of.twin => Declared::Char(of.length?),
            "varchar" if !of.twin => Declared::VarChar(of.length),
            "text" if of.twin => Declared::NText,
            "text" => Declared::Text,
            "binary" => Declared::Binary(of.length?),
            // TDS 5.0 has no empty varbinary
            "varbinary" if d.is_tds7() => Declared::VarBinary(of.length),
            "image" => Declared::Image,
            "time" => Declared::Time(digits),
            "datetime2" => Declared::DateTime2(digits),
            "datetimeoffset" => Declared::DateTimeOffset(digits),
            "decimal" => Declared::Digits { precision: of.precision?, scale: of.scale?, is_numeric: of.twin },
            _ => return None,
        })
    }

    /// The type of a column that is declared so; None where PostgreSQL's type and modifier do not say it.
    pub fn of_column(self, typmod: i32) -> Option<Type> {
        let of_time = |of: Type, digits: u8| Type { fraction: (digits < DIGITS).then_some(digits), ..of };
        Some(match self {
            Declared::TinyInt => types::TINYINT,
            Declared::Money => types::MONEY,
            Declared::SmallMoney => types::SMALLMONEY,
            Declared::DateTime => types::DATETIME,
            Declared::SmallDateTime => types::SMALLDATETIME,
            Declared::Char(length) => Type { length: Some(length), ..types::CHAR },
            Declared::VarChar(length) => types::varchar(length),
            Declared::Text => types::TEXT,
            Declared::NText => types::TEXT.twin(),
            Declared::Binary(length) => Type { length: Some(length), ..types::BINARY },
            Declared::VarBinary(length) => Type { length, ..types::VARBINARY },
            Declared::Image => types::IMAGE,
            Declared::Time(digits) => of_time(types::TIME, digits),
            Declared::DateTime2(digits) => of_time(types::DATETIME2, digits),
            Declared::DateTimeOffset(digits) => of_time(types::DATETIMEOFFSET, digits),
            Declared::Decimal => Type { twin: false, ..types::of_oid(SqlType::NUMERIC.oid, typmod)? },
            Declared::Digits { precision, scale, is_numeric } => {
                Type { twin: is_numeric, ..types::decimal(precision, scale) }
            }
        })
    }

    /// The text in a column's comment; None where it follows from PostgreSQL's type.
    pub fn written(self) -> Option<String> {
        let of_length = |name: &str, length: Option<u32>| match length {
            Some(length) => format!("{name}({length})"),
            None => format!("{name}(max)"),
        };
        Some(match self {
            Declared::Char(length) => of_length("char", Some(length)),
            Declared::VarChar(length) => of_length("varchar", length),
            Declared::Text => String::from("text"),
            Declared::NText => String::from("ntext"),
            Declared::Binary(length) => of_length("binary", Some(length)),
            Declared::VarBinary(length) => of_length("varbinary", length),
            Declared::Image => String::from("image"),
            Declared::Time(digits) => format!("time({digits})"),
            Declared::DateTime2(digits) => format!("datetime2({digits})"),
            Declared::DateTimeOffset(digits) => format!("datetimeoffset({digits})"),
            Declared::Decimal | Declared::Digits { is_numeric: false, .. } => String::from("decimal"),
            // a domain says it
            Declared::TinyInt | Declared::Money | Declared::SmallMoney => return None,
            Declared::DateTime | Declared::SmallDateTime | Declared::Digits { .. } => return None,
        })
    }

    /// Most bytes of a binary, and whether shorter ones are filled with zeros.
    pub fn bytes(self) -> Option<(usize, bool)> {
        match self {
            Declared::Binary(length) => Some((length as usize, true)),
            Declared::VarBinary(Some(length)) => Some((length as usize, false)),
            _ => None,
        }
    }

    /// Its type in the dialect; None where the dialect has only the type that follows from PostgreSQL's. ASE's
    /// systypes.usertype is sent beside the type at 5.0.
    fn client_type(self, pg: PgType, typmod: i32, d: &Dialect) -> Option<TypeInfo> {
        let (token, size, user_type) = match self {
            Declared::Decimal => return Some(decimal(column_type(pg, typmod, d), d)),
            Declared::Digits { precision, scale, is_numeric } => {
                let numeric = column_type(PgType::Numeric, SqlType::numeric(precision, scale).typmod, d);
                return Some(if is_numeric { numeric } else { decimal(numeric, d) });
            }
            Declared::TinyInt => (TypeToken::IntN, 1, user_type::TINYINT),
            Declared::Money => (TypeToken::MoneyN, 8, user_type::MONEY),
            Declared::SmallMoney => (TypeToken::MoneyN, 4, user_type::SMALLMONEY),
            Declared::DateTime => (TypeToken::DateTimeN, 8, user_type::DATETIME),
            Declared::SmallDateTime => (TypeToken::DateTimeN, 4, user_type::SMALLDATETIME),
            Declared::Binary(length) => return binary(length, true, d),
            Declared::VarBinary(Some(length)) => return binary(length, false, d),
            _ if d.is_tds7() => return self.client_type_7(d),
            _ => return None,
        };
        Some(TypeInfo::new(token, size).with_user_type(if d.is_tds7() { 0 } else { user_type }))
    }

    fn client_type_7(self, d: &Dialect) -> Option<TypeInfo> {
        use TypeToken as T;
        let is_new = d.version >= Version::Tds73;
        Some(match self {
            Declared::Char(length) => single_bytes(T::BigChar, Some(length), d),
            Declared::VarChar(length) => single_bytes(T::BigVarChar, length, d),
            Declared::Text => TypeInfo::new(T::Text, LONGEST_BLOB).with_collation(collation(d)),
            Declared::NText => TypeInfo::new(T::NText, LONGEST_BLOB).with_collation(DEFAULT_COLLATION),
            Declared::Image => TypeInfo::new(T::Image, LONGEST_BLOB),
            Declared::Time(digits) if is_new => TypeInfo::of_time(T::TimeN, digits),
            Declared::DateTimeOffset(digits) if is_new => TypeInfo::of_time(T::DateTimeOffset, digits),
            Declared::DateTime2(digits) if is_new => TypeInfo::of_time(T::DateTime2N, digits),
            _ => return None,
        })
    }
}

/// The other name of a numeric.
fn decimal(numeric: TypeInfo, d: &Dialect) -> TypeInfo {
    match numeric.token {
        TypeToken::Numeric => TypeInfo { token: TypeToken::Decimal, ..numeric }
            .with_user_type(if d.is_tds7() { 0 } else { user_type::DECIMAL }),
        _ => numeric,
    }
}

/// The collation of text of single bytes: the session's code page, or UTF-8 if the client supports it.
fn collation(d: &Dialect) -> [u8; 5] {
    if d.knows_utf8 {
        UTF8_COLLATION
    } else {
        DEFAULT_COLLATION
    }
}

/// char(n) and varchar(n) of 7.x, whose length is that of the bytes: PostgreSQL counts characters.
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

/// The type of a result's column as it is sent to the client.
pub fn client_type(pg: PgType, typmod: i32, declared: Option<Declared>, d: &Dialect) -> TypeInfo {
    declared
        .and_then(|declared| declared.client_type(pg, typmod, d))
        .unwrap_or_else(|| column_type(pg, typmod, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_as_they_are_written() {
        for (text, expected) in [
            ("varchar(20)", Some(Declared::VarChar(Some(20)))),
            ("varchar(max)", Some(Declared::VarChar(None))),
            ("char(3)", Some(Declared::Char(3))),
            ("time", Some(Declared::Time(7))),
            ("datetime2(3)", Some(Declared::DateTime2(3))),
            ("char", None),
            ("varchar(x)", None),
            ("varchar(20", None),
            ("nvarchar(20)", None),
        ] {
            assert_eq!(Declared::named(text), expected, "{text}");
        }
    }

    #[test]
    fn characters_of_single_bytes_keep_their_types_at_7() {
        use TypeToken::*;
        let sent = |declared: Declared, d: &Dialect| {
            declared.client_type(PgType::Text, -1, d).map(|t| (t.token, t.size))
        };
        let d = Dialect::new(Version::Tds74);
        assert_eq!(sent(Declared::VarChar(Some(20)), &d), Some((BigVarChar, 20)));
        assert_eq!(sent(Declared::VarChar(None), &d), Some((BigVarChar, MAX)));
        assert_eq!(sent(Declared::Char(8000), &d), Some((BigChar, 8000)));
        assert_eq!(sent(Declared::Text, &d), Some((Text, LONGEST_BLOB)));
        let utf8 = Dialect { knows_utf8: true, ..d };
        assert_eq!(sent(Declared::VarChar(Some(20)), &utf8), Some((BigVarChar, 80)));
        assert_eq!(sent(Declared::VarChar(Some(4000)), &utf8), Some((BigVarChar, MAX)));
        let old = Dialect::new(Version::Tds71);
        assert_eq!(sent(Declared::VarChar(None), &old), Some((Text, LONGEST_BLOB)));
        assert_eq!(sent(Declared::Time(3), &old), None);
        let five = Dialect::new(Version::Tds50);
        assert_eq!(sent(Declared::VarChar(Some(20)), &five), None);
        assert_eq!(sent(Declared::Binary(4), &five), Some((Binary, 4)));
    }
}
