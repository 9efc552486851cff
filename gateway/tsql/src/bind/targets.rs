//! The columns that a change fills.

use super::value::{carried, carried_into, is_finer_than_money, Value};
use super::variables::Variables;
use crate::error::Error;
use crate::facts::types::{Family, Type, IMAGE, SQL_VARIANT, UNKNOWN};
use crate::postgres::{call, Scalar};
use crate::resolve::names::stored;
use crate::schema::{Column, Table};
use crate::tree::Position;
use crate::Dialect;
use std::sync::Arc;

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
        let column = declared.column(&stored(name));
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

    pub fn is_variant(&self, index: usize) -> bool {
        self.type_of(index) == SQL_VARIANT
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
        (!self.is_listed).then(|| call("tsql.takes", [self.of_table(), Scalar::number(given)]))
    }

    fn of_table(&self) -> Scalar {
        Scalar::text(self.table).cast("regclass")
    }

    /// Whether a column is national, an image or money: from its declaration, on which the statement then
    /// depends, or from PostgreSQL's catalogue.
    pub fn kind(&self, index: usize, variables: &mut dyn Variables) -> Scalar {
        let name = self.names.as_ref().and_then(|names| names.get(index));
        let column = self.column(index);
        variables.note_use(self.table, column.map(|column| column.name.as_str()));
        match column.map(|column| column.of) {
            // the column of a view does not show whether it is an image
            Some(of) if !matches!(of.family, Family::Binary | Family::Postgres) || of.name == IMAGE.name => {
                let is_one = of.is_national() || of.name == IMAGE.name || of.family == Family::Money;
                Scalar::Boolean(is_one)
            }
            _ => {
                let column = name.map_or_else(|| Scalar::number(index + 1), Scalar::text);
                call("tsql.is_national_or_image", [self.of_table(), column]).once()
            }
        }
    }

    /// A column of a query, named `name` there, converted for the column at this index.
    pub fn carried(
        &self,
        index: usize,
        name: &str,
        of: Type,
        dialect: &Dialect,
        variables: &mut dyn Variables,
    ) -> Scalar {
        let value = Value::new(Scalar::column(name), if says_more(&of) { of } else { UNKNOWN });
        let says = match dialect.money_rounds {
            true => !of.is_tsql() || is_finer_than_money(of),
            false => matches!(of.family, Family::Binary | Family::Text | Family::Postgres),
        };
        match says {
            true => carried_into(&value, || self.kind(index, variables), dialect),
            // values of other types need no check
            false => carried(&value, dialect),
        }
    }
}

/// Types whose values contain more than PostgreSQL's type shows.
fn says_more(of: &Type) -> bool {
    of.is_national() || matches!(of.name, "datetime2" | "time" | "tinyint")
}
