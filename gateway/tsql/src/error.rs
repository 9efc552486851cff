//! An error in a text, with its T-SQL number.

/// A text cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{number}, line {line}: {text}")]
pub struct Error {
    pub number: i32,
    pub severity: u8,
    pub state: u8,
    /// Of the text, from 1.
    pub line: u32,
    pub text: String,
}

impl Error {
    /// An error of severity 15 and state 1, as those in the text of a batch are.
    pub fn new(number: i32, text: impl Into<String>, line: impl Into<u32>) -> Error {
        Error { number, severity: 15, state: 1, line: line.into(), text: text.into() }
    }

    pub fn with_severity(self, severity: u8) -> Error {
        Error { severity, ..self }
    }

    /// 102: what stands at `near` cannot stand there.
    pub fn syntax(near: &str, line: impl Into<u32>) -> Error {
        Error::new(102, format!("Incorrect syntax near '{near}'."), line)
    }

    /// 156: the keyword `near` cannot stand there.
    pub fn keyword(near: &str, line: impl Into<u32>) -> Error {
        Error::new(156, format!("Incorrect syntax near the keyword '{near}'."), line)
    }

    /// 102: T-SQL has it, ringlog does not; `what` names it.
    pub fn refused(what: &str, why: &str, line: impl Into<u32>) -> Error {
        Error::new(102, format!("'{what}' is not supported: {why}."), line)
    }

    /// 137: no such variable.
    pub fn undeclared(name: &str, line: impl Into<u32>) -> Error {
        Error::new(137, format!("Must declare the scalar variable \"{name}\"."), line)
    }

    /// 134: a variable is declared a second time.
    pub fn declared_twice(name: &str, line: impl Into<u32>) -> Error {
        let text = format!(
            "The variable name '{name}' has already been declared. Variable names must be unique within a query \
             batch or stored procedure."
        );
        Error::new(134, text, line)
    }

    /// 178: RETURN gives a value where nobody takes one.
    pub fn returns_a_value(line: impl Into<u32>) -> Error {
        Error::new(178, "A RETURN statement with a return value cannot be used in this context.", line)
    }

    /// 191: the text nests deeper than is understood.
    pub fn nested_too_deeply(line: impl Into<u32>) -> Error {
        Error::new(191, "Some part of your SQL statement is nested too deeply.", line)
    }
}
