//! Selects of expressions over columns: the types of the columns, which PostgreSQL knows, say what the expressions are.

use super::select::Item;
use super::title::ResultType;
use super::translation::Translation;
use crate::facts::types::Type;
use crate::tree::{Expression, Query, QueryBody, Select, SelectItem};
use std::collections::HashMap;
use std::mem::replace;

/// The columns that the list of a select names.
#[derive(Clone, Debug)]
pub struct Asked {
    /// As SQL names them.
    pub columns: Vec<String>,
    /// The FROM that they are of.
    pub from: String,
}

/// An item of the outermost list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// `*` or `t.*`
    Star,
    /// Its type, where it is known.
    Value(Option<ResultType>),
}

/// The columns of the select list that is being written.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those met so far, as SQL names them; None: nobody asks.
    met: Option<Vec<String>>,
    types: HashMap<String, Type>,
}

impl Listing {
    /// Begins the list of another select, in which only its own columns are known. Returns the one around it.
    pub fn enter(&mut self, is_asked: bool, known: Option<&HashMap<String, Type>>) -> Listing {
        let met = is_asked.then(Vec::new);
        replace(self, Listing { met, types: known.cloned().unwrap_or_default() })
    }

    /// The type of a column, if it is known. The column is noted.
    pub fn column(&mut self, sql: &str) -> Option<Type> {
        if let Some(met) = self.met.as_mut().filter(|met| !met.iter().any(|one| one == sql)) {
            met.push(sql.to_owned());
        }
        self.types.get(sql).copied()
    }

    /// The columns that the list has named: from now on they are not noted.
    pub fn columns(&mut self) -> Vec<String> {
        self.met.take().unwrap_or_default()
    }
}

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
            let is_told = written.result_type.is_some_and(|known| !known.of.is_text());
            !is_told && !matches!(value.without_collation(), Expression::Column(_))
        }
        _ => false,
    })
}
