//! Prints trees as T-SQL that parses to the same tree.

mod change;
mod definition;
mod expression;
mod query;
mod statement;

use crate::tree::{Expression, Name, ObjectName, Query, Statement, TypeArgument, TypeName};
use std::fmt::{self, Display, Formatter};

/// Items with `between` between them.
struct Joined<'a, T>(&'a [T], &'static str);

impl<T: Display> Display for Joined<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, item) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { self.1 })?;
            item.fmt(f)?;
        }
        Ok(())
    }
}

/// Comma-separated items.
fn list<T: Display>(items: &[T]) -> Joined<'_, T> {
    Joined(items, ", ")
}

/// ` (a, b)`; nothing for no items.
struct Enclosed<'a, T>(&'a [T]);

impl<T: Display> Display for Enclosed<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", list(self.0))
    }
}

/// An optional part, preceded by `before`.
struct Optional<'a, T>(&'static str, &'a Option<T>);

impl<T: Display> Display for Optional<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(item) => write!(f, "{}{item}", self.0),
            None => Ok(()),
        }
    }
}

/// A name in brackets.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0.replace(']', "]]"))
    }
}

/// Statements one after another, each on a line of its own.
pub struct Lines<'a>(pub &'a [Statement]);

impl Display for Lines<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // a semicolon ends a statement that could continue
        Joined(self.0, ";\n").fmt(f)
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Quoted(&self.text).fmt(f)
    }
}

impl Display for ObjectName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.database.is_empty() {
            write!(f, "{}.", Quoted(&self.database))?;
        }
        if !self.owner.is_empty() {
            write!(f, "{}.", Quoted(&self.owner))?;
        } else if !self.database.is_empty() {
            f.write_str(".")?;
        }
        Quoted(&self.name).fmt(f)
    }
}

impl Display for TypeName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        Enclosed(&self.arguments).fmt(f)
    }
}

impl Display for TypeArgument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TypeArgument::Number(number) => number.fmt(f),
            TypeArgument::Max => f.write_str("max"),
        }
    }
}

/// `(query)`
struct Parenthesised<'a>(&'a Query);

impl Display for Parenthesised<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "({})", self.0)
    }
}

/// A row of values.
struct Row<'a>(&'a [Expression]);

impl Display for Row<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "({})", list(self.0))
    }
}

fn rows(rows: &[Vec<Expression>]) -> Vec<Row<'_>> {
    rows.iter().map(|row| Row(row)).collect()
}
