//! OUTPUT: the rows before and after a change.

use super::insert::{mismatch_of_query, Targets};
use super::item::{numbered, titles, Item, Stands};
use super::translation::{ChangedRows, Translation};
use super::variables::Variables;
use crate::error::Error;
use crate::resolve::names::{self, literal, table};
use crate::tree::{ObjectName, Output, Select, SelectItem};
use crate::Dialect;

impl Translation<'_> {
    /// The rows of `inserted` or `deleted`; None for any other table.
    pub fn output_rows(&self, name: &ObjectName) -> Result<Option<&str>, Error> {
        let Some(rows) = self.output.as_ref().filter(|_| name.is_bare()) else { return Ok(None) };
        let row = if name.name.eq_ignore_ascii_case("inserted") {
            &rows.inserted
        } else if name.name.eq_ignore_ascii_case("deleted") {
            &rows.deleted
        } else {
            return Ok(None);
        };
        row.as_deref().map(Some).ok_or_else(|| {
            let text = format!("The multi-part identifier '{}' could not be bound.", name.name);
            Error::new(4104, text, name.at).with_severity(16)
        })
    }

    /// A change that returns the rows that it has changed. `change`: WITH and the statement itself; `rows`: RETURNING's
    /// names of them.
    pub fn with_output(
        &mut self,
        change: (String, String),
        output: Option<&Output>,
        line: u32,
        rows: ChangedRows,
    ) -> Result<String, Error> {
        let (with, sql) = change;
        let Some(output) = output else { return Ok(format!("{with}{sql}")) };
        if !self.result.assigns.is_empty() {
            return Err(Error::refused("output beside set @variable", "select what is wanted", line));
        }
        let select = Select {
            distinct: false,
            top: None,
            items: Vec::new(),
            into: None,
            from: Vec::new(),
            condition: None,
            group_by: Vec::new(),
            having: None,
            at: Default::default(),
        };
        self.output = Some(rows);
        let mut items = Vec::with_capacity(output.items.len());
        for item in &output.items {
            if let SelectItem::Star { table: None, at } = item {
                return Err(Error::syntax("*", *at));
            }
            items.push(self.item(item, &select, Stands::Inside)?);
        }
        self.output = None;
        let listed: Vec<&str> = items.iter().map(|item| item.sql.as_str()).collect();
        let returning = format!("{sql} returning {}", listed.join(", "));
        let Some((target, columns)) = &output.into else {
            self.result.columns = titles(items);
            return Ok(format!("{with}{returning}"));
        };
        let target = self.target(target)?;
        let into = table(&target)?;
        let targets = self.inserted(&into, columns, line)?;
        if items.iter().all(|item| item.name.is_some()) {
            targets.demand_number(items.len(), |width| mismatch_of_query(width, items.len(), line), line)?;
        }
        Ok(kept((&with, &returning), &targets, &items, self.scope.dialect, self.variables))
    }
}

/// The rows of RETURNING, inserted into another table.
fn kept(
    (with, returning): (&str, &str),
    target: &Targets,
    items: &[Item],
    dialect: &Dialect,
    variables: &mut dyn Variables,
) -> String {
    let with = match with.trim_end() {
        "" => String::from("with"),
        with => format!("{with},"),
    };
    let columns =
        target.names.as_ref().map_or_else(String::new, |names| format!(" ({})", names::quoted_list(names)));
    let into = format!("{}{columns}", target.table);
    let mut guard = format!("tsql.takes_output({})", literal(target.table));
    if items.iter().any(|item| item.name.is_none()) {
        return format!(
            "{with} \"@changed\" as ({returning}) insert into {into} select * from \"@changed\" where {guard}"
        );
    }
    let names = numbered(items);
    let both = names.iter().zip(items).enumerate();
    let values: Vec<String> = both
        .map(|(place, (name, item))| {
            let known = item.of;
            target.carried(place, name, known, dialect, variables)
        })
        .collect();
    let (values, names) = (values.join(", "), names.join(", "));
    guard.extend(target.guard(items.len()).map(|takes| format!(" and {takes}")));
    format!(
        "{with} \"@changed\" ({names}) as ({returning}) \
         insert into {into} select {values} from \"@changed\" where {guard}"
    )
}
