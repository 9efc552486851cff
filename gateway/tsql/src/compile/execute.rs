//! Procedure calls of a batch.

use super::compiler::{selected, Compiler};
use super::{cursor, statement, value};
use crate::bind::{self, Numbered, Value};
use crate::error::Error;
use crate::facts::types::{Family, Type, TABLE};
use crate::postgres::Scalar;
use crate::program::{Action, Argument, Execute, Executed, Expression, Filled, InsertExecute, Literal, Sql};
use crate::resolve::names;
use crate::schema::Table;
use crate::tree::{self, ArgumentValue};
use crate::Dialect;
use std::sync::Arc;

pub(super) fn execute(compiler: &mut Compiler<'_>, execute: &tree::Execute) -> Result<Execute, Error> {
    if let Some(status) = &execute.status {
        statement::declared(compiler, status)?;
    }
    let qualified = match &execute.procedure {
        Ok(procedure) => match names::schema_of(procedure) {
            "" => procedure.name.clone(),
            schema => format!("{schema}.{}", procedure.name),
        },
        Err(variable) => {
            let of = statement::declared(compiler, variable)?;
            if of.is_tsql() && !of.is_text() {
                let text = "In EXECUTE <procname>, procname can only be a literal or variable of type char, varchar, nchar, or nvarchar.";
                return Err(Error::new(8199, text, variable.at));
            }
            variable.name.clone()
        }
    };
    let status_taken = match &execute.status {
        Some(variable) => taken_by(compiler, variable)?,
        None => None,
    };
    let arguments = execute.arguments.iter().map(|argument| self::argument(compiler, argument));
    Ok(Execute {
        status: execute.status.as_ref().map(|status| status.name.clone()),
        status_taken,
        procedure: qualified,
        arguments: arguments.collect::<Result<_, _>>()?,
    })
}

fn argument(compiler: &mut Compiler<'_>, argument: &tree::Argument) -> Result<Argument, Error> {
    let name = argument.name.as_deref().unwrap_or("");
    let name = name.strip_prefix('@').unwrap_or(name).to_owned();
    Ok(match &argument.value {
        ArgumentValue::Default => Argument { name, value: None, output: false, taken: None, of: None },
        ArgumentValue::Value(tree::Expression::Variable(variable))
            if compiler.scope.table_variables.contains(&variable.name) =>
        {
            let table = names::table_variable(variable, &compiler.scope.table_owner).name;
            let value = Some(Expression::Literal(Literal::Text(table)));
            Argument { name, value, output: false, taken: None, of: Some(TABLE) }
        }
        ArgumentValue::Value(value) => {
            let of = type_of(compiler, value);
            Argument {
                name,
                value: Some(value::value(compiler, value, None)?),
                output: false,
                taken: None,
                of,
            }
        }
        ArgumentValue::Output(variable) => {
            let taken = taken_by(compiler, variable)?;
            let of = statement::declared(compiler, variable)?.in_tsql();
            let value = Some(Expression::Variable(variable.name.clone()));
            Argument { name, value, output: true, taken, of }
        }
    })
}

/// The type of a variable or literal.
fn type_of(compiler: &Compiler<'_>, value: &tree::Expression) -> Option<Type> {
    bind::value(value, &compiler.scope, &mut Numbered::default(), None).ok()?.of.in_tsql()
}

/// Converts a value to the type of the variable; None if the variable is not declared.
fn taken_by(compiler: &Compiler<'_>, variable: &tree::Variable) -> Result<Option<Sql>, Error> {
    let of = compiler.scope.type_of(&variable.name, variable.at.line)?;
    of.in_tsql().map(|of| cursor::taken(compiler, &[of], variable.at.line)).transpose()
}

/// `insert … execute` of any procedure or text.
pub(super) fn insert_execute(
    compiler: &mut Compiler<'_>,
    insert: &tree::Insert,
    source: Executed,
    line: u32,
) -> Result<Action, Error> {
    if insert.output.is_some() {
        let text = "The OUTPUT clause cannot be used in an INSERT...EXEC statement.";
        return Err(Error::new(483, text, line));
    }
    if let Some(top) = &insert.top {
        return Err(Error::refused(
            "insert top … execute",
            "the rows of the procedure are all taken",
            top.at,
        ));
    }
    let target = bind::filled(insert, &compiler.scope)?;
    Ok(Action::InsertExecute(Box::new(InsertExecute { target, source })))
}

/// The text that a parameter of type `target` receives for a value of another type, which is the variable `#taken_1`.
pub fn text_for(source: Type, target: Type, dialect: &Dialect) -> Result<Sql, Error> {
    let value = match source.family {
        Family::Money => Value::money(Scalar::Parameter(0), source),
        _ => Value::new(Scalar::Parameter(0), source),
    };
    let text = bind::assigned(value, target, 1, dialect)?.sql;
    let names = vec![String::from("#taken_1")];
    Ok(selected(&[text], Numbered { names, ..Numbered::default() }))
}

/// The insert of `rows` rows of values of these types, which are parameters: the first of them are the first row.
/// `declared`: the table's declaration. Errors 206 and 257 if a value cannot be stored in its column.
pub fn insert_of_rows(
    filled: &Filled,
    declared: Option<Arc<Table>>,
    types: &[Type],
    rows: usize,
    dialect: &'static Dialect,
) -> Result<Sql, Error> {
    let names = (1..=rows * types.len()).map(|index| format!("@{index}"));
    let insert = bind::insert_of_rows(filled, declared, types, rows, dialect)?;
    Ok(Sql::written(&insert.to_string(), names.collect()))
}

/// The SQL of a parameter of type `of` as a value of a column. Errors 206 and 257 if it cannot be stored there.
pub fn stored_parameter(index: usize, of: Type, column: Type, dialect: &Dialect) -> Result<String, Error> {
    let value = Value::new(Scalar::Parameter(index), of);
    Ok(bind::stored(&value, column, 1, dialect)?.to_string())
}
