//! Selects whose rows are those of one table: a cursor can find each again by its key, and change it.

use super::{order, select, sources};
use crate::bind::binder::item::{Item, Stands};
use crate::bind::binder::variables::Variables;
use crate::bind::binder::Binder;
use crate::bind::expressions::walk;
use crate::error::Error;
use crate::postgres::{Joined, Rest, Select};
use crate::resolve::{names, Scope};
use crate::tree::{Expression, Locks, Query, QueryBody, SelectItem, TableSource};

/// The parts of such a select in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfTable {
    /// The table's name as the query writes it.
    pub shown: String,
    pub table: String,
    /// The qualifier of its columns.
    pub name: String,
    /// The table in FROM, with its alias.
    pub from: String,
    /// The select list: each item depends on its row alone.
    pub items: String,
    /// The SQL after the select list.
    pub rest: String,
}

/// None for any other select.
pub fn of_table(
    query: &Query,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<Option<OfTable>, Error> {
    let QueryBody::Select(select) = &query.body else { return Ok(None) };
    let is_plain = query.with.is_empty()
        && query.offset.is_none()
        && !select.distinct
        && select.top.is_none()
        && select.into.is_none()
        && select.group_by.is_empty()
        && select.having.is_none();
    let [TableSource::Table { name: table, alias, locks }] = select.from.as_slice() else { return Ok(None) };
    if *locks != Locks::default() || !is_plain || !select.items.iter().all(is_of_row) {
        return Ok(None);
    }
    let name = match alias {
        Some(alias) => names::name(alias)?,
        None => names::qualifier(table)?,
    };
    let mut binder = Binder::new(scope, variables);
    let mut items = Vec::with_capacity(select.items.len());
    for item in &select.items {
        items.push(match item {
            SelectItem::Star { .. } => Item::star(Some(name.clone())),
            _ => select::item(&mut binder, item, select, Stands::Outermost)?,
        });
    }
    let sources = sources::sources_of(&mut binder, select)?;
    let order_by = order::order_by(&mut binder, &query.order_by, &items)?;
    let from = Joined(&sources.from, ", ").to_string();
    let select = Select { from: sources.from, conditions: sources.conditions, ..Select::default() };
    let mut rest = Rest(&select).to_string();
    if !order_by.is_empty() {
        rest.push_str(&format!(" order by {}", Joined(&order_by, ", ")));
    }
    let listed: Vec<_> = items.iter().map(Item::listed).collect();
    let (shown, items) = (table.name.clone(), Joined(&listed, ", ").to_string());
    Ok(Some(OfTable { shown, table: names::table(table)?, name, from, items, rest }))
}

fn is_of_row(item: &SelectItem) -> bool {
    match item {
        SelectItem::Star { .. } => true,
        SelectItem::Value { value, .. } => {
            !walk::has_query(value)
                && !walk::any(value, &mut |one| {
                    matches!(one, Expression::Variable(_) | Expression::Function(_))
                })
        }
        _ => false,
    }
}
