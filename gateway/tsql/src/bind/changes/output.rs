//! OUTPUT: the rows before and after a change.

use super::insert;
use super::insert::mismatch_of_query;
use super::targets::Targets;
use crate::bind::binder::changed_rows::ChangedRows;
use crate::bind::binder::item::{has_star, numbered, titles, Item, Stands};
use crate::bind::binder::Binder;
use crate::bind::query::{select, stars};
use crate::error::Error;
use crate::postgres::{
    call, Alias, Change, ChangeKind, Filling, Listed, MergeAction, MergeClause, Scalar, Select as Selected,
    Source, Statement,
};
use crate::resolve::names::table;
use crate::tree::{ObjectName, Output, Select, SelectItem};
use std::mem::take;

/// The name of the rows that a change returns.
const CHANGED: &str = "\"@changed\"";

/// A change that returns the rows that it has changed. `change`: WITH and the statement itself; `rows`: RETURNING's
/// names of them; `target`: as it is written.
pub fn with_output(
    binder: &mut Binder<'_>,
    change: Change,
    output: Option<&Output>,
    target: &ObjectName,
    rows: ChangedRows,
) -> Result<Change, Error> {
    let Some(output) = output else { return Ok(change) };
    let line = target.at.line;
    if !binder.result.assigns.is_empty() {
        return Err(Error::refused("output beside set @variable", "select what is wanted", line));
    }
    let select = Select {
        distinct: false,
        top: None,
        items: Vec::new(),
        into: None,
        from: Vec::new(),
        condition: None,
        group_by: Vec::new(),
        having: None,
        at: Default::default(),
    };
    binder.output = Some(rows);
    let mut items = Vec::with_capacity(output.items.len());
    for item in &output.items {
        let columns = match item {
            SelectItem::Star { table: None, at } => return Err(Error::syntax("*", *at)),
            SelectItem::Star { table: Some(of), at } => stars::of_output(binder, of, *at),
            _ => None,
        };
        for item in columns.as_deref().unwrap_or(std::slice::from_ref(item)) {
            items.push(select::item(binder, item, &select, Stands::Inside)?);
        }
    }
    binder.output = None;
    let change = Change { returning: items.iter().map(Item::listed).collect(), ..change };
    let Some((target, columns)) = &output.into else {
        demand_no_trigger(binder, &change.kind, target)?;
        binder.result.columns = titles(items);
        return Ok(change);
    };
    let target = insert::target(binder, target)?;
    let into = table(&target)?;
    let targets = insert::inserted(binder, &into, columns)?;
    if !has_star(&items) {
        targets.demand_number(items.len(), |width| mismatch_of_query(width, items.len(), line), line)?;
    }
    kept(binder, change, &targets, &items, line)
}

/// Error 334 if a trigger of the same event may return rows too.
fn demand_no_trigger(binder: &mut Binder<'_>, change: &ChangeKind, target: &ObjectName) -> Result<(), Error> {
    let (table, events) = match change {
        ChangeKind::Insert { into, .. } => (into, vec!["insert"]),
        ChangeKind::Update { table: Source::Table(table, _), .. } => (table, vec!["update"]),
        ChangeKind::Delete { table: Source::Table(table, _), .. } => (table, vec!["delete"]),
        ChangeKind::Merge { into: Source::Table(table, _), clauses, .. } => {
            let event = |clause: &MergeClause| match clause.action {
                MergeAction::Insert(..) => "insert",
                MergeAction::Update(_) => "update",
                MergeAction::Delete => "delete",
            };
            (table, clauses.iter().map(event).collect())
        }
        _ => return Ok(()),
    };
    binder.variables.note_use(table, None);
    let known = binder.scope.table(table);
    if !known.is_some_and(|known| known.fires.split(' ').any(|fires| events.contains(&fires))) {
        return Ok(());
    }
    let text = format!(
        "The target table '{}' of the DML statement cannot have any enabled triggers if the statement contains an OUTPUT \
         clause without INTO clause.",
        target.shown()
    );
    Err(Error::new(334, text, target.at).with_severity(16))
}

/// The rows of RETURNING, inserted into another table.
fn kept(
    binder: &mut Binder<'_>,
    mut change: Change,
    target: &Targets,
    items: &[Item],
    line: u32,
) -> Result<Change, Error> {
    let mut with = take(&mut change.with);
    let has_names = !has_star(items);
    let columns = if has_names { numbered(items) } else { Vec::new() };
    let mut list = Vec::with_capacity(items.len());
    for (index, (name, item)) in columns.iter().zip(items).enumerate() {
        list.push(Listed::from(target.stored(binder, index, &item.column(name), line)?));
    }
    if !has_names {
        list.push(Listed::from(Scalar::Star));
    }
    let mut conditions = vec![call("tsql.takes_output", [Scalar::text(target.table)])];
    conditions.extend(target.guard(items.len()).filter(|_| has_names));
    let changed = Alias { name: CHANGED.to_owned(), columns };
    with.tables.push((changed, Statement::Change(change)));
    let from = vec![Source::Table(CHANGED.to_owned(), None)];
    let rows = Selected { list, from, conditions, ..Selected::default() };
    let filling = Filling { columns: target.names.clone(), with_identity: false };
    let (into, rows) = (target.table.to_owned(), Some(rows.into()));
    Ok(Change { with, ..ChangeKind::Insert { into, filling, rows }.into() })
}
