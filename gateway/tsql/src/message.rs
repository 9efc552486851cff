//! The messages of print, raiserror and throw, which PostgreSQL formats.

use crate::bind::{self, Variables};
use crate::error::Error;
use crate::facts::types::{nvarchar, varchar, Family, INT, LONGEST_VARCHAR, VARCHAR};
use crate::postgres::{call, Scalar};
use crate::resolve::Scope;
use crate::tree::{Expression, LiteralValue, Raise, Throw};

/// The index of a RAISERROR's first argument.
const FIRST_ARGUMENT: usize = 4;

/// The text shown by a print; null is empty.
pub fn printed(
    text: &Expression,
    arguments: &[Expression],
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<Scalar, Error> {
    let is_national =
        scope.dialect.has_wide_texts && bind::value(text, scope, variables, None)?.is_national();
    let longest =
        if is_national { nvarchar(Some(LONGEST_VARCHAR / 2)) } else { varchar(Some(LONGEST_VARCHAR)) };
    let mut text = bind::value(text, scope, variables, Some(longest))?.sql;
    if !arguments.is_empty() {
        text = call("tsql.format_numbered", [text, array(arguments, scope, variables)?]);
    }
    Ok(call("coalesce", [text, Scalar::text("")]))
}

/// Four columns: number, severity, state (integers) and the text of the message.
pub fn raised(
    raise: &Raise,
    line: u32,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<[Scalar; 4], Error> {
    const BY_NUMBER: &str = "there are no messages with numbers: give the text";
    match raise {
        Raise::Severity { message, severity, state, arguments, .. } => {
            let severity = bind::value(severity, scope, variables, Some(INT))?.sql;
            let state = bind::value(state, scope, variables, Some(INT))?.sql;
            if bind::value(message, scope, variables, None)?.of.is_number() {
                let shown = match message {
                    Expression::Literal(literal) => match &literal.value {
                        LiteralValue::Integer(digits) | LiteralValue::Decimal(digits) => digits.clone(),
                        _ => String::from("number"),
                    },
                    Expression::Variable(variable) => variable.name.clone(),
                    _ => String::from("number"),
                };
                return Err(no_message(&shown, line, scope)
                    .unwrap_or_else(|| Error::refused(&format!("raiserror ({shown}, …)"), BY_NUMBER, line)));
            }
            let text = text(message, scope, variables)?;
            let numbers = substitutes(arguments, line, scope, variables)?;
            let arguments = array(arguments, scope, variables)?;
            Ok([
                Scalar::number(50000),
                call("tsql.severity", [severity]),
                call("tsql.state", [state]),
                call("tsql.format_message", [text, arguments, numbers]),
            ])
        }
        Raise::Number { message: None, .. } => Err(Error::refused("raiserror number", BY_NUMBER, line)),
        Raise::Number { number, message: Some(message), arguments } => {
            let number = bind::value(number, scope, variables, Some(INT))?.sql;
            let text = text(message, scope, variables)?;
            let arguments = array(arguments, scope, variables)?;
            let [severity, state] = [16, 1].map(Scalar::number);
            let text = call("tsql.format_numbered", [text, arguments]);
            Ok([call("tsql.user_number", [number]), severity, state, text])
        }
    }
}

/// SQL Server's error for the number of a message that nobody can have made, or nobody has.
fn no_message(shown: &str, line: u32, scope: &Scope) -> Option<Error> {
    let number: i32 = shown.parse().ok().filter(|_| scope.dialect.is_strict)?;
    match number {
        50001.. => {
            let text = format!(
                "Error {number} was raised, but no message with that error number was found in sys.messages. If error is larger \
                 than 50000, make sure the user-defined message is added using sp_addmessage."
            );
            Some(Error::new(18054, text, line).with_severity(16))
        }
        ..13000 | 50000 => {
            let text = format!(
                "Error number {number} is invalid. The number must be from 13000 through 2147483647 and it cannot be 50000."
            );
            Some(Error::new(2732, text, line).with_severity(16))
        }
        _ => None,
    }
}

/// Three columns: number, text of the message, state.
pub fn thrown(throw: &Throw, scope: &Scope, variables: &mut dyn Variables) -> Result<[Scalar; 3], Error> {
    let number = bind::value(&throw.number, scope, variables, Some(INT))?.sql;
    let state = bind::value(&throw.state, scope, variables, Some(INT))?.sql;
    let text = text(&throw.message, scope, variables)?;
    Ok([call("tsql.thrown_number", [number]), text, call("tsql.state", [state])])
}

fn text(value: &Expression, scope: &Scope, variables: &mut dyn Variables) -> Result<Scalar, Error> {
    Ok(bind::value(value, scope, variables, Some(VARCHAR))?.sql)
}

fn array(values: &[Expression], scope: &Scope, variables: &mut dyn Variables) -> Result<Scalar, Error> {
    let values = values.iter().map(|value| text(value, scope, variables)).collect::<Result<_, _>>()?;
    Ok(Scalar::Array(values, "text"))
}

/// Whether the arguments of a RAISERROR are numbers; null for a value without a type. Error 2748: only integers, texts
/// and binaries can be arguments ("RAISERROR (Transact-SQL)").
fn substitutes(
    values: &[Expression],
    line: u32,
    scope: &Scope,
    variables: &mut dyn Variables,
) -> Result<Scalar, Error> {
    let mut numbers = Vec::with_capacity(values.len());
    for (number, value) in (FIRST_ARGUMENT..).zip(values) {
        let of = bind::value(value, scope, variables, None)?.of;
        numbers.push(match of.family {
            Family::Integer => Scalar::Boolean(true),
            Family::Text => Scalar::Boolean(false),
            Family::Binary | Family::Postgres => Scalar::Null,
            _ => {
                let of = of.name;
                let text = format!(
                    "Cannot specify {of} data type (parameter {number}) as a substitution parameter."
                );
                return Err(Error::new(2748, text, line).with_severity(16));
            }
        });
    }
    Ok(Scalar::Array(numbers, "boolean"))
}

/// 10704: a bare THROW outside of a CATCH block.
pub fn no_rethrow(line: u32) -> Error {
    Error::new(10704, "To rethrow an error, a THROW statement must be used inside a CATCH block.", line)
}
