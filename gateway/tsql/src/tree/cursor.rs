//! Cursors.

use super::{Expression, Name, Query, Variable};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CursorName {
    Name { name: Name, global: bool },
    Variable(Variable),
}

impl CursorName {
    /// Its name in the session, which may be that of a variable of type cursor.
    pub fn known(&self) -> String {
        match self {
            CursorName::Name { name, .. } => name.text.to_lowercase(),
            CursorName::Variable(variable) => variable.name.clone(),
        }
    }
}

/// `declare name [insensitive] [scroll] cursor [options] for query [for read only | update [of columns]]`, and
/// `set @name = cursor … for query`.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclareCursor {
    pub name: CursorName,
    pub options: Vec<CursorOption>,
    pub query: Query,
    pub access: Option<Access>,
}

impl DeclareCursor {
    /// A rollback leaves it open (SQL Server: ROLLBACK TRANSACTION, "Effect on cursors").
    pub fn is_static(&self) -> bool {
        let is_static =
            |option: &CursorOption| matches!(option, CursorOption::Static | CursorOption::Insensitive);
        self.options.iter().any(is_static)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// `for read only`
    ReadOnly,
    /// `for update [of columns]`
    Update(Vec<Name>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorOption {
    Local,
    Global,
    ForwardOnly,
    Scroll,
    Static,
    Insensitive,
    Keyset,
    Dynamic,
    FastForward,
    ReadOnly,
    ScrollLocks,
    Optimistic,
    TypeWarning,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fetch {
    pub direction: Direction,
    pub cursor: CursorName,
    /// Empty: the row is sent to the client.
    pub into: Vec<Variable>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Direction {
    Next,
    Prior,
    First,
    Last,
    Absolute(Expression),
    Relative(Expression),
}
