//! Statements that change rows.

use super::*;

/// The target of the change.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A table or view; in an update or delete with FROM it may be an alias of it.
    Table(ObjectName),
    /// A table variable.
    Variable(Variable),
}

/// `output inserted.a, deleted.* into t (columns)`: `inserted` and `deleted` are qualifiers of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub items: Vec<SelectItem>,
    pub into: Option<(Target, Vec<Name>)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    pub with: Vec<CommonTable>,
    pub top: Option<Top>,
    pub target: Target,
    /// A hint locks the table against writers.
    pub locks_table: bool,
    /// Empty if none is written.
    pub columns: Vec<Name>,
    pub output: Option<Output>,
    pub source: InsertSource,
}

#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    Values(Vec<Vec<Expression>>),
    DefaultValues,
    Query(Box<Query>),
    Execute(Box<Execute>),
    ExecuteText(Box<ExecuteText>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub with: Vec<CommonTable>,
    pub top: Option<Top>,
    pub target: Target,
    /// See `Locks::table`.
    pub locks_table: bool,
    pub set: Vec<SetItem>,
    pub output: Option<Output>,
    pub from: Vec<TableSource>,
    pub condition: Option<Where>,
}

/// `column = value`, `@variable = value`, `@variable = column = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct SetItem {
    pub variable: Option<Variable>,
    pub column: Option<ColumnName>,
    pub operator: AssignOperator,
    pub value: Expression,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    pub with: Vec<CommonTable>,
    pub top: Option<Top>,
    pub target: Target,
    /// See `Locks::table`.
    pub locks_table: bool,
    pub output: Option<Output>,
    pub from: Vec<TableSource>,
    pub condition: Option<Where>,
}

/// `merge into target as alias using source on condition when … then … output …`
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    pub with: Vec<CommonTable>,
    pub target: Target,
    /// See `Locks::table`.
    pub locks_table: bool,
    pub alias: Option<Name>,
    pub source: TableSource,
    pub condition: Expression,
    /// At least one.
    pub clauses: Vec<MergeClause>,
    pub output: Option<Output>,
}

/// `when rows and condition then action`
#[derive(Clone, Debug, PartialEq)]
pub struct MergeClause {
    pub rows: MergeRows,
    pub condition: Option<Expression>,
    pub action: MergeAction,
    pub at: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeRows {
    Matched,
    /// `not matched [by target]`
    NotMatched,
    NotMatchedBySource,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    Update(Vec<SetItem>),
    Delete,
    /// Without values: the columns' defaults.
    Insert {
        columns: Vec<Name>,
        values: Option<Vec<Expression>>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Where {
    Condition(Expression),
    /// `where current of cursor`
    CurrentOf(CursorName),
}

/// `insert bulk table (column type, …) with (hints)`: the rows follow in a separate message, with their own types;
/// those written here are ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertBulk {
    pub table: ObjectName,
    /// Empty: all columns of the table.
    pub columns: Vec<Name>,
    /// The first words of the hints, in lower case.
    pub hints: Vec<String>,
}
