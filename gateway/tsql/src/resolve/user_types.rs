//! User types of a site, based on others: declarations by such a type are replaced by its system type.

use crate::error::Error;
use crate::facts::type_names;
use crate::parser;
use crate::schema::{type_key, Object, Schema};
use crate::tree::{
    AlterTable, ColumnDefinition, ColumnKind, ConstraintKind, Declared, Identity, Parameter, Position,
    Returns, Statement, StatementKind, TableElement, TableVariable, TypeName, UserType,
};
use crate::Dialect;
use std::collections::BTreeSet;

/// Replaces the names of user types by the schema's types. Returns the names that were looked up.
pub fn bind(
    statements: &mut [Statement],
    schema: &dyn Schema,
    dialect: &Dialect,
) -> Result<BTreeSet<String>, Error> {
    let mut binding = Binding { schema, dialect, names: BTreeSet::new() };
    statements.iter_mut().try_for_each(|statement| binding.statement(statement))?;
    Ok(binding.names)
}

/// The same for the parameters of a text.
pub fn bind_parameters(
    parameters: &mut [Parameter],
    schema: &dyn Schema,
    dialect: &Dialect,
) -> Result<BTreeSet<String>, Error> {
    let mut binding = Binding { schema, dialect, names: BTreeSet::new() };
    binding.parameters(parameters)?;
    Ok(binding.names)
}

struct Binding<'s> {
    schema: &'s dyn Schema,
    dialect: &'s Dialect,
    names: BTreeSet<String>,
}

impl Binding<'_> {
    fn statement(&mut self, statement: &mut Statement) -> Result<(), Error> {
        match &mut statement.kind {
            StatementKind::Block(body) => self.body(body),
            StatementKind::If { then, otherwise, .. } => {
                self.statement(then)?;
                otherwise.as_deref_mut().map_or(Ok(()), |otherwise| self.statement(otherwise))
            }
            StatementKind::While { body, .. } => self.statement(body),
            StatementKind::TryCatch { body, catch } => {
                self.body(body)?;
                self.body(catch)
            }
            StatementKind::Declare(variables) => {
                variables
                    .iter_mut()
                    .try_for_each(|declared| self.type_name(&mut declared.type_).map(drop))?;
                if let Some(kind) = self.with_tables(variables, statement.at)? {
                    statement.kind = kind;
                }
                Ok(())
            }
            StatementKind::CreateTableType(create) => self.elements(&mut create.elements),
            StatementKind::DeclareTable(table) => self.elements(&mut table.elements),
            StatementKind::CreateTable(create) => self.elements(&mut create.elements),
            StatementKind::AlterTable { action, .. } => match &mut **action {
                AlterTable::Add { elements, .. } => self.elements(elements),
                AlterTable::AlterColumn { type_, nullable, .. } => {
                    if let Some(user_type) = self.type_name(type_)? {
                        *nullable = nullable.or(self.nullable(&user_type));
                    }
                    Ok(())
                }
                _ => Ok(()),
            },
            StatementKind::CreateProcedure(create) => {
                self.parameters(&mut create.parameters)?;
                self.body(&mut create.body)
            }
            StatementKind::CreateFunction(create) => {
                self.parameters(&mut create.parameters)?;
                match &mut create.returns {
                    Returns::Value(of) => self.type_name(of).map(drop)?,
                    Returns::Table { elements, .. } => self.elements(elements)?,
                    Returns::Rows(_) => {}
                }
                self.body(&mut create.body)
            }
            StatementKind::CreateTrigger(create) => self.body(&mut create.body),
            StatementKind::Sequence(sequence) => self.type_name(&mut sequence.type_).map(drop),
            _ => Ok(()),
        }
    }

    /// The declarations of variables some of which have a table type; None: none has.
    fn with_tables(&mut self, variables: &[Declared], at: Position) -> Result<Option<StatementKind>, Error> {
        let mut kinds = Vec::with_capacity(variables.len());
        for declared in variables {
            kinds.push(match (self.declared(&declared.type_), &declared.value) {
                (Some(text), None) => self.table_type(&text)?.map(|elements| {
                    StatementKind::DeclareTable(TableVariable {
                        variable: declared.variable.clone(),
                        elements,
                    })
                }),
                _ => None,
            });
        }
        if kinds.iter().all(Option::is_none) {
            return Ok(None);
        }
        let each = kinds.into_iter().zip(variables);
        let mut each = each
            .map(|(kind, declared)| kind.unwrap_or_else(|| StatementKind::Declare(vec![declared.clone()])))
            .collect::<Vec<_>>();
        Ok(match each.len() {
            1 => each.pop(),
            // a block has no variables of its own
            _ => Some(StatementKind::Block(each.into_iter().map(|kind| Statement { kind, at }).collect())),
        })
    }

    /// The schema's declaration of a user type.
    fn declared(&self, of: &TypeName) -> Option<String> {
        if type_names::is_known(&of.name) || of.is_cursor() || !of.arguments.is_empty() {
            return None;
        }
        match self.schema.object(&type_key(&of.name))? {
            Object::Type(declared) => Some(declared.to_string()),
            _ => None,
        }
    }

    fn body(&mut self, body: &mut [Statement]) -> Result<(), Error> {
        body.iter_mut().try_for_each(|statement| self.statement(statement))
    }

    fn parameters(&mut self, parameters: &mut [Parameter]) -> Result<(), Error> {
        for parameter in parameters {
            self.type_name(&mut parameter.type_)?;
            parameter.table = match self.declared(&parameter.type_) {
                Some(text) => self.table_type(&text)?,
                None => None,
            };
            let name = &parameter.shown;
            let (number, text) = match (parameter.table.is_some(), parameter.readonly) {
                (true, false) => {
                    (352, format!("The table-valued parameter \"{name}\" must be declared with the READONLY option."))
                }
                (false, true) if type_names::is_known(&parameter.type_.name) => (
                    346,
                    format!(
                        "The parameter \"{name}\" can not be declared \"READONLY\" since it is not a table-valued \
                         parameter."
                    ),
                ),
                _ => continue,
            };
            return Err(Error::new(number, text, parameter.variable.at));
        }
        Ok(())
    }

    /// The elements of a table type by its declaration; None: it is another type's.
    fn table_type(&mut self, declared: &str) -> Result<Option<Vec<TableElement>>, Error> {
        let mut elements = parser::parse_table_type(declared)?;
        if let Some(elements) = &mut elements {
            self.elements(elements)?;
        }
        Ok(elements)
    }

    fn elements(&mut self, elements: &mut [TableElement]) -> Result<(), Error> {
        for element in elements {
            let TableElement::Column(column) = element else { continue };
            let ColumnDefinition { kind: ColumnKind::Typed(of), nullable, identity, constraints, .. } =
                column
            else {
                continue;
            };
            let Some(user_type) = self.type_name(of)? else { continue };
            if user_type.identity && identity.is_none() {
                *identity = Some(Identity { seed: 1, increment: 1 });
            }
            let is_key = |kind: &ConstraintKind| matches!(kind, ConstraintKind::Key { primary: true, .. });
            if !constraints.iter().any(|one| is_key(&one.kind)) {
                *nullable = nullable.or(self.nullable(&user_type));
            }
        }
        Ok(())
    }

    /// Whether a column declared neither null nor not null takes nulls; None: SQL Server's always does.
    fn nullable(&self, user_type: &UserType) -> Option<bool> {
        match user_type.nullable {
            false => Some(false),
            true => (!self.dialect.columns_take_nulls).then_some(true),
        }
    }

    /// Replaces the name of a user type. Returns the type.
    fn type_name(&mut self, of: &mut TypeName) -> Result<Option<UserType>, Error> {
        if type_names::is_known(&of.name) || of.is_cursor() || !of.arguments.is_empty() {
            return Ok(None);
        }
        self.names.insert(type_key(&of.name));
        let Some(declared) = self.declared(of) else { return Ok(None) };
        if parser::parse_table_type(&declared)?.is_some() {
            return Ok(None);
        }
        let user_type = parser::parse_user_type(&declared)?;
        *of = TypeName { alias: Some(user_type.name.clone()), at: of.at, ..user_type.type_.clone() };
        Ok(Some(user_type))
    }
}
