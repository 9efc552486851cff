//! The rows for INSERT … EXECUTE: result sets of the called procedure are kept here instead of being sent.

use crate::convert::{SqlType, Value};
use crate::limits::memory::Kept;
use crate::tds::tokens::message::ServerMessage;

/// The most bytes of rows of one statement.
const MOST: usize = 16 << 20;

#[derive(Debug, Default)]
pub struct Gathering {
    sets: Vec<GatheredSet>,
    bytes: usize,
    kept: Kept,
    /// There were too many rows to keep.
    overflowed: bool,
    /// The statement has a transaction of its own, which is not reported to the client.
    pub has_own_transaction: bool,
    /// @@trancount inside it.
    pub transactions: i32,
}

/// The rows of one result set.
#[derive(Debug)]
pub struct GatheredSet {
    pub types: Vec<SqlType>,
    pub rows: Vec<Vec<Value<'static>>>,
}

impl Gathering {
    pub fn new(has_own_transaction: bool, transactions: i32) -> Gathering {
        Gathering { has_own_transaction, transactions, ..Gathering::default() }
    }

    pub fn begin_set(&mut self, types: Vec<SqlType>) {
        self.sets.push(GatheredSet { types, rows: Vec::new() });
    }

    /// Adds a row to the latest set.
    pub fn row(&mut self, values: Vec<Value<'static>>) -> Result<(), ServerMessage> {
        self.bytes += values.iter().map(|value| value.length() + size_of::<Value<'_>>()).sum::<usize>();
        if let Err(refused) = self.kept.keep(self.bytes, MOST, "the rows of an 'insert … execute'") {
            self.overflowed = true;
            self.sets.clear();
            return Err(refused);
        }
        let Some(set) = self.sets.last_mut() else {
            return Err(ServerMessage::error(8623, 16, "A row came before its columns were described."));
        };
        set.rows.push(values);
        Ok(())
    }

    /// Discards the latest set, whose statement has failed.
    pub fn abandon_set(&mut self) {
        self.sets.pop();
    }

    /// Returns all sets; None after an error for too many rows.
    pub fn take(&mut self) -> Option<Vec<GatheredSet>> {
        (!self.overflowed).then(|| std::mem::take(&mut self.sets))
    }
}
