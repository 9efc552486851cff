//! Which type converts to which: by itself, where a value is assigned, and by CAST and CONVERT.
//!
//! SQL Server: the chart of "CAST and CONVERT"; its cells for assignments and their errors, and the pairs that CAST
//! refuses, as the suite of RyanLamansky/sql-server-simulator has them from SQL Server 2025
//! (`SqlType.PairRules.cs`, `ConversionLegalityTests.cs`). ASE: Transact-SQL Users Guide, "Explicit, implicit, and
//! unsupported datatype conversions". What ASE wants convert() for between texts, bits and numbers is done without it.

use super::types::{Family, Type};

/// Types that convert alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Bit,
    Integer,
    Exact,
    Float,
    Varchar,
    Text,
    Binary,
    Image,
    Guid,
    DateTime,
    Date,
    Time,
    DateTime2,
    Xml,
}

use Class::*;

/// All of them, in the order of the charts, with the name that schema tsql knows each by.
pub const CLASSES: [(Class, &str); 14] = [
    (Bit, "bit"),
    (Integer, "int"),
    (Exact, "numeric"),
    (Float, "float"),
    (Varchar, "varchar"),
    (Text, "text"),
    (Binary, "varbinary"),
    (Image, "image"),
    (Guid, "uniqueidentifier"),
    (DateTime, "datetime"),
    (Date, "date"),
    (Time, "time"),
    (DateTime2, "datetime2"),
    (Xml, "xml"),
];

/// SQL Server: from a row's class to a column's, both in the order of `CLASSES`. `i`: by itself; `e`: by CAST only, an
/// assignment is error 257; `x`: not at all, an assignment is error 206 and a CAST 529; `v`: the same with 257.
const SQL_SERVER: [&str; 14] = [
    "iiiiixixxixxxx", // bit
    "iiiiixixxixxxx", // int
    "iiiiixixxixxxx", // numeric
    "iiiiixixxixxxx", // float
    "iiiiiieiiiiiii", // varchar
    "xxxxiixxxxxxxi", // text
    "iiixixiiiieeei", // varbinary
    "xxxxxxiixxxxxx", // image
    "xxxxixixixxxxx", // uniqueidentifier
    "eeeeixexxiiiix", // datetime
    "xxxxixexxiixix", // date
    "xxxxixexxixiix", // time
    "xxxxixexxiiiix", // datetime2
    "xxxxexexxxxxxi", // xml
];

/// ASE, the same; what it does not have is as in SQL Server.
const ASE: [&str; 14] = [
    "iiiiixixxvxxxx", // bit
    "iiiiixixxvxxxx", // int
    "iiiiixixxvxxxx", // numeric
    "iiiiixixxvxxxx", // float
    "iiiiiiiiiiiiii", // varchar
    "xxxxiixxxxxxxi", // text
    "iiixixiiiveeei", // varbinary
    "xxxxxxiixxxxxx", // image
    "xxxxixixixxxxx", // uniqueidentifier
    "vvvvixixxiiiix", // datetime
    "xxxxixixxiixix", // date
    "xxxxixixxixiix", // time
    "xxxxixixxiiiix", // datetime2
    "xxxxexexxxxxxi", // xml
];

/// An assignment between types whose values do not meet.
const CLASH: i32 = 206;
/// One that wants CONVERT.
const NOT_BY_ITSELF: i32 = 257;

pub fn name(class: Class) -> &'static str {
    CLASSES[class as usize].1
}

pub fn class(of: Type) -> Class {
    match (of.family, of.name) {
        (Family::Bit, _) => Bit,
        (Family::Integer, _) => Integer,
        (Family::Decimal | Family::Money, _) => Exact,
        (Family::Float, _) => Float,
        (Family::Text, "text") => Text,
        (Family::Text, _) => Varchar,
        (Family::Binary, "image") => Image,
        (Family::Binary, _) => Binary,
        (Family::Guid, _) => Guid,
        (Family::DateTime, "datetime" | "smalldatetime") => DateTime,
        (Family::DateTime, _) => DateTime2,
        (Family::Date, _) => Date,
        (Family::Time, _) => Time,
        (Family::Xml, _) => Xml,
    }
}

fn cell(source: Class, target: Class, sybase: bool) -> u8 {
    let chart = if sybase { &ASE } else { &SQL_SERVER };
    chart[source as usize].as_bytes()[target as usize]
}

/// The error of an assignment; None where the value converts by itself.
pub fn assignment_error(source: Class, target: Class, sybase: bool) -> Option<i32> {
    match cell(source, target, sybase) {
        b'i' => None,
        b'e' | b'v' => Some(NOT_BY_ITSELF),
        _ => Some(CLASH),
    }
}

/// Whether CAST and CONVERT take the pair.
pub fn casts(source: Class, target: Class, sybase: bool) -> bool {
    matches!(cell(source, target, sybase), b'i' | b'e')
}

/// What an error of `assignment_error` says.
pub fn message(number: i32, source: &str, target: &str) -> String {
    if number == CLASH {
        format!("Operand type clash: {source} is incompatible with {target}")
    } else {
        format!(
            "Implicit conversion from data type {source} to {target} is not allowed. \
             Use the CONVERT function to run this query."
        )
    }
}

/// The function of schema tsql that says the same where only PostgreSQL knows a type.
pub fn sql() -> String {
    let mut branches = String::new();
    for sybase in [false, true] {
        for (source, name) in CLASSES {
            for number in [CLASH, NOT_BY_ITSELF] {
                let targets: Vec<String> = CLASSES
                    .iter()
                    .filter(|(target, _)| assignment_error(source, *target, sybase) == Some(number))
                    .map(|(_, target)| format!("'{target}'"))
                    .collect();
                if !targets.is_empty() {
                    let dialect = if sybase { "sybase" } else { "not sybase" };
                    let targets = targets.join(", ");
                    branches.push_str(&format!(
                        "    when {dialect} and source = '{name}' and target in ({targets})\n      then {number}\n"
                    ));
                }
            }
        }
    }
    include_str!("conversions.sql")
        .replace("{branches}", &branches)
        .replace("{clash}", &CLASH.to_string())
        .replace("{clashing}", &message(CLASH, "%s", "%s"))
        .replace("{not_by_itself}", &message(NOT_BY_ITSELF, "%s", "%s"))
}
