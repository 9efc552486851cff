//! Definitions of tables and the like, and their text. Names of tables and types are as SQL writes them.

use super::write::block;
use super::Body;
use crate::postgres::{Joined, Scalar, Statement};
use crate::quoting::literal;
use crate::resolve::names::{quoted, quoted_list};
use std::fmt::{self, Display, Formatter};

#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// The call of a procedure.
    Call(Scalar),
    /// Several steps as one statement.
    Do(Body),
    Table {
        name: String,
        is_temporary: bool,
        elements: Vec<Element>,
    },
    Alter {
        table: String,
        actions: Vec<Alteration>,
    },
    Index(Index),
    DropTable(String),
    /// Names with their schemas, as SQL writes them.
    DropIndexes {
        names: Vec<String>,
        if_exists: bool,
    },
    View {
        replaces: bool,
        name: String,
        columns: Vec<String>,
        query: Box<Statement>,
        checks: bool,
    },
    Sequence {
        creates: bool,
        name: String,
        options: Vec<(&'static str, Option<i64>)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub name: String,
    pub table: String,
    pub is_unique: bool,
    /// Columns, and whether their order is descending.
    pub keys: Vec<(String, bool)>,
    pub included: Vec<String>,
    pub condition: Option<Scalar>,
}

/// A part of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    Column(Column),
    Constraint(Constraint),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
    pub not_null: bool,
    pub default: Option<Scalar>,
    pub constraints: Vec<Constraint>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnKind {
    Typed(String),
    /// Numbered from `start`, between `bounds` if they are not PostgreSQL's.
    Identity {
        type_: String,
        start: i64,
        increment: i64,
        bounds: Option<(i64, i64)>,
    },
    Computed(String, Scalar),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub name: Option<String>,
    pub rule: Rule,
}

/// The rule of a constraint and its columns; without columns it is about the column that it follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    PrimaryKey(Vec<String>),
    Unique(Vec<String>),
    Check(Scalar),
    ForeignKey {
        columns: Vec<String>,
        table: String,
        referenced: Vec<String>,
        actions: Vec<(&'static str, &'static str)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Alteration {
    SetDefault(String, Scalar),
    /// A constraint need not hold for the rows that exist if it is not `valid`.
    Add {
        element: Element,
        valid: bool,
    },
    Drop {
        kind: &'static str,
        name: String,
        if_exists: bool,
    },
    /// The type of a column, and its values in that type.
    Type {
        column: String,
        type_: String,
        value: Scalar,
    },
    NotNull(String, bool),
    /// None: all triggers but PostgreSQL's own.
    Trigger {
        enabled: bool,
        name: Option<String>,
    },
}

impl Display for Definition {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Definition::Call(call) => write!(to, "call {call}"),
            Definition::Do(steps) => write!(to, "do {}", literal(&block(steps))),
            Definition::Table { name, is_temporary, elements } => {
                let temporary = if *is_temporary { "temporary " } else { "" };
                write!(to, "create {temporary}table {name} ({})", Joined(elements, ", "))
            }
            Definition::Alter { table, actions } => {
                write!(to, "alter table {table} {}", Joined(actions, ", "))
            }
            Definition::Index(index) => index.fmt(to),
            Definition::DropTable(name) => write!(to, "drop table {name}"),
            Definition::DropIndexes { names, if_exists } => {
                write!(to, "drop index {}{}", if_exists_words(*if_exists), names.join(", "))
            }
            Definition::View { replaces, name, columns, query, checks } => {
                let replace = if *replaces { "or replace " } else { "" };
                write!(to, "create {replace}view {name}{} as {query}", Parenthesised(columns))?;
                to.write_str(if *checks { " with check option" } else { "" })
            }
            Definition::Sequence { creates, name, options } => {
                write!(to, "{} sequence {name}", if *creates { "create" } else { "alter" })?;
                options.iter().try_for_each(|(words, number)| match number {
                    Some(number) => write!(to, " {words} {number}"),
                    None => write!(to, " {words}"),
                })
            }
        }
    }
}

fn if_exists_words(if_exists: bool) -> &'static str {
    match if_exists {
        true => "if exists ",
        false => "",
    }
}

/// ` (a, b)`, or nothing without names.
struct Parenthesised<'n>(&'n [String]);

impl Display for Parenthesised<'_> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            names => write!(to, " ({})", quoted_list(names)),
        }
    }
}

impl Display for Index {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        let unique = if self.is_unique { "unique " } else { "" };
        write!(to, "create {unique}index {} on {} (", quoted(&self.name), self.table)?;
        for (position, (column, descending)) in self.keys.iter().enumerate() {
            let order = if *descending { "desc nulls last" } else { "nulls first" };
            write!(to, "{}{} {order}", if position > 0 { ", " } else { "" }, quoted(column))?;
        }
        to.write_str(")")?;
        if !self.included.is_empty() {
            write!(to, " include ({})", quoted_list(&self.included))?;
        }
        // a unique index of T-SQL allows one null
        to.write_str(if self.is_unique { " nulls not distinct" } else { "" })?;
        self.condition.iter().try_for_each(|condition| write!(to, " where {condition}"))
    }
}

impl Display for Element {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Element::Column(column) => column.fmt(to),
            Element::Constraint(constraint) => constraint.fmt(to),
        }
    }
}

impl Display for Column {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(&quoted(&self.name))?;
        match &self.kind {
            ColumnKind::Typed(type_) => write!(to, " {type_}")?,
            ColumnKind::Identity { type_, start, increment, bounds } => {
                write!(
                    to,
                    " {type_} generated always as identity (start with {start} increment by {increment}"
                )?;
                if let Some((low, high)) = bounds {
                    write!(to, " minvalue {low} maxvalue {high}")?;
                }
                to.write_str(")")?;
            }
            ColumnKind::Computed(type_, value) => {
                write!(to, " {type_} generated always as ({value}) stored")?;
            }
        }
        to.write_str(if self.not_null { " not null" } else { "" })?;
        self.default.iter().try_for_each(|default| write!(to, " default ({default})"))?;
        self.constraints.iter().try_for_each(|constraint| write!(to, " {constraint}"))
    }
}

impl Display for Constraint {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(to, "constraint {} ", quoted(name))?;
        }
        match &self.rule {
            Rule::PrimaryKey(columns) => write!(to, "primary key{}", Parenthesised(columns)),
            // a unique constraint of T-SQL allows one null
            Rule::Unique(columns) => write!(to, "unique nulls not distinct{}", Parenthesised(columns)),
            Rule::Check(condition) => write!(to, "check ({condition})"),
            Rule::ForeignKey { columns, table, referenced, actions } => {
                if !columns.is_empty() {
                    write!(to, "foreign key{} ", Parenthesised(columns))?;
                }
                write!(to, "references {table}{}", Parenthesised(referenced))?;
                actions.iter().try_for_each(|(event, action)| write!(to, " on {event} {action}"))
            }
        }
    }
}

impl Display for Alteration {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Alteration::SetDefault(column, value) => {
                write!(to, "alter column {} set default {value}", quoted(column))
            }
            Alteration::Add { element, valid } => {
                let column = if matches!(element, Element::Column(_)) { "column " } else { "" };
                write!(to, "add {column}{element}{}", if *valid { "" } else { " not valid" })
            }
            Alteration::Drop { kind, name, if_exists } => {
                write!(to, "drop {kind} {}{}", if_exists_words(*if_exists), quoted(name))
            }
            Alteration::Type { column, type_, value } => {
                write!(to, "alter column {} type {type_} using {value}", quoted(column))
            }
            Alteration::NotNull(column, not_null) => {
                let verb = if *not_null { "set" } else { "drop" };
                write!(to, "alter column {} {verb} not null", quoted(column))
            }
            Alteration::Trigger { enabled, name } => {
                let verb = if *enabled { "enable" } else { "disable" };
                let name = name.as_deref().map_or_else(|| String::from("user"), quoted);
                write!(to, "{verb} trigger {name}")
            }
        }
    }
}
