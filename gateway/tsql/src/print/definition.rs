use super::{list, Enclosed, Lines, Optional, Quoted};
use crate::tree::*;
use std::fmt::{self, Display, Formatter};

impl Display for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Create => "create",
            Mode::Alter => "alter",
            Mode::CreateOrAlter => "create or alter",
        })
    }
}

impl Display for CreateTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "create table {} (", self.table)?;
        list(&self.elements).fmt(f)?;
        for index in &self.indexes {
            let unique = if index.unique { "unique " } else { "" };
            write!(f, ", index {} {unique}", index.name)?;
            index.columns_and_rest(f)?;
        }
        f.write_str(")")
    }
}

impl Display for TableElement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TableElement::Column(column) => column.fmt(f),
            TableElement::Constraint(constraint) => constraint.fmt(f),
        }
    }
}

impl Display for ColumnDefinition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        match &self.kind {
            ColumnKind::Typed(type_) => write!(f, " {type_}")?,
            ColumnKind::Computed { value, persisted } => {
                write!(f, " as ({value}){}", if *persisted { " persisted" } else { "" })?;
            }
        }
        if let Some(Identity { seed, increment }) = self.identity {
            write!(f, " identity({seed}, {increment})")?;
        }
        Optional(" collate ", &self.collation).fmt(f)?;
        f.write_str(match self.nullable {
            Some(true) => " null",
            Some(false) => " not null",
            None => "",
        })?;
        self.constraints.iter().try_for_each(|constraint| write!(f, " {constraint}"))?;
        f.write_str(if self.with_values { " with values" } else { "" })
    }
}

impl Display for Constraint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "constraint {name} ")?;
        }
        match &self.kind {
            ConstraintKind::PrimaryKey { columns } => write!(f, "primary key{}", Enclosed(columns)),
            ConstraintKind::Unique { columns } => write!(f, "unique{}", Enclosed(columns)),
            ConstraintKind::Check(condition) => write!(f, "check ({condition})"),
            ConstraintKind::ForeignKey { columns, references } => {
                write!(f, "foreign key{} {references}", Enclosed(columns))
            }
            ConstraintKind::Default { value, column } => {
                write!(f, "default ({value}){}", Optional(" for ", column))
            }
        }
    }
}

impl Display for References {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "references {}{}", self.table, Enclosed(&self.columns))?;
        write!(f, " on delete {} on update {}", self.on_delete, self.on_update)
    }
}

impl Display for KeyAction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyAction::NoAction => "no action",
            KeyAction::Cascade => "cascade",
            KeyAction::SetNull => "set null",
            KeyAction::SetDefault => "set default",
        })
    }
}

/// `all`, or names.
struct OrAll<'a>(&'a [Name]);

impl Display for OrAll<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("all");
        }
        list(self.0).fmt(f)
    }
}

impl Display for AlterTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AlterTable::Add { elements, check_existing } => {
                write!(f, "{}add {}", if *check_existing { "" } else { "with nocheck " }, list(elements))
            }
            AlterTable::Drop(dropped) => write!(f, "drop {}", list(dropped)),
            AlterTable::AlterColumn { column, type_, collation, nullable } => {
                write!(f, "alter column {column} {type_}{}", Optional(" collate ", collation))?;
                f.write_str(match nullable {
                    Some(true) => " null",
                    Some(false) => " not null",
                    None => "",
                })
            }
            AlterTable::ReplaceDefault { column, value } => write!(f, "replace {column} default {value}"),
            AlterTable::Check { enabled, check_existing, constraints } => {
                let with = if *check_existing { "with check " } else { "" };
                let no = if *enabled { "" } else { "no" };
                write!(f, "{with}{no}check constraint {}", OrAll(constraints))
            }
            AlterTable::Trigger { enabled, triggers } => {
                write!(f, "{} trigger {}", if *enabled { "enable" } else { "disable" }, OrAll(triggers))
            }
        }
    }
}

impl Display for Dropped {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let if_exists = |if_exists: &bool| if *if_exists { "if exists " } else { "" };
        match self {
            Dropped::Column { name, if_exists: i } => write!(f, "column {}{name}", if_exists(i)),
            Dropped::Constraint { name, if_exists: i } => write!(f, "constraint {}{name}", if_exists(i)),
            Dropped::Bare(name) => name.fmt(f),
        }
    }
}

impl Display for CreateIndex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let unique = if self.unique { "unique " } else { "" };
        write!(f, "create {unique}index {} on {} ", self.name, self.table)?;
        self.columns_and_rest(f)
    }
}

impl CreateIndex {
    fn columns_and_rest(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (place, (column, descending)) in self.columns.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { ", " })?;
            write!(f, "{column}{}", if *descending { " desc" } else { "" })?;
        }
        f.write_str(")")?;
        if !self.include.is_empty() {
            write!(f, " include{}", Enclosed(&self.include))?;
        }
        Optional(" where ", &self.condition).fmt(f)
    }
}

impl Display for DropIndex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name, self.table)
    }
}

impl Display for CreateView {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} view {}{} as {}", self.mode, self.name, Enclosed(&self.columns), self.query)?;
        f.write_str(if self.check_option { " with check option" } else { "" })
    }
}

impl Display for CreateType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let nullable = if self.nullable { "null" } else { "not null" };
        write!(f, "create type {} from {} {nullable}", self.name, self.type_)
    }
}

impl Display for CreateTableType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "create type {} as {}", self.name, self.declared())
    }
}

impl CreateTableType {
    /// `table (…)` with its elements as T-SQL.
    pub fn declared(&self) -> String {
        format!("table{}", Enclosed(&self.elements))
    }
}

impl Display for Sequence {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.creates {
            true => write!(f, "create sequence {} as {}", self.name, self.type_)?,
            false => write!(f, "alter sequence {}", self.name)?,
        }
        if self.restarts {
            f.write_str(" restart")?;
        } else if self.start.is_some() {
            f.write_str(" start")?;
        }
        let numbers = [
            (" with", self.start),
            (" increment by", self.increment),
            (" minvalue", self.least),
            (" maxvalue", self.most),
        ];
        for (words, number) in numbers {
            if let Some(number) = number {
                write!(f, "{words} {number}")?;
            }
        }
        f.write_str(match self.cycles {
            Some(true) => " cycle",
            Some(false) => " no cycle",
            None => "",
        })
    }
}

impl Display for CreateBindable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "create {} {} as {}", self.kind, self.name, self.value)
    }
}

impl Display for ObjectKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObjectKind::Table => "table",
            ObjectKind::View => "view",
            ObjectKind::Procedure => "procedure",
            ObjectKind::Function => "function",
            ObjectKind::Trigger => "trigger",
            ObjectKind::Synonym => "synonym",
            ObjectKind::Default => "default",
            ObjectKind::Rule => "rule",
            ObjectKind::Type => "type",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Database => "database",
            ObjectKind::Schema => "schema",
        })
    }
}

impl Display for DropObjects {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let if_exists = if self.if_exists { "if exists " } else { "" };
        write!(f, "drop {} {if_exists}{}", self.kind, list(&self.names))
    }
}

impl Display for Grant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (verb, to) = if self.revoke { ("revoke", "from") } else { ("grant", "to") };
        write!(f, "{verb} {} on {} {to} ", list(&self.rights), self.object)?;
        for (place, role) in self.roles.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { ", " })?;
            Quoted(&role.text).fmt(f)?;
        }
        Ok(())
    }
}

impl Display for AlterDatabase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("alter database ")?;
        match &self.name {
            Some(name) => name.fmt(f)?,
            None => f.write_str("current")?,
        }
        match &self.collation {
            Some(collation) => write!(f, " collate {collation}"),
            None => write!(f, " set {}", list(&self.options)),
        }
    }
}

impl Display for CheckIdentity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "dbcc checkident ('{}'", self.table.replace('\'', "''"))?;
        match self.reseed {
            Reseed::No => f.write_str(", noreseed)")?,
            Reseed::Raise => f.write_str(")")?,
            Reseed::To(value) => write!(f, ", reseed, {value})")?,
        }
        f.write_str(if self.silent { " with no_infomsgs" } else { "" })
    }
}

impl Display for CreateProcedure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let CreateProcedure { mode, name, parameters, as_owner, body } = self;
        let with = if as_owner.is_some() { " with execute as owner" } else { "" };
        write!(f, "{mode} procedure {name}{}{with} as\n{}", Enclosed(parameters), Lines(body))
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.shown, self.type_, Optional(" = ", &self.default))?;
        f.write_str(if self.output { " output" } else { "" })?;
        f.write_str(if self.readonly { " readonly" } else { "" })
    }
}

impl Display for CreateFunction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let CreateFunction { mode, name, parameters, returns, body, options } = self;
        write!(f, "{mode} function {name}({}) returns ", list(parameters))?;
        match returns {
            Returns::Value(type_) => type_.fmt(f)?,
            Returns::Rows(_) => f.write_str("table")?,
            Returns::Table { variable, elements } => write!(f, "{variable} table{}", Enclosed(elements))?,
        }
        if !options.is_empty() {
            write!(f, " with {}", list(options))?;
        }
        match returns {
            Returns::Rows(query) => write!(f, " as return {query}"),
            _ => write!(f, " as {}", Lines(body)),
        }
    }
}

impl Display for CreateTrigger {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let CreateTrigger { mode, name, table, time, events, body } = self;
        let time = match time {
            TriggerTime::After => "after",
            TriggerTime::InsteadOf => "instead of",
        };
        write!(f, "{mode} trigger {name} on {table} {time} {} as\n{}", list(events), Lines(body))
    }
}

impl Display for TriggerEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TriggerEvent::Insert => "insert",
            TriggerEvent::Update => "update",
            TriggerEvent::Delete => "delete",
        })
    }
}
