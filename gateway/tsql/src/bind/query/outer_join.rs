//! `a.x *= b.y`, the old outer join: all rows of a. Conditions on b are part of the join, those on a restrict the
//! result.

use super::sources;
use super::sources::{conjuncts, Sources};
use crate::bind::binder::named::source_name;
use crate::bind::binder::{bound, Binder};
use crate::bind::expressions;
use crate::bind::expressions::{conditions, walk};
use crate::error::Error;
use crate::postgres::Scalar;
use crate::tree::{BinaryOperator, Expression, Select, SelectItem, TableSource};
use std::collections::{BTreeMap, BTreeSet};

/// The sides of `*=` and `=*`; first the one whose rows are all kept.
fn sides(condition: &Expression) -> Option<(&Expression, &Expression)> {
    match condition {
        Expression::Binary { operator: BinaryOperator::LeftOuter, left, right, .. } => Some((left, right)),
        Expression::Binary { operator: BinaryOperator::RightOuter, left, right, .. } => Some((right, left)),
        _ => None,
    }
}

/// A table whose rows may be missing: the table whose rows are all kept, and the conditions of the join.
struct Joined {
    preserved: String,
    on: Vec<Scalar>,
}

/// FROM and WHERE of a select with such a condition; None for any other.
pub fn outer_join(binder: &mut Binder<'_>, select: &Select) -> Result<Option<Sources>, Error> {
    let Some(condition) = &select.condition else { return Ok(None) };
    let conjuncts = conjuncts(condition);
    if !conjuncts.iter().any(|one| sides(one).is_some()) {
        return Ok(None);
    }
    let refusal = |why| Error::refused("*= and =*", why, select.at);
    let names: Option<Vec<String>> = select.from.iter().map(source_name).collect();
    let names = names.ok_or_else(|| refusal("write a left join, but for tables parted by commas"))?;
    let (mut joins, mut kept) = (BTreeMap::<String, Joined>::new(), Vec::new());
    for one in conjuncts {
        let of = sources_named(binder, one)?.filter(|of| of.iter().all(|name| names.contains(name)));
        let Some(of) = of else {
            if binder.scope.schema.as_ref().is_some_and(|schema| !schema.is_complete()) {
                return provisional(binder, select).map(Some);
            }
            return Err(refusal("qualify all columns, or write a left join"));
        };
        let Some((preserved, joined)) = sides(one) else {
            kept.push((one, of));
            continue;
        };
        let (preserved, joined) = (only_source(binder, preserved)?, only_source(binder, joined)?);
        let (Some(preserved), Some(joined)) = (preserved, joined) else {
            return Err(refusal("each side is of one table"));
        };
        let Expression::Binary { left, right, .. } = one else { continue };
        let (left, right) = (expressions::value(binder, left)?.sql, expressions::value(binder, right)?.sql);
        let own = Joined { preserved: preserved.clone(), on: Vec::new() };
        let join = joins.entry(joined).or_insert(own);
        if join.preserved != preserved {
            return Err(refusal("a table is joined to one other"));
        }
        join.on.push(left.tsql("=", right));
    }
    if joins.values().any(|join| joins.contains_key(&join.preserved)) {
        return Err(refusal("a table whose rows may be missing keeps no rows of others"));
    }
    let mut conditions = Vec::new();
    for (one, of) in kept {
        let sql = conditions::condition(binder, one)?;
        let joined = of.iter().find(|name| joins.contains_key(*name));
        match (joined.and_then(|name| joins.get_mut(name)), of.len()) {
            (None, _) => conditions.push(sql),
            (Some(join), 1) => join.on.push(sql),
            // 303: "The table is an inner member of an outer-join clause"
            (Some(_), _) => {
                return Err(refusal("a table whose rows may be missing is compared with no other"))
            }
        }
    }
    let is_joined = |(name, _): &(&String, &TableSource)| joins.contains_key(*name);
    let (joined, preserved): (Vec<_>, Vec<_>) = names.iter().zip(&select.from).partition(is_joined);
    let in_order = names.iter().is_sorted_by_key(|name| joins.contains_key(name));
    if !in_order && select.items.iter().any(|item| matches!(item, SelectItem::Star { table: None, .. })) {
        return Err(refusal("name the columns instead of *"));
    }
    let preserved =
        preserved.iter().map(|(_, source)| sources::source(binder, source)).collect::<Result<Vec<_>, _>>()?;
    let mut preserved = preserved.into_iter();
    let Some(mut rows) = preserved.next() else { return Err(refusal("no table keeps its rows")) };
    for other in preserved {
        rows = rows.join("cross join", other, None);
    }
    for (name, source) in joined {
        let on = joins.remove(name).map(|join| Scalar::And(join.on));
        rows = rows.join("left join", sources::source(binder, source)?, on);
    }
    binder.note(|facts| facts.adds_nulls = true);
    Ok(Some(Sources { from: vec![rows], conditions }))
}

/// The tables without the join, where no declarations are known yet: the statement is written again with them.
fn provisional(binder: &mut Binder<'_>, select: &Select) -> Result<Sources, Error> {
    let from = select.from.iter().map(|source| sources::source(binder, source)).collect::<Result<_, _>>()?;
    Ok(Sources { from, conditions: Vec::new() })
}

fn only_source(binder: &mut Binder<'_>, expression: &Expression) -> Result<Option<String>, Error> {
    let found = sources_named(binder, expression)?.filter(|found| found.len() == 1);
    Ok(found.and_then(|found| found.into_iter().next()))
}

/// The sources whose columns an expression names; None if unknown, or if it contains a query.
fn sources_named(
    binder: &mut Binder<'_>,
    expression: &Expression,
) -> Result<Option<BTreeSet<String>>, Error> {
    if walk::has_query(expression) {
        return Ok(None);
    }
    let mut columns = Vec::new();
    walk::any(expression, &mut |one| {
        if let Expression::Column(column) = one {
            columns.push(column.clone());
        }
        false
    });
    columns.iter().map(|column| bound::source_of(binder, column)).collect()
}
