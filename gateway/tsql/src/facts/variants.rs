//! Functions that do not accept a sql_variant, which has no implicit conversions.
//!
//! SQL Server: "sql_variant (Transact-SQL)", "CAST and CONVERT"; the errors by function and argument are those that the
//! suite of mirek/bitsql recorded from SQL Server 2025 (`docs/reference/sql-variant.md`).

use super::conversions::message;

const NOT_BY_ITSELF: i32 = 257;
const INVALID_ARGUMENT: i32 = 8116;

/// These accept one, or refuse it themselves.
const TAKE_ONE: &[&str] = &[
    "avg",
    "choose",
    "coalesce",
    "count",
    "count_big",
    "datalength",
    "first_value",
    "greatest",
    "iif",
    "isnull",
    "lag",
    "last_value",
    "lead",
    "least",
    "max",
    "min",
    "nullif",
    "sql_variant_property",
    "stdev",
    "stdevp",
    "sum",
    "var",
    "varp",
];

const OF_FLOAT: &[&str] = &[
    "abs", "acos", "asin", "atan", "atan2", "atn2", "ceiling", "cos", "cot", "degrees", "exp", "floor",
    "log", "log10", "power", "radians", "round", "sign", "sin", "sqrt", "square", "str", "tan",
];

/// The error for a sql_variant as this argument, counted from 0; None if it is allowed.
pub fn refusal(function: &str, index: usize) -> Option<(i32, String)> {
    if TAKE_ONE.binary_search(&function).is_ok() && (function, index) != ("choose", 0) {
        return None;
    }
    let target = match (function, index) {
        (name, 0) if OF_FLOAT.contains(&name) => "float",
        ("choose", _) | ("space" | "char" | "object_name" | "db_name", _) | ("left" | "right", 1) => "int",
        (name, _) if name.ends_with("fromparts") => "int",
        ("datepart" | "datename" | "year" | "month" | "day" | "datediff" | "datediff_big", _) => "datetime",
        ("dateadd", 2) => "datetime",
        ("quotename" | "object_id" | "db_id", _) => "nvarchar",
        ("concat" | "concat_ws", _) | ("charindex", 1) => "varchar",
        _ => {
            let text = format!(
                "Argument data type sql_variant is invalid for argument {} of {function} function.",
                index + 1
            );
            return Some((INVALID_ARGUMENT, text));
        }
    };
    Some((NOT_BY_ITSELF, message(NOT_BY_ITSELF, "sql_variant", target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_error_an_argument_has() {
        let number = |function, index| refusal(function, index).map(|(number, _)| number);
        assert_eq!(
            (number("upper", 0), number("abs", 0), number("choose", 0)),
            (Some(8116), Some(257), Some(257))
        );
        assert_eq!((number("isnull", 1), number("choose", 1), number("max", 0)), (None, None, None));
        assert!(TAKE_ONE.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
