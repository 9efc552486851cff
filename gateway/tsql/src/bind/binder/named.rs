//! The sources and declarations of the columns that a select can name.

use super::item::{has_star, Item};
use super::Binder;
use crate::error::Error;
use crate::facts::types::Type;
use crate::resolve::names::{stored, table_variable};
use crate::schema::{Column, Table};
use crate::tree::{Name, ObjectName, TableSource, Variable};
use std::collections::HashMap;

/// The declaration of a column of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its name as displayed.
    pub shown: String,
    pub of: Type,
}

impl Declared {
    pub fn of_type(shown: impl Into<String>, of: Type) -> Declared {
        Declared { shown: shown.into(), of }
    }
}

/// The source of columns.
#[derive(Clone, Debug, Default)]
pub struct Named {
    /// Their qualifier, in lower case.
    pub name: String,
    /// The table or view with these columns, by its name in SQL.
    pub table: Option<String>,
    /// For a query its columns.
    columns: Vec<Declared>,
    /// The index of each column, by its name in lower case.
    indexes: HashMap<String, usize>,
    /// It may have other columns.
    pub is_open: bool,
}

impl Named {
    pub fn of_table(name: String, table: String) -> Named {
        Named { name, table: Some(table), ..Named::default() }
    }

    /// The source for rows with these columns.
    pub fn of_rows(name: String, rows: &Table) -> Named {
        let declared = |column: &Column| Declared::of_type(&*column.name, column.of);
        Named::of_columns(name, rows.columns().iter().map(declared))
    }

    pub fn of_columns(name: String, columns: impl IntoIterator<Item = Declared>) -> Named {
        let columns: Vec<_> = columns.into_iter().collect();
        let index = |(index, column): (usize, &Declared)| (stored(&column.shown), index);
        let indexes = columns.iter().enumerate().map(index).collect();
        Named { name, columns, indexes, ..Named::default() }
    }

    /// The source for a query: `columns` are the names after its own.
    pub fn of_query(name: String, items: &[Item], columns: &[Name]) -> Named {
        if has_star(items) || !columns.is_empty() && columns.len() != items.len() {
            return Named::unknown(name);
        }
        let declared = |(index, item): (usize, &Item)| {
            let shown = columns.get(index).map(|given| given.text.clone()).or_else(|| item.name.clone());
            Declared::of_type(shown.unwrap_or_default(), item.of)
        };
        Named::of_columns(name, items.iter().enumerate().map(declared))
    }

    pub fn unknown(name: String) -> Named {
        Named { name, is_open: true, ..Named::default() }
    }

    /// The same source under another name.
    pub fn called(self, name: String) -> Named {
        Named { name, ..self }
    }

    /// The column of a query of this name in lower case.
    pub fn column(&self, own: &str) -> Option<&Declared> {
        self.indexes.get(own).map(|index| &self.columns[*index])
    }

    /// The columns of a query, in their order.
    pub fn columns(&self) -> &[Declared] {
        &self.columns
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
        TableSource::Function { call, .. } => Some(stored(&call.name.name)),
        _ => None,
    }
}

/// 1011, 1012 and 1013: two tables of FROM have one name.
pub fn refuse_repeated(from: &[TableSource]) -> Result<(), Error> {
    let sources = flat(from);
    let parts = |source: &TableSource| match source {
        TableSource::Table { name, alias, .. } => {
            let shown = alias.as_ref().map_or(&name.name, |alias| &alias.text);
            Some((shown.clone(), alias.is_some(), name.clone()))
        }
        _ => None,
    };
    for (index, source) in sources.iter().enumerate() {
        let Some((name, is_alias, table)) = parts(source) else { continue };
        let same = sources[..index]
            .iter()
            .filter_map(|source| parts(source))
            .find(|(other, ..)| stored(other) == stored(&name));
        let (number, text) = match same {
            None => continue,
            Some((_, false, other)) if !is_alias && other.owner != table.owner => continue,
            Some((_, true, _)) if is_alias => {
                (1011, format!("The correlation name '{name}' is specified multiple times in a FROM clause."))
            }
            Some((other, false, _)) if !is_alias => {
                let text = format!(
                    "The objects \"{other}\" and \"{name}\" in the FROM clause have the same exposed names. Use correlation \
                     names to distinguish them."
                );
                (1013, text)
            }
            Some(_) => {
                (1012, format!("The correlation name '{name}' has the same exposed name as table '{name}'."))
            }
        };
        return Err(Error::new(number, text, table.at).with_severity(16));
    }
    Ok(())
}

/// The tables and queries of FROM, in the order of the text.
pub fn flat(from: &[TableSource]) -> Vec<&TableSource> {
    let mut rest: Vec<&TableSource> = from.iter().rev().collect();
    let mut found = Vec::new();
    while let Some(source) = rest.pop() {
        match source {
            TableSource::Join { left, right, .. } => rest.extend([&**right, &**left]),
            _ => found.push(source),
        }
    }
    found
}

/// The table of a variable. Error 1087 if there is none.
pub fn named_variable(binder: &Binder<'_>, variable: &Variable) -> Result<ObjectName, Error> {
    if !binder.scope.table_variables.contains(&variable.name) {
        let text = format!("Must declare the table variable \"{}\".", variable.name);
        return Err(Error::new(1087, text, variable.at));
    }
    Ok(table_variable(variable, &binder.scope.table_owner))
}
