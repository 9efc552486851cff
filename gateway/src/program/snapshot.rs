//! The declarations of the tables and views that the texts of a session name, which affect compilation.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use tsql::resolve::names::is_global;
use tsql::schema::{is_type, Schema, Table};

/// The most names kept per session.
const MOST_NAMES: usize = 2000;

/// Tables of all sessions by their oids: equal declarations are shared.
pub type Shared = Mutex<HashMap<u32, Arc<Table>>>;

/// The tables and views that a session has named.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The database that was searched.
    database: String,
    /// By their names in SQL; None: there is no such table.
    tables: HashMap<String, Option<Arc<Table>>>,
}

/// A snapshot for the compilation of one text.
#[derive(Debug)]
pub struct Asking {
    snapshot: Arc<Snapshot>,
    lacked: Mutex<BTreeSet<String>>,
    is_used: AtomicBool,
}

impl Snapshot {
    /// Whether this database was searched.
    pub fn is_of(&self, database: &str) -> bool {
        self.database == database
    }

    /// Whether PostgreSQL was queried for this name.
    pub fn has(&self, name: &str) -> bool {
        self.tables.contains_key(name)
    }

    /// Called before names of this database are noted.
    pub fn begin(&mut self, database: &str) {
        if self.database != database || self.tables.len() > MOST_NAMES {
            *self = Snapshot { database: database.to_owned(), tables: HashMap::new() };
        }
    }

    pub fn note(&mut self, name: &str, table: Option<Arc<Table>>) {
        self.tables.insert(name.to_owned(), table);
    }
}

impl Schema for Snapshot {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        self.tables.get(name).cloned().flatten()
    }
}

impl Schema for Asking {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        // other sessions may create it again
        if is_global(name) {
            return None;
        }
        let Some(known) = self.snapshot.tables.get(name) else {
            self.lacked.lock().insert(name.to_owned());
            return None;
        };
        // a missing type may have been created since
        self.is_used.fetch_or(known.is_some() || is_type(name), Ordering::Relaxed);
        known.clone()
    }
}

impl Asking {
    pub fn new(snapshot: Arc<Snapshot>) -> Arc<Asking> {
        Arc::new(Asking { snapshot, lacked: Mutex::default(), is_used: AtomicBool::new(false) })
    }

    /// Whether the text names a table that the session has not queried.
    pub fn lacks(&self) -> bool {
        !self.lacked.lock().is_empty()
    }

    /// The names of these tables.
    pub fn lacked(&self) -> BTreeSet<String> {
        self.lacked.lock().clone()
    }

    /// Whether the declaration of a table was used.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}
