//! The last caller of each procedure, and its last error: for programs that do not report their own state.

use crate::tds::login::Login;
use crate::tds::tokens::message::ServerMessage;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// Number of characters kept of an error.
const LONGEST_TEXT: usize = 400;
/// Maximum number of procedures with a last call: clients may create and drop any number of procedures.
const MOST_PROCEDURES: usize = 10_000;

/// A client's identity, and its own description at login.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub host: String,
    pub program: String,
    pub login: String,
}

impl Caller {
    pub fn of(login: &Login) -> Caller {
        Caller { host: login.host.clone(), program: login.application.clone(), login: login.user.clone() }
    }
}

#[derive(Clone, Debug)]
pub struct LastCall {
    pub caller: Arc<Caller>,
    pub at: SystemTime,
    pub error: Option<LastError>,
}

#[derive(Clone, Debug)]
pub struct LastError {
    pub at: SystemTime,
    pub number: i32,
    pub text: String,
}

/// The last call of a procedure.
#[derive(Debug, Default)]
pub struct Last(Mutex<Option<LastCall>>);

impl Last {
    pub fn note(&self, caller: &Arc<Caller>, error: Option<&ServerMessage>) {
        let at = SystemTime::now();
        let error = error.map(|message| LastError {
            at,
            number: message.number,
            text: message.text.chars().take(LONGEST_TEXT).collect(),
        });
        let mut last = self.0.lock();
        match &mut *last {
            Some(last) if error.is_none() && Arc::ptr_eq(&last.caller, caller) => return last.at = at,
            _ => {}
        }
        let error = error.or_else(|| last.take().and_then(|before| before.error));
        *last = Some(LastCall { caller: caller.clone(), at, error });
    }
}

/// The last calls of all procedures that were called, by their names.
#[derive(Clone, Debug, Default)]
pub struct LastCalls(Arc<Mutex<BTreeMap<String, Arc<Last>>>>);

impl LastCalls {
    /// The entry of a procedure, which stays the same when the catalogue is read again.
    pub fn of(&self, procedure: &str) -> Arc<Last> {
        let mut all = self.0.lock();
        if all.len() >= MOST_PROCEDURES && !all.contains_key(procedure) {
            return Arc::default();
        }
        all.entry(procedure.to_owned()).or_default().clone()
    }

    pub fn all(&self) -> Vec<(String, LastCall)> {
        let all = self.0.lock();
        all.iter().filter_map(|(name, last)| Some((name.clone(), last.0.lock().clone()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_stays_when_calls_go_well_again() {
        let (calls, caller) = (LastCalls::default(), Arc::new(Caller::default()));
        let long = ServerMessage::error(2601, 14, "ü".repeat(1000));
        calls.of("s.put").note(&caller, Some(&long));
        calls.of("s.put").note(&caller, None);
        calls.of("s.never");
        let all = calls.all();
        assert_eq!(all.len(), 1);
        let error = all[0].1.error.as_ref().unwrap();
        assert_eq!((error.number, error.text.chars().count()), (2601, LONGEST_TEXT));
        assert!(error.at <= all[0].1.at);
    }
}
