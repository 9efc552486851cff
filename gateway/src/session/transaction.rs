//! The client's transaction. BEGIN reaches PostgreSQL only with the first statement that needs it, so that
//! drivers that begin one at once hold nothing there.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// @@trancount
    pub depth: i32,
    /// PostgreSQL has a transaction open.
    pub started: bool,
    /// Savepoints the client made, as they stand in PostgreSQL.
    pub savepoints: Vec<String>,
}

impl Transaction {
    pub fn is_open(&self) -> bool {
        self.depth > 0
    }

    pub fn end(&mut self) {
        *self = Transaction::default();
    }
}
