//! The declarations of the tables and views that the texts of a session name, which affect compilation.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use tsql::resolve::names::is_global;
use tsql::schema::{is_table, Object, Schema, Table};

/// The most names kept per session.
const MOST_NAMES: usize = 2000;

/// Tables of all sessions by their oids: equal declarations are shared.
pub type Shared = Mutex<HashMap<u32, Arc<Table>>>;

/// The objects that a session has named.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The database that was searched.
    database: String,
    /// By their keys; None: there is no such object.
    objects: HashMap<String, Option<Object>>,
}

/// A snapshot for the compilation of one text.
#[derive(Debug)]
pub struct Asking {
    snapshot: Arc<Snapshot>,
    missing: Mutex<BTreeSet<String>>,
    is_used: AtomicBool,
    /// The global temporary tables have just been queried.
    has_globals: bool,
}

impl Snapshot {
    /// Whether this database was searched.
    pub fn is_of(&self, database: &str) -> bool {
        self.database == database
    }

    /// Whether PostgreSQL was queried for this name.
    pub fn has(&self, name: &str) -> bool {
        self.objects.contains_key(name)
    }

    /// Called before names of this database are noted.
    pub fn begin(&mut self, database: &str) {
        if self.database != database || self.objects.len() > MOST_NAMES {
            *self = Snapshot { database: database.to_owned(), objects: HashMap::new() };
        }
    }

    pub fn note(&mut self, key: &str, object: Option<Object>) {
        self.objects.insert(key.to_owned(), object);
    }
}

impl Schema for Snapshot {
    fn object(&self, key: &str) -> Option<Object> {
        self.objects.get(key).cloned().flatten()
    }
}

impl Schema for Asking {
    fn object(&self, key: &str) -> Option<Object> {
        // other sessions may create it again before the text runs
        if is_global(key) && !self.has_globals {
            return None;
        }
        let Some(object) = self.snapshot.objects.get(key) else {
            self.missing.lock().insert(key.to_owned());
            return None;
        };
        // a missing type may have been created since
        self.is_used.fetch_or(object.is_some() || !is_table(key), Ordering::Relaxed);
        object.clone()
    }
}

impl Asking {
    pub fn new(snapshot: Arc<Snapshot>, has_globals: bool) -> Arc<Asking> {
        Arc::new(Asking { snapshot, missing: Mutex::default(), is_used: AtomicBool::new(false), has_globals })
    }

    /// Whether the text names a table that the session has not queried.
    pub fn has_missing(&self) -> bool {
        !self.missing.lock().is_empty()
    }

    /// The names of these tables.
    pub fn missing(&self) -> BTreeSet<String> {
        self.missing.lock().clone()
    }

    /// Whether the declaration of a table was used.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}
