//! Facts are in `src/facts`; the scripts of schema tsql have them from there.

use std::path::PathBuf;
use tsql::facts::{conversions, filled, functions, notices, type_names};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sql")
}

#[test]
fn scripts_name_facts_that_exist() {
    assert!(!sql().contains("{facts."));
}

fn sql() -> String {
    let paths = |folder: PathBuf| folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    paths(folder()).flat_map(paths).map(|file| filled(&std::fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn functions_of_schema_tsql_are_there() {
    let sql = sql();
    for name in functions::names() {
        let Some(functions::Rule::Plain { function, .. }) = functions::rule(name) else { continue };
        // by itself, or as a member of a family (types/families.sql)
        let forms = ["function tsql.{}(", "'{}'", "'{}(", "'{{},", ",{},", ",{}}'"]
            .map(|form| form.replace("{}", function));
        // pi is PostgreSQL's
        assert!(function == "pi" || forms.iter().any(|form| sql.contains(form)), "{name}: tsql.{function}");
    }
}

const DOMAINS: [&str; 5] = ["tinyint", "money", "smallmoney", "datetime", "smalldatetime"];

#[test]
fn domains_of_columns_are_there() {
    let sql = sql();
    for name in DOMAINS {
        assert!(sql.contains(&format!("create domain tsql.{name} ")), "{name}");
        assert!(type_names::names().any(|known| known == name), "{name}");
    }
}

#[test]
fn lists_of_types_in_sql_are_those_of_the_table() {
    let read = |name: &str| std::fs::read_to_string(folder().join(name)).unwrap();
    let (variants, columns) = (read("types/sql_variant.sql"), read("conversions/columns.sql"));
    for name in type_names::names() {
        let of = type_names::named(name, &[], 0, 1).unwrap();
        let class = conversions::name(conversions::class(of));
        if let Some(base) = of.variant_base() {
            let base = base.split('(').next().unwrap_or_default();
            assert!(variants.contains(&format!("('{base}', '{class}', '")), "{name}: types/sql_variant.sql");
        }
        let held = match name {
            _ if DOMAINS.contains(&name) => format!("tsql.{name}"),
            _ if of.is_plain() && !of.is_text() => of.sql(),
            _ => continue,
        };
        assert!(
            columns.contains(&format!("when '{held}' then '{class}'")),
            "{name}: conversions/columns.sql"
        );
    }
}

/// Every `01Rnn` of a text.
fn notices_of(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("01R").filter_map(|(at, _)| text.get(at..at + 5))
}

#[test]
fn notices_are_those_of_the_table() {
    let system = folder().join("../../procedures/system/calling.sql");
    let docs = std::fs::read_to_string(folder().join("../../docs/explanation/gateway.md")).unwrap();
    for said in notices_of(&(sql() + &std::fs::read_to_string(system).unwrap() + &docs)) {
        assert!(notices::NOTICES.contains(&said), "{said}");
    }
    for (index, notice) in notices::NOTICES.iter().enumerate() {
        assert!(docs.contains(&format!("| {notice} |")), "{notice} is not described");
        assert_eq!(notices::NOTICES.iter().position(|other| other == notice), Some(index), "{notice} twice");
    }
}
