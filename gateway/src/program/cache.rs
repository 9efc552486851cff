//! Caches the programs of texts. The key is the text without the values of its literals: one program serves all texts
//! that differ only in literals that do not affect compilation.

use super::literal;
use super::Asking;
use crate::convert::SqlType;
use crate::metrics::Metrics;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use quick_cache::Weighter;
use std::fmt::Write;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Instant;
use tsql::program::{Program, Settings};
use tsql::schema::Schema;
use tsql::Reading;

/// The most bytes of a text that is compiled on its session's thread; a longer one is compiled on its own thread.
const LONGEST_AT_ONCE: usize = 16 << 10;
/// The most bytes of cached keys and programs.
const MOST_BYTES: usize = 64 << 20;
/// The initial capacity in keys.
const USUAL: usize = 1000;
/// Bytes of the longest key that is kept.
const LONGEST_KEPT: usize = 256 << 10;
/// The most programs of one key, which differ in literals that affect compilation.
const MOST_VARIANTS: usize = 32;

/// A text ready to run.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub program: Arc<Program>,
    /// The variables that stand for literals, with their values in this text.
    pub literals: Arc<[Given]>,
}

/// The value of one of a program's variables in a text.
#[derive(Clone, Debug)]
pub struct Given {
    pub name: String,
    pub sql_type: SqlType,
    pub value: Value<'static>,
}

/// The text that a session compiled last, so that a repeated text is compiled once.
#[derive(Debug, Default)]
pub struct Latest(Option<(String, Settings, bool, Compiled)>);

impl Latest {
    pub fn get(&self, text: &str, settings: &Settings, lifts: bool, schema: &Asking) -> Option<&Compiled> {
        let (of, under, lifted, compiled) = self.0.as_ref()?;
        let is_same = of == text && under == settings && *lifted == lifts;
        (is_same && compiled.program.uses.hold_in(schema) && !schema.has_missing()).then_some(compiled)
    }

    pub fn keep(&mut self, text: &str, settings: &Settings, lifts: bool, compiled: &Compiled) {
        if text.len() <= LONGEST_AT_ONCE {
            self.0 = Some((text.to_owned(), settings.clone(), lifts, compiled.clone()));
        }
    }
}

pub struct Programs {
    kept: Mutex<Kept>,
    metrics: Arc<Metrics>,
}

impl Programs {
    pub fn new(metrics: &Arc<Metrics>) -> Programs {
        Programs::holding(MOST_BYTES, metrics)
    }

    fn holding(bytes: usize, metrics: &Arc<Metrics>) -> Programs {
        let kept = Cache::with_weighter(USUAL, bytes as u64, Bytes);
        Programs { kept: Mutex::new(kept), metrics: metrics.clone() }
    }

    /// The program of a text. `lifts`: variables may replace its literals. If the schema lacks a name, which must be asked
    /// for, there may be an error instead.
    pub async fn compile(
        self: &Arc<Self>,
        text: &str,
        settings: &Settings,
        lifts: bool,
        schema: Arc<Asking>,
    ) -> Result<Compiled, ServerMessage> {
        if text.len() <= LONGEST_AT_ONCE {
            return self.compile_here(text, settings, lifts, &schema);
        }
        let (programs, text, settings) = (self.clone(), text.to_owned(), settings.clone());
        let compiling =
            tokio::task::spawn_blocking(move || programs.compile_here(&text, &settings, lifts, &schema));
        compiling.await.unwrap_or_else(|_| Err(no_compiler()))
    }

    fn compile_here(
        &self,
        text: &str,
        settings: &Settings,
        lifts: bool,
        schema: &Arc<Asking>,
    ) -> Result<Compiled, ServerMessage> {
        let reading = unless_it_panics(|| Reading::new(text, settings))?;
        let key = key(settings, lifts, &reading);
        let kept = find(&self.kept.lock(), &key, &reading, schema);
        let program = match kept {
            Some(program) => {
                self.metrics.compiled_again.inc();
                program
            }
            None if schema.has_missing() => {
                let text = "The text names objects that have not been looked for.";
                return Err(ServerMessage::error(8623, 16, text));
            }
            None => {
                let start = Instant::now();
                let under: Arc<dyn Schema> = schema.clone();
                let program = Arc::new(unless_it_panics(|| reading.compile(settings, lifts, &under))?);
                if !schema.has_missing() {
                    self.metrics.compilations.observe(start.elapsed().as_secs_f64());
                    keep(&mut self.kept.lock(), key, Variant::new(&program, &reading));
                }
                program
            }
        };
        let values = reading.values(&program.lifted, settings.dialect);
        let values = values.ok_or_else(|| {
            ServerMessage::error(8623, 16, "A literal of the batch is not what its program expects.")
        })?;
        let given = program.lifted.iter().zip(&values).map(|(lifted, value)| Given {
            name: lifted.name.clone(),
            sql_type: SqlType { oid: lifted.of.oid, typmod: lifted.of.typmod() },
            value: literal::value_of(value),
        });
        let literals = given.collect();
        Ok(Compiled { program, literals })
    }
}

/// Runs the compiler. A panic, which is a defect of ringlog and logged with its trace (log.rs), becomes an error of the
/// text and does not end the session.
fn unless_it_panics<T>(work: impl FnOnce() -> Result<T, tsql::Error>) -> Result<T, ServerMessage> {
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(made) => made.map_err(|error| literal::refusal(&error)),
        Err(_) => Err(no_compiler()),
    }
}

/// 8624: "Internal Query Processor Error".
fn no_compiler() -> ServerMessage {
    let text = "Internal error of ringlog's compiler: the text may be right, and nothing of it has run. Report the text \
                with the panic in the gateway's log.";
    ServerMessage::error(8624, 16, text)
}

/// All that a program depends on besides the literals of its text.
fn key(settings: &Settings, lifts: bool, reading: &Reading<'_>) -> String {
    let Settings {
        database,
        quoted_identifiers,
        dialect,
        nulls_equal,
        limits_rows,
        placeholders,
        variables,
        partial,
        identity_insert,
        procedure,
        is_inside,
        is_stored,
        given,
        databases,
    } = settings;
    let mut key = String::with_capacity(database.len() + 32 * variables.len() + 16);
    let flags = [
        *quoted_identifiers,
        dialect.is_ase,
        *nulls_equal,
        *limits_rows,
        *placeholders,
        *procedure,
        *is_inside,
        *is_stored,
        lifts,
    ];
    key.extend(flags.map(|flag| if flag { '1' } else { '0' }));
    key.push_str(database);
    for schema in &databases.folding {
        let _ = write!(key, "\0~{schema}");
    }
    for (schema, database) in &databases.inner {
        let _ = write!(key, "\0{database}.{schema}");
    }
    for (name, of) in variables {
        // writing to a String does not fail
        let (length, fraction) = (of.length.unwrap_or(0), of.fraction.unwrap_or(u8::MAX));
        let (digits, twin) = (of.typmod(), u8::from(of.twin));
        let _ = write!(key, "\0{name} {} {} {digits} {twin} {length} {fraction}", of.name, of.oid);
    }
    for table in partial.keys() {
        let _ = write!(key, "\0<{table}");
    }
    if let Some(table) = identity_insert {
        let _ = write!(key, "\0={table}");
    }
    if !given.is_empty() {
        let _ = write!(key, "\0@{given}");
    }
    key.push_str("\0\0");
    key + &reading.skeleton()
}

/// A program and the literals that it was compiled with.
struct Variant {
    /// Their numbers in the text, and their spelling.
    fixed: Vec<(usize, String)>,
    program: Arc<Program>,
    bytes: usize,
}

impl Variant {
    fn new(program: &Arc<Program>, reading: &Reading<'_>) -> Variant {
        let lifted = |index: usize| program.lifted.iter().any(|lifted| lifted.index as usize == index);
        let fixed: Vec<_> = (0..reading.literals())
            .filter(|index| !lifted(*index))
            .map(|index| (index, reading.written(index).to_owned()))
            .collect();
        let bytes = fixed.iter().map(|(_, written)| written.len() + 40).sum::<usize>() + program.size();
        Variant { fixed, program: program.clone(), bytes }
    }

    fn is_of(&self, reading: &Reading<'_>) -> bool {
        self.fixed.iter().all(|(index, written)| reading.written(*index) == written)
    }
}

/// The programs of each key, the most recent last.
type Kept = Cache<String, Vec<Variant>, Bytes>;

struct Bytes;

impl Weighter<String, Vec<Variant>> for Bytes {
    fn weight(&self, key: &String, variants: &Vec<Variant>) -> u64 {
        (key.len() + variants.iter().map(|variant| variant.bytes).sum::<usize>()) as u64
    }
}

fn find(kept: &Kept, key: &str, reading: &Reading<'_>, schema: &Asking) -> Option<Arc<Program>> {
    let is_meant = |variant: &&Variant| variant.is_of(reading) && variant.program.uses.hold_in(schema);
    // a program compiled without a table does not apply when the table may exist
    let variant = kept.get(key)?.iter().rev().find(is_meant).filter(|_| !schema.has_missing())?;
    Some(variant.program.clone())
}

fn keep(kept: &mut Kept, key: String, variant: Variant) {
    if key.len() > LONGEST_KEPT || variant.bytes > MOST_BYTES / 16 {
        return;
    }
    if let Some(mut variants) = kept.get_mut(&key) {
        if variants.len() >= MOST_VARIANTS {
            variants.remove(0);
        }
        variants.push(variant);
        return;
    }
    kept.insert(key, vec![variant]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Snapshot;

    fn programs() -> Programs {
        Programs::new(&Arc::new(Metrics::default()))
    }

    fn compile(programs: &Programs, text: &str) -> Compiled {
        let settings = Settings { quoted_identifiers: true, ..Settings::default() };
        programs.compile_here(text, &settings, true, &unknown()).unwrap()
    }

    /// For a database without a table t.
    fn unknown() -> Arc<Asking> {
        let mut snapshot = Snapshot::default();
        snapshot.note("\"t\"", None);
        Asking::new(Arc::new(snapshot), false)
    }

    #[test]
    fn other_literals_are_no_other_program() {
        let programs = programs();
        let one = compile(&programs, "select a from t where b = 1 and c = 'x'");
        let other = compile(&programs, "select a from t where b = 2 and c = 'y'");
        assert!(Arc::ptr_eq(&one.program, &other.program));
        let values: Vec<_> = other.literals.iter().map(|given| given.value.clone()).collect();
        assert_eq!(values, [Value::Int(2), Value::Text("y".into())]);
        assert!(!Arc::ptr_eq(
            &one.program,
            &compile(&programs, "select a from t where b = 1.5 and c = 'x'").program
        ));
    }

    #[test]
    fn literals_that_decide_something_are_other_programs() {
        let programs = programs();
        let one = compile(&programs, "select top 1 a from t where b = 1");
        let other = compile(&programs, "select top 2 a from t where b = 1");
        assert!(!Arc::ptr_eq(&one.program, &other.program));
        for (text, program) in [
            ("select top 1 a from t where b = 9", &one.program),
            ("select top 2 a from t where b = 9", &other.program),
        ] {
            assert!(Arc::ptr_eq(program, &compile(&programs, text).program), "{text}");
        }
        // the newest of a key remain
        for number in 3..100 {
            compile(&programs, &format!("select top {number} a from t where b = 1"));
        }
        let again = compile(&programs, "select top 99 a from t where b = 1");
        assert!(Arc::ptr_eq(
            &again.program,
            &compile(&programs, "select top 99 a from t where b = 2").program
        ));
        assert!(!Arc::ptr_eq(&one.program, &compile(&programs, "select top 1 a from t where b = 1").program));
    }

    #[test]
    fn what_is_asked_for_again_is_kept_and_the_rest_is_bounded() {
        const ROOM: usize = 1 << 20;
        let programs = Programs::holding(ROOM, &Arc::new(Metrics::default()));
        let usual = compile(&programs, "select usual from t").program;
        let long = "x".repeat(1 << 10);
        for number in 0..400 {
            compile(&programs, &format!("select a{number} /* {long} */ from t"));
            if number % 20 == 0 {
                assert!(Arc::ptr_eq(&usual, &compile(&programs, "select usual from t").program), "{number}");
            }
        }
        assert!(programs.kept.lock().weight() <= ROOM as u64);
        assert!(Arc::ptr_eq(&usual, &compile(&programs, "select usual from t").program));
    }

    #[test]
    fn the_latest_is_that_of_its_text_and_settings() {
        let settings = Settings { quoted_identifiers: true, ..Settings::default() };
        let mut latest = Latest::default();
        for text in ["select a from t where b = 1", "select a from t where b = 2"] {
            assert!(latest.get(text, &settings, true, &unknown()).is_none());
            let compiled = compile(&programs(), text);
            latest.keep(text, &settings, true, &compiled);
            let again = latest.get(text, &settings, true, &unknown()).unwrap();
            assert!(Arc::ptr_eq(&again.program, &compiled.program));
            assert_eq!(again.literals[0].value, compiled.literals[0].value);
            assert!(latest.get(text, &settings, false, &unknown()).is_none());
            assert!(latest.get(text, &Settings::default(), true, &unknown()).is_none());
        }
    }

    #[test]
    fn what_is_too_long_is_not_kept() {
        let programs = programs();
        let text = format!("select a /* {} */ from t", "x".repeat(LONGEST_KEPT));
        assert!(!Arc::ptr_eq(&compile(&programs, &text).program, &compile(&programs, &text).program));
    }

    #[test]
    fn settings_make_other_programs() {
        let programs = programs();
        let text = "select \"a\" from t where b = ?";
        let settings = |quoted_identifiers, database: &str| Settings {
            quoted_identifiers,
            placeholders: true,
            database: database.into(),
            ..Settings::default()
        };
        let one = programs.compile_here(text, &settings(true, "a"), true, &unknown()).unwrap();
        for (settings, lifts) in
            [(settings(false, "a"), true), (settings(true, "b"), true), (settings(true, "a"), false)]
        {
            let other = programs.compile_here(text, &settings, lifts, &unknown()).unwrap();
            assert!(!Arc::ptr_eq(&one.program, &other.program), "{settings:?} {lifts}");
        }
    }

    #[test]
    fn a_panic_of_the_compiler_is_an_error_of_the_text() {
        let error =
            unless_it_panics::<()>(|| panic!("the compiler's, which is part of this test")).unwrap_err();
        assert_eq!((error.number, error.severity), (8624, 16));
        assert_eq!(unless_it_panics(|| Ok(1)).unwrap(), 1);
    }

    #[test]
    fn an_error_keeps_its_number_and_line() {
        let error = programs()
            .compile_here("select 1\nselect from", &Settings::default(), true, &unknown())
            .unwrap_err();
        assert_eq!((error.number, error.line), (156, 2), "{}", error.text);
    }
}
