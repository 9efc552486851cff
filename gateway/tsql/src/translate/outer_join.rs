//! `a.x *= b.y`, the old outer join: all rows of a. Conditions on b are part of the join, those on a restrict the
//! result.

use super::named::source_name;
use super::sources::{conjuncts, Sources};
use super::translation::Translation;
use super::walk;
use crate::error::Error;
use crate::tree::{BinaryOperator, Expression, Select};
use std::collections::BTreeSet;

/// The sides of `*=` and `=*`, that of the rows which are all kept first.
fn sides(condition: &Expression) -> Option<(&Expression, &Expression)> {
    match condition {
        Expression::Binary { operator: BinaryOperator::LeftOuter, left, right, .. } => Some((left, right)),
        Expression::Binary { operator: BinaryOperator::RightOuter, left, right, .. } => Some((right, left)),
        _ => None,
    }
}

impl Translation<'_> {
    /// FROM and WHERE of a select that has such a condition; None for any other.
    pub fn outer_join(&mut self, select: &Select) -> Result<Option<Sources>, Error> {
        let Some(condition) = &select.condition else { return Ok(None) };
        let conjuncts = conjuncts(condition);
        if !conjuncts.iter().any(|one| sides(one).is_some()) {
            return Ok(None);
        }
        let refusal = || {
            let why = "write a left join, but for two tables with all columns qualified";
            Error::refused("*= and =*", why, select.at)
        };
        let [first, second] = select.from.as_slice() else { return Err(refusal()) };
        let (Some(first_name), Some(second_name)) = (source_name(first), source_name(second)) else {
            return Err(refusal());
        };
        let names = BTreeSet::from([first_name.clone(), second_name]);
        let mut outer = BTreeSet::new();
        let (mut on, mut kept) = (Vec::new(), Vec::new());
        for one in conjuncts {
            let Some((preserved, joined)) = sides(one) else {
                kept.push((one, qualifiers(one).ok_or_else(refusal)?));
                continue;
            };
            let of = qualifiers(preserved).ok_or_else(refusal)?;
            let others = qualifiers(joined).ok_or_else(refusal)?;
            if of.len() != 1 || others.len() != 1 || of == others {
                return Err(refusal());
            }
            outer.extend(of);
            let Expression::Binary { left, right, .. } = one else { return Err(refusal()) };
            let (left, right) = (self.value(left)?.sql, self.value(right)?.sql);
            on.push(format!("({left} operator(tsql.=) {right})"));
        }
        if outer.len() != 1 || !outer.is_subset(&names) {
            return Err(refusal());
        }
        let mut conditions = Vec::new();
        for (one, of) in kept {
            if of.len() > 1 || !of.is_subset(&names) {
                return Err(refusal());
            }
            let sql = self.condition(one)?;
            if of.is_subset(&outer) {
                conditions.push(sql);
            } else {
                on.push(sql);
            }
        }
        let (preserved, joined) = if outer.contains(&first_name) { (first, second) } else { (second, first) };
        let (preserved, joined) = (self.source(preserved)?, self.source(joined)?);
        self.note(|facts| facts.adds_nulls = true);
        Ok(Some(Sources {
            from: format!("{preserved} left join {joined} on {}", on.join(" and ")),
            condition: conditions.join(" and "),
        }))
    }
}

/// The tables whose columns an expression names; None when one is not qualified or a query stands in it.
fn qualifiers(expression: &Expression) -> Option<BTreeSet<String>> {
    if walk::has_query(expression) {
        return None;
    }
    let mut found = BTreeSet::new();
    let unqualified = walk::any(expression, &mut |one| match one {
        Expression::Column(column) => match &column.table {
            None => true,
            Some(table) => {
                found.insert(table.name.to_lowercase());
                false
            }
        },
        _ => false,
    });
    (!unqualified).then_some(found)
}
