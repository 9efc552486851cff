//! The results of a call, and the tokens that end it.

use crate::catalogue::{Function, Returns};
use crate::client::{unsendable, Reply};
use crate::convert::{
    cast, client_type, declared, from_pg, longer_type, output_type, ConvertError, ErrorKind, PgType, SqlType,
    Zone,
};
use crate::postgres::commit::Outcome;
use crate::postgres::message::row_values;
use crate::tds::call::Param;
use crate::tds::dialect::Dialect;
use crate::tds::tokens::done::{Command, Scope, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::tokens::returns::{self, Output};
use crate::tds::types::{bytes_of_precision, clock, cut, encode_value, TypeInfo, TypeToken, Value};
use bytes::BytesMut;
use tsql::facts::types::Type;

/// The results of a successful call.
#[derive(Debug)]
pub struct Returned {
    pub status: i32,
    /// The value of a function that was called for its value.
    pub value: Option<FunctionValue>,
    pub outputs: Vec<OutputValue>,
    /// The number of rows of a sent result set.
    pub rows: Option<u64>,
    /// @@error after the procedure.
    pub error: i32,
    /// The text failed at its end; the error has been sent to the client.
    pub has_failed: bool,
    /// @@rowcount after the procedure; None: the number of its rows.
    pub row_count: Option<i64>,
}

/// The value of a function.
#[derive(Debug)]
pub struct FunctionValue {
    pub value: Value<'static>,
    /// The type that a function of T-SQL declares.
    pub of: Option<Type>,
}

/// The value of an output parameter.
#[derive(Clone, Debug)]
pub struct OutputValue {
    /// The index of its parameter in the call.
    pub index: usize,
    /// The name of the procedure's parameter, without @.
    pub name: String,
    pub value: Value<'static>,
    pub pg_type: PgType,
}

impl OutputValue {
    /// The handle that sp_prepare and related procedures return as their first parameter.
    pub fn of_handle(handle: i32) -> OutputValue {
        let value = Value::Int(i64::from(handle));
        OutputValue { index: 0, name: String::from("handle"), value, pg_type: PgType::Int4 }
    }
}

/// The form of the call, which determines the tokens at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Rpc,
    /// `exec` in a text.
    Text,
}

impl Returned {
    pub fn status(status: i32) -> Returned {
        Returned {
            status,
            value: None,
            outputs: Vec::new(),
            rows: None,
            error: 0,
            has_failed: false,
            row_count: None,
        }
    }

    pub fn rows(rows: Option<u64>) -> Returned {
        Returned { rows, ..Returned::status(0) }
    }

    pub fn outputs(status: i32, outputs: Vec<OutputValue>) -> Returned {
        Returned { outputs, ..Returned::status(status) }
    }

    /// The results of a call of `function`, with the outputs in `asked`: indexes of the parameter in the call and of
    /// the field in the function.
    pub(super) fn of(
        function: &Function,
        asked: &[(usize, usize)],
        outcome: &Outcome,
        zone: &Zone,
    ) -> Result<Returned, ServerMessage> {
        Ok(match function.returns {
            Returns::Rows => Returned::rows(outcome.count),
            Returns::Nothing => Returned::status(0),
            Returns::Status => Returned::status(status(outcome, 0)),
            Returns::Value => {
                // an integer is also the status, like that of a procedure
                let status = match function.return_type() {
                    PgType::Int2 | PgType::Int4 => status(outcome, 0),
                    _ => 0,
                };
                let value = value(function, outcome, zone)?;
                Returned {
                    value: Some(FunctionValue { value, of: function.value_type }),
                    ..Returned::status(status)
                }
            }
            Returns::Outputs => {
                let outputs = outputs(function, asked, outcome, zone)?;
                let status = function.parameters.status_column.map_or(0, |column| status(outcome, column));
                Returned::outputs(status, outputs)
            }
        })
    }

    /// Ends the call in the reply; `params` are the parameters of the call.
    pub fn end(self, reply: &mut Reply, params: &[Param<'_>], form: Form, zone: &Zone) {
        let (status, encoded) = match &self.value {
            Some(FunctionValue { value, of: Some(of) }) if form == Form::Rpc => {
                // jTDS converts a status to the type of the value (TdsCore.tdsReturnStatusToken), and FreeTDS
                // reads only the status (odbc_set_return_status): a number has one
                let number = if let Value::Int(number) = value { i32::try_from(*number).ok() } else { None };
                let value = value_of_function(value, of, &reply.dialect, zone);
                let handle = encoded(&self.outputs, params, form, reply, zone);
                (number, handle.and_then(|handle| Ok(handle.into_iter().chain([value?]).collect())))
            }
            _ => (Some(self.status), encoded(&self.outputs, params, form, reply, zone)),
        };
        let outputs = match encoded {
            Ok(outputs) => outputs,
            Err(message) => return end_failed(reply, &message, form),
        };
        reply.error = reply.number(self.error);
        let rows = self.rows.and_then(|rows| i64::try_from(rows).ok());
        reply.row_count = self.row_count.or(rows).unwrap_or(0);
        if self.rows.is_some() {
            reply.command = Command::Select;
            reply.done(Scope::InProcedure, Status::empty(), self.rows);
        }
        put_returned(reply, status, &outputs, form);
        let how = if self.has_failed { Status::ERROR } else { Status::empty() };
        end_procedure(reply, how, form);
    }
}

/// Ends a failed call.
pub fn end_failed(reply: &mut Reply, message: &ServerMessage, form: Form) {
    reply.error = reply.number(message.number);
    reply.row_count = 0;
    reply.error_message(message);
    end_procedure(reply, Status::ERROR, form);
}

/// Ends a call in which a statement has failed; the error has been sent to the client.
pub fn end_failed_inside(
    reply: &mut Reply,
    outputs: &[OutputValue],
    params: &[Param<'_>],
    form: Form,
    zone: &Zone,
) {
    let outputs = encoded(outputs, params, form, reply, zone).unwrap_or_default();
    put_returned(reply, Some(reply.error), &outputs, form);
    end_procedure(reply, Status::ERROR, form);
}

/// Status and outputs; those of a call inside a procedure are not sent.
fn put_returned(reply: &mut Reply, status: Option<i32>, outputs: &[Output], form: Form) {
    if (form == Form::Rpc || reply.nesting == 0) && reply.gathering.is_none() {
        let dialect = reply.dialect;
        if let Some(status) = status {
            returns::put_status(&mut reply.tokens, status, &dialect);
        }
        returns::put_outputs(&mut reply.tokens, outputs, &dialect);
    }
}

fn end_procedure(reply: &mut Reply, status: Status, form: Form) {
    if form == Form::Text && reply.nesting > 0 {
        // one statement of the enclosing procedure
        if status.contains(Status::ERROR) {
            reply.done(Scope::InProcedure, status, None);
        }
        return;
    }
    reply.done(Scope::Procedure, status, None);
}

/// The values of the outputs that the caller requested.
fn outputs(
    function: &Function,
    asked: &[(usize, usize)],
    outcome: &Outcome,
    zone: &Zone,
) -> Result<Vec<OutputValue>, ServerMessage> {
    let values: Vec<Option<&[u8]>> =
        outcome.row.as_ref().map(|row| row_values(row).collect()).unwrap_or_default();
    let mut outputs = Vec::with_capacity(asked.len());
    for (index, position) in asked {
        let Some(field) = function.parameters.fields.get(*position) else {
            continue;
        };
        let column = function
            .parameters
            .arguments
            .iter()
            .take(field.argument)
            .filter(|argument| argument.direction.is_output())
            .count();
        let value = match values.get(column).copied().flatten() {
            None => Value::Null,
            // an instant stays an instant until it is known whether the client expects its offset
            Some(raw) if field.pg_type == PgType::TimestampTz => from_pg(PgType::Timestamp, raw, zone)
                .and_then(|utc| clock::to_datetime(&utc, field.pg_type.name()))
                .map(|utc| zone.with_offset(utc))
                .map_err(|error| unsendable(&format!("Output parameter '@{}'", field.name), &error))?,
            Some(raw) => from_pg(field.pg_type, raw, zone)
                .map_err(|error| unsendable(&format!("Output parameter '@{}'", field.name), &error))?
                .into_owned(),
        };
        outputs.push(OutputValue {
            index: *index,
            name: field.name.to_string(),
            value,
            pg_type: field.pg_type,
        });
    }
    Ok(outputs)
}

/// Outputs in the declared types of their parameters.
fn encoded(
    outputs: &[OutputValue],
    params: &[Param<'_>],
    form: Form,
    reply: &Reply,
    zone: &Zone,
) -> Result<Vec<Output>, ServerMessage> {
    // TDS 5.0 also sends the outputs of a call in a text
    if form == Form::Text && (reply.dialect.is_tds7() || reply.nesting > 0) {
        return Ok(Vec::new());
    }
    let dialect = &reply.dialect;
    let encode = |output: &OutputValue| {
        let param = params.get(output.index);
        let mut type_info =
            param.and_then(Param::declared_type).unwrap_or_else(|| output_type(output.pg_type, -1, dialect));
        if let (0, TypeToken::Decimal | TypeToken::Numeric) = (type_info.precision, type_info.token) {
            // FreeTDS declares no digits for a NULL that it sends, and accepts none in the answer
            type_info = decimal_for(&output.value, &type_info, dialect);
        }
        // whatever the client has declared: the value contains its own type
        if matches!(output.value, Value::Variant(_)) != (type_info.token == TypeToken::Variant) {
            type_info = output_type(output.pg_type, -1, dialect);
        }
        let unsent = |error| unsendable(&format!("Output parameter '@{}'", output.name), &error);
        let (type_info, value) =
            encoded_as(&output.value, type_info, dialect, dialect.is_tds7(), zone).map_err(unsent)?;
        let is_named = param.is_some_and(Param::is_named);
        Ok(Output {
            // in the caller's spelling, by which the caller finds it
            name: param
                .filter(|_| is_named)
                .map_or_else(String::new, |param| format!("@{}", param.name(dialect))),
            ordinal: u16::try_from(output.index).unwrap_or(u16::MAX),
            type_info,
            value,
            of_function: false,
        })
    };
    outputs.iter().map(encode).collect()
}

/// The value of a function of T-SQL, in its declared type.
fn value_of_function(
    value: &Value<'_>,
    of: &Type,
    dialect: &Dialect,
    zone: &Zone,
) -> Result<Output, ServerMessage> {
    // characters that the client's code page may lack
    let is_wide = matches!(value, Value::Text(text) if !text.is_ascii());
    let of = if is_wide { of.twin() } else { *of };
    let typmod = match of.length {
        Some(length) if of.is_text() => SqlType::varchar(Some(length)).typmod,
        _ => -1,
    };
    let pg_type = PgType::from_oid(of.oid);
    let shown = client_type(pg_type, typmod, declared::of_expression(&of, dialect), dialect);
    let type_info = match shown.token {
        // parameters cannot have these types
        TypeToken::Text | TypeToken::NText | TypeToken::Image => output_type(pg_type, typmod, dialect),
        _ => shown,
    };
    let (type_info, value) = encoded_as(value, type_info, dialect, false, zone)
        .map_err(|error| unsendable("The value of the function", &error))?;
    Ok(Output { name: String::new(), ordinal: 0, type_info, value, of_function: true })
}

/// A value in this type, or in a longer one if it does not fit. `cuts`: it is truncated first.
fn encoded_as(
    value: &Value<'_>,
    mut type_info: TypeInfo,
    dialect: &Dialect,
    cuts: bool,
    zone: &Zone,
) -> Result<(TypeInfo, BytesMut), ConvertError> {
    // a variable that the text declares as characters may be returned as a number
    let wire_type = SqlType::of_wire(&type_info);
    let converted = match value {
        Value::Text(_) if !wire_type.is_characters() => cast(value.clone(), wire_type, zone)?,
        Value::DateTimeOffset { utc, .. } if type_info.token != TypeToken::DateTimeOffset => {
            Value::DateTime(zone.to_local(*utc))
        }
        Value::DateTime(local) if type_info.token == TypeToken::DateTimeOffset => {
            zone.with_offset(zone.to_utc(*local))
        }
        value => value.clone(),
    };
    let mut out = BytesMut::new();
    while let Err(error) = encode_value(&converted, &type_info, dialect, &mut out) {
        out.clear();
        // SQL Server truncates it to the client's declaration (zillow/ctds, test_binary_output); ASE's
        // clients declare the value that they send, not the one that they expect (DBD::Sybase)
        let is_cut = cuts && error.kind == ErrorKind::Truncation;
        if let Some(shorter) = cut(&converted, &type_info, dialect).filter(|_| is_cut) {
            encode_value(&shorter, &type_info, dialect, &mut out)?;
            break;
        }
        let is_decimal = matches!(type_info.token, TypeToken::Decimal | TypeToken::Numeric);
        let longer = match error.kind {
            ErrorKind::Truncation => longer_type(&type_info, dialect),
            // the procedure's digits, whatever the client has declared
            ErrorKind::Overflow if is_decimal => {
                Some(decimal_for(&converted, &type_info, dialect)).filter(|longer| *longer != type_info)
            }
            _ => None,
        };
        type_info = longer.ok_or(error)?;
    }
    Ok((type_info, out))
}

/// A decimal with all digits of a value.
fn decimal_for(value: &Value<'_>, declared: &TypeInfo, dialect: &Dialect) -> TypeInfo {
    const PRECISION: u8 = 38;
    let scale = match value {
        Value::Decimal(decimal) => decimal.scale.max(declared.scale),
        _ => declared.scale,
    };
    let size = u32::from(bytes_of_precision(PRECISION, dialect));
    TypeInfo { size, ..declared.with_scale(PRECISION, scale) }
}

/// The value returned by a function.
fn value(function: &Function, outcome: &Outcome, zone: &Zone) -> Result<Value<'static>, ServerMessage> {
    let row = outcome.row.as_ref().and_then(|row| row_values(row).next().flatten());
    let Some(raw) = row else { return Ok(Value::Null) };
    match from_pg(function.return_type(), raw, zone) {
        Ok(value) => Ok(value.into_owned()),
        Err(error) => Err(unsendable(&format!("The value of {}", function.name), &error)),
    }
}

/// The int2 or int4 that a function returned in this column; NULL counts as 0.
fn status(outcome: &Outcome, column: usize) -> i32 {
    let value = outcome.row.as_ref().and_then(|row| row_values(row).nth(column).flatten());
    match value {
        Some(&[a, b, c, d]) => i32::from_be_bytes([a, b, c, d]),
        Some(&[a, b]) => i32::from(i16::from_be_bytes([a, b])),
        _ => 0,
    }
}
