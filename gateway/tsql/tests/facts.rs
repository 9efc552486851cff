//! Facts stand in `src/facts`; what SQL needs of them is made from there.

use std::path::PathBuf;
use tsql::facts::{errors, functions, types};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sql")
}

#[test]
fn errors_in_sql_are_those_of_the_table() {
    let file = folder().join("19_errors.sql");
    if std::env::var_os("UPDATE_CASES").is_some() {
        std::fs::write(&file, errors::sql()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), errors::sql());
}

fn sql() -> String {
    let mut files: Vec<_> = folder().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn functions_of_schema_tsql_are_there() {
    let sql = sql();
    for name in functions::names() {
        let Some(functions::Rule::Plain { function, .. }) = functions::rule(name) else { continue };
        let there = [format!("function tsql.{function}("), format!("'{function}'")];
        // pi is PostgreSQL's
        assert!(function == "pi" || there.iter().any(|words| sql.contains(words)), "{name}: tsql.{function}");
    }
}

#[test]
fn domains_of_columns_are_there() {
    let sql = sql();
    let names = ["tinyint", "money", "smallmoney", "datetime", "smalldatetime"];
    for name in names {
        assert!(sql.contains(&format!("create domain tsql.{name} ")), "{name}");
        assert!(types::names().any(|known| known == name), "{name}");
    }
}
