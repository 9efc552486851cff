//! Updates and deletes.

use super::current::{location_of, refuse_beside_current};
use super::{insert, output, through};
use crate::bind::binder::changed_rows::ChangedRows;
use crate::bind::binder::named::{named_variable, source_name, Named};
use crate::bind::binder::{declared, Binder, Current};
use crate::bind::expressions;
use crate::bind::expressions::{conditions, walk};
use crate::bind::query::{common_tables, locks, sources, top};
use crate::bind::values::arithmetic::{arithmetic, sign};
use crate::bind::values::assignments::assigned;
use crate::bind::values::Value;
use crate::error::Error;
use crate::facts::types::UNKNOWN;
use crate::postgres::{call, Alias, Change, ChangeKind, Listed, Query, Scalar, Select, Source};
use crate::resolve::names::{self, folded, identifier, qualifier, stored, table};
use crate::tree::{
    ColumnName, CommonTable, Delete, Expression, JoinKind, ObjectName, SetItem, TableSource, Top, Update,
    Variable, Where,
};

/// The changed table, without the tables joined to it: T-SQL repeats it in FROM.
pub(super) struct Changed {
    /// The rows after UPDATE or DELETE FROM.
    target: Source,

    /// The qualifier of its columns.
    pub qualifier: String,
    /// The rows after FROM or USING.
    sources: Vec<Source>,
    conditions: Vec<Scalar>,
}

/// The target of a change that is part of an outer join.
const BESIDE: &str = "\"@changed\"";

/// The condition that the row is the cursor's current one.
fn current(
    binder: &mut Binder<'_>,
    cursor: &str,
    changed: &Changed,
    line: u32,
) -> Result<(Scalar, Current), Error> {
    let (of, table) = (&changed.qualifier, changed.target.to_string());
    let index = binder.variables.current_row(cursor, &table, line)?;
    let part = |number: u8| {
        let arguments = [index.clone(), Scalar::text(" "), Scalar::number(number)];
        call("pg_catalog.split_part", arguments)
    };
    let is_row = Scalar::of_row(of, "ctid").infix("=", part(1).cast("tid"));
    let condition = is_row.and(Scalar::of_row(of, "xmin").infix("=", part(2).cast("xid")));
    Ok((condition, Current { cursor: cursor.to_owned(), table, columns: Vec::new() }))
}

pub fn update(binder: &mut Binder<'_>, update: &Update) -> Result<Change, Error> {
    if let Some(change) = through::update_through(binder, update)? {
        return Ok(change);
    }
    let target = insert::target(binder, &update.target)?;
    if update.locks_table {
        locks::lock_table(binder, &target)?;
    }
    refuse_common(&update.with, &target)?;
    let with = common_tables::with(binder, &update.with, None)?;
    locks::lock_sources(binder, &update.from, &target)?;
    let named = named_of_change(binder, &target, &update.from)?;
    binder.names.sources.push(named);
    let changed_table = changed_table(binder, &target)?;
    let mut changed = changed(binder, &target, &update.from)?;
    chosen(binder, &target, &update.from, update.condition.as_ref(), update.top.as_ref(), &mut changed)?;
    let mut assignments = Vec::with_capacity(update.set.len());
    let mut columns = Vec::with_capacity(update.set.len());
    let mut returned = Vec::new();
    for item in &update.set {
        if let Some(column) = item.column.as_ref().filter(|_| binder.dialect().is_strict) {
            demand_own(binder, column, &target, &update.from)?;
        }
        let column = item.column.as_ref().map(|column| folded(&column.column, column.at.line)).transpose()?;
        if let Some(column) = &column {
            if columns.contains(column) {
                let text = "A column name is specified more than once in the SET clause.";
                return Err(Error::new(264, text, target.at).with_severity(16));
            }
            assignments.push((names::quoted(column), set_value(binder, item, &changed_table)?));
            columns.push(column.clone());
        }
        if let Some(variable) = &item.variable {
            returned.push(self::returned(binder, variable, item, update, &changed.qualifier)?);
        }
    }
    if let Some(current) = &mut binder.result.current {
        refuse_beside_current(!returned.is_empty(), update.output.is_some(), target.at.line)?;
        current.columns = columns.iter().map(|column| names::quoted(column)).collect();
        returned.push(location_of(&changed.qualifier));
    }
    if assignments.is_empty() {
        return Err(Error::refused("update … set @variable", "select the value", target.at));
    }
    let Changed { target: table, qualifier, sources: from, conditions } = changed;
    let kind = ChangeKind::Update { table, set: assignments, from, conditions };
    let rows = ChangedRows::updated(changed_table, qualifier);
    let mut change =
        output::with_output(binder, Change { with, ..kind.into() }, update.output.as_ref(), &target, rows)?;
    if !returned.is_empty() {
        binder.result.columns = Some(Vec::new());
        change.returning.extend(returned.into_iter().map(Listed::from));
    }
    Ok(change)
}

pub fn delete(binder: &mut Binder<'_>, delete: &Delete) -> Result<Change, Error> {
    if let Some(change) = through::delete_through(binder, delete)? {
        return Ok(change);
    }
    let target = insert::target(binder, &delete.target)?;
    if delete.locks_table {
        locks::lock_table(binder, &target)?;
    }
    refuse_common(&delete.with, &target)?;
    let with = common_tables::with(binder, &delete.with, None)?;
    locks::lock_sources(binder, &delete.from, &target)?;
    let named = named_of_change(binder, &target, &delete.from)?;
    binder.names.sources.push(named);
    let mut changed = changed(binder, &target, &delete.from)?;
    chosen(binder, &target, &delete.from, delete.condition.as_ref(), delete.top.as_ref(), &mut changed)?;
    let Changed { target: table, qualifier, sources: using, conditions } = changed;
    let mut change = Change { with, ..ChangeKind::Delete { table, using, conditions }.into() };
    if binder.result.current.is_some() {
        refuse_beside_current(false, delete.output.is_some(), target.at.line)?;
        change.returning = vec![Listed::from(Scalar::Null.cast("text"))];
        binder.result.columns = Some(Vec::new());
    }
    let deleted = Some(qualifier);
    let rows = ChangedRows { table: changed_table(binder, &target)?, deleted, ..ChangedRows::default() };
    output::with_output(binder, change, delete.output.as_ref(), &target, rows)
}

/// 4104: the qualifier of a column of SET is the target, or its alias.
fn demand_own(
    binder: &Binder<'_>,
    column: &ColumnName,
    target: &ObjectName,
    from: &[TableSource],
) -> Result<(), Error> {
    let Some(of) = &column.table else { return Ok(()) };
    let groups: Vec<Group> = from.iter().map(Group::of).collect();
    let source = found(binder, target, &groups)?.map(|(at, index)| groups[at].sources[index]);
    let own = folded(&of.name, column.at.line)?;
    let is_alias = || of.is_bare() && source.and_then(source_name).is_some_and(|name| name == own);
    let is_target = match of.is_bare() {
        true => own == folded(&target.name, column.at.line)?,
        false => table(of)? == table(target)?,
    };
    if is_target || is_alias() {
        return Ok(());
    }
    let text = format!("The multi-part identifier \"{}.{}\" could not be bound.", of.shown(), column.column);
    Err(Error::new(4104, text, column.at).with_severity(16))
}

/// The value of an assignment to a column of this table.
pub fn set_value(binder: &mut Binder<'_>, item: &SetItem, table: &str) -> Result<Scalar, Error> {
    let column = item.column.as_ref();
    let own = column.map(|column| folded(&column.column, column.at.line)).transpose()?;
    let targets = insert::target_column(binder, table, own);
    let declared =
        column.map(|column| targets.demand_column(&column.column, column.at)).transpose()?.flatten();
    if matches!(item.value, Expression::Default(_)) {
        if let Some(column) = column.filter(|_| declared.is_some_and(|declared| declared.is_identity)) {
            let text = format!("Cannot update identity column '{}'.", column.column);
            return Err(Error::new(8102, text, column.at).with_severity(16));
        }
        return Ok(Scalar::Default);
    }
    let mut value = expressions::value(binder, &item.value)?;
    if let (Some(sign), Some(column)) = (item.operator.computes().and_then(sign), column) {
        let before = expressions::column(binder, column)?;
        value = arithmetic(sign, before, value, column.at.line, binder.dialect())?;
    }
    targets.stored(binder, 0, &value, item.value.at().line)
}

/// The changed table, which may be an alias in FROM.
fn changed_table(binder: &Binder<'_>, target: &ObjectName) -> Result<String, Error> {
    let (own, whole) = (stored(&target.name), table(target)?);
    let named = binder.names.sources.last().into_iter().flatten();
    let is_meant = |one: &&Named| target.is_bare() && one.name == own;
    Ok(named.filter(is_meant).find_map(|one| one.table.clone()).unwrap_or(whole))
}

/// `set @v = column = value` and `set @v = value`: the value for the variable, from the row changed last.
fn returned(
    binder: &mut Binder<'_>,
    variable: &Variable,
    item: &SetItem,
    update: &Update,
    qualifier: &str,
) -> Result<Scalar, Error> {
    let (name, line) = (&variable.name, variable.at.line);
    let again = |other: &SetItem| walk::names_variable(&other.value, name);
    if update.set.iter().any(again) {
        let what = format!("update … set {name} = … {name}");
        return Err(Error::refused(&what, "select the value first", line));
    }
    let value = match &item.column {
        Some(column) => {
            let own = identifier(&column.column, column.at.line)?;
            Value::new(Scalar::Column(Some(qualifier.to_owned()), own), UNKNOWN)
        }
        None => {
            let is_set = |column: &ColumnName| {
                let sets = |other: &SetItem| {
                    other.column.as_ref().is_some_and(|set| set.column.eq_ignore_ascii_case(&column.column))
                };
                update.set.iter().any(sets)
            };
            let reads = walk::any(
                &item.value,
                &mut |one| matches!(one, Expression::Column(column) if is_set(column)),
            );
            let is_known = binder.dialect().update_reads_before && update.from.is_empty();
            if walk::has_query(&item.value) || item.operator.computes().is_some() || reads && !is_known {
                let what = format!("update … set {name} =");
                return Err(Error::refused(
                    &what,
                    "what is set is not what was: select the value first",
                    line,
                ));
            }
            binder.unchanged = reads.then(|| qualifier.to_owned());
            let value = expressions::value(binder, &item.value);
            binder.unchanged = None;
            value?
        }
    };
    let target = binder.scope.type_of(name, line)?;
    binder.result.assigns.push(name.clone());
    match target.is_tsql() {
        true => Ok(assigned(value, target, line, binder.dialect())?.sql),
        false => Ok(value.sql),
    }
}

/// The rows selected by WHERE and TOP.
fn chosen(
    binder: &mut Binder<'_>,
    target: &ObjectName,
    from: &[TableSource],
    condition: Option<&Where>,
    top: Option<&Top>,
    changed: &mut Changed,
) -> Result<(), Error> {
    match condition {
        None => {}
        Some(Where::Condition(condition)) => {
            changed.conditions.push(conditions::condition(binder, condition)?)
        }
        Some(Where::CurrentOf(cursor)) => {
            if top.is_some() || !from.is_empty() {
                let why = "the cursor's row alone is what is changed";
                return Err(Error::refused("top or from beside current of", why, target.at));
            }
            let (condition, current) = current(binder, &cursor.known(), changed, target.at.line)?;
            changed.conditions.push(condition);
            binder.result.current = Some(current);
        }
    }
    let one = table(target)?;
    if !from.is_empty() {
        let why = "rows of one table are what can be chosen";
        return top.map_or(Ok(()), |top| Err(Error::refused("top beside from", why, top.at)));
    }
    if binder.result.current.is_some() {
        binder.result.limited = binder.scope.limits_rows.then_some(one);
        return Ok(());
    }
    let index = ["tableoid", "ctid"].map(|system| Scalar::of_row(&changed.qualifier, system));
    let rows = Query::from(Select {
        list: index.clone().map(Listed::from).into(),
        from: vec![changed.target.clone()],
        conditions: changed.conditions.clone(),
        ..Select::default()
    });
    let Some(most) = top::changed_of(binder, top, &rows, &one, target.at.line)? else { return Ok(()) };
    let rows = Box::new(rows.limited(Some(most)));
    changed.conditions = vec![Scalar::In(Box::new(Scalar::Row(index.into())), rows)];
    Ok(())
}

fn changed(binder: &mut Binder<'_>, target: &ObjectName, from: &[TableSource]) -> Result<Changed, Error> {
    let plain = |sources: Vec<Source>| -> Result<Changed, Error> {
        let (target, qualifier) = (Source::Table(table(target)?, None), qualifier(target)?);
        Ok(Changed { target, qualifier, sources, conditions: Vec::new() })
    };
    let groups: Vec<Group> = from.iter().map(Group::of).collect();
    let Some((at, index)) = found(binder, target, &groups)? else {
        let changed = plain(sources::from(binder, from)?)?;
        binder.note_table(names::relation(target)?);
        return Ok(changed);
    };
    let group = &groups[at];
    let source = group.sources[index];
    let name = match source_name(source) {
        Some(name) if has_alias(source) => names::quoted(&name),
        _ => qualifier(target)?,
    };
    if group.joins.iter().any(|(kind, _)| !matches!(kind, JoinKind::Inner | JoinKind::Cross)) {
        let sources = sources::from(binder, from)?;
        let same = ["ctid", "tableoid"]
            .map(|system| Scalar::of_row(BESIDE, system).infix("=", Scalar::of_row(&name, system)));
        return Ok(Changed {
            target: Source::Table(bare(binder, source)?, Some(Alias::of(BESIDE))),
            qualifier: BESIDE.to_owned(),
            sources,
            conditions: same.to_vec(),
        });
    }
    let mut conditions = Vec::new();
    for (_, condition) in &group.joins {
        if let Some(condition) = condition {
            conditions.push(conditions::condition(binder, condition)?);
        }
    }
    let mut others = Vec::new();
    for (number, source) in group.sources.iter().enumerate() {
        if number != index {
            others.push(sources::source(binder, source)?);
        }
    }
    for (number, source) in from.iter().enumerate() {
        if number != at {
            others.push(sources::source(binder, source)?);
        }
    }
    let target = sources::source(binder, source)?;
    Ok(Changed { target, qualifier: name, sources: others, conditions })
}

/// The sources of a change, including its target.
fn named_of_change(
    binder: &mut Binder<'_>,
    target: &ObjectName,
    from: &[TableSource],
) -> Result<Vec<Named>, Error> {
    let mut named = declared::named_sources(binder, from)?;
    let groups: Vec<Group> = from.iter().map(Group::of).collect();
    if found(binder, target, &groups)?.is_none() {
        named.insert(0, Named::of_table(stored(&target.name), table(target)?));
    }
    Ok(named)
}

/// The target in FROM: the index of its group, and of its source there. Error 8154 if it is ambiguous.
fn found(
    binder: &Binder<'_>,
    target: &ObjectName,
    groups: &[Group],
) -> Result<Option<(usize, usize)>, Error> {
    let own = folded(&target.name, target.at.line)?;
    let whole = table(target)?;
    let mut found = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        for (index, source) in group.sources.iter().enumerate() {
            let named = source_name(source).is_some_and(|name| name == own);
            let is_table = match source {
                TableSource::Table { name, .. } => table(name)? == whole,
                TableSource::Variable { variable, .. } => table(&named_variable(binder, variable)?)? == whole,
                _ => false,
            };
            let may_be = matches!(source, TableSource::Table { .. } | TableSource::Variable { .. });
            if is_table || (named && may_be && target.is_bare()) {
                found.push((named, at, index));
            }
            let nested = matches!(source, TableSource::Join { .. });
            if nested
                && Group::of(source)
                    .sources
                    .iter()
                    .any(|inner| source_name(inner).is_some_and(|name| name == own))
            {
                let what = format!("{} in a nested join", target.shown());
                return Err(Error::refused(&what, "write the joins one after another", target.at));
            }
        }
    }
    let by_name: Vec<_> = found.iter().filter(|(named, ..)| *named).copied().collect();
    if by_name.len() == 1 {
        found = by_name;
    }
    match found.as_slice() {
        [] => Ok(None),
        [(_, at, index)] => Ok(Some((*at, *index))),
        _ => {
            let text = format!("The table '{}' is ambiguous.", target.shown());
            Err(Error::new(8154, text, target.at).with_severity(16))
        }
    }
}

/// A table without its alias.
fn bare(binder: &Binder<'_>, source: &TableSource) -> Result<String, Error> {
    match source {
        TableSource::Table { name, .. } => table(name),
        TableSource::Variable { variable, .. } => table(&named_variable(binder, variable)?),
        _ => Err(Error::syntax("from", 0_u32)),
    }
}

/// A source and the sources joined to it, from left to right.
struct Group<'s> {
    sources: Vec<&'s TableSource>,
    joins: Vec<(JoinKind, Option<&'s Expression>)>,
}

impl Group<'_> {
    fn of(source: &TableSource) -> Group<'_> {
        let (mut sources, mut joins) = (Vec::new(), Vec::new());
        let mut first = source;
        while let TableSource::Join { kind, left, right, condition } = first {
            sources.push(&**right);
            joins.push((*kind, condition.as_ref()));
            first = left;
        }
        sources.push(first);
        sources.reverse();
        joins.reverse();
        Group { sources, joins }
    }
}

/// Refuses to change a named query, which is not a table for PostgreSQL.
pub fn refuse_common(tables: &[CommonTable], target: &ObjectName) -> Result<(), Error> {
    if tables.iter().any(|common| target.is_bare() && common.name.is(&target.name)) {
        let what = format!("a change through {}", target.name);
        return Err(Error::refused(
            &what,
            "change the table itself, and choose its rows by a key",
            target.at,
        ));
    }
    Ok(())
}

fn has_alias(source: &TableSource) -> bool {
    matches!(source, TableSource::Table { alias: Some(_), .. } | TableSource::Variable { alias: Some(_), .. })
}
