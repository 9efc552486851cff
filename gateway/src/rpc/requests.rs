//! Dispatches a client's requests to the parts of the interpreter.

use super::options::answer_option;
use super::parameterised::statement_of;
use crate::calls::{end_failed, Form, OutputValue};
use crate::client::{Client, Isolation, SessionError, Settings};
use crate::interrupt::Interrupt;
use crate::program::InsertBulk;
use crate::run::Answered;
use crate::run::Interpreter;
use crate::run::Variables;
use crate::tds::call::{Call, Param, Procedure};
use crate::tds::layout::PREPARE_AND_CALL;
use crate::tds::request::{Request, Requests};
use crate::tds::tokens::done::Status;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::transaction::{Operation, TransactionRequest};
use bytes::Bytes;
use std::borrow::Cow;
use tracing::debug;

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

impl Interpreter {
    /// Answers the requests of a message up to a logout. Returns false after a logout.
    pub async fn answer(
        &mut self,
        client: &mut Client,
        requests: &mut Requests<'_>,
    ) -> Result<bool, Interrupt> {
        let mut awaited_text = self.awaited_text.take();
        while let Some(request) = requests.next_request().map_err(crate::client::SessionError::from)? {
            log(&request);
            match request {
                Request::Batch(text) => self.run_batch(client, &text, &mut Variables::default()).await?,
                Request::Rpc(call) | Request::Dbrpc(call) => {
                    let answered = self.answer_call(client, &call).await?;
                    if answered == Answered::Succeeded {
                        if let Some((name, params)) = called(client, &call) {
                            self.procedures.learn(client, requests.body(), &name, params);
                        }
                    }
                    // ASE treats each call as a batch of its own (jTDS, BatchTest.testCallStmtBatch)
                    if answered == Answered::EndsBatch && client.dialect().is_tds7() {
                        self.end_doomed(client).await;
                        return Ok(true);
                    }
                }
                Request::Language { text, params } => self.answer_language(client, text, &params).await?,
                Request::Dynamic(dynamic) => self.answer_dynamic(client, &dynamic).await?,
                Request::Option(command) => answer_option(client, &command),
                Request::Transaction(request) => self.answer_transaction(client, &request).await?,
                Request::Cursor(request) => self.answer_cursor(client, &request).await?,
                Request::Attention => client.reply.close(Status::ATTENTION),
                Request::BulkLoad => match awaited_text.take() {
                    Some(text) => self.write_text(client, *text, requests.body()).await?,
                    None => client.reply.refuse(&ServerMessage::error(
                        4002,
                        16,
                        "Rows of a bulk copy come after an insert bulk.",
                    )),
                },
                Request::Logout => return Ok(false),
            }
            self.end_doomed(client).await;
        }
        Ok(true)
    }

    /// Answers a call of known shape. False: it is another request.
    pub async fn answer_planned(&mut self, client: &mut Client, body: &Bytes) -> Result<bool, SessionError> {
        let Some(planned) = self.procedures.planned(client, body) else { return Ok(false) };
        let held = match &planned.prepares {
            None => None,
            Some((name, given)) => match self.prepared.hold(*given, name) {
                Ok(held) => Some(held),
                // the call without its plan reports it
                Err(_) => return Ok(false),
            },
        };
        let called = self.procedures.call_planned(client, planned).await;
        if let Some(held) = &held {
            self.prepared.settle(held, matches!(called, Some(Ok(_))));
        }
        let Some(called) = called else { return Ok(false) };
        match called {
            Ok(mut returned) => {
                returned.outputs.extend(held.map(|held| OutputValue::of_handle(held.handle)));
                returned.end(&mut client.reply, &[], Form::Rpc, &self.gateway.zone());
            }
            Err(Interrupt::Failed(failure)) => end_failed(&mut client.reply, &failure.message, Form::Rpc),
            Err(Interrupt::Cancelled) => client.acknowledge_cancel(),
            Err(Interrupt::Session(error)) => return Err(error),
        }
        Ok(true)
    }

    /// Text in the client's character set.
    async fn answer_language(
        &mut self,
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
            Ok(variables) => self.run_batch(client, &text, &mut variables.named_by(&text)).await,
            Err(message) => {
                client.reply.refuse(&message);
                Ok(())
            }
        }
    }

    /// Applies the client's settings. A transaction that has begun cannot be raised to a higher isolation level.
    pub fn apply(&self, client: &mut Client, settings: Settings) -> Result<(), ServerMessage> {
        let before = client.settings().locking.isolation;
        if settings.locking.isolation > before && self.procedures.backend.has_begun() {
            let text =
                "The isolation level of a transaction cannot be raised when a statement of it has run.";
            return Err(ServerMessage::error(195, 15, text));
        }
        client.set(settings);
        Ok(())
    }

    async fn answer_transaction(
        &mut self,
        client: &mut Client,
        request: &TransactionRequest,
    ) -> Result<(), Interrupt> {
        if let Operation::Begin(level) = request.operation {
            let mut settings = client.settings().clone();
            let isolated = Isolation::of_request(level).and_then(|isolation| {
                settings.locking.isolation = isolation.unwrap_or(settings.locking.isolation);
                self.apply(client, settings)
            });
            if let Err(message) = isolated {
                client.reply.refuse(&message);
                return Ok(());
            }
        }
        let done = match request.operation {
            Operation::Begin(_) => {
                self.procedures.backend.begin(client, &request.name);
                Ok(())
            }
            Operation::Commit => self.commit(client).await,
            Operation::Rollback => self.rollback(client, &request.name).await,
            Operation::Save => {
                self.procedures.backend.save(client, &request.name).await.map_err(Interrupt::from)
            }
            Operation::Other(other) => {
                let text = format!("Transaction request {other} is not served.");
                Err(ServerMessage::error(4002, 16, text).into())
            }
        };
        match done {
            Ok(()) => {
                if request.begins_again {
                    self.procedures.backend.begin(client, "");
                }
                client.reply.passed(Some(0));
            }
            Err(Interrupt::Failed(failure)) => client.reply.refuse(&failure.message),
            Err(interrupt) => return Err(interrupt),
        }
        Ok(())
    }

    pub async fn open_bulk(&mut self, client: &mut Client, bulk: &InsertBulk) -> Result<(), Interrupt> {
        if self.depth > 1 || client.settings().only_formats {
            let text = "'insert bulk' must be the only statement of its batch: the rows follow it.";
            return Err(ServerMessage::error(102, 15, text).into());
        }
        self.procedures.backend.begin_copy(client, bulk).await
    }
}
