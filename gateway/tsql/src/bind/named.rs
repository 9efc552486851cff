//! The sources and declarations of the columns that a select can name.

use crate::facts::types::Type;
use crate::resolve::names::stored;
use crate::schema::{Column, Table};
use crate::tree::TableSource;
use std::collections::HashMap;

/// The declaration of a column of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its type, if known.
    pub of: Option<Type>,
    /// It is a national text.
    pub is_wide: bool,
}

impl Declared {
    pub fn of_type(of: Option<Type>) -> Declared {
        Declared { of, is_wide: of.is_some_and(|of| of.is_national()) }
    }
}

/// The source of columns.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Their qualifier, in lower case.
    pub name: String,
    /// The tables and views with these columns, by their names in SQL; for a query those of which it has all columns.
    pub tables: Vec<String>,
    /// For a query its named columns, in lower case.
    pub columns: HashMap<String, Declared>,
    /// It may have other columns.
    pub is_open: bool,
    /// Its rows are combined with those of other tables.
    pub is_combined: bool,
}

/// The source of a column.
pub enum Origin {
    /// A query has it.
    Query(Declared),
    /// One of these tables has it; none if unknown.
    Tables(Vec<String>),
}

impl Named {
    /// The source for rows with these columns.
    pub fn of_table(rows: &Table) -> Named {
        let declared = |column: &Column| (column.name.clone(), Declared::of_type(column.of));
        Named { columns: rows.columns().iter().map(declared).collect(), ..Named::default() }
    }

    pub fn unknown(name: String) -> Named {
        Named { name, is_open: true, ..Named::default() }
    }

    pub fn add(&mut self, other: &Named) {
        self.tables.extend(other.tables.iter().cloned());
        self.columns.extend(other.columns.iter().map(|(name, of)| (name.clone(), of.clone())));
        self.is_open |= other.is_open;
        self.is_combined |= other.is_combined;
    }
}

/// The qualifier of a source's columns; None for a query without a name and for joins.
pub fn source_name(source: &TableSource) -> Option<String> {
    match source {
        TableSource::Table { alias: Some(alias), .. }
        | TableSource::Variable { alias: Some(alias), .. }
        | TableSource::Function { alias: Some(alias), .. }
        | TableSource::Query { alias: Some(alias), .. } => Some(stored(&alias.text)),
        TableSource::Table { name, .. } => Some(stored(&name.name)),
        _ => None,
    }
}
