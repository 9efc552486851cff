//! Results with texts and images of T-SQL's tables: each value is sent with a pointer to it, by which the client may
//! replace it (`gateway/sql/texts/pointers.sql`). A pointer contains the version of the row, so the query is prepared
//! with the versions as additional columns.

use super::declarations::FIRST_OF_USERS;
use super::described::Prepared;
use super::Open;
use crate::backend::parameters::{self, Typing};
use crate::convert::{Pointer, SqlType};
use crate::postgres::message::PgColumn;
use crate::postgres::PgError;
use crate::program::{RowSource, Sql};

impl Open {
    /// Prepares the query with the versions of rows if it has columns with pointers.
    pub(super) async fn with_pointers(
        &mut self,
        mut prepared: Prepared,
        sql: &Sql,
        types: &[SqlType],
        typing: Typing,
        is_kept: bool,
    ) -> Result<Prepared, PgError> {
        if !prepared.columns.iter().any(may_point) {
            return Ok(prepared);
        }
        let Some((with_versions, sources)) = sql.with_versions() else { return Ok(prepared) };
        let (text, oids) = parameters::statement(&with_versions, types, typing);
        match self.prepare_text(&text, &oids, is_kept).await {
            Ok(found) => {
                let versions = found.columns.get(prepared.columns.len()..).unwrap_or_default();
                point(&mut prepared.columns, versions, sources);
                if is_kept {
                    self.close(std::slice::from_ref(&prepared.name))?;
                }
                let versions = versions.len();
                Ok(Prepared { name: found.name, parameters: found.parameters, versions, ..prepared })
            }
            Err(error) if error.is_fatal() => Err(error),
            // the rows of a view have no versions
            Err(_) => {
                self.undo_failure().await?;
                if !is_kept {
                    // it had no name, and has been replaced
                    let (text, oids) = parameters::statement(sql, types, typing);
                    prepared.name = self.prepare_text(&text, &oids, false).await?.name;
                }
                Ok(prepared)
            }
        }
    }
}

fn may_point(column: &PgColumn) -> bool {
    column.declared.of.is_some_and(|of| of.is_large()) && column.origin.0 >= FIRST_OF_USERS
}

/// Sets the pointers of `columns`. `versions`: ctid and xmin of each source's row. A table that is a source twice gets
/// no pointers: the source of its columns is unknown.
fn point(columns: &mut [PgColumn], versions: &[PgColumn], sources: &[RowSource]) {
    let tables: Vec<u32> = versions.chunks(2).map(|pair| pair[0].origin.0).collect();
    for column in columns.iter_mut().filter(|column| may_point(column)) {
        let mut found = tables.iter().enumerate().filter(|(_, table)| **table == column.origin.0);
        if let (Some((version, _)), None) = (found.next(), found.next()) {
            let table =
                sources.get(version).map_or_else(Default::default, |source| source.shown.as_str().into());
            column.declared.pointer = Some(Pointer { version, table });
        }
    }
}
