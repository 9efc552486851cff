//! Which type converts to which: implicitly, in an assignment, and by CAST and CONVERT.
//!
//! SQL Server: the chart of "CAST and CONVERT"; its cells for assignments and their errors, and the pairs that CAST
//! refuses, from SQL Server 2025 in the suite of RyanLamansky/sql-server-simulator (`SqlType.PairRules.cs`,
//! `ConversionLegalityTests.cs`); operators of sql_variants from mirek/bitsql (`docs/reference/sql-variant.md`). ASE:
//! Transact-SQL Users Guide, "Explicit, implicit, and unsupported datatype conversions". Conversions between texts,
//! bits and numbers for which ASE requires convert() are implicit here.

use super::type_names;
use super::types::{Family, Type};
use crate::Dialect;

/// Classes of types with the same conversions.
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
    Variant,
}

use Class::*;

/// All classes in the order of the charts, each with its name in schema tsql.
pub const CLASSES: [(Class, &str); 15] = [
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
    (Variant, "sql_variant"),
];

pub type Chart = [&'static str; 15];

/// SQL Server: from a row's class to a column's, both in the order of `CLASSES`. `i`: implicitly; `e`: by CAST only, an
/// assignment is error 257; `x`: never, an assignment is error 206 and a CAST 529; `v`: the same with 257.
pub const SQL_SERVER: Chart = [
    "iiiiixixxixxxxi", // bit
    "iiiiixixxixxxxi", // int
    "iiiiixixxixxxxi", // numeric
    "iiiiixixxixxxxi", // float
    "iiiiiieiiiiiiii", // varchar
    "xxxxiixxxxxxxix", // text
    "iiixixiiiieeeii", // varbinary
    "xxxxxxiixxxxxxx", // image
    "xxxxixixixxxxxi", // uniqueidentifier
    "eeeeixexxiiiixi", // datetime
    "xxxxixexxiixixi", // date
    "xxxxixexxixiixi", // time
    "xxxxixexxiiiixi", // datetime2
    "xxxxexexxxxxxix", // xml
    "eeeeexexeeeeexi", // sql_variant
];

/// The chart of ASE; types that ASE lacks convert as in SQL Server.
pub const ASE: Chart = [
    "iiiiixixxvxxxxi", // bit
    "iiiiixixxvxxxxi", // int
    "iiiiixixxvxxxxi", // numeric
    "iiiiixixxvxxxxi", // float
    "iiiiiiiiiiiiiii", // varchar
    "xxxxiixxxxxxxix", // text
    "iiixixiiiveeeii", // varbinary
    "xxxxxxiixxxxxxx", // image
    "xxxxixixixxxxxi", // uniqueidentifier
    "vvvvixixxiiiixi", // datetime
    "xxxxixixxiixixi", // date
    "xxxxixixxixiixi", // time
    "xxxxixixxiiiixi", // datetime2
    "xxxxexexxxxxxix", // xml
    "eeeeexexeeeeexi", // sql_variant
];

/// An assignment between incompatible types.
pub const CLASH: i32 = 206;
const INCOMPATIBLE: i32 = 402;
const INVALID: i32 = 8117;
const NOT_COMPARED: i32 = 305;
/// An assignment that requires CONVERT.
pub const NOT_BY_ITSELF: i32 = 257;

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
        (Family::Variant | Family::Postgres, _) => Variant,
    }
}

fn cell(source: Class, target: Class, chart: &Chart) -> u8 {
    chart[source as usize].as_bytes()[target as usize]
}

/// The error of an assignment; None if the conversion is implicit.
pub fn assignment_error(source: Class, target: Class, chart: &Chart) -> Option<i32> {
    match cell(source, target, chart) {
        b'i' => None,
        b'e' | b'v' => Some(NOT_BY_ITSELF),
        _ => Some(CLASH),
    }
}

/// Whether CAST and CONVERT convert the pair.
pub fn casts(source: Class, target: Class, chart: &Chart) -> bool {
    matches!(cell(source, target, chart), b'i' | b'e')
}

/// The text of an error of `assignment_error`.
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

/// Whether values of this type are sorted, and so compared with each other.
pub fn is_sorted(of: Type, dialect: &Dialect) -> bool {
    dialect.large_values_compare || !of.is_large()
}

/// 306: text, ntext and image are not.
pub fn unsorted() -> (i32, String) {
    let text = "The text, ntext, and image data types cannot be compared or sorted, except when using IS NULL or LIKE operator.";
    (306, String::from(text))
}

/// The name of an operator in errors.
pub fn verb(operator: &str) -> &str {
    match operator {
        "=" => "equal to",
        "<>" => "not equal to",
        "<" => "less than",
        "<=" => "less than or equal to",
        ">" => "greater than",
        ">=" => "greater than or equal to",
        "+" => "add",
        "-" => "subtract",
        "*" => "multiply",
        "/" => "divide",
        "%" => "modulo",
        "||" => "concat",
        other => other,
    }
}

/// ASE's error of a text operator with a value that must be converted to text (Transact-SQL Users Guide, "String
/// operators"); None if the conversion is implicit, and for other operators.
pub fn text_error(operator: &str, left: Type, right: Type) -> Option<(i32, String)> {
    let needs = |of: Type| matches!(class(of), Bit | DateTime | Date | Time | DateTime2 | Guid);
    let (other, text) = match (left.is_text(), right.is_text()) {
        (true, false) => (right, left),
        (false, true) => (left, right),
        _ => return None,
    };
    (operator == "+" && needs(other))
        .then(|| (NOT_BY_ITSELF, message(NOT_BY_ITSELF, other.display_name(), text.display_name())))
}

/// SQL Server's error for an operator that is not defined for these types; None if it is defined, or unknown here. 206:
/// no implicit conversion between the types ("Data type precedence"); 402: the types are convertible, but have no such
/// operator; 8117: both are of one type, which has no such operator.
pub fn operator_error(operator: &str, left: Type, right: Type) -> Option<(i32, String)> {
    let (l, r) = (class(left), class(right));
    let is_number = |of: Class| matches!(of, Bit | Integer | Exact | Float);
    let is_time = |of: Class| matches!(of, DateTime | Date | Time | DateTime2);
    let compares = matches!(operator, "=" | "<>" | "<" | "<=" | ">" | ">=");
    let incompatible = || {
        let (left, right, verb) = (left.display_name(), right.display_name(), verb(operator));
        let text = match operator {
            "&" | "|" | "^" => {
                format!("The data types {left} and {right} are incompatible in the '{verb}' operator.")
            }
            _ => format!("The data types {left} and {right} are incompatible in the {verb} operator."),
        };
        Some((INCOMPATIBLE, text))
    };
    let invalid = || {
        let text =
            format!("Operand data type {} is invalid for {} operator.", left.display_name(), verb(operator));
        Some((INVALID, text))
    };
    let refused = |number: i32, one: Type, other: Type| {
        Some((number, message(number, one.display_name(), other.display_name())))
    };
    let clash = |one, other| refused(CLASH, one, other);
    match (l, r) {
        (Text | Image, Text | Image) if compares => Some(unsorted()),
        (Text | Image, Varchar | Binary) | (Varchar | Binary, Text | Image) if compares => incompatible(),
        (Text | Image, _) if compares => clash(left, right),
        (_, Text | Image) if compares => clash(right, left),
        (Variant, Variant) if matches!(operator, "&" | "|" | "^") => {
            let text = format!("Operand data type sql_variant is invalid for '{operator}' operator.");
            Some((INVALID, text))
        }
        (Variant, Integer | Exact | Float) if matches!(operator, "+" | "-" | "*" | "/") => {
            refused(NOT_BY_ITSELF, left, right)
        }
        (Integer | Exact | Float, Variant) if matches!(operator, "+" | "-" | "*" | "/") => {
            refused(NOT_BY_ITSELF, right, left)
        }
        (Variant, _) | (_, Variant) if !compares => incompatible(),
        (Xml, _) | (_, Xml) if compares => {
            let text =
                "The xml data type cannot be compared or sorted, except when using the IS NULL operator.";
            Some((NOT_COMPARED, text.to_owned()))
        }
        // a datetime as the other operand is a number of days
        (Date | Time | DateTime2 | Guid, other) if is_number(other) => clash(left, right),
        (other, Date | Time | DateTime2 | Guid) if is_number(other) => clash(right, left),
        (Guid, other) if is_time(other) => clash(left, right),
        (other, Guid) if is_time(other) => clash(right, left),
        (Time, DateTime | Date | DateTime2) | (DateTime | Date | DateTime2, Time) if compares => {
            incompatible()
        }
        (one, other)
            if !compares && is_time(one) && is_time(other) && (one, other) != (DateTime, DateTime) =>
        {
            if left.name == right.name {
                invalid()
            } else {
                incompatible()
            }
        }
        // "+ (Addition)", "+ (String concatenation)": not with dates, times or bits
        (one, other) | (other, one)
            if !compares
                && matches!(one, Varchar | Text)
                && matches!(other, Bit | Date | Time | DateTime2 | Guid) =>
        {
            if (l == Bit || r == Bit) && matches!(operator, "*" | "/") {
                invalid()
            } else {
                incompatible()
            }
        }
        (Bit, Bit) if matches!(operator, "+" | "-" | "%") => incompatible(),
        (one, other)
            if operator == "||" && ![one, other].iter().any(|of| matches!(of, Varchar | Text | Binary)) =>
        {
            incompatible()
        }
        (Varchar, Exact | Float) | (Exact | Float, Varchar) if operator == "%" => incompatible(),
        (Bit, Bit) if matches!(operator, "*" | "/") => invalid(),
        (Guid, Guid) if !compares => invalid(),
        (Binary, Binary) if matches!(operator, "*" | "/") => invalid(),
        (Binary, Binary) if matches!(operator, "-" | "%" | "&" | "|" | "^") => incompatible(),
        (Binary, Varchar) | (Varchar, Binary) if !compares => incompatible(),
        (Binary, Float) | (Float, Binary) if matches!(operator, "%" | "&" | "|" | "^") => incompatible(),
        (Binary, Float) if !compares => clash(left, right),
        (Float, Binary) if !compares => clash(right, left),
        (Float, Float) if operator == "%" => invalid(),
        (Float, other) | (other, Float) if is_number(other) && matches!(operator, "%" | "&" | "|" | "^") => {
            incompatible()
        }
        (Exact | Varchar | DateTime, Integer | Bit) | (Integer | Bit, Exact | Varchar | DateTime)
            if matches!(operator, "&" | "|" | "^") =>
        {
            incompatible()
        }
        // a number of days can be added to a time or subtracted
        (DateTime, other) if is_number(other) && matches!(operator, "*" | "/" | "%") => {
            refused(NOT_BY_ITSELF, left, right)
        }
        (other, DateTime) if is_number(other) && matches!(operator, "*" | "/" | "%") => {
            operator_error(operator, right, left)
        }
        _ => None,
    }
}

/// Types that PostgreSQL distinguishes as T-SQL does, and the type of a number or time combined with one.
const DISTINCT: [&str; 2] = ["date", "time"];
const BESIDE: [(&str, &str); 8] = [
    ("boolean", "bit"),
    ("integer", "int"),
    ("numeric", "numeric"),
    ("double precision", "float"),
    ("date", "date"),
    ("time", "time"),
    ("timestamp", "datetime"),
    ("timestamptz", "datetime2"),
];

const OPERATORS: [&str; 11] = ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"];

/// The rows of tsql.refused_operators: the operators of two types that have the same error, with `%s` for their verb.
fn refused_operators() -> String {
    let mut rows: Vec<([&str; 2], i32, String, Vec<&str>)> = Vec::new();
    for (left, left_type) in BESIDE {
        for (right, right_type) in BESIDE {
            if !DISTINCT.contains(&left) && !DISTINCT.contains(&right) {
                continue;
            }
            let [Some(l), Some(r)] = [left_type, right_type].map(type_names::declared) else { continue };
            for operator in OPERATORS {
                let Some((number, text)) = operator_error(operator, l, r) else { continue };
                let text = text.replace(&format!("{} operator", verb(operator)), "%s operator");
                match rows.last_mut().filter(|row| row.0 == [left, right] && row.2 == text) {
                    Some(row) => row.3.push(operator),
                    None => rows.push(([left, right], number, text, vec![operator])),
                }
            }
        }
    }
    let row = |([left, right], number, text, operators): &([&str; 2], i32, String, Vec<&str>)| {
        format!("  ('{}', '{left}', '{right}', {number}, '{text}')", operators.join(" "))
    };
    rows.iter().map(row).collect::<Vec<_>>().join(",\n")
}

/// The same facts as SQL, for types that only PostgreSQL knows (sql/conversions/chart.sql).
pub fn tables() -> Vec<(&'static str, String)> {
    let row = |((_, name), (sql_server, ase)): ((Class, &str), (&str, &str))| {
        format!("  when '{name}' then case when sybase then '{ase}' else '{sql_server}' end\n")
    };
    let chart: String = CLASSES.into_iter().zip(SQL_SERVER.into_iter().zip(ASE)).map(row).collect();
    let verbs = OPERATORS.map(|operator| format!("('{operator}', '{}')", verb(operator)));
    vec![
        ("chart", chart),
        ("classes", CLASSES.map(|(_, name)| name).join(",")),
        ("operators", refused_operators()),
        ("verbs", verbs.join(", ")),
        ("clash", CLASH.to_string()),
        ("clashing", message(CLASH, "%s", "%s")),
        ("by_convert", NOT_BY_ITSELF.to_string()),
        ("not_by_itself", message(NOT_BY_ITSELF, "%s", "%s")),
    ]
}
