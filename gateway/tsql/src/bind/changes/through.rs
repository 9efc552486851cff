//! Changes of a table through a query of it: `with d as (select …) delete d where …`, `delete d from (select …) d`.
//!
//! SQL Server changes the rows of the table underlying the query ("WITH common_table_expression", "UPDATE", "DELETE").
//! Here the query has two more columns, tableoid and ctid of each row.

use super::{change, output};
use crate::bind::binder::changed_rows::{ChangedRows, LOCATION};
use crate::bind::binder::named::{named_variable, source_name, Named};
use crate::bind::binder::{declared, Binder};
use crate::bind::expressions::{conditions, walk};
use crate::bind::query::{common_tables, locks, sources, top};
use crate::error::Error;
use crate::postgres::{Alias, Change, ChangeKind, Listed, Query, Scalar, Select as Selected, Source, With};
use crate::resolve::names::{self, identifier, quoted, relation, stored, table};
use crate::tree::{
    ColumnName, CommonTable, Delete, Expression, Locks, Name, ObjectName, QueryBody, Select, SelectItem,
    SetItem, TableSource, Target, Top, Update, Where,
};

/// The target of the change.
const CHANGED: &str = "\"@changed\"";
/// The rows with the new values.
const NEW: &str = "\"@new\"";
/// The name of a derived table as a query of the WITH.
const DERIVED: &str = "@through";
/// A change of a table through a query.
struct Through {
    with: Vec<CommonTable>,
    from: Vec<TableSource>,
    /// The query's name in the change.
    target: ObjectName,
    columns: Vec<Name>,
    items: Vec<SelectItem>,
    /// The table of the query.
    base: ObjectName,
}

/// The rows of the query to change, with the values needed.
struct Rows {
    with: With,
    select: Query,
    /// The table's SQL.
    base: String,
}

/// None if the target is not a query.
pub fn delete_through(binder: &mut Binder<'_>, delete: &Delete) -> Result<Option<Change>, Error> {
    let Some(through) = through(binder, &delete.with, &delete.target, &delete.from)? else {
        return Ok(None);
    };
    let rows = rows_through(binder, &through, &[], delete.condition.as_ref(), delete.top.as_ref())?.0;
    let Rows { with, select, base } = rows;
    let location = LOCATION.map(|column| Scalar::of_row(CHANGED, column));
    let is_chosen = Scalar::In(Box::new(Scalar::Row(location.into())), Box::new(select));
    let deleted = Some(CHANGED.to_owned());
    let rows = ChangedRows { table: base.clone(), deleted, ..ChangedRows::default() };
    let table = Source::Table(base, Some(Alias::of(CHANGED)));
    let kind = ChangeKind::Delete { table, using: Vec::new(), conditions: vec![is_chosen] };
    let change = Change { with, ..kind.into() };
    output::with_output(binder, change, delete.output.as_ref(), &through.base, rows).map(Some)
}

/// The same.
pub fn update_through(binder: &mut Binder<'_>, update: &Update) -> Result<Option<Change>, Error> {
    let Some(through) = through(binder, &update.with, &update.target, &update.from)? else {
        return Ok(None);
    };
    let line = through.target.at.line;
    let set: Vec<SetItem> =
        update.set.iter().map(|item| through.base_item(item)).collect::<Result<_, _>>()?;
    let (rows, values) =
        rows_through(binder, &through, &set, update.condition.as_ref(), update.top.as_ref())?;
    let mut assignments = Vec::with_capacity(set.len());
    for (item, value) in set.iter().zip(values) {
        let Some(column) = &item.column else { continue };
        let column = identifier(&column.column, line)?;
        if assignments.iter().any(|(known, _)| *known == column) {
            let text = "A column name is specified more than once in the SET clause.";
            return Err(Error::new(264, text, line).with_severity(16));
        }
        assignments.push((column, value));
    }
    let Rows { with, select, base } = rows;
    let changed = base.clone();
    let same = |column: &str| {
        let new = Scalar::of_row(NEW, quoted(&format!("@{column}")));
        Scalar::of_row(CHANGED, column).infix("=", new)
    };
    let kind = ChangeKind::Update {
        table: Source::Table(base, Some(Alias::of(CHANGED))),
        set: assignments,
        from: vec![select.named(NEW, Vec::new())],
        conditions: LOCATION.map(same).into(),
    };
    let rows = ChangedRows::updated(changed, CHANGED.to_owned());
    let change = Change { with, ..kind.into() };
    output::with_output(binder, change, update.output.as_ref(), &through.base, rows).map(Some)
}

/// The rows to change, and the column with each value of SET.
fn rows_through(
    binder: &mut Binder<'_>,
    through: &Through,
    set: &[SetItem],
    condition: Option<&Where>,
    top: Option<&Top>,
) -> Result<(Rows, Vec<Scalar>), Error> {
    let (line, base) = (through.target.at.line, table(&through.base)?);
    binder.note_table(relation(&through.base)?);
    let with = common_tables::with(binder, &through.with, None)?;
    locks::lock_sources(binder, &through.from, &through.target)?;
    let named = declared::named_sources(binder, &through.from)?;
    binder.names.sources.push(named);
    let sources = sources::from(binder, &through.from)?;
    let condition = match condition {
        None => None,
        Some(Where::Condition(condition)) => Some(conditions::condition(binder, condition)?),
        Some(Where::CurrentOf(_)) => {
            return Err(Error::refused("current of", "change the table itself", through.target.at));
        }
    };
    let name = names::qualifier(&through.target)?;
    let location = |column: &str| Listed::from(Scalar::of_row(&name, quoted(&format!("@{column}"))));
    let mut list: Vec<Listed> = LOCATION.into_iter().map(location).collect();
    let mut values = Vec::with_capacity(set.len());
    for item in set {
        let value = change::set_value(binder, item, &base)?;
        if matches!(item.value, Expression::Default(_)) {
            values.push(value);
            continue;
        }
        let own = quoted(&format!("@{}", values.len() + 1));
        list.push(Listed::named(value, own.as_str()));
        values.push(Scalar::of_row(NEW, own));
    }
    let conditions = condition.into_iter().collect();
    let select = Query::from(Selected { list, from: sources, conditions, ..Selected::default() });
    let most = top::changed_of(binder, top, &select, &base, line)?;
    let select = select.limited(most);
    binder.names.sources.pop();
    binder.names.sources.push(vec![Named::of_table(base.clone(), base.clone())]);
    Ok((Rows { with, select, base }, values))
}

fn through(
    binder: &Binder<'_>,
    with: &[CommonTable],
    target: &Target,
    from: &[TableSource],
) -> Result<Option<Through>, Error> {
    let Target::Table(target) = target else { return Ok(None) };
    if !target.is_bare() {
        return Ok(None);
    }
    let own = stored(&target.name);
    let (mut with, mut from) = (with.to_vec(), from.to_vec());
    let is_alone = from.is_empty();
    let found = from.iter_mut().find_map(|source| named_so(source, &own));
    let common = match found {
        Some(source @ TableSource::Query { .. }) => {
            let table = ObjectName { name: DERIVED.into(), at: target.at, ..ObjectName::default() };
            let alias = Some(Name { text: target.name.clone(), at: target.at });
            let derived =
                std::mem::replace(source, TableSource::Table { name: table, alias, locks: Locks::default() });
            let TableSource::Query { query, columns, .. } = derived else { return Ok(None) };
            with.push(CommonTable {
                name: Name { text: DERIVED.into(), at: target.at },
                columns,
                query: *query,
            });
            DERIVED.to_owned()
        }
        Some(TableSource::Table { name, .. }) if name.is_bare() => name.name.clone(),
        None if is_alone => {
            from.push(TableSource::Table { name: target.clone(), alias: None, locks: Locks::default() });
            target.name.clone()
        }
        _ => return Ok(None),
    };
    let Some(index) = with.iter().position(|one| one.name.is(&common)) else { return Ok(None) };
    let others: Vec<Name> = with.iter().map(|one| one.name.clone()).collect();
    let common = &mut with[index];
    let refusal = |why| Error::refused(&format!("a change through {}", target.name), why, target.at);
    if walk::names_table(&common.query, &common.name.text) {
        return Err(refusal("it names itself: change the table itself"));
    }
    let QueryBody::Select(select) = &mut common.query.body else {
        return Err(refusal("its rows are of several queries: change the table itself"));
    };
    if select.distinct || !select.group_by.is_empty() || select.having.is_some() {
        let text = format!(
                "Cannot update the view or function '{}' because it contains aggregates, or a DISTINCT or GROUP BY clause, \
                 or PIVOT or UNPIVOT operator.",
                target.name
            );
        return Err(Error::new(4403, text, target.at).with_severity(16));
    }
    let (base, name) = match select.from.as_slice() {
        [TableSource::Table { name, alias, .. }]
            if !(name.is_bare() && others.iter().any(|other| other.is(&name.name))) =>
        {
            (name.clone(), alias.clone())
        }
        [TableSource::Variable { variable, alias }] => (named_variable(binder, variable)?, alias.clone()),
        _ => return Err(refusal("its rows are not those of one table: change the table itself")),
    };
    let qualifier = match name {
        Some(alias) => ObjectName { name: alias.text, at: alias.at, ..ObjectName::default() },
        None => base.clone(),
    };
    if let [TableSource::Table { locks, .. }] = select.from.as_mut_slice() {
        // the change locks them
        locks.rows &= locks.skips;
        locks.fails &= locks.skips;
    }
    let (items, columns) = (select.items.clone(), common.columns.clone());
    with_location(select, &qualifier);
    if !common.columns.is_empty() {
        common.columns.extend(LOCATION.map(|column| shown_location(column, target)));
    }
    Ok(Some(Through { with, from, target: target.clone(), columns, items, base }))
}

/// The source with this name in a change.
fn named_so<'s>(source: &'s mut TableSource, own: &str) -> Option<&'s mut TableSource> {
    match source {
        TableSource::Join { left, right, .. } => named_so(left, own).or_else(|| named_so(right, own)),
        _ => (source_name(source).as_deref() == Some(own)).then_some(source),
    }
}

fn shown_location(column: &str, target: &ObjectName) -> Name {
    Name { text: format!("@{column}"), at: target.at }
}

/// Adds tableoid and ctid of its rows to the select.
fn with_location(select: &mut Select, of: &ObjectName) {
    select.items.extend(LOCATION.map(|column| SelectItem::Value {
        value: Expression::Column(ColumnName {
            table: Some(Box::new(of.clone())),
            column: column.to_owned(),
            at: of.at,
        }),
        alias: Some(shown_location(column, of)),
    }));
}

impl Through {
    /// An assignment to the table's column underlying that of the query.
    fn base_item(&self, item: &SetItem) -> Result<SetItem, Error> {
        let Some(column) = item.column.as_ref().filter(|_| item.variable.is_none()) else {
            let what = format!("update … set @variable through {}", self.target.shown());
            return Err(Error::refused(&what, "select the value", self.target.at));
        };
        let base = self.base_column(column)?;
        if !base.eq_ignore_ascii_case(&column.column) && item.operator.computes().is_some() {
            let what = format!("{} of another name in {}", base, self.target.shown());
            return Err(Error::refused(&what, "write the sum out", column.at));
        }
        let column = Some(ColumnName { column: base, table: None, ..column.clone() });
        Ok(SetItem { column, ..item.clone() })
    }

    fn base_column(&self, column: &ColumnName) -> Result<String, Error> {
        let mut has_star = false;
        for (index, item) in self.items.iter().enumerate() {
            let (own, named) = match item {
                SelectItem::Value { value: Expression::Column(own), alias } => {
                    (Some(own), alias.as_ref().map_or(&own.column, |alias| &alias.text))
                }
                SelectItem::Value { alias: Some(alias), .. } => (None, &alias.text),
                SelectItem::Star { .. } => {
                    has_star = true;
                    continue;
                }
                _ => continue,
            };
            let named = self.columns.get(index).map_or(named, |given| &given.text);
            if named.eq_ignore_ascii_case(&column.column) {
                return own.map(|own| own.column.clone()).ok_or_else(|| self.derived(column));
            }
        }
        if has_star && self.columns.is_empty() {
            return Ok(column.column.clone());
        }
        Err(Error::invalid_column(&column.column, column.at))
    }

    fn derived(&self, column: &ColumnName) -> Error {
        let text = format!(
            "Update or insert of view or function '{}' failed because it contains a derived or constant field.",
            self.target.name
        );
        Error::new(4406, text, column.at).with_severity(16)
    }
}
