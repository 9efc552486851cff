//! Names as written.

use super::Position;
use crate::facts::session;
use std::fmt::{self, Display, Formatter};

/// One identifier without its brackets or quotes, in the case as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub at: Position,
}

impl Name {
    pub fn is(&self, other: &str) -> bool {
        self.text.eq_ignore_ascii_case(other)
    }
}

/// The name of an object; omitted qualifiers are "", as in `log..t`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectName {
    pub database: String,
    pub owner: String,
    pub name: String,
    pub at: Position,
    /// It means the session's temporary table of this name, from which a global one is made.
    pub is_draft: bool,
}

/// `[log]..[t]`
impl Display for ObjectName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let parts = [self.database.as_str(), &self.owner, &self.name];
        let quoted = parts.map(|part| match part {
            "" => String::new(),
            part => format!("[{}]", part.replace(']', "]]")),
        });
        f.write_str(quoted.join(".").trim_start_matches('.'))
    }
}

impl ObjectName {
    /// `#t` or `##t`.
    pub fn is_temporary(&self) -> bool {
        self.name.starts_with('#')
    }

    /// `##t`.
    pub fn is_global(&self) -> bool {
        self.name.starts_with("##") && !self.is_draft
    }

    /// Whether it is the temporary table of a table variable.
    pub fn is_table_variable(&self) -> bool {
        self.name.starts_with("#@")
    }

    /// The name as written, for a message.
    pub fn shown(&self) -> String {
        let ObjectName { database, owner, name, .. } = self;
        match (database.is_empty(), owner.is_empty()) {
            (false, _) => format!("{database}.{owner}.{name}"),
            (true, false) => format!("{owner}.{name}"),
            (true, true) => name.clone(),
        }
    }

    /// Whether its schema is dbo, named or not.
    pub fn is_of_dbo(&self) -> bool {
        self.owner.is_empty() || self.owner.eq_ignore_ascii_case("dbo")
    }

    /// A name of one part.
    pub fn is_bare(&self) -> bool {
        self.owner.is_empty() && self.database.is_empty()
    }
}

/// `@name` or `@@name`, in lower case, with its @; `?1`, `?2` and so on for placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub at: Position,
}

impl Variable {
    /// `@@name`: a variable of the session.
    pub fn is_global(&self) -> bool {
        session::is_global(&self.name)
    }

    /// It replaces a literal of the text.
    pub fn is_literal(&self) -> bool {
        self.name.starts_with('#')
    }

    /// Whether it is the placeholder of a parameter.
    pub fn is_placeholder(&self) -> bool {
        self.name.starts_with('?')
    }
}
