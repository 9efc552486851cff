//! The columns that select lists name while they are translated, and what the lists give.

use super::title::ResultType;
use crate::facts::types::Type;
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
