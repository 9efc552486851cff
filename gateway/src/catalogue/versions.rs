//! Versions of functions, which show whether a read function is still valid.

use super::function::Function;
use crate::postgres::{Connection, PgError};
use std::collections::HashMap;

/// The versions of functions and of row types that are arguments, by their oids. They are read before the
/// objects, so that an object that changes meanwhile has another version the next time.
#[derive(Debug, Default)]
pub(super) struct Versions {
    pub(super) functions: HashMap<u32, Box<str>>,
    rows: HashMap<u32, Box<str>>,
}

impl Versions {
    pub(super) async fn read(schemas: &str, connection: &mut Connection) -> Result<Versions, PgError> {
        let mut versions = Versions::default();
        for (sql, found) in [
            (include_str!("versions.sql"), &mut versions.functions),
            (include_str!("rows.sql"), &mut versions.rows),
        ] {
            connection
                .each_row(&sql.replace(":schemas", schemas), |row| {
                    found.insert(row.number(0)?, row.text(1).into());
                    Ok(())
                })
                .await?;
        }
        Ok(versions)
    }

    /// Whether the entry of `function` read with `before` is still valid.
    pub(super) fn has(&self, function: &Function, before: &Versions) -> bool {
        let mut arguments = function.parameters.arguments.iter();
        self.functions.get(&function.oid) == before.functions.get(&function.oid)
            && arguments.all(|argument| self.rows.get(&argument.oid) == before.rows.get(&argument.oid))
    }
}
