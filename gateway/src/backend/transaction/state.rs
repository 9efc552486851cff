//! @@transtate (ASE, Transact-SQL Users Guide, "Transaction states"). Only statements that change data, and those that
//! begin or end a transaction, set it; errors of syntax and names do not.

use crate::postgres::PgError;
use tsql::facts::errors::{sqlstate_ends, Ends};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransactionState {
    InProgress,
    #[default]
    Committed,
    StatementAborted,
    RolledBack,
    /// The guide does not define it for a statement that fails outside of a transaction.
    Undocumented,
}

impl TransactionState {
    pub fn number(self) -> Option<i64> {
        match self {
            TransactionState::InProgress => Some(0),
            TransactionState::Committed => Some(1),
            TransactionState::StatementAborted => Some(2),
            TransactionState::RolledBack => Some(3),
            TransactionState::Undocumented => None,
        }
    }

    /// After a statement or call that may change data. `error`: its error, if it failed.
    pub fn after(self, is_open: bool, error: Option<&PgError>) -> TransactionState {
        match error {
            None if is_open => TransactionState::InProgress,
            None => TransactionState::Committed,
            Some(error) if error.sqlstate().is_some_and(|state| sqlstate_ends(state) == Ends::Text) => self,
            Some(_) if is_open => TransactionState::StatementAborted,
            Some(_) => TransactionState::Undocumented,
        }
    }
}
