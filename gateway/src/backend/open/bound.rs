//! Queries that depend on the declarations of their tables: when they are prepared, and at each run, the types of the
//! columns are compared with those that they were written for.

use super::Open;
use crate::convert::PgType;
use crate::postgres::message::PgColumn;
use crate::postgres::PgError;
use crate::program::{ListItem, ResultType, Uses};
use tsql::quoting::quoted;
use tsql::schema::{Object, WHOLE};

impl Open {
    /// Prepares the checks of the columns that a query depends on. Returns their names. Error `is_outdated`: the columns
    /// have other types now.
    pub(super) async fn prepare_checks(
        &mut self,
        uses: &Uses,
        is_kept: bool,
    ) -> Result<Vec<String>, PgError> {
        let mut checks = Vec::new();
        match self.has_types(uses, is_kept, &mut checks).await {
            Ok(true) => {}
            Ok(false) => {
                self.close(&checks)?;
                self.forget_declarations();
                return Err(PgError::changed());
            }
            Err(error) if error.is_fatal() => return Err(error),
            // the login may not read a column, or it is gone, which the query itself will show
            Err(_) => {
                self.undo_failure().await?;
                self.close(&std::mem::take(&mut checks))?;
            }
        }
        Ok(checks)
    }

    /// Whether the columns have these types in PostgreSQL; checked at each run of the query.
    async fn has_types(
        &mut self,
        uses: &Uses,
        is_kept: bool,
        checks: &mut Vec<String>,
    ) -> Result<bool, PgError> {
        for one in uses.iter() {
            let Some(Object::Table(table)) = &one.object else { continue };
            if one.columns.is_empty() {
                continue;
            }
            // PostgreSQL notices an added column only in a query of all columns
            let is_whole = one.columns.iter().any(|column| column == WHOLE);
            let (names, list): (Vec<&String>, String) = if is_whole {
                (table.columns().iter().map(|column| &column.name).collect(), String::from("*"))
            } else {
                let quoted: Vec<String> = one.columns.iter().map(|column| quoted(column)).collect();
                (one.columns.iter().collect(), quoted.join(", "))
            };
            let text = format!("select {list} from {}", one.name);
            let name = match is_kept {
                true => self.connection.statement_name(),
                false => format!("once_{}", checks.len()),
            };
            if !is_kept {
                self.close(std::slice::from_ref(&name))?;
            }
            let (_, columns) = self.connection.prepare(&name, &text, &[]).await?;
            checks.push(name);
            let has_type = |(name, column): (&&String, &PgColumn)| {
                table.column(name).is_some_and(|declared| declared.sent == (column.oid, column.typmod))
            };
            if names.len() != columns.len() || !names.iter().zip(&columns).all(has_type) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Rolls back to the savepoint of a refused statement, if there is a transaction.
    pub(super) async fn undo_failure(&mut self) -> Result<(), PgError> {
        match self.connection.query_text("rollback to savepoint ringlog_statement").await {
            Err(error) if error.is_fatal() => Err(error),
            _ => Ok(()),
        }
    }
}

/// Sets the column types of the items of a select list. `is_constant`: it contains no variable.
pub(super) fn set_types(columns: &mut [PgColumn], items: &[ListItem], is_constant: bool) {
    let is_star = |item: &ListItem| *item == ListItem::Star;
    let star = items.iter().position(is_star);
    let before = star.unwrap_or(items.len());
    let behind = star.map_or(0, |_| items.iter().rev().take_while(|item| !is_star(item)).count());
    let number = columns.len();
    for (index, column) in columns.iter_mut().enumerate() {
        let item = match index {
            _ if index < before => items.get(index),
            _ if index + behind >= number => items.get(items.len() + index - number),
            _ => None,
        };
        // a list with a star has no titles, which show that the text of a variable may contain any character
        let item_type = item.and_then(|item| match item {
            ListItem::Value(Some(item_type)) if star.is_none() || is_constant || !item_type.of.is_text() => {
                Some(*item_type)
            }
            _ => None,
        });
        if let Some(item_type) = item_type {
            set(column, item_type);
        }
    }
}

fn set(column: &mut PgColumn, known: ResultType) {
    let is_text = known.of.is_text() && PgType::from_oid(column.oid).is_text();
    if is_text || known.of.oid == column.oid {
        column.declared.result_type = Some(known);
    }
}
