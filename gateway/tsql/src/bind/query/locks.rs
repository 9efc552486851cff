//! Hints that lock the rows that a select reads: `with (updlock, readpast)` ("Table hints").

use crate::bind::binder::Binder;
use crate::bind::expressions::walk;
use crate::error::Error;
use crate::postgres::Lock;
use crate::resolve::names;
use crate::resolve::names::stored;
use crate::tree::{Expression, JoinKind, Locks, Name, ObjectName, Select, SelectItem, TableSource};

/// The locks of the tables of a select.
pub fn locks(binder: &mut Binder<'_>, select: &Select) -> Result<Vec<Lock>, Error> {
    let locked = locked(&select.from, binder.around.holds);
    let Some(first) = locked.first() else { return Ok(Vec::new()) };
    let refusal = |why| Error::refused("with (updlock)", why, first.name.at);
    let of_several = binder.around.aggregates.all > 0
        || select.distinct
        || !select.group_by.is_empty()
        || select.having.is_some()
        || select.items.iter().any(has_window);
    let mut clauses = Vec::new();
    for Locked { name, alias, locks, is_outer } in &locked {
        if name.is_bare() && binder.names.common.contains(&stored(&name.name)) {
            return Err(refusal("a query of the WITH is no table: lock inside of it"));
        }
        // PostgreSQL locks no rows that combine several ones or may be missing, and none of a view with UNION
        if locks.table || of_several || *is_outer || !has_own_rows(binder, name)? {
            if locks.skips || locks.fails {
                return Err(refusal("readpast and nowait are for rows that are read one by one"));
            }
            lock_table(binder, name)?;
            continue;
        }
        let with_ties = select.top.as_ref().is_some_and(|top| top.with_ties);
        if with_ties && locks.skips {
            return Err(refusal("top … with ties counts the rows that are passed over"));
        }
        binder.variables.lock_rows(name.at.line)?;
        let qualifier = match alias {
            Some(alias) => names::name(alias)?,
            None => names::qualifier(name)?,
        };
        let otherwise = match locks {
            Locks { skips: true, .. } => " skip locked",
            Locks { fails: true, .. } => " nowait",
            _ => "",
        };
        clauses.push(Lock { of: qualifier, otherwise });
    }
    // it has an effect, and waits for other transactions
    binder.note(|facts| facts.calls = true);
    Ok(clauses)
}

/// Locks the rows that a change reads: the change itself locks its target.
pub fn lock_sources(binder: &mut Binder<'_>, from: &[TableSource], target: &ObjectName) -> Result<(), Error> {
    for Locked { name, alias, locks, .. } in locked(from, false) {
        let is_target = match alias {
            Some(alias) => target.is_bare() && alias.is(&target.name),
            None => name == target,
        };
        if locks.skips || locks.fails {
            let why = "choose the rows by a query";
            return Err(Error::refused("readpast or nowait of what is changed", why, name.at));
        }
        if !locks.table && is_target {
            continue;
        }
        if name.is_bare() && binder.names.common.contains(&stored(&name.name)) {
            return Err(Error::refused("with (updlock)", "lock inside of the query of the WITH", name.at));
        }
        lock_table(binder, name)?;
    }
    Ok(())
}

/// Whether PostgreSQL can lock the rows of a table or view; true if it is unknown.
fn has_own_rows(binder: &mut Binder<'_>, name: &ObjectName) -> Result<bool, Error> {
    let sql = names::table(name)?;
    let known = binder.scope.table(&sql);
    binder.variables.note_use(&sql, None);
    Ok(known.is_none_or(|table| table.has_own_rows))
}

/// Locks a table before the statement runs: writers wait until the transaction has ended.
pub fn lock_table(binder: &mut Binder<'_>, name: &ObjectName) -> Result<(), Error> {
    // no other session sees it, and the catalogue is never locked
    if name.is_temporary() && !name.is_global() || names::of_system(name)?.is_some() {
        return Ok(());
    }
    let sql = names::table(name)?;
    binder.note(|facts| facts.calls = true);
    binder.variables.lock_table(&sql, name.at.line)
}

pub fn locks_rows(select: &Select) -> bool {
    !locked(&select.from, false).is_empty()
}

/// The same select, with its tables locked instead of rows: PostgreSQL locks no rows of a UNION.
pub fn holding_tables(select: &Select) -> Select {
    fn hold(source: &mut TableSource) {
        match source {
            TableSource::Table { locks, .. } => locks.table |= *locks != Locks::default(),
            TableSource::Join { left, right, .. } => {
                hold(left);
                hold(right);
            }
            _ => {}
        }
    }
    let mut select = select.clone();
    select.from.iter_mut().for_each(hold);
    select
}

struct Locked<'s> {
    name: &'s ObjectName,
    alias: Option<&'s Name>,
    locks: Locks,
    /// It may be missing.
    is_outer: bool,
}

/// `holds`: all tables are locked.
fn locked(from: &[TableSource], holds: bool) -> Vec<Locked<'_>> {
    let mut found = Vec::new();
    let mut rest: Vec<(&TableSource, bool)> = from.iter().map(|source| (source, false)).collect();
    while let Some((source, is_outer)) = rest.pop() {
        match source {
            TableSource::Table { name, alias, locks } if holds || *locks != Locks::default() => {
                let locks = Locks { table: holds || locks.table, ..*locks };
                found.push(Locked { name, alias: alias.as_ref(), locks, is_outer });
            }
            TableSource::Join { kind, left, right, .. } => {
                let left_is_outer = matches!(kind, JoinKind::Right | JoinKind::Full);
                let right_is_outer = matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::OuterApply);
                rest.push((right, is_outer || right_is_outer));
                rest.push((left, is_outer || left_is_outer));
            }
            _ => {}
        }
    }
    found
}

fn has_window(item: &SelectItem) -> bool {
    let (SelectItem::Value { value, .. } | SelectItem::Assign { value, .. }) = item else { return false };
    walk::any(value, &mut |one| matches!(one, Expression::Function(call) if call.over.is_some()))
}
