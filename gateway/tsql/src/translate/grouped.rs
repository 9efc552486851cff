//! Columns beside GROUP BY that are no keys of it: errors 8120, 8121 and 8127. PostgreSQL accepts them where the keys include
//! the table's primary key.

use super::select::Stands;
use super::sources::source_name;
use super::translation::Translation;
use crate::error::Error;
use crate::facts::functions::rule;
use crate::resolve::names::shown;
use crate::tree::{Arguments, ColumnName, Expression, Grouping, Ordering, Select, SelectItem};

impl Translation<'_> {
    /// Says nothing where a key is an expression, nor of what may be a column of a query around this one.
    pub fn check_grouped(&self, select: &Select, order_by: &[Ordering], stands: Stands) -> Result<(), Error> {
        let Some(keys) = keys(&select.group_by).filter(|keys| !keys.is_empty()) else { return Ok(()) };
        // without a condition ASE's rows are the same
        if self.sybase() && select.condition.is_none() {
            return Ok(());
        }
        let sources: Vec<String> = select.from.iter().filter_map(source_name).collect();
        let is_own = |column: &ColumnName| match &column.table {
            None => stands != Stands::Inside,
            Some(table) => sources.contains(&table.name.to_lowercase()),
        };
        let wrong = |column: &&ColumnName| {
            is_own(column) && !keys.iter().any(|key| key.column.eq_ignore_ascii_case(&column.column))
        };
        let check = |value: &Expression, number: i32, place: &str| match first(value, &wrong) {
            None => Ok(()),
            Some(column) => {
                let table = column.table.as_ref().map(|table| shown(table) + ".").unwrap_or_default();
                let text = format!(
                    "Column '{table}{}' is invalid in the {place} because it is not contained in either an aggregate \
                     function or the GROUP BY clause.",
                    column.column
                );
                Err(Error::new(number, text, column.at).with_severity(16))
            }
        };
        let aliases = select.items.iter().filter_map(|item| match item {
            SelectItem::Value { value: Expression::Column(column), alias: Some(alias) }
                if column.column.eq_ignore_ascii_case(&alias.text) =>
            {
                None
            }
            SelectItem::Value { alias, .. } => alias.as_ref(),
            _ => None,
        });
        let titles: Vec<_> = aliases.collect();
        let is_titled =
            |key: &&ColumnName| titles.iter().any(|title| title.text.eq_ignore_ascii_case(&key.column));
        if keys.iter().any(is_titled) {
            // which may be no column: that is another error
            return Ok(());
        }
        for item in &select.items {
            match item {
                SelectItem::Value { value, .. } | SelectItem::Assign { value, .. } => {
                    check(value, 8120, "select list")?;
                }
                SelectItem::Star { .. } | SelectItem::Identity { .. } => {}
            }
        }
        if let Some(having) = &select.having {
            check(having, 8121, "HAVING clause")?;
        }
        for ordering in order_by {
            if !matches!(&ordering.value, Expression::Column(column) if column.table.is_none() && is_titled(&column))
            {
                check(&ordering.value, 8127, "ORDER BY clause")?;
            }
        }
        Ok(())
    }
}

/// The columns that rows are grouped by; None where an expression is among the keys.
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

/// The first column that is looked for, outside aggregates and queries.
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
            // the word of a part of a date is no column
            arguments.iter().skip(usize::from(name.starts_with("date"))).find_map(first)
        }
        _ => None,
    }
}
