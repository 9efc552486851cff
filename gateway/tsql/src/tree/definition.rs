//! Statements that define tables, views, indexes and rights.

use super::{Expression, Name, ObjectName, Position, Query, TypeName};
use std::fmt::{self, Display, Formatter};

/// For objects that are defined by their text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Create,
    Alter,
    CreateOrAlter,
}

impl Mode {
    pub fn action(self) -> &'static str {
        match self {
            Mode::Create => "create",
            Mode::Alter => "alter",
            Mode::CreateOrAlter => "create or alter",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub table: ObjectName,
    pub elements: Vec<TableElement>,
    pub indexes: Vec<CreateIndex>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableElement {
    Column(ColumnDefinition),
    Constraint(Constraint),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: Name,
    pub kind: ColumnKind,
    /// `null` or `not null`; None if neither is written.
    pub nullable: Option<bool>,
    pub identity: Option<Identity>,
    pub collation: Option<Name>,
    /// DEFAULT is one of them; keys have no columns: they are keys of this column.
    pub constraints: Vec<Constraint>,
    /// `with values`: existing rows get the default, though they could be null.
    pub with_values: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnKind {
    Typed(TypeName),
    /// `name as value [persisted]`
    Computed {
        value: Expression,
        persisted: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub seed: i64,
    pub increment: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub name: Option<Name>,
    pub kind: ConstraintKind,
    pub at: Position,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConstraintKind {
    /// A primary key, or a unique constraint. `clustered`: None if the statement does not say.
    Key {
        primary: bool,
        columns: Vec<Name>,
        clustered: Option<bool>,
    },
    Check(Expression),
    ForeignKey {
        columns: Vec<Name>,
        references: References,
    },
    /// `default value`, and `default value for column` of `alter table … add constraint`.
    Default {
        value: Expression,
        column: Option<Name>,
    },
}

/// `references table (columns) on delete … on update …`
#[derive(Clone, Debug, PartialEq)]
pub struct References {
    pub table: ObjectName,
    /// Empty: the primary key.
    pub columns: Vec<Name>,
    pub on_delete: KeyAction,
    pub on_update: KeyAction,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAction {
    #[default]
    NoAction,
    Cascade,
    SetNull,
    SetDefault,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterTable {
    Add {
        elements: Vec<TableElement>,
        check_existing: bool,
    },
    Drop(Vec<Dropped>),
    /// `alter column name type [collate c] [null | not null]`, ASE: `modify name type`
    AlterColumn {
        column: Name,
        type_: TypeName,
        collation: Option<Name>,
        nullable: Option<bool>,
    },
    /// ASE: `replace column default value`
    ReplaceDefault {
        column: Name,
        value: Expression,
    },
    /// `[with check] [no]check constraint names`; no names: all
    Check {
        enabled: bool,
        /// Existing rows are checked.
        check_existing: bool,
        constraints: Vec<Name>,
    },
    /// `enable | disable trigger names`; no names: all
    Trigger {
        enabled: bool,
        triggers: Vec<Name>,
    },
}

/// One of `alter table … drop`.
#[derive(Clone, Debug, PartialEq)]
pub enum Dropped {
    Column {
        name: Name,
        if_exists: bool,
    },
    Constraint {
        name: Name,
        if_exists: bool,
    },
    /// Without a keyword: T-SQL drops a constraint, ASE a column.
    Bare(Name),
}

/// `create type name from type [null | not null]`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateType {
    pub name: ObjectName,
    pub type_: TypeName,
    pub nullable: bool,
}

/// `create type name as table (…)`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTableType {
    pub name: ObjectName,
    pub elements: Vec<TableElement>,
    /// `table (…)`: its declaration as the catalogue stores it.
    pub declared: String,
}

/// `create sequence`, `alter sequence`
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    pub creates: bool,
    pub name: ObjectName,
    pub type_: TypeName,
    /// `start with` and `restart with`
    pub start: Option<i64>,
    pub restarts: bool,
    pub increment: Option<i64>,
    /// None: the type's, or unchanged.
    pub least: Option<i64>,
    pub most: Option<i64>,
    pub cycles: Option<bool>,
}

impl Sequence {
    /// A sequence without further options.
    pub fn of(name: ObjectName, creates: bool) -> Sequence {
        Sequence {
            creates,
            type_: TypeName::named("bigint", name.at),
            name,
            start: None,
            restarts: false,
            increment: None,
            least: None,
            most: None,
            cycles: None,
        }
    }
}

/// `create rule name as condition`, `create default name as value`. Its text is the whole batch.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateBindable {
    pub kind: ObjectKind,
    pub name: ObjectName,
    pub value: Expression,
    /// For a rule: its variable, with its @, which is the value of a column.
    pub variable: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub name: Name,
    pub table: ObjectName,
    pub unique: bool,
    pub clustered: bool,
    /// Each with whether it is descending.
    pub columns: Vec<(Name, bool)>,
    pub include: Vec<Name>,
    pub condition: Option<Expression>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropIndex {
    pub name: Name,
    pub table: ObjectName,
    pub if_exists: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub mode: Mode,
    pub name: ObjectName,
    pub columns: Vec<Name>,
    pub query: Query,
    pub check_option: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    Table,
    View,
    Procedure,
    Function,
    Trigger,
    Synonym,
    Default,
    Rule,
    Type,
    Sequence,
    Database,
    Schema,
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

#[derive(Clone, Debug, PartialEq)]
pub struct DropObjects {
    pub kind: ObjectKind,
    pub names: Vec<ObjectName>,
    pub if_exists: bool,
}

/// `grant rights on object to roles`, `revoke rights on object from roles`.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub revoke: bool,
    /// In lower case; `exec` is `execute`.
    pub rights: Vec<String>,
    pub object: ObjectName,
    pub roles: Vec<Name>,
}

/// `dbcc checkident (table, reseed, value) with no_infomsgs`
#[derive(Clone, Debug, PartialEq)]
pub struct CheckIdentity {
    /// Its name as a text, with its database.
    pub table: String,
    pub reseed: Reseed,
    pub silent: bool,
    pub at: Position,
}

/// The effect on the current identity value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reseed {
    No,
    /// Raise it to the greatest value of the column, if that is beyond it.
    Raise,
    To(i64),
}

/// `alter database name set option value, …`
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDatabase {
    /// None: the current one.
    pub name: Option<Name>,
    pub collation: Option<Name>,
    /// Options and their values in lower case, none of which has an effect.
    pub options: Vec<String>,
}
