//! The items of a select list, and their names.

use super::title::{ResultType, Title};
use crate::bind::values::{Constant, Value};
use crate::error::Error;
use crate::facts::types::{Type, UNKNOWN};
use crate::postgres::{Listed, Query, Scalar};
use crate::resolve::names::identifier;
use crate::tree::{Name, Position};
use crate::Dialect;
use std::cmp::Ordering;
use std::collections::HashSet;

/// PostgreSQL's name of an unnamed column.
pub const NAMELESS: &str = "\"?column?\"";

/// How FOR JSON writes an item.
#[derive(Clone, Debug, Default)]
pub struct Property {
    /// Its name and a colon, if a table declares it.
    pub name: Option<Scalar>,
    /// The index of the source to which the column belongs.
    pub source: Option<usize>,
    /// It is a column of an unknown source.
    pub is_strange: bool,
    /// Its text is JSON.
    pub is_json: bool,
}

/// An item of a select list.
#[derive(Clone, Debug)]
pub struct Item {
    pub value: Scalar,
    /// Its name in SQL, if the value has another one or none.
    pub alias: Option<String>,
    /// As displayed: "" for none, None for a star.
    pub name: Option<String>,
    /// The name is that of the table's column.
    pub is_own: bool,
    /// Each use of it would return another value.
    pub has_new_id: bool,
    /// The target of its assignment.
    pub variable: Option<String>,
    /// Its type, if known and not that of a table's column.
    pub result_type: Option<ResultType>,
    pub of: Type,
    /// Whether it is a whole literal or NULL, whose type depends on the other selects of a UNION.
    pub constant: Constant,
    /// For a select for json.
    pub property: Property,
}

impl Item {
    /// `*`, or `row.*`
    pub fn star(row: Option<String>) -> Item {
        Item::new(Scalar::Column(row, String::from("*")), None)
    }

    /// A value of its type beside those of other selects.
    pub fn beside(&self, of: Type) -> Value {
        Value { constant: self.constant.clone(), ..Value::new(Scalar::Null, of) }
    }

    /// The column of this name that it is in an enclosing query.
    pub fn column(&self, name: &str) -> Value {
        match self.constant {
            Constant::Null => Value::null(),
            _ => Value::new(Scalar::column(name), self.of),
        }
    }

    pub fn listed(&self) -> Listed {
        Listed { value: self.value.clone(), name: self.alias.clone() }
    }

    /// `name`: as in `Item`.
    pub fn new(value: Scalar, name: Option<String>) -> Item {
        Item {
            value,
            alias: None,
            name,
            is_own: false,
            has_new_id: false,
            variable: None,
            result_type: None,
            of: UNKNOWN,
            constant: Constant::None,
            property: Property::default(),
        }
    }

    /// Its name in PostgreSQL's SQL.
    pub fn shown(&self, line: u32) -> Result<String, Error> {
        match self.name.as_deref() {
            None | Some("") => Ok(NAMELESS.to_owned()),
            Some(name) => identifier(name, line),
        }
    }
}

/// A query and the items of its list; of several selects those of the first.
#[derive(Debug)]
pub struct Written {
    pub sql: Query,
    pub items: Vec<Item>,
}

/// The context of a select.
#[derive(Clone, Copy, PartialEq)]
pub enum Stands {
    /// It may assign to variables and fill a table; a NULL alone is an int.
    Outermost,
    /// The first of several combined selects: it may fill a table.
    First,
    Inside,
}

/// The headings of the columns; None if a star has PostgreSQL's.
pub fn titles(items: Vec<Item>) -> Option<Vec<Title>> {
    let title = |Item { name, is_own, result_type, .. }: Item| {
        name.map(|text| Title { is_own, result_type, ..Title::given(text) })
    };
    items.into_iter().map(title).collect()
}

/// Refuses a table whose columns have no names (8155), are more or fewer than the names (8158, 8159) or have a repeated
/// one (8156). `columns`: names after its own.
pub fn refuse_names(items: &[Item], columns: &[Name], table: &Name, dialect: &Dialect) -> Result<(), Error> {
    if columns.is_empty() {
        refuse_nameless(items, &table.text, table.at.line)?;
    } else if !has_star(items) {
        refuse_number(items.len(), columns.len(), &table.text, table.at)?;
    }
    let own = items.iter().filter_map(|item| item.name.as_deref());
    let twice = match columns {
        [] => named_twice(own),
        columns => named_twice(columns.iter().map(|name| name.text.as_str())),
    };
    match twice.filter(|_| dialect.is_strict) {
        None => Ok(()),
        Some(name) => {
            let text = format!("The column '{name}' was specified multiple times for '{}'.", table.text);
            Err(Error::new(8156, text, table.at).with_severity(16))
        }
    }
}

/// 8158 and 8159: a table has another number of columns than its list of names.
pub fn refuse_number(own: usize, named: usize, table: &str, at: Position) -> Result<(), Error> {
    let (number, which) = match own.cmp(&named) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => (8158, "more"),
        Ordering::Less => (8159, "fewer"),
    };
    let text = format!("'{table}' has {which} columns than were specified in the column list.");
    Err(Error::new(number, text, at).with_severity(16))
}

/// The first repeated name, without regard to case.
pub fn named_twice<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let mut known = HashSet::new();
    names.into_iter().find(|name| !name.is_empty() && !known.insert(name.to_lowercase()))
}

/// Error 8155 for a table whose columns have no names.
pub fn refuse_nameless(items: &[Item], table: &str, line: u32) -> Result<(), Error> {
    match items.iter().position(|item| item.name.as_deref() == Some("")) {
        None => Ok(()),
        Some(index) => {
            let text = format!("No column name was specified for column {} of '{table}'.", index + 1);
            Err(Error::new(8155, text, line).with_severity(16))
        }
    }
}

/// Whether a star stands for columns that are not known.
pub fn has_star(items: &[Item]) -> bool {
    items.iter().any(|item| item.name.is_none())
}

/// A name for each item of a list without a star: `"c1", "c2"`.
pub fn numbered(items: &[Item]) -> Vec<String> {
    (1..=items.len()).map(|index| format!("\"c{index}\"")).collect()
}

/// The items of a list without a star, from a query whose columns are `"c1"`, `"c2"` …
pub fn renamed(items: &[Item]) -> Result<Vec<Listed>, Error> {
    let columns = numbered(items).into_iter().map(Scalar::column);
    columns.zip(items).map(|(column, item)| Ok(Listed::named(column, item.shown(0)?))).collect()
}
