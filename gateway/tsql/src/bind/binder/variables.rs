//! How variables are written in the SQL.

use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::functions;
use crate::facts::session::CURRENT;
use crate::facts::types::{Type, UNKNOWN};
use crate::fragments::Facts;
use crate::postgres::{call, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// The SQL of variables, by their names with @: parameters, or variables of PL/pgSQL.
pub trait Variables {
    fn write(&mut self, name: &str, line: u32) -> Result<Scalar, Error>;

    /// The facts noted about the SQL; None: they are not needed.
    fn facts(&mut self) -> Option<&mut Facts> {
        None
    }

    /// Whether they are parameters of the SQL, whose types PostgreSQL infers.
    fn are_parameters(&self) -> bool {
        false
    }

    /// Whether more columns may be added to the list of a select.
    fn marks_lists(&self) -> bool {
        false
    }

    /// The SQL depends on the declaration of this table, and of this column of it.
    fn note_use(&mut self, _table: &str, _column: Option<&str>) {}

    /// The table, by its name in SQL, is locked before the statement runs.
    fn lock_table(&mut self, _table: &str, line: u32) -> Result<(), Error> {
        Err(Error::refused("with (holdlock)", "a table is locked by statements of batches alone", line))
    }

    /// The rows that a query reads are locked: it runs immediately, not when its rows are fetched.
    fn lock_rows(&mut self, line: u32) -> Result<(), Error> {
        Err(Error::refused("with (updlock)", "rows are locked by statements of batches alone", line))
    }

    /// The columns of a unique key follow those of the rows.
    fn browse(&mut self, line: u32) -> Result<(), Error> {
        Err(Error::refused("for browse", "rows are browsed by selects of batches alone", line))
    }

    /// The value is assigned to, or compared with, one of this type. `by_order`: by its order too.
    fn meets(&mut self, _value: &Value, _other: Type, _by_order: bool) {}

    /// A column is compared with a time of the clock.
    fn note_clock(&mut self) {}

    /// Ctid and xmin of the row of this table that a cursor has fetched last.
    fn current_row(&mut self, _cursor: &str, _table: &str, line: u32) -> Result<Scalar, Error> {
        Err(Error::refused("where current of", "choose the row by its key", line))
    }

    /// The time at which a procedure's statement began; None: each function reads the clock.
    fn began(&mut self) -> Option<Scalar> {
        None
    }

    /// The time of a clock if it is a parameter of the statement; None: PostgreSQL evaluates it.
    fn clock(&mut self, _clock: &functions::Clock) -> Option<Scalar> {
        None
    }
}

/// Variables as marks, numbered in the order in which they are first used: for the statements of a batch.
#[derive(Clone, Debug, Default)]
pub struct Numbered {
    pub names: Vec<String>,
    pub facts: Facts,
    /// See `Variables::note_use`.
    pub uses: BTreeMap<String, BTreeSet<String>>,
    /// See `Variables::browse`.
    pub browses: bool,
    pub clock: Clock,
    /// What placeholders and undeclared parameters meet first, by their names.
    pub met: BTreeMap<String, Met>,
}

/// The type that a value without one meets, and whether it is compared with it by order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    pub of: Type,
    pub by_order: bool,
}

/// The source of the time in the statements of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// PostgreSQL's functions, evaluated after planning: the partitions to read are not known to the plan.
    #[default]
    Functions,
    /// The same, and a column is compared with one.
    Compared,
    /// Variables, which are constants to a plan.
    Variables,
    /// Some function has no such variable.
    Mixed,
}

impl Numbered {
    /// For a statement with its time in variables.
    pub fn clocked() -> Numbered {
        Numbered { clock: Clock::Variables, ..Numbered::default() }
    }
}

impl Variables for Numbered {
    fn write(&mut self, name: &str, _: u32) -> Result<Scalar, Error> {
        let index = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Ok(Scalar::Parameter(index))
    }

    fn current_row(&mut self, cursor: &str, _table: &str, line: u32) -> Result<Scalar, Error> {
        self.write(&format!("{CURRENT}{cursor}"), line)
    }

    fn facts(&mut self) -> Option<&mut Facts> {
        Some(&mut self.facts)
    }

    fn are_parameters(&self) -> bool {
        true
    }

    fn marks_lists(&self) -> bool {
        true
    }

    fn note_use(&mut self, table: &str, column: Option<&str>) {
        if !self.uses.contains_key(table) {
            self.uses.insert(table.to_owned(), BTreeSet::new());
        }
        if let (Some(columns), Some(column)) = (self.uses.get_mut(table), column) {
            if !columns.contains(column) {
                columns.insert(column.to_owned());
            }
        }
    }

    fn meets(&mut self, value: &Value, other: Type, by_order: bool) {
        if value.of != UNKNOWN || !other.is_tsql() {
            return;
        }
        let Scalar::Parameter(index) = value.sql else { return };
        if let Some(name) = self.names.get(index) {
            self.met.entry(name.clone()).or_insert(Met { of: other, by_order });
        }
    }

    fn lock_table(&mut self, table: &str, _line: u32) -> Result<(), Error> {
        if !self.facts.locks.iter().any(|known| known == table) {
            self.facts.locks.push(table.to_owned());
        }
        Ok(())
    }

    fn browse(&mut self, _line: u32) -> Result<(), Error> {
        self.browses = true;
        Ok(())
    }

    fn lock_rows(&mut self, _line: u32) -> Result<(), Error> {
        Ok(())
    }

    fn note_clock(&mut self) {
        if self.clock == Clock::Functions {
            self.clock = Clock::Compared;
        }
    }

    fn clock(&mut self, clock: &functions::Clock) -> Option<Scalar> {
        if self.clock != Clock::Variables {
            return None;
        }
        let Some(name) = clock.variable else {
            self.clock = Clock::Mixed;
            return None;
        };
        let variable = self.write(name, 0).ok()?;
        Some(if clock.rounds { call("tsql.rounded", [variable]) } else { variable })
    }
}

pub const NO_VARIABLES: &str = "a definition names no variables";

/// For definitions, which must not contain variables.
pub struct NoVariables(pub &'static str);

impl Variables for NoVariables {
    fn write(&mut self, name: &str, line: u32) -> Result<Scalar, Error> {
        Err(Error::refused(name, self.0, line))
    }
}
