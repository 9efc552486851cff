//! Statements that send messages (print, raiserror, throw), also with texts from variables.

use crate::client::{Client, SessionError};
use crate::interrupt::{Failure, Interrupt};
use crate::program::{Expression, Sql};
use crate::run::errors::fail_unchanged;
use crate::run::state::State;
use crate::run::variables::Variables;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::time::Duration;

pub async fn print(
    state: &mut State,
    client: &mut Client,
    value: &Expression,
    line: u32,
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    let text = printed(&state.value(client, value, variables).await?)?;
    client.reply.message(&state.nesting.located(ServerMessage::info(0, text), line));
    client.reply.finished(0);
    Ok(())
}

pub async fn raise(
    state: &mut State,
    client: &mut Client,
    message: ServerMessage,
    line: u32,
    sets_error: bool,
    at_once: bool,
) -> Result<(), Interrupt> {
    let message = state.nesting.located(message, line);
    if message.severity > 18 {
        let text = "Error severity levels greater than 18 can only be specified by members of the sysadmin \
                    role, using the WITH LOG option.";
        return Err(ServerMessage::error(2754, 16, text).into());
    }
    let number = message.number;
    if message.is_error() {
        let failed = fail_unchanged(state, client, Failure::of_statement(message)).await;
        if at_once {
            client.send_now().await?;
        }
        return failed;
    }
    client.reply.message(&message);
    if at_once {
        client.send_now().await?;
    }
    client.reply.finished(0);
    if sets_error {
        client.reply.error = number;
    }
    Ok(())
}

/// The message of a raiserror: number, severity, state and text.
pub async fn raised(
    state: &mut State,
    client: &mut Client,
    sql: &Sql,
    variables: &Variables<'_>,
) -> Result<ServerMessage, Interrupt> {
    let values = state.evaluate(client, sql, variables).await?;
    let [number, severity, state, text] = values.as_slice() else {
        return Err(ServerMessage::error(8623, 16, "A raiserror gives other than four values.").into());
    };
    let message = ServerMessage::error(
        integer(number),
        u8::try_from(integer(severity).max(0)).unwrap_or(u8::MAX),
        printed(text)?,
    );
    Ok(ServerMessage { state: u8::try_from(integer(state)).unwrap_or(1), ..message })
}

/// The error of a throw: number, text and state, or the error that has been caught.
pub async fn thrown(
    state: &mut State,
    client: &mut Client,
    sql: Option<&Sql>,
    line: u32,
    variables: &Variables<'_>,
) -> Result<ServerMessage, Interrupt> {
    let Some(sql) = sql else {
        let text = "To rethrow an error, a THROW statement must be used inside a CATCH block.";
        let caught = state.nesting.caught.last().cloned();
        return caught.ok_or_else(|| ServerMessage::error(10704, 15, text).into());
    };
    let values = state.evaluate(client, sql, variables).await?;
    let [number, text, of_state] = values.as_slice() else {
        return Err(ServerMessage::error(8623, 16, "A throw gives other than three values.").into());
    };
    let message = ServerMessage::error(integer(number), 16, printed(text)?);
    let message = ServerMessage { state: u8::try_from(integer(of_state)).unwrap_or(1), ..message };
    Ok(state.nesting.located(message, line))
}

pub async fn wait(
    state: &mut State,
    client: &mut Client,
    seconds: &Expression,
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    let seconds = match state.value(client, seconds, variables).await? {
        Value::Float(seconds) => seconds,
        Value::Int(seconds) => seconds as f64,
        _ => 0.0,
    };
    let pause = Duration::try_from_secs_f64(seconds)
        .map_err(|_| ServerMessage::error(148, 15, "Incorrect time syntax in time string of WAITFOR."))?;
    let stopping = state.gateway.stopping.clone();
    tokio::select! {
        attention = client.attention() => {
            attention?;
            return Err(Interrupt::Cancelled);
        }
        () = stopping.cancelled() => return Err(Interrupt::Session(SessionError::Closed)),
        () = tokio::time::sleep(pause) => {}
    }
    client.reply.finished(0);
    Ok(())
}

/// A value as printed by `print`; NULL is empty.
pub fn printed(value: &Value<'_>) -> Result<String, Failure> {
    match value {
        Value::Null => Ok(String::new()),
        Value::Text(text) => Ok(text.clone().into_owned()),
        other => {
            let text = other
                .to_text("text")
                .map_err(|error| Failure::of_value(ServerMessage::error(error.number(), 16, error.text)))?;
            Ok(text.into_owned())
        }
    }
}

pub fn integer(value: &Value<'_>) -> i32 {
    match value {
        Value::Int(value) => i32::try_from(*value).unwrap_or(i32::MAX),
        _ => 0,
    }
}
