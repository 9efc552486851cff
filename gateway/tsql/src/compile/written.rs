//! SQL that depends on declarations is written when its text is compiled, or, if a table does not exist yet or has
//! changed since, when it runs.

use super::compiler::{numbered_sql, Compiler};
use crate::bind::{self, Clock, ListItem, Numbered, Translated, Verb};
use crate::error::Error;
use crate::postgres::{self, Listed, Scalar, Select};
use crate::program::{Bound, Query, QueryKind, Source, Sql, Tree, Uses};
use crate::resolve::Scope;
use crate::schema::Schema;
use crate::tree::{Position, StatementKind};
use std::mem::take;
use std::sync::Arc;

/// A query, the items of its list and the declarations that it depends on.
pub(super) struct Written {
    pub query: Query,
    pub items: Vec<ListItem>,
    pub uses: Uses,
}

impl Written {
    /// The value of a select without a FROM of its own.
    pub fn value(value: Scalar, numbered: Numbered, scope: &Scope) -> Written {
        let select = Select { list: vec![Listed::from(value)], ..Select::default() };
        let translated = Translated { sql: postgres::Query::from(select).into(), ..Translated::default() };
        Written::new(translated, numbered, scope)
    }

    fn new(mut translated: Translated, mut numbered: Numbered, scope: &Scope) -> Written {
        let uses = Uses::new(take(&mut numbered.uses), scope);
        let items = take(&mut translated.items);
        let (browses, met) = (numbered.browses, take(&mut numbered.met));
        let sql = Sql {
            row_sources: translated.row_sources,
            ..numbered_sql(&translated.sql.to_string(), numbered)
        };
        let kind = match translated.kind {
            Verb::Select | Verb::SelectInto => QueryKind::Select,
            Verb::Insert => QueryKind::Insert,
            Verb::Update => QueryKind::Update,
            Verb::Delete => QueryKind::Delete,
            Verb::Merge => QueryKind::Merge,
        };
        let query = Query {
            sql,
            kind,
            assigns: translated.assigns,
            current: translated.current,
            columns: translated.columns,
            into: translated.into,
            limited: translated.limited,
            padded: None,
            met,
            browses,
        };
        Written { query, items, uses }
    }

    fn bound(self, source: Option<Arc<Source>>, digest: u64) -> Query {
        let Written { mut query, items, uses } = self;
        query.sql.bound = Some(Arc::new(Bound { source, uses, items, digest }));
        query
    }
}

/// A select, insert, update or delete; None for any other statement.
pub(super) fn statement(statement: &StatementKind, scope: &Scope) -> Result<Option<Written>, Error> {
    let mut numbered = Numbered::default();
    let Some(mut translated) = bind::statement(statement, scope, &mut numbered)? else {
        return Ok(None);
    };
    if numbered.clock == Clock::Compared && numbered.facts.created.is_none() {
        let mut clocked = Numbered::clocked();
        let again = bind::statement(statement, scope, &mut clocked)?;
        // a statement has one time
        if let Some(again) = again.filter(|_| clocked.clock == Clock::Variables) {
            (translated, numbered) = (again, clocked);
        }
    }
    Ok(Some(Written::new(translated, numbered, scope)))
}

impl Source {
    /// The SQL for a schema. Error: it does not fit its tables.
    pub fn write(&self, schema: Arc<dyn Schema>) -> Result<Query, Error> {
        let scope = Scope { schema: Some(schema), ..self.scope.clone() };
        let mut numbered = Numbered::default();
        let written = match &self.tree {
            Tree::Statement(tree) => {
                let refused = || Error::refused("this statement", "it depends on no table", self.line);
                statement(tree, &scope)?.ok_or_else(refused)?
            }
            Tree::Condition(condition) => {
                let sql = bind::condition(condition, &scope, &mut numbered)?;
                Written::value(sql, numbered, &scope)
            }
            Tree::Value(value, target) => {
                let value = bind::value(value, &scope, &mut numbered, *target)?;
                Written::value(value.sql, numbered, &scope)
            }
        };
        Ok(written.bound(None, self.digest))
    }
}

/// The query with its source. `at`: the position in the text of `tree`'s result.
pub(super) fn bound(
    compiler: &Compiler<'_>,
    written: Written,
    at: Position,
    tree: impl FnOnce() -> Tree,
) -> Query {
    let knows_tables = compiler.scope.schema.as_ref().is_none_or(|schema| schema.is_complete());
    let is_later = knows_tables && written.uses.lack_a_table();
    if written.uses.is_empty() {
        return written.query;
    }
    let source = Source::new(tree(), (compiler.text, at), &compiler.scope);
    let digest = source.digest;
    let mut query = written.bound(Some(Arc::new(source)), digest);
    if is_later {
        query.sql.clear();
    }
    query
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
            of: *of,
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
            ("if exists (select * from t x where isnull(x.dt, 0) < 5) print 'x'", "coalesce(x.dt, tsql"),
            ("select x.b from (select d as b from t) x where x.b * x.b > 1", "::numeric(11,4)"),
            ("with w (b) as (select d from t) select 1 from w where b * b > 1", "::numeric(11,4)"),
            ("select 1 from u where exists (select * from t where d * d > 1)", "::numeric(11,4)"),
            ("insert t (v) values ('x')", "values ('x'::varchar(1))"),
            ("update t set v += 'x'", "set v = tsql.fitting("),
            ("select a from t order by g", "order by tsql.guid_key(g)"),
            ("select a from t order by dt", "order by dt"),
        ] {
            assert!(shown(text).contains(expected), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn a_statement_whose_table_does_not_exist_is_written_later() {
        for text in [
            "select a from u order by g",
            "select 1 from t, u where e * e > 1",
            "select 1 from t where exists (select * from u where d * d > 1)",
            "create table #t (d decimal(5, 2)) select 1 from #t where d * d > 1",
            "create table t (d decimal(5, 2), e int) drop table t select 1 from t where d * d > 1",
            "select * into t from u select 1 from t where d * d > 1",
            "use x select 1 from t where d * d > 1",
        ] {
            assert!(last(text, &usual()).is_deferred(), "{text}");
        }
    }

    #[test]
    fn the_columns_that_are_named_are_used() {
        for text in ["select count(*) from t", "select 1 + 2", "insert t default values"] {
            assert!(last(text, &usual()).bound.is_none(), "{text}");
        }
        let sql = last("select d, a + 1 from t where v = 'x' order by dt", &usual());
        let bound = sql.bound.unwrap();
        let uses: Vec<_> = bound.uses.iter().map(|one| (one.name.as_str(), one.columns.join(" "))).collect();
        assert_eq!(uses, [("\"t\"", String::from("a d dt v"))]);
    }

    #[test]
    fn a_name_that_no_source_has_is_refused() {
        for (text, number) in [
            ("select e from t", 207),
            ("select x.e from t as x", 207),
            ("select y.a from t as x", 4104),
            ("select t.a from t as x", 4104),
            ("select 1 from t where e = 1", 207),
            ("update t set a = e", 207),
            ("delete t where e = 1", 207),
            ("select 1 from t group by e", 207),
            ("select 1 from t order by e", 207),
            ("select a from t where exists (select * from t as y where y.e = t.a)", 207),
            ("select e from (select a from t) as x", 207),
            ("delete t where x.a = 1", 4104),
        ] {
            assert_eq!(compiled(text, &usual()).unwrap_err().number, number, "{text}");
        }
        for text in [
            "select e from u",
            "select e from t, u",
            "select 1 from t where exists (select * from u where e = 1)",
            "select a from t where exists (select * from t as y where a = y.a)",
            "select a as e from t order by e",
        ] {
            assert!(compiled(text, &usual()).is_ok(), "{text}");
        }
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
        assert!(!later.bound.unwrap().uses.is_empty());
    }

    #[test]
    fn a_statement_is_written_again_for_another_schema() {
        let text = "select *, a * b from t";
        let unknown: Arc<dyn Schema> = Arc::new(crate::schema::Unknown);
        let sql = last(text, &unknown);
        let bound = sql.bound.unwrap();
        assert!(bound.uses.hold_in(&*unknown) && !bound.uses.hold_in(&*usual()));
        let source = bound.source.as_ref().unwrap();
        let typed = |types: [Type; 2]| source.write(table(&[("a", types[0]), ("b", types[1])]));
        let found = typed([decimal(5, 2), decimal(4, 1)]).unwrap().sql;
        assert_eq!(
            found.numbered().replace('"', ""),
            "select t.a, t.b, (a::numeric * b::numeric)::numeric(10,3) as ?column? from t"
        );
        let product = ResultType { of: decimal(10, 3), not_null: false };
        assert_eq!(
            found.bound.unwrap().items,
            [ListItem::Value(None), ListItem::Value(None), ListItem::Value(Some(product))]
        );
        // there is no such operation
        assert_eq!(typed([varchar(Some(3)), varchar(Some(3))]).unwrap_err().number, 8117);
    }
}
