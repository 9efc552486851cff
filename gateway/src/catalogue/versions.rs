//! Versions of functions, which show whether a read function is still valid.

use super::function::Function;
use crate::postgres::{Connection, PgError};
use std::collections::HashMap;

/// The versions of functions and of row types that are arguments, by their oids. They are read before the
/// objects, so that an object that changes meanwhile has another version the next time.
#[derive(Debug, Default)]
pub(super) struct Versions {
    pub(super) functions: HashMap<u32, Box<str>>,
    pub(super) rows: HashMap<u32, Box<str>>,
}

impl Versions {
    /// `rows`: those of row types, if they are known.
    pub(super) async fn read(
        schemas: &str,
        connection: &mut Connection,
        rows: Option<HashMap<u32, Box<str>>>,
    ) -> Result<Versions, PgError> {
        let functions = read(include_str!("versions.sql"), schemas, connection).await?;
        let rows = match rows {
            Some(rows) => rows,
            None => read(include_str!("rows.sql"), schemas, connection).await?,
        };
        Ok(Versions { functions, rows })
    }

    /// Whether the entry of `function` read with `before` is still valid.
    pub(super) fn has(&self, function: &Function, before: &Versions) -> bool {
        let mut arguments = function.parameters.arguments.iter();
        self.functions.get(&function.oid) == before.functions.get(&function.oid)
            && arguments.all(|argument| self.rows.get(&argument.oid) == before.rows.get(&argument.oid))
    }
}

async fn read(
    sql: &str,
    schemas: &str,
    connection: &mut Connection,
) -> Result<HashMap<u32, Box<str>>, PgError> {
    let mut found = HashMap::new();
    connection
        .each_row(&sql.replace(":schemas", schemas), |row| {
            found.insert(row.number(0)?, row.text(1).into());
            Ok(())
        })
        .await?;
    Ok(found)
}
