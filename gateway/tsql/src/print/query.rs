use super::{list, rows, Enclosed, Joined, Optional, Parenthesised, Row};
use crate::tree::*;
use std::fmt::{self, Display, Formatter};

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        with(f, &self.with)?;
        self.body.fmt(f)?;
        if !self.order_by.is_empty() {
            write!(f, " order by {}", list(&self.order_by))?;
        }
        if let Some(offset) = &self.offset {
            write!(f, " offset {offset} rows")?;
        }
        if let Some(fetch) = &self.fetch {
            write!(f, " fetch next {fetch} rows only")?;
        }
        if self.for_browse {
            f.write_str(" for browse")?;
        }
        Optional(" ", &self.for_json).fmt(f)?;
        if let Some(number) = self.max_recursion {
            write!(f, " option (maxrecursion {number})")?;
        }
        if self.is_held {
            f.write_str(" at isolation serializable")?;
        }
        Ok(())
    }
}

pub(super) fn with(f: &mut Formatter<'_>, tables: &[CommonTable]) -> fmt::Result {
    if tables.is_empty() {
        return Ok(());
    }
    write!(f, "with {} ", list(tables))
}

impl Display for ForJson {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_auto { "for json auto" } else { "for json path" })?;
        if let Some(root) = &self.root {
            write!(f, ", root('{}')", root.replace('\'', "''"))?;
        }
        if self.includes_nulls {
            f.write_str(", include_null_values")?;
        }
        if !self.has_wrapper {
            f.write_str(", without_array_wrapper")?;
        }
        Ok(())
    }
}

impl Display for JsonColumn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.type_)?;
        if let Some(path) = &self.path {
            write!(f, " '{}'", path.replace('\'', "''"))?;
        }
        f.write_str(if self.as_json { " as json" } else { "" })
    }
}

impl Display for CommonTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{} as {}", self.name, Enclosed(&self.columns), Parenthesised(&self.query))
    }
}

impl Display for QueryBody {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            QueryBody::Select(select) => select.fmt(f),
            QueryBody::Values(values) => write!(f, "values {}", Joined::<Row<'_>>(&rows(values), ", ")),
            QueryBody::Combined { first, others } => {
                first.fmt(f)?;
                others.iter().try_for_each(|(operator, body)| write!(f, " {operator} {body}"))
            }
            QueryBody::Parenthesised(query) => Parenthesised(query).fmt(f),
        }
    }
}

impl Display for SetOperator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SetOperator::Union => "union",
            SetOperator::UnionAll => "union all",
            SetOperator::Except => "except",
            SetOperator::Intersect => "intersect",
        })
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let distinct = if self.distinct { "distinct " } else { "" };
        write!(f, "select {distinct}{}{}", Optional("", &self.top), list(&self.items))?;
        Optional(" into ", &self.into).fmt(f)?;
        from(f, &self.from)?;
        Optional(" where ", &self.condition).fmt(f)?;
        if !self.group_by.is_empty() {
            write!(f, " group by {}", list(&self.group_by))?;
        }
        Optional(" having ", &self.having).fmt(f)
    }
}

impl Display for Grouping {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Grouping::Value(value) => value.fmt(f),
            Grouping::Values(values) => write!(f, "({})", list(values)),
            Grouping::Rollup(items) => write!(f, "rollup ({})", list(items)),
            Grouping::Cube(items) => write!(f, "cube ({})", list(items)),
            Grouping::Sets(items) => write!(f, "grouping sets ({})", list(items)),
        }
    }
}

pub(super) fn from(f: &mut Formatter<'_>, sources: &[TableSource]) -> fmt::Result {
    if sources.is_empty() {
        return Ok(());
    }
    write!(f, " from {}", list(sources))
}

/// Followed by a blank.
impl Display for Top {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = if self.percent { "percent " } else { "" };
        let ties = if self.with_ties { "with ties " } else { "" };
        let (open, close) = if self.in_parentheses { ("(", ")") } else { ("", "") };
        write!(f, "top {open}{}{close} {percent}{ties}", self.count)
    }
}

impl Display for SelectItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            SelectItem::Star { table, .. } => match table {
                Some(table) => write!(f, "{table}.*"),
                None => f.write_str("*"),
            },
            SelectItem::Value { value, alias } => write!(f, "{value}{}", Optional(" as ", alias)),
            SelectItem::Assign { variable, operator, value } => write!(f, "{variable} {operator} {value}"),
            SelectItem::Identity { type_, identity, alias, .. } => {
                let (seed, increment) = (identity.seed, identity.increment);
                write!(f, "identity({type_}, {seed}, {increment}){}", Optional(" as ", alias))
            }
        }
    }
}

impl Display for AssignOperator {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AssignOperator::Set => "=",
            AssignOperator::Add => "+=",
            AssignOperator::Subtract => "-=",
            AssignOperator::Multiply => "*=",
            AssignOperator::Divide => "/=",
            AssignOperator::Modulo => "%=",
            AssignOperator::BitAnd => "&=",
            AssignOperator::BitOr => "|=",
            AssignOperator::BitXor => "^=",
        })
    }
}

impl Display for Ordering {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.value, if self.descending { " desc" } else { "" })
    }
}

/// ` as name (columns)`
struct Alias<'a>(&'a Option<Name>, &'a [Name]);

impl Display for Alias<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Optional(" as ", self.0), Enclosed(self.1))
    }
}

impl Display for TableSource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TableSource::Table { name, alias, locks } => {
                write!(f, "{name}{}", Alias(alias, &[]))?;
                let hints = [
                    (locks.rows, "updlock"),
                    (locks.skips, "readpast"),
                    (locks.fails, "nowait"),
                    (locks.table, "holdlock"),
                ];
                let hints: Vec<_> =
                    hints.iter().filter(|(is_set, _)| *is_set).map(|(_, hint)| *hint).collect();
                if hints.is_empty() {
                    return Ok(());
                }
                write!(f, " with ({})", hints.join(", "))
            }
            TableSource::Variable { variable, alias } => write!(f, "{variable}{}", Alias(alias, &[])),
            TableSource::Function { call, schema, alias, columns } => {
                call.fmt(f)?;
                if !schema.is_empty() {
                    write!(f, " with ({})", list(schema))?;
                }
                Alias(alias, columns).fmt(f)
            }
            TableSource::Query { query, alias, columns } => {
                write!(f, "{}{}", Parenthesised(query), Alias(alias, columns))
            }
            TableSource::Join { kind, left, right, condition } => {
                let right_joins = matches!(**right, TableSource::Join { .. });
                let (open, close) = if right_joins { ("(", ")") } else { ("", "") };
                write!(f, "{left} {kind} {open}{right}{close}{}", Optional(" on ", condition))
            }
        }
    }
}

impl Display for JoinKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JoinKind::Inner => "join",
            JoinKind::Left => "left join",
            JoinKind::Right => "right join",
            JoinKind::Full => "full join",
            JoinKind::Cross => "cross join",
            JoinKind::CrossApply => "cross apply",
            JoinKind::OuterApply => "outer apply",
        })
    }
}
