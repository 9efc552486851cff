//! Finds the types of a statement's undeclared parameters (SQL Server, "sp_describe_undeclared_parameters", "Parameter
//! selection algorithm").

use crate::error::Error;
use crate::facts::session;
use crate::lexer::{self, Syntax, TokenKind};
use crate::parser;
use crate::translate::{any, mismatch};
use crate::tree::{
    Arguments, AssignOperator, BinaryOperator, ColumnName, CommonTable, Expression, Insert, InsertSource,
    JoinKind, Locks, Name, Position, Query, QueryBody, Select, SelectItem, StatementKind, TableSource,
    Target, Update, Variable, Where,
};
use std::collections::HashSet;

/// A parameter, and a query with a column of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// As written.
    pub name: String,
    pub query: String,
    /// The index of the column, from 0; None: the query's only one. Columns of a table that take no values are not
    /// counted.
    pub place: Option<usize>,
    /// The number of values that an INSERT has for the table's columns; None if unknown, and for other statements.
    pub given: Option<usize>,
    /// The longest type of its kind instead of the type itself: for values compared by order ("General deduction").
    pub longest: bool,
}

/// The undeclared parameters of a select, insert, update or delete, in the order of the text. `declared`: names in
/// lower case.
pub fn undeclared(text: &str, syntax: Syntax, declared: &HashSet<String>) -> Result<Vec<Undeclared>, Error> {
    let tokens = lexer::tokens(text, syntax)?;
    let is_open = |name: &str| !session::is_global(name) && !declared.contains(name);
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
    let batch = parser::parse_tokens(&tokens, syntax, None)?;
    let mut finder = Finder { declared, with: Vec::new(), from: Vec::new(), found: Vec::new(), given: None };
    if let [statement] = batch.statements.as_slice() {
        if let StatementKind::Insert(insert) = &statement.kind {
            finder.given = given(insert)?;
        }
        finder.statement(&statement.kind);
    }
    let described = |(name, at): (String, Position)| {
        let written = text.get(at.range()).unwrap_or(&name);
        match finder.found.iter().find(|found| found.name == name) {
            Some(found) => Ok(Undeclared { name: written.to_owned(), ..found.clone() }),
            None => {
                let text = format!("The type for parameter '{written}' cannot be deduced in this context.");
                Err(Error::new(11502, text, at).with_severity(16))
            }
        }
    };
    parameters.into_iter().map(described).collect()
}

/// A column that a statement fills.
enum Filled {
    Named(Expression),
    /// The index among the columns that take values, in the table's order.
    At(usize),
}

/// Examines values compared with a parameter or assigned from one. Parameters of nested queries are not found, because
/// the names there may be those of the outer query.
struct Finder<'d> {
    declared: &'d HashSet<String>,
    /// The common tables in which the statement's names are found.
    with: Vec<CommonTable>,
    from: Vec<TableSource>,
    found: Vec<Undeclared>,
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

impl Finder<'_> {
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
                    let query = format!("select cast(null as {})", cast.target);
                    self.found.push(Undeclared { name, query, place: None, given: None, longest: false });
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
                let query = self.select(other);
                self.found.push(Undeclared { name, query, place: None, given: None, longest });
            }
            Some(_) => {}
            None => self.value(value),
        }
    }

    fn assigned(&mut self, value: &Expression, column: &Filled) {
        let Some(name) = self.parameter(value) else { return };
        let (query, place) = match column {
            Filled::Named(column) => (self.select(column), None),
            Filled::At(place) => {
                let all = SelectItem::Star { table: None, at: Position::default() };
                (self.select_item(all), Some(*place))
            }
        };
        let given = self.given.filter(|_| place.is_some());
        self.found.push(Undeclared { name, query, place, given, longest: false });
    }

    fn parameter(&self, value: &Expression) -> Option<String> {
        match value {
            Expression::Variable(Variable { name, .. })
                if !session::is_global(name) && !self.declared.contains(name) =>
            {
                Some(name.clone())
            }
            _ => None,
        }
    }

    fn select(&self, value: &Expression) -> String {
        self.select_item(SelectItem::Value { value: value.clone(), alias: None })
    }

    fn select_item(&self, item: SelectItem) -> String {
        let at = Position::default();
        let select = Select {
            distinct: false,
            top: None,
            items: vec![item],
            into: None,
            from: self.from.iter().map(unconditional).collect(),
            condition: None,
            group_by: Vec::new(),
            having: None,
            at,
        };
        let body = QueryBody::Select(Box::new(select));
        let query = Query { with: self.with.clone(), ..Query::of(body, at) };
        query.to_string()
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

    fn found(text: &str) -> Result<Vec<Undeclared>, i32> {
        let declared = HashSet::from(["@d".to_owned()]);
        let syntax = Syntax { quoted_identifiers: true, ..Syntax::default() };
        undeclared(text, syntax, &declared).map_err(|error| error.number)
    }

    fn of(name: &str, query: &str, place: Option<usize>, longest: bool) -> Undeclared {
        let given = place.map(|place| place + 1);
        Undeclared { name: name.to_owned(), query: query.to_owned(), place, given, longest }
    }

    #[test]
    fn what_tells_the_type() {
        for (text, expected) in [
            (
                "insert into t (a, b) values (@P1, 1 + cast(@p2 as int))",
                vec![
                    of("@P1", "select [a] from [t]", None, false),
                    of("@p2", "select cast(null as int)", None, false),
                ],
            ),
            ("insert d..t values (1, @p)", vec![of("@p", "select * from [d]..[t]", Some(1), false)]),
            (
                "insert t (a, b) select 1, @p from u where u.c < @q",
                vec![
                    of("@p", "select [b] from [t]", None, false),
                    of("@q", "select [u].[c] from [u]", None, true),
                ],
            ),
            (
                "update t set a = @p where b = @q and c = @d",
                vec![
                    of("@p", "select [a] from [t]", None, false),
                    of("@q", "select [b] from [t]", None, false),
                ],
            ),
            ("delete t where a in (1, @p)", vec![of("@p", "select [a] from [t]", None, false)]),
            (
                "select a from t as x join u on x.b = @p where not (x.c like @q or @r <> x.d + 1)",
                vec![
                    of("@p", "select [x].[b] from [t] as [x] cross join [u]", None, false),
                    of("@q", "select [x].[c] from [t] as [x] cross join [u]", None, true),
                    of("@r", "select [x].[d] + 1 from [t] as [x] cross join [u]", None, false),
                ],
            ),
            ("select 1 where @d = 1", vec![]),
        ] {
            assert_eq!(found(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_tells_none() {
        for (text, number) in [
            ("select @p", 11502),
            ("select * from t where @p = @q", 11502),
            ("select * from t where c = @p + @q", 11502),
            ("select * from t where a = @p and b = @P", 11508),
            ("select * from t where exists (select 1 from u where a = @p)", 11502),
            ("select 1 select * from t where a = @p", 11502),
            ("insert t (a, b, c) select *, @p from u", 11502),
            ("select * frm t where a = @p", 102),
            ("insert t (a) values (1, @p)", 110),
            ("insert t (a, b) select @p from u", 109),
        ] {
            assert_eq!(found(text), Err(number), "{text}");
        }
    }
}
