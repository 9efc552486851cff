//! The parameters of system procedures: statements, their declarations and values, and handles.

use super::prepared::{Prepared, PreparedStatements, Target};
use crate::backend::put_description;
use crate::calls::{OutputValue, Returned};
use crate::client::Client;
use crate::describe::type_in;
use crate::interrupt::{Failure, Interrupt};
use crate::program::{Action, Compiled, Query, Statement};
use crate::run::{set_texts, texts_taken, written_and_described, State, Variables};
use crate::tds::call::Param;
use crate::tds::tokens::done::{Scope, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::sync::Arc;
use tsql::facts::types::TABLE;

/// sp_prepare: handle, declarations, text, options.
pub async fn prepare(
    prepared_statements: &mut PreparedStatements,
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
) -> Result<Returned, ServerMessage> {
    /// option bit: the client requests the columns at once
    const RETURN_METADATA: i64 = 1;
    let options = params.get(3).and_then(|param| param.value(&client.reply.dialect).ok());
    let wants_columns = matches!(options, Some(Value::Int(options)) if options & RETURN_METADATA != 0);
    let prepared = prepared_from(state, client, params, 1, 2, false).await?;
    if let Some(query) = described_query(&prepared.program.statements) {
        let type_of = |name: &String| type_in(&prepared.declarations, name);
        let (written, described) =
            written_and_described(&mut state.procedures, client, query, type_of).await?;
        let described = described.map_err(|error| error.to_message())?;
        let query = written.as_deref().unwrap_or(query);
        if wants_columns && !described.columns.is_empty() && query.assigns.is_empty() {
            put_description(&described.columns, query.columns.as_deref(), &mut client.reply);
            client.reply.done(Scope::InProcedure, Status::empty(), None);
        }
    }
    let handle = prepared_statements.keep(Target::Text(prepared))?;
    Ok(Returned::outputs(0, vec![OutputValue::of_handle(handle)]))
}

/// The statement of the declarations and text in `params`. `lifts`: it is used for these values only.
pub async fn prepared_from(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
    declarations: usize,
    text: usize,
    lifts: bool,
) -> Result<Arc<Prepared>, ServerMessage> {
    let text = statement_of(client, params, text)?;
    prepared_as(state, client, params, declarations, &text, lifts).await
}

/// The same for this text.
pub async fn prepared_as(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
    declarations: usize,
    text: &str,
    lifts: bool,
) -> Result<Arc<Prepared>, ServerMessage> {
    let declared = text_of(client, params, declarations)?.unwrap_or_default();
    let declarations = state.declarations(client, &declared).await?;
    let mut settings = state.compiling_with(client, &declarations);
    if declarations.iter().any(|declaration| declaration.of == TABLE) {
        settings.given = declared;
    }
    let Compiled { program, literals } = state.compile(client, text, &settings, lifts).await?;
    Ok(Arc::new(Prepared { declarations, program, literals, text: text.to_owned() }))
}

/// The variables of a statement, with the values of the parameters from number `first` on.
pub async fn bound<'p>(
    state: &mut State,
    client: &mut Client,
    prepared: &Prepared,
    params: &'p [Param<'_>],
    first: usize,
) -> Result<Variables<'p>, Interrupt> {
    let (declarations, dialect) = (&prepared.declarations, client.dialect());
    let values = params.get(first..).unwrap_or(&[]);
    set_texts(state, client, values, &texts_taken(declarations, values, &dialect)).await?;
    let arithabort = client.settings().arithabort;
    let mut variables =
        Variables::bind(declarations, values, first, &dialect, arithabort).map_err(Failure::of_statement)?;
    variables.give(&prepared.literals);
    Ok(variables)
}

/// The statement or call of the handle in `params`.
pub fn target_of(
    prepared: &PreparedStatements,
    client: &Client,
    params: &[Param<'_>],
) -> Result<Target, ServerMessage> {
    let handle = handle(client, params)?;
    prepared.get(handle).ok_or_else(|| no_such_handle(handle))
}

pub fn handle(client: &Client, params: &[Param<'_>]) -> Result<i32, ServerMessage> {
    let value = params.first().and_then(|param| param.value(&client.reply.dialect).ok());
    match value {
        Some(Value::Int(handle)) => i32::try_from(handle).map_err(|_| no_such_handle(handle)),
        _ => Err(ServerMessage::error(214, 16, "The procedure expects the handle of a statement.")),
    }
}

pub fn no_such_handle(handle: impl std::fmt::Display) -> ServerMessage {
    ServerMessage::error(8179, 16, format!("Could not find prepared statement with handle {handle}."))
}

/// The text of a statement.
pub fn statement_of(client: &Client, params: &[Param<'_>], index: usize) -> Result<String, ServerMessage> {
    let missing = "The procedure expects the text of a statement, not NULL.";
    text_of(client, params, index)?.ok_or_else(|| ServerMessage::error(214, 16, missing))
}

pub fn text_of(client: &Client, params: &[Param<'_>], index: usize) -> Result<Option<String>, ServerMessage> {
    let Some(param) = params.get(index) else {
        return Ok(None);
    };
    match param.value(&client.reply.dialect) {
        Ok(Value::Text(text)) => Ok(Some(text.into_owned())),
        Ok(Value::Null) => Ok(None),
        Ok(other) => Err(ServerMessage::error(
            214,
            16,
            format!("Parameter {} must be a text and is {}.", index + 1, other.kind()),
        )),
        Err(error) => {
            Err(ServerMessage::error(error.number(), 16, format!("Parameter {}: {error}", index + 1)))
        }
    }
}

/// The query whose columns are described: ASE describes the first of two (FreeTDS,
/// src/odbc/unittests/prepare_results.c).
pub fn described_query(statements: &[Statement]) -> Option<&Query> {
    match statements {
        [Statement { action: Action::Query(query), .. }, others @ ..]
            if others.is_empty() || query.only_reads() =>
        {
            Some(query)
        }
        _ => None,
    }
}
