//! Translations to PostgreSQL's SQL: cases in `translations/*.txt`.
//!
//! A case is a text, a line `----`, and the SQL of its statements, or the error; cases are separated by lines `====`.
//! A text that begins with `-- sybase` is one of ASE's. With UPDATE_CASES=1 the second halves are written again;
//! review them before you keep them.

use std::path::PathBuf;
use tsql::program::{Action, Condition, Expression, Settings, Sql, Statement};

fn sql(sql: &Sql) -> String {
    let variable = |index: usize| format!("{{{}}}", sql.variables[index]);
    sql.text(variable)
}

fn value(value: &Expression) -> String {
    match value {
        Expression::Sql(of) => sql(of),
        other => format!("{other:?}"),
    }
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::InTransaction => "in a transaction".into(),
        Condition::Sql(of) => sql(of),
    }
}

fn lines(statements: &[Statement], into: &mut Vec<String>) {
    for statement in statements {
        match &statement.action {
            Action::Query(query) if query.assigns.is_empty() => into.push(sql(&query.sql)),
            Action::Query(query) => into.push(format!("{} := {}", query.assigns.join(", "), sql(&query.sql))),
            Action::Assign(name, of) => into.push(format!("{name} := {}", value(of))),
            Action::Declare(_) => {}
            Action::If { condition: of, then, otherwise } => {
                into.push(format!("if {}", condition(of)));
                lines(then, into);
                lines(otherwise, into);
            }
            Action::While { condition: of, body } => {
                into.push(format!("while {}", condition(of)));
                lines(body, into);
            }
            other => into.push(format!("{other:?}")),
        }
    }
}

fn shown(text: &str) -> String {
    let sybase = text.starts_with("-- sybase");
    let settings = Settings {
        database: "online".into(),
        quoted_identifiers: true,
        dialect: if sybase { &tsql::ASE } else { &tsql::SQL_SERVER },
        nulls_equal: sybase,
        ..Settings::default()
    };
    match tsql::compile(text, &settings) {
        Err(error) => format!("error {error}"),
        Ok(program) => {
            let mut shown = Vec::new();
            lines(&program.statements, &mut shown);
            shown.join("\n")
        }
    }
}

fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/translations");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn cases_are_translated_as_they_should() {
    let mut number = 0;
    for path in files() {
        let content = std::fs::read_to_string(&path).unwrap();
        let cases: Vec<_> = content
            .trim_end()
            .split("\n====\n")
            .map(|case| case.split_once("\n----\n").unwrap_or((case, "")))
            .collect();
        if std::env::var_os("UPDATE_CASES").is_some() {
            let written: Vec<_> =
                cases.iter().map(|(text, _)| format!("{text}\n----\n{}", shown(text))).collect();
            std::fs::write(&path, written.join("\n====\n") + "\n").unwrap();
            continue;
        }
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{}: {text}", path.display());
            number += 1;
        }
    }
    assert!(number > 100 || std::env::var_os("UPDATE_CASES").is_some(), "{number} cases");
}
