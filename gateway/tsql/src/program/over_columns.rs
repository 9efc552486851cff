//! Queries whose columns are expressions over columns of tables. PostgreSQL is asked for the types of these; the query is
//! then translated once more, with types that T-SQL's rules give.

use super::Sql;
use crate::error::Error;
use crate::facts::types::Type;
use crate::resolve::Scope;
use crate::translate::{self, Asked, ListItem, Numbered};
use crate::tree::{Statement, StatementKind};
use std::collections::hash_map::DefaultHasher;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// Operand type clash, incompatible operands, an operand that an operator does not take.
const NO_OPERATION: [i32; 3] = [206, 402, 8117];

#[derive(Debug)]
pub struct OverColumns {
    statement: StatementKind,
    scope: Scope,
    /// Times are given by variables.
    is_clocked: bool,
    variables: Vec<String>,
    /// Of each select.
    columns: Vec<Columns>,
    /// Two of one digest are translated alike.
    digest: u64,
    /// Bytes that it holds, nearly.
    size: usize,
}

/// The columns that the expressions of a select name.
#[derive(Debug)]
pub struct Columns {
    names: Vec<String>,
    /// The query that has them as its columns, with the variables of the whole; None where there are none.
    pub query: Option<Sql>,
}

/// A query that was translated with the types of columns.
#[derive(Debug)]
pub struct Typed {
    pub sql: Sql,
    pub items: Vec<ListItem>,
}

impl PartialEq for OverColumns {
    fn eq(&self, other: &OverColumns) -> bool {
        self.digest == other.digest
    }
}

impl Eq for OverColumns {}

impl OverColumns {
    /// `text`: that of the batch. `with`: what stands before the selects. Error: as that of `Sql::read`.
    pub fn new(
        statement: &Statement,
        text: &str,
        scope: &Scope,
        variables: &[String],
        is_clocked: bool,
        asked: Vec<Asked>,
        with: &str,
    ) -> Result<OverColumns, String> {
        let query = |Asked { columns: names, from }: Asked| {
            let text = format!("{with}select {} from {from}", names.join(", "));
            let query = (!names.is_empty()).then(|| Sql::read(&text, variables.to_vec())).transpose()?;
            Ok(Columns { names, query })
        };
        let types: Vec<_> = variables.iter().map(|name| scope.variables.get(name)).collect();
        let mut hasher = DefaultHasher::new();
        (text, statement.at.start, types, scope.sybase, scope.nulls_equal).hash(&mut hasher);
        Ok(OverColumns {
            statement: statement.kind.clone(),
            scope: scope.clone(),
            is_clocked,
            variables: variables.to_vec(),
            columns: asked.into_iter().map(query).collect::<Result<_, String>>()?,
            digest: hasher.finish(),
            // a tree is a good deal larger than its text
            size: 16 * statement.at.range().len(),
        })
    }

    pub fn columns(&self) -> &[Columns] {
        &self.columns
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// The query where the columns are of these types, in the order of `columns`. None: it cannot be written so. Error:
    /// T-SQL has no such operation on values of these types.
    pub fn typed(&self, types: &[Vec<Option<Type>>]) -> Result<Option<Typed>, Error> {
        let known = |(columns, types): (&Columns, &Vec<Option<Type>>)| -> HashMap<String, Type> {
            let both = columns.names.iter().zip(types);
            both.filter_map(|(name, of)| Some((name.clone(), (*of)?))).collect()
        };
        let known: Vec<_> = self.columns.iter().zip(types).map(known).collect();
        if known.iter().all(HashMap::is_empty) {
            return Ok(None);
        }
        match self.translated(&known) {
            Err(error) if NO_OPERATION.contains(&error.number) => Err(error),
            translated => Ok(translated.ok().flatten()),
        }
    }

    fn translated(&self, known: &[HashMap<String, Type>]) -> Result<Option<Typed>, Error> {
        let mut numbered = if self.is_clocked { Numbered::clocked() } else { Numbered::default() };
        let translated = translate::statement_over(&self.statement, &self.scope, &mut numbered, known)?;
        let Some((sql, (items, ..), sources)) = translated
            .and_then(|translated| Some((translated.sql, translated.over?, translated.row_sources)))
        else {
            return Ok(None);
        };
        if numbered.names != self.variables {
            return Ok(None);
        }
        let Ok(mut sql) = Sql::read(&sql, numbered.names) else { return Ok(None) };
        sql.locks = numbered.locks;
        if let Some((end, sources)) = sources {
            sql.note_sources(end, sources);
        }
        Ok(Some(Typed { sql, items }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::types::{decimal, varchar, INT};
    use crate::program::{Action, ResultType, Settings};

    fn over(text: &str) -> Option<std::sync::Arc<OverColumns>> {
        let program = crate::compile(text, &Settings::default()).unwrap();
        program.statements.into_iter().find_map(|statement| match statement.action {
            Action::Query(query) => query.sql.over_columns,
            _ => None,
        })
    }

    fn asked(text: &str) -> Vec<Option<String>> {
        let over = over(text).unwrap();
        over.columns()
            .iter()
            .map(|columns| Some(columns.query.as_ref()?.numbered().replace('"', "")))
            .collect()
    }

    #[test]
    fn columns_are_asked_for_where_expressions_name_them() {
        let one = |text: &str| vec![Some(text.to_owned())];
        assert_eq!(
            asked("select a, a + b, x.c from t as x where d = 1"),
            one("select a, b, x.c from t as x")
        );
        // the words of a date are no columns, nor are those of a query inside
        assert_eq!(
            asked("select dateadd(day, 1, a), b + (select max(c) from u) from t"),
            one("select a, b from t")
        );
        assert_eq!(
            asked("with w as (select a from t) select a + 1 from w"),
            one("with w as (select a from t) select a from w")
        );
        assert_eq!(
            asked("select a from t union select b from u"),
            [Some("select a from t".to_owned()), Some("select b from u".to_owned())]
        );
    }

    #[test]
    fn nothing_is_asked_for_where_all_is_told() {
        for text in [
            "select a, b as c, * from t",
            "select count(*), len(a), 1 + 2 from t",
            "select a + 1 as b into u from t",
            "declare @a int select @a = a + 1 from t",
            "select upper('a')",
        ] {
            assert!(over(text).is_none(), "{text}");
        }
    }

    #[test]
    fn types_of_expressions_by_those_of_columns() {
        let typed = |text: &str, types: &[Option<Type>]| {
            let typed = over(text).unwrap().typed(&[types.to_vec()]).ok()??;
            Some((typed.sql.numbered().replace('"', ""), typed.items))
        };
        let value = |of: Type| ListItem::Value(Some(ResultType { of, not_null: false }));
        let (sql, items) =
            typed("select *, a * b from t", &[Some(decimal(5, 2)), Some(decimal(4, 1))]).unwrap();
        assert_eq!(sql, "select *, (a::numeric * b::numeric)::numeric(10,3) as ?column? from t");
        assert_eq!(items, [ListItem::Star, value(decimal(10, 3))]);
        let (_, items) = typed("select a + b from t", &[Some(varchar(Some(3))), None]).unwrap();
        assert_eq!(items, [ListItem::Value(None)]);
        assert!(typed("select a + b from t", &[None, None]).is_none());
        // there is no such operation
        assert!(typed("select a - b from t", &[Some(varchar(Some(3))), Some(varchar(Some(3)))]).is_none());
        let (_, items) = typed("select a from t union all select a from t", &[Some(INT)]).unwrap();
        assert_eq!(items, [ListItem::Value(None)]);
    }
}
