//! What runs as one statement of the client: a query or a call.

use super::parameters::Parameter;
use crate::postgres::commit::Statement;
use crate::program::Sql;
use bytes::Bytes;
use tsql::quoting::literal;

/// Handling of a procedure's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// Errors are sent to the client.
    Sent,
    /// Errors are handled by a CATCH block of the batch.
    Caught,
    /// SET XACT_ABORT is on: each error ends the batch and rolls the procedure back.
    Abort,
}

/// A statement or call to run.
pub enum Source<'a> {
    /// `repeated`: the setting tsql.repeated for this call.
    Call { statement: &'a Statement, values: &'a Bytes, only_reads: bool, repeated: &'a str, errors: Errors },
    /// `only_reads`: a SELECT without effects. `in_try`: a CATCH block handles the errors of
    /// triggers that it fires.
    Query { sql: &'a Sql, parameters: &'a [Parameter<'a>], only_reads: bool, in_try: bool },
}

impl Source<'_> {
    pub(super) fn only_reads(&self) -> bool {
        match self {
            Source::Call { only_reads, .. } | Source::Query { only_reads, .. } => *only_reads,
        }
    }

    /// Whether it is known to have no effects: it needs no transaction, and no rollback after a failure.
    pub(super) fn is_pure(&self) -> bool {
        matches!(self, Source::Query { sql, only_reads: true, .. } if !sql.facts.calls)
    }

    /// The tables to lock before it.
    pub(super) fn locks(&self) -> &[String] {
        match self {
            Source::Call { .. } => &[],
            Source::Query { sql, .. } => &sql.facts.locks,
        }
    }

    /// Whether it begins a transaction under SET IMPLICIT_TRANSACTIONS.
    pub(super) fn begins(&self) -> bool {
        match self {
            Source::Call { .. } => true,
            Source::Query { sql, only_reads, .. } => !only_reads || sql.facts.reads,
        }
    }

    /// The settings around it: the statements that set and reset them.
    pub(super) fn settings(&self) -> Vec<(String, &'static str)> {
        let mut settings = Vec::new();
        if let Source::Query { in_try: true, only_reads: false, .. } = self {
            // of a trigger also RAISERROR's
            settings.push(("set tsql.try = on".to_owned(), "set tsql.try = off"));
        }
        if let Source::Call { only_reads, repeated, errors, .. } = self {
            // compiled procedures read this setting
            match errors {
                Errors::Caught if !only_reads => {
                    settings.push(("set tsql.try = told".to_owned(), "set tsql.try = off"));
                }
                Errors::Abort if !only_reads => {
                    let set = "set tsql.try = aborts; set tsql.xact_abort = on".to_owned();
                    settings.push((set, "set tsql.try = off; set tsql.xact_abort = off"));
                }
                _ => {}
            }
            if !repeated.is_empty() {
                let set = format!("set tsql.repeated = {}", literal(repeated));
                settings.push((set, "set tsql.repeated = ''"));
            }
        }
        settings
    }
}
