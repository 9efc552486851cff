//! Procedures, functions and triggers: their definitions and their calls.

use super::*;

/// Its text is the whole batch, which is not part of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateProcedure {
    pub mode: Mode,
    pub name: ObjectName,
    pub parameters: Vec<Parameter>,
    /// `with execute as owner`
    pub as_owner: Option<Position>,
    pub body: Vec<Statement>,
}

/// `@name type [= default] [output] [readonly]`
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub variable: Variable,
    /// The name as written, with its @.
    pub shown: String,
    pub type_: TypeName,
    pub default: Option<Expression>,
    pub output: bool,
    pub readonly: bool,
    /// The columns of a table type, after its resolution.
    pub table: Option<Vec<TableElement>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateFunction {
    pub mode: Mode,
    pub name: ObjectName,
    pub parameters: Vec<Parameter>,
    pub returns: Returns,
    /// Empty if it returns the rows of one query.
    pub body: Vec<Statement>,
    /// `with schemabinding, returns null on null input, …`, in lower case.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Returns {
    Value(TypeName),
    /// `returns table as return (query)`
    Rows(Box<Query>),
    /// `returns @t table (…) as begin … return end`
    Table {
        variable: Variable,
        elements: Vec<TableElement>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTrigger {
    pub mode: Mode,
    pub name: ObjectName,
    pub table: ObjectName,
    pub time: TriggerTime,
    pub events: Vec<TriggerEvent>,
    pub body: Vec<Statement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerTime {
    /// `for` and `after`
    After,
    InsteadOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerEvent {
    Insert,
    Update,
    Delete,
}

/// `exec [@status =] procedure arguments`
#[derive(Clone, Debug, PartialEq)]
pub struct Execute {
    pub status: Option<Variable>,
    /// A procedure's name, or the variable that contains it.
    pub procedure: Result<ObjectName, Variable>,
    pub arguments: Vec<Argument>,
    pub at: Position,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// With its @, as written; None for a positional one.
    pub name: Option<String>,
    pub value: ArgumentValue,
    pub at: Position,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentValue {
    /// A literal (a bare word is a text), a variable, or, as an extension of T-SQL, any expression.
    Value(Expression),
    /// `@variable output`
    Output(Variable),
    Default,
}

/// `exec ('text' + @more)`, `exec ('text', @argument) as user 'x'`: only the text is supported.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecuteText {
    pub text: Expression,
    pub at: Position,
}

impl CreateProcedure {
    /// Whether it is temporary.
    pub fn is_temporary(&self) -> bool {
        self.name.is_temporary()
    }
}

impl Parameter {
    pub fn name(&self) -> Name {
        Name { text: self.shown.clone(), at: self.variable.at }
    }
}
