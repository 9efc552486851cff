//! Finds the types of a statement's undeclared parameters (SQL Server, "sp_describe_undeclared_parameters", "Parameter
//! selection algorithm").

use super::base_scope;
use crate::bind::{self, Numbered};
use crate::error::Error;
use crate::facts::session;
use crate::facts::types::{Type, UNKNOWN};
use crate::lexer::{self, TokenKind};
use crate::parser;
use crate::program::Settings;
use crate::schema::Schema;
use crate::tree::Position;
use std::sync::Arc;

/// A parameter and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// As written.
    pub name: String,
    pub of: Type,
    /// The longest type of its kind instead of the type itself: for values compared by order ("General deduction").
    pub longest: bool,
}

/// The undeclared parameters of a select, insert, update or delete, in the order of the text. `settings` has the
/// declared ones.
pub fn undeclared(
    text: &str,
    settings: &Settings,
    schema: &Arc<dyn Schema>,
) -> Result<Vec<Undeclared>, Error> {
    let tokens = lexer::tokens(text, settings.syntax())?;
    let is_open = |name: &str| !session::is_global(name) && !settings.variables.contains_key(name);
    let open = tokens
        .iter()
        .filter(|token| token.kind == TokenKind::Variable && is_open(&token.value.to_lowercase()));
    let mut parameters: Vec<(String, Position)> = Vec::new();
    for token in open {
        let name = token.value.to_lowercase();
        if parameters.iter().any(|(known, _)| *known == name) {
            let text = format!(
                "The undeclared parameter '{}' is used more than once in the batch being analyzed.",
                token.value
            );
            return Err(Error::new(11508, text, token.at).with_severity(16));
        }
        parameters.push((name, token.at));
    }
    if parameters.is_empty() {
        return Ok(Vec::new());
    }
    let batch = parser::parse_tokens(&tokens, settings.syntax(), Some(settings.known()))?;
    let mut scope = base_scope(settings, schema);
    scope.variables.extend(parameters.iter().map(|(name, _)| (name.clone(), UNKNOWN)));
    let mut numbered = Numbered::default();
    if let [statement] = batch.statements.as_slice() {
        bind::statement(&statement.kind, &scope, &mut numbered)?;
    }
    let mut described = Vec::with_capacity(parameters.len());
    for (name, at) in parameters {
        let written = text.get(at.range()).unwrap_or(&name);
        let Some(met) = numbered.met.get(&name) else {
            let text = format!("The type for parameter '{written}' cannot be deduced in this context.");
            return Err(Error::new(11502, text, at).with_severity(16));
        };
        described.push(Undeclared { name: written.to_owned(), of: met.of, longest: met.by_order });
    }
    Ok(described)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::types::{varchar, INT};
    use crate::schema::{Column, Object, Table};

    /// `t (a int, b varchar(3))`
    #[derive(Debug)]
    struct One;

    impl Schema for One {
        fn object(&self, key: &str) -> Option<Object> {
            let mut table = Table::default();
            for (name, of) in [("a", INT), ("b", varchar(Some(3)))] {
                table.add(Column { name: name.to_owned(), of, ..Column::default() });
            }
            (key == "\"t\"").then(|| Object::Table(Arc::new(table)))
        }
    }

    fn found(text: &str) -> Result<Vec<(String, &'static str, bool)>, i32> {
        let mut settings = Settings { quoted_identifiers: true, ..Settings::default() };
        settings.variables.insert("@d".to_owned(), INT);
        let schema: Arc<dyn Schema> = Arc::new(One);
        let shown = |one: Undeclared| (one.name, one.of.name, one.longest);
        match undeclared(text, &settings, &schema) {
            Ok(found) => Ok(found.into_iter().map(shown).collect()),
            Err(error) => Err(error.number),
        }
    }

    #[test]
    fn columns_and_values_tell_the_type() {
        let of = |name: &str, of: &'static str, longest| (name.to_owned(), of, longest);
        for (text, expected) in [
            (
                "insert into t (b, a) values (@P1, 1 + cast(@p2 as float))",
                vec![of("@P1", "varchar", false), of("@p2", "float", false)],
            ),
            ("insert t values (1, @p)", vec![of("@p", "varchar", false)]),
            (
                "insert t (a, b) select 1, @p from t as u where u.a < @q",
                vec![of("@p", "varchar", false), of("@q", "int", true)],
            ),
            (
                "update t set a = @p where b = @q and a = @d",
                vec![of("@p", "int", false), of("@q", "varchar", false)],
            ),
            ("delete t where a in (1, @p)", vec![of("@p", "int", false)]),
            (
                "select x.a from t as x join t as y on x.b = @p where not (x.b like @q or @r <> x.a + 1.5)",
                vec![of("@p", "varchar", false), of("@q", "varchar", true), of("@r", "decimal", false)],
            ),
            ("select 1 from t where exists (select 1 from t u where a = @p)", vec![of("@p", "int", false)]),
            ("select 1 where @d = 1", vec![]),
        ] {
            assert_eq!(found(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn others_tell_none() {
        for (text, number) in [
            ("select @p", 11502),
            ("select top (@p) a from t", 11502),
            ("select * from t where @p = @q", 11502),
            ("select * from t where a = @p + @q", 11502),
            ("select * from t where a = @p and b = @P", 11508),
            ("select 1 select * from t where a = @p", 11502),
            ("select * from missing where a = @p", 11502),
            ("insert t (a, b, c) select *, @p from u", 207),
            ("insert t (a, b) select *, @p from u", 11502),
            ("select * frm t where a = @p", 102),
            ("insert t (a) values (1, @p)", 110),
            ("insert t (a, b) select @p from t", 120),
            ("insert t values (@p)", 213),
        ] {
            assert_eq!(found(text), Err(number), "{text}");
        }
    }
}
