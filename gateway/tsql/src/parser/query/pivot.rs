//! PIVOT and UNPIVOT, which are converted to equivalent queries: an aggregate of CASE for each new column, and a row
//! for each old one.

use super::source;
use crate::error::Error;
use crate::parser::{function, names, Parser};
use crate::tree::*;

/// The internal name of the query in parentheses.
const SOURCE: &str = "pivoted";
/// The internal name of the rows of UNPIVOT's columns.
const ROWS: &str = "unpivoted";

/// Applies `pivot (…) as p` and `unpivot (…) as u` to the source before them.
pub(super) fn pivoted(parser: &mut Parser<'_>, mut source: TableSource) -> Result<TableSource, Error> {
    while parser.next_is_any(&["pivot", "unpivot"]) {
        let at = parser.position();
        let is_pivot = parser.next_is("pivot");
        let what = if is_pivot { "pivot" } else { "unpivot" };
        let (source_query, columns) = known_columns(source, what, at)?;
        parser.at += 1;
        parser.expect_symbol("(")?;
        let written = if is_pivot {
            pivot(parser, source_query, &columns, at)?
        } else {
            unpivot(parser, source_query, &columns, at)?
        };
        parser.expect_symbol(")")?;
        let Some(alias) = source::table_alias(parser)? else { return Err(parser.wrong()) };
        let query = Box::new(Query::of(QueryBody::Select(Box::new(written)), at));
        source = TableSource::Query { query, alias: Some(alias), columns: Vec::new() };
    }
    Ok(source)
}

/// `aggregate (value) for column in (a, b)`
fn pivot(
    parser: &mut Parser<'_>,
    source: TableSource,
    columns: &[String],
    at: Position,
) -> Result<Select, Error> {
    let name = names::object_name(parser)?;
    let of = name.name.to_lowercase();
    let call = function::function_call(parser, name, &of)?;
    let value = match &call.arguments {
        Arguments::Values(values) => match values.as_slice() {
            [Expression::Column(column)] if call.over.is_none() && !call.distinct => column.clone(),
            _ => return Err(Error::syntax("pivot", at)),
        },
        Arguments::Star => return Err(Error::syntax("*", at)),
    };
    parser.expect_word("for")?;
    let column = names::column_name(parser)?;
    parser.expect_word("in")?;
    let values = names::names_in_parentheses(parser)?;
    for used in [&value, &column] {
        demand(columns, &used.column, used.at)?;
    }
    let rest = |name: &&String| {
        !name.eq_ignore_ascii_case(&value.column) && !name.eq_ignore_ascii_case(&column.column)
    };
    let grouped: Vec<&String> = columns.iter().filter(rest).collect();
    let mut items: Vec<SelectItem> = grouped.iter().map(|name| item(of_source(name, at), None)).collect();
    for wanted in values {
        let text = LiteralValue::Text { text: wanted.text.clone(), national: false };
        let text = Expression::Literal(Literal { value: text, number: TokenNumber::default(), at });
        let condition = Expression::Binary {
            operator: BinaryOperator::Equal,
            left: Box::new(of_source(&column.column, at)),
            right: Box::new(text),
            at,
        };
        let branches = vec![(condition, of_source(&value.column, at))];
        let case = Expression::Case(Box::new(Case { operand: None, branches, otherwise: None, at }));
        let call = FunctionCall { arguments: Arguments::Values(vec![case]), ..call.clone() };
        items.push(item(Expression::Function(Box::new(call)), Some(wanted)));
    }
    let group_by = grouped.iter().map(|name| Grouping::Value(of_source(name, at))).collect();
    Ok(Select { group_by, ..select(items, vec![source], at) })
}

/// `value for name in (a, b)`
fn unpivot(
    parser: &mut Parser<'_>,
    source: TableSource,
    columns: &[String],
    at: Position,
) -> Result<Select, Error> {
    let value = names::name(parser)?;
    parser.expect_word("for")?;
    let name = names::name(parser)?;
    parser.expect_word("in")?;
    let taken = parser.in_parentheses(names::column_name)?;
    let mut rows = Vec::with_capacity(taken.len());
    for column in &taken {
        demand(columns, &column.column, column.at)?;
        let text = LiteralValue::Text { text: column.column.clone(), national: true };
        let operand = Expression::Literal(Literal { value: text, number: TokenNumber::default(), at });
        let target =
            TypeName { arguments: vec![TypeArgument::Number(128)], ..TypeName::named("nvarchar", at) };
        let text =
            Expression::Cast(Box::new(Cast { kind: CastKind::Cast, operand, target, style: None, at }));
        rows.push(vec![text, of_source(&column.column, at)]);
    }
    let is_rest = |name: &&String| !taken.iter().any(|column| name.eq_ignore_ascii_case(&column.column));
    let mut items: Vec<SelectItem> =
        columns.iter().filter(is_rest).map(|name| item(of_source(name, at), None)).collect();
    let of_row = |name: &Name| column_of(ROWS, &name.text, at);
    items.push(item(of_row(&value), None));
    items.push(item(of_row(&name), None));
    let values = Query::of(QueryBody::Values(rows), at);
    let right = TableSource::Query {
        query: Box::new(values),
        alias: Some(Name { text: String::from(ROWS), at }),
        columns: vec![name, value.clone()],
    };
    let left = Box::new(source);
    let joined =
        TableSource::Join { kind: JoinKind::CrossApply, left, right: Box::new(right), condition: None };
    let condition = Expression::IsNull { operand: Box::new(of_row(&value)), negated: true };
    Ok(Select { condition: Some(condition), ..select(items, vec![joined], at) })
}

/// The source with its internal name, and the names of its columns.
fn known_columns(source: TableSource, what: &str, at: Position) -> Result<(TableSource, Vec<String>), Error> {
    let unknown = || {
        let why = "its columns must be named: put a select with them in parentheses before it";
        Error::refused(what, why, at)
    };
    let TableSource::Query { query, columns, .. } = source else { return Err(unknown()) };
    let alias = Some(Name { text: String::from(SOURCE), at });
    if !columns.is_empty() {
        let names = columns.iter().map(|column| column.text.clone()).collect();
        return Ok((TableSource::Query { query, alias, columns }, names));
    }
    let mut body = &query.body;
    let select = loop {
        body = match body {
            QueryBody::Select(select) => break select,
            QueryBody::Combined { first, .. } => first,
            QueryBody::Parenthesised(query) => &query.body,
            QueryBody::Values(_) => return Err(unknown()),
        };
    };
    let name = |item: &SelectItem| match item {
        SelectItem::Value { alias: Some(alias), .. } => Ok(alias.text.clone()),
        SelectItem::Value { value: Expression::Column(column), .. } => Ok(column.column.clone()),
        _ => Err(unknown()),
    };
    let names = select.items.iter().map(name).collect::<Result<_, _>>()?;
    Ok((TableSource::Query { query, alias, columns }, names))
}

/// Error 207 if the source has no such column.
fn demand(columns: &[String], name: &str, at: Position) -> Result<(), Error> {
    if columns.iter().any(|column| column.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    Err(Error::invalid_column(name, at))
}

fn of_source(name: &str, at: Position) -> Expression {
    column_of(SOURCE, name, at)
}

fn column_of(table: &str, name: &str, at: Position) -> Expression {
    let table = ObjectName { name: String::from(table), at, ..ObjectName::default() };
    Expression::Column(ColumnName { table: Some(Box::new(table)), column: String::from(name), at })
}

fn item(value: Expression, alias: Option<Name>) -> SelectItem {
    SelectItem::Value { value, alias }
}

fn select(items: Vec<SelectItem>, from: Vec<TableSource>, at: Position) -> Select {
    Select {
        distinct: false,
        top: None,
        items,
        into: None,
        from,
        condition: None,
        group_by: Vec::new(),
        having: None,
        at,
    }
}
