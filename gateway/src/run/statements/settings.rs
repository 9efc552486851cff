//! SET: the client's settings, context_info and IDENTITY_INSERT.

use super::messages::printed;
use crate::client::{Client, Settings};
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::program::{Action, Expression, Statement};
use crate::run::errors::failed;
use crate::run::state::State;
use crate::run::variables::Variables;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use tsql::bytes_of;

pub async fn set(
    state: &mut State,
    client: &mut Client,
    words: &[String],
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    if let [option, value] = words {
        if option == "context_info" {
            state.context = Some(context(value, variables)?);
            client.reply.finished(0);
            return Ok(());
        }
    }
    let only_formats = client.settings().only_formats;
    let words = set_words(state, client, words, variables).await?;
    let mut settings = client.settings().clone();
    settings.apply(&words)?;
    apply(state, client, settings)?;
    if only_formats {
        // freebcp reads the columns when the reply is complete: only a result set ends under FMTONLY
        client.reply.passed(Some(0));
    } else {
        client.reply.finished(0);
    }
    Ok(())
}

/// After a refused SET, which ends its text, applies the other SETs next to it, as they are for later texts. A
/// client sends them together when it begins, and continues.
pub async fn set_rest(
    state: &mut State,
    client: &mut Client,
    from_refused: &[Statement],
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    if state.nesting.tries > 0 {
        return Ok(());
    }
    for statement in from_refused.iter().skip(1) {
        let Action::Set(words) = &statement.action else { break };
        match set(state, client, words, variables).await {
            Err(Interrupt::Failed(failure)) => {
                let failure = Failure { ends: Ends::Statement, ..failure };
                failed(state, client, failure, statement.line).await?;
            }
            set => set?,
        }
    }
    Ok(())
}

/// Applies the client's settings. A transaction that has begun cannot be raised to a higher isolation level.
pub fn apply(state: &State, client: &mut Client, settings: Settings) -> Result<(), ServerMessage> {
    let before = client.settings().locking.isolation;
    if settings.locking.isolation > before && state.procedures.backend.has_begun() {
        let text = "The isolation level of a transaction cannot be raised when a statement of it has run.";
        return Err(ServerMessage::error(195, 15, text));
    }
    client.set(settings);
    Ok(())
}

/// The arguments of SET, with the values of its variables.
async fn set_words(
    state: &mut State,
    client: &mut Client,
    words: &[String],
    variables: &Variables<'_>,
) -> Result<Vec<String>, Interrupt> {
    let mut values = Vec::with_capacity(words.len());
    for word in words {
        values.push(if word.starts_with('@') {
            printed(&state.value(client, &Expression::Variable(word.clone()), variables).await?)?
        } else {
            word.clone()
        });
    }
    Ok(values)
}

/// The value of `set context_info`: the bytes of a literal or variable, padded with zeros ("SET CONTEXT_INFO").
fn context(value: &str, variables: &Variables<'_>) -> Result<Vec<u8>, ServerMessage> {
    const LENGTH: usize = 128;
    let bytes = match (variables.get(value).map(|variable| &variable.value), value.strip_prefix("0x")) {
        (Some(Value::Binary(bytes)), _) => Some(bytes.to_vec()),
        (None, Some(digits)) => bytes_of(digits),
        _ => None,
    };
    let bytes = bytes.filter(|bytes| bytes.len() <= LENGTH).ok_or_else(|| {
        let text =
            "'set context_info' takes at most 128 bytes, of a literal or a binary variable that is not NULL.";
        ServerMessage::error(195, 15, text)
    });
    bytes.map(|mut bytes| {
        bytes.resize(LENGTH, 0);
        bytes
    })
}

pub fn set_identity_insert(client: &mut Client, table: &str, on: bool) -> Result<(), ServerMessage> {
    let mut settings = client.settings().clone();
    match settings.identity_insert.as_deref() {
        Some(other) if on && other != table => {
            let text = format!(
                "IDENTITY_INSERT is already ON for table '{other}'. Cannot perform SET operation for table '{table}'."
            );
            return Err(ServerMessage::error(8107, 16, text));
        }
        _ if on => settings.identity_insert = Some(table.to_owned()),
        Some(other) if other == table => settings.identity_insert = None,
        _ => {}
    }
    client.set(settings);
    Ok(())
}
