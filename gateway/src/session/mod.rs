//! A client's session: login on the threads for statements, then requests on those for calls until it
//! disconnects. Calls of known shape are answered there; everything else moves to the threads for statements
//! and returns with the answer. A session that sends several statements in a row waits for the next one
//! there, so that only one thread is woken.

mod login;
#[cfg(test)]
mod tests;

use crate::backend::{awaits_rows, take_rows};
use crate::client::{Client, SessionError, Unused};
use crate::gateway::Gateway;
use crate::interrupt::{Failure, Interrupt};
use crate::limits::admission::Entry;
use crate::limits::shares::Permit;
use crate::rpc;
use crate::run::{undo_transaction, Interpreter};
use crate::stream::ClientStream;
use crate::tds::packet::{Message, MessageKind, Status as PacketStatus};
use crate::tds::request::Requests;
use crate::tds::tokens::done::Status;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::wire::WireError;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

/// The longest login message, and afterwards the longest request.
const LONGEST_LOGIN: usize = 32 * 1024;
const LONGEST_REQUEST: usize = 64 * 1024 * 1024;
/// Flags of requests that first reset the session.
const RESETS: PacketStatus = PacketStatus::RESET.union(PacketStatus::RESET_KEEP_TRANSACTION);
/// After this many statements in a row a session stays on the threads for statements.
const SETTLED: u32 = 3;
/// An unused PostgreSQL connection without state is closed after this time.
const BACKEND_IDLE: Duration = Duration::from_secs(30);
/// The same if half of PostgreSQL's connections are idle.
const BACKEND_IDLE_WITHOUT_PERMIT: Duration = Duration::from_secs(1);
/// A connection with state is checked again after this time.
const BACKEND_HELD: Duration = Duration::from_secs(300);

struct Session {
    client: Client,
    interpreter: Interpreter,
    gateway: Arc<Gateway>,
    /// The permit for the session.
    _permit: Permit,
    /// Statements since the last call of known shape; from `SETTLED` on the client's socket is registered with the
    /// threads for statements.
    statements: u32,
}

/// A message of the client, decoded.
enum Next {
    /// The client has disconnected, or the gateway stops.
    End,
    /// A call of known shape, already answered.
    Answered,
    Statement(Statement),
}

/// Work for the threads for statements.
enum Statement {
    Request(Message),
    /// Rows of a bulk copy.
    Rows,
}

/// Serves one connection until it ends; the login runs on the threads that this is called on. `span`: the
/// span of its log lines.
pub async fn serve(
    stream: Box<dyn ClientStream>,
    spid: u16,
    mut entry: Entry,
    gateway: Arc<Gateway>,
    span: &Span,
) -> Result<(), SessionError> {
    let mut client = Client::new(stream, spid, LONGEST_LOGIN);
    client.reply.span = span.clone();
    // a separate token: sessions do not wait for each other's lock
    let stopping = gateway.stopping.child_token();
    let limits = entry.limits();
    let calls = gateway.calls.clone();
    let login = async move {
        let (interpreter, permit) = login::log_in(&mut client, spid, &limits, &gateway).await?;
        let backend = &interpreter.state.procedures.backend;
        client.admit(LONGEST_REQUEST, gateway.room.slots(backend.user()), backend.occupied());
        Ok::<_, SessionError>(Box::new(Session {
            client,
            interpreter,
            gateway,
            _permit: permit,
            statements: 0,
        }))
    };
    let session = tokio::select! {
        // boxed: its memory is freed when it is done
        session = Box::pin(login.instrument(span.clone())) => session?,
        () = stopping.cancelled() => return Ok(()),
        () = entry.evicted() => return Err(SessionError::Evicted),
    };
    drop(entry);
    calls.run(session.serve(stopping, span.clone())).await
}

impl Session {
    /// Serves a client that is logged in until it disconnects.
    async fn serve(self: Box<Self>, stopping: CancellationToken, span: Span) -> Result<(), SessionError> {
        let mut session = self;
        session.client.register_here()?;
        let statements = session.gateway.statements.clone();
        loop {
            let statement = match session.next(&stopping).await {
                Ok(Next::Statement(statement)) => statement,
                Ok(Next::Answered) => {
                    session.statements = 0;
                    continue;
                }
                ended => {
                    session.close(ended.as_ref().err()).await;
                    return ended.map(|_| ());
                }
            };
            let proceed;
            let until = stopping.clone();
            let answer = async move {
                let proceed = session.answer_statements(statement, &until).await;
                if !matches!(proceed, Ok(true)) {
                    session.close(proceed.as_ref().err()).await;
                }
                (session, proceed)
            };
            (session, proceed) = statements.run(answer.instrument(span.clone())).await;
            if !proceed? {
                return Ok(());
            }
            if session.statements >= SETTLED {
                session.client.register_here()?;
                session.statements = 0;
            }
        }
    }

    /// Closes the connections to PostgreSQL, and sends the reason to a client that was too slow.
    async fn close(&mut self, error: Option<&SessionError>) {
        self.interpreter.state.procedures.close().await;
        if let Some(farewell) = error.and_then(SessionError::farewell) {
            self.client.say_farewell(&farewell).await;
        }
    }

    /// Waits for a request, and answers it if it is a call of known shape.
    async fn next(&mut self, stopping: &CancellationToken) -> Result<Next, SessionError> {
        if awaits_rows(&self.interpreter.state.procedures.backend) {
            return Ok(Next::Statement(Statement::Rows));
        }
        let request = tokio::select! {
            biased;
            () = stopping.cancelled() => return Ok(Next::End),
            request = self.request() => request?,
        };
        let Some(request) = request else {
            return Ok(Next::End);
        };
        let answered = self.answer_planned(&request).await?;
        Ok(if answered { Next::Answered } else { Next::Statement(Statement::Request(request)) })
    }

    /// Answers statements on the threads for them: one, or after several in a row all until a call of known shape.
    /// False: the client disconnects.
    async fn answer_statements(
        &mut self,
        mut statement: Statement,
        stopping: &CancellationToken,
    ) -> Result<bool, SessionError> {
        loop {
            if !self.answer(statement).await? {
                return Ok(false);
            }
            self.statements = self.statements.saturating_add(1);
            if self.statements < SETTLED {
                return Ok(true);
            }
            if self.statements == SETTLED {
                self.client.register_here()?;
            }
            statement = match self.next(stopping).await? {
                Next::Statement(statement) => statement,
                Next::Answered => return Ok(true),
                Next::End => return Ok(false),
            };
        }
    }

    /// The next request; None if the client has disconnected. While it waits, the session's connection to PostgreSQL is
    /// closed after some time, or when others have none.
    async fn request(&mut self) -> Result<Option<Message>, SessionError> {
        if self.interpreter.state.procedures.is_elsewhere() {
            tokio::select! {
                biased;
                request = self.client.request() => return request,
                () = self.gateway.scarce.notified() => {}
                () = tokio::time::sleep(BACKEND_IDLE) => {}
            }
            self.interpreter.state.procedures.leave_nodes().await;
        }
        let backend = &mut self.interpreter.state.procedures.backend;
        if !backend.is_open() || backend.in_transaction() {
            return self.client.request().await;
        }
        let permit = self.gateway.idle.try_acquire();
        let mut pause = if permit.is_ok() { BACKEND_IDLE } else { BACKEND_IDLE_WITHOUT_PERMIT };
        let mut may_be_released = true;
        while backend.is_open() {
            let unused = Unused::new(backend.permit().filter(|_| may_be_released));
            tokio::select! {
                biased;
                request = self.client.request() => return request,
                () = unused.recalled() => {}
                () = self.gateway.scarce.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            drop(unused);
            if !backend.release().await {
                (pause, may_be_released) = (BACKEND_HELD, false);
            }
        }
        drop(permit);
        self.client.request().await
    }

    /// Answers a call of known shape. False: it is another request.
    async fn answer_planned(&mut self, request: &Message) -> Result<bool, SessionError> {
        if request.status.contains(PacketStatus::IGNORE) {
            // the client aborted the request and expects a DONE (tedious)
            self.interpreter.state.awaited_text = None;
            self.client.reply.close(Status::ERROR);
            return self.conclude(Ok(true)).await;
        }
        if request.status.intersects(RESETS)
            || !matches!(request.kind, MessageKind::Rpc | MessageKind::Normal)
        {
            return Ok(false);
        }
        // a call cancels a pending WRITETEXT
        self.interpreter.state.awaited_text = None;
        let Ok(requests) = Requests::of(request, &self.client.dialect()) else {
            return Ok(false);
        };
        let body = request.body.slice_ref(requests.body());
        if !rpc::answer_planned(&mut self.interpreter, &mut self.client, &body).await? {
            return Ok(false);
        }
        self.conclude(Ok(true)).await
    }

    /// Answers any other request. False: the client disconnects.
    async fn answer(&mut self, statement: Statement) -> Result<bool, SessionError> {
        let Session { client, interpreter, .. } = self;
        let answered = match statement {
            Statement::Request(request) => {
                let is_call = request.kind == MessageKind::Rpc;
                if request.status.intersects(RESETS) {
                    let keep_transaction = request.status.contains(PacketStatus::RESET_KEEP_TRANSACTION);
                    interpreter.reset(client, keep_transaction).await;
                }
                let answered = match Requests::of(&request, &client.dialect()) {
                    Ok(mut requests) => rpc::answer(interpreter, client, &mut requests).await,
                    Err(error) => Err(SessionError::from(error).into()),
                };
                match answered {
                    Err(Interrupt::Session(SessionError::Wire(error @ WireError::Unsupported(_))))
                        if is_call =>
                    {
                        Err(Failure::of_statement(ServerMessage::error(102, 16, format!("{error}."))).into())
                    }
                    answered => answered,
                }
            }
            Statement::Rows => match take_rows(&mut interpreter.state.procedures.backend, client).await {
                Ok(false) => return Ok(true),
                taken => taken.map_err(Interrupt::from),
            },
        };
        let answered = match answered {
            Err(Interrupt::Cancelled) => {
                // SQL Server: a cancel ends the transaction under XACT_ABORT alone
                if client.settings().abort_on_error {
                    undo_transaction(&mut interpreter.state, client).await;
                }
                client.acknowledge_cancel();
                Ok(true)
            }
            Err(Interrupt::Failed(failure)) => {
                client.reply.refuse(&failure.message);
                Ok(true)
            }
            Err(Interrupt::Session(error)) => Err(error),
            Ok(stays) => Ok(stays),
        };
        self.conclude(answered).await
    }

    /// Sends the answer to a request. False: the client has disconnected.
    async fn conclude(&mut self, answered: Result<bool, SessionError>) -> Result<bool, SessionError> {
        let client = &mut self.client;
        match answered {
            Ok(true) => {
                client.reply.end_answer();
                client.reply.make_last();
                client.finish().await?;
                Ok(true)
            }
            Ok(false) => {
                // the reply to a logout, for which some clients wait
                client.reply.close(Status::empty());
                let _ = client.finish().await;
                Ok(false)
            }
            Err(SessionError::Wire(error)) => {
                // the client gets the error before the connection ends
                let text = format!("The TDS stream is incorrect: {error}.");
                client.reply.message(&ServerMessage::error(4002, 20, text));
                client.reply.close(Status::ERROR);
                client.finish().await?;
                Err(SessionError::Wire(error))
            }
            Err(error) => Err(error),
        }
    }
}
