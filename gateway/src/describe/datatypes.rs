//! sp_datatype_info: the types that a client may declare, which ODBC drivers query when they connect (columns of
//! SQLGetTypeInfo).

use crate::calls::Returned;
use crate::client::Reply;
use crate::convert::PgType;
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;

/// The row of a type.
#[derive(Clone, Copy)]
struct DataType {
    name: &'static str,
    /// The code of ODBC 3.
    code: i64,
    /// Digits or characters.
    precision: i64,
    /// The prefix and suffix of a literal.
    prefix: Option<&'static str>,
    suffix: Option<&'static str>,
    /// The names of its parameters in parentheses.
    params: Option<&'static str>,
    nullable: bool,
    case_sensitive: bool,
    searchable: i64,
    /// A number: whether it is unsigned.
    unsigned: Option<bool>,
    /// Whether it is the type of an identity column.
    counts: bool,
    scales: (Option<i64>, Option<i64>),
    /// Bits or digits of a number's precision.
    radix: Option<i64>,
    /// The type's number in systypes.
    user_type: i64,
}

/// SQL_SEARCHABLE and the other values of ODBC
const NEVER: i64 = 0;
const ONLY_LIKE: i64 = 1;
const ALL_BUT_LIKE: i64 = 2;
const SEARCHABLE: i64 = 3;

impl DataType {
    const fn new(name: &'static str, code: i64, precision: i64, user_type: i64) -> DataType {
        DataType {
            name,
            code,
            precision,
            prefix: None,
            suffix: None,
            params: None,
            nullable: true,
            case_sensitive: false,
            searchable: ALL_BUT_LIKE,
            unsigned: None,
            counts: false,
            scales: (None, None),
            radix: None,
            user_type,
        }
    }

    const fn takes(self, params: &'static str) -> DataType {
        DataType { params: Some(params), ..self }
    }

    const fn scaled(self, least: i64, most: i64) -> DataType {
        DataType { scales: (Some(least), Some(most)), ..self }
    }

    const fn searched(self, searchable: i64) -> DataType {
        DataType { searchable, ..self }
    }

    const fn not_null(self) -> DataType {
        DataType { nullable: false, ..self }
    }

    /// The same type for an identity column.
    const fn identity(self, name: &'static str) -> DataType {
        let params = match self.params {
            Some(_) => Some("precision"),
            None => None,
        };
        let scales = match self.scales {
            (Some(_), Some(_)) => (Some(0), Some(0)),
            none => none,
        };
        DataType { name, params, scales, counts: true, nullable: false, ..self }
    }
}

const fn characters(
    name: &'static str,
    code: i64,
    precision: i64,
    prefix: &'static str,
    user_type: i64,
) -> DataType {
    DataType {
        prefix: Some(prefix),
        suffix: Some("'"),
        case_sensitive: true,
        searchable: SEARCHABLE,
        ..DataType::new(name, code, precision, user_type)
    }
}

const fn binary(name: &'static str, code: i64, precision: i64, user_type: i64) -> DataType {
    DataType { prefix: Some("0x"), ..DataType::new(name, code, precision, user_type) }
}

const fn number(name: &'static str, code: i64, precision: i64, radix: i64, user_type: i64) -> DataType {
    DataType { unsigned: Some(false), radix: Some(radix), ..DataType::new(name, code, precision, user_type) }
}

const fn integer(name: &'static str, code: i64, precision: i64, user_type: i64) -> DataType {
    number(name, code, precision, 10, user_type).scaled(0, 0)
}

const fn decimal(name: &'static str, code: i64, user_type: i64) -> DataType {
    number(name, code, 38, 10, user_type).scaled(0, 38).takes("precision,scale")
}

const fn money(name: &'static str, precision: i64, user_type: i64) -> DataType {
    DataType { prefix: Some("$"), ..number(name, DECIMAL, precision, 10, user_type).scaled(4, 4) }
}

const fn time(name: &'static str, code: i64, precision: i64, user_type: i64) -> DataType {
    DataType {
        prefix: Some("'"),
        suffix: Some("'"),
        searchable: SEARCHABLE,
        ..DataType::new(name, code, precision, user_type)
    }
}

const TIME_WITH_OFFSET: i64 = -155;
const TIME_OF_DAY: i64 = -154;
const XML: i64 = -152;
const VARIANT: i64 = -150;
const WIDE_TEXT: i64 = -10;
const WIDE_CHARACTERS: i64 = -9;
const DECIMAL: i64 = 3;
const DATETIME: i64 = 9;
const DATE: i64 = 91;
const TIMESTAMP: i64 = 93;

const TINYINT: DataType = DataType { unsigned: Some(true), ..integer("tinyint", -6, 3, 5) };
const SMALLINT: DataType = integer("smallint", 5, 5, 6);
const INT: DataType = integer("int", 4, 10, 7);
const BIGINT: DataType = integer("bigint", -5, 19, 0);
const NUMERIC: DataType = decimal("numeric", 2, 10);
const DECIMALS: DataType = decimal("decimal", DECIMAL, 24);

/// SQL Server's rows (from babelfish-for-postgresql/babelfish_extensions, babelfishpg_tsql/src/datatype_info.h). Of the
/// types of one code the closest match comes first.
const TYPES: [DataType; 37] = [
    time("datetimeoffset", TIME_WITH_OFFSET, 34, 0).takes("scale").scaled(0, 7),
    time("time", TIME_OF_DAY, 16, 0).takes("scale").scaled(0, 7),
    characters("xml", XML, 0, "N'", 0).searched(NEVER),
    DataType { radix: Some(10), ..DataType::new("sql_variant", VARIANT, 8000, 0).scaled(0, 0) },
    time("uniqueidentifier", -11, 36, 0).searched(ALL_BUT_LIKE),
    characters("ntext", WIDE_TEXT, 1_073_741_823, "N'", 0).searched(ONLY_LIKE),
    characters("nvarchar", WIDE_CHARACTERS, 4000, "N'", 0).takes("max length"),
    characters("sysname", WIDE_CHARACTERS, 128, "N'", 18).not_null(),
    characters("nchar", -8, 4000, "N'", 0).takes("length"),
    DataType::new("bit", -7, 1, 16).scaled(0, 0),
    TINYINT,
    TINYINT.identity("tinyint identity"),
    BIGINT,
    BIGINT.identity("bigint identity"),
    binary("image", -4, 2_147_483_647, 20).searched(NEVER),
    binary("varbinary", -3, 8000, 4).takes("max length"),
    binary("binary", -2, 8000, 3).takes("length"),
    binary("timestamp", -2, 8, 80).not_null(),
    characters("text", -1, 2_147_483_647, "'", 19).searched(ONLY_LIKE),
    characters("char", 1, 8000, "'", 1).takes("length"),
    NUMERIC,
    NUMERIC.identity("numeric() identity"),
    DECIMALS,
    money("money", 19, 11),
    money("smallmoney", 10, 21),
    DECIMALS.identity("decimal() identity"),
    INT,
    INT.identity("int identity"),
    SMALLINT,
    SMALLINT.identity("smallint identity"),
    number("float", 6, 53, 2, 8),
    number("real", 7, 24, 2, 23),
    characters("varchar", 12, 8000, "'", 2).takes("max length"),
    DataType { scales: (None, Some(0)), ..time("date", DATE, 10, 0) },
    time("datetime2", TIMESTAMP, 27, 0).takes("scale").scaled(0, 7),
    time("datetime", TIMESTAMP, 23, 12).scaled(3, 3),
    time("smalldatetime", TIMESTAMP, 16, 22).scaled(0, 0),
];

/// Columns of ASE's sp_datatype_info ("Catalog stored procedures", sp_datatype_info): those of ODBC 3 are SQL Server's.
const OF_ASE: usize = 15;

/// A type as ASE describes it; None if ASE has no such type.
fn of_ase(of: &DataType) -> Option<DataType> {
    let microseconds = |name, code, precision| DataType { name, code, precision, ..of.scaled(6, 6) };
    match of.name {
        _ if of.counts => None,
        "datetimeoffset" | "xml" | "sql_variant" | "uniqueidentifier" | "sysname" => None,
        "ntext" => Some(DataType { name: "unitext", ..*of }),
        "nvarchar" => Some(DataType { name: "univarchar", ..*of }),
        "nchar" => Some(DataType { name: "unichar", ..*of }),
        "datetime2" => Some(microseconds("bigdatetime", TIMESTAMP, 26)),
        "time" => Some(microseconds("time", 92, 15)),
        _ => Some(*of),
    }
}

/// The version of the types that a driver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Those before SQL Server 2005.
    First,
    /// xml
    Xml,
    /// The date and time types of SQL Server 2008.
    Times,
}

/// A type's code for a driver of this version of ODBC and of the server's types; unknown types are sent as text.
fn code_for(of: &DataType, odbc_2: bool, known: Known) -> i64 {
    let is_later_time = matches!(of.name, "datetimeoffset" | "time" | "date" | "datetime2");
    match of.code {
        _ if is_later_time && known != Known::Times => WIDE_CHARACTERS,
        XML if known == Known::First => WIDE_TEXT,
        code @ DATE..=TIMESTAMP if odbc_2 => code - 82,
        code => code,
    }
}

/// @data_type = 0 for all, @ODBCVer = 2.
pub fn datatype_info(
    reply: &mut Reply,
    params: &[Param<'_>],
    known: Known,
) -> Result<Returned, ServerMessage> {
    let given = |name: &str, index: usize| {
        let named = params.iter().find(|param| param.is(name));
        let param = named.or_else(|| params.get(index).filter(|param| !param.is_named()))?;
        match param.value(&reply.dialect) {
            Ok(Value::Int(value)) => Some(value),
            Ok(Value::Text(text)) => text.trim().parse().ok(),
            _ => None,
        }
    };
    let (wanted, odbc_2) = (given("data_type", 0).unwrap_or(0), given("ODBCVer", 1).unwrap_or(2) < 3);
    let columns = [
        ("TYPE_NAME", PgType::Name),
        ("DATA_TYPE", PgType::Int2),
        ("PRECISION", PgType::Int4),
        ("LITERAL_PREFIX", PgType::Name),
        ("LITERAL_SUFFIX", PgType::Name),
        ("CREATE_PARAMS", PgType::Name),
        ("NULLABLE", PgType::Int2),
        ("CASE_SENSITIVE", PgType::Int2),
        ("SEARCHABLE", PgType::Int2),
        ("UNSIGNED_ATTRIBUTE", PgType::Int2),
        ("MONEY", PgType::Int2),
        ("AUTO_INCREMENT", PgType::Int2),
        ("LOCAL_TYPE_NAME", PgType::Name),
        ("MINIMUM_SCALE", PgType::Int2),
        ("MAXIMUM_SCALE", PgType::Int2),
        ("SQL_DATA_TYPE", PgType::Int2),
        ("SQL_DATETIME_SUB", PgType::Int2),
        ("NUM_PREC_RADIX", PgType::Int4),
        ("INTERVAL_PRECISION", PgType::Int2),
        ("USERTYPE", PgType::Int2),
    ];
    let is_ase = !reply.dialect.is_tds7();
    let width = if is_ase { OF_ASE } else { columns.len() };
    let columns: Vec<_> =
        columns.into_iter().take(width).map(|(name, pg_type)| (name.to_owned(), pg_type, -1)).collect();
    let mut rows = Vec::new();
    for of in &TYPES {
        let (of, code) = match is_ase {
            true => match of_ase(of) {
                Some(of) => (of, code_for(&of, odbc_2, Known::Times)),
                None => continue,
            },
            false => (*of, code_for(of, odbc_2, known)),
        };
        if wanted == 0 || wanted == code {
            rows.push((code, row(&of, code)));
        }
    }
    // stable: of one code the closest match stays first
    rows.sort_by_key(|(code, _)| *code);
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row[..width].to_vec()).collect();
    let count = rows.len() as u64;
    reply.result_set(&columns, &rows)?;
    Ok(Returned::rows(Some(count)))
}

fn row(of: &DataType, code: i64) -> [Value<'static>; 20] {
    let text = |text: Option<&'static str>| text.map_or(Value::Null, |text| Value::Text(Cow::Borrowed(text)));
    let number = |number: Option<i64>| number.map_or(Value::Null, Value::Int);
    let is_datetime = matches!(of.code, DATE..=TIMESTAMP);
    let part = match of.code {
        TIME_WITH_OFFSET | TIME_OF_DAY => Some(0),
        code => is_datetime.then_some(code - 90),
    };
    [
        text(Some(of.name)),
        Value::Int(code),
        Value::Int(of.precision),
        text(of.prefix),
        text(of.suffix),
        text(of.params),
        Value::Int(of.nullable.into()),
        Value::Int(of.case_sensitive.into()),
        Value::Int(of.searchable),
        number(of.unsigned.map(i64::from)),
        Value::Int(of.name.ends_with("money").into()),
        number(of.unsigned.map(|_| of.counts.into())),
        text(Some(of.name)),
        number(of.scales.0),
        number(of.scales.1),
        Value::Int(if is_datetime { DATETIME } else { of.code }),
        number(part),
        number(of.radix),
        Value::Null,
        Value::Int(of.user_type),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tsql::facts::type_names;

    #[test]
    fn the_types_are_those_that_a_text_may_declare() {
        // longsysname and the unsigned types are ASE's alone
        let declared: BTreeSet<_> = type_names::names()
            .map(|name| type_names::named(name, &[], 0, 1).unwrap())
            .filter(|of| !of.unsigned)
            .map(|of| of.display_name())
            .collect();
        let listed: BTreeSet<_> = TYPES.iter().filter(|of| !of.counts).map(|of| of.name).collect();
        assert_eq!(listed, declared);
    }
}
