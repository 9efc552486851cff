//! Calls of procedures, and inserts of the rows that procedures and texts select.

use super::{Expression, Filled, Query, Sql};
use crate::facts::types::Type;

/// A procedure call written as text.
#[derive(Debug, PartialEq)]
pub struct Execute {
    /// The variable for the return status.
    pub status: Option<String>,
    /// Converts the value of a function to that variable's type, like `Argument::taken`.
    pub status_taken: Option<Sql>,
    /// With its qualifiers; or the variable that contains its name, with its @.
    pub procedure: String,
    pub arguments: Vec<Argument>,
}

/// `insert … execute`: inserts the rows that a procedure or a text selects.
#[derive(Debug, PartialEq)]
pub struct InsertExecute {
    pub target: Filled,
    pub source: Executed,
}

/// The table of a parameter of a table type.
#[derive(Debug, PartialEq)]
pub struct GivenTable {
    /// The parameter, with its @.
    pub parameter: String,
    /// The name of its type.
    pub type_name: String,
    /// Its table, with all columns.
    pub target: Filled,
    /// The index of the identity column among them.
    pub identity: Option<usize>,
    /// The indexes of columns that the table itself computes.
    pub computed: Vec<usize>,
    /// Copies the rows of the table that is the parameter's value.
    pub copy: Query,
}

#[derive(Debug, PartialEq)]
pub enum Executed {
    Procedure(Execute),
    Text(Expression),
}

#[derive(Debug, PartialEq)]
pub struct Argument {
    /// Without its @; "" for a positional one.
    pub name: String,
    /// None: the keyword `default`.
    pub value: Option<Expression>,
    /// The value is a variable that receives the procedure's output.
    pub output: bool,
    /// Converts the returned value to the variable's type, if PostgreSQL lacks that type; the value is `#taken_1`.
    pub taken: Option<Sql>,
    /// The type of the value, if the text contains it.
    pub of: Option<Type>,
}

impl Execute {
    pub(super) fn values(&self) -> impl Iterator<Item = &Expression> {
        self.arguments.iter().flat_map(|argument| &argument.value)
    }

    pub(super) fn size(&self) -> usize {
        self.arguments.len() * 64 + self.values().map(Expression::size).sum::<usize>()
    }
}
