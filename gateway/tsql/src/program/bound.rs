//! Statements that depend on the declarations of their tables. Another declaration makes another statement of one, which is
//! then written once more from its tree.

use super::demanded::each;
use super::{Action, Sql, Statement};
use crate::error::Error;
use crate::facts::types::Type;
use crate::resolve::names::own_name;
use crate::resolve::Scope;
use crate::schema::{Schema, Table};
use crate::translate::{self, ListItem, Numbered};
use crate::tree::{Expression, Position, StatementKind};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Operand type clash, no implicit conversion, incompatible operands, an argument or operand that is not taken.
const NO_OPERATION: [i32; 5] = [206, 257, 402, 8116, 8117];

/// What SQL is written of.
#[derive(Debug)]
pub enum Tree {
    Statement(StatementKind),
    /// A condition of IF or WHILE.
    Condition(Expression),
    /// A value, as one of this type.
    Value(Expression, Option<Type>),
}

/// The declarations that SQL depends on, and what it is written of.
#[derive(Debug)]
pub struct Bound {
    tree: Tree,
    scope: Scope,
    /// Times are given by variables.
    is_clocked: bool,
    uses: Uses,
    /// The items of its list, if it gives rows.
    pub items: Vec<ListItem>,
    /// Two of one digest are written alike.
    digest: u64,
    /// Bytes that it holds, nearly.
    size: usize,
}

/// Tables and columns whose declarations were used, with these declarations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses(Vec<Use>);

/// A table or view, as SQL names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    pub name: String,
    /// None: nothing was known of it.
    pub table: Option<Arc<Table>>,
    /// The columns of it whose types were used, by their names.
    pub columns: Vec<String>,
}

/// SQL that was written again.
#[derive(Debug)]
pub struct Typed {
    pub sql: Sql,
    pub items: Vec<ListItem>,
    pub uses: Uses,
}

impl PartialEq for Bound {
    fn eq(&self, other: &Bound) -> bool {
        self.digest == other.digest
    }
}

impl Eq for Bound {}

impl Uses {
    pub fn new(noted: BTreeMap<String, BTreeSet<String>>, scope: &Scope) -> Uses {
        let used = |(name, columns): (String, BTreeSet<String>)| Use {
            table: scope.table(&name),
            columns: columns.into_iter().collect(),
            name,
        };
        Uses(noted.into_iter().map(used).collect())
    }

    /// What the statements of a text depend on, but for tables that the text makes or changes, and for those of another
    /// database.
    pub(crate) fn of_all(statements: &[Statement], scope: &Scope) -> Uses {
        let (mut all, mut is_elsewhere) = (Uses::default(), false);
        each(statements, &mut |statement| {
            is_elsewhere |= matches!(statement.action, Action::Use(_));
            statement.action.own_sql(&mut |sql| {
                let bound = sql.bound.as_ref().filter(|_| !is_elsewhere);
                for one in bound.into_iter().flat_map(|bound| bound.uses.iter()) {
                    let is_known = all.iter().any(|known| known.name == one.name);
                    if !is_known && !scope.changing.contains(own_name(&one.name)) {
                        all.0.push(one.clone());
                    }
                }
            });
        });
        all
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Use> {
        self.0.iter()
    }

    /// Whether the schema declares the tables so.
    pub fn hold_in(&self, schema: &dyn Schema) -> bool {
        self.0.iter().all(|one| one.table == schema.table(&one.name))
    }
}

impl Bound {
    /// `text`: that of the batch, and where `tree` stands in it.
    pub fn new(
        tree: Tree,
        (text, at): (&str, Position),
        scope: &Scope,
        numbered: &Numbered,
        uses: Uses,
        items: Vec<ListItem>,
    ) -> Bound {
        let types: Vec<_> = numbered.names.iter().map(|name| scope.variables.get(name)).collect();
        let mut hasher = DefaultHasher::new();
        (text, at.start, types, scope.sybase, scope.nulls_equal).hash(&mut hasher);
        let scope = Scope { schema: None, changing: Default::default(), ..scope.clone() };
        Bound {
            tree,
            scope,
            is_clocked: numbered.clock == translate::Clock::Variables,
            uses,
            items,
            digest: hasher.finish(),
            // a tree is a good deal larger than its text
            size: 16 * at.range().len(),
        }
    }

    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// The same under another schema; `variables` are those of the SQL. None: it cannot be written so. Error: T-SQL has no
    /// such operation on values of these types.
    pub fn again(&self, schema: Arc<dyn Schema>, variables: &[String]) -> Result<Option<Typed>, Error> {
        let scope = Scope { schema: Some(schema), ..self.scope.clone() };
        match self.written(&scope) {
            Err(error) if NO_OPERATION.contains(&error.number) => Err(error),
            written => Ok(written.ok().flatten().filter(|typed| typed.sql.variables == variables)),
        }
    }

    fn written(&self, scope: &Scope) -> Result<Option<Typed>, Error> {
        let mut numbered = if self.is_clocked { Numbered::clocked() } else { Numbered::default() };
        let (text, items, sources) = match &self.tree {
            Tree::Statement(statement) => match translate::statement(statement, scope, &mut numbered)? {
                Some(translated) => (translated.sql, translated.items, translated.row_sources),
                None => return Ok(None),
            },
            Tree::Condition(condition) => {
                let sql = translate::condition(condition, scope, &mut numbered)?;
                (format!("select {sql}"), Vec::new(), None)
            }
            Tree::Value(value, target) => {
                let sql = translate::value(value, scope, &mut numbered, *target)?.sql;
                (format!("select {sql}"), Vec::new(), None)
            }
        };
        let uses = Uses::new(std::mem::take(&mut numbered.uses), scope);
        let Ok(mut sql) = Sql::read(&text, numbered.names) else { return Ok(None) };
        sql.locks = numbered.locks;
        if let Some((end, sources)) = sources {
            sql.note_sources(end, sources);
        }
        Ok(Some(Typed { sql, items, uses }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::types::{decimal, varchar, DATETIME, GUID, INT};
    use crate::program::{ResultType, Settings};
    use crate::reading::Reading;
    use crate::schema::Column;

    #[derive(Clone, Debug)]
    struct One(Arc<Table>);

    impl Schema for One {
        fn table(&self, name: &str) -> Option<Arc<Table>> {
            (name == "\"t\"").then(|| self.0.clone())
        }
    }

    fn table(columns: &[(&str, Type)]) -> Arc<dyn Schema> {
        let column = |(name, of): &(&str, Type)| Column {
            name: String::from(*name),
            of: Some(*of),
            sent: (of.oid, of.typmod()),
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
