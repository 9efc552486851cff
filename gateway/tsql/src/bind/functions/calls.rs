//! The form of a function call.

use crate::bind::binder::Binder;
use crate::bind::expressions;
use crate::bind::values::{converted, float_to_text, text_of, Value};
use crate::error::Error;
use crate::facts::functions::date_part;
use crate::facts::types::{Family, Type, FLOAT, INT, SMALLINT, TINYINT};
use crate::facts::{arguments, variants};
use crate::postgres::{Over, Scalar};
use crate::schema::Signature;
use crate::tree::{Expression, FunctionCall, ObjectName};
use crate::Dialect;

/// A function call being translated.
pub struct CallBinder<'c, 'a, 'e> {
    pub binder: &'c mut Binder<'a>,
    /// Its name in lower case.
    pub name: &'e str,
    pub of: &'e FunctionCall,
    pub arguments: &'e [Expression],
    pub over: Option<Over>,
    pub line: u32,
}

impl CallBinder<'_, '_, '_> {
    pub fn value(&mut self, index: usize) -> Result<Value, Error> {
        let value = expressions::value(self.binder, &self.arguments[index])?;
        if value.family() == Family::Variant {
            if let Some((number, text)) = variants::refusal(self.name, index) {
                return Err(self.fail(number, text));
            }
        }
        self.refuse(index, &value)?;
        Ok(value)
    }

    /// 8116: the function does not take this argument.
    pub fn refuse(&self, index: usize, value: &Value) -> Result<(), Error> {
        let text = arguments::refusal(self.name, index, value.shown_type());
        match text.filter(|_| self.dialect().checks_arguments) {
            Some(text) => Err(self.fail(8116, text)),
            None => Ok(()),
        }
    }

    pub fn values(&mut self) -> Result<Vec<Value>, Error> {
        (0..self.arguments.len()).map(|index| self.value(index)).collect()
    }

    pub fn dialect(&self) -> &'static Dialect {
        self.binder.dialect()
    }

    /// The number of arguments; error 174 if it is wrong.
    pub fn count(&self, least: usize, most: usize) -> Result<usize, Error> {
        let number = self.arguments.len();
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        let (error, text) = if least == most {
            (174, format!("The {} function requires {least} argument(s).", self.name))
        } else {
            let (error, arguments) = self.dialect().wrong_count;
            (error, format!("The {} function requires {least} to {most} {arguments}.", self.name))
        };
        Err(Error::new(error, text, self.line))
    }

    pub fn text(&mut self, index: usize) -> Result<Scalar, Error> {
        let value = self.value(index)?;
        self.as_text(&value)
    }

    pub fn as_text(&self, value: &Value) -> Result<Scalar, Error> {
        if value.of.is_text() && value.of.name != "char" {
            return Ok(value.sql.clone());
        }
        if value.is_null() {
            return Ok(Scalar::Null.cast("text"));
        }
        if value.family() == Family::Float && !self.dialect().float_has_text {
            return Err(float_to_text(self.line));
        }
        Ok(text_of(value, self.dialect()))
    }

    pub fn integer(&mut self, index: usize) -> Result<Scalar, Error> {
        let value = self.value(index)?;
        if [INT, SMALLINT, TINYINT].contains(&value.of) {
            return Ok(value.sql);
        }
        self.converted(value, INT)
    }

    pub fn float(&mut self, index: usize) -> Result<Scalar, Error> {
        self.of_type(index, FLOAT)
    }

    pub fn of_type(&mut self, index: usize, target: Type) -> Result<Scalar, Error> {
        let value = self.value(index)?;
        self.converted(value, target)
    }

    fn converted(&self, value: Value, target: Type) -> Result<Scalar, Error> {
        Ok(converted(value, target, self.line, self.dialect())?.sql)
    }

    /// The part of a date named by the argument.
    pub fn date_part(&self, index: usize) -> Result<&'static str, Error> {
        let word = match &self.arguments[index] {
            Expression::Column(column) if column.table.is_none() => column.column.as_str(),
            _ => "?",
        };
        date_part(word).ok_or_else(|| {
            let text = format!("'{word}' is not a recognized {} option.", self.name);
            Error::new(155, text, self.line)
        })
    }

    pub fn fail(&self, number: i32, text: impl Into<String>) -> Error {
        Error::new(number, text, self.line).with_severity(16)
    }
}

/// The function by its name in SQL. Errors of a call of one of T-SQL: without its schema (195), as rows or not (208,
/// 4121), without all of its arguments, for which DEFAULT may stand (313, 8144).
pub fn demanded(
    binder: &Binder<'_>,
    name: &ObjectName,
    function: String,
    given: usize,
    are_rows: bool,
) -> Result<String, Error> {
    let known = binder.scope.function(&function).filter(|_| binder.dialect().refuses_unknown_functions);
    let Some([signature @ Signature { gives_rows: Some(gives_rows), .. }]) =
        known.as_ref().map(|known| &*known.signatures)
    else {
        return Ok(function);
    };
    let shown = name.shown();
    let (number, text) = match (are_rows, gives_rows) {
        (false, true) => (
            4121,
            format!(
                "Cannot find either column \"{}\" or the user-defined function or aggregate \"{shown}\", or the name is ambiguous.",
                shown.split('.').next().unwrap_or_default()
            ),
        ),
        (true, false) => (208, format!("Invalid object name '{shown}'.")),
        (false, false) if name.is_bare() => {
            (195, format!("'{}' is not a recognized built-in function name.", name.name))
        }
        _ if given < signature.takes.len() => {
            (313, format!("An insufficient number of arguments were supplied for the procedure or function {shown}."))
        }
        _ if given > signature.takes.len() => {
            (8144, format!("Procedure or function {shown} has too many arguments specified."))
        }
        _ => return Ok(function),
    };
    Err(Error::new(number, text, name.at).with_severity(16))
}
