//! Parsing: cases in `cases/*.txt`, and generated texts.
//!
//! A case is a text, a line `----`, and either the same in full, with all its brackets and words, which reads as the same
//! tree, or the error; cases are separated by lines `====`.

use proptest::prelude::*;
use rustix::time::{clock_gettime, ClockId};
use std::path::PathBuf;
use std::time::Duration;
use tsql::{parse, Syntax, ASE, SQL_SERVER};

static SYNTAX: Syntax =
    Syntax { quoted_identifiers: true, placeholders: false, is_stored: false, dialect: &SQL_SERVER };

#[test]
fn cases_read_as_they_should() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases = 0;
    for file in folder.read_dir().unwrap() {
        let path = file.unwrap().path();
        let content = std::fs::read_to_string(&path).unwrap();
        for case in content.trim_end().split("\n====\n") {
            let (text, expected) = case.split_once("\n----\n").unwrap();
            match (parse(text, SYNTAX), parse(expected, SYNTAX)) {
                (Ok(batch), Ok(in_full)) => assert_eq!(batch.statements, in_full.statements, "{text}"),
                (Ok(_), Err(error)) => panic!("{}: {text} reads, but {expected}: {error}", path.display()),
                (Err(error), _) => assert_eq!(format!("error {error}"), expected, "{text}"),
            }
            cases += 1;
        }
    }
    assert!(cases > 100);
}

/// Version 1.0 stored procedures without these semicolons.
#[test]
fn stored_texts_need_no_semicolons() {
    for (text, error) in [
        ("merge t using s on t.a = s.a when matched then delete select 1", 10713),
        ("select 1 with x as (select 1 a) select a from x", 319),
    ] {
        assert_eq!(parse(text, SYNTAX).unwrap_err().number, error, "{text}");
        assert_eq!(parse(text, Syntax { is_stored: true, ..SYNTAX }).unwrap().statements.len(), 2, "{text}");
    }
}

#[test]
fn nesting_and_chains_are_bounded() {
    for (head, open, middle, close) in [
        ("select ", "(", "1", ")"),
        ("", "begin ", "select 1", " end"),
        ("", "if 1 = 1 ", "select 1", ""),
        ("", "select * from (", "select 1 a", ") t"),
        ("select 1 where ", "not ", "1 = 1", ""),
        ("select ", "- ", "1", ""),
        ("select ", "f(", "1", ")"),
        ("", "(", "select 1", ")"),
    ] {
        let text = |times: usize| format!("{head}{}{middle}{}", open.repeat(times), close.repeat(times));
        for times in [200, 20_000] {
            assert_eq!(parse(&text(times), SYNTAX).unwrap_err().number, 191, "{open}");
        }
        parse(&text(20), SYNTAX).unwrap_or_else(|error| panic!("{}: {error}", text(20)));
    }
    for (head, item) in [
        ("select 1 where 1 = 1", " or a = 2"),
        ("select 1", ", 1"),
        ("select 1", " union all select 1"),
        ("select 1 where 1 in (1", ", 1"),
        ("select 1", " select 1"),
    ] {
        let close = if head.ends_with("(1") { ")" } else { "" };
        assert!(parse(&format!("{head}{}{close}", item.repeat(20_000)), SYNTAX).is_ok(), "{item}");
    }
}

/// The least time of some, which other programs on the machine disturb least.
fn time(text: &str) -> Duration {
    let spent = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let once = || {
        let start = spent();
        let _ = parse(text, SYNTAX);
        spent() - start
    };
    (0..5).map(|_| once()).min().unwrap()
}

#[test]
fn a_long_text_takes_no_more_than_its_length() {
    for item in [
        "insert t values (1, 'abc', @x) -- comment\n",
        "select a from t where b = 1 ",
        "/* /* */ */ ",
        "'a''b' ",
        "a. ",
        "a join ",
        "select ((1)) ",
        "begin try select 1 end try begin catch end catch ",
        "(",
        ")",
        "[",
        "'",
        "/*",
        "if 1 = 1 ",
        "exec p 1, ",
        "case when ",
        "with a as (",
        "\n",
    ] {
        let (short, long) =
            (item.repeat(1 << 15 >> item.len().ilog2()), item.repeat(1 << 19 >> item.len().ilog2()));
        assert!(time(&long) < time(&short).max(Duration::from_millis(1)) * 16 * 8, "{item}");
    }
}

const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "insert",
    "into",
    "values",
    "update",
    "set",
    "delete",
    "if",
    "begin",
    "else",
    "end",
    "while",
    "break",
    "declare",
    "@a",
    "int",
    "=",
    "1",
    "'x'",
    "(",
    ")",
    ",",
    ";",
    ".",
    "*",
    "exec",
    "p",
    "print",
    "return",
    "raiserror",
    "case",
    "when",
    "then",
    "as",
    "union",
    "all",
    "top",
    "create",
    "table",
    "procedure",
    "drop",
    "#t",
    "[b]",
    "\"c\"",
    "--",
    "/*",
    "*/",
    "try",
    "catch",
    "throw",
    "with",
    "tran",
    "commit",
    "go",
    "0x1",
    "$2",
    "?",
    "+",
    "-",
    "/",
    "%",
    "and",
    "or",
    "not",
    "in",
    "like",
    "null",
    "join",
    "on",
    "order",
    "by",
    "offset",
    "fetch",
    "cursor",
    "for",
    "open",
    "close",
    "output",
    "default",
    "alter",
    "column",
    "add",
    "constraint",
    "primary",
    "key",
    "references",
    "function",
    "trigger",
    "returns",
    "apply",
    "cross",
    "$",
    "collate",
    "between",
    "is",
    "exists",
    "distinct",
    "over",
    "cast",
    "convert",
    "rows",
    "goto",
    ":",
    "{",
    "}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_text_is_read_or_refused(
        text in proptest::collection::vec(proptest::sample::select(WORDS), 0..30)
            .prop_map(|words| words.join(" "))
            .boxed()
            .prop_union(any::<String>().boxed())
    ) {
        for syntax in [SYNTAX, Syntax { quoted_identifiers: false, placeholders: true, dialect: &ASE, ..SYNTAX }] {
            if let Err(error) = parse(&text, syntax) {
                let lines = u32::try_from(text.matches('\n').count()).unwrap() + 1;
                prop_assert!((1..=lines).contains(&error.line), "{text}: {error}");
                prop_assert!(!error.text.is_empty());
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&String::from_utf8_lossy(&bytes), SYNTAX);
    }
}
