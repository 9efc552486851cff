//! The tables that inserts have filled, of which @@identity (the latest statement in any scope) and scope_identity()
//! (inserts of the same procedure or batch) tell the numbers.

/// Tables remembered of one scope.
const MOST: usize = 16;

/// The tables that inserts have filled, as PostgreSQL reads their names.
#[derive(Default)]
pub struct Identities {
    /// That of the latest insert; None where another statement, which may have given numbers, came after it.
    pub(super) latest: Option<String>,
    pub(super) scope: Scope,
}

/// What inserts of one procedure or batch have filled.
#[derive(Default)]
pub struct Scope {
    /// The tables, the latest last, whose numbers nothing but this scope has taken since.
    pub(super) tables: Vec<String>,
    /// The number that rows were given before those.
    pub(super) before: Option<i64>,
}

impl Identities {
    /// Called after a change. `into`: the table that it has inserted rows into.
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

    /// A procedure is a scope of its own. Returns the one around it, for `leave`.
    pub fn enter(&mut self) -> Scope {
        std::mem::take(&mut self.scope)
    }

    pub fn leave(&mut self, around: Scope) {
        self.scope = around;
    }
}
