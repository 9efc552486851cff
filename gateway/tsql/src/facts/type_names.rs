//! The types by their names in declarations.

use super::types::*;
use crate::error::Error;
use crate::tree::{TypeArgument, TypeName};
use crate::Dialect;

/// The arguments that may follow the name of a type in parentheses.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Nothing,
    Length,
    Digits,
    /// For a float: up to 24 binary digits are a real.
    Mantissa,
    Fraction,
}

/// The types by their names in declarations.
const NAMES: &[(&str, Type, Takes)] = &[
    ("bigdatetime", DATETIME2, Takes::Fraction),
    ("bigint", BIGINT, Takes::Nothing),
    ("bigtime", TIME, Takes::Fraction),
    ("binary", BINARY, Takes::Length),
    ("binary varying", VARBINARY, Takes::Length),
    ("bit", BIT, Takes::Nothing),
    ("char", CHAR, Takes::Length),
    ("char varying", VARCHAR, Takes::Length),
    ("character", CHAR, Takes::Length),
    ("character varying", VARCHAR, Takes::Length),
    ("date", DATE, Takes::Nothing),
    ("datetime", DATETIME, Takes::Nothing),
    ("datetime2", DATETIME2, Takes::Fraction),
    ("datetimeoffset", DATETIMEOFFSET, Takes::Fraction),
    ("dec", decimal(18, 0), Takes::Digits),
    ("decimal", decimal(18, 0), Takes::Digits),
    ("double precision", FLOAT, Takes::Nothing),
    ("float", FLOAT, Takes::Mantissa),
    ("image", IMAGE, Takes::Nothing),
    ("int", INT, Takes::Nothing),
    ("integer", INT, Takes::Nothing),
    ("longsysname", Type { length: Some(255), ..SYSNAME }, Takes::Nothing),
    ("money", MONEY, Takes::Nothing),
    ("national char", CHAR.twin(), Takes::Length),
    ("national char varying", VARCHAR.twin(), Takes::Length),
    ("national character", CHAR.twin(), Takes::Length),
    ("national character varying", VARCHAR.twin(), Takes::Length),
    ("national text", TEXT.twin(), Takes::Nothing),
    ("nchar", CHAR.twin(), Takes::Length),
    ("nchar varying", VARCHAR.twin(), Takes::Length),
    ("ntext", TEXT.twin(), Takes::Nothing),
    ("numeric", numeric(18, 0), Takes::Digits),
    ("nvarchar", VARCHAR.twin(), Takes::Length),
    ("real", REAL, Takes::Nothing),
    ("rowversion", ROWVERSION, Takes::Nothing),
    ("smalldatetime", SMALLDATETIME, Takes::Nothing),
    ("smallint", SMALLINT, Takes::Nothing),
    ("smallmoney", SMALLMONEY, Takes::Nothing),
    ("sql_variant", SQL_VARIANT, Takes::Nothing),
    ("sysname", SYSNAME, Takes::Nothing),
    ("text", TEXT, Takes::Nothing),
    ("time", TIME, Takes::Fraction),
    ("timestamp", ROWVERSION, Takes::Nothing),
    ("tinyint", TINYINT, Takes::Nothing),
    ("ubigint", numeric(20, 0).without_sign(), Takes::Nothing),
    ("uint", BIGINT.without_sign(), Takes::Nothing),
    ("uinteger", BIGINT.without_sign(), Takes::Nothing),
    ("unichar", CHAR.twin(), Takes::Length),
    ("uniqueidentifier", GUID, Takes::Nothing),
    ("unitext", TEXT.twin(), Takes::Nothing),
    ("univarchar", VARCHAR.twin(), Takes::Length),
    ("usmallint", INT.without_sign(), Takes::Nothing),
    ("utinyint", TINYINT, Takes::Nothing),
    ("varbinary", VARBINARY, Takes::Length),
    ("varchar", VARCHAR, Takes::Length),
    ("xml", XML, Takes::Nothing),
];

const LONGEST: u32 = 65_535;

/// The names of all types, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, ..)| *name)
}

/// Whether a name in lower case is that of a type.
pub fn is_known(name: &str) -> bool {
    NAMES.binary_search_by(|(known, ..)| (*known).cmp(name)).is_ok()
}

/// The type `name(arguments)`; None among the arguments is `max`.
///
/// `default_length`: of char, varchar, binary and varbinary without a length: 1 in a declaration, 30 in a conversion.
/// Errors: 2715 for an unknown type, 2716 for a length on a type that takes none, 1001 for an invalid length or
/// precision, 192 for a scale greater than the precision.
pub fn named(name: &str, arguments: &[Option<u32>], line: u32, default_length: u32) -> Result<Type, Error> {
    let name = name.to_ascii_lowercase();
    let found = NAMES.binary_search_by(|(known, ..)| (*known).cmp(name.as_str()));
    let wrong =
        || Err(Error::new(1001, format!("Length or precision specification of {name} is invalid."), line));
    let Some((_, of, takes)) = found.ok().map(|index| NAMES[index]) else {
        let text = format!("Cannot find data type {name}: ringlog has no such type.");
        return Err(Error::new(2715, text, line).with_severity(16));
    };
    Ok(match (takes, arguments) {
        (Takes::Nothing, []) | (Takes::Mantissa | Takes::Fraction | Takes::Digits, []) => of,
        (Takes::Length, []) => Type { length: Some(default_length), ..of },
        (Takes::Length, [None]) => of,
        (Takes::Length, [Some(length)]) if (1..=LONGEST).contains(length) => {
            Type { length: Some(*length), ..of }
        }
        (Takes::Digits, [Some(digits), rest @ ..]) if (1..=u32::from(MOST_DIGITS)).contains(digits) => {
            let scale = match rest {
                [] => 0,
                [Some(scale)] => *scale,
                _ => return wrong(),
            };
            if scale > *digits {
                let text = "The scale must be less than or equal to the precision and must be positive.";
                return Err(Error::new(192, text, line));
            }
            Type { twin: of.twin, ..decimal(*digits as u8, scale as u8) }
        }
        (Takes::Mantissa, [Some(digits)]) if (1..=53).contains(digits) => {
            if *digits <= 24 {
                REAL
            } else {
                FLOAT
            }
        }
        (Takes::Fraction, [Some(digits)]) if *digits <= u32::from(MOST_FRACTION) => {
            Type { fraction: (*digits < u32::from(MOST_FRACTION)).then_some(*digits as u8), ..of }
        }
        (Takes::Nothing, _) => {
            let text = format!(
                "Column, parameter, or variable #1: Cannot specify a column width on data type {name}."
            );
            return Err(Error::new(2716, text, line).with_severity(16));
        }
        _ => return wrong(),
    })
}

/// The type with this name; see `named`. Errors 131 and 2717 for a text or binary longer than SQL Server's.
pub fn of_name(name: &TypeName, default_length: u32, dialect: &Dialect) -> Result<Type, Error> {
    let number = |argument: &TypeArgument| match argument {
        TypeArgument::Max => None,
        // a number out of range is refused as too long
        TypeArgument::Number(number) => Some(u32::try_from(*number).unwrap_or(u32::MAX)),
    };
    let arguments: Vec<_> = name.arguments.iter().map(number).collect();
    let of = named(&name.name, &arguments, name.at.line, default_length)?;
    if dialect.limits_lengths && matches!(of.family, Family::Text | Family::Binary) {
        fits_a_page(of, name)?;
    }
    Ok(of)
}

/// The type of a variable. Error 2739: SQL Server's variables cannot be text, ntext or image, only parameters can.
pub fn of_variable(name: &TypeName, dialect: &Dialect) -> Result<Type, Error> {
    let of = of_name(name, 1, dialect)?;
    if !dialect.large_values_stand_alone && of.is_large() {
        let text = "The text, ntext, and image data types are invalid for local variables.";
        return Err(Error::new(2739, text, name.at.line).with_severity(16));
    }
    Ok(of)
}

/// The type of a function's value. Error 2733: SQL Server's functions cannot return text, ntext or image.
pub fn of_returned(name: &TypeName, dialect: &Dialect) -> Result<Type, Error> {
    let of = of_name(name, 1, dialect)?;
    if !dialect.large_values_stand_alone && of.is_large() {
        let text = format!("The {} data type is invalid for return values.", of.display_name());
        return Err(Error::new(2733, text, name.at.line).with_severity(16));
    }
    Ok(of)
}

/// "char and varchar", "nchar and nvarchar", "binary and varbinary": a type with a length has at most 8,000 bytes.
fn fits_a_page(of: Type, name: &TypeName) -> Result<(), Error> {
    let shown = of.display_name();
    let (longest, number) = match of.length {
        Some(length) if length > LONGEST_VARCHAR => (LONGEST_VARCHAR, 131),
        Some(length) if of.twin && length > LONGEST_VARCHAR / 2 => (LONGEST_VARCHAR / 2, 2717),
        _ => return Ok(()),
    };
    let (of_any, severity) = if number == 131 { (" for any data type", 15) } else { ("", 16) };
    let length = of.length.unwrap_or_default();
    let text = format!(
        "The size ({length}) given to the type '{shown}' exceeds the maximum allowed{of_any} ({longest})."
    );
    Err(Error::new(number, text, name.at.line).with_severity(severity))
}

/// The declared type of a column, such as `varchar(20)`, if it follows neither from PostgreSQL's type nor from a domain
/// of schema tsql; otherwise "".
pub fn declared_type(name: &TypeName, default_length: u32) -> String {
    let Some((base, takes_length)) = declared_base(name) else { return String::new() };
    match name.arguments.as_slice() {
        // PostgreSQL stores its digits
        _ if base == "decimal" => base.to_owned(),
        [TypeArgument::Max] => format!("{base}(max)"),
        [TypeArgument::Number(number)] => format!("{base}({number})"),
        _ if takes_length => format!("{base}({default_length})"),
        _ => base.to_owned(),
    }
}

/// The name of such a type, and whether it has a length.
pub fn declared_base(name: &TypeName) -> Option<(&'static str, bool)> {
    Some(match name.name.as_str() {
        "char" | "character" => ("char", true),
        "varchar" | "char varying" | "character varying" => ("varchar", true),
        "text" => ("text", false),
        "ntext" | "national text" | "unitext" => ("ntext", false),
        "binary" => ("binary", true),
        "varbinary" | "binary varying" => ("varbinary", true),
        "image" => ("image", false),
        "timestamp" | "rowversion" => ("timestamp", false),
        "time" => ("time", false),
        "datetime2" => ("datetime2", false),
        "datetimeoffset" => ("datetimeoffset", false),
        "dec" | "decimal" => ("decimal", false),
        "sysname" => ("sysname", false),
        _ => return None,
    })
}

/// The inverse of `Type::declared`; None for any other text.
pub fn declared(text: &str) -> Option<Type> {
    let (name, arguments) = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((name, "max")) => (name, vec![None]),
        Some((name, arguments)) => {
            let numbers = arguments.split(',').map(|number| number.parse().ok().map(Some));
            (name, numbers.collect::<Option<Vec<_>>>()?)
        }
        None => (text, Vec::new()),
    };
    named(name, &arguments, 0, 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn types_as_they_are_declared() {
        let sql = |name: &str, arguments: &[Option<u32>]| match named(name, arguments, 1, 1) {
            Ok(of) => of.sql(),
            Err(error) => error.number.to_string(),
        };
        for (name, arguments, expected) in [
            ("int", &[][..], "integer"),
            ("INT", &[], "integer"),
            ("varchar", &[], "varchar(1)"),
            ("varchar", &[None], "varchar"),
            ("nvarchar", &[Some(40)], "varchar(40)"),
            ("char varying", &[Some(3)], "varchar(3)"),
            ("decimal", &[], "numeric(18,0)"),
            ("decimal", &[Some(10), Some(2)], "numeric(10,2)"),
            ("decimal", &[Some(10), Some(11)], "192"),
            ("decimal", &[Some(39)], "1001"),
            ("float", &[Some(24)], "real"),
            ("float", &[Some(25)], "double precision"),
            ("float", &[Some(54)], "1001"),
            ("datetime2", &[Some(7)], "timestamp"),
            ("datetime2", &[Some(3)], "timestamp(3)"),
            ("datetimeoffset", &[Some(0)], "tsql.datetimeoffset"),
            ("datetime2", &[Some(8)], "1001"),
            ("int", &[Some(4)], "2716"),
            ("geography", &[], "2715"),
            ("varchar", &[Some(0)], "1001"),
        ] {
            assert_eq!(sql(name, arguments), expected, "{name} {arguments:?}");
        }
    }

    #[test]
    fn one_type_of_several() {
        let one = |types: &[Type]| unified(types.iter().copied());
        assert_eq!(one(&[INT, FLOAT, REAL]), FLOAT);
        assert_eq!(one(&[INT, decimal(5, 2)]), decimal(12, 2));
        assert_eq!(one(&[varchar(Some(3)), varchar(Some(9))]), varchar(Some(9)));
        // measured of SQL Server: it outranks every other text
        assert_eq!(one(&[varchar(Some(3)), TEXT]), TEXT);
        assert_eq!(one(&[TINYINT, SMALLINT, BIT]), SMALLINT);
        assert_eq!(one(&[varchar(Some(3)), DATETIME]), DATETIME);
        assert_eq!(unified([INT, UNKNOWN]), UNKNOWN);
    }
}
