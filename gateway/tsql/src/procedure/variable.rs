//! The names of a procedure's variables in SQL.

use super::declared::{location_in, Cursor};
use super::inside::Noted;
use super::TEMPORARY;
use crate::bind::Variables;
use crate::error::Error;
use crate::facts::session;
use crate::facts::types::{UNKNOWN, XML};
use crate::fragments::Facts;
use crate::postgres::{call, Scalar};
use crate::resolve::names::quoted;
use crate::resolve::Scope;
use std::cell::RefCell;
use std::collections::HashMap;

// Variables that the compiler declares for itself.
pub const BEGAN: &str = "@@began";
pub const BODY: &str = "@@body";
pub const CALL: &str = "@@call";
pub const CONDITION: &str = "@@condition";
pub const CONTEXT: &str = "@@context";
pub const CURSOR: &str = "@@cursor";
pub const DETAIL: &str = "@@detail";
pub const ERROR: &str = "@@error";
pub const INDEX: &str = "@@index";
pub const LEFT: &str = "@@left";
pub const MADE: &str = "@@made";
pub const MESSAGE: &str = "@@message";
pub const N: &str = "@@n";
pub const ROW: &str = "@@row";
pub const ROWCOUNT: &str = "@@rowcount";
pub const SCHEMA: &str = "@@schema";
/// scope_identity()
pub const SCOPE_IDENTITY: &str = "@@scope_identity";
/// The additional detail of the notice of a row count: whether a caller has set nocount on.
pub const SILENT: &str = "@@silent";
pub const TABLE: &str = "@@table";
pub const TEXT: &str = "@@text";
pub const TRY: &str = "@@try";

/// The setting by which SET NOCOUNT ON also applies to called procedures and fired triggers.
pub const NOCOUNT_SETTING: &str = "tsql.nocount";
/// Its value then: a word of the details of notices.
pub const SILENTLY: &str = " nocount";

/// The setting that is on while a TRY block is open around a call.
pub const TRY_SETTING: &str = "tsql.try";

/// The variable that holds the return status.
pub const STATUS: &str = "@@status";

pub const TRANCOUNT: &str = "@@trancount";
/// The setting with the number of transactions around a body.
pub const TRANCOUNT_SETTING: &str = "tsql.trancount";
/// Its value where the statement that fired a trigger ran.
pub const OUTER_TRANCOUNT: &str = "@@outer_trancount";

/// The trigger that fired this one.
pub const FIRED: &str = "@@fired";
/// The setting that is on if SET XACT_ABORT is on in the trigger that calls a procedure.
pub const ABORTS_SETTING: &str = "tsql.trigger_aborts";
/// Its value for the trigger that fired this one.
pub const ABORTS: &str = "@@aborts";
/// Whether a trigger has rolled back the transaction of the statement that fired it.
pub const ROLLED_BACK: &str = "@@rolled_back";
/// Whether a TRY block of a trigger has handled an error after which nothing can be committed.
pub const DOOMED: &str = "@@doomed";

/// The value of a variable of the body.
pub fn variable(name: &str) -> Scalar {
    Scalar::column(quoted(name))
}

/// A part of a variable that holds a row.
pub fn field(row: &str, name: impl Into<String>) -> Scalar {
    Scalar::of_row(quoted(row), name)
}

/// Variables and functions of the session that a procedure can query from PostgreSQL.
fn answer(name: &str) -> Option<Scalar> {
    Some(match name {
        "@@dbts" => call("tsql.dbts", []),
        "@@identity" => call("tsql.last_identity", []),
        "@@max_precision" => Scalar::number(38),
        "@@suser_name" | "@@user_name" => call("tsql.caller", []).cast("varchar"),
        TRANCOUNT => call("tsql.transaction_count", []),
        "@@xact_state" => call("tsql.transaction_state", []),
        _ => return None,
    })
}

/// The kind of each variable that a statement of a procedure may name.
pub struct Named<'w> {
    pub procedure: &'w str,
    pub schema: &'w str,
    pub database: &'w str,
    /// Variables that replace others.
    pub copies: &'w HashMap<String, String>,
    pub cursors: &'w HashMap<String, Cursor<'w>>,
    /// The CATCH block around the statement.
    pub caught: Option<u32>,
    /// The procedure calls others.
    pub calls: bool,
    /// It has cursors.
    pub fetches: bool,
    /// A variable contains the time for functions of the clock.
    pub has_time: bool,
    /// The end of the select list is marked.
    pub marks_lists: bool,
    /// A function of the clock uses it.
    pub uses_time: bool,
    pub facts: Facts,
    pub noted: &'w RefCell<Noted>,
    pub scope: &'w Scope,
    /// The variables that hold texts, whose characters are known only when the statement runs.
    pub texts: Vec<Scalar>,
}

impl Variables for Named<'_> {
    fn note_use(&mut self, table: &str, column: Option<&str>) {
        let mut noted = self.noted.borrow_mut();
        noted.entry(table.to_owned()).or_default().extend(column.map(str::to_owned));
    }

    fn facts(&mut self) -> Option<&mut Facts> {
        Some(&mut self.facts)
    }

    fn began(&mut self) -> Option<Scalar> {
        self.uses_time |= self.has_time;
        self.has_time.then(|| variable(BEGAN))
    }

    fn marks_lists(&self) -> bool {
        self.marks_lists
    }

    fn current_row(&mut self, cursor: &str, table: &str, line: u32) -> Result<Scalar, Error> {
        Ok(variable(&location_in(self.cursors, cursor, table, line)?))
    }

    fn write(&mut self, name: &str, line: u32) -> Result<Scalar, Error> {
        let written = self.written(name, line)?;
        let of = self.scope.type_of(name, line).unwrap_or(UNKNOWN);
        if (of.is_text() || of == XML) && !self.texts.contains(&written) {
            self.texts.push(written.clone());
        }
        Ok(written)
    }
}

impl Named<'_> {
    fn written(&mut self, name: &str, line: u32) -> Result<Scalar, Error> {
        if !session::is_global(name) {
            return Ok(variable(self.copies.get(name).map_or(name, String::as_str)));
        }
        if let Some(part) = name.strip_prefix("@@error_") {
            return match self.caught {
                Some(number) => Ok(field(&caught_name(number), part)),
                None => {
                    let why = "it is known in a CATCH block only";
                    Err(Error::refused(&format!("{}()", &name[2..]), why, line))
                }
            };
        }
        match name {
            "@@rowcount" if self.calls => {
                return Ok(call("tsql.known", [variable(name), Scalar::text(name)]))
            }
            "@@rowcount" | "@@error" | SCOPE_IDENTITY => return Ok(variable(name)),
            "@@fetch_status" | "@@sqlstatus" if self.fetches => return Ok(variable(name)),
            "@@procid" => {
                let schema = if self.procedure.starts_with('#') { TEMPORARY } else { self.schema };
                let whole = format!("{}.{}", quoted(schema), quoted(self.procedure));
                return Ok(Scalar::text(whole).cast("regproc").cast("oid").cast("integer"));
            }
            "@@db_name" => return Ok(Scalar::text(self.database).cast("varchar")),
            _ => {}
        }
        if let Some(answer) = answer(name) {
            self.facts.varies = true;
            return Ok(answer);
        }
        let function = session::FUNCTIONS.iter().rev().find(|(_, variable, _)| *variable == name);
        let shown = function.map_or_else(|| name.to_owned(), |(function, ..)| format!("{function}()"));
        Err(Error::refused(&shown, "a procedure does not know it", line))
    }
}

/// The variable with the error that a TRY block caught.
pub(super) fn caught_name(number: u32) -> String {
    format!("@@caught {number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_declares_what_the_compiler_declares() {
        for name in [
            ABORTS,
            BEGAN,
            BODY,
            CALL,
            CONDITION,
            CONTEXT,
            CURSOR,
            DETAIL,
            DOOMED,
            FIRED,
            INDEX,
            LEFT,
            MADE,
            MESSAGE,
            N,
            OUTER_TRANCOUNT,
            ROLLED_BACK,
            ROW,
            ROWCOUNT,
            SCHEMA,
            SCOPE_IDENTITY,
            SILENT,
            STATUS,
            TABLE,
            TEXT,
            TRY,
        ] {
            assert!(session::is_global(name), "{name}");
        }
        assert!(!session::is_global("@@own"));
    }
}
