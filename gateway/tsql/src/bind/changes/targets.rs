//! The columns that a change fills.

use crate::bind::binder::Binder;
use crate::bind::values::assignments::stored as converted_for;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::types::{Type, UNKNOWN};
use crate::postgres::{call, Scalar};
use crate::resolve::names;
use crate::schema::{Column, Table};
use crate::tree::Position;
use std::sync::Arc;

/// A table and those of its columns that take values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Its name in SQL.
    pub table: String,
    /// Names in PostgreSQL; None: all columns, or those that a definition leaves.
    pub columns: Option<Vec<String>>,
    /// Identity columns take values too.
    pub with_identity: bool,
}

/// The columns that a change fills.
pub struct Targets<'a> {
    pub table: &'a str,
    /// Names in PostgreSQL; None: all of the table.
    pub names: Option<Vec<String>>,
    /// The table's declaration; None if unknown.
    pub declared: Option<Arc<Table>>,
    /// The statement names them.
    pub is_listed: bool,
}

impl<'a> Targets<'a> {
    pub fn unknown(table: &'a str) -> Targets<'a> {
        Targets { table, names: None, declared: None, is_listed: true }
    }

    /// The column of this name; None if the table is unknown. Error 207 if it has none.
    pub fn demand_column(&self, name: &str, at: Position) -> Result<Option<&Column>, Error> {
        let Some(declared) = &self.declared else { return Ok(None) };
        let column = declared.column(&names::stored(name));
        column.map(Some).ok_or_else(|| Error::invalid_column(name, at))
    }

    pub fn column(&self, index: usize) -> Option<&Column> {
        let declared = self.declared.as_ref()?;
        match &self.names {
            Some(names) => declared.column(names.get(index)?),
            None => declared.columns().get(index),
        }
    }

    /// The type of the column at this index.
    pub fn type_of(&self, index: usize) -> Type {
        self.column(index).map_or(UNKNOWN, |column| column.of)
    }

    /// Error 213 or 8101 for an insert without a list that gives another number of values than the table takes;
    /// `mismatch`: the error of one with a list of this number of columns.
    pub fn demand_number(
        &self,
        given: usize,
        mismatch: impl FnOnce(usize) -> Error,
        line: u32,
    ) -> Result<(), Error> {
        match (&self.names, &self.declared) {
            (_, Some(declared)) if !self.is_listed => declared.demand_values(self.table, given, line),
            (Some(names), _) if names.len() != given => Err(mismatch(names.len())),
            _ => Ok(()),
        }
    }

    /// For an insert without a list: the condition that the table takes this number of values, which PostgreSQL
    /// evaluates when it plans the statement, and again after a change of the table.
    pub fn guard(&self, given: usize) -> Option<Scalar> {
        (!self.is_listed)
            .then(|| call("tsql.takes", [Scalar::text(self.table).cast("regclass"), Scalar::number(given)]))
    }

    /// A value converted for the column at this index, on whose type the statement then depends. Errors 206 and 257 if
    /// it does not convert implicitly.
    pub fn stored(
        &self,
        binder: &mut Binder<'_>,
        index: usize,
        value: &Value,
        line: u32,
    ) -> Result<Scalar, Error> {
        let column = self.column(index);
        binder.variables.note_use(self.table, column.map(|column| column.name.as_str()));
        binder.variables.meets(value, self.type_of(index), false);
        converted_for(value, self.type_of(index), line, binder.dialect())
    }
}
