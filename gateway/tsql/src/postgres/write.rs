//! The text of trees. An expression is written so that it needs no parentheses around it.

use super::tree::{
    Alias, Body, Call, Change, ChangeKind, Create, Filling, Grouping, Listed, Lock, Mark, MergeAction,
    MergeClause, Operator, Order, Over, Query, Scalar, Select, Source, Statement, With,
};
use crate::facts::errors::{OF_ROWS, OWNED};
use crate::fragments::{self, LIST_END, QUERY};
use crate::quoting::Literal;
use crate::resolve::names::quoted_list;
use crate::tree::{Frame, FrameBound, FrameUnit};
use std::fmt::{self, Display, Formatter};

impl Display for Scalar {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Null => to.write_str("null"),
            Scalar::Boolean(value) => write!(to, "{value}"),
            Scalar::Default => to.write_str("default"),
            Scalar::Star => to.write_str("*"),
            Scalar::Number(digits) if digits.starts_with('-') => write!(to, "({digits})"),
            Scalar::Number(digits) => to.write_str(digits),
            Scalar::Text(text) => Literal(text).fmt(to),
            Scalar::Bytes(digits) => write!(to, "'\\x{digits}'::bytea"),
            Scalar::Parameter(index) => to.write_str(&fragments::variable(*index)),
            Scalar::Column(None, name) => to.write_str(name),
            Scalar::Column(Some(row), name) => write!(to, "{row}.{name}"),
            Scalar::Call(call) => call.fmt(to),
            Scalar::Prefix(operator, of) => write!(to, "({operator} {of})"),
            Scalar::Infix(operator, sides) => write!(to, "({} {operator} {})", sides[0], sides[1]),
            Scalar::Cast(of, name) => write!(to, "{of}::{name}"),
            Scalar::Case(branches, otherwise) => {
                to.write_str("(case")?;
                for (when, then) in branches {
                    write!(to, " when {when} then {then}")?;
                }
                if let Some(otherwise) = otherwise {
                    write!(to, " else {otherwise}")?;
                }
                to.write_str(" end)")
            }
            Scalar::And(operands) => write!(to, "({})", Joined(operands, " and ")),
            Scalar::Or(operands) => write!(to, "({})", Joined(operands, " or ")),
            Scalar::Element(array, number) => write!(to, "({array})[{number}]"),
            Scalar::Not(of) => write!(to, "(not {of})"),
            Scalar::IsNull(of) => write!(to, "({of} is null)"),
            Scalar::IsNotNull(of) => write!(to, "({of} is not null)"),
            Scalar::Array(items, of) => write!(to, "array[{}]::{of}[]", Joined(items, ", ")),
            Scalar::Once(of) => write!(to, "(select {of})"),
            Scalar::Query(query) => write!(to, "({query})"),
            Scalar::Exists(query) => write!(to, "exists ({query})"),
            Scalar::Quantified(word, query) => write!(to, "{word} ({query})"),
            Scalar::In(value, query) => write!(to, "({value} in ({query}))"),
            Scalar::Named(name, value) => write!(to, "{name} => {value}"),
            Scalar::Row(values) => write!(to, "({})", Joined(values, ", ")),
        }
    }
}

impl Display for Operator {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Operator::Plain(sign) => to.write_str(sign),
            Operator::Tsql(sign) => write!(to, "operator(tsql.{sign})"),
        }
    }
}

impl Display for Call {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let blank = match self.mark {
            Mark::None => "",
            Mark::Owned => OWNED,
            Mark::OfRows => OF_ROWS,
        };
        let distinct = if self.distinct { "distinct " } else { "" };
        let open = if self.over.is_some() { "(" } else { "" };
        write!(to, "{open}{}{blank}({distinct}{}", self.function, Joined(&self.arguments, ", "))?;
        clause(to, " order by ", &self.order_by, ", ")?;
        match &self.over {
            Some(over) => write!(to, "){over})"),
            None => to.write_str(")"),
        }
    }
}

impl Display for Over {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.partition_by.is_empty() {
            parts.push(format!("partition by {}", Joined(&self.partition_by, ", ")));
        }
        if !self.order_by.is_empty() {
            parts.push(format!("order by {}", Joined(&self.order_by, ", ")));
        }
        parts.extend(self.frame.as_ref().map(frame));
        write!(to, " over ({})", parts.join(" "))
    }
}

fn frame(frame: &Frame) -> String {
    let unit = match frame.unit {
        FrameUnit::Rows => "rows",
        FrameUnit::Range => "range",
    };
    let bound = |bound: &FrameBound| match bound {
        FrameBound::UnboundedPreceding => "unbounded preceding".to_owned(),
        FrameBound::Preceding(rows) => format!("{rows} preceding"),
        FrameBound::CurrentRow => "current row".to_owned(),
        FrameBound::Following(rows) => format!("{rows} following"),
        FrameBound::UnboundedFollowing => "unbounded following".to_owned(),
    };
    let start = bound(&frame.start);
    match &frame.end {
        None => format!("{unit} {start}"),
        Some(end) => format!("{unit} between {start} and {}", bound(end)),
    }
}

impl Display for Order {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let direction = match (self.has_no_nulls, self.descending) {
            (true, true) => "desc",
            (true, false) => "asc",
            (false, true) => "desc nulls last",
            (false, false) => "nulls first",
        };
        write!(to, "{} {direction}", self.key)
    }
}

/// Parts with a separator between them.
pub struct Joined<'a, T>(pub &'a [T], pub &'static str);

impl<T: Display> Display for Joined<'_, T> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                to.write_str(self.1)?;
            }
            write!(to, "{part}")?;
        }
        Ok(())
    }
}

impl Display for Query {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}{}", self.with, self.body)?;
        clause(to, " order by ", &self.order_by, ", ")?;
        if let Some(offset) = &self.offset {
            write!(to, " offset {offset}")?;
        }
        match &self.limit {
            Some(limit) if self.with_ties => write!(to, " fetch first ({limit}) rows with ties")?,
            Some(limit) => write!(to, " limit {limit}")?,
            None => {}
        }
        Joined(&self.locks, "").fmt(to)
    }
}

impl Display for With {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        if self.tables.is_empty() {
            return Ok(());
        }
        to.write_str(if self.is_recursive { "with recursive " } else { "with " })?;
        for (index, (alias, query)) in self.tables.iter().enumerate() {
            write!(to, "{}{alias} as ({query})", if index > 0 { ", " } else { "" })?;
        }
        to.write_str(" ")
    }
}

impl Display for Body {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Body::Select(select) => select.fmt(to),
            Body::Values(rows) => {
                to.write_str("values ")?;
                for (index, row) in rows.iter().enumerate() {
                    write!(to, "{}({})", if index > 0 { ", " } else { "" }, Joined(row, ", "))?;
                }
                Ok(())
            }
            Body::Combined(first, others) => {
                first.fmt(to)?;
                others.iter().try_for_each(|(words, other)| write!(to, " {words} {other}"))
            }
            Body::Parenthesised(query) => write!(to, "({query})"),
        }
    }
}

impl Display for Select {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let distinct = if self.distinct { "distinct " } else { "" };
        write!(to, "select {distinct}{}", Joined(&self.list, ", "))?;
        if self.is_open {
            to.write_str(LIST_END)?;
        }
        Rest(self).fmt(to)
    }
}

/// A select without its list: FROM and the clauses after it.
pub struct Rest<'a>(pub &'a Select);

impl Display for Rest<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let Select { from, conditions, group_by, having, .. } = self.0;
        clause(to, " from ", from, ", ")?;
        clause(to, " where ", conditions, " and ")?;
        clause(to, " group by ", group_by, ", ")?;
        clause(to, " having ", having, " and ")
    }
}

impl Display for Listed {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(to, "{} as {name}", self.value),
            None => self.value.fmt(to),
        }
    }
}

impl Display for Grouping {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Grouping::Value(value) => value.fmt(to),
            Grouping::Values(values) => write!(to, "({})", Joined(values, ", ")),
            Grouping::Of(words, items) => write!(to, "{words} ({})", Joined(items, ", ")),
        }
    }
}

impl Display for Source {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let named = |alias: &Option<Alias>, to: &mut Formatter<'_>| match alias {
            Some(alias) => write!(to, " as {alias}"),
            None => Ok(()),
        };
        match self {
            Source::Table(name, alias) => {
                to.write_str(name)?;
                named(alias, to)
            }
            Source::Call(call, alias) => {
                call.fmt(to)?;
                named(alias, to)
            }
            Source::Query(query, alias) => {
                write!(to, "({query})")?;
                named(alias, to)
            }
            Source::Join(words, sides, on) => {
                write!(to, "{} {words} ", sides[0])?;
                match &sides[1] {
                    right @ Source::Join(..) => write!(to, "({right})")?,
                    right => right.fmt(to)?,
                }
                on.iter().try_for_each(|on| write!(to, " on {on}"))
            }
        }
    }
}

impl Display for Alias {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&self.name)?;
        match self.columns.as_slice() {
            [] => Ok(()),
            columns => write!(to, " ({})", Joined(columns, ", ")),
        }
    }
}

impl Display for Lock {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, " for update of {}{}", self.of, self.otherwise)
    }
}

impl Display for Statement {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Query(query) => query.fmt(to),
            Statement::Create(Create { table, is_temporary, rows, is_open }) => {
                let temporary = if *is_temporary { "temporary " } else { "" };
                let mark = if *is_open { QUERY } else { "" };
                write!(to, "create {temporary}table {table} as {mark}{rows}")
            }
            Statement::Change(change) => change.fmt(to),
        }
    }
}

impl Display for Change {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}{}", self.with, self.kind)?;
        clause(to, " returning ", &self.returning, ", ")
    }
}

impl Display for ChangeKind {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ChangeKind::Insert { into, filling, rows: None } => {
                write!(to, "insert into {into}{filling} default values")
            }
            ChangeKind::Insert { into, filling, rows: Some(rows) } => {
                write!(to, "insert into {into}{filling} {rows}")
            }
            ChangeKind::Update { table, set, from, conditions } => {
                write!(to, "update {table} set {}", Assigned(set))?;
                clause(to, " from ", from, ", ")?;
                clause(to, " where ", conditions, " and ")
            }
            ChangeKind::Delete { table, using, conditions } => {
                write!(to, "delete from {table}")?;
                clause(to, " using ", using, ", ")?;
                clause(to, " where ", conditions, " and ")
            }
            ChangeKind::Merge { into, using, on, clauses } => {
                write!(to, "merge into {into} using ")?;
                match using {
                    Source::Join(..) => write!(to, "({using})")?,
                    using => using.fmt(to)?,
                }
                write!(to, " on {on}{}", Joined(clauses, ""))
            }
        }
    }
}

impl Display for Filling {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        if let Some(columns) = &self.columns {
            write!(to, " ({})", quoted_list(columns))?;
        }
        to.write_str(if self.with_identity { " overriding system value" } else { "" })
    }
}

impl Display for MergeClause {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, " when {}", self.rows)?;
        clause(to, " and ", &self.conditions, " and ")?;
        match &self.action {
            MergeAction::Update(set) => write!(to, " then update set {}", Assigned(set)),
            MergeAction::Delete => to.write_str(" then delete"),
            MergeAction::Insert(filling, None) => write!(to, " then insert{filling} default values"),
            MergeAction::Insert(filling, Some(values)) => {
                write!(to, " then insert{filling} values ({})", Joined(values, ", "))
            }
        }
    }
}

/// The assignments of an update.
struct Assigned<'a>(&'a [(String, Scalar)]);

impl Display for Assigned<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        for (index, (column, value)) in self.0.iter().enumerate() {
            write!(to, "{}{column} = {value}", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// A word and its parts; nothing without parts.
fn clause<T: Display>(to: &mut Formatter<'_>, word: &str, parts: &[T], between: &'static str) -> fmt::Result {
    match parts {
        [] => Ok(()),
        parts => write!(to, "{word}{}", Joined(parts, between)),
    }
}
