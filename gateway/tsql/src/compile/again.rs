//! Writes a statement again from its tree, with other declarations of its tables.

use crate::error::Error;
use crate::program::{Bound, ListItem, Sql, Tree, Uses};
use crate::resolve::Scope;
use crate::schema::Schema;
use crate::translate::{self, Numbered};
use std::sync::Arc;

/// The newly written SQL.
#[derive(Debug)]
pub struct Typed {
    pub sql: Sql,
    pub items: Vec<ListItem>,
    pub uses: Uses,
}

impl Bound {
    /// Writes the same statement for another schema; `variables` are those of the SQL. None: this is impossible. Error:
    /// the statement does not fit its tables.
    pub fn again(&self, schema: Arc<dyn Schema>, variables: &[String]) -> Result<Option<Typed>, Error> {
        let scope = Scope { schema: Some(schema), ..self.scope.clone() };
        Ok(self.written(&scope)?.filter(|typed| typed.sql.variables == variables))
    }

    fn written(&self, scope: &Scope) -> Result<Option<Typed>, Error> {
        let mut numbered = if self.is_clocked { Numbered::clocked() } else { Numbered::default() };
        let (text, items, row_sources) = match &self.tree {
            Tree::Statement(statement) => match translate::statement(statement, scope, &mut numbered)? {
                Some(translated) => (translated.sql, translated.items, translated.row_sources),
                None => return Ok(None),
            },
            Tree::Condition(condition) => {
                let sql = translate::condition(condition, scope, &mut numbered)?;
                (format!("select {sql}"), Vec::new(), Vec::new())
            }
            Tree::Value(value, target) => {
                let sql = translate::value(value, scope, &mut numbered, *target)?.sql;
                (format!("select {sql}"), Vec::new(), Vec::new())
            }
        };
        let uses = Uses::new(std::mem::take(&mut numbered.uses), scope);
        let sql = Sql { facts: Box::new(numbered.facts), row_sources, ..Sql::written(&text, numbered.names) };
        Ok(Some(Typed { sql, items, uses }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::types::{decimal, varchar, Type, DATETIME, GUID, INT};
    use crate::program::{each, ResultType, Settings};
    use crate::reading::Reading;
    use crate::schema::{Column, Object, Table};

    #[derive(Clone, Debug)]
    struct One(Arc<Table>);

    impl Schema for One {
        fn object(&self, key: &str) -> Option<Object> {
            (key == "\"t\"").then(|| Object::Table(self.0.clone()))
        }
    }

    fn table(columns: &[(&str, Type)]) -> Arc<dyn Schema> {
        let column = |(name, of): &(&str, Type)| Column {
            name: String::from(*name),
            of: Some(*of),
            sent: (of.oid, of.typmod()),
            is_identity: *name == "id",
            ..Column::default()
        };
        let mut table = Table::default();
        table.has_own_rows = true;
        columns.iter().map(column).for_each(|column| table.add(column));
        Arc::new(One(Arc::new(table)))
    }

    fn usual() -> Arc<dyn Schema> {
        let text = varchar(Some(3));
        table(&[("a", INT), ("d", decimal(5, 2)), ("dt", DATETIME), ("v", text), ("g", GUID)])
    }

    fn compiled(text: &str, schema: &Arc<dyn Schema>) -> Result<Vec<Sql>, Error> {
        let settings = Settings { quoted_identifiers: true, ..Settings::default() };
        let program = Reading::new(text, &settings)?.compile(&settings, false, schema)?;
        let mut found = Vec::new();
        each(&program.statements, &mut |statement| {
            statement.action.own_sql(&mut |sql| found.push(sql.clone()))
        });
        Ok(found)
    }

    fn last(text: &str, schema: &Arc<dyn Schema>) -> Sql {
        compiled(text, schema).unwrap().pop().unwrap()
    }

    fn shown(text: &str) -> String {
        last(text, &usual()).numbered().replace('"', "")
    }

    #[test]
    fn columns_have_their_types_in_every_place() {
        for (text, expected) in [
            ("select 1 from t where isnull(dt, 0) < 5", "coalesce(dt, tsql.to_datetime(0))"),
            ("update t set a = 1 where isnull(dt, 0) < 5", "coalesce(dt, tsql.to_datetime(0))"),
            ("delete t where isnull(x.dt, 0) < 5", "tsql.isnull(x.dt, 0"),
            ("if exists (select * from t x where isnull(x.dt, 0) < 5) print 'x'", "coalesce(x.dt, tsql"),
            ("select x.b from (select d as b from t) x where x.b * x.b > 1", "::numeric(11,4)"),
            ("with w (b) as (select d from t) select 1 from w where b * b > 1", "::numeric(11,4)"),
            ("select 1 from u where exists (select * from t where d * d > 1)", "::numeric(11,4)"),
            ("insert t (v) values ('x')", "values (tsql.carry('x'::varchar(1), null::integer, false))"),
            ("update t set v += 'x'", "set v = tsql.carry("),
            ("select a from t order by g", "order by tsql.guid_key(g)"),
            ("select a from t order by dt", "order by dt"),
            ("select a from u order by g", "order by tsql.ordered(g)"),
        ] {
            assert!(shown(text).contains(expected), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn where_the_source_of_a_column_is_not_plain_its_type_is_not_known() {
        for text in [
            "select 1 from t, u where x.d * x.d > 1",
            "select 1 from t where exists (select * from u where d * d > 1)",
            "create table #t (d decimal(5, 2)) select 1 from #t where d * d > 1",
            "create table t (d decimal(5, 2), e int) drop table t select 1 from t where d * d > 1",
            "select * into t from u select 1 from t where d * d > 1",
            "use x select 1 from t where d * d > 1",
        ] {
            assert!(!shown(text).contains("(11,4)"), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn what_decides_nothing_is_not_used() {
        for text in [
            "select a, d as b, * from t where v = 'x' and dt between 1 and a or g in (1, a) and a is null",
            "select a from t group by a",
            "select count(*) from t",
            "select 1 + 2",
            "insert t (a) values (1)",
        ] {
            assert!(last(text, &usual()).bound.is_none(), "{text}");
        }
        let sql = last("select d, a + 1 from t where v = 'x' order by dt", &usual());
        let bound = sql.bound.unwrap();
        let uses: Vec<_> =
            bound.uses().iter().map(|one| (one.name.as_str(), one.columns.join(" "))).collect();
        assert_eq!(uses, [("\"t\"", String::from("a d dt"))]);
    }

    #[test]
    fn an_insert_without_a_list_fills_the_columns_that_take_values() {
        let schema = table(&[("id", INT), ("a", INT), ("v", varchar(Some(3)))]);
        let shown = |text: &str| compiled(text, &schema).map(|mut found| found.pop().unwrap().numbered());
        let sql = shown("insert t values (1, 'x')").unwrap();
        assert!(sql.starts_with("insert into \"t\" (\"a\", \"v\") values"), "{sql}");
        assert!(sql.contains("case when tsql.takes('\"t\"'::regclass, 2) then"), "{sql}");
        for (text, number) in [
            ("insert t values (1)", 213),
            ("insert t values (1, 2, 'x')", 8101),
            ("insert t select 1", 213),
            ("insert t (a) values (1, 2)", 110),
            ("insert t (a, v) select 1", 120),
        ] {
            assert_eq!(shown(text).unwrap_err().number, number, "{text}");
        }
        // the columns of a table that does not exist yet are known when the statement runs
        let later = compiled("insert u values (1)", &schema).unwrap().pop().unwrap();
        assert!(!later.bound.unwrap().uses().is_empty());
    }

    #[test]
    fn a_statement_is_written_again_for_another_schema() {
        let text = "select *, a * b from t";
        let unknown: Arc<dyn Schema> = Arc::new(crate::schema::Unknown);
        let sql = last(text, &unknown);
        let bound = sql.bound.unwrap();
        assert!(bound.uses().hold_in(&*unknown) && !bound.uses().hold_in(&*usual()));
        let typed = |types: [Type; 2]| {
            let schema = table(&[("a", types[0]), ("b", types[1])]);
            bound.again(schema, &sql.variables).map(|typed| typed.unwrap())
        };
        let found = typed([decimal(5, 2), decimal(4, 1)]).unwrap();
        assert_eq!(
            found.sql.numbered().replace('"', ""),
            "select *, (a::numeric * b::numeric)::numeric(10,3) as ?column? from t"
        );
        let product = ResultType { of: decimal(10, 3), not_null: false };
        assert_eq!(found.items, [ListItem::Star, ListItem::Value(Some(product))]);
        // there is no such operation
        assert_eq!(typed([varchar(Some(3)), varchar(Some(3))]).unwrap_err().number, 8117);
    }
}
