//! WITH: named queries, also recursive ones.

use super::combined::other_width;
use super::locks::locks_rows;
use super::order::refuse_order;
use super::sources::Sources;
use super::{combined, select, sources};
use crate::bind::binder::item::{has_star, refuse_nameless, refuse_names, Item, Stands};
use crate::bind::binder::named::Named;
use crate::bind::binder::{Aggregates, Binder};
use crate::bind::expressions::walk;
use crate::bind::functions::next_value::refuse_next_value;
use crate::error::Error;
use crate::postgres::{self, call, Alias, Body, Listed, Query, Scalar, Source, Statement, With};
use crate::resolve::names::{self, identifier, quoted, stored};
use crate::tree::{CommonTable, JoinKind, Name, ObjectName, QueryBody, Select, SetOperator, TableSource};

/// The depth of the recursion: error 530 above 100, or above the n of `option (maxrecursion n)`.
const DEPTH: &str = "\"@depth\"";

pub fn with(
    binder: &mut Binder<'_>,
    tables: &[CommonTable],
    max_recursion: Option<u16>,
) -> Result<With, Error> {
    if tables.is_empty() {
        return Ok(With::default());
    }
    let is_recursive = |common: &CommonTable| walk::names_table(&common.query, &common.name.text);
    let mut parts = Vec::with_capacity(tables.len());
    binder.names.common.extend(tables.iter().map(|common| stored(&common.name.text)));
    binder.around.selects += 1;
    for common in tables {
        match is_recursive(common) {
            true => parts.extend(recursive(binder, common, max_recursion)?),
            false => parts.push(self::common(binder, common)?),
        }
    }
    binder.around.selects -= 1;
    Ok(With { is_recursive: tables.iter().any(is_recursive), tables: parts })
}

fn common(binder: &mut Binder<'_>, common: &CommonTable) -> Result<(Alias, Statement), Error> {
    let alias = alias(&common.name, &common.columns)?;
    refuse_order(&common.query, binder.dialect())?;
    let numbers = binder.around.next_values;
    let query = select::query(binder, &common.query, Stands::Inside)?;
    refuse_next_value(binder, numbers, 11719, common.name.at.line)?;
    refuse_names(&query.items, &common.columns, &common.name, binder.dialect())?;
    know_common(binder, common, &query.items);
    Ok((alias, query.sql.into()))
}

fn know_common(binder: &mut Binder<'_>, common: &CommonTable, items: &[Item]) {
    let name = stored(&common.name.text);
    binder.names.written.insert(name.clone(), Named::of_query(name, items, &common.columns));
}

/// `first rows union all rows of rows`: the rows contain their depth, in a table of another name.
fn recursive(
    binder: &mut Binder<'_>,
    common: &CommonTable,
    most: Option<u16>,
) -> Result<[(Alias, Statement); 2], Error> {
    let (own, line) = (&common.name.text, common.name.at.line);
    let refusal = |why| Error::refused(&format!("{own} in its own definition"), why, line);
    let query = &common.query;
    let is_plain = query.with.is_empty() && query.order_by.is_empty() && query.offset.is_none();
    let (first, others) = match &query.body {
        QueryBody::Combined { first, others } if is_plain => (first, others),
        QueryBody::Select(_) => return Err(no_union(own, line)),
        _ => return Err(refusal("its first rows must be before a union all")),
    };
    let names_itself = |body: &QueryBody| walk::body_names_table(body, own);
    if !others.iter().any(|(operator, _)| *operator == SetOperator::UnionAll) {
        return Err(no_union(own, line));
    }
    let Some(((SetOperator::UnionAll, QueryBody::Select(again)), before)) = others.split_last() else {
        return Err(refusal("its recursive rows must be after a union all"));
    };
    if !names_itself(first) && !names_itself(&QueryBody::Select(again.clone())) {
        let text = format!("An anchor member was found in the recursive query \"{own}\".");
        return Err(Error::new(247, text, line).with_severity(16));
    }
    if names_itself(first) || before.iter().any(|(_, body)| names_itself(body)) {
        return Err(refusal("it names itself once, behind the last union all"));
    }
    let anchor = combined::combined(binder, first, before, Stands::Inside)?;
    let columns = column_names(common, &anchor.items)?;
    know_common(binder, common, &anchor.items);
    let deep = format!("@{own}");
    let known = Named::of_query(stored(&deep), &anchor.items, &common.columns);
    binder.names.written.insert(stored(&deep), known);
    let (select, alias) = renamed(again, own, &deep).ok_or_else(|| {
        let why = "it must be used once in FROM, in no outer join, without distinct, group by and top";
        wrong_part(again, own, line).unwrap_or_else(|| refusal(why))
    })?;
    if locks_rows(&select) {
        return Err(refusal("its tables are not locked: take the hints away"));
    }
    let sources = sources::sources_of(binder, &select)?;
    binder.around.aggregates = Aggregates::default();
    let items = select::items(binder, &select, Stands::Inside)?;
    if binder.around.aggregates.all > 0 {
        return Err(not_allowed(467, "GROUP BY, HAVING, or aggregate functions are", own, line));
    }
    if items.len() != columns.len() || has_star(&items) {
        return Err(other_width(line));
    }
    for ((first, again), column) in anchor.items.iter().zip(&items).zip(&columns) {
        if first.of.is_tsql() && again.of.is_tsql() && first.of.sql() != again.of.sql() {
            let column = names::own_name(column);
            let text = format!(
                    "Types don't match between the anchor and the recursive part in column \"{column}\" of recursive \
                     query \"{own}\"."
                );
            return Err(Error::new(240, text, line).with_severity(16));
        }
    }
    let depth = Scalar::of_row(alias, DEPTH);
    let deeper = match most {
        None => call("tsql.deeper", [depth]),
        Some(0) => depth,
        Some(most) => call("tsql.deeper", [depth, Scalar::number(most)]),
    };
    let first = [Scalar::Star, Scalar::number(0)].map(Listed::from);
    let first = Query::of(first, anchor.sql.named("\"first\"", Vec::new()));
    let list = items.iter().map(Item::listed).chain([Listed::from(deeper)]).collect();
    let Sources { from, conditions } = sources;
    let again = Query::from(postgres::Select { list, from, conditions, ..Default::default() });
    let both = Body::Combined(Box::new(first), vec![("union all", again)]);
    let deep = quoted(&stored(&deep));
    let own = columns.iter().map(|column| Listed::from(Scalar::column(column)));
    let own = Query::of(own.collect::<Vec<_>>(), Source::Table(deep.clone(), None));
    let columns = columns.into_iter().chain([DEPTH.to_owned()]).collect();
    let name = Alias { name: names::name(&common.name)?, columns: Vec::new() };
    Ok([(Alias { name: deep, columns }, Query::from(both).into()), (name, own.into())])
}

/// 252: the query names itself, but has no UNION ALL.
fn no_union(own: &str, line: u32) -> Error {
    let text =
        format!("Recursive common table expression '{own}' does not contain a top-level UNION ALL operator.");
    Error::new(252, text, line).with_severity(16)
}

/// SQL Server's error for a recursive part with a clause that it must not have.
fn wrong_part(select: &Select, own: &str, line: u32) -> Option<Error> {
    let mut found = Vec::new();
    let mut from = select.from.clone();
    let is_outer = from.iter_mut().any(|source| rename(source, own, own, &mut found).is_none());
    let (number, what) = if select.distinct {
        (460, "DISTINCT operator is")
    } else if select.top.is_some() {
        (461, "The TOP or OFFSET operator is")
    } else if !select.group_by.is_empty() || select.having.is_some() {
        (467, "GROUP BY, HAVING, or aggregate functions are")
    } else if found.len() > 1 {
        let text = format!(
            "Recursive member of a common table expression '{own}' has multiple recursive references."
        );
        return Some(Error::new(253, text, line).with_severity(16));
    } else if is_outer {
        (462, "Outer join is")
    } else {
        return None;
    };
    Some(not_allowed(number, what, own, line))
}

fn not_allowed(number: i32, what: &str, own: &str, line: u32) -> Error {
    let text =
        format!("{what} not allowed in the recursive part of a recursive common table expression '{own}'.");
    Error::new(number, text, line).with_severity(16)
}

/// The names of rows and of their columns.
pub fn alias(name: &Name, columns: &[Name]) -> Result<Alias, Error> {
    let columns = columns.iter().map(names::name).collect::<Result<_, _>>()?;
    Ok(Alias { name: names::name(name)?, columns })
}

/// The columns of a table that names itself.
fn column_names(common: &CommonTable, items: &[Item]) -> Result<Vec<String>, Error> {
    let line = common.name.at.line;
    if !common.columns.is_empty() {
        return common.columns.iter().map(names::name).collect();
    }
    refuse_nameless(items, &common.name.text, line)?;
    let name = |item: &Item| match &item.name {
        Some(name) => identifier(name, line),
        None => Err(Error::refused(&format!("* in {}", common.name.text), "name its columns", line)),
    };
    items.iter().map(name).collect()
}

/// The select with the table under its other name, and the qualifier of its columns. None unless the table occurs once
/// in FROM and each row comes from one row.
fn renamed(select: &Select, own: &str, other: &str) -> Option<(Select, String)> {
    let mut select = select.clone();
    if select.distinct || select.top.is_some() || !select.group_by.is_empty() || select.having.is_some() {
        return None;
    }
    let mut found = Vec::new();
    for source in &mut select.from {
        rename(source, own, other, &mut found)?;
    }
    let [alias] = found.as_slice() else { return None };
    let elsewhere = QueryBody::Select(Box::new(select.clone()));
    (!walk::body_names_table(&elsewhere, own)).then(|| (select, quoted(&stored(alias))))
}

fn rename(source: &mut TableSource, own: &str, other: &str, found: &mut Vec<String>) -> Option<()> {
    match source {
        TableSource::Table { name, alias, .. } if name.is_bare() && name.name.eq_ignore_ascii_case(own) => {
            let shown = alias.get_or_insert_with(|| Name { text: own.to_owned(), at: name.at });
            found.push(shown.text.clone());
            *name = ObjectName { name: other.to_owned(), at: name.at, ..ObjectName::default() };
        }
        TableSource::Join { kind, left, right, .. } => {
            let before = found.len();
            rename(left, own, other, found)?;
            rename(right, own, other, found)?;
            let is_inner = matches!(kind, JoinKind::Inner | JoinKind::Cross | JoinKind::CrossApply);
            if found.len() > before && !is_inner {
                return None;
            }
        }
        _ => {}
    }
    Some(())
}
