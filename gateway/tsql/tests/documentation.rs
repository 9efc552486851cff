//! docs/reference/tsql.md names functions: each is understood or refused as it says.

use std::path::PathBuf;
use tsql::facts::functions::{rule, Rule};

fn page() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tsql.md");
    std::fs::read_to_string(path).unwrap()
}

/// The words in code style of a line.
fn words(line: &str) -> Vec<String> {
    let code = line.split('`').skip(1).step_by(2);
    let words = code.flat_map(|code| code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn row(name: &str) -> Vec<String> {
    let page = page();
    let start = format!("| {name} |");
    words(page.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("no row {name}")))
}

fn is_understood(name: &str) -> bool {
    rule(name).is_some_and(|rule| !matches!(rule, Rule::Refused(_)))
}

#[test]
fn functions_that_are_said_to_be_understood() {
    for of in ["Texts", "Numbers", "Times", "Aggregates", "The catalogue"] {
        // these are no functions
        let others = ["distinct", "within", "group", "sysobjects", "sys", "information_schema"];
        let named: Vec<_> = row(of).into_iter().filter(|word| !others.contains(&word.as_str())).collect();
        assert!(named.len() > 5, "{of}");
        for name in named {
            assert!(is_understood(&name), "{of}: {name}");
        }
    }
}

#[test]
fn functions_that_are_understood_are_said_to_be() {
    let page = words(&page().replace('\n', " "));
    let unsaid: Vec<_> = tsql::facts::functions::names()
        .filter(|name| !page.iter().any(|word| word == name))
        // kin of those that are named
        .filter(|name| {
            !matches!(rule(name), Some(Rule::System | Rule::SystemNumeric | Rule::Session | Rule::NextValue))
        })
        .filter(|name| !["atan2", "character_length", "stddev", "stddev_pop"].contains(name))
        .collect();
    assert!(unsaid.is_empty(), "{unsaid:?}");
}

#[test]
fn functions_that_are_said_to_be_refused() {
    let page = page();
    assert!(page.contains("checksum") && !is_understood("checksum"));
}
