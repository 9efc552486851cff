//! The types of columns: by their collation, and as PostgreSQL stores them.

use crate::error::Error;
use crate::facts::collations::{self, Collation};
use crate::facts::types::{Case, Type, DATETIME2};
use crate::resolve::Scope;
use crate::tree::Name;

/// The PostgreSQL type of a column of this T-SQL type: domains distinguish types that are one in PostgreSQL.
pub fn column_type(of: Type, line: u32) -> Result<String, Error> {
    if of.oid == DATETIME2.oid && matches!(of.fraction, Some(1 | 4)) {
        // digits that distinguish datetime and smalldatetime
        let what = format!("a column of {}({})", of.name, of.fraction.unwrap_or(0));
        return Err(Error::refused(&what, "take datetime2 without digits", line));
    }
    if of.name == "datetimeoffset" && of.fraction.is_some_and(|digits| digits < 6) {
        let what = format!("a column of datetimeoffset({})", of.fraction.unwrap_or(0));
        return Err(Error::refused(
            &what,
            "PostgreSQL rounds nothing on its way into one: take datetimeoffset",
            line,
        ));
    }
    if let Some((domain, _)) = of.domain_from_zero() {
        return Ok(format!("tsql.{domain}"));
    }
    Ok(match of.name {
        "tinyint" | "money" | "smallmoney" | "datetime" | "smalldatetime" => format!("tsql.{}", of.name),
        _ => of.sql(),
    })
}

/// The type of a column under its collation, or the database's. Errors 447 for a column that is not a text, 448 for an
/// unknown collation.
pub fn collated(of: Type, collation: Option<&Name>, scope: &Scope) -> Result<Type, Error> {
    let Some(collation) = collation else {
        return Ok(if scope.folds { of.with_case(Case::Ignored) } else { of });
    };
    if !of.is_text() {
        let text = format!("Expression type {} is invalid for COLLATE clause.", of.display_name());
        return Err(Error::new(447, text, collation.at).with_severity(16));
    }
    match scope.collation(&collation.text) {
        Some(Collation::Binary) => Ok(of),
        Some(Collation::Insensitive) if !collations::needs_language(&collation.text) => {
            Ok(of.with_case(Case::Ignored))
        }
        _ => {
            let why = "its order is that of a language: take one of Latin1_General_CI_AS, or a binary one";
            Err(Error::refused(&format!("collate {}", collation.text), why, collation.at))
        }
    }
}
