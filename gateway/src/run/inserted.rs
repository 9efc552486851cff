//! The tables filled by inserts: the numbers of @@identity (latest statement in any scope) and scope_identity()
//! (inserts of the same procedure or batch) are theirs.

/// The most tables remembered per scope.
const MOST: usize = 16;

/// The tables that inserts have filled, as PostgreSQL reads their names.
#[derive(Default)]
pub struct Identities {
    /// The table of the latest insert; None if another statement that may have assigned numbers followed.
    pub latest: Option<String>,
    pub scope: Scope,
}

/// The tables filled by inserts of one procedure or batch.
#[derive(Default)]
pub struct Scope {
    /// The tables, the latest last, into which no other scope has inserted since.
    pub tables: Vec<String>,
    /// The number assigned to rows before those.
    pub before: Option<i64>,
}

impl Identities {
    /// Called after a change. `into`: the table into which it inserted rows.
    pub fn changed(&mut self, into: Option<&str>, rows: u64) {
        self.latest = into.map(str::to_owned);
        if let Some(table) = into.filter(|_| rows > 0) {
            let tables = &mut self.scope.tables;
            tables.retain(|known| known != table);
            if tables.len() == MOST {
                tables.remove(0);
            }
            tables.push(table.to_owned());
        }
    }

    /// Begins the scope of a procedure. Returns the outer scope, for `leave`.
    pub fn enter(&mut self) -> Scope {
        std::mem::take(&mut self.scope)
    }

    pub fn leave(&mut self, around: Scope) {
        self.scope = around;
    }
}
