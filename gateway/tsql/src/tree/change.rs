//! Statements that change rows.

use super::{
    AssignOperator, ColumnName, CommonTable, CursorName, Execute, ExecuteText, Expression, Name, ObjectName,
    Query, SelectItem, TableSource, Top, Variable,
};

/// What is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A table or view; in an update or delete with FROM it may be an alias of it.
    Table(ObjectName),
    /// A table variable.
    Variable(Variable),
}

/// `output inserted.a, deleted.* into t (columns)`: `inserted` and `deleted` stand as tables of columns.
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
    /// Empty when none is written.
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
    pub output: Option<Output>,
    pub from: Vec<TableSource>,
    pub condition: Option<Where>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Where {
    Condition(Expression),
    /// `where current of cursor`
    CurrentOf(CursorName),
}

/// `insert bulk table (column type, …) with (hints)`: the rows follow in a message of their own. The types say
/// nothing new, since the rows come with theirs, and are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertBulk {
    pub table: ObjectName,
    /// Empty: all columns of the table.
    pub columns: Vec<Name>,
    /// The first words of the hints, in lower case.
    pub hints: Vec<String>,
}
