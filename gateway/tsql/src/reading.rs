//! Tokenizes a text for compilation, and computes the key of its program.

use crate::compile::{declaration, program};
use crate::error::Error;
use crate::lexer::{self, Token};
use crate::lift;
use crate::long_names::LongNames;
use crate::parser;
use crate::program::{Declaration, Lifted, Literal, Program, Settings};
use crate::resolve::user_types;
use crate::schema::{Schema, Unknown};
use crate::tree::Variable;
use crate::Dialect;
use std::sync::Arc;

/// The most literals of a text in which some are lifted. A text with more writes rows, and is rarely repeated.
const MOST_LIFTED: usize = 500;

/// A text split into tokens.
pub struct Reading<'t> {
    text: &'t str,
    tokens: Vec<Token<'t>>,
    /// The literals, as indexes into `tokens`.
    literals: Vec<usize>,
}

impl<'t> Reading<'t> {
    /// The error of a text that cannot be split into tokens.
    pub fn new(text: &'t str, settings: &Settings) -> Result<Reading<'t>, Error> {
        let tokens = lexer::tokens(text, settings.syntax())?;
        let literals = (0..tokens.len()).filter(|at| tokens[*at].is_literal()).collect();
        Ok(Reading { text, tokens, literals })
    }

    /// The text without the values of its literals. Two texts with the same skeleton differ only in these: a NUL, which
    /// no text contains, replaces each, with its class and its number of lines.
    pub fn skeleton(&self) -> String {
        let mut skeleton = String::with_capacity(self.text.len() + self.literals.len());
        let mut end = 0;
        for at in &self.literals {
            let token = &self.tokens[*at];
            let range = token.at.range();
            skeleton.push_str(&self.text[end..range.start]);
            end = range.end;
            skeleton.push('\0');
            skeleton.extend(lift::class(token));
            let lines = self.text[range].bytes().filter(|byte| *byte == b'\n').count();
            if lines > 0 {
                skeleton.push_str(&lines.to_string());
            }
            skeleton.push('\0');
        }
        skeleton.push_str(&self.text[end..]);
        skeleton
    }

    /// The number of its literals.
    pub fn literals(&self) -> usize {
        self.literals.len()
    }

    /// The spelling of the literal with this number.
    pub fn written(&self, index: usize) -> &str {
        let token = self.literals.get(index).map(|at| &self.tokens[*at]);
        token.and_then(|token| self.text.get(token.at.range())).unwrap_or("")
    }

    /// The program of the text for a schema. `lifts`: literals that do not affect compilation become variables.
    pub fn compile(
        &self,
        settings: &Settings,
        lifts: bool,
        schema: &Arc<dyn Schema>,
    ) -> Result<Program, Error> {
        if let Some(token) = self
            .tokens
            .iter()
            .find(|token| !settings.dialect.has_global_temporary_tables && token.is_global())
        {
            let why = "tables of all sessions are SQL Server's";
            return Err(Error::refused(&token.value, why, token.at));
        }
        let is_ase = settings.dialect.is_ase;
        if let Some(token) = self.tokens.iter().find(|token| is_ase && token.is("syb_identity")) {
            return Err(Error::refused(&token.value, "name the identity column", token.at));
        }
        let long_names = LongNames::of(&self.tokens)?;
        let compiled = self.compile_tokens(settings, lifts, schema);
        match compiled {
            Ok(program) => Ok(Program { long_names, ..program }),
            Err(error) => Err(Error { text: long_names.restored(error.text), ..error }),
        }
    }

    fn compile_tokens(
        &self,
        settings: &Settings,
        lifts: bool,
        schema: &Arc<dyn Schema>,
    ) -> Result<Program, Error> {
        let mut batch = parser::parse_tokens(&self.tokens, settings.syntax(), Some(settings.known()))?;
        let mut types = user_types::bind(&mut batch.statements, &**schema, settings.dialect)?;
        let lifted = if lifts && self.literals.len() <= MOST_LIFTED {
            let starts: Vec<u32> = self.literals.iter().map(|at| self.tokens[*at].at.start).collect();
            lift::lift(&mut batch.statements, &starts, &**schema)
        } else {
            Vec::new()
        };
        let placeholders = batch.placeholders as usize;
        let mut parameters = parser::parse_parameters(&settings.given)?;
        types.extend(user_types::bind_parameters(&mut parameters, &**schema, settings.dialect)?);
        let mut program =
            program(&batch.statements, self.text, settings, schema, placeholders, lifted, &parameters)?;
        program.uses.note(types, &**schema);
        Ok(program)
    }

    /// The values of the program's lifted literals in this text.
    pub fn values(&self, lifted: &[Lifted], dialect: &Dialect) -> Option<Vec<Literal>> {
        let value = |one: &Lifted| {
            let at = self.literals.get(one.index as usize)?;
            lift::value(&self.tokens[*at], one, dialect)
        };
        lifted.iter().map(value).collect()
    }
}

/// The program of a text with all its literals, without knowledge of tables.
pub fn compile(text: &str, settings: &Settings) -> Result<Program, Error> {
    let unknown: Arc<dyn Schema> = Arc::new(Unknown);
    Reading::new(text, settings)?.compile(settings, false, &unknown)
}

/// The declarations of parameters of sp_executesql and sp_prepare: `@a int, @b varchar(3) = 'x' output`.
pub fn declarations(
    text: &str,
    dialect: &'static Dialect,
    schema: &dyn Schema,
) -> Result<Vec<Declaration>, Error> {
    let mut parameters = parser::parse_parameters(text)?;
    user_types::bind_parameters(&mut parameters, schema, dialect)?;
    for (index, parameter) in parameters.iter().enumerate() {
        let Variable { name, at } = &parameter.variable;
        if parameters[..index].iter().any(|other| other.variable.name == *name) {
            return Err(Error::declared_twice(name, at.line));
        }
    }
    parameters.iter().map(|parameter| declaration(parameter, dialect)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings { quoted_identifiers: true, ..Settings::default() }
    }

    fn unknown() -> Arc<dyn Schema> {
        Arc::new(Unknown)
    }

    fn skeleton(text: &str) -> String {
        Reading::new(text, &settings()).unwrap().skeleton()
    }

    #[test]
    fn texts_that_differ_in_literals_have_one_skeleton() {
        assert_eq!(skeleton("select a from t where b = 1"), skeleton("select a from t where b = 22"));
        assert_eq!(skeleton("exec p 'a', 1.5, 0x01"), skeleton("exec p 'it''s', 27.1, 0xFFFF"));
        for (one, other) in [
            ("select 1", "select 'a'"),
            ("select 1", "select 1.0"),
            ("select 1.0", "select 1.00"),
            ("select 1", "select 3000000000"),
            ("select 'a'", "select N'a'"),
            ("select 'a'", "select 'a\n'"),
            ("select [1]", "select 1"),
            ("select 1 -- 1", "select 1 -- 2"),
        ] {
            assert_ne!(skeleton(one), skeleton(other), "{one} / {other}");
        }
    }

    fn lifted(text: &str) -> Vec<String> {
        let reading = Reading::new(text, &settings()).unwrap();
        let program = reading.compile(&settings(), true, &unknown()).unwrap();
        reading
            .values(&program.lifted, &crate::SQL_SERVER)
            .unwrap()
            .iter()
            .zip(&program.lifted)
            .map(|(value, lifted)| format!("{} {} {value:?}", lifted.name, lifted.of.name))
            .collect()
    }

    #[test]
    fn literals_that_decide_nothing_are_lifted() {
        for (text, expected) in [
            ("select a from t where b = 5", &["#0 int Integer(5)"][..]),
            ("select a from t where b = -5.25", &["#0 decimal Decimal(\"-5.25\")"]),
            ("select top 3 a from t where 'x' < b order by 1", &["#1 varchar Text(\"x\")"]),
            (
                "select a from t join u on t.a = u.a and u.b = 2 where c in (3, 4)",
                &["#0 int Integer(2)", "#1 int Integer(3)", "#2 int Integer(4)"],
            ),
            ("insert t (a, b) values (1, null)", &["#0 int Integer(1)"]),
            ("update t set a = 1, b = b + 2 where c = 3", &["#0 int Integer(1)", "#2 int Integer(3)"]),
            ("exec p -1, word, @b = 'x'", &["#0 int Integer(-1)", "#1 varchar Text(\"x\")"]),
            ("if exists (select * from t where a = 7) print 'x'", &["#0 int Integer(7)"]),
        ] {
            let mut found = lifted(text);
            found.sort();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn texts_of_very_many_literals_keep_them() {
        let text = |rows: usize| format!("insert t (a) values {}", vec!["(1)"; rows].join(", "));
        assert_eq!(lifted(&text(MOST_LIFTED)).len(), MOST_LIFTED);
        assert_eq!(lifted(&text(MOST_LIFTED + 1)).len(), 0);
    }

    #[test]
    fn literals_that_decide_something_stay() {
        for text in [
            "select 1, 'a', a + 1 from t",
            "select top 5 a from t",
            "select convert(varchar(10), a, 112) from t order by 1",
            "select a from t where 1 = 1",
            "select a from t where b like 'x%'",
            "select a, count(*) from t group by a having count(*) > 2",
            "select a into #x from t where b = 1",
            "if @@trancount > 0 commit",
            "select $1.5",
            "insert t (a) values ($1.5)",
            "create table #x (a int default 1)",
            "create procedure p as select a from t where b = 1",
            "declare @a int = 1 set @a = 2 if @a = 2 print 'two'",
        ] {
            assert_eq!(lifted(text), [""; 0], "{text}");
        }
    }

    const WORDS: &[&str] = &[
        "select",
        "from",
        "t",
        "where",
        "a",
        "=",
        "1",
        "'x'",
        "@a",
        "insert",
        "values",
        "(",
        ")",
        ",",
        "update",
        "set",
        "exec",
        "p",
        "begin",
        "end",
        "if",
        "else",
        "while",
        "tran",
        "commit",
        "rollback",
        "try",
        "catch",
        "declare",
        "int",
        "table",
        "cursor",
        "for",
        "open",
        "c",
        "fetch",
        "into",
        "close",
        "print",
        "raiserror",
        "return",
        "throw",
        "break",
        "output",
        "top",
        "in",
        "between",
        "and",
        "not",
        "exists",
        "-",
        "1.5",
        "0x01",
        "inserted",
        ";",
        "\n",
        "begin tran",
        "commit tran",
        "rollback tran",
        "begin try",
        "end try begin catch",
        "end catch",
        "if @a = 1",
        "while @a < 3",
        "return 1",
        "exec p 1, @a output",
        "insert t (a) values (1)",
        "select a from t where a = 1",
        "select @a = a from t",
        "update t set a = 2 where a in (1, 2)",
        "declare c cursor for select a from t",
        "fetch next from c into @a",
        "declare @t table (a int)",
        "insert @t select a from t",
        "raiserror ('x', 16, 1)",
        "set @a = @@error + @@rowcount",
        "print error_message()",
        "create table #t (a int)",
    ];
    const BEGINNINGS: &[&str] = &[
        "",
        "create procedure p @a int as ",
        "create function f(@a int) returns int as begin ",
        "create function f() returns table as return (",
        "create trigger r on t after insert, delete as ",
        "begin try begin tran ",
    ];

    proptest::proptest! {
        #[test]
        fn every_text_is_compiled_or_refused(
            beginning in proptest::sample::select(BEGINNINGS),
            words in proptest::collection::vec(proptest::sample::select(WORDS), 0..25)
        ) {
            let text = format!("{beginning}{}", words.join(" "));
            for dialect in [&crate::SQL_SERVER, &crate::ASE] {
                let settings = Settings { dialect, ..settings() };
                let Ok(reading) = Reading::new(&text, &settings) else { continue };
                if let Ok(program) = reading.compile(&settings, true, &unknown()) {
                    let values = reading.values(&program.lifted, dialect);
                    proptest::prop_assert!(values.is_some());
                }
            }
        }
    }
}
