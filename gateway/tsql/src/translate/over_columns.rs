//! Selects of expressions over columns: the types of the columns, which PostgreSQL knows, say what the expressions are.

use super::item::Item;
use super::listing::ListItem;
use super::translation::Translation;
use crate::tree::{Expression, Query, QueryBody, Select, SelectItem};

impl Translation<'_> {
    /// The items of a query's list; None if it has no expression over columns.
    pub fn list_items(&self, query: &Query, items: &[Item]) -> Option<Vec<ListItem>> {
        let asks = self.asked.iter().any(|asked| !asked.columns.is_empty());
        let depends = match &query.body {
            QueryBody::Select(select) => has_unknown(select, items),
            QueryBody::Combined { .. } => true,
            QueryBody::Values(_) | QueryBody::Parenthesised(_) => false,
        };
        let listed = |item: &Item| match item.name {
            None => ListItem::Star,
            Some(_) => ListItem::Value(item.result_type),
        };
        // with the types in hand there is nothing more to ask
        (!self.known.is_empty() || asks && depends).then(|| items.iter().map(listed).collect())
    }
}

fn has_unknown(select: &Select, items: &[Item]) -> bool {
    select.items.iter().zip(items).any(|(item, written)| match item {
        SelectItem::Value { value, .. } => {
            // a text may be longer or shorter, or have other characters
            let is_known = written.result_type.is_some_and(|known| !known.of.is_text());
            !is_known && !matches!(value.without_collation(), Expression::Column(_))
        }
        _ => false,
    })
}
