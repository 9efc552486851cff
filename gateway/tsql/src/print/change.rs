use super::{list, query, rows, Enclosed, Joined, Optional, Row};
use crate::tree::*;
use std::fmt::{self, Display, Formatter};

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Target::Table(name) => name.fmt(f),
            Target::Variable(variable) => variable.fmt(f),
        }
    }
}

fn held(locks_table: bool) -> &'static str {
    if locks_table {
        " with (holdlock)"
    } else {
        ""
    }
}

impl Display for Output {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        list(&self.items).fmt(f)?;
        match &self.into {
            Some((target, columns)) => write!(f, " into {target}{}", Enclosed(columns)),
            None => Ok(()),
        }
    }
}

impl Display for Insert {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        query::with(f, &self.with)?;
        write!(f, "insert {}into {}{}", Optional("", &self.top), self.target, held(self.locks_table))?;
        write!(f, "{}{}", Enclosed(&self.columns), Optional(" output ", &self.output))?;
        match &self.source {
            InsertSource::Values(values) => write!(f, " values {}", Joined::<Row<'_>>(&rows(values), ", ")),
            InsertSource::DefaultValues => f.write_str(" default values"),
            InsertSource::Query(query) => write!(f, " {query}"),
            InsertSource::Execute(execute) => write!(f, " {execute}"),
            InsertSource::ExecuteText(execute) => write!(f, " {execute}"),
        }
    }
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        query::with(f, &self.with)?;
        write!(f, "update {}{}{}", Optional("", &self.top), self.target, held(self.locks_table))?;
        write!(f, " set {}", list(&self.set))?;
        Optional(" output ", &self.output).fmt(f)?;
        query::from(f, &self.from)?;
        Optional(" where ", &self.condition).fmt(f)
    }
}

impl Display for SetItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let SetItem { variable, column, operator, value } = self;
        match (variable, column) {
            (Some(variable), Some(column)) => write!(f, "{variable} = {column} {operator} {value}"),
            (Some(variable), None) => write!(f, "{variable} {operator} {value}"),
            (None, column) => write!(f, "{} {operator} {value}", Optional("", column)),
        }
    }
}

impl Display for Delete {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        query::with(f, &self.with)?;
        write!(f, "delete {}from {}{}", Optional("", &self.top), self.target, held(self.locks_table))?;
        Optional(" output ", &self.output).fmt(f)?;
        query::from(f, &self.from)?;
        Optional(" where ", &self.condition).fmt(f)
    }
}

impl Display for Merge {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        query::with(f, &self.with)?;
        write!(f, "merge into {}{}", self.target, held(self.locks_table))?;
        Optional(" as ", &self.alias).fmt(f)?;
        write!(f, " using {} on {}", self.source, self.condition)?;
        for clause in &self.clauses {
            write!(f, " {clause}")?;
        }
        Optional(" output ", &self.output).fmt(f)
    }
}

impl Display for MergeClause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self.rows {
            MergeRows::Matched => "when matched",
            MergeRows::NotMatched => "when not matched",
            MergeRows::NotMatchedBySource => "when not matched by source",
        })?;
        write!(f, "{} then ", Optional(" and ", &self.condition))?;
        match &self.action {
            MergeAction::Update(set) => write!(f, "update set {}", list(set)),
            MergeAction::Delete => f.write_str("delete"),
            MergeAction::Insert { columns, values: None } => {
                write!(f, "insert{} default values", Enclosed(columns))
            }
            MergeAction::Insert { columns, values: Some(values) } => {
                write!(f, "insert{} values ({})", Enclosed(columns), list(values))
            }
        }
    }
}

impl Display for Where {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Where::Condition(condition) => condition.fmt(f),
            Where::CurrentOf(cursor) => write!(f, "current of {cursor}"),
        }
    }
}

impl Display for InsertBulk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "insert bulk {}{}", self.table, Enclosed(&self.columns))?;
        if self.hints.is_empty() {
            return Ok(());
        }
        write!(f, " with{}", Enclosed(&self.hints))
    }
}
