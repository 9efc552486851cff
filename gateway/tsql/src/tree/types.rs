//! Types as they are written.

use super::Position;

/// `varchar(max)`, `decimal(10, 2)`, `double precision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// In lower case; words are parted by one blank (`character varying`). `national` is left out: every text is.
    pub name: String,
    pub arguments: Vec<TypeArgument>,
    /// The user type that stands for it.
    pub alias: Option<String>,
    pub at: Position,
}

impl TypeName {
    pub fn named(name: &str, at: Position) -> TypeName {
        TypeName { name: name.to_owned(), arguments: Vec::new(), alias: None, at }
    }

    /// Of a variable that names a cursor.
    pub fn is_cursor(&self) -> bool {
        self.name == "cursor" && self.arguments.is_empty()
    }
}

/// A type that a site has made of another one.
#[derive(Clone, Debug, PartialEq)]
pub struct UserType {
    /// In the case of its declaration.
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
