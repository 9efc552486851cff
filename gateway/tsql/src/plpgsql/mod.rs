//! Statements of PL/pgSQL, and their text.

mod definition;
mod write;

pub use definition::{Alteration, Column, ColumnKind, Constraint, Definition, Element, Index, Rule};

use crate::postgres::{Query, Scalar, Statement};
use std::borrow::Cow;

/// A statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The steps that follow are written on this line, that of their T-SQL, if it is not passed already.
    Line(u32),
    Assign(String, Scalar),
    Perform(Scalar),
    Sql(Statement),
    /// A change of one row that returns a value to a variable.
    SqlInto(Statement, String),
    Define(Definition),
    /// Conditions with their steps, and the steps if none is true.
    If(Vec<(Scalar, Body)>, Body),
    Loop(Body),
    /// Steps for each row of a query, which is in the variable.
    For(String, Query, Body),
    Block(Block),
    /// Leaves the block with this label, or the loop.
    Exit(Option<String>),
    /// Leaves the loop if the condition is not true.
    ExitUnless(Scalar),
    Continue,
    Raise(Raise),
    /// Raises the error that is being handled.
    RaiseAgain,
    /// The number of rows of the last statement, to a variable.
    CountRows(String),
    /// Variables with items of the error that is being handled.
    Diagnose(Vec<(String, &'static str)>),
    Open {
        cursor: String,
        scrolls: bool,
        query: Statement,
    },
    /// A cursor's direction, with its count, and the variable of the row.
    Fetch {
        direction: &'static str,
        count: Option<Scalar>,
        cursor: String,
        into: String,
    },
    Move(&'static str, String),
    Close(String),
    Return(Option<Scalar>),
    ReturnRows(Query),
}

pub type Body = Vec<Step>;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub label: Option<String>,
    pub body: Body,
    /// A condition of errors, and the steps after one.
    pub handler: Option<(&'static str, Body)>,
}

/// A notice or an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Raise {
    /// `notice` or `exception`.
    pub level: &'static str,
    pub code: Option<&'static str>,
    pub message: Scalar,
    pub detail: Option<Scalar>,
    pub hint: Option<Scalar>,
}

/// A variable, with the value that it begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    pub name: String,
    pub type_: Cow<'static, str>,
    pub value: Option<Scalar>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// `in`, `out` or `inout`.
    pub mode: &'static str,
    pub name: String,
    pub type_: String,
    pub default: Option<Scalar>,
}

/// The definition of a function or procedure.
#[derive(Clone, Debug, PartialEq)]
pub struct Routine {
    pub is_procedure: bool,
    pub name: String,
    pub arguments: Vec<Argument>,
    /// The type of its value, or `table (…)`.
    pub returns: Option<String>,
    /// Whether PostgreSQL may call it less often than a statement says: `stable` or `volatile`.
    pub volatility: Option<&'static str>,
    pub is_strict: bool,
    /// It has the rights of its owner.
    pub security_definer: bool,
    pub search_path: String,
    pub variables: Vec<Declared>,
    pub body: Body,
    /// Lines of comment after the body.
    pub notes: Vec<String>,
}

impl Step {
    pub fn assign(variable: impl Into<String>, value: Scalar) -> Step {
        Step::Assign(variable.into(), value)
    }

    pub fn if_(condition: Scalar, then: impl Into<Body>) -> Step {
        Step::If(vec![(condition, then.into())], Body::new())
    }

    /// Leaves the block with this label.
    pub fn exit(label: impl Into<String>) -> Step {
        Step::Exit(Some(label.into()))
    }

    pub fn notice(code: Option<&'static str>, message: Scalar, detail: Option<Scalar>) -> Step {
        Step::Raise(Raise { level: "notice", code, message, detail, hint: None })
    }

    /// The bytes of its text.
    pub fn size(&self) -> usize {
        write::size(self)
    }
}

/// Whether it contains no statement.
pub fn is_empty(body: &[Step]) -> bool {
    body.iter().all(|step| matches!(step, Step::Line(_)))
}
