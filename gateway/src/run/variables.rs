//! The variables of a batch: declared in it, or sent with it by the client.

use super::fitted::fitted;
use crate::calls::OutputValue;
use crate::client::Arithabort;
use crate::convert::{cast, ConvertError, PgType, SqlType, Value, Zone};
use crate::limits::memory::Kept;
use crate::program::{placeholder, sql_type, undeclared, Declaration, Given, Settings};
use crate::tds::call::Param;
use crate::tds::dialect::Dialect;
use crate::tds::table_value::TableValue;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::as_variant;
use std::borrow::Cow;
use tsql::facts::session;
use tsql::facts::types::{of_oid, Type, SQL_VARIANT, TABLE};
use tsql::lexer::{self, TokenKind};
use tsql::Syntax;

#[derive(Clone, Debug)]
pub struct Variable<'a> {
    /// With its @ in lower case, or `?1`.
    pub name: String,
    pub sql_type: SqlType,
    pub value: Value<'a>,
    /// None: PostgreSQL's type determines it.
    pub declared: Option<Type>,
    /// The index among the call's parameters if the client requests it as output.
    output: Option<usize>,
}

/// The most bytes of the variables of one batch or procedure, and of the arguments of a call in it.
pub const MOST_BYTES: usize = 32 << 20;
/// Values of fewer bytes count only if longer ones exist.
const SHORT: usize = 1 << 10;

#[derive(Debug, Default)]
pub struct Variables<'a> {
    list: Vec<Variable<'a>>,
    /// The tables that the client has sent for variables, by name.
    tables: Vec<(String, TableValue<'static>)>,
    kept: Kept,
}

impl<'a> Variables<'a> {
    /// Binds `params` to the variables of `declarations`, by name or in order. `ordinal`: the index of the first of
    /// them among all parameters of the call.
    pub fn bind(
        declarations: &[Declaration],
        params: &'a [Param<'_>],
        ordinal: usize,
        dialect: &Dialect,
        arithabort: Option<Arithabort>,
    ) -> Result<Variables<'a>, ServerMessage> {
        let slots = slots(declarations, params, dialect)?;
        let mut variables = Variables::default();
        for (declaration, slot) in declarations.iter().zip(slots) {
            let given = slot.and_then(|index| Some((index, params.get(index)?)));
            let Some((index, param)) = given.filter(|(_, param)| !param.default) else {
                // a table that is not passed is empty
                if declaration.of == TABLE {
                    variables.declare(declaration);
                    continue;
                }
                return Err(ServerMessage::error(
                    8178,
                    16,
                    format!(
                        "The parameterized query expects the parameter '{}', which was not supplied.",
                        declaration.name
                    ),
                ));
            };
            if param.output && !declaration.output {
                let text = format!(
                    "The formal parameter \"{}\" was not declared as an OUTPUT parameter, but the actual parameter \
                     passed in requested output.",
                    declaration.name
                );
                return Err(ServerMessage::error(8162, 16, text));
            }
            check_table(param, declaration)?;
            let value = match param.table() {
                Some(table) => {
                    variables.send(&declaration.name, table.clone().into_owned())?;
                    Value::Null
                }
                None => fitted(parameter_value(param, declaration, dialect)?, &declaration.of, arithabort)?,
            };
            variables.list.push(Variable {
                name: declaration.name.clone(),
                sql_type: sql_type(declaration),
                value,
                declared: Some(declaration.of),
                output: param.output.then_some(ordinal + index),
            });
        }
        Ok(variables)
    }

    /// Undeclared parameters, as TDS 5.0 sends them: `@name`, or `?1` for the first without a name.
    fn undeclared(params: &'a [Param<'_>], dialect: &Dialect) -> Result<Variables<'a>, ServerMessage> {
        let mut variables = Variables::default();
        for (index, param) in params.iter().enumerate() {
            let name = if param.is_named() {
                format!("@{}", param.name(dialect).to_lowercase())
            } else {
                placeholder(index + 1)
            };
            variables.list.push(Variable {
                sql_type: param.declared_type().map_or(SqlType::TEXT, |t| SqlType::of_wire(&t)),
                value: param.value(dialect).map_err(|error| refused(&name, &error))?,
                declared: None,
                output: param.output.then_some(index),
                name,
            });
        }
        Ok(variables)
    }

    /// Parameters of a command in text. One without a name is also `@p0`, the name that jTDS gives the first in the
    /// text (Support.substituteParamMarkers).
    pub fn of_command(params: &'a [Param<'_>], dialect: &Dialect) -> Result<Variables<'a>, ServerMessage> {
        let mut variables = Variables::undeclared(params, dialect)?;
        for (index, _) in params.iter().enumerate().filter(|(_, param)| !param.is_named()) {
            if let Some(variable) = variables.list.get(index) {
                let alias = Variable { name: format!("@p{index}"), output: None, ..variable.clone() };
                variables.list.push(alias);
            }
        }
        Ok(variables)
    }

    /// Names parameters that were all sent without a name after the text's variables, in the order of their first
    /// occurrence (Open Client, ct_param with a language command).
    pub fn named_by(mut self, text: &str) -> Variables<'a> {
        let unnamed: Vec<_> = self.list.iter().filter(|one| one.name.starts_with('?')).cloned().collect();
        let is_named = |one: &Variable| !one.name.starts_with('?') && !one.name.starts_with("@p");
        let names = free_variables(text);
        if names.len() == unnamed.len() && !self.list.iter().any(is_named) {
            for (name, variable) in names.into_iter().zip(unnamed) {
                if self.get(&name).is_none() {
                    self.list.push(Variable { name, output: None, ..variable });
                }
            }
        }
        self
    }

    /// Parameters of a dynamic statement: `?1`, `?2` and so on, whatever their names.
    pub fn in_order(params: &'a [Param<'_>], dialect: &Dialect) -> Result<Variables<'a>, ServerMessage> {
        let mut variables = Variables::undeclared(params, dialect)?;
        for (index, variable) in variables.list.iter_mut().enumerate() {
            variable.name = placeholder(index + 1);
        }
        Ok(variables)
    }

    pub fn get(&self, name: &str) -> Option<&Variable<'a>> {
        self.list.iter().find(|variable| variable.name == name)
    }

    /// Declares a variable. A variable declared again in a loop keeps its value, as in T-SQL.
    pub fn declare(&mut self, declaration: &Declaration) {
        if self.get(&declaration.name).is_some() {
            return;
        }
        self.list.push(Variable {
            name: declaration.name.clone(),
            sql_type: sql_type(declaration),
            value: Value::Null,
            declared: Some(declaration.of),
            output: None,
        });
    }

    /// Sets a variable, with conversion to its type.
    pub fn set(&mut self, name: &str, value: Value<'_>, zone: &Zone) -> Result<(), ServerMessage> {
        let Some(variable) = self.get(name) else {
            return Err(undeclared(name));
        };
        let value = cast(value, variable.sql_type, zone).map_err(|error| {
            ServerMessage::error(error.number(), 16, format!("Variable '{name}': {error}"))
        })?;
        let value = match &variable.declared {
            Some(of) => fitted(value, of, None)?,
            None => value,
        };
        self.fill(name, value)
    }

    /// Sets a variable to a value of its type.
    pub fn fill(&mut self, name: &str, value: Value<'a>) -> Result<(), ServerMessage> {
        if value.length() > SHORT || self.kept.counts() {
            let others = self.list.iter().filter(|variable| variable.name != name);
            let bytes = value.length() + others.map(|other| owned(&other.value)).sum::<usize>();
            self.kept.keep(bytes + self.sent_bytes(), MOST_BYTES, "variables")?;
        }
        if let Some(variable) = self.list.iter_mut().find(|variable| variable.name == name) {
            variable.value = value;
        }
        Ok(())
    }

    /// Stores the table that the client has sent for a variable.
    pub fn send(&mut self, name: &str, table: TableValue<'static>) -> Result<(), ServerMessage> {
        self.tables.push((name.to_owned(), table));
        self.count()
    }

    /// Counts the bytes of all values, of which `hold` has added some.
    pub fn count(&mut self) -> Result<(), ServerMessage> {
        let values = self.list.iter().map(|variable| owned(&variable.value)).sum::<usize>();
        self.kept.keep(values + self.sent_bytes(), MOST_BYTES, "variables")
    }

    fn sent_bytes(&self) -> usize {
        self.tables.iter().map(|(_, table)| table.length()).sum()
    }

    /// Removes and returns the table that the client has sent for a variable.
    pub fn take_sent(&mut self, name: &str) -> Option<TableValue<'static>> {
        let index = self.tables.iter().position(|(variable, _)| variable == name)?;
        Some(self.tables.swap_remove(index).1)
    }

    /// Sets the variables that replace the literals of a text.
    pub fn give(&mut self, literals: &[Given]) {
        for Given { name, sql_type, value } in literals {
            self.hold(name.clone(), *sql_type, value.clone());
        }
    }

    /// Adds an undeclared variable with its value.
    pub fn hold(&mut self, name: String, sql_type: SqlType, value: Value<'a>) {
        self.list.push(Variable { name, sql_type, value, declared: None, output: None });
    }

    /// Adds the declared variables to the settings of the compiler.
    pub fn declare_to(&self, settings: &mut Settings) {
        for variable in &self.list {
            let SqlType { oid, typmod } = variable.sql_type;
            let of = variable.declared.unwrap_or_else(|| of_oid(oid, typmod));
            settings.variables.insert(variable.name.clone(), of);
        }
    }

    /// The variables that the client requests as outputs.
    pub fn returned(&self) -> Vec<OutputValue> {
        let returned = |variable: &Variable<'_>| {
            Some(OutputValue {
                index: variable.output?,
                name: bare(&variable.name).to_owned(),
                value: variable.value.clone().into_owned(),
                pg_type: PgType::from_oid(variable.sql_type.oid),
            })
        };
        self.list.iter().filter_map(returned).collect()
    }
}

/// The bytes of a value that are not part of the request.
pub fn owned(value: &Value<'_>) -> usize {
    match value {
        Value::Text(Cow::Borrowed(_)) | Value::Binary(Cow::Borrowed(_)) => 0,
        value => value.length(),
    }
}

/// For each declaration its parameter, by name or in order.
fn slots(
    declarations: &[Declaration],
    params: &[Param<'_>],
    dialect: &Dialect,
) -> Result<Vec<Option<usize>>, ServerMessage> {
    let mut slots: Vec<Option<usize>> = vec![None; declarations.len()];
    for (index, param) in params.iter().enumerate() {
        let position = if param.is_named() {
            let name = format!("@{}", param.name(dialect).to_lowercase());
            declarations.iter().position(|declaration| declaration.name == name).ok_or_else(|| {
                ServerMessage::error(8145, 16, format!("{name} is not a parameter of this statement."))
            })?
        } else {
            index
        };
        let slot = slots.get_mut(position).ok_or_else(|| {
            ServerMessage::error(8144, 16, "The statement has too many arguments specified.")
        })?;
        if slot.replace(index).is_some() {
            let name = declarations.get(position).map_or("", |declaration| &declaration.name);
            return Err(ServerMessage::error(
                8143,
                16,
                format!("Parameter '{name}' was supplied multiple times."),
            ));
        }
    }
    Ok(slots)
}

/// For each parameter the text type that receives it.
pub fn texts_taken(
    declarations: &[Declaration],
    params: &[Param<'_>],
    dialect: &Dialect,
) -> Vec<Option<Type>> {
    let mut texts = vec![None; params.len()];
    let slots = slots(declarations, params, dialect).unwrap_or_default();
    for (declaration, slot) in declarations.iter().zip(slots) {
        if let Some(text) = slot.and_then(|index| texts.get_mut(index)) {
            *text = Some(declaration.of).filter(Type::is_text);
        }
    }
    texts
}

/// A variable's name as clients write it, without @.
pub fn bare(name: &str) -> &str {
    name.strip_prefix('@').unwrap_or(name)
}

/// The variables that a text names, each once, in lower case; empty if it may declare variables or name arguments.
fn free_variables(text: &str) -> Vec<String> {
    let tokens = lexer::tokens(text, Syntax::default()).unwrap_or_default();
    if tokens.iter().any(|token| token.is_any(&["declare", "exec", "execute", "create", "alter"])) {
        return Vec::new();
    }
    let mut names: Vec<String> = Vec::new();
    for token in tokens.iter().filter(|token| token.kind == TokenKind::Variable) {
        let name = token.value.to_lowercase();
        if !session::is_global(&name) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The value that a call passes for a parameter.
pub fn parameter_value<'a>(
    param: &'a Param<'_>,
    declaration: &Declaration,
    dialect: &Dialect,
) -> Result<Value<'a>, ServerMessage> {
    let value = param.value_for(declaration.of.is_text(), dialect);
    let value = match declaration.of == SQL_VARIANT {
        true => value.and_then(|value| as_variant(value, param.variant_type())),
        false => value,
    };
    value.map_err(|error| refused(&declaration.name, &error))
}

fn refused(name: &str, error: &ConvertError) -> ServerMessage {
    ServerMessage::error(error.number(), 16, format!("Parameter '{name}': {error}"))
}

/// 206: a table is passed to a parameter that is none, or the other way round.
pub fn check_table(param: &Param<'_>, declaration: &Declaration) -> Result<(), ServerMessage> {
    let is_table = param.type_of() == Some(TABLE);
    match param.default || is_table == (declaration.of == TABLE) {
        true => Ok(()),
        false => Err(no_table(&declaration.shown)),
    }
}

pub fn no_table(parameter: &str) -> ServerMessage {
    let text = format!(
        "Operand type clash: table is incompatible with parameter '{parameter}', or the parameter with it."
    );
    ServerMessage { state: 2, ..ServerMessage::error(206, 16, text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Version;
    use tsql::schema::Unknown;

    fn params(values: &[(&str, i64)]) -> Vec<Param<'static>> {
        values
            .iter()
            .map(|(name, value)| Param::of_text((*name).to_owned(), Value::Int(*value), false))
            .collect()
    }

    fn bound(given: &[(&str, i64)]) -> Result<Vec<Value<'static>>, i32> {
        let declared = tsql::declarations("@a int, @b bigint", &tsql::SQL_SERVER, &Unknown).unwrap();
        let params = params(given);
        let variables = Variables::bind(&declared, &params, 2, &Dialect::new(Version::Tds74), None);
        let variables = variables.map_err(|message| message.number)?;
        Ok(["@a", "@b"].map(|name| variables.get(name).unwrap().value.clone().into_owned()).to_vec())
    }

    #[test]
    fn parameters_go_by_name_or_in_order() {
        let both = Ok(vec![Value::Int(1), Value::Int(2)]);
        assert_eq!(bound(&[("", 1), ("", 2)]), both);
        assert_eq!(bound(&[("B", 2), ("a", 1)]), both);
        assert_eq!(bound(&[("a", 1)]), Err(8178));
        assert_eq!(bound(&[("", 1), ("", 2), ("", 3)]), Err(8144));
        assert_eq!(bound(&[("a", 1), ("c", 3)]), Err(8145));
        assert_eq!(bound(&[("", 1), ("a", 3)]), Err(8143));
    }

    #[test]
    fn parameters_without_names_are_those_of_the_text_in_order() {
        let dialect = Dialect::new(Version::Tds50);
        let value = |given: &[(&str, i64)], text: &str, name: &str| {
            let params = params(given);
            let variables = Variables::of_command(&params, &dialect).unwrap().named_by(text);
            variables.get(name).map(|variable| variable.value.clone().into_owned())
        };
        let text = "insert t values (@B, '@x', @a, @b, @@spid)";
        assert_eq!(value(&[("", 1), ("", 2)], text, "@b"), Some(Value::Int(1)));
        assert_eq!(value(&[("", 1), ("", 2)], text, "@a"), Some(Value::Int(2)));
        assert_eq!(value(&[("", 1)], text, "@a"), None);
        assert_eq!(value(&[("", 1), ("@c", 2)], text, "@a"), None);
        assert_eq!(value(&[("", 1)], "exec p @a = 1", "@a"), None);
    }

    #[test]
    fn a_variable_keeps_its_type() {
        let mut variables = Variables::default();
        let declared = tsql::declarations("@n smallint", &tsql::SQL_SERVER, &Unknown).unwrap();
        variables.declare(&declared[0]);
        variables.set("@n", Value::Text("12".into()), &Zone::UTC).unwrap();
        assert_eq!(variables.get("@n").unwrap().value, Value::Int(12));
        assert_eq!(variables.set("@n", Value::Int(70_000), &Zone::UTC).unwrap_err().number, 8115);
        assert_eq!(variables.set("@m", Value::Null, &Zone::UTC).unwrap_err().number, 137);
    }
}
