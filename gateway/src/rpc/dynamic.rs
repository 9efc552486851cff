//! Dynamic statements of TDS 5.0, with `?` for their parameters.

use super::params::described_query;
use super::prepared::Prepared;
use crate::backend::{put_description, Typing};
use crate::calls::Procedures;
use crate::catalogue::Function;
use crate::client::{Client, Reply};
use crate::convert::{declared, output_type, PgType, SqlType};
use crate::interrupt::Interrupt;
use crate::postgres::message::PgColumn;
use crate::program::{
    placeholder, Action, Argument, Execute, Expression, Program, QueryKind, Statement, Title,
};
use crate::run::{forget_tables, temporary_tables, written_and_described, Interpreter, State, Variables};
use crate::tds::call::Param;
use crate::tds::dynamic;
use crate::tds::dynamic::{Dynamic, Operation};
use crate::tds::tokens::done::{Scope, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::tokens::returns;
use crate::tds::types::{TypeInfo, TypeToken, Value};
use std::sync::Arc;

/// The parameters and columns of a statement that are known before it runs.
#[derive(Default)]
struct Shape {
    inputs: Vec<TypeInfo>,
    columns: Arc<[PgColumn]>,
    /// The names of the columns that differ from PostgreSQL's.
    names: Option<Vec<Title>>,
}

impl Shape {
    fn set_input(&mut self, name: &str, type_info: TypeInfo) {
        let named = (1..).zip(&mut self.inputs).find(|(number, _)| placeholder(*number) == *name);
        if let Some((_, parameter)) = named {
            *parameter = input(type_info);
        }
    }
}

/// The description of a parameter: of any length, since the client may send any.
fn input(of: TypeInfo) -> TypeInfo {
    use TypeToken as T;
    match of.token {
        T::Char | T::VarChar | T::LongChar | T::Text => TypeInfo::new(T::VarChar, 255).with_user_type(2),
        T::Image => TypeInfo { token: T::LongBinary, ..of },
        _ => of,
    }
}

/// Answers one request about a dynamic statement.
pub async fn answer_dynamic(
    interpreter: &mut Interpreter,
    client: &mut Client,
    request: &Dynamic<'_>,
) -> Result<(), Interrupt> {
    let dialect = client.dialect();
    let name = dialect.charset.decode_lossily(request.id);
    dynamic::put_acknowledgement(&mut client.reply.tokens, request.id, &dialect);
    let done = match request.operation {
        Operation::Prepare => prepare_dynamic(interpreter, client, &name, request).await,
        Operation::DescribeInput => describe_dynamic(interpreter, client, &name, put_inputs).await,
        Operation::DescribeOutput => describe_dynamic(interpreter, client, &name, put_columns).await,
        Operation::Deallocate => {
            interpreter.prepared.close_named(&name);
            drop_made(interpreter, client, &name).await?;
            Ok(())
        }
        Operation::Execute => match interpreter.prepared.named(&name) {
            Ok(prepared) if prepared.program.makes_temporary => {
                let before = temporary_tables(&mut interpreter.state.procedures.backend, client).await?;
                execute_dynamic(interpreter, client, &prepared, request).await?;
                let after = temporary_tables(&mut interpreter.state.procedures.backend, client).await?;
                interpreter.prepared.has_made(&name, made_between(&before, &after));
                return Ok(());
            }
            Ok(prepared) => return execute_dynamic(interpreter, client, &prepared, request).await,
            Err(message) => Err(message),
        },
        Operation::Immediate => match read_dynamic(&mut interpreter.state, client, request).await {
            Ok(prepared) => return execute_dynamic(interpreter, client, &prepared, request).await,
            Err(message) => Err(message),
        },
    };
    match done {
        Ok(()) => client.reply.end(Status::empty(), None),
        Err(message) => client.reply.refuse(&message),
    }
    Ok(())
}

/// "Temporary tables are destroyed when the prepared statement is deallocated" (Open Client Client-Library/C
/// Programmer's Guide, "Adaptive Server Enterprise restrictions and database requirements").
async fn drop_made(interpreter: &mut Interpreter, client: &mut Client, name: &str) -> Result<(), Interrupt> {
    let made = interpreter.prepared.take_made(name);
    if made.is_empty() {
        return Ok(());
    }
    let now = temporary_tables(&mut interpreter.state.procedures.backend, client).await?;
    let others: Vec<&str> = oids(&now).filter(|oid| !made.iter().any(|one| one == oid)).collect();
    forget_tables(&mut interpreter.state.procedures.backend, client, &format!("{{{}}}", others.join(",")))
        .await
}

async fn describe_dynamic(
    interpreter: &mut Interpreter,
    client: &mut Client,
    name: &str,
    put: fn(&mut Reply, &Shape),
) -> Result<(), ServerMessage> {
    let prepared = interpreter.prepared.named(name)?;
    let shape = shape(&mut interpreter.state, client, &prepared).await?;
    put(&mut client.reply, &shape);
    Ok(())
}

async fn read_dynamic(
    state: &mut State,
    client: &mut Client,
    request: &Dynamic<'_>,
) -> Result<Arc<Prepared>, ServerMessage> {
    let charset = client.dialect().charset;
    let text = charset.decode(request.text);
    let text = text.ok_or_else(|| {
        ServerMessage::error(2402, 16, format!("The statement is not valid {}.", charset.name()))
    })?;
    let program = state.compile_dynamic(client, &text, None).await?;
    Ok(Arc::new(Prepared { text: text.into_owned(), ..Prepared::of(program) }))
}

async fn prepare_dynamic(
    interpreter: &mut Interpreter,
    client: &mut Client,
    name: &str,
    request: &Dynamic<'_>,
) -> Result<(), ServerMessage> {
    let prepared = read_dynamic(&mut interpreter.state, client, request).await?;
    let shape = shape(&mut interpreter.state, client, &prepared).await?;
    interpreter.prepared.keep_as(name, prepared)?;
    put_inputs(&mut client.reply, &shape);
    put_columns(&mut client.reply, &shape);
    Ok(())
}

/// The values of a dynamic statement, and its program for their types.
async fn with_values<'p>(
    state: &mut State,
    client: &mut Client,
    prepared: &Prepared,
    params: &'p [Param<'_>],
    is_call: bool,
) -> Result<(Arc<Program>, Variables<'p>), ServerMessage> {
    let (expected, given) = (prepared.program.placeholders, params.len());
    if given < expected {
        let message = format!("The statement has {expected} parameters and {given} values were sent.");
        return Err(ServerMessage::error(201, 16, message));
    }
    let variables = Variables::in_order(params, &client.dialect())?;
    // a call converts its values by the procedure's parameters
    let program = match is_call || expected == 0 {
        true => prepared.program.clone(),
        false => state.compile_dynamic(client, &prepared.text, Some(&variables)).await?,
    };
    Ok((program, variables))
}

async fn execute_dynamic(
    interpreter: &mut Interpreter,
    client: &mut Client,
    prepared: &Prepared,
    request: &Dynamic<'_>,
) -> Result<(), Interrupt> {
    let statements = &prepared.program.statements;
    let is_call = matches!(statements.as_slice(), [Statement { action: Action::Execute(_), .. }]);
    let bound = with_values(&mut interpreter.state, client, prepared, &request.params, is_call).await;
    let (program, mut variables) = match bound {
        Ok(bound) => bound,
        Err(message) => {
            client.reply.refuse(&message);
            return Ok(());
        }
    };
    client.reply.begin_answer();
    // ASE runs a dynamic statement as a procedure, and FreeTDS waits for the end of one; a call has its own
    client.reply.nesting += u8::from(!is_call);
    let ran = interpreter.run_text(client, &program, &mut variables).await;
    client.reply.nesting -= u8::from(!is_call);
    let failed = match ran {
        Ok(()) => client.reply.error != 0,
        Err(Interrupt::Failed(_)) => true,
        Err(interrupt) => return Err(interrupt),
    };
    if !is_call {
        let error = if failed { Status::ERROR } else { Status::empty() };
        client.reply.done(Scope::Procedure, error, None);
    }
    Ok(())
}

/// Describes a statement, by PostgreSQL or by a procedure's declaration.
async fn shape(state: &mut State, client: &mut Client, prepared: &Prepared) -> Result<Shape, ServerMessage> {
    let mut shape = Shape::default();
    let dialect = client.dialect();
    for number in 1..=prepared.program.placeholders {
        let name = placeholder(number);
        let pg_type =
            input_of_call(&mut state.procedures, client, prepared, &name).await.unwrap_or(PgType::Varchar);
        shape.inputs.push(input(output_type(pg_type, -1, &dialect)));
    }
    if let Some(query) = described_query(&prepared.program.statements) {
        // the client sends the types of values only with the values
        let (written, described) =
            written_and_described(&mut state.procedures, client, query, |_| SqlType::TEXT).await?;
        let query = written.as_deref().unwrap_or(query);
        shape.names.clone_from(&query.columns);
        match described {
            Ok(described) => {
                shape.columns = described.columns.clone();
                // a text for a column remains one: clients of CT-Library make numbers of texts by atoi()
                let keeps_texts = dialect.is_ct_library && query.kind != QueryKind::Select;
                for (name, oid) in query.sql.variables.iter().zip(&described.parameters) {
                    if !keeps_texts || !query.met.contains_key(name) {
                        shape.set_input(name, output_type(PgType::from_oid(*oid), -1, &dialect));
                    }
                }
                if !dialect.is_ct_library {
                    for (name, met) in &query.met {
                        shape.set_input(name, declared::type_sent(met.of, &dialect));
                    }
                }
            }
            // described when the types of the values are known
            Err(error) if Typing::Declared.after(&error).is_some() => {}
            Err(error) => return Err(error.to_message()),
        }
    }
    Ok(shape)
}

/// The type of the procedure's parameter for which a placeholder stands.
async fn input_of_call(
    procedures: &mut Procedures,
    client: &Client,
    prepared: &Prepared,
    name: &str,
) -> Option<PgType> {
    let [Statement { action: Action::Execute(execute), .. }] = prepared.program.statements.as_slice() else {
        return None;
    };
    if execute.status.as_deref() == Some(name) {
        return Some(PgType::Int4);
    }
    let function = function_of(procedures, client, execute).await?;
    let is_it =
        |value: &Option<Expression>| matches!(value, Some(Expression::Variable(used)) if used == name);
    let index = execute.arguments.iter().position(|argument| is_it(&argument.value))?;
    let argument = execute.arguments.get(index)?;
    let mut named = function.parameters.indexes_of(&argument.name);
    let field = match (named.next(), named.next()) {
        (Some(field), None) if !argument.name.is_empty() => field,
        _ => index,
    };
    function.parameters.fields.get(field).map(|field| field.pg_type)
}

async fn function_of(
    procedures: &mut Procedures,
    client: &Client,
    execute: &Execute,
) -> Option<Arc<Function>> {
    let unknown = |argument: &Argument| match argument.value {
        None => Param::default(argument.name.clone()),
        Some(_) => Param::of_text(argument.name.clone(), Value::Null, argument.output),
    };
    let params: Vec<_> = execute.arguments.iter().map(unknown).collect();
    procedures.resolve(client, &execute.procedure, &params).await.ok()
}

/// The elements of an array of oids.
fn oids(array: &str) -> impl Iterator<Item = &str> {
    array.trim_matches(['{', '}']).split(',').filter(|oid| !oid.is_empty())
}

fn made_between(before: &str, after: &str) -> Vec<String> {
    oids(after).filter(|oid| !oids(before).any(|one| one == *oid)).map(str::to_owned).collect()
}

fn put_inputs(reply: &mut Reply, shape: &Shape) {
    let dialect = reply.dialect;
    if shape.inputs.is_empty() {
        return;
    }
    returns::put_inputs(&mut reply.tokens, &shape.inputs, &dialect);
}

fn put_columns(reply: &mut Reply, shape: &Shape) {
    if !shape.columns.is_empty() {
        put_description(&shape.columns, shape.names.as_deref(), reply);
    }
}
