//! Finds the types of a statement's undeclared parameters (SQL Server, "sp_describe_undeclared_parameters", "Parameter
//! selection algorithm").

use super::base_scope;
use crate::bind::{self, any, mismatch};
use crate::error::Error;
use crate::facts::session;
use crate::facts::types::Type;
use crate::lexer::{self, TokenKind};
use crate::parser;
use crate::program::Settings;
use crate::resolve::{names, Scope};
use crate::schema::{other_number, Schema};
use crate::tree::{
    Arguments, AssignOperator, BinaryOperator, Cast, ColumnName, CommonTable, Expression, Insert,
    InsertSource, JoinKind, Literal, LiteralValue, Locks, Name, ObjectName, Position, Query, QueryBody,
    Select, SelectItem, StatementKind, TableSource, Target, TokenNumber, Update, Variable, Where,
};
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
    let scope = base_scope(settings, schema);
    let mut finder = Finder::new(&scope);
    if let [statement] = batch.statements.as_slice() {
        if let StatementKind::Insert(insert) = &statement.kind {
            finder.given = given(insert)?;
        }
        finder.statement(&statement.kind);
    }
    let mut described = Vec::with_capacity(parameters.len());
    for (name, at) in parameters {
        let written = text.get(at.range()).unwrap_or(&name);
        let found = finder.found.iter().find(|found| found.name == name);
        let Some(of) = found.map(|found| finder.type_of(found, at)).transpose()?.flatten() else {
            let text = format!("The type for parameter '{written}' cannot be deduced in this context.");
            return Err(Error::new(11502, text, at).with_severity(16));
        };
        described.push(Undeclared {
            name: written.to_owned(),
            of,
            longest: found.is_some_and(|found| found.longest),
        });
    }
    Ok(described)
}

/// A parameter and what determines its type.
struct Found {
    name: String,
    decided_by: Decider,
    longest: bool,
}

enum Decider {
    /// A query with one column of the parameter's type.
    Query(Box<Query>),
    /// A column of the changed table, by its index among those that take values.
    Column(usize),
}

/// A column that a statement fills.
enum Filled {
    Named(Expression),
    /// The index among the columns that take values, in the table's order.
    At(usize),
}

/// Examines values compared with a parameter or assigned from one. Parameters of nested queries are not found, because
/// the names there may be those of the outer query.
struct Finder<'s> {
    scope: &'s Scope,
    /// The common tables in which the statement's names are found.
    with: Vec<CommonTable>,
    from: Vec<TableSource>,
    found: Vec<Found>,
    /// The table that an INSERT fills.
    filled: Option<ObjectName>,
    /// The number of values that an INSERT has for the table's columns; None if unknown, and for other statements.
    given: Option<usize>,
}

/// The number of values per row of an INSERT without columns, if known. Errors 109 and 110 if an INSERT with columns
/// has another number.
fn given(insert: &Insert) -> Result<Option<usize>, Error> {
    let is_star = |item: &SelectItem| matches!(item, SelectItem::Star { .. });
    let given = match &insert.source {
        InsertSource::Values(rows) => rows.first().map_or(0, Vec::len),
        InsertSource::Query(query) => match &query.body {
            QueryBody::Select(select) if !select.items.iter().any(is_star) => select.items.len(),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    match insert.columns.as_slice() {
        [] => Ok(Some(given)),
        columns if columns.len() == given => Ok(None),
        columns => Err(mismatch(columns.len(), given, columns[0].at.line)),
    }
}

impl<'s> Finder<'s> {
    fn new(scope: &'s Scope) -> Finder<'s> {
        Finder { scope, with: Vec::new(), from: Vec::new(), found: Vec::new(), filled: None, given: None }
    }

    fn type_of(&self, found: &Found, at: Position) -> Result<Option<Type>, Error> {
        match &found.decided_by {
            Decider::Query(query) => bind::type_of_query(query, self.scope),
            Decider::Column(index) => {
                let Some(filled) = &self.filled else { return Ok(None) };
                let Some(table) = self.scope.table(&names::table(filled)?) else { return Ok(None) };
                if self.given.is_some_and(|given| given != table.filled().count()) {
                    return Err(other_number(at.line));
                }
                let column = table.filled().nth(*index);
                Ok(column.and_then(|column| column.of))
            }
        }
    }

    fn statement(&mut self, statement: &StatementKind) {
        match statement {
            StatementKind::Select(query) => self.query(query, &[]),
            StatementKind::Insert(insert) => self.insert(insert),
            StatementKind::Update(update) => self.update(update),
            StatementKind::Delete(delete) => {
                self.with.clone_from(&delete.with);
                self.changed(&delete.target, &delete.from);
                self.conditions(delete.condition.as_ref());
            }
            _ => {}
        }
    }

    /// `columns`: the columns of an INSERT that are filled from the query.
    fn query(&mut self, query: &Query, columns: &[Filled]) {
        let QueryBody::Select(select) = &query.body else { return };
        let target = std::mem::replace(&mut self.from, select.from.clone());
        self.with.extend(query.with.iter().cloned());
        for source in &select.from {
            self.source(source);
        }
        for condition in select.condition.iter().chain(&select.having) {
            self.condition(condition);
        }
        for item in &select.items {
            if let SelectItem::Value { value, .. } = item {
                self.value(value);
            }
        }
        self.from = target;
        for (item, column) in select.items.iter().zip(columns) {
            if let SelectItem::Value { value, .. } = item {
                self.assigned(value, column);
            }
        }
    }

    fn source(&mut self, source: &TableSource) {
        if let TableSource::Join { left, right, condition, .. } = source {
            self.source(left);
            self.source(right);
            if let Some(condition) = condition {
                self.condition(condition);
            }
        }
    }

    fn insert(&mut self, insert: &Insert) {
        self.changed(&insert.target, &[]);
        if let Target::Table(name) = &insert.target {
            self.filled = Some(name.clone());
        }
        let column_at = |place: usize| match insert.columns.get(place) {
            Some(name) => Some(Filled::Named(column(name))),
            None if insert.columns.is_empty() => Some(Filled::At(place)),
            None => None,
        };
        match &insert.source {
            InsertSource::Values(rows) => {
                for (place, value) in rows.iter().flat_map(|row| row.iter().enumerate()) {
                    if let Some(column) = column_at(place) {
                        self.assigned(value, &column);
                    }
                    self.value(value);
                }
            }
            InsertSource::Query(query) => {
                self.with.clone_from(&insert.with);
                let is_star = |item: &SelectItem| matches!(item, SelectItem::Star { .. });
                let width = match &query.body {
                    // a star is an unknown number of columns
                    QueryBody::Select(select) => {
                        select.items.iter().take_while(|item| !is_star(item)).count()
                    }
                    _ => 0,
                };
                let columns: Vec<_> = (0..width).map_while(column_at).collect();
                self.query(query, &columns);
            }
            _ => {}
        }
    }

    fn update(&mut self, update: &Update) {
        self.with.clone_from(&update.with);
        self.changed(&update.target, &update.from);
        for item in &update.set {
            if let (Some(column), AssignOperator::Set) = (&item.column, item.operator) {
                self.assigned(&item.value, &Filled::Named(Expression::Column(column.clone())));
            }
            self.value(&item.value);
        }
        self.conditions(update.condition.as_ref());
    }

    fn changed(&mut self, target: &Target, from: &[TableSource]) {
        self.from = match target {
            _ if !from.is_empty() => from.to_vec(),
            Target::Table(name) => {
                vec![TableSource::Table { name: name.clone(), alias: None, locks: Locks::default() }]
            }
            Target::Variable(_) => Vec::new(),
        };
        for source in from {
            self.source(source);
        }
    }

    fn conditions(&mut self, condition: Option<&Where>) {
        if let Some(Where::Condition(condition)) = condition {
            self.condition(condition);
        }
    }

    fn condition(&mut self, condition: &Expression) {
        match condition {
            Expression::And(conditions) | Expression::Or(conditions) => {
                conditions.iter().for_each(|one| self.condition(one));
            }
            Expression::Not(condition) => self.condition(condition),
            Expression::Binary { operator, left, right, .. } if operator.is_comparison() => {
                let by_order = !matches!(operator, BinaryOperator::Equal | BinaryOperator::NotEqual);
                self.compared(left, right, by_order);
                self.compared(right, left, by_order);
            }
            Expression::Between { operand, low, high, .. } => {
                self.compared(low, operand, true);
                self.compared(high, operand, true);
                self.value(operand);
            }
            Expression::Like { operand, pattern, .. } => self.compared(pattern, operand, true),
            Expression::In { operand, values, .. } => {
                values.iter().for_each(|value| self.compared(value, operand, false));
                self.value(operand);
            }
            other => self.value(other),
        }
    }

    /// A value that is not a condition; in a CAST the type is given.
    fn value(&mut self, value: &Expression) {
        match value {
            Expression::Cast(cast) => match self.parameter(&cast.operand) {
                Some(name) => {
                    let (value, number, at) = (LiteralValue::Null, TokenNumber::default(), cast.target.at);
                    let operand = Expression::Literal(Literal { value, number, at });
                    let cast = Expression::Cast(Box::new(Cast { operand, ..(**cast).clone() }));
                    self.found(name, self.select(&cast), false);
                }
                None => self.value(&cast.operand),
            },
            Expression::Unary { operand, .. } => self.value(operand),
            Expression::Binary { left, right, .. } => {
                self.value(left);
                self.value(right);
            }
            Expression::Function(call) => {
                if let Arguments::Values(values) = &call.arguments {
                    values.iter().for_each(|value| self.value(value));
                }
            }
            _ => {}
        }
    }

    fn compared(&mut self, value: &Expression, other: &Expression, longest: bool) {
        match self.parameter(value) {
            Some(name) if !any(other, &mut |one| self.parameter(one).is_some()) => {
                self.found(name, self.select(other), longest);
            }
            Some(_) => {}
            None => self.value(value),
        }
    }

    fn assigned(&mut self, value: &Expression, column: &Filled) {
        let Some(name) = self.parameter(value) else { return };
        let decider = match column {
            Filled::Named(column) => self.select(column),
            Filled::At(index) => Decider::Column(*index),
        };
        self.found(name, decider, false);
    }

    fn found(&mut self, name: String, decided_by: Decider, longest: bool) {
        self.found.push(Found { name, decided_by, longest });
    }

    fn parameter(&self, value: &Expression) -> Option<String> {
        match value {
            Expression::Variable(Variable { name, .. })
                if !session::is_global(name) && !self.scope.variables.contains_key(name) =>
            {
                Some(name.clone())
            }
            _ => None,
        }
    }

    /// `select value` from the statement's tables.
    fn select(&self, value: &Expression) -> Decider {
        let at = Position::default();
        let select = Select {
            distinct: false,
            top: None,
            items: vec![SelectItem::Value { value: value.clone(), alias: None }],
            into: None,
            from: self.from.iter().map(unconditional).collect(),
            condition: None,
            group_by: Vec::new(),
            having: None,
            at,
        };
        let body = QueryBody::Select(Box::new(select));
        Decider::Query(Box::new(Query { with: self.with.clone(), ..Query::of(body, at) }))
    }
}

/// The same tables without the join conditions, which may contain parameters.
fn unconditional(source: &TableSource) -> TableSource {
    match source {
        TableSource::Join { kind, left, right, .. } => TableSource::Join {
            kind: match kind {
                JoinKind::CrossApply | JoinKind::OuterApply => *kind,
                _ => JoinKind::Cross,
            },
            left: Box::new(unconditional(left)),
            right: Box::new(unconditional(right)),
            condition: None,
        },
        other => other.clone(),
    }
}

fn column(name: &Name) -> Expression {
    Expression::Column(ColumnName { table: None, column: name.text.clone(), at: name.at })
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
                table.add(Column { name: name.to_owned(), of: Some(of), ..Column::default() });
            }
            (key == "\"t\"").then(|| Object::Table(Arc::new(table)))
        }
    }

    fn found(text: &str) -> Result<Vec<(String, &'static str, bool)>, i32> {
        let mut settings = Settings { quoted_identifiers: true, ..Settings::default() };
        settings.variables.insert("@d".to_owned(), Some(INT));
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
            ("select 1 where @d = 1", vec![]),
        ] {
            assert_eq!(found(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn others_tell_none() {
        for (text, number) in [
            ("select @p", 11502),
            ("select * from t where @p = @q", 11502),
            ("select * from t where a = @p + @q", 11502),
            ("select * from t where a = @p and b = @P", 11508),
            ("select * from t where exists (select 1 from t u where a = @p)", 11502),
            ("select 1 select * from t where a = @p", 11502),
            ("select * from missing where a = @p", 11502),
            ("insert t (a, b, c) select *, @p from u", 11502),
            ("select * frm t where a = @p", 102),
            ("insert t (a) values (1, @p)", 110),
            ("insert t (a, b) select @p from t", 109),
            ("insert t values (@p)", 213),
        ] {
            assert_eq!(found(text), Err(number), "{text}");
        }
    }
}
