//! Converts a call's parameters to the arguments of a function in PostgreSQL's binary format: each value directly
//! from TDS bytes to the declared type.

use super::function::Function;
use super::parameters::{Direction, Field};
use crate::convert::{put_text_array, repeated as repeated_by, text_element, to_pg, PgType, Zone};
use crate::postgres::message::put_value;
use crate::tds::call::Param;
use crate::tds::dialect::Dialect;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{as_variant, ConvertError, Value};
use bytes::{BufMut, Bytes, BytesMut};
use postgres_protocol::IsNull;
use std::borrow::Cow;
use tsql::facts::types::{Type, VARCHAR};

/// Arguments ready for a Bind message.
#[derive(Debug)]
pub struct Bound {
    /// A mask of the function's given arguments.
    pub given: Vec<bool>,
    pub values: Bytes,
    /// For each requested output parameter: its index among the sent parameters and among the function's fields.
    pub outputs: Vec<(usize, usize)>,
    /// Fields whose time without a zone occurs twice because clocks were set back, each with the microseconds
    /// from the earlier reading to the later one, which is in `values`.
    pub repeated: Vec<(String, i64)>,
}

/// The reason why a call does not fit its function. Nothing has been sent to PostgreSQL.
#[derive(Debug, PartialEq)]
pub enum BindError {
    TooMany,
    NotAParameter(String),
    Ambiguous(String),
    PositionalAfterNamed(usize),
    Twice(String),
    Missing(String),
    NotAnOutput(String),
    Value { name: String, error: ConvertError },
}

impl BindError {
    pub fn to_message(&self, function: &Function) -> ServerMessage {
        let procedure = &function.name;
        match self {
            BindError::TooMany if function.parameters.fields.is_empty() => ServerMessage::error(
                8146,
                16,
                format!("Procedure {procedure} has no parameters and arguments were supplied."),
            ),
            BindError::TooMany => ServerMessage::error(
                8144,
                16,
                format!("Procedure or function {procedure} has too many arguments specified."),
            ),
            BindError::NotAParameter(name) => ServerMessage::error(
                8145,
                16,
                format!("@{name} is not a parameter for procedure {procedure}."),
            ),
            BindError::Ambiguous(name) => ServerMessage::error(
                8145,
                16,
                format!("@{name} names several parameters of procedure {procedure}: pass them by position."),
            ),
            BindError::PositionalAfterNamed(number) => ServerMessage::error(
                119,
                15,
                format!(
                    "Must pass parameter number {number} and subsequent parameters as '@name = value'. \
                     After the form '@name = value' has been used, all subsequent parameters must be \
                     passed in the form '@name = value'."
                ),
            ),
            BindError::Twice(name) => {
                ServerMessage::error(8143, 16, format!("Parameter '@{name}' was supplied multiple times."))
            }
            BindError::Missing(name) => ServerMessage::error(
                201,
                16,
                format!(
                    "Procedure or function '{procedure}' expects parameter '@{name}', which was not supplied."
                ),
            ),
            BindError::NotAnOutput(name) => ServerMessage::error(
                8162,
                16,
                format!(
                    "The formal parameter '@{name}' was not declared as an OUTPUT parameter, but the actual \
                     parameter passed in requested output."
                ),
            ),
            BindError::Value { name, error } => ServerMessage::error(
                error.number(),
                16,
                format!("Parameter '@{name}' of {procedure}: {error}"),
            ),
        }
        .in_procedure(procedure)
    }
}

/// Puts `params` in the order of `function`.
pub fn bind(
    function: &Function,
    params: &[Param<'_>],
    dialect: &Dialect,
    zone: &Zone,
) -> Result<Bound, BindError> {
    let (slots, outputs) = assign(function, params, dialect)?;
    let mut given = Vec::with_capacity(function.parameters.arguments.len());
    let mut values = BytesMut::with_capacity(64 + function.parameters.fields.len() * 12);
    for argument in &function.parameters.arguments {
        let slots = slots.get(argument.fields.clone()).unwrap_or(&[]);
        let fields = function.parameters.fields.get(argument.fields.clone()).unwrap_or(&[]);
        let is_given = slots.iter().any(Option::is_some);
        if !argument.direction.is_input() {
            given.push(false);
            continue;
        }
        given.push(is_given);
        if !is_given {
            if argument.has_default {
                continue;
            }
            let name = fields.first().map_or("", |field| &*field.name);
            return Err(BindError::Missing(name.to_owned()));
        }
        let value_of = |field: &Field, slot: &Option<usize>, out: &mut BytesMut| {
            let param = slot.and_then(|slot| params.get(slot));
            put_value(out, |out| put_param(param, field, argument.is_composite, dialect, zone, out))
        };
        if argument.is_composite {
            put_value(&mut values, |out| {
                // record_recv: the number of fields, then for each its type, length and bytes
                out.put_i32(fields.len() as i32);
                for (field, slot) in fields.iter().zip(slots) {
                    out.put_u32(field.oid);
                    value_of(field, slot, out)?;
                }
                Ok(IsNull::No)
            })?;
        } else if let (Some(field), Some(slot)) = (fields.first(), slots.first()) {
            value_of(field, slot, &mut values)?;
        }
    }
    let repeated = function
        .parameters
        .fields
        .iter()
        .zip(&slots)
        .filter(|(field, _)| field.pg_type == PgType::TimestampTz);
    let repeated = repeated.filter_map(|(field, slot)| {
        let value = params.get((*slot)?)?.value(dialect).ok()?;
        Some((field.name.to_string(), repeated_by(&value, field.pg_type, zone)?))
    });
    Ok(Bound { given, values: values.freeze(), outputs, repeated: repeated.collect() })
}

/// Whether the function has a parameter for each of `params`.
pub fn fits(function: &Function, params: &[Param<'_>], dialect: &Dialect) -> bool {
    assign(function, params, dialect).is_ok()
}

/// For each of `params` the text type that a procedure of T-SQL declares for it, if any.
pub fn texts_taken(function: &Function, params: &[Param<'_>], dialect: &Dialect) -> Vec<Option<Type>> {
    let mut texts = vec![None; params.len()];
    let Ok((slots, _)) = assign(function, params, dialect) else { return texts };
    for (position, (field, slot)) in function.parameters.fields.iter().zip(slots).enumerate() {
        let argument = function.parameters.arguments.get(field.argument);
        let is_of_tsql = argument.is_some_and(|argument| argument.name.starts_with('@'));
        if let (Some(text), true) = (slot.and_then(|index| texts.get_mut(index)), is_of_tsql) {
            // a procedure created by an earlier version has no length
            let of = function.takes.get(position).copied().unwrap_or(VARCHAR);
            *text = Some(of).filter(|_| field.takes_text());
        }
    }
    texts
}

pub type Assigned = (Vec<Option<usize>>, Vec<(usize, usize)>);

/// For each field of the function the parameter that fills it, and the requested outputs.
pub fn assign(function: &Function, params: &[Param<'_>], dialect: &Dialect) -> Result<Assigned, BindError> {
    let mut slots = vec![None; function.parameters.fields.len()];
    let mut outputs = Vec::new();
    let mut named = false;
    let mut expected = 0;
    for (index, param) in params.iter().enumerate() {
        let position = if param.is_named() {
            named = true;
            position_of(function, param, expected, dialect)?
        } else if named {
            return Err(BindError::PositionalAfterNamed(index + 1));
        } else {
            index
        };
        expected = position + 1;
        let (Some(slot), Some(field)) = (slots.get_mut(position), function.parameters.fields.get(position))
        else {
            return Err(BindError::TooMany);
        };
        let direction = function.parameters.arguments.get(field.argument).map(|argument| argument.direction);
        if param.output {
            if !direction.is_some_and(Direction::is_output) {
                return Err(BindError::NotAnOutput(field.name.to_string()));
            }
            outputs.push((index, position));
        }
        if slot.is_some() {
            return Err(BindError::Twice(field.name.to_string()));
        }
        if !param.default {
            *slot = Some(index);
        }
    }
    Ok((slots, outputs))
}

/// Callers mostly name parameters in the order of declaration: `expected` is tried first.
fn position_of(
    function: &Function,
    param: &Param<'_>,
    expected: usize,
    dialect: &Dialect,
) -> Result<usize, BindError> {
    if let Some(field) = function.parameters.fields.get(expected) {
        if field.is_unique && param.is(&field.name) {
            return Ok(expected);
        }
    }
    let name = param.name(dialect);
    let mut named = function.parameters.indexes_of(&name);
    match (named.next(), named.next()) {
        (Some(position), None) => Ok(position),
        (None, _) => Err(BindError::NotAParameter(name)),
        _ => Err(BindError::Ambiguous(name)),
    }
}

fn put_param(
    param: Option<&Param<'_>>,
    field: &Field,
    in_composite: bool,
    dialect: &Dialect,
    zone: &Zone,
    out: &mut BytesMut,
) -> Result<IsNull, BindError> {
    let Some(param) = param else { return Ok(IsNull::Yes) };
    let failed = |error| BindError::Value { name: field.name.to_string(), error };
    let mut value = param.value_for(field.takes_text(), dialect).map_err(failed)?;
    if field.pg_type == PgType::SqlVariant {
        value = as_variant(value, param.variant_type()).map_err(failed)?;
    }
    put_value_of(&value, field, in_composite, dialect, zone, out).map_err(failed)
}

/// One value in the format of its parameter: a type without a binary form here is sent as text, which is impossible
/// inside a composite.
#[inline]
pub(super) fn put_value_of(
    value: &Value<'_>,
    field: &Field,
    in_composite: bool,
    dialect: &Dialect,
    zone: &Zone,
    out: &mut BytesMut,
) -> Result<IsNull, ConvertError> {
    let without_blanks;
    let value = match value {
        Value::Null => return Ok(IsNull::Yes),
        Value::Text(text) if in_composite && field.pg_type == PgType::Varchar && !dialect.is_tds7() => {
            without_blanks = Value::Text(Cow::Borrowed(stored_by_ase(text)));
            &without_blanks
        }
        value => value,
    };
    if let (true, PgType::Other(oid)) = (in_composite, field.pg_type) {
        if let Some(element) = text_element(oid) {
            put_text_array(value, element, out)?;
            return Ok(IsNull::No);
        }
        return Err(ConvertError::unsupported(&format!("type {} inside a row", field.pg_type.name())));
    }
    let before = out.len();
    to_pg(value, field.pg_type, zone, out)?;
    if let Some(capacity) = field.capacity {
        capacity.fit(out.get_mut(before..).unwrap_or_default())?;
    }
    Ok(IsNull::No)
}

/// A text as ASE stores it in a varchar: "Data in variable-length columns is stripped of trailing blanks" (Reference
/// Manual: Building Blocks, "Length and storage size"); one blank remains of a text of blanks.
fn stored_by_ase(text: &str) -> &str {
    let stored = text.trim_end_matches(' ');
    match stored {
        "" => text.get(..1).unwrap_or(text),
        _ => stored,
    }
}
