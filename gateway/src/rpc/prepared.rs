//! The statements that a client has prepared: by number at 7.x, by name at 5.0. They outlive the connection on which
//! PostgreSQL prepared them.

use crate::limits::memory::{Kept, NO_MEMORY};
use crate::program::{Declaration, Given, Program};
use crate::tds::tokens::message::ServerMessage;
use std::collections::HashMap;
use std::sync::Arc;

/// Limits of a session.
const MOST_STATEMENTS: usize = 10_000;
const MOST_BYTES: usize = 32 << 20;
/// Estimated bytes of a compiled statement, and per byte of its text.
const OF_A_STATEMENT: usize = 1 << 10;
const OF_A_BYTE: usize = 4;

#[derive(Debug)]
pub struct Prepared {
    pub declarations: Vec<Declaration>,
    pub program: Arc<Program>,
    /// The values of its text's literals, for the variables that replace them.
    pub literals: Arc<[Given]>,
    pub text: String,
}

impl Prepared {
    /// A program whose text is not needed again.
    pub fn of(program: Arc<Program>) -> Prepared {
        Prepared { declarations: Vec::new(), program, literals: Arc::default(), text: String::new() }
    }
}

/// The work that sp_execute does for a handle.
#[derive(Clone, Debug)]
pub enum Target {
    Text(Arc<Prepared>),
    /// A call of the procedure of this name.
    Call(Arc<str>),
}

/// The handle of a call that runs.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub handle: i32,
    given: Option<i32>,
}

impl Target {
    fn text(&self) -> &str {
        match self {
            Target::Text(prepared) => &prepared.text,
            Target::Call(name) => name,
        }
    }
}

#[derive(Debug, Default)]
pub struct PreparedStatements {
    last_handle: i32,
    by_handle: HashMap<i32, Target>,
    by_name: HashMap<String, Arc<Prepared>>,
    /// The temporary tables created by named statements, by their oids.
    made: HashMap<String, Vec<String>>,
    bytes: usize,
    kept: Kept,
}

impl PreparedStatements {
    fn admit(&mut self, text: &str) -> Result<(), ServerMessage> {
        if self.by_handle.len() + self.by_name.len() >= MOST_STATEMENTS {
            let text = format!("There are {MOST_STATEMENTS} prepared statements: close some.");
            return Err(ServerMessage::error(NO_MEMORY, 17, text));
        }
        let bytes = self.bytes + size(text);
        self.kept.keep(bytes, MOST_BYTES, "prepared statements")?;
        self.bytes = bytes;
        Ok(())
    }

    /// Stores a statement or call. Returns its handle.
    pub fn keep(&mut self, target: Target) -> Result<i32, ServerMessage> {
        self.admit(target.text())?;
        while {
            self.last_handle = self.last_handle.checked_add(1).unwrap_or(1);
            self.by_handle.contains_key(&self.last_handle)
        } {}
        self.by_handle.insert(self.last_handle, target);
        Ok(self.last_handle)
    }

    /// Stores a statement by name, and replaces one of the same name.
    pub fn keep_as(&mut self, name: &str, prepared: Arc<Prepared>) -> Result<(), ServerMessage> {
        self.close_named(name);
        self.admit(&prepared.text)?;
        self.by_name.insert(name.to_owned(), prepared);
        Ok(())
    }

    /// The handle of a call of `name`: the one `given` if it is of such a call, else a new one.
    pub fn hold(&mut self, given: Option<i32>, name: &Arc<str>) -> Result<Held, ServerMessage> {
        let is_same = |target: &Target| matches!(target, Target::Call(held) if held == name);
        match given.filter(|given| self.by_handle.get(given).is_some_and(is_same)) {
            Some(handle) => Ok(Held { handle, given }),
            None => Ok(Held { handle: self.keep(Target::Call(name.clone()))?, given }),
        }
    }

    /// Closes the handle that the client does not get or no longer uses: the new one after a failed call, the given one
    /// after another.
    pub fn settle(&mut self, held: &Held, has_succeeded: bool) {
        if held.given != Some(held.handle) {
            let unused = if has_succeeded { held.given } else { Some(held.handle) };
            unused.map(|handle| self.close(handle));
        }
    }

    pub fn get(&self, handle: i32) -> Option<Target> {
        self.by_handle.get(&handle).cloned()
    }

    pub fn named(&self, name: &str) -> Result<Arc<Prepared>, ServerMessage> {
        // ASE's error for a missing procedure, as which it treats a dynamic statement
        let missing = || ServerMessage::error(2812, 16, format!("There is no prepared statement '{name}'."));
        self.by_name.get(name).cloned().ok_or_else(missing)
    }

    /// Returns whether the statement existed.
    pub fn close(&mut self, handle: i32) -> bool {
        let closed = self.by_handle.remove(&handle);
        self.forgotten(closed.as_ref().map(Target::text))
    }

    pub fn close_named(&mut self, name: &str) -> bool {
        let closed = self.by_name.remove(name);
        self.forgotten(closed.as_ref().map(|prepared| &*prepared.text))
    }

    /// Notes the temporary tables that the statement of this name has created.
    pub fn has_made(&mut self, name: &str, tables: Vec<String>) {
        if !tables.is_empty() {
            self.made.entry(name.to_owned()).or_default().extend(tables);
        }
    }

    /// Removes and returns the tables that a statement of this name has created.
    pub fn take_made(&mut self, name: &str) -> Vec<String> {
        self.made.remove(name).unwrap_or_default()
    }

    fn forgotten(&mut self, closed: Option<&str>) -> bool {
        if let Some(text) = closed {
            self.bytes = self.bytes.saturating_sub(size(text));
            // a decrease is never refused
            let _ = self.kept.keep(self.bytes, MOST_BYTES, "prepared statements");
        }
        closed.is_some()
    }
}

fn size(text: &str) -> usize {
    OF_A_STATEMENT + OF_A_BYTE * text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Arc<Prepared> {
        Arc::new(Prepared {
            declarations: Vec::new(),
            program: Arc::default(),
            literals: Arc::default(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn handles_are_not_given_twice() {
        let mut kept = PreparedStatements::default();
        let first = kept.keep(Target::Text(statement("select 1"))).unwrap();
        assert!(kept.close(first) && !kept.close(first) && kept.get(first).is_none());
        let second = kept.keep(Target::Text(statement("select 2"))).unwrap();
        assert_ne!(first, second);
        kept.last_handle = i32::MAX;
        assert_eq!(kept.keep(Target::Text(statement("select 3"))).unwrap(), 1);
    }

    #[test]
    fn a_call_again_keeps_its_handle() {
        let mut kept = PreparedStatements::default();
        let mut hold = |given, name: &str, has_succeeded| {
            let held = kept.hold(given, &name.into()).unwrap();
            kept.settle(&held, has_succeeded);
            let mut handles: Vec<i32> = kept.by_handle.keys().copied().collect();
            handles.sort_unstable();
            (held.handle, handles)
        };
        assert_eq!(hold(None, "a", false), (1, vec![]));
        assert_eq!(hold(None, "a", true), (2, vec![2]));
        assert_eq!(hold(Some(2), "a", false), (2, vec![2]));
        assert_eq!(hold(Some(2), "b", false), (3, vec![2]));
        assert_eq!(hold(Some(2), "b", true), (4, vec![4]));
        assert_eq!(hold(Some(9), "c", true), (5, vec![4, 5]));
    }

    #[test]
    fn what_a_session_keeps_is_bounded() {
        let _alone = crate::limits::memory::ALONE.lock();
        let mut kept = PreparedStatements::default();
        let long = "x".repeat(MOST_BYTES / OF_A_BYTE / 5 * 3);
        kept.keep_as("a", statement(&long)).unwrap();
        kept.keep_as("a", statement(&long)).unwrap();
        assert_eq!(kept.keep_as("b", statement(&long)).unwrap_err().number, 701);
        assert!(kept.close_named("a") && !kept.close_named("b"));
        kept.keep(Target::Text(statement(&long))).unwrap();
    }
}
