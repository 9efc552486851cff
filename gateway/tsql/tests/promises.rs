//! Properties of the translator for any text: it ends in bounded time, with a program or with an error of T-SQL.

use proptest::prelude::*;
use std::time::{Duration, Instant};
use tsql::program::{Action, Program, Settings};

fn settings() -> Settings {
    Settings { database: "online".into(), ..Settings::default() }
}

fn compiled(text: &str) -> Result<Program, i32> {
    tsql::compile(text, &settings()).map_err(|error| error.number)
}

/// Many times what it takes: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

fn nested(before: &str, times: usize, inner: &str, behind: &str) -> String {
    format!("select {}{inner}{}", before.repeat(times), behind.repeat(times))
}

#[test]
fn what_nests_too_deeply_is_refused() {
    for text in [
        nested("(", 2000, "1", ")"),
        nested("- ", 5000, "1", ""),
        nested("case when 1 = 1 then ", 500, "1", " end"),
        nested("len(", 1000, "'x'", ")"),
        format!("select 1 where {}1 = 1", "not ".repeat(5000)),
        nested("* from (select ", 300, "1 as a", ") x"),
        // each writes its operand twice
        nested("case (", 60, "1", ") when 1 then 1 when 2 then 2 end"),
    ] {
        let start = Instant::now();
        let number = compiled(&text).map(|_| ()).unwrap_err();
        assert!(matches!(number, 191 | 102 | 125 | 156), "{number}: {}", &text[..60]);
        assert!(start.elapsed() < PATIENCE, "{}", &text[..60]);
    }
    assert_eq!(compiled(&nested("case (", 60, "1", ") when 1 then 1 when 2 then 2 end")).unwrap_err(), 125);
}

#[test]
fn what_is_long_takes_no_longer_than_it_must() {
    for (text, is_compiled) in [
        (format!("select {}", vec!["1"; 5_000].join("+")), false),
        (format!("select 1 where {}", vec!["1 = 2"; 3_000].join(" or ")), true),
        (format!("select 1 where 1 in ({})", vec!["7"; 30_000].join(",")), true),
        ("select 1\n".repeat(15_000), true),
        (format!("insert t values {}", vec!["(1, 'x')"; 6_000].join(",")), true),
        (vec!["select 1"; 2_000].join(" union all "), true),
        (format!("select {} from t", vec!["a"; 20_000].join(", ")), true),
    ] {
        let start = Instant::now();
        let result = compiled(&text);
        assert!(start.elapsed() < PATIENCE, "{}", &text[..40]);
        assert_eq!(result.is_ok(), is_compiled, "{}", &text[..40]);
    }
}

#[test]
fn placeholders_are_counted() {
    let settings = Settings { placeholders: true, ..settings() };
    let program = tsql::compile("select ? where 1 = ? -- ?", &settings).unwrap();
    assert_eq!(program.placeholders, 2);
    assert_eq!(compiled("select ?").unwrap_err(), 102);
}

#[test]
fn variables_of_the_session_and_of_the_client() {
    let mut settings = settings();
    settings.variables.insert("@P1".into(), tsql::facts::types::INT);
    let program = tsql::compile("select @p1, @@rowcount, db_name(), @p1", &settings).unwrap();
    let Action::Query(query) = &program.statements[0].action else { panic!("{program:?}") };
    assert_eq!(query.sql.variables, ["@p1", "@@rowcount", "@@db_name"]);
    assert_eq!(tsql::compile("select @p2", &settings).unwrap_err().number, 137);
}

#[test]
fn inserts_name_their_table() {
    for (text, into) in
        [("insert #t (a) values (1)", "pg_temp.\"#t\""), ("insert log..t (a) select 1", "\"log\".\"t\"")]
    {
        let program = compiled(text).unwrap();
        let Action::Query(query) = &program.statements[0].action else { panic!("{program:?}") };
        assert_eq!(query.into.as_deref(), Some(into));
    }
}

const WORDS: &[&str] = &[
    "select", "from", "where", "insert", "values", "update", "set", "delete", "t", "#t", "a", "b", "@a", "1",
    "2.5", "'x'", "null", "(", ")", ",", "=", "+", "*", ".", "and", "or", "in", "group", "by", "order",
    "top", "case", "when", "then", "end", "cast", "as", "int", "declare", "create", "table", "join", "on",
    "union", "output", "inserted", "with", "into", "len", "count", "over", "begin", "if", "alter", "add",
    "drop",
];

proptest! {
    #[test]
    fn every_text_becomes_a_program_or_an_error(
        text in proptest::collection::vec(proptest::sample::select(WORDS), 0..25).prop_map(|words| words.join(" ")),
        is_ase in any::<bool>(),
    ) {
        let dialect = if is_ase { &tsql::ASE } else { &tsql::SQL_SERVER };
        if let Err(error) = tsql::compile(&text, &Settings { dialect, ..settings() }) {
            prop_assert!(!error.text.is_empty() && error.number != 50000, "{text}: {error}");
            prop_assert_eq!(error.line, 1, "{}", text);
        }
    }

    #[test]
    fn every_expression_is_closed_in_itself(
        values in proptest::collection::vec(
            proptest::sample::select(vec!["1", "-3", "1.5", "'a'", "null", "@i", "@s", "0x01", "2e0", "getdate()", "c"]),
            2..8,
        ),
        operators in proptest::collection::vec(proptest::sample::select(vec!["+", "-", "*", "/", "%", "&"]), 8),
    ) {
        let mut expression = values[0].to_owned();
        for (value, operator) in values[1..].iter().zip(operators) {
            expression = format!("({expression}) {operator} {value}");
        }
        let text = format!("declare @i int, @s varchar(10) select {expression} as x from t");
        if let Ok(program) = tsql::compile(&text, &settings()) {
            let Some(Action::Query(query)) = program.statements.last().map(|last| &last.action) else {
                return Err(TestCaseError::fail(text));
            };
            let sql = query.sql.text(|_| String::new());
            let mut depth = 0_i32;
            for character in sql.chars() {
                depth += i32::from(character == '(') - i32::from(character == ')');
                prop_assert!(depth >= 0, "{sql}");
            }
            prop_assert_eq!(depth, 0, "{}", sql);
        }
    }
}
