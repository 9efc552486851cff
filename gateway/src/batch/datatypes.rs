//! sp_datatype_info: the types that a client may declare, which ODBC drivers query when they connect (columns of
//! SQLGetTypeInfo).

use crate::calls::Returned;
use crate::client::Reply;
use crate::convert::PgType;
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;

struct DataType {
    name: &'static str,
    /// ODBC's code, of version 3.
    code: i64,
    /// Digits or characters.
    precision: i64,
    /// The prefix and suffix of a literal.
    quotes: Option<(&'static str, &'static str)>,
    /// The names of its parameters in parentheses.
    params: Option<&'static str>,
    /// A number: whether it is unsigned.
    unsigned: Option<bool>,
    scales: Option<(i64, i64)>,
    /// Bits or digits of a number's precision.
    radix: Option<i64>,
}

const fn characters(name: &'static str, code: i64, precision: i64, prefix: &'static str) -> DataType {
    let params = if precision < 2_147_483_647 / 2 { Some("length") } else { None };
    let quotes = Some((prefix, "'"));
    DataType { name, code, precision, quotes, params, unsigned: None, scales: None, radix: None }
}

const fn binary(name: &'static str, code: i64, precision: i64) -> DataType {
    let params = if precision < 2_147_483_647 { Some("length") } else { None };
    let quotes = Some(("0x", ""));
    DataType { name, code, precision, quotes, params, unsigned: None, scales: None, radix: None }
}

const fn integer(name: &'static str, code: i64, precision: i64, unsigned: bool) -> DataType {
    DataType {
        name,
        code,
        precision,
        quotes: None,
        params: None,
        unsigned: Some(unsigned),
        scales: Some((0, 0)),
        radix: Some(10),
    }
}

const fn float(name: &'static str, code: i64, precision: i64) -> DataType {
    DataType {
        name,
        code,
        precision,
        quotes: None,
        params: None,
        unsigned: Some(false),
        scales: None,
        radix: Some(2),
    }
}

const fn decimal(name: &'static str, code: i64) -> DataType {
    DataType {
        name,
        code,
        precision: 38,
        quotes: None,
        params: Some("precision,scale"),
        unsigned: Some(false),
        scales: Some((0, 38)),
        radix: Some(10),
    }
}

const fn money(name: &'static str, precision: i64) -> DataType {
    DataType {
        name,
        code: DECIMAL,
        precision,
        quotes: Some(("$", "")),
        params: None,
        unsigned: Some(false),
        scales: Some((4, 4)),
        radix: Some(10),
    }
}

const fn time(name: &'static str, code: i64, precision: i64, scale: i64) -> DataType {
    DataType {
        name,
        code,
        precision,
        quotes: Some(("'", "'")),
        params: None,
        unsigned: None,
        scales: Some((scale, scale)),
        radix: None,
    }
}

const DECIMAL: i64 = 3;

/// By ODBC's code, and the closest match for a code first (SQL Server's and ASE's types that hold what
/// PostgreSQL's do).
const TYPES: [DataType; 27] = [
    characters("ntext", -10, 1_073_741_823, "N'"),
    characters("nvarchar", -9, 4000, "N'"),
    characters("sysname", -9, 128, "N'"),
    characters("nchar", -8, 4000, "N'"),
    integer("bit", -7, 1, true),
    integer("tinyint", -6, 3, true),
    integer("bigint", -5, 19, false),
    binary("image", -4, 2_147_483_647),
    binary("varbinary", -3, 8000),
    binary("binary", -2, 8000),
    binary("timestamp", -2, 8),
    characters("text", -1, 2_147_483_647, "'"),
    characters("char", 1, 8000, "'"),
    decimal("numeric", 2),
    decimal("decimal", DECIMAL),
    money("money", 19),
    money("smallmoney", 10),
    integer("int", 4, 10, false),
    integer("smallint", 5, 5, false),
    float("float", 6, 53),
    float("real", 7, 24),
    characters("varchar", 12, 8000, "'"),
    time("date", 91, 10, 0),
    time("time", 92, 15, 6),
    time("datetime2", 93, 26, 6),
    time("datetime", 93, 23, 3),
    time("smalldatetime", 93, 16, 0),
];

/// Columns of ASE's sp_datatype_info ("Catalog stored procedures", sp_datatype_info): those of ODBC 3 are SQL Server's.
const OF_ASE: usize = 15;

/// ASE's name of a type; None for one that it does not have.
fn ase_name(name: &'static str) -> Option<&'static str> {
    match name {
        "ntext" => Some("unitext"),
        "nvarchar" => Some("univarchar"),
        "nchar" => Some("unichar"),
        "datetime2" => Some("bigdatetime"),
        "sysname" => None,
        name => Some(name),
    }
}

/// ODBC 2 has other codes for dates and times.
fn of_odbc_2(code: i64) -> i64 {
    match code {
        91..=93 => code - 82,
        code => code,
    }
}

const SEARCHABLE: i64 = 3;
const ONLY_LIKE: i64 = 1;

/// @data_type = 0 for all, @ODBCVer = 2.
pub fn datatype_info(reply: &mut Reply, params: &[Param<'_>]) -> Result<Returned, ServerMessage> {
    let given = |name: &str, place: usize| {
        let named = params.iter().find(|param| param.is(name));
        let param = named.or_else(|| params.get(place).filter(|param| !param.is_named()))?;
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
    for t in &TYPES {
        let code = if odbc_2 { of_odbc_2(t.code) } else { t.code };
        let Some(name) = (if is_ase { ase_name(t.name) } else { Some(t.name) }) else { continue };
        if wanted != 0 && wanted != code && wanted != t.code {
            continue;
        }
        let text =
            |text: Option<&'static str>| text.map_or(Value::Null, |text| Value::Text(Cow::Borrowed(text)));
        let number = |number: Option<i64>| number.map_or(Value::Null, Value::Int);
        let is_time = (91..=93).contains(&t.code);
        let is_text = t.quotes.is_some() && !is_time && t.unsigned.is_none();
        let is_long = matches!(t.code, -10 | -4 | -1);
        let mut row = vec![
            text(Some(name)),
            Value::Int(code),
            Value::Int(t.precision),
            text(t.quotes.map(|(prefix, _)| prefix)),
            text(t.quotes.map(|(_, suffix)| suffix)),
            text(t.params),
            Value::Int(1),
            Value::Int(i64::from(is_text)),
            Value::Int(if is_long { ONLY_LIKE } else { SEARCHABLE }),
            number(t.unsigned.map(i64::from)),
            Value::Int(i64::from(t.name.ends_with("money"))),
            number(t.unsigned.map(|_| 0)),
            text(Some(name)),
            number(t.scales.map(|(least, _)| least)),
            number(t.scales.map(|(_, most)| most)),
            Value::Int(if is_time { 9 } else { t.code }),
            number(is_time.then_some(t.code - 90)),
            number(t.radix),
            Value::Null,
            Value::Int(0),
        ];
        row.truncate(width);
        rows.push(row);
    }
    let count = rows.len() as u64;
    reply.result_set(&columns, &rows)?;
    Ok(Returned::rows(Some(count)))
}
