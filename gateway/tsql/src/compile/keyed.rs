//! The query of a cursor that changes rows.

use super::compiler::numbered_sql;
use crate::bind::{of_table, Numbered, OfTable};
use crate::error::Error;
use crate::parser;
use crate::program::{Settings, Sql};
use crate::resolve::Scope;
use crate::tree::StatementKind;

/// A select of the rows of one table, in SQL.
#[derive(Clone, Debug)]
pub struct Keyed {
    pub of: OfTable,
    /// The SQL after the select list, with its variables.
    pub rest: Sql,
}

/// For a select, also as the query of a declared cursor; None for any other text, and if a row is not exactly one row
/// of a single table.
pub fn keyed(text: &str, settings: &Settings) -> Result<Option<Keyed>, Error> {
    let batch = parser::parse_in(text, settings.syntax(), settings.known())?;
    let [statement] = batch.statements.as_slice() else { return Ok(None) };
    let query = match &statement.kind {
        StatementKind::Select(query) => query,
        StatementKind::DeclareCursor(declare) => &declare.query,
        _ => return Ok(None),
    };
    let scope = Scope {
        variables: settings.variables.iter().map(|(name, of)| (name.to_lowercase(), *of)).collect(),
        dialect: settings.dialect,
        nulls_equal: settings.nulls_equal,
        database: settings.database.clone(),
        databases: settings.databases.clone(),
        folds: settings.databases.folding.contains(&settings.database),
        ..Scope::default()
    };
    let mut numbered = Numbered::default();
    let Some(of) = of_table(query, &scope, &mut numbered)? else { return Ok(None) };
    let rest = numbered_sql(&of.rest, numbered);
    Ok(Some(Keyed { of, rest }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::types::INT;

    fn of(text: &str) -> Option<OfTable> {
        let mut settings = Settings { quoted_identifiers: true, ..Settings::default() };
        settings.variables.insert("@a".into(), INT);
        keyed(text, &settings).unwrap().map(|keyed| keyed.of)
    }

    #[test]
    fn rows_of_one_table() {
        let found = of("select *, a + 1 n from t as x where b > @a order by c").unwrap();
        assert_eq!((found.shown.as_str(), found.table.as_str()), ("t", "\"t\""));
        assert_eq!((found.name.as_str(), found.from.as_str()), ("\"x\"", "\"t\" as \"x\""));
        assert!(found.items.starts_with("\"x\".*, "), "{}", found.items);
        assert!(
            found.rest.contains(&crate::fragments::variable(0)) && found.rest.contains(" order by "),
            "{}",
            found.rest
        );
        let declared = of("declare c cursor for select a from #t for update of a").unwrap();
        assert_eq!((declared.shown.as_str(), declared.name.as_str()), ("#t", "\"#t\""));
    }

    #[test]
    fn rows_of_anything_else() {
        for text in [
            "select 1",
            "select a from t, u",
            "select a from t join u on t.a = u.b",
            "select distinct a from t",
            "select top 1 a from t",
            "select count(*) from t",
            "select a from t group by a",
            "select @a from t",
            "select (select 1) from t",
            "select a from t union select a from t",
            "select a from t order by a offset 1 rows",
            "delete t",
            "select a from t select b from t",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
