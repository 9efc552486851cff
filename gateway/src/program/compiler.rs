//! The compiler of T-SQL, which is `ringlog.gateway.tsql` in Python, and the programs it has made. A text
//! that comes again under the same settings costs no Python.

use super::{json, Program};
use crate::convert::SqlType;
use crate::metrics::Metrics;
use crate::server::log;
use crate::tds::tokens::message::ServerMessage;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How long a client waits for the compiler.
const PATIENCE: Duration = Duration::from_secs(20);
/// Texts compiled at one time. Python runs one at a time; one that takes long lets others through.
const AT_ONCE: usize = 4;
/// Programs and bytes of text kept, by half of each.
const MOST_PROGRAMS: usize = 2_000;
const MOST_BYTES: usize = 16 << 20;
/// Bytes of the longest text that is kept.
const LONGEST_KEPT: usize = 256 << 10;

/// What a text is compiled under beside itself.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Settings {
    /// The schema that the client uses.
    pub database: String,
    pub quoted_identifiers: bool,
    /// The client is one of Sybase's.
    pub sybase: bool,
    /// `?` is a place for a parameter.
    pub placeholders: bool,
    /// What is declared already: the number of the type and its modifier.
    pub variables: BTreeMap<String, (u32, i32)>,
}

impl Settings {
    pub fn declare(&mut self, name: &str, sql_type: SqlType) {
        self.variables.insert(name.to_owned(), (sql_type.oid, sql_type.typmod));
    }

    pub fn declared(&self) -> impl Iterator<Item = (&str, SqlType)> {
        self.variables
            .iter()
            .map(|(name, (oid, typmod))| (name.as_str(), SqlType { oid: *oid, typmod: *typmod }))
    }
}

pub struct Compiler {
    programs: Mutex<Programs>,
    places: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

impl Compiler {
    pub fn new(metrics: &Arc<Metrics>) -> Compiler {
        Compiler {
            programs: Mutex::new(Programs::default()),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            metrics: metrics.clone(),
        }
    }

    pub async fn compile(&self, text: &str, settings: &Settings) -> Result<Arc<Program>, ServerMessage> {
        let settings = serde_json::to_string(settings).map_err(|error| failed(&error.to_string()))?;
        let key = format!("{settings}{text}");
        if let Some(program) = self.programs().get(&key) {
            self.metrics.compiled_again.inc();
            return Ok(program);
        }
        let start = Instant::now();
        let compiled = tokio::time::timeout(PATIENCE, self.call(text.to_owned(), settings)).await;
        self.metrics.compilations.observe(start.elapsed().as_secs_f64());
        let json = compiled.map_err(|_| {
            let seconds = PATIENCE.as_secs();
            failed(&format!("it took longer than {seconds} s: send the statements in smaller batches"))
        })??;
        let program = json::read(&json).map_err(|problem| {
            log(&format!("the compiler of T-SQL gave what is no program: {problem}"));
            failed(&problem)
        })??;
        let program = Arc::new(program);
        self.programs().keep(key, &program);
        Ok(program)
    }

    async fn call(&self, text: String, settings: String) -> Result<String, ServerMessage> {
        let place = self.places.clone().acquire_owned().await.map_err(|error| failed(&error.to_string()))?;
        let call = tokio::task::spawn_blocking(move || {
            // whoever waits may give up, but the thread and its place are busy to the end
            let _place = place;
            call(&text, &settings)
        });
        call.await.unwrap_or_else(|error| Err(failed(&error.to_string())))
    }

    fn programs(&self) -> std::sync::MutexGuard<'_, Programs> {
        match self.programs.lock() {
            Ok(programs) => programs,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

fn failed(why: &str) -> ServerMessage {
    ServerMessage::error(8623, 16, format!("The batch could not be compiled: {why}."))
}

/// Calls Python. That it is not there happens to programs that only link this crate.
fn call(text: &str, settings: &str) -> Result<String, ServerMessage> {
    static COMPILE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let called = Python::try_attach(|py| {
        let compile = COMPILE.import(py, "ringlog.gateway.tsql", "compile_batch")?;
        compile.call1((text, settings))?.extract::<String>()
    });
    match called {
        None => Err(failed("this process runs no Python, which the compiler of T-SQL needs")),
        Some(Ok(json)) => Ok(json),
        Some(Err(error)) => {
            log(&format!("the compiler of T-SQL failed: {error}"));
            Err(failed("the compiler of T-SQL failed, which is a defect of ringlog; its log says more"))
        }
    }
}

/// Programs by settings and text, in two generations: when the younger is full it becomes the older, and what
/// the older holds is forgotten unless it has been asked for meanwhile.
#[derive(Default)]
struct Programs {
    young: HashMap<String, Arc<Program>>,
    old: HashMap<String, Arc<Program>>,
    /// Of the young ones' keys.
    bytes: usize,
}

impl Programs {
    fn get(&mut self, key: &str) -> Option<Arc<Program>> {
        if let Some(program) = self.young.get(key) {
            return Some(program.clone());
        }
        let (key, program) = self.old.remove_entry(key)?;
        self.keep(key, &program);
        Some(program)
    }

    fn keep(&mut self, key: String, program: &Arc<Program>) {
        if key.len() > LONGEST_KEPT {
            return;
        }
        if self.young.len() >= MOST_PROGRAMS / 2 || self.bytes + key.len() > MOST_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += key.len();
        self.young.insert(key, program.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_again_is_kept_and_the_rest_is_bounded() {
        let mut programs = Programs::default();
        let program = Arc::new(Program::default());
        for number in 0..10 * MOST_PROGRAMS {
            programs.keep(number.to_string(), &program);
            assert!(programs.get("0").is_some(), "{number}");
        }
        assert!(programs.get("1").is_none());
        assert!(programs.young.len() + programs.old.len() <= MOST_PROGRAMS);
        for number in 0..200 {
            programs.keep(format!("{number}{}", "x".repeat(LONGEST_KEPT - 10)), &program);
        }
        let bytes: usize = programs.young.keys().chain(programs.old.keys()).map(String::len).sum();
        assert!(bytes <= MOST_BYTES, "{bytes}");
        programs.keep("y".repeat(LONGEST_KEPT + 1), &program);
        assert!(programs.get(&"y".repeat(LONGEST_KEPT + 1)).is_none());
    }

    #[tokio::test]
    async fn without_python_the_error_says_so() {
        let compiler = Compiler::new(&Arc::new(Metrics::default()));
        let error = compiler.compile("select 1", &Settings::default()).await.unwrap_err();
        assert!(error.text.contains("no Python"), "{}", error.text);
    }
}
