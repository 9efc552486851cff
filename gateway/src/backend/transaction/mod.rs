//! The client's transaction. BEGIN is sent to PostgreSQL only with the first statement that needs it, so drivers that
//! begin a transaction at once hold nothing there.

pub(super) mod begin_commit;
pub(super) mod state;

use crate::catalogue::Catalogue;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct Transaction {
    /// @@trancount
    pub depth: i32,
    /// PostgreSQL has a transaction open.
    pub started: bool,
    /// The value of PostgreSQL's setting tsql.trancount.
    pub reported_depth: i32,
    /// Something may have been written in PostgreSQL's transaction, or depends on it.
    pub has_effects: bool,
    /// A CATCH handled an error that would have ended the transaction: it can only be rolled back as a whole.
    pub doomed: bool,
    /// The name given at its begin, or "".
    name: String,
    /// Names of the client's savepoints, oldest first, perhaps repeated.
    savepoints: Vec<String>,
    /// The catalogue of procedures, after a definition in the transaction.
    pub catalogue: Option<Arc<Catalogue>>,
}

impl Transaction {
    pub fn is_open(&self) -> bool {
        self.depth > 0
    }

    /// Begins the transaction, or another level of it. `name` is "" for none.
    pub fn begin(&mut self, name: &str) {
        self.depth += 1;
        if self.depth == 1 {
            name.clone_into(&mut self.name);
        }
    }

    pub fn end(&mut self) {
        *self = Transaction::default();
    }

    /// Whether a rollback to `name` ends the whole transaction. Names are always case-sensitive (SQL Server: BEGIN
    /// TRANSACTION).
    pub fn is_named(&self, name: &str) -> bool {
        name.is_empty() || self.name == name
    }

    /// The number of the client's latest savepoint of this name, which is always case-sensitive (SQL Server: SAVE
    /// TRANSACTION).
    pub fn savepoint(&self, name: &str) -> Option<usize> {
        self.savepoints.iter().rposition(|known| known == name)
    }

    /// The number that the next savepoint will have.
    pub fn next_savepoint(&self) -> usize {
        self.savepoints.len()
    }

    pub fn saved(&mut self, name: &str) {
        self.savepoints.push(name.to_owned());
    }

    /// Forgets the savepoints made after number `savepoint`, as PostgreSQL does at a rollback to it.
    pub fn went_back_to(&mut self, savepoint: usize) {
        self.savepoints.truncate(savepoint + 1);
        self.reported_depth = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_savepoints_with_one_name_the_latest_counts() {
        let mut transaction = Transaction::default();
        transaction.begin("all");
        for name in ["a", "b", "a", "A"] {
            transaction.saved(name);
        }
        assert_eq!(transaction.savepoint("a"), Some(2));
        assert_eq!((transaction.savepoint("A"), transaction.savepoint("B")), (Some(3), None));
        transaction.went_back_to(1);
        assert_eq!((transaction.savepoint("a"), transaction.next_savepoint()), (Some(0), 2));
    }

    #[test]
    fn the_outermost_name_is_the_transaction() {
        let mut transaction = Transaction::default();
        transaction.begin("all");
        transaction.begin("inner");
        assert!(transaction.is_named("all") && transaction.is_named(""));
        assert!(!transaction.is_named("ALL") && !transaction.is_named("inner"));
        transaction.end();
        assert!(!transaction.is_open() && transaction.is_named("") && !transaction.is_named("all"));
    }
}
