//! GROUP BY, and columns that are not keys of it: errors 8120, 8121 and 8127. PostgreSQL accepts them if the keys include
//! the table's primary key.

use super::order;
use crate::bind::binder::item::{Item, Stands};
use crate::bind::binder::named::{flat, source_name};
use crate::bind::binder::{bound, Binder};
use crate::bind::expressions;
use crate::bind::expressions::{conditions, walk};
use crate::bind::values::Constant;
use crate::error::Error;
use crate::facts::functions::rule;
use crate::postgres::{self, Scalar};
use crate::resolve::names::stored;
use crate::tree::{
    Arguments, ColumnName, Expression, Grouping, Name, ObjectName, Ordering, Position, Select, SelectItem,
    TableSource,
};

/// The clause GROUP BY.
pub fn groupings(
    binder: &mut Binder<'_>,
    groupings: &[Grouping],
    titles: &Titles,
) -> Result<Vec<postgres::Grouping>, Error> {
    groupings.iter().map(|one| grouping(binder, one, titles)).collect()
}

fn grouping(
    binder: &mut Binder<'_>,
    grouping: &Grouping,
    titles: &Titles,
) -> Result<postgres::Grouping, Error> {
    let has_totals = matches!(grouping, Grouping::Rollup(_) | Grouping::Cube(_) | Grouping::Sets(_));
    binder.note(|facts| facts.adds_nulls |= has_totals);
    Ok(match grouping {
        Grouping::Value(value) => postgres::Grouping::Value(grouped(binder, value, titles)?),
        Grouping::Values(values) => {
            let values: Result<_, _> = values.iter().map(|one| grouped(binder, one, titles)).collect();
            postgres::Grouping::Values(values?)
        }
        Grouping::Rollup(items) => postgres::Grouping::Of("rollup", groupings(binder, items, titles)?),
        Grouping::Cube(items) => postgres::Grouping::Of("cube", groupings(binder, items, titles)?),
        Grouping::Sets(items) => postgres::Grouping::Of("grouping sets", groupings(binder, items, titles)?),
    })
}

fn grouped(binder: &mut Binder<'_>, expression: &Expression, titles: &Titles) -> Result<Scalar, Error> {
    let value = match titles.column(expression)? {
        Some(column) => expressions::value(binder, &column)?,
        None => expressions::value(binder, expression)?,
    };
    let has_no_column = || !walk::has_column(expression) && !walk::has_query(expression);
    if value.constant != Constant::None || binder.dialect().is_strict && has_no_column() {
        let text =
            "Each GROUP BY expression must contain at least one column that is not an outer reference.";
        return Err(Error::new(164, text, expression.at()));
    }
    order::demand_sorted(value.of, expression.at(), binder.dialect())?;
    Ok(match walk::any(expression, &mut names_text) {
        true => conditions::collated_by_default(binder, value).sql,
        // all letters of such a text have one case
        false => value.sql,
    })
}

/// A literal, or a variable, which may be a text.
fn names_text(expression: &Expression) -> bool {
    matches!(expression, Expression::Literal(_) | Expression::Variable(_))
}

/// The names of a select list: in PostgreSQL GROUP BY may name them, in T-SQL it names columns of tables only.
pub struct Titles {
    names: Vec<String>,
    /// The FROM is empty.
    has_none: bool,
    /// The one table of the FROM.
    table: Option<ObjectName>,
}

impl Titles {
    pub fn of(select: &Select, items: &[Item]) -> Titles {
        let given = items.iter().filter(|item| !item.is_own).filter_map(|item| item.name.as_deref());
        let table = match select.from.as_slice() {
            [TableSource::Table { name, alias: None, .. }] => Some(name.clone()),
            [TableSource::Table { alias: Some(alias), .. }
            | TableSource::Variable { alias: Some(alias), .. }
            | TableSource::Function { alias: Some(alias), .. }
            | TableSource::Query { alias: Some(alias), .. }] => {
                Some(ObjectName { name: alias.text.clone(), at: alias.at, ..ObjectName::default() })
            }
            _ => None,
        };
        Titles { names: given.map(str::to_lowercase).collect(), has_none: select.from.is_empty(), table }
    }

    /// A column with one of the names, as that of the table; None if they need not be distinguished. Error 207 if there
    /// is no table.
    fn column(&self, expression: &Expression) -> Result<Option<Expression>, Error> {
        let Expression::Column(column) = expression else { return Ok(None) };
        if column.table.is_some() || !self.names.contains(&stored(&column.column)) {
            return Ok(None);
        }
        if self.has_none {
            return Err(Error::invalid_column(&column.column, column.at));
        }
        let of_table = |table: &ObjectName| {
            Expression::Column(ColumnName { table: Some(Box::new(table.clone())), ..column.clone() })
        };
        Ok(self.table.as_ref().map(of_table))
    }
}

/// The error for the first such column that a source has. None if a key is an expression, or if the column may belong to
/// an outer query.
pub fn demand_keys(
    binder: &mut Binder<'_>,
    select: &Select,
    order_by: &[Ordering],
    stands: Stands,
) -> Result<(), Error> {
    let is_one_table = matches!(select.from.as_slice(), [TableSource::Table { .. }]);
    if !(binder.dialect().groups_have_rows && is_one_table) {
        if let Some((number, column)) = wrong(select, order_by, stands) {
            if bound::has_source(binder, column)? {
                let table = column.table.as_ref().map(|of| table_of(select, of) + ".").unwrap_or_default();
                return Err(not_a_key(number, &format!("{table}{}", column.column), column.at));
            }
        }
    }
    Ok(())
}

/// The table that a qualifier means, as messages show it.
fn table_of(select: &Select, of: &ObjectName) -> String {
    let own = Some(stored(&of.name));
    match flat(&select.from).into_iter().find(|source| source_name(source) == own) {
        Some(TableSource::Table { name, .. }) => name.name.clone(),
        _ => of.shown(),
    }
}

fn not_a_key(number: i32, column: &str, at: Position) -> Error {
    let (column, clause) = match number {
        8120 => (format!("'{column}'"), "select list"),
        8121 => (format!("'{column}'"), "HAVING clause"),
        _ => (format!("\"{column}\""), "ORDER BY clause"),
    };
    let text = format!(
        "Column {column} is invalid in the {clause} because it is not contained in either an aggregate function or the \
         GROUP BY clause."
    );
    Error::new(number, text, at).with_severity(16)
}

/// The first column that should be a key but is not, and the number of the error.
fn wrong<'a>(select: &'a Select, order_by: &'a [Ordering], stands: Stands) -> Option<(i32, &'a ColumnName)> {
    let keys = keys(&select.group_by).filter(|keys| !keys.is_empty())?;
    let sources: Vec<String> = flat(&select.from).into_iter().filter_map(source_name).collect();
    let is_own = |column: &ColumnName| match &column.table {
        None => stands != Stands::Inside,
        Some(table) => sources.contains(&stored(&table.name)),
    };
    let is_wrong = |column: &&ColumnName| {
        let is_same_table = |key: &ColumnName| match (&key.table, &column.table) {
            (Some(one), Some(other)) => one.name.eq_ignore_ascii_case(&other.name),
            _ => true,
        };
        let is_same =
            |key: &&ColumnName| key.column.eq_ignore_ascii_case(&column.column) && is_same_table(key);
        is_own(column) && !keys.iter().any(is_same)
    };
    let titles: Vec<_> = select.items.iter().filter_map(title).collect();
    let is_titled =
        |key: &&ColumnName| titles.iter().any(|title| title.text.eq_ignore_ascii_case(&key.column));
    if keys.iter().any(is_titled) {
        // the column may not exist: that is another error
        return None;
    }
    let listed = select.items.iter().find_map(|item| match item {
        SelectItem::Value { value, .. } | SelectItem::Assign { value, .. } => first(value, &is_wrong),
        SelectItem::Star { .. } | SelectItem::Identity { .. } => None,
    });
    let is_title = |value: &Expression| matches!(value, Expression::Column(column) if column.table.is_none() && is_titled(&column));
    let ordered = || order_by.iter().map(|ordering| &ordering.value).filter(|value| !is_title(value));
    listed
        .map(|column| (8120, column))
        .or_else(|| {
            select.having.iter().find_map(|having| first(having, &is_wrong)).map(|column| (8121, column))
        })
        .or_else(|| ordered().find_map(|value| first(value, &is_wrong)).map(|column| (8127, column)))
}

/// The alias of an item, unless it is the name of its column.
fn title(item: &SelectItem) -> Option<&Name> {
    match item {
        SelectItem::Value { value: Expression::Column(column), alias: Some(alias) }
            if column.column.eq_ignore_ascii_case(&alias.text) =>
        {
            None
        }
        SelectItem::Value { alias, .. } => alias.as_ref(),
        _ => None,
    }
}

/// The columns by which rows are grouped; None if the keys include an expression.
fn keys(groupings: &[Grouping]) -> Option<Vec<&ColumnName>> {
    let mut found = Vec::new();
    for grouping in groupings {
        match grouping {
            Grouping::Value(Expression::Column(column)) => found.push(column),
            Grouping::Value(_) => return None,
            Grouping::Values(values) => {
                for value in values {
                    let Expression::Column(column) = value else { return None };
                    found.push(column);
                }
            }
            Grouping::Rollup(inner) | Grouping::Cube(inner) | Grouping::Sets(inner) => {
                found.extend(keys(inner)?)
            }
        }
    }
    Some(found)
}

/// The first wanted column outside aggregates and queries.
fn first<'a>(value: &'a Expression, wanted: &dyn Fn(&&'a ColumnName) -> bool) -> Option<&'a ColumnName> {
    let first = |value: &'a Expression| first(value, wanted);
    match value {
        Expression::Column(column) => Some(column).filter(wanted),
        Expression::Unary { operand, .. }
        | Expression::Collate { operand, .. }
        | Expression::Not(operand)
        | Expression::IsNull { operand, .. } => first(operand),
        Expression::Binary { left, right, .. } => first(left).or_else(|| first(right)),
        Expression::And(operands) | Expression::Or(operands) => operands.iter().find_map(first),
        Expression::Cast(cast) => first(&cast.operand),
        Expression::Case(case) => {
            let branches =
                || case.branches.iter().find_map(|(when, then)| first(when).or_else(|| first(then)));
            case.operand
                .iter()
                .find_map(first)
                .or_else(branches)
                .or_else(|| case.otherwise.iter().find_map(first))
        }
        Expression::Between { operand, low, high, .. } => {
            first(operand).or_else(|| first(low)).or_else(|| first(high))
        }
        Expression::In { operand, values, .. } => first(operand).or_else(|| values.iter().find_map(first)),
        Expression::Like { operand, .. } => first(operand),
        Expression::Function(call) if call.over.is_none() => {
            let name = call.name.name.to_lowercase();
            let Arguments::Values(arguments) = &call.arguments else { return None };
            if call.name.is_bare() && rule(&name).is_some_and(|rule| rule.is_aggregate())
                || name == "grouping"
            {
                return None;
            }
            // the name of a part of a date is not a column
            arguments.iter().skip(usize::from(name.starts_with("date"))).find_map(first)
        }
        _ => None,
    }
}
