//! The parameters and statements of a procedure that the session runs like a batch.

use super::value::literal;
use crate::error::Error;
use crate::facts::types;
use crate::procedure::not_inside;
use crate::program::{Declaration, Expression, Literal, Settings};
use crate::resolve::Scope;
use crate::tree::{self, CreateProcedure, Parameter, Statement, StatementKind as Tree};

/// What a batch runs, and the parameters it has when it is a procedure's body.
pub fn parts<'t>(
    batch: &'t [Statement],
    settings: &Settings,
) -> Result<(Vec<Declaration>, &'t [Statement]), Error> {
    match batch {
        [Statement { kind: Tree::CreateProcedure(create), .. }] if settings.procedure => {
            Ok((declarations(create, settings)?, &create.body))
        }
        _ => Ok((Vec::new(), batch)),
    }
}

/// Its parameters.
pub fn declarations(create: &CreateProcedure, settings: &Settings) -> Result<Vec<Declaration>, Error> {
    create.parameters.iter().map(|parameter| declaration(parameter, settings)).collect()
}

fn declaration(parameter: &Parameter, settings: &Settings) -> Result<Declaration, Error> {
    let of = types::of_name(&parameter.type_, 1, settings.dialect)?;
    let name = &parameter.variable.name;
    let value = match &parameter.default {
        None => None,
        // a bare word is a text
        Some(tree::Expression::Column(column)) if column.table.is_none() => {
            Some(Expression::Literal(Literal::Text(column.column.clone())))
        }
        Some(value) => {
            let scope = Scope { dialect: settings.dialect, ..Scope::default() };
            let why = "the default of a parameter is a constant";
            let literal = literal(value, &scope, None);
            let literal = literal.ok_or_else(|| Error::refused(name, why, parameter.variable.at))?;
            Some(Expression::Literal(literal))
        }
    };
    let shown = parameter.shown.clone();
    Ok(Declaration { name: name.clone(), shown, of, output: parameter.output, value })
}

/// Refuses what stands in no procedure.
pub fn check(statement: &Tree, line: u32) -> Result<(), Error> {
    match statement {
        Tree::Use(_) => {
            let text = "a USE database statement is not allowed in a procedure, function or trigger.";
            Err(Error::new(154, text, line))
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
