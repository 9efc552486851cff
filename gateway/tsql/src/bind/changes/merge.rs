//! MERGE, by PostgreSQL's MERGE: `when not matched by source` needs PostgreSQL 17, OUTPUT needs 18.

use super::change::refuse_common;
use super::insert::mismatch;
use super::{change, insert, output};
use crate::bind::binder::changed_rows::ChangedRows;
use crate::bind::binder::named::Named;
use crate::bind::binder::{declared, Binder};
use crate::bind::expressions;
use crate::bind::expressions::conditions;
use crate::bind::query::{common_tables, locks, sources};
use crate::error::Error;
use crate::postgres::{self, call, Alias, Change, ChangeKind, Filling, Scalar, Source};
use crate::resolve::names::{self, folded, quoted, stored, table};
use crate::tree::{Expression, Merge, MergeAction, MergeClause, MergeRows, Name, ObjectName, SetItem};

pub fn merge(binder: &mut Binder<'_>, merge: &Merge) -> Result<Change, Error> {
    let target = insert::target(binder, &merge.target)?;
    if merge.locks_table {
        locks::lock_table(binder, &target)?;
    }
    let line = target.at.line;
    refuse_common(&merge.with, &target)?;
    check(&merge.clauses)?;
    let with = common_tables::with(binder, &merge.with, None)?;
    locks::lock_sources(binder, std::slice::from_ref(&merge.source), &target)?;
    let into = table(&target)?;
    let (alias, own) = match &merge.alias {
        Some(alias) => {
            let own = ObjectName { name: alias.text.clone(), at: alias.at, ..ObjectName::default() };
            (Some(Alias::of(names::name(alias)?)), own)
        }
        None => (None, target.clone()),
    };
    let mut named = declared::named_sources(binder, std::slice::from_ref(&merge.source))?;
    named.insert(0, Named::of_table(stored(&own.name), into.clone()));
    binder.names.sources.push(named);
    let using = sources::source(binder, &merge.source)?;
    let on = conditions::condition(binder, &merge.condition)?;
    let mut clauses = Vec::with_capacity(merge.clauses.len());
    for clause in &merge.clauses {
        let rows = match clause.rows {
            MergeRows::Matched => "matched",
            MergeRows::NotMatched => "not matched",
            MergeRows::NotMatchedBySource => "not matched by source",
        };
        let condition = clause
            .condition
            .as_ref()
            .map(|condition| conditions::condition(binder, condition))
            .transpose()?;
        let mut conditions: Vec<Scalar> = condition.into_iter().collect();
        if let MergeAction::Insert { columns, values: Some(values) } = &clause.action {
            conditions.extend(insert::inserted(binder, &into, columns)?.guard(values.len()));
        }
        let action = match &clause.action {
            MergeAction::Update(set) => postgres::MergeAction::Update(merge_set(binder, set, &own, &into)?),
            MergeAction::Delete => postgres::MergeAction::Delete,
            MergeAction::Insert { columns, values } => {
                binder.result.into = Some(into.clone());
                merge_insert(binder, &into, columns, values.as_deref(), line)?
            }
        };
        clauses.push(postgres::MergeClause { rows, conditions, action });
    }
    let (inserted, deleted) = (Some(String::from("new")), Some(String::from("old")));
    let action = Some(call("merge_action", []));
    let rows = ChangedRows { table: into.clone(), inserted, deleted, action };
    let into = Source::Table(into, alias);
    let change = Change { with, ..ChangeKind::Merge { into, using, on, clauses }.into() };
    output::with_output(binder, change, merge.output.as_ref(), &own, rows)
}

/// The assignments of an update; `own`: the name of the target.
fn merge_set(
    binder: &mut Binder<'_>,
    set: &[SetItem],
    own: &ObjectName,
    into: &str,
) -> Result<Vec<(String, Scalar)>, Error> {
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
        assignments.push((quoted(&name), change::set_value(binder, &of_target, into)?));
        columns.push(name);
    }
    Ok(assignments)
}

fn merge_insert(
    binder: &mut Binder<'_>,
    into: &str,
    columns: &[Name],
    values: Option<&[Expression]>,
    line: u32,
) -> Result<postgres::MergeAction, Error> {
    let Some(values) = values else {
        if !columns.is_empty() {
            return Err(Error::keyword("default", line));
        }
        return Ok(postgres::MergeAction::Insert(Filling::default(), None));
    };
    let targets = insert::inserted(binder, into, columns)?;
    targets.demand_number(values.len(), |width| mismatch(width, values.len(), line), line)?;
    let mut written = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        written.push(match value {
            Expression::Default(_) => Scalar::Default,
            value => {
                let value = expressions::value(binder, value)?;
                targets.stored(binder, index, &value, line)?
            }
        });
    }
    let with_identity = binder.scope.identity_insert.as_deref() == Some(into) && !columns.is_empty();
    let filling = Filling { columns: targets.names, with_identity };
    Ok(postgres::MergeAction::Insert(filling, Some(written)))
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
    for (index, clause) in clauses.iter().enumerate() {
        for before in clauses[..index].iter().filter(|before| before.rows == clause.rows) {
            let (rows, action_of) = (rows(clause), action(clause));
            let (number, text) = if before.condition.is_none() {
                let text = format!(
                    "In a MERGE statement, a '{rows}' clause with a search condition cannot appear after a '{rows}' \
                     clause with no search condition."
                );
                (5324, text)
            } else if action(before) == action_of {
                let text = format!(
                    "An action of type '{rows}' cannot appear more than once in a '{action_of}' clause of a MERGE \
                     statement."
                );
                (10714, text)
            } else {
                continue;
            };
            return Err(Error::new(number, text, clause.at).with_severity(16));
        }
    }
    Ok(())
}
