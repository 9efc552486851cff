//! The parameters and statements of a procedure that the session runs like a batch.

use super::value::literal;
use crate::error::Error;
use crate::facts::type_names;
use crate::facts::types;
use crate::procedure::not_inside;
use crate::program::{Declaration, Expression, Literal, Settings};
use crate::resolve::Scope;
use crate::tree::{
    self, CreateProcedure, Parameter, SetWord, Statement, StatementKind as Tree, TableVariable,
};
use crate::Dialect;

/// A table parameter, and the name of its type.
pub type Given = (TableVariable, String);

/// The statements of a batch, and its parameters.
pub struct Parts<'t> {
    /// The parameters, if it is the body of a procedure.
    pub parameters: Vec<Declaration>,
    /// The table parameters.
    pub given: Vec<Given>,
    pub statements: &'t [Statement],
}

/// `of_text`: the parameters of a text outside of a procedure.
pub fn parts<'t>(
    batch: &'t [Statement],
    of_text: &[Parameter],
    settings: &Settings,
) -> Result<Parts<'t>, Error> {
    Ok(match batch {
        [Statement { kind: Tree::CreateProcedure(create), .. }] if settings.procedure => Parts {
            parameters: declarations(create, settings)?,
            given: given(&create.parameters),
            statements: &create.body,
        },
        _ => Parts { parameters: Vec::new(), given: given(of_text), statements: batch },
    })
}

/// The table parameters.
pub fn given(parameters: &[Parameter]) -> Vec<Given> {
    let table = |parameter: &Parameter| {
        let elements = parameter.table.clone()?;
        let table = TableVariable { variable: parameter.variable.clone(), elements };
        Some((table, parameter.type_.name.clone()))
    };
    parameters.iter().filter_map(table).collect()
}

/// Its parameters.
pub fn declarations(create: &CreateProcedure, settings: &Settings) -> Result<Vec<Declaration>, Error> {
    create.parameters.iter().map(|parameter| declaration(parameter, settings.dialect)).collect()
}

pub fn declaration(parameter: &Parameter, dialect: &'static Dialect) -> Result<Declaration, Error> {
    let of = match parameter.table {
        None => type_names::of_name(&parameter.type_, 1, dialect)?,
        Some(_) => types::TABLE,
    };
    let name = &parameter.variable.name;
    let value = match &parameter.default {
        // a table that is not passed is empty
        None => parameter.table.as_ref().map(|_| Expression::Literal(Literal::Null)),
        // a bare word is a text
        Some(tree::Expression::Column(column)) if column.table.is_none() => {
            Some(Expression::Literal(Literal::Text(column.column.clone())))
        }
        Some(value) => {
            let scope = Scope { dialect, ..Scope::default() };
            let why = "the default of a parameter is a constant";
            let literal = literal(value, &scope, None);
            let literal = literal.ok_or_else(|| Error::refused(name, why, parameter.variable.at))?;
            Some(Expression::Literal(literal))
        }
    };
    let shown = parameter.shown.clone();
    Ok(Declaration { name: name.clone(), shown, of, output: parameter.output, value })
}

/// Refuses statements that a procedure must not contain.
pub fn check(statement: &Tree, line: u32) -> Result<(), Error> {
    match statement {
        Tree::Use(_) => {
            let text = "a USE database statement is not allowed in a procedure, function or trigger.";
            Err(Error::new(154, text, line))
        }
        Tree::Set(words) if matches!(words.first(), Some(SetWord::Word(word)) if word == "parseonly") => {
            let text = "Cannot set or reset the 'parseonly' option within a procedure or function.";
            Err(Error::new(1059, text, line))
        }
        Tree::CreateProcedure(_)
        | Tree::CreateFunction(_)
        | Tree::CreateTrigger(_)
        | Tree::CreateBindable(_)
        | Tree::CreateView(_)
        | Tree::InsertBulk(_)
        | Tree::WritetextBulk(_) => Err(not_inside(statement, line)),
        _ => Ok(()),
    }
}
