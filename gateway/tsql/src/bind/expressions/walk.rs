//! Searches in expressions.

use crate::facts::functions::{rule, Rule};
use crate::tree::{Arguments, Expression, Grouping, Query, QueryBody, Select, SelectItem, TableSource};

/// Whether an expression, one of its parts, or one in its queries matches.
pub fn any(expression: &Expression, found: &mut dyn FnMut(&Expression) -> bool) -> bool {
    if found(expression) {
        return true;
    }
    let mut any = |one: &Expression| any(one, found);
    match expression {
        Expression::Literal(_) | Expression::Variable(_) | Expression::Column(_) | Expression::Default(_) => {
            false
        }
        Expression::Unary { operand, .. }
        | Expression::Collate { operand, .. }
        | Expression::Not(operand)
        | Expression::IsNull { operand, .. } => any(operand),
        Expression::Binary { left, right, .. } => {
            // chains are long on their left side
            let mut left: &Expression = left;
            let mut hit = any(right);
            while let (false, Expression::Binary { left: next, right, .. }) = (hit, left) {
                hit = any(right);
                left = next;
            }
            hit || any(left)
        }
        Expression::IsDistinct { left, right, .. }
        | Expression::AtTimeZone { operand: left, zone: right } => any(left) || any(right),
        Expression::And(operands) | Expression::Or(operands) => operands.iter().any(any),
        Expression::Case(case) => {
            case.operand.iter().any(&mut any)
                || case.branches.iter().any(|(when, then)| any(when) || any(then))
                || case.otherwise.iter().any(any)
        }
        Expression::Cast(cast) => any(&cast.operand) || cast.style.iter().any(any),
        Expression::Function(call) => {
            let values: &[Expression] = match &call.arguments {
                Arguments::Star => &[],
                Arguments::Values(values) => values,
            };
            values.iter().any(&mut any)
                || call.within_group.iter().any(|one| any(&one.value))
                || call.over.iter().any(|over| {
                    over.partition_by.iter().any(&mut any) || over.order_by.iter().any(|one| any(&one.value))
                })
        }
        Expression::Between { operand, low, high, .. } => any(operand) || any(low) || any(high),
        Expression::Like { operand, pattern, escape, .. } => {
            any(operand) || any(pattern) || escape.iter().any(|escape| any(escape))
        }
        Expression::In { operand, values, .. } => any(operand) || values.iter().any(any),
        Expression::InQuery { operand, query, .. } | Expression::Quantified { left: operand, query, .. } => {
            any(operand) || in_query(query, found)
        }
        Expression::Subquery(query) | Expression::Exists(query) => in_query(query, found),
        Expression::Xml(xml) => in_query(&xml.query, found),
    }
}

fn in_query(query: &Query, found: &mut dyn FnMut(&Expression) -> bool) -> bool {
    query.with.iter().any(|table| in_query(&table.query, found))
        || in_body(&query.body, found)
        || query.order_by.iter().any(|one| any(&one.value, found))
        || query.offset.iter().chain(&query.fetch).any(|one| any(one, found))
}

fn in_body(body: &QueryBody, found: &mut dyn FnMut(&Expression) -> bool) -> bool {
    match body {
        QueryBody::Select(select) => in_select(select, found),
        QueryBody::Values(rows) => rows.iter().flatten().any(|one| any(one, found)),
        QueryBody::Combined { first, others } => {
            in_body(first, found) || others.iter().any(|(_, body)| in_body(body, found))
        }
        QueryBody::Parenthesised(query) => in_query(query, found),
    }
}

fn in_select(select: &Select, found: &mut dyn FnMut(&Expression) -> bool) -> bool {
    select.top.iter().any(|top| any(&top.count, found))
        || select.items.iter().any(|item| match item {
            SelectItem::Value { value, .. } | SelectItem::Assign { value, .. } => any(value, found),
            SelectItem::Star { .. } | SelectItem::Identity { .. } => false,
        })
        || select.from.iter().any(|source| in_source(source, found))
        || select.condition.iter().chain(&select.having).any(|one| any(one, found))
        || in_groupings(&select.group_by, found)
}

fn in_groupings(groupings: &[Grouping], found: &mut dyn FnMut(&Expression) -> bool) -> bool {
    groupings.iter().any(|one| match one {
        Grouping::Value(value) => any(value, found),
        Grouping::Values(values) => values.iter().any(|one| any(one, found)),
        Grouping::Rollup(items) | Grouping::Cube(items) | Grouping::Sets(items) => in_groupings(items, found),
    })
}

fn in_source(source: &TableSource, found: &mut dyn FnMut(&Expression) -> bool) -> bool {
    match source {
        TableSource::Table { .. } | TableSource::Variable { .. } => false,
        TableSource::Function { call, .. } => match &call.arguments {
            Arguments::Star => false,
            Arguments::Values(values) => values.iter().any(|one| any(one, found)),
        },
        TableSource::Query { query, .. } => in_query(query, found),
        TableSource::Join { left, right, condition, .. } => {
            in_source(left, found) || in_source(right, found) || condition.iter().any(|one| any(one, found))
        }
    }
}

/// Whether an expression has the same value for every row and in every session.
pub fn is_constant(expression: &Expression) -> bool {
    let is_fixed = |rule: Rule| {
        !rule.varies()
            && !rule.is_aggregate()
            && !rule.is_ranking()
            && !matches!(
                rule,
                Rule::Session | Rule::System | Rule::SystemNumeric | Rule::ServerProperty | Rule::NextValue
            )
    };
    !any(expression, &mut |part| match part {
        Expression::Column(_)
        | Expression::Variable(_)
        | Expression::Subquery(_)
        | Expression::Exists(_)
        | Expression::InQuery { .. }
        | Expression::Xml(_) => true,
        Expression::Function(call) => {
            !call.name.is_bare() || !rule(&call.name.name.to_lowercase()).is_some_and(is_fixed)
        }
        _ => false,
    })
}

/// Whether a query names a table of one part in one of its sources, at any depth.
pub fn names_table(query: &Query, name: &str) -> bool {
    query.with.iter().any(|table| names_table(&table.query, name)) || body_names_table(&query.body, name)
}

/// Like `names_table`.
pub fn body_names_table(body: &QueryBody, name: &str) -> bool {
    match body {
        QueryBody::Select(select) => {
            let mut in_expression = |one: &Expression| match one {
                Expression::Subquery(query)
                | Expression::Exists(query)
                | Expression::InQuery { query, .. }
                | Expression::Quantified { query, .. } => names_table(query, name),
                Expression::Xml(xml) => names_table(&xml.query, name),
                _ => false,
            };
            select.from.iter().any(|source| source_names_table(source, name))
                || in_select(select, &mut in_expression)
        }
        QueryBody::Values(_) => false,
        QueryBody::Combined { first, others } => {
            body_names_table(first, name) || others.iter().any(|(_, body)| body_names_table(body, name))
        }
        QueryBody::Parenthesised(query) => names_table(query, name),
    }
}

fn source_names_table(source: &TableSource, name: &str) -> bool {
    match source {
        TableSource::Table { name: table, .. } => table.is_bare() && table.name.eq_ignore_ascii_case(name),
        TableSource::Query { query, .. } => names_table(query, name),
        TableSource::Join { left, right, .. } => {
            source_names_table(left, name) || source_names_table(right, name)
        }
        TableSource::Variable { .. } | TableSource::Function { .. } => false,
    }
}

/// Whether an expression names the variable.
pub fn names_variable(expression: &Expression, name: &str) -> bool {
    any(expression, &mut |one| matches!(one, Expression::Variable(variable) if variable.name == name))
}

pub fn has_column(expression: &Expression) -> bool {
    any(expression, &mut |one| matches!(one, Expression::Column(_)))
}

/// Whether it contains a query.
pub fn has_query(expression: &Expression) -> bool {
    any(expression, &mut |one| {
        matches!(
            one,
            Expression::Subquery(_)
                | Expression::Xml(_)
                | Expression::Exists(_)
                | Expression::InQuery { .. }
                | Expression::Quantified { .. }
        )
    })
}
