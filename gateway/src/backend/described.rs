//! A statement as PostgreSQL has it prepared.

use super::result_set::columns::LastDescription;
use crate::postgres::message::PgColumn;
use std::sync::Arc;

#[derive(Debug)]
pub struct Described {
    pub name: String,
    /// The types it has found for the parameters.
    pub parameters: Vec<u32>,
    pub columns: Arc<[PgColumn]>,
    /// Prepared queries of the columns whose types it was translated with: PostgreSQL refuses to describe one of which a
    /// type has changed.
    pub(super) checks: Vec<String>,
    pub(super) last_description: LastDescription,
}

impl Described {
    pub(super) fn new(Prepared { name, parameters, columns, checks }: Prepared) -> Arc<Described> {
        let (columns, last_description) = (columns.into(), LastDescription::default());
        Arc::new(Described { name, parameters, columns, checks, last_description })
    }

    /// The names of all that is prepared for it.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.checks.iter().chain([&self.name])
    }
}

/// A statement that has just been prepared.
pub(super) struct Prepared {
    pub name: String,
    pub parameters: Vec<u32>,
    pub columns: Vec<PgColumn>,
    pub checks: Vec<String>,
}
