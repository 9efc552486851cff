//! The digits of datetime2 and time columns, which the text of their values has. PostgreSQL's types do not say them, and a
//! table may be altered after a procedure has been made: they are asked for when the statement runs, once.

use super::sources::source_name;
use super::translation::Translation;
use crate::error::Error;
use crate::resolve::names::{array, folded, literal, table};
use crate::tree::{ColumnName, ObjectName, TableSource};

/// What columns are of.
#[derive(Clone, Debug)]
pub struct Named {
    /// What qualifies them, in lower case.
    pub name: String,
    /// The table or view as SQL names it; None for any other source.
    pub table: Option<String>,
}

impl Translation<'_> {
    /// The sources of FROM.
    pub fn named_sources(&self, from: &[TableSource]) -> Result<Vec<Named>, Error> {
        let mut named = Vec::new();
        let mut rest: Vec<&TableSource> = from.iter().collect();
        while let Some(source) = rest.pop() {
            if let TableSource::Join { left, right, .. } = source {
                rest.extend([&**left, &**right]);
                continue;
            }
            let table = match source {
                TableSource::Table { name, .. } => self.relation(name)?,
                TableSource::Variable { variable, .. } => Some(table(&self.table_variable(variable)?)?),
                _ => None,
            };
            named.push(Named { name: source_name(source).unwrap_or_default(), table });
        }
        Ok(named)
    }

    /// A table or view of PostgreSQL's catalogue.
    fn relation(&self, name: &ObjectName) -> Result<Option<String>, Error> {
        let own = name.name.to_lowercase();
        let is_rows = name.is_bare()
            && (matches!(own.as_str(), "inserted" | "deleted")
                || self.common_names.contains(&own)
                || self.scope.empty.contains_key(&own));
        // a view of the system's of another database is a function
        Ok(Some(table(name)?).filter(|table| !is_rows && !table.ends_with(')')))
    }

    /// What gives the declared digits of a column; None where its table is not known. ASE shows other digits.
    pub fn declared_digits(&self, column: &ColumnName) -> Result<Option<String>, Error> {
        if self.sybase() {
            return Ok(None);
        }
        let mut tables = Vec::new();
        for named in self.named.iter().rev() {
            match &column.table {
                None => {
                    tables.extend(named.iter().filter_map(|one| one.table.as_deref()));
                    // a column may be of a source whose columns the catalogue does not have
                    if named.iter().any(|one| one.table.is_none()) {
                        break;
                    }
                }
                Some(qualifier) => {
                    let whole = table(qualifier)?;
                    let own = qualifier.name.to_lowercase();
                    let is_meant = |one: &&Named| match qualifier.is_bare() {
                        true => one.name == own,
                        false => one.table.as_ref() == Some(&whole),
                    };
                    if let Some(found) = named.iter().find(is_meant) {
                        tables.extend(found.table.as_deref());
                        break;
                    }
                }
            }
        }
        if tables.is_empty() {
            return Ok(None);
        }
        let tables = array(tables.into_iter().map(literal), "regclass");
        let column = literal(&folded(&column.column, column.at.line)?);
        Ok(Some(format!("(select tsql.digits_of({tables}, {column}))")))
    }
}
