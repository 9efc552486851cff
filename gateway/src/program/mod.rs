//! A batch as the session runs it: a tree of statements. The gateway's own reader (`text`) makes it of text
//! that holds no query; the compiler in Python (`compiler`) of any other, as JSON (`json`).

pub mod compiler;
mod json;
mod sql;

pub use sql::Sql;

use crate::convert::SqlType;
use crate::tds::types::Value;
use crate::text::bulk::InsertBulk;

#[derive(Debug, Default)]
pub struct Program {
    pub statements: Vec<Statement>,
    /// How many `?` it has: the variables ?1, ?2 and so on.
    pub placeholders: usize,
}

#[derive(Debug)]
pub struct Statement {
    /// Of its first token, from 1.
    pub line: u32,
    pub action: Action,
}

#[derive(Debug)]
pub enum Action {
    Query(Query),
    /// `select @a, @@b name`: variables with the names of their columns.
    Variables(Vec<(String, String)>),
    Declare(Declaration),
    /// `set @a = value`
    Assign(String, Expression),
    If {
        condition: Condition,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    While {
        condition: Condition,
        body: Vec<Statement>,
    },
    Break,
    Continue,
    Return(Option<Expression>),
    Print(Expression),
    /// One row: number, severity, state, text.
    Raise {
        message: Sql,
        /// @@error takes the number whatever the severity.
        sets_error: bool,
        /// The client is to have it at once.
        at_once: bool,
    },
    /// Seconds.
    Wait(Expression),
    Execute(Execute),
    /// `exec ('text')`
    ExecuteText(Expression),
    Use(String),
    /// `set name value …`
    Set(Vec<String>),
    /// The name of the transaction, or "".
    Begin(String),
    Commit,
    /// The name of a savepoint or of the transaction, or "" for the whole transaction.
    Rollback(String),
    Save(String),
    Try {
        body: Vec<Statement>,
        catch: Vec<Statement>,
    },
    /// One row: number, text, state; None: the error that is being caught, again.
    Throw(Option<Sql>),
    Define(Define),
    /// The rows follow in a message of their own.
    InsertBulk(InsertBulk),
}

/// A value computed by PostgreSQL unless it is there already.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Literal(Value<'static>),
    /// By its name with @, or `?1` for the first placeholder of a dynamic statement.
    Variable(String),
    Sql(Sql),
}

#[derive(Debug)]
pub enum Condition {
    /// `@@trancount > 0`, which drivers ask before a commit or a rollback.
    InTransaction,
    /// One boolean; NULL is false.
    Sql(Sql),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Gives rows or, as `select into`, their number.
    Select,
    /// Changes rows.
    Change,
    /// Counts nothing.
    Definition,
}

/// SQL for PostgreSQL as a statement of its own.
#[derive(Debug)]
pub struct Query {
    pub sql: Sql,
    pub kind: Kind,
    /// `select @a = …`: the variables that take the last row's values.
    pub assigns: Vec<String>,
    /// What the result's columns are called, where PostgreSQL would call them otherwise.
    pub columns: Option<Vec<String>>,
    /// The table of an insert, as PostgreSQL reads it.
    pub into: Option<String>,
}

/// `@a int`, `@b nvarchar(40) = 'x' output`
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// With its @, in lower case.
    pub name: String,
    pub sql_type: SqlType,
    pub output: bool,
    pub value: Option<Expression>,
}

/// A procedure call written as text.
#[derive(Debug)]
pub struct Execute {
    /// The variable that takes the return status.
    pub status: Option<String>,
    /// As written, with its qualifiers.
    pub procedure: String,
    pub arguments: Vec<Argument>,
}

#[derive(Debug)]
pub struct Argument {
    /// Without its @; "" for a positional one.
    pub name: String,
    /// None: the word `default`.
    pub value: Option<Expression>,
    /// The value is a variable that takes what the procedure gives back.
    pub output: bool,
}

/// `create procedure` and the like, compiled: SQL that is run as one.
#[derive(Debug)]
pub struct Define {
    pub statements: Vec<String>,
}
