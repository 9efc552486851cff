//! Why a call was not completed, and whether it may succeed when it is repeated.

use crate::backend::Unfinished;
use crate::catalogue::Function;
use crate::interrupt::{Failure, Interrupt};
use crate::postgres::commit::{not_written, TALKS_TOO_MUCH};
use crate::postgres::PgError;
use crate::tds::tokens::message::ServerMessage;

/// SQLSTATE of a procedure whose table or signal is on another server.
pub(super) const MOVED: &str = "RL006";
/// SQLSTATE of tsql.demand_columns, raised before the call runs.
pub(super) const OTHER_COLUMNS: &str = "RL007";
/// data_corrupted and index_corrupted: a damaged page on the disk.
const DAMAGED: [&str; 2] = ["XX001", "XX002"];

/// The reason why a call was not completed.
pub(super) enum Refusal {
    /// The function has no such parameter, according to the catalogue.
    Unfit(ServerMessage),
    /// Refused without an effect, perhaps because the catalogue is outdated, or because the call shared a
    /// transaction.
    Outdated(PgError),
    Interrupt(Interrupt),
}

/// The catalogue may be outdated while PostgreSQL cannot be reached: the call is to be repeated.
pub(super) fn not_known(what: &str) -> PgError {
    not_written(format!(
        "PostgreSQL cannot be reached, and whether {what} is not known: nothing was written."
    ))
}

impl<E: Into<Interrupt>> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal::Interrupt(error.into())
    }
}

/// The failure of a call that was not completed.
pub(super) fn refusal(unfinished: Unfinished, function: &Function) -> Refusal {
    match unfinished {
        Unfinished::Refused(error) | Unfinished::Failed(error) if may_be_outdated(&error) => {
            Refusal::Outdated(error)
        }
        Unfinished::Refused(error) | Unfinished::Failed(error) => Failure::of_call(&error).into(),
        Unfinished::Unsendable(message) => Failure::of_statement(message.in_procedure(&function.name)).into(),
        other => Refusal::Interrupt(other.into()),
    }
}

/// Whether a repeated call may succeed: a damaged page may be repaired, and the function, its row type or an object in
/// its body may have changed since the catalogue was read, or while the call waited for the change. PostgreSQL may
/// report this by any error of class 42 (syntax error or access rule violation): for a body that is older than its
/// table, "cannot cast type record", "INSERT has more expressions than target columns", "column … does not exist".
pub(super) fn may_be_outdated(error: &PgError) -> bool {
    /// insufficient_privilege
    const REFUSED: &str = "42501";
    /// feature_not_supported: "cached plan must not change result type"; invalid_sql_statement_name,
    /// invalid_schema_name, protocol_violation and invalid_binary_representation: for a Bind message;
    /// internal_error: "cache lookup failed for type", "attribute number 4 exceeds number of columns 3"
    const OTHERS: [&str; 6] = ["0A000", "26000", "3F000", "08P01", "22P03", "XX000"];
    let PgError::Server(notice) = error else { return false };
    match notice.sqlstate.as_str() {
        MOVED | OTHER_COLUMNS => true,
        state if DAMAGED.contains(&state) => true,
        // raised by the procedure itself
        _ if notice.context.lines().next().is_some_and(|line| line.ends_with(" at RAISE")) => false,
        REFUSED => false,
        state => state.starts_with("42") || OTHERS.contains(&state),
    }
}

/// Errors of a body that names columns which its table does not have, or no longer has: undefined_column,
/// datatype_mismatch, cannot_coerce, syntax_error ("INSERT has more expressions than target columns"). The caller's
/// values are not wrong; the row can be written after the procedure is created again.
pub(super) const OTHER_TABLE: [&str; 4] = ["42703", "42804", "42846", "42601"];

/// Whether a call has found a damaged page.
pub(super) fn is_damage(error: &PgError) -> bool {
    error.sqlstate().is_some_and(|state| DAMAGED.contains(&state))
}

/// Whether a call was refused because of its many messages.
pub(super) fn talks(error: &PgError) -> bool {
    error.sqlstate() == Some(TALKS_TOO_MUCH)
}

/// The node named in the procedure's error.
pub(super) fn node_that_has(error: &PgError) -> Option<&str> {
    match error {
        PgError::Server(notice) if notice.sqlstate == MOVED && !notice.detail.is_empty() => {
            Some(&notice.detail)
        }
        _ => None,
    }
}
