//! Selects: the list and the clauses.

use super::order::refuse_order;
use super::sources::Sources;
use super::{combined, common_tables, group_by, growth, locks, order, rows, sources, stars, top};
use crate::bind::binder::item::{named_twice, titles, Item, Stands, Written, NAMELESS};
use crate::bind::binder::title::{ListItem, ResultType};
use crate::bind::binder::{declared, Aggregates, Around, Binder, Verb};
use crate::bind::expressions;
use crate::bind::expressions::{conditions, walk};
use crate::bind::functions::next_value::refuse_next_value;
use crate::bind::structured::{json, json_property};
use crate::bind::values::arithmetic::{arithmetic, sign};
use crate::bind::values::assignments::assigned;
use crate::bind::values::column_type::column_type;
use crate::bind::values::Constant;
use crate::error::Error;
use crate::facts::conversions::is_sorted;
use crate::facts::types::{Type, INT};
use crate::postgres::{self, Body, Create, Listed, Scalar, Statement};
use crate::resolve::names::{self, stored};
use crate::schema::{Column, Table};
use crate::tree::{
    Arguments, AssignOperator, Expression, LiteralValue, ObjectName, Ordering, Query, QueryBody, Select,
    SelectItem, TableSource, Variable,
};
use std::mem::take;

/// A statement: it returns rows, assigns to variables or fills tables.
pub fn outermost(binder: &mut Binder<'_>, query: &Query) -> Result<(Verb, Statement), Error> {
    let Written { sql, items } = self::query(binder, query, Stands::Outermost)?;
    let line = query.at.line;
    if !query.with.is_empty() || !matches!(query.body, QueryBody::Select(_)) {
        binder.note(|facts| facts.adds_nulls = true);
    }
    if query.for_browse {
        browse(binder, query, &items)?;
    }
    let assigns: Vec<String> = items.iter().filter_map(|item| item.variable.clone()).collect();
    if !assigns.is_empty() {
        if !matches!(query.body, QueryBody::Select(_)) {
            return Err(assigns_in_union(line));
        }
        if assigns.len() != items.len() {
            let text = "A SELECT statement that assigns a value to a variable must not be combined with \
                            data-retrieval operations.";
            return Err(Error::new(141, text, line));
        }
        binder.result.assigns = assigns;
        binder.result.columns = Some(Vec::new());
        return Ok((Verb::Select, sql.into()));
    }
    let Some(into) = query.body.first_select().and_then(|select| select.into.as_ref()) else {
        let listed = |item: &Item| match item.name {
            None => ListItem::Star,
            Some(_) => ListItem::Value(item.result_type),
        };
        binder.result.items = items.iter().map(listed).collect();
        binder.result.columns = titles(items);
        return Ok((Verb::Select, sql.into()));
    };
    if items.iter().any(|item| item.name.as_deref() == Some("")) {
        let text = "An object or column name is missing or empty. For SELECT INTO statements, verify each \
                        column has a name.";
        return Err(Error::new(1038, text, line));
    }
    if let Some(twice) = named_twice(items.iter().filter_map(|item| item.name.as_deref())) {
        let text = format!(
                "Column names in each table must be unique. Column name '{twice}' in table '{}' is specified more \
                 than once.",
                into.name
            );
        return Err(Error::new(2705, text, into.at).with_severity(16));
    }
    binder.result.made = if needs_made(binder) { made(&items) } else { None };
    let relation = names::relation(into)?;
    let is_temporary = relation.is_temporary();
    let table = if is_temporary { names::quoted(&relation.own) } else { relation.sql.clone() };
    binder.result.columns = titles(items);
    let has_limit = match &query.body {
        QueryBody::Select(select) => select.top.is_some() || query.offset.is_some(),
        QueryBody::Combined { .. } => query.offset.is_some(),
        QueryBody::Values(_) | QueryBody::Parenthesised(_) => true,
    };
    let limit = if has_limit { None } else { top::rows_within(binder, None, &table, line)? };
    let of_one_table = match &query.body {
        QueryBody::Select(select) => {
            matches!(select.from[..], [TableSource::Table { .. }]) && select.group_by.is_empty()
        }
        _ => false,
    };
    binder.note(|facts| (facts.created, facts.of_one_table) = (Some(relation), of_one_table));
    let (rows, is_open) = (sql.limited(limit), binder.variables.marks_lists());
    Ok((Verb::SelectInto, Statement::Create(Create { table, is_temporary, rows, is_open })))
}

/// A body is written before its tables exist; a statement of a batch is written again when they do.
fn needs_made(binder: &Binder<'_>) -> bool {
    !binder.variables.are_parameters()
}

/// The table that a SELECT INTO of these items makes; None if the columns of a star are not known.
fn made(items: &[Item]) -> Option<Table> {
    let mut made = Table::default();
    made.has_own_rows = true;
    for item in items {
        made.add(Column { name: stored(item.name.as_ref()?), of: item.of, ..Column::default() });
    }
    Some(made)
}

/// `for browse`: for a select that returns its rows to the client.
fn browse(binder: &mut Binder<'_>, query: &Query, items: &[Item]) -> Result<(), Error> {
    let gives_rows =
        |select: &Select| select.into.is_none() && items.iter().all(|item| item.variable.is_none());
    match &query.body {
        QueryBody::Select(select) if gives_rows(select) => binder.variables.browse(query.at.line),
        _ => Err(Error::refused("for browse", "rows are browsed by one select that returns them", query.at)),
    }
}

/// A select inside an expression, with this many columns.
pub fn subselect(
    binder: &mut Binder<'_>,
    query: &Query,
    columns: Option<usize>,
) -> Result<Box<postgres::Query>, Error> {
    subquery(binder, query, columns).map(|written| Box::new(written.sql))
}

/// The same with its items.
pub fn subquery(binder: &mut Binder<'_>, query: &Query, columns: Option<usize>) -> Result<Written, Error> {
    refuse_order(query, binder.dialect())?;
    let Around { aggregates, next_values, .. } = binder.around;
    let written = self::query(binder, query, Stands::Inside)?;
    binder.around.aggregates = aggregates;
    refuse_next_value(binder, next_values, 11719, query.at.line)?;
    if columns.is_some_and(|columns| columns != written.items.len()) {
        let text = "Only one expression can be specified in the select list when the subquery is not \
                        introduced with EXISTS.";
        return Err(Error::new(116, text, query.at).with_severity(16));
    }
    Ok(written)
}

pub fn query(binder: &mut Binder<'_>, query: &Query, stands: Stands) -> Result<Written, Error> {
    binder.around.holds |= query.is_held;
    if query.for_browse && stands != Stands::Outermost {
        return Err(Error::refused("for browse", "only the rows of a whole select are browsed", query.at));
    }
    if let Some(json) = &query.for_json {
        return json::for_json(binder, query, json, stands);
    }
    let with = common_tables::with(binder, &query.with, query.max_recursion)?;
    let mut written = match &query.body {
        QueryBody::Select(select) => {
            self::select(binder, select, &query.order_by, query.offset.is_some(), stands)?
        }
        QueryBody::Combined { first, others } => {
            combined::combined_in_order(binder, first, others, &query.order_by, stands)?
        }
        QueryBody::Values(rows) => rows::values(binder, rows, query.at.line)?,
        QueryBody::Parenthesised(inner) => {
            let stands = if stands == Stands::Outermost { Stands::First } else { stands };
            let inner = self::query(binder, inner, stands)?;
            Written { sql: inner.sql.parenthesised(), ..inner }
        }
    };
    top::offset(binder, query, &mut written.sql)?;
    if stands != Stands::Outermost && written.items.iter().any(|item| item.variable.is_some()) {
        return Err(Error::syntax("=", query.at));
    }
    written.sql.with = with;
    Ok(written)
}

// --- one select ---

pub fn select(
    binder: &mut Binder<'_>,
    select: &Select,
    order_by: &[Ordering],
    has_offset: bool,
    stands: Stands,
) -> Result<Written, Error> {
    if let (Some(into), Stands::Inside) = (&select.into, stands) {
        return Err(Error::keyword("into", into.at));
    }
    binder.around.selects += 1;
    let for_json = take(&mut binder.around.for_json);
    let named = declared::named_sources(binder, &select.from)?;
    binder.names.sources.push(named);
    let numbers = binder.around.next_values;
    let sources = sources::sources_of(binder, select)?;
    refuse_next_value(binder, numbers, 11720, select.at.line)?;
    binder.around.aggregates = Aggregates::default();
    let select = &*stars::listed(binder, select)?;
    let mut items = match growth::grown(binder, select, order_by)? {
        Some(item) => vec![item],
        None => items(binder, select, stands)?,
    };
    if select.distinct {
        let is_unsorted = |of: &Type| !is_sorted(*of, binder.dialect());
        if let Some(of) = items.iter().map(|item| item.of).find(is_unsorted) {
            let of = of.display_name();
            let text =
                format!("The {of} data type cannot be selected as DISTINCT because it is not comparable.");
            return Err(Error::new(421, text, select.at).with_severity(16));
        }
        refuse_next_value(binder, numbers, 11721, select.at.line)?;
    }
    if select.top.is_some() || has_offset {
        refuse_next_value(binder, numbers, 11739, select.at.line)?;
    }
    if !order_by.is_empty() {
        refuse_next_value(binder, numbers, 11723, select.at.line)?;
    }
    let numbers = binder.around.next_values;
    if for_json {
        json_property::note_properties(binder, select, &mut items)?;
    }
    // groups differ by their keys
    let counts_keys = binder.dialect().distinct_counts_keys;
    let distinct = select.distinct && (select.group_by.is_empty() || !counts_keys);
    let beside =
        if distinct && counts_keys { order::keys_beside(binder, order_by, &items)? } else { Vec::new() };
    let is_of_rows = stands == Stands::Outermost && is_of_rows(select) && binder.around.aggregates.all == 0;
    let row_sources = if is_of_rows { sources::row_sources(binder, &select.from)? } else { Vec::new() };
    if !sources.from.is_empty() {
        binder.note(|facts| facts.reads = true);
    }
    let titles = group_by::Titles::of(select, &items);
    let group_by = group_by::groupings(binder, &select.group_by, &titles)?;
    group_by::demand_keys(binder, select, order_by, stands)?;
    let having = select.having.as_ref().map(|having| conditions::condition(binder, having)).transpose()?;
    let having = having.into_iter().collect();
    let list = items.iter().map(Item::listed).chain(beside.iter().cloned().map(Listed::from)).collect();
    let Sources { from, conditions } = sources;
    let one = postgres::Select { distinct, list, is_open: false, from, conditions, group_by, having };
    let mut query = postgres::Query::from(one);
    // no other select encloses it
    let mut is_whole = true;
    if !order_by.is_empty() {
        if !distinct {
            query.order_by = order::order_by(binder, order_by, &items)?;
        } else if beside.is_empty() {
            (query, is_whole) = order::order_of_columns(binder, query, order_by, &items)?;
        } else {
            (query, is_whole) = (order::order_beside(binder, query, order_by, &items)?, false);
        }
    }
    match &select.top {
        None => {}
        Some(top) if has_offset => {
            let text = "A TOP can not be used in the same query or sub-query as a OFFSET.";
            return Err(Error::new(10741, text, top.at));
        }
        Some(top) => {
            let (first, is_still_whole) = top::top(binder, top, select, order_by, &items, query)?;
            query = first;
            is_whole &= is_still_whole;
        }
    }
    query.locks = locks::locks(binder, select)?;
    if let (Body::Select(written), true, false) = (&mut query.body, is_whole, row_sources.is_empty()) {
        written.is_open = binder.variables.marks_lists();
        binder.result.row_sources = row_sources;
    }
    refuse_next_value(binder, numbers, 11720, select.at.line)?;
    binder.names.sources.pop();
    binder.around.selects -= 1;
    Ok(Written { sql: query, items })
}

pub fn items(binder: &mut Binder<'_>, select: &Select, stands: Stands) -> Result<Vec<Item>, Error> {
    select.items.iter().map(|item| self::item(binder, item, select, stands)).collect()
}

pub fn item(
    binder: &mut Binder<'_>,
    item: &SelectItem,
    select: &Select,
    stands: Stands,
) -> Result<Item, Error> {
    match item {
        SelectItem::Star { table: None, .. } => Ok(Item::star(None)),
        SelectItem::Star { table: Some(table), .. } => {
            Ok(Item::star(Some(sources::qualifier(binder, table)?)))
        }
        SelectItem::Value { value, alias } => {
            let new_ids = binder.around.new_ids;
            let written = expressions::value(binder, value)?;
            let written = conditions::collated_by_default(binder, written);
            let has_new_id = binder.around.new_ids > new_ids;
            let is_int = written.is_null() && stands == Stands::Outermost;
            let known = if is_int { Some(INT) } else { written.of.in_tsql() };
            let result_type = known.map(|of| ResultType { of, not_null: never_null(value) });
            let sql = if is_int { Scalar::Null.cast("integer") } else { written.sql.clone() };
            let fills = select.into.is_some();
            let sql = match known.filter(|_| fills && !matches!(value, Expression::Column(_))) {
                Some(of) => sql.cast(column_type(of, select.at.line)?),
                None => sql,
            };
            let (name, is_own) = match (alias, value.without_collation()) {
                (Some(alias), _) => (alias.text.clone(), false),
                (None, Expression::Column(column)) => (column.column.clone(), true),
                (None, _) => (String::new(), false),
            };
            // a column alone is sent as declared
            let is_column = matches!(value.without_collation(), Expression::Column(_));
            let result_type =
                result_type.filter(|_| !is_column || binder.around.combining && binder.around.selects == 1);
            let shown = match alias {
                Some(alias) => Some(names::name(alias)?),
                None if is_own => None,
                None => Some(NAMELESS.to_owned()),
            };
            Ok(Item {
                alias: shown,
                is_own,
                has_new_id,
                result_type,
                of: known.unwrap_or(written.of),
                constant: match &written.constant {
                    whole @ (Constant::Integer(_) | Constant::Null) => whole.clone(),
                    _ => Constant::None,
                },
                ..Item::new(sql, Some(name))
            })
        }
        SelectItem::Assign { variable, .. } if stands == Stands::Inside && binder.around.combining => {
            Err(assigns_in_union(variable.at.line))
        }
        SelectItem::Assign { variable, operator, value } => {
            assigned_item(binder, variable, *operator, value, select)
        }
        SelectItem::Identity { at, .. } => {
            Err(Error::refused("identity(…) in select into", "create the table with an identity column", *at))
        }
    }
}

/// `@a = expression`: the value has the variable's type.
fn assigned_item(
    binder: &mut Binder<'_>,
    variable: &Variable,
    operator: AssignOperator,
    expression: &Expression,
    select: &Select,
) -> Result<Item, Error> {
    let (name, line) = (&variable.name, variable.at.line);
    if variable.is_global() {
        return Err(Error::syntax(name, line));
    }
    let target = binder.scope.type_of(name, line)?;
    let operator = operator.computes();
    let over_rows = !select.from.is_empty();
    if over_rows && (operator.is_some() || walk::names_variable(expression, name)) {
        let what = format!("{name} = … {name} … over rows");
        let why = "use an aggregate or a loop; a text may grow by each row, with order by columns";
        return Err(Error::refused(&what, why, line));
    }
    let is_elsewhere = |item: &SelectItem| match item {
        SelectItem::Assign { value, .. } => {
            !std::ptr::eq(value, expression) && walk::names_variable(value, name)
        }
        _ => false,
    };
    if over_rows && select.items.iter().any(is_elsewhere) {
        let what = format!("{name} assigned and used over rows");
        return Err(Error::refused(&what, "use an aggregate or a loop", line));
    }
    let mut value = expressions::value(binder, expression)?;
    if let Some(sign) = operator.and_then(sign) {
        let before = expressions::variable(binder, variable)?;
        value = arithmetic(sign, before, value, line, binder.dialect())?;
    }
    if target.is_tsql() {
        value = assigned(value, target, line, binder.dialect())?;
    }
    if !over_rows {
        binder.assigned.insert(name.clone(), value.clone());
    }
    let item = Item::new(value.sql, Some(String::new()));
    Ok(Item { variable: Some(name.clone()), of: value.of, ..item })
}

/// Whether an expression is never null: a literal, or isnull() that ends in one.
fn never_null(expression: &Expression) -> bool {
    match expression {
        Expression::Literal(literal) => literal.value != LiteralValue::Null,
        Expression::Function(call) if is_isnull(&call.name) => match &call.arguments {
            Arguments::Values(values) => values.get(1).is_some_and(never_null),
            Arguments::Star => false,
        },
        _ => false,
    }
}

/// Whether each row of a select is one of its sources', by its clauses.
fn is_of_rows(select: &Select) -> bool {
    let gives_rows = |item: &SelectItem| matches!(item, SelectItem::Star { .. } | SelectItem::Value { .. });
    !select.distinct
        && select.group_by.is_empty()
        && select.having.is_none()
        && select.into.is_none()
        && select.items.iter().all(gives_rows)
}

fn is_isnull(name: &ObjectName) -> bool {
    name.is_bare() && name.name.eq_ignore_ascii_case("isnull")
}

fn assigns_in_union(line: u32) -> Error {
    let text = "Variable assignment is not allowed in a statement containing a top level UNION, INTERSECT or EXCEPT \
                operator.";
    Error::new(10734, text, line)
}
