//! Names, variables, types and numbers.

use super::Parser;
use crate::databases::Known;
use crate::error::Error;
use crate::facts::session;
use crate::keywords::Class;
use crate::lexer::{Token, TokenKind};
use crate::tree::{ColumnName, Name, ObjectName, Position, TypeArgument, TypeName, Variable};

/// Whether it can be a name without brackets.
pub(super) fn is_free(token: &Token<'_>) -> bool {
    matches!(token.kind, TokenKind::Name | TokenKind::Word(Class::Plain | Class::StatementOrName))
}

/// An identifier; a keyword must be in brackets.
pub(super) fn name(parser: &mut Parser<'_>) -> Result<Name, Error> {
    match parser.peek() {
        Some(token) if is_free(token) => {
            parser.at += 1;
            Ok(Name { text: token.value.to_string(), at: token.at })
        }
        _ => Err(parser.wrong()),
    }
}

pub(super) fn names_in_parentheses(parser: &mut Parser<'_>) -> Result<Vec<Name>, Error> {
    parser.in_parentheses(name)
}

/// A name after a period, where any word is allowed.
pub(super) fn part(parser: &mut Parser<'_>) -> Result<String, Error> {
    match parser.peek() {
        Some(token) if token.is_name() => {
            parser.at += 1;
            Ok(token.value.to_string())
        }
        _ => Err(parser.wrong()),
    }
}

/// `@name`, `@@name` or `?n`.
pub(super) fn variable(parser: &mut Parser<'_>) -> Result<Variable, Error> {
    match parser.peek() {
        Some(token) if token.kind == TokenKind::Variable && token.value != "@" => {
            parser.at += 1;
            Ok(Variable { name: token.value.to_lowercase(), at: token.at })
        }
        _ => Err(parser.wrong()),
    }
}

/// A variable that can be declared and set: neither one of the session nor a placeholder.
pub(super) fn own_variable(parser: &mut Parser<'_>) -> Result<Variable, Error> {
    let variable = variable(parser)?;
    if variable.is_global() && session::variable(&variable.name).is_none() {
        return Err(Error::refused(&variable.name, "ringlog has a variable of this name", variable.at));
    }
    if variable.is_global() || variable.is_placeholder() {
        return Err(parser.wrong_before());
    }
    Ok(variable)
}

pub(super) fn next_is_variable(parser: &Parser<'_>) -> bool {
    parser.peek().is_some_and(|token| token.kind == TokenKind::Variable)
}

/// `name`, `owner.name`, `database.owner.name`, `database..name`.
pub(super) fn object_name(parser: &mut Parser<'_>) -> Result<ObjectName, Error> {
    let name = unplaced_name(parser)?;
    placed(parser, name)
}

/// The name of a procedure, which is looked for when it is called: the schema of an unknown one is `database.owner`.
pub(super) fn called_name(parser: &mut Parser<'_>) -> Result<ObjectName, Error> {
    let name = unplaced_name(parser)?;
    let unknown = format!("{}.{}", name.database, name.owner);
    let missing = ObjectName { owner: unknown, database: String::new(), ..name.clone() };
    Ok(placed(parser, name).unwrap_or(missing))
}

/// A name as it is written.
pub(super) fn unplaced_name(parser: &mut Parser<'_>) -> Result<ObjectName, Error> {
    // `..t` and `.dbo.t`: the database in use
    let at = parser.position();
    let mut parts = vec![if parser.next_is_symbol(".") { String::new() } else { name(parser)?.text }];
    while parser.symbol(".") {
        parts.push(if parser.next_is_symbol(".") { String::new() } else { part(parser)? });
    }
    let count = parts.len();
    let mut parts = parts.into_iter();
    let mut next = || parts.next().unwrap_or_default();
    let at = parser.since(at);
    match count {
        1 => Ok(ObjectName { name: next(), at, ..ObjectName::default() }),
        2 => Ok(ObjectName { owner: next(), name: next(), at, ..ObjectName::default() }),
        3 => Ok(ObjectName { database: next(), owner: next(), name: next(), at, ..ObjectName::default() }),
        _ => {
            let message = format!("Could not find server '{}': ringlog has no other servers.", next());
            Err(Error::new(7202, message, at).with_severity(11))
        }
    }
}

/// A name whose database has its schema: in a module of another schema dbo is not the current one. Error 208 if the
/// database has none of this name.
pub(super) fn placed(parser: &Parser<'_>, mut name: ObjectName) -> Result<ObjectName, Error> {
    let Some(Known { databases, schema }) = parser.known else { return Ok(name) };
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
pub(super) fn enter_schema_of(parser: &mut Parser<'_>, module: &ObjectName) {
    if let Some(known) = &mut parser.known {
        let inner = known.databases.inner.get_key_value(&module.owner.to_lowercase());
        known.schema = inner.map_or(known.schema, |(schema, _)| schema);
    }
}

pub(super) fn integer(parser: &mut Parser<'_>) -> Result<i64, Error> {
    let negative = parser.symbol("-");
    match parser.peek() {
        Some(token) if token.kind == TokenKind::Integer => {
            let sign = if negative { "-" } else { "" };
            let number = format!("{sign}{}", token.value).parse().map_err(|_| parser.wrong())?;
            parser.at += 1;
            Ok(number)
        }
        _ => Err(parser.wrong()),
    }
}

/// A type with its length, such as `varchar(10)`, `decimal(10, 2)`, `sys.int`, `char varying(3)`.
pub(super) fn type_name(parser: &mut Parser<'_>) -> Result<TypeName, Error> {
    let start = parser.position();
    let mut name = part(parser)?.to_lowercase();
    if parser.symbol(".") {
        name = part(parser)?.to_lowercase();
    }
    if name == "national" {
        name = format!("n{}", part(parser)?.to_lowercase());
    } else if name == "unsigned" {
        name = format!("u{}", part(parser)?.to_lowercase());
    }
    if name == "double" {
        parser.word("precision");
        name = String::from("double precision");
    } else if matches!(&*name, "char" | "character" | "nchar" | "ncharacter" | "binary") {
        name = name.replace("ncharacter", "nchar");
        if parser.word("varying") {
            name.push_str(" varying");
        }
    }
    let arguments = if parser.next_is_symbol("(") {
        parser.in_parentheses(|parser| {
            if parser.word("max") {
                return Ok(TypeArgument::Max);
            }
            integer(parser).map(TypeArgument::Number)
        })?
    } else {
        Vec::new()
    };
    Ok(TypeName { name, arguments, alias: None, at: parser.since(start) })
}

pub(super) fn column_name(parser: &mut Parser<'_>) -> Result<ColumnName, Error> {
    let name = object_name(parser)?;
    Ok(column(name))
}

/// A column from an object's name, whose qualifiers are those of its table.
fn column(name: ObjectName) -> ColumnName {
    let ObjectName { database, owner, name: column, at, .. } = name;
    let table = (!owner.is_empty()).then(|| {
        let at: Position = at;
        Box::new(ObjectName { owner: database, name: owner, at, ..ObjectName::default() })
    });
    ColumnName { table, column, at }
}
