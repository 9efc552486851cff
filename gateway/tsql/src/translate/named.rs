//! What the columns that a select can name are of.

use crate::facts::types::Type;
use crate::resolve::names::stored;
use crate::tree::TableSource;
use std::collections::HashMap;

/// Whether a text is national, or has no greatest length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Width {
    Narrow,
    Wide,
    /// A column's declaration says it: this boolean of SQL's.
    Asked(String),
}

impl Width {
    pub fn of(is_wide: bool) -> Width {
        if is_wide {
            Width::Wide
        } else {
            Width::Narrow
        }
    }

    /// A boolean of SQL's.
    pub fn sql(&self) -> &str {
        match self {
            Width::Narrow => "false",
            Width::Wide => "true",
            Width::Asked(sql) => sql,
        }
    }

    /// Of a text made of both.
    pub fn or(self, other: Width) -> Width {
        match (self, other) {
            (Width::Wide, _) | (_, Width::Wide) => Width::Wide,
            (Width::Narrow, one) | (one, Width::Narrow) => one,
            (Width::Asked(one), Width::Asked(other)) if one == other => Width::Asked(one),
            (Width::Asked(one), Width::Asked(other)) => Width::Asked(format!("({one} or {other})")),
        }
    }
}

/// The declaration of a column of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its type, where it is known.
    pub of: Option<Type>,
    pub width: Width,
    /// What gives the digits of a datetime2 or time.
    pub digits: Option<String>,
    /// What gives precision and scale, if it is a decimal.
    pub decimal: Option<String>,
}

/// The source of columns.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// What qualifies them, in lower case.
    pub name: String,
    /// The tables and views that have them, as SQL names them: of a query those whose columns it has all.
    pub tables: Vec<String>,
    /// Of a query the columns that it names, in lower case.
    pub columns: HashMap<String, Declared>,
    /// It may have other columns.
    pub is_open: bool,
    /// Rows of other tables are among those of these.
    pub is_combined: bool,
}

/// Where a column is from.
pub enum Origin {
    /// A query has it.
    Query(Declared),
    /// One of these tables has it; none where it is not known.
    Tables(Vec<String>),
}

impl Named {
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

/// The name of a source where its columns are named; None for a query without a name and for joins.
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
