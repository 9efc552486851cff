//! MERGE, by PostgreSQL's MERGE: `when not matched by source` needs PostgreSQL 17, OUTPUT needs 18.

use super::change::refuse_common;
use super::insert::mismatch;
use super::named::Named;
use super::translation::{ChangedRows, Translation};
use super::value::carried_into;
use crate::error::Error;
use crate::resolve::names::{self, folded, quoted, quoted_list, stored, table};
use crate::tree::{
    Expression, Merge, MergeAction, MergeClause, MergeRows, Name, ObjectName, SetItem, TableSource,
};

impl Translation<'_> {
    pub fn merge(&mut self, merge: &Merge) -> Result<String, Error> {
        let target = self.target(&merge.target)?;
        if merge.locks_table {
            self.lock_table(&target)?;
        }
        let line = target.at.line;
        refuse_common(&merge.with, &target)?;
        check(&merge.clauses)?;
        let with = self.with(&merge.with, None)?;
        self.lock_sources(std::slice::from_ref(&merge.source), &target)?;
        let into = table(&target)?;
        let (alias, own) = match &merge.alias {
            Some(alias) => {
                let own = ObjectName { name: alias.text.clone(), at: alias.at, ..ObjectName::default() };
                (format!(" as {}", names::name(alias)?), own)
            }
            None => (String::new(), target.clone()),
        };
        let mut named = self.named_sources(std::slice::from_ref(&merge.source))?;
        named.push(Named { name: stored(&own.name), tables: vec![into.clone()], ..Named::default() });
        self.names.sources.push(named);
        let source = match &merge.source {
            TableSource::Join { .. } => format!("({})", self.source(&merge.source)?),
            source => self.source(source)?,
        };
        let mut sql =
            format!("merge into {into}{alias} using {source} on {}", self.condition(&merge.condition)?);
        for clause in &merge.clauses {
            sql.push_str(match clause.rows {
                MergeRows::Matched => " when matched",
                MergeRows::NotMatched => " when not matched",
                MergeRows::NotMatchedBySource => " when not matched by source",
            });
            if let Some(condition) = &clause.condition {
                sql.push_str(&format!(" and {}", self.condition(condition)?));
            }
            if let MergeAction::Insert { columns, values: Some(values) } = &clause.action {
                if let Some(guard) = self.inserted(&into, columns, line)?.guard(values.len()) {
                    sql.push_str(&format!(" and {guard}"));
                }
            }
            let action = match &clause.action {
                MergeAction::Update(set) => format!("update set {}", self.merge_set(set, &own, &into)?),
                MergeAction::Delete => String::from("delete"),
                MergeAction::Insert { columns, values } => {
                    let sql = self.merge_insert(&into, columns, values.as_deref(), line)?;
                    self.result.into = Some(into.clone());
                    sql
                }
            };
            sql.push_str(&format!(" then {action}"));
            self.wrote(&sql, line)?;
        }
        let (inserted, deleted) = (Some(String::from("new")), Some(String::from("old")));
        let rows = ChangedRows { inserted, deleted, action: Some("merge_action()") };
        self.with_output((with, sql), merge.output.as_ref(), line, rows)
    }

    /// The assignments of an update; `own`: the name of the target.
    fn merge_set(&mut self, set: &[SetItem], own: &ObjectName, into: &str) -> Result<String, Error> {
        let mut assignments = Vec::with_capacity(set.len());
        let mut columns = Vec::with_capacity(set.len());
        for item in set {
            let (Some(column), None) = (&item.column, &item.variable) else {
                return Err(Error::refused("merge … set @variable", "select the value", own.at));
            };
            let name = folded(&column.column, column.at.line)?;
            if columns.contains(&name) {
                let text = "A column name is specified more than once in the SET clause.";
                return Err(Error::new(264, text, column.at).with_severity(16));
            }
            // the source may also have a column of this name
            let mut of_target = item.clone();
            of_target.column.iter_mut().for_each(|column| column.table = Some(Box::new(own.clone())));
            assignments.push(format!("{} = {}", quoted(&name), self.set_value(&of_target, into)?));
            columns.push(name);
        }
        Ok(assignments.join(", "))
    }

    fn merge_insert(
        &mut self,
        into: &str,
        columns: &[Name],
        values: Option<&[Expression]>,
        line: u32,
    ) -> Result<String, Error> {
        let Some(values) = values else {
            if !columns.is_empty() {
                return Err(Error::keyword("default", line));
            }
            return Ok(String::from("insert default values"));
        };
        let targets = self.inserted(into, columns, line)?;
        targets.demand_number(values.len(), |width| mismatch(width, values.len(), line), line)?;
        let mut written = Vec::with_capacity(values.len());
        for (place, value) in values.iter().enumerate() {
            written.push(match value {
                Expression::Default(_) => String::from("default"),
                value => {
                    let value = self.value(value)?;
                    carried_into(&value, || targets.kind(place, self.variables), self.scope.dialect)
                }
            });
        }
        let is_overriding = self.scope.identity_insert.as_deref() == Some(into) && !columns.is_empty();
        let overriding = if is_overriding { " overriding system value" } else { "" };
        let named =
            targets.names.as_ref().map_or_else(String::new, |named| format!(" ({})", quoted_list(named)));
        Ok(format!("insert{named}{overriding} values ({})", written.join(", ")))
    }
}

/// Errors 10714 and 5324: a repeated kind of clause, and one that is never reached.
fn check(clauses: &[MergeClause]) -> Result<(), Error> {
    let rows = |clause: &MergeClause| match clause.rows {
        MergeRows::Matched => "WHEN MATCHED",
        MergeRows::NotMatched => "WHEN NOT MATCHED",
        MergeRows::NotMatchedBySource => "WHEN NOT MATCHED BY SOURCE",
    };
    let action = |clause: &MergeClause| match clause.action {
        MergeAction::Update(_) => "UPDATE",
        MergeAction::Delete => "DELETE",
        MergeAction::Insert { .. } => "INSERT",
    };
    for (place, clause) in clauses.iter().enumerate() {
        for before in clauses[..place].iter().filter(|before| before.rows == clause.rows) {
            let text = if action(before) == action(clause) {
                let (rows, action) = (rows(clause), action(clause));
                let text = format!(
                    "An action of type '{rows}' cannot appear more than once in a '{action}' clause of a MERGE \
                     statement."
                );
                (10714, text)
            } else if before.condition.is_none() {
                let rows = rows(clause);
                let text = format!(
                    "In a MERGE statement, a '{rows}' clause with a search condition cannot appear after a '{rows}' \
                     clause with no search condition."
                );
                (5324, text)
            } else {
                continue;
            };
            return Err(Error::new(text.0, text.1, clause.at).with_severity(16));
        }
    }
    Ok(())
}
