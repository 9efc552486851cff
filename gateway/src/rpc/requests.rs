//! Dispatches a client's requests to the parts of the interpreter.

use super::dynamic::answer_dynamic;
use super::options::answer_option;
use super::params::statement_of;
use super::system_procedures::SystemProcedure;
use crate::calls::{end_failed, Form, OutputValue};
use crate::client::{Client, Isolation, SessionError};
use crate::cursors::answer_cursor;
use crate::interrupt::{Ends, Failure, Interrupt};
use crate::run::{apply, commit, end_call, end_doomed, rollback, write_text, Interpreter, State, Variables};
use crate::tds::call::{Call, Param, Procedure};
use crate::tds::layout::PREPARE_AND_CALL;
use crate::tds::request::{Request, Requests};
use crate::tds::tokens::done::Status;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::transaction::{Operation, TransactionRequest};
use bytes::Bytes;
use std::borrow::Cow;
use tracing::debug;

/// The outcome of a call that is a request of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Succeeded,
    /// It has ended; further calls of its message follow.
    Failed,
    /// Its error ends the message's further calls: they are one batch.
    EndsBatch,
}

/// Neither texts nor parameters are logged: they may contain passwords.
fn log(request: &Request) {
    match request {
        Request::Batch(text) => debug!(length = text.len(), "batch"),
        Request::Language { text, .. } => debug!(length = text.len(), "language"),
        Request::Rpc(call) | Request::Dbrpc(call) => debug!(procedure = ?call.procedure, "call"),
        Request::Dynamic(_) => debug!("dynamic"),
        Request::Option(_) => debug!("option"),
        Request::Transaction(request) => debug!(operation = ?request.operation, "transaction"),
        Request::Cursor(_) => debug!("cursor"),
        Request::Attention => debug!("attention"),
        Request::BulkLoad => debug!("bulk load"),
        Request::Logout => debug!("logout"),
    }
}

/// The procedure that a call runs, and its parameters.
fn called<'a>(client: &Client, call: &'a Call<'a>) -> Option<(Cow<'a, str>, &'a [Param<'a>])> {
    match &call.procedure {
        Procedure::Named(name) => Some((name.into(), &call.params)),
        Procedure::Numbered(PREPARE_AND_CALL) => {
            let name = statement_of(client, &call.params, 1).ok()?;
            Some((name.into(), call.params.get(2..)?))
        }
        Procedure::Numbered(_) => None,
    }
}

/// Answers a call that is a request of its own.
async fn answer_call(
    interpreter: &mut Interpreter,
    client: &mut Client,
    call: &Call<'_>,
) -> Result<Answered, Interrupt> {
    let called = match &call.procedure {
        Procedure::Named(name) => {
            interpreter.call(client, name, &call.params, Form::Rpc, !call.knows_columns, false).await
        }
        Procedure::Numbered(number) => match SystemProcedure::numbered(*number) {
            Some(system) => {
                interpreter.call_system(client, system, &call.params, Form::Rpc, !call.knows_columns).await
            }
            None => {
                let text = format!("System procedure number {number} is not served.");
                Err(Failure::of_statement(ServerMessage::error(2812, 16, text)).into())
            }
        },
    };
    match end_call(&mut interpreter.state, client, called, &call.params, Form::Rpc).await {
        Ok(true) => Ok(Answered::Succeeded),
        Ok(false) => Ok(Answered::Failed),
        // its error has been reported
        Err(Interrupt::Failed(failure)) if failure.ends == Ends::Text => Ok(Answered::Failed),
        Err(Interrupt::Failed(_)) => Ok(Answered::EndsBatch),
        Err(interrupt) => Err(interrupt),
    }
}

/// Answers the requests of a message up to a logout. Returns false after a logout.
pub async fn answer(
    interpreter: &mut Interpreter,
    client: &mut Client,
    requests: &mut Requests<'_>,
) -> Result<bool, Interrupt> {
    let mut awaited_text = interpreter.state.awaited_text.take();
    while let Some(request) = requests.next_request().map_err(crate::client::SessionError::from)? {
        log(&request);
        match request {
            Request::Batch(text) => interpreter.run_batch(client, &text, &mut Variables::default()).await?,
            Request::Rpc(call) | Request::Dbrpc(call) => {
                let answered = answer_call(interpreter, client, &call).await?;
                if answered == Answered::Succeeded {
                    if let Some((name, params)) = called(client, &call) {
                        interpreter.state.procedures.learn(client, requests.body(), &name, params);
                    }
                }
                // ASE treats each call as a batch of its own (jTDS, BatchTest.testCallStmtBatch)
                if answered == Answered::EndsBatch && client.dialect().is_tds7() {
                    end_doomed(&mut interpreter.state, client).await;
                    return Ok(true);
                }
            }
            Request::Language { text, params } => answer_language(interpreter, client, text, &params).await?,
            Request::Dynamic(dynamic) => answer_dynamic(interpreter, client, &dynamic).await?,
            Request::Option(command) => answer_option(client, &command),
            Request::Transaction(request) => {
                answer_transaction(&mut interpreter.state, client, &request).await?
            }
            Request::Cursor(request) => {
                answer_cursor(&mut interpreter.state, &interpreter.prepared, client, &request).await?
            }
            Request::Attention => client.reply.close(Status::ATTENTION),
            Request::BulkLoad => match awaited_text.take() {
                Some(text) => write_text(&mut interpreter.state, client, *text, requests.body()).await?,
                None => client.reply.refuse(&ServerMessage::error(
                    4002,
                    16,
                    "Rows of a bulk copy come after an insert bulk.",
                )),
            },
            Request::Logout => return Ok(false),
        }
        end_doomed(&mut interpreter.state, client).await;
    }
    Ok(true)
}

/// Answers a call of known shape. False: it is another request.
pub async fn answer_planned(
    interpreter: &mut Interpreter,
    client: &mut Client,
    body: &Bytes,
) -> Result<bool, SessionError> {
    let Some(planned) = interpreter.state.procedures.planned(client, body) else { return Ok(false) };
    let held = match &planned.prepares {
        None => None,
        Some((name, given)) => match interpreter.prepared.hold(*given, name) {
            Ok(held) => Some(held),
            // the call without its plan reports it
            Err(_) => return Ok(false),
        },
    };
    let called = interpreter.state.procedures.call_planned(client, planned).await;
    if let Some(held) = &held {
        interpreter.prepared.settle(held, matches!(called, Some(Ok(_))));
    }
    let Some(called) = called else { return Ok(false) };
    match called {
        Ok(mut returned) => {
            returned.outputs.extend(held.map(|held| OutputValue::of_handle(held.handle)));
            returned.end(&mut client.reply, &[], Form::Rpc, &interpreter.state.gateway.zone());
        }
        Err(Interrupt::Failed(failure)) => end_failed(&mut client.reply, &failure.message, Form::Rpc),
        Err(Interrupt::Cancelled) => client.acknowledge_cancel(),
        Err(Interrupt::Session(error)) => return Err(error),
    }
    Ok(true)
}

/// Text in the client's character set.
async fn answer_language(
    interpreter: &mut Interpreter,
    client: &mut Client,
    text: &[u8],
    params: &[Param<'_>],
) -> Result<(), Interrupt> {
    let dialect = client.dialect();
    let Some(text) = dialect.charset.decode(text) else {
        let message = format!("The command is not valid {}.", dialect.charset.name());
        client.reply.refuse(&ServerMessage::error(2402, 16, message));
        return Ok(());
    };
    match Variables::of_command(params, &dialect) {
        Ok(variables) => interpreter.run_batch(client, &text, &mut variables.named_by(&text)).await,
        Err(message) => {
            client.reply.refuse(&message);
            Ok(())
        }
    }
}

async fn answer_transaction(
    state: &mut State,
    client: &mut Client,
    request: &TransactionRequest,
) -> Result<(), Interrupt> {
    if let Operation::Begin(level) = request.operation {
        let mut settings = client.settings().clone();
        let isolated = Isolation::of_request(level).and_then(|isolation| {
            settings.locking.isolation = isolation.unwrap_or(settings.locking.isolation);
            apply(state, client, settings)
        });
        if let Err(message) = isolated {
            client.reply.refuse(&message);
            return Ok(());
        }
    }
    let done = match request.operation {
        Operation::Begin(_) => {
            state.procedures.backend.begin(client, &request.name);
            Ok(())
        }
        Operation::Commit => commit(state, client).await,
        Operation::Rollback => rollback(state, client, &request.name).await,
        Operation::Save => {
            state.procedures.backend.save(client, &request.name).await.map_err(Interrupt::from)
        }
        Operation::Other(other) => {
            let text = format!("Transaction request {other} is not served.");
            Err(ServerMessage::error(4002, 16, text).into())
        }
    };
    match done {
        Ok(()) => {
            if request.begins_again {
                state.procedures.backend.begin(client, "");
            }
            client.reply.passed(Some(0));
        }
        Err(Interrupt::Failed(failure)) => client.reply.refuse(&failure.message),
        Err(interrupt) => return Err(interrupt),
    }
    Ok(())
}
