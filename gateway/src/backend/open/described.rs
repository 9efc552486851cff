//! A statement prepared by PostgreSQL.

use crate::backend::result_set::columns::{formats, LastDescription};
use crate::postgres::message::PgColumn;
use std::sync::Arc;

#[derive(Debug)]
pub struct Described {
    pub name: String,
    /// The types that PostgreSQL inferred for the parameters.
    pub parameters: Vec<u32>,
    pub columns: Arc<[PgColumn]>,
    /// The number of additional columns with the versions of table rows (`pointers.rs`).
    pub(in crate::backend) versions: usize,
    /// Prepared queries of the columns whose types the statement was translated with. PostgreSQL refuses to describe
    /// them once a type has changed.
    pub(super) checks: Vec<String>,
    pub(in crate::backend) last_description: LastDescription,
}

impl Described {
    pub(super) fn new(Prepared { name, parameters, columns, versions, checks }: Prepared) -> Arc<Described> {
        let (columns, last_description) = (columns.into(), LastDescription::default());
        Arc::new(Described { name, parameters, columns, versions, checks, last_description })
    }

    /// The formats in which PostgreSQL sends the columns.
    pub(in crate::backend) fn formats(&self) -> Vec<i16> {
        let mut formats = formats(&self.columns);
        formats.resize(formats.len() + self.versions, 1);
        formats
    }

    /// The names of all its prepared statements.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.checks.iter().chain([&self.name])
    }
}

/// A statement that has just been prepared.
pub(super) struct Prepared {
    pub name: String,
    pub parameters: Vec<u32>,
    pub columns: Vec<PgColumn>,
    pub versions: usize,
    pub checks: Vec<String>,
}
