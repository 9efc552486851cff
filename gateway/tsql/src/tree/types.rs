//! Types as written.

use super::Position;

/// `varchar(max)`, `decimal(10, 2)`, `double precision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// In lower case; words are separated by one blank (`character varying`). `national` is omitted: all texts are.
    pub name: String,
    pub arguments: Vec<TypeArgument>,
    /// The user type that it was declared with.
    pub alias: Option<String>,
    pub at: Position,
}

impl TypeName {
    pub fn named(name: &str, at: Position) -> TypeName {
        TypeName { name: name.to_owned(), arguments: Vec::new(), alias: None, at }
    }

    /// Whether a variable with this type names a cursor.
    pub fn is_cursor(&self) -> bool {
        self.name == "cursor" && self.arguments.is_empty()
    }
}

/// A user type of a site, based on another type.
#[derive(Clone, Debug, PartialEq)]
pub struct UserType {
    /// In the case as declared.
    pub name: String,
    pub type_: TypeName,
    pub nullable: bool,
    /// ASE: its columns are identity columns.
    pub identity: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeArgument {
    Number(i64),
    Max,
}
