//! Types as they are written.

use super::Position;

/// `varchar(max)`, `decimal(10, 2)`, `double precision`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// In lower case; words are parted by one blank (`character varying`). `national` is left out: every text is.
    pub name: String,
    pub arguments: Vec<TypeArgument>,
    pub at: Position,
}

impl TypeName {
    pub fn named(name: &str, at: Position) -> TypeName {
        TypeName { name: name.to_owned(), arguments: Vec::new(), at }
    }

    /// Of a variable that names a cursor.
    pub fn is_cursor(&self) -> bool {
        self.name == "cursor" && self.arguments.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeArgument {
    Number(i64),
    Max,
}
