//! An error in a text, with its T-SQL number.

/// An error in a text, which cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{number}, line {line}: {text}")]
pub struct Error {
    pub number: i32,
    pub severity: u8,
    pub state: u8,
    /// The line in the text, from 1.
    pub line: u32,
    pub text: String,
}

impl Error {
    /// An error of severity 15 and state 1, as all errors in the text of a batch.
    pub fn new(number: i32, text: impl Into<String>, line: impl Into<u32>) -> Error {
        Error { number, severity: 15, state: 1, line: line.into(), text: text.into() }
    }

    pub fn with_severity(self, severity: u8) -> Error {
        Error { severity, ..self }
    }

    /// 102: invalid syntax at `near`.
    pub fn syntax(near: &str, line: impl Into<u32>) -> Error {
        Error::new(102, format!("Incorrect syntax near '{near}'."), line)
    }

    /// 111: only a batch can begin with such a definition.
    pub fn not_first(action: &str, what: &str, line: impl Into<u32>) -> Error {
        let action = action.to_uppercase();
        Error::new(111, format!("'{action} {what}' must be the first statement in a query batch."), line)
    }

    /// 156: the keyword `near` is invalid there.
    pub fn keyword(near: &str, line: impl Into<u32>) -> Error {
        Error::new(156, format!("Incorrect syntax near the keyword '{near}'."), line)
    }

    /// 102: a feature of T-SQL that ringlog lacks, named by `what`.
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

    /// 207: no source has this column.
    pub fn invalid_column(name: &str, line: impl Into<u32>) -> Error {
        Error::new(207, format!("Invalid column name '{name}'."), line).with_severity(16)
    }

    /// 1046: a query where a value must be without one.
    pub fn no_subquery(line: impl Into<u32>) -> Error {
        Error::new(
            1046,
            "Subqueries are not allowed in this context. Only scalar expressions are allowed.",
            line,
        )
    }

    /// 178: RETURN has a value where none is expected.
    pub fn returns_a_value(line: impl Into<u32>) -> Error {
        Error::new(178, "A RETURN statement with a return value cannot be used in this context.", line)
    }

    /// 191: the text is nested too deeply.
    pub fn nested_too_deeply(line: impl Into<u32>) -> Error {
        Error::new(191, "Some part of your SQL statement is nested too deeply.", line)
    }
}
