//! Queries of expressions over columns: PostgreSQL says what the columns are, and the query is translated once more with
//! their types. So its values and their description follow T-SQL's rules.

use super::described::{Described, Prepared};
use super::open::Open;
use super::parameters::{self, Typing};
use crate::convert::{declared, PgType, SqlType};
use crate::postgres::message::PgColumn;
use crate::postgres::PgError;
use crate::program::{ListItem, OverColumns, ResultType, Sql, Typed};
use std::sync::Arc;
use tsql::facts::types::{self, Type};

impl Open {
    /// The query as it is with the types of its columns, prepared; None where they say nothing new of it.
    pub(super) async fn prepare_typed(
        &mut self,
        sql: &Sql,
        types: &[SqlType],
        typing: Typing,
        is_kept: bool,
    ) -> Result<Option<Arc<Described>>, PgError> {
        let Some(over) = &sql.over_columns else { return Ok(None) };
        let mut checks = Vec::new();
        let prepared = match self.asked(over, types, typing, is_kept, &mut checks).await {
            Ok(None) => Ok(None),
            Ok(Some(typed)) => {
                let (text, oids) = parameters::statement(&typed.sql, types, typing);
                match self.prepare_text(&text, &oids, is_kept).await {
                    Ok(prepared) => {
                        let prepared = of_types(prepared, &typed.items, sql.variables.is_empty());
                        self.with_pointers(prepared, &typed.sql, types, typing, is_kept).await.map(Some)
                    }
                    Err(error) => Err(error),
                }
            }
            Err(error) => Err(error),
        };
        match prepared {
            Ok(Some(prepared)) => return Ok(Some(Described::new(Prepared { checks, ..prepared }))),
            Ok(None) => {}
            Err(error) if error.is_fatal() || error.own_number().is_some() => return Err(error),
            Err(_) => self.undo_failure().await?,
        }
        self.close(&checks)?;
        Ok(None)
    }

    /// The query with the types of the columns. `checks`: gets the names under which the queries of these are prepared.
    async fn asked(
        &mut self,
        over: &OverColumns,
        types: &[SqlType],
        typing: Typing,
        is_kept: bool,
        checks: &mut Vec<String>,
    ) -> Result<Option<Typed>, PgError> {
        let mut known = Vec::with_capacity(over.columns().len());
        for columns in over.columns() {
            let Some(query) = &columns.query else {
                known.push(Vec::new());
                continue;
            };
            let (text, mut oids) = parameters::statement(query, types, typing);
            for (variable, oid) in oids.iter_mut().enumerate() {
                // PostgreSQL infers nothing of a parameter that is not there
                if *oid == 0 && !query.uses(variable) {
                    *oid = SqlType::TEXT.oid;
                }
            }
            let name = match is_kept {
                true => self.connection.statement_name(),
                false => format!("once_{}", checks.len()),
            };
            if !is_kept {
                self.close(std::slice::from_ref(&name))?;
            }
            let (_, mut found) = self.connection.prepare(&name, &text, &oids).await?;
            checks.push(name);
            self.declare(&mut found, &text).await?;
            known.push(found.iter().map(type_of).collect());
        }
        over.typed(&known).map_err(|error| PgError::refused(error.number, error.text))
    }

    /// A statement that PostgreSQL refused stands behind its savepoint, if there is a transaction.
    pub(super) async fn undo_failure(&mut self) -> Result<(), PgError> {
        match self.connection.query_text("rollback to savepoint ringlog_statement").await {
            Err(error) if error.is_fatal() => Err(error),
            _ => Ok(()),
        }
    }
}

/// Decimals with the digits of money and smallmoney.
const MONEYS: [Option<Type>; 2] = [Some(types::numeric(19, 4)), Some(types::numeric(10, 4))];

/// The T-SQL type of a column; None for what T-SQL does not declare.
fn type_of(column: &PgColumn) -> Option<Type> {
    match column.declared.of {
        // of a char that may be null, in a table of ASE's
        Some(of) if of.name == types::CHAR.name && column.oid == types::VARCHAR.oid => {
            Some(types::varchar(of.length))
        }
        Some(of) => declared::of_column(of, column.typmod),
        // PostgreSQL reports the digits of money alone, and of no table's column says whether it is money
        None if column.origin.0 == 0 && MONEYS.contains(&types::of_oid(column.oid, column.typmod)) => None,
        // nor are the digits of a time known, unless PostgreSQL keeps them
        None => types::of_oid(column.oid, column.typmod)
            .filter(|of| ![types::MOMENT, types::INSTANT, types::XML, types::TIME].contains(of)),
    }
}

/// Sets the types of the columns that the items of a list are. `is_constant`: it names no variable.
fn of_types(mut prepared: Prepared, items: &[ListItem], is_constant: bool) -> Prepared {
    let is_star = |item: &ListItem| *item == ListItem::Star;
    let star = items.iter().position(is_star);
    let before = star.unwrap_or(items.len());
    let behind = star.map_or(0, |_| items.iter().rev().take_while(|item| !is_star(item)).count());
    let number = prepared.columns.len();
    for (place, column) in prepared.columns.iter_mut().enumerate() {
        let item = match place {
            _ if place < before => items.get(place),
            _ if place + behind >= number => items.get(items.len() + place - number),
            _ => None,
        };
        // a list with a star has no titles, which say that a variable's text may have any characters
        let known = item.and_then(|item| match item {
            ListItem::Value(Some(known)) if star.is_none() || is_constant || !known.of.is_text() => {
                Some(*known)
            }
            _ => None,
        });
        if let Some(known) = known {
            set(column, known);
        }
    }
    prepared
}

fn set(column: &mut PgColumn, known: ResultType) {
    let is_text = |oid| matches!(PgType::from_oid(oid), PgType::Text | PgType::Varchar | PgType::Bpchar);
    if known.of.is_text() && is_text(column.oid) {
        if known.of.length.is_some() {
            (column.oid, column.typmod) = (known.of.oid, known.of.typmod());
        }
    } else if known.of.oid != column.oid {
        return;
    }
    column.declared.result_type = Some(known);
}
