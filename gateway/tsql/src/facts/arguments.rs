//! Types that functions of SQL Server refuse as an argument (error 8116): the pages of the functions, and what SQL Server
//! 2025 answers.

use super::types::{Family, Type, NULL};

/// A kind of arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// The word NULL.
    Null,
    Text,
    /// text, ntext and image
    Large,
    /// No text, ntext or image.
    Small,
    Bit,
    Number,
    Time,
    /// Types of times since SQL Server 2008.
    NewTime,
}

use Kind::{Bit, Large, NewTime, Null, Number, Small, Text, Time};

/// In alphabetical order; arguments are counted from 0.
const REFUSED: &[(&str, usize, &[Kind])] = &[
    ("charindex", 0, &[Number, Time, Large]),
    ("dateadd", 1, &[Text]),
    ("format", 1, &[Null]),
    ("isdate", 0, &[NewTime]),
    ("left", 0, &[Large]),
    ("len", 0, &[Large]),
    ("lower", 0, &[Large]),
    ("ltrim", 0, &[Large]),
    ("patindex", 1, &[Null, Number, Time]),
    ("replace", 0, &[Large]),
    ("replace", 1, &[Large]),
    ("replace", 2, &[Large]),
    ("reverse", 0, &[Large]),
    ("right", 0, &[Large]),
    ("round", 1, &[Text]),
    ("round", 2, &[Text]),
    ("rtrim", 0, &[Large]),
    ("string_agg", 0, &[Null, Bit]),
    ("stuff", 0, &[Large]),
    ("textptr", 0, &[Small]),
    ("trim", 0, &[Large]),
    ("upper", 0, &[Large]),
];

impl Kind {
    fn has(self, of: Type) -> bool {
        match self {
            Null => of == NULL,
            Text => of.is_text(),
            Large => of.is_large(),
            Small => of.is_tsql() && !of.is_large(),
            Bit => of.family == Family::Bit,
            Number => of.is_number(),
            Time => of.is_time(),
            NewTime => of.is_time() && !matches!(of.name, "datetime" | "smalldatetime"),
        }
    }
}

/// The text of error 8116 for an argument of this type; None if it is accepted.
pub fn refusal(function: &str, index: usize, of: Type) -> Option<String> {
    let rows = REFUSED.iter().filter(|row| (row.0, row.1) == (function, index));
    rows.flat_map(|row| row.2).any(|kind| kind.has(of)).then(|| message(function, index, of))
}

/// Error 8116.
pub fn message(function: &str, index: usize, of: Type) -> String {
    let (of, number) = (of.display_name(), index + 1);
    format!("Argument data type {of} is invalid for argument {number} of {function} function.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::types::{varchar, BIT, DATE, DATETIME, INT, NULL, TEXT};

    #[test]
    fn arguments_that_are_refused() {
        let is_refused = |function, index, of| refusal(function, index, of).is_some();
        assert!(is_refused("round", 1, varchar(Some(1))) && !is_refused("round", 0, varchar(None)));
        assert!(is_refused("patindex", 1, NULL) && !is_refused("patindex", 0, NULL));
        assert!(is_refused("isdate", 0, DATE) && !is_refused("isdate", 0, DATETIME));
        assert!(is_refused("upper", 0, TEXT) && !is_refused("upper", 0, INT));
        assert!(is_refused("string_agg", 0, BIT) && is_refused("textptr", 0, varchar(None)));
    }

    #[test]
    fn rows_are_in_order() {
        assert!(REFUSED.windows(2).all(|pair| (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1)));
    }
}
