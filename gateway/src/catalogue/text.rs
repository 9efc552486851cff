//! The T-SQL text of a procedure: its parser options, and the procedures that it calls.

use super::schemas::OWN;
use tsql::long_names::stored;
use tsql::{Dialect, ASE, SQL_SERVER};

/// The options with which a procedure's text was parsed when it was created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pub dialect: &'static Dialect,
    pub quoted_identifiers: bool,
    pub nulls_equal: bool,
    /// It has no PL/pgSQL: the gateway always runs it.
    pub is_marked: bool,
    /// The gateway runs it. Otherwise PostgreSQL does.
    pub runs_here: bool,
    calls: Vec<Called>,
}

/// The name of a procedure that another one calls.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Called {
    database: String,
    /// "" for none.
    schema: String,
    name: String,
}

impl Text {
    /// From the last line of its body and the calls that PL/pgSQL makes (`functions.sql`).
    pub fn read(read_as: &str, calls: &str) -> Option<Text> {
        if read_as.is_empty() {
            return None;
        }
        let has = |word: &str| read_as.split(' ').any(|found| found == word);
        let calls: Vec<[String; 3]> = serde_json::from_str(calls).unwrap_or_default();
        let called = |[database, schema, name]: [String; 3]| Called {
            database,
            schema: schema.to_lowercase(),
            name: stored(&name),
        };
        Some(Text {
            dialect: if has(ASE.name) { &ASE } else { &SQL_SERVER },
            quoted_identifiers: has("quoted"),
            nulls_equal: has("nulls"),
            is_marked: has("gateway"),
            runs_here: has("gateway"),
            calls: calls.into_iter().map(called).collect(),
        })
    }

    /// The names of the procedures that it calls, in lower case.
    pub fn called(&self) -> impl Iterator<Item = &str> {
        self.calls.iter().map(|called| called.name.as_str())
    }

    /// Whether it calls the procedure of this schema and name.
    pub fn calls(&self, schema: &str, name: &str) -> bool {
        self.calls.iter().any(|called| {
            let is_there = match called.schema.as_str() {
                "" => [called.database.as_str(), OWN, "public"].contains(&schema),
                named => named == schema.to_lowercase(),
            };
            is_there && called.name == stored(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_text_was_read() {
        assert_eq!(Text::read("", ""), None);
        let text = Text::read("tds5 nulls gateway", "").unwrap();
        assert!(text.dialect.is_ase && text.nulls_equal && text.runs_here && !text.quoted_identifiers);
        let text = Text::read("tds7 quoted", r#"[["site", "", "Q"], ["site", "Other", "r"]]"#).unwrap();
        assert!(!text.dialect.is_ase && !text.runs_here && !text.nulls_equal && text.quoted_identifiers);
        let names: Vec<_> = text.calls.iter().map(|called| (&*called.schema, &*called.name)).collect();
        assert_eq!(names, [("", "q"), ("other", "r")]);
    }
}
