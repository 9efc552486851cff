//! Queries whose rows depend on tables alone.

use super::sql::GLOBAL;

/// Functions of schema tsql that return the time or the session's state begin with these words.
const CHANGES: [&str; 10] = [
    "dbts",
    "getdate",
    "getutcdate",
    "sys",
    "last_identity",
    "transaction_count",
    "new",
    "rand",
    "text_place",
    "textvalid",
];

/// What may stand before a parenthesis beside them.
const KEEPS: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "avg",
    "between",
    "case",
    "cast",
    "char",
    "character",
    "coalesce",
    "count",
    "distinct",
    "else",
    "exists",
    "filter",
    "from",
    "group",
    "having",
    "in",
    "join",
    "max",
    "min",
    "not",
    "nullif",
    "numeric",
    "on",
    "operator",
    "or",
    "over",
    "select",
    "sum",
    "then",
    "time",
    "timestamp",
    "values",
    "varchar",
    "when",
    "where",
    "with",
    "within",
];

/// Whether a query gives the same rows whenever it runs on the same tables: it calls no function that may return the
/// time or the session's state, and none of the site's own.
pub fn keeps(sql: &str) -> bool {
    // a global temporary table may have ended
    if sql.contains(GLOBAL) {
        return false;
    }
    let mut rest = sql;
    while let Some(at) = rest.find(|character: char| character == '\'' || is_of_name(character)) {
        rest = &rest[at..];
        if let Some(text) = rest.strip_prefix('\'') {
            rest = text.find('\'').map_or("", |end| &text[end + 1..]);
            continue;
        }
        let (name, after) = rest.split_at(length_of_name(rest));
        rest = after;
        if !rest.trim_start().starts_with('(') {
            continue;
        }
        let known = match name.strip_prefix("tsql.") {
            Some(own) => !CHANGES.iter().any(|begin| own.starts_with(begin)),
            None => {
                let name = name.to_lowercase();
                KEEPS.binary_search(&name.as_str()).is_ok() || name.bytes().all(|byte| byte.is_ascii_digit())
            }
        };
        if !known {
            return false;
        }
    }
    true
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || "_.\"@#".contains(character)
}

/// Bytes of the name that `sql` begins with, its parts in quotes or not.
fn length_of_name(sql: &str) -> usize {
    let mut length = 0;
    while let Some(character) = sql[length..].chars().next().filter(|character| is_of_name(*character)) {
        length += match character {
            '"' => sql[length + 1..].find('"').map_or(sql.len() - length, |end| end + 2),
            other => other.len_utf8(),
        };
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_that_give_the_same_rows_at_any_time() {
        for (sql, expected) in [
            ("select \"a\" from \"t\" where (\"a\" operator(tsql.=) 1)", true),
            ("select tsql.to_int(\"a\"), count(*) from t", true),
            ("select tsql.getdate()", false),
            ("select tsql.newid()", false),
            ("select site.own(1)", false),
            ("select 'now() it''s' || \"x\"", true),
            ("select now()", false),
            ("select \"it's\", now(), 'x'", false),
            ("select \"a b\" from \"t ('\" where (\"a b\" = 'x')", true),
            ("select 'a'::varchar(3), ('b')", true),
        ] {
            assert_eq!(keeps(sql), expected, "{sql}");
        }
        assert!(KEEPS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
