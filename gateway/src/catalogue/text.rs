//! Procedures whose T-SQL the gateway runs itself: those that PL/pgSQL cannot express, and those that call them.

use super::function::Function;
use super::OWN;

/// The options with which a procedure's text was parsed when it was created.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Text {
    pub sybase: bool,
    pub quoted_identifiers: bool,
    /// The gateway runs it. Otherwise PostgreSQL does.
    pub runs_here: bool,
    calls: Vec<Called>,
}

/// A procedure as another one names it.
#[derive(Debug, PartialEq, Eq)]
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
            name: name.to_lowercase(),
        };
        Some(Text {
            sybase: has("tds5"),
            quoted_identifiers: has("quoted"),
            runs_here: has("gateway"),
            calls: calls.into_iter().map(called).collect(),
        })
    }

    fn calls(&self, function: &Function) -> bool {
        let schema = function.schema.as_str();
        self.calls.iter().any(|called| {
            let is_there = match called.schema.as_str() {
                "" => [called.database.as_str(), OWN, "public"].contains(&schema),
                named => named == schema.to_lowercase(),
            };
            is_there && called.name == function.name.to_lowercase()
        })
    }
}

/// Adds the procedures that call those run by the gateway: it runs them too.
pub fn mark_callers(functions: &mut [Function]) {
    loop {
        let callers: Vec<usize> = (0..functions.len())
            .filter(|place| {
                let text = functions.get(*place).and_then(|function| function.text.as_ref());
                text.is_some_and(|text| {
                    let here = functions.iter().filter(|function| function.runs_here().is_some());
                    !text.runs_here
                        && !text.calls.is_empty()
                        && here.into_iter().any(|called| text.calls(called))
                })
            })
            .collect();
        if callers.is_empty() {
            return;
        }
        for place in callers {
            if let Some(text) = functions.get_mut(place).and_then(|function| function.text.as_mut()) {
                text.runs_here = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_text_was_read() {
        assert_eq!(Text::read("", ""), None);
        let text = Text::read("tds5 gateway", "").unwrap();
        assert!(text.sybase && text.runs_here && !text.quoted_identifiers);
        let text = Text::read("tds7 quoted", r#"[["site", "", "Q"], ["site", "Other", "r"]]"#).unwrap();
        assert!(!text.sybase && !text.runs_here && text.quoted_identifiers);
        let names: Vec<_> = text.calls.iter().map(|called| (&*called.schema, &*called.name)).collect();
        assert_eq!(names, [("", "q"), ("other", "r")]);
    }
}
