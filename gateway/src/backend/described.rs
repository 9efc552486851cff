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
    pub(super) last_description: LastDescription,
}

impl Described {
    pub(super) fn new(name: String, parameters: Vec<u32>, columns: Vec<PgColumn>) -> Arc<Described> {
        let (columns, last_description) = (columns.into(), LastDescription::default());
        Arc::new(Described { name, parameters, columns, last_description })
    }
}
