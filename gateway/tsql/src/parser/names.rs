//! Names, variables, types and numbers.

use super::Parser;
use crate::databases::Known;
use crate::error::Error;
use crate::facts::session;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::{Name, ObjectName, TypeArgument, TypeName, Variable};

/// Whether it can be a name without brackets.
pub(super) fn is_free(token: &Token<'_>) -> bool {
    matches!(token.kind, TokenKind::Name | TokenKind::Word(Class::Plain | Class::StatementOrName))
}

impl<'t> Parser<'t> {
    /// An identifier; a keyword must be in brackets.
    pub(super) fn name(&mut self) -> Result<Name, Error> {
        match self.peek() {
            Some(token) if is_free(token) => {
                self.at += 1;
                Ok(Name { text: token.value.to_string(), at: token.at })
            }
            _ => Err(self.wrong()),
        }
    }

    pub(super) fn names_in_parentheses(&mut self) -> Result<Vec<Name>, Error> {
        self.in_parentheses(Self::name)
    }

    /// A name after a period, where any word is allowed.
    pub(super) fn part(&mut self) -> Result<String, Error> {
        match self.peek() {
            Some(token) if token.is_name() => {
                self.at += 1;
                Ok(token.value.to_string())
            }
            _ => Err(self.wrong()),
        }
    }

    /// `@name`, `@@name` or `?n`.
    pub(super) fn variable(&mut self) -> Result<Variable, Error> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Variable && token.value != "@" => {
                self.at += 1;
                Ok(Variable { name: token.value.to_lowercase(), at: token.at })
            }
            _ => Err(self.wrong()),
        }
    }

    /// A variable that can be declared and set: neither one of the session nor a placeholder.
    pub(super) fn own_variable(&mut self) -> Result<Variable, Error> {
        let variable = self.variable()?;
        if variable.is_global() && session::variable(&variable.name).is_none() {
            return Err(Error::refused(&variable.name, "ringlog has a variable of this name", variable.at));
        }
        if variable.is_global() || variable.is_placeholder() {
            return Err(self.wrong_before());
        }
        Ok(variable)
    }

    pub(super) fn next_is_variable(&self) -> bool {
        self.peek().is_some_and(|token| token.kind == TokenKind::Variable)
    }

    /// `name`, `owner.name`, `database.owner.name`, `database..name`.
    pub(super) fn object_name(&mut self) -> Result<ObjectName, Error> {
        let name = self.unplaced_name()?;
        self.placed(name)
    }

    /// The name of a procedure, which is looked for when it is called: the schema of an unknown one is `database.owner`.
    pub(super) fn called_name(&mut self) -> Result<ObjectName, Error> {
        let name = self.unplaced_name()?;
        let unknown = format!("{}.{}", name.database, name.owner);
        let missing = ObjectName { owner: unknown, database: String::new(), ..name.clone() };
        Ok(self.placed(name).unwrap_or(missing))
    }

    /// A name as it is written.
    pub(super) fn unplaced_name(&mut self) -> Result<ObjectName, Error> {
        // `..t` and `.dbo.t`: the database in use
        let at = self.position();
        let mut parts = vec![if self.next_is_symbol(".") { String::new() } else { self.name()?.text }];
        while self.symbol(".") {
            parts.push(if self.next_is_symbol(".") { String::new() } else { self.part()? });
        }
        let count = parts.len();
        let mut parts = parts.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        let at = self.since(at);
        match count {
            1 => Ok(ObjectName { name: next(), at, ..ObjectName::default() }),
            2 => Ok(ObjectName { owner: next(), name: next(), at, ..ObjectName::default() }),
            3 => {
                Ok(ObjectName { database: next(), owner: next(), name: next(), at, ..ObjectName::default() })
            }
            _ => {
                let message = format!("Could not find server '{}': ringlog has no other servers.", next());
                Err(Error::new(7202, message, at).with_severity(11))
            }
        }
    }

    /// A name whose database has its schema: in a module of another schema dbo is not the current one. Error 208 if the
    /// database has none of this name.
    pub(super) fn placed(&self, mut name: ObjectName) -> Result<ObjectName, Error> {
        let Some(Known { databases, schema }) = self.known else { return Ok(name) };
        let ObjectName { database, owner, .. } = &name;
        if database.is_empty() {
            if let Some(around) = databases.of_schema(schema).filter(|_| owner.eq_ignore_ascii_case("dbo")) {
                name.database = around.to_owned();
            }
            return Ok(name);
        }
        let is_everywhere = name.is_of_dbo()
            || ["sys", "information_schema"].iter().any(|schema| owner.eq_ignore_ascii_case(schema));
        if is_everywhere || databases.has(database, owner) {
            return Ok(name);
        }
        let text = format!("Invalid object name '{}'.", name.shown());
        Err(Error::new(208, text, name.at).with_severity(16))
    }

    /// The body of a module, after the module's name, is parsed as a text of its schema.
    pub(super) fn enter_schema_of(&mut self, module: &ObjectName) {
        if let Some(known) = &mut self.known {
            let inner = known.databases.inner.get_key_value(&module.owner.to_lowercase());
            known.schema = inner.map_or(known.schema, |(schema, _)| schema);
        }
    }

    pub(super) fn integer(&mut self) -> Result<i64, Error> {
        let negative = self.symbol("-");
        match self.peek() {
            Some(token) if token.kind == TokenKind::Integer => {
                let sign = if negative { "-" } else { "" };
                let number = format!("{sign}{}", token.value).parse().map_err(|_| self.wrong())?;
                self.at += 1;
                Ok(number)
            }
            _ => Err(self.wrong()),
        }
    }

    /// A type with its length, such as `varchar(10)`, `decimal(10, 2)`, `sys.int`, `char varying(3)`.
    pub(super) fn type_name(&mut self) -> Result<TypeName, Error> {
        let start = self.position();
        let mut name = self.part()?.to_lowercase();
        if self.symbol(".") {
            name = self.part()?.to_lowercase();
        }
        if name == "national" {
            name = format!("n{}", self.part()?.to_lowercase());
        } else if name == "unsigned" {
            name = format!("u{}", self.part()?.to_lowercase());
        }
        if name == "double" {
            self.word("precision");
            name = String::from("double precision");
        } else if matches!(&*name, "char" | "character" | "nchar" | "ncharacter" | "binary") {
            name = name.replace("ncharacter", "nchar");
            if self.word("varying") {
                name.push_str(" varying");
            }
        }
        let arguments = if self.next_is_symbol("(") {
            self.in_parentheses(|parser| {
                if parser.word("max") {
                    return Ok(TypeArgument::Max);
                }
                parser.integer().map(TypeArgument::Number)
            })?
        } else {
            Vec::new()
        };
        Ok(TypeName { name, arguments, alias: None, at: self.since(start) })
    }
}
