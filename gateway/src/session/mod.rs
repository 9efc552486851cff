//! One client's session: login, then requests until it leaves.

mod backend;
mod batch;
mod bulk;
mod call;
mod client;
mod datatypes;
mod define;
mod dynamic;
mod expression;
mod failure;
mod login;
mod options;
mod parameters;
mod prepared;
mod query;
mod results;
mod settings;
mod statements;
mod system;
mod system_call;
mod transaction;
mod variables;

use crate::admission::Entry;
use crate::catalogue::{Catalogue, Plan};
use crate::gateway::Gateway;
use crate::postgres::commit::Claim;
use crate::tds::call as wire_call;
use crate::tds::dynamic as wire_dynamic;
use crate::tds::login::Login;
use crate::tds::packet::{self, Kind, Message};
use crate::tds::tokens::done::{self, Done};
use crate::tds::tokens::envchange;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::wire::{Reader, WireError};
use backend::Backend;
use bulk::Bulk;
use client::Client;
use prepared::PreparedStatements;
use settings::Settings;
use statements::{Flow, Tries};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use transaction::Transaction;
use variables::Variables;

/// From connecting to the end of login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// A request that has begun goes on within this.
const STALLED: Duration = Duration::from_secs(300);
/// The longest login message, and afterwards the longest request.
const LONGEST_LOGIN: usize = 64 * 1024;
const LONGEST_REQUEST: usize = 64 * 1024 * 1024;
/// An unused PostgreSQL connection that holds no state is given up after this.
const BACKEND_IDLE: Duration = Duration::from_secs(30);
/// The same where half of PostgreSQL's connections are idle already.
const BACKEND_IDLE_WITHOUT_PLACE: Duration = Duration::from_secs(1);
/// One that holds state is looked at again after this.
const BACKEND_HELD: Duration = Duration::from_secs(300);

/// Why a session ends without a logout.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("the client closed the connection")]
    Closed,
    #[error("network: {0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("TLS: {0}")]
    Tls(std::io::Error),
    #[error("no login before too many others came")]
    Evicted,
    #[error("nothing came for {} s in the middle of a request", STALLED.as_secs())]
    Stalled,
    #[error("no login within {} s", LOGIN_TIMEOUT.as_secs())]
    LoginTimeout,
    #[error("login of {user:?} refused: {reason}")]
    Refused { user: String, reason: String },
}

pub struct Session<S> {
    client: Client<S>,
    gateway: Arc<Gateway>,
    spid: u16,
    login: Login,
    role: Arc<str>,
    backend: Backend,
    settings: Settings,
    transaction: Transaction,
    /// Of the call that waits for group commit.
    claim: Claim,
    /// How to answer calls like those before.
    plans: Vec<Plan>,
    /// The schema the client uses, which it calls a database.
    database: String,
    first_database: String,
    row_count: i64,
    /// @@error that the procedure just called has left.
    left_error: i32,
    prepared: PreparedStatements,
    /// How many procedures the text that runs is inside of (sp_executesql in sp_executesql): their own ends
    /// follow those of its statements.
    nesting: u8,
    /// How many texts the one that runs is inside of, itself included: @@nestlevel and one.
    depth: u8,
    tries: Tries,
    /// The table of the latest insert, as PostgreSQL reads it.
    inserted: Option<String>,
    /// What can be called, after a definition in the transaction that is open.
    own_catalogue: Option<Arc<Catalogue>>,
    /// A bulk copy whose rows come next.
    bulk: Option<Bulk>,
    /// @@error: the number of the last statement's error, 0 when it had none.
    error: i32,
}

/// How the request being answered was made, which decides its DONE tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Rpc,
    Text,
}

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Well,
    /// By an error, which has been told.
    Failed,
    /// By an error that ends what is around it too.
    Aborted,
    /// By an error that a CATCH around it is to see.
    Thrown,
    /// The client cancelled and has been told so: nothing may follow in this reply.
    Cancelled,
}

impl Ended {
    /// How a text ended. `error`: that of its last statement.
    fn of(flow: Flow, error: i32) -> Ended {
        match flow {
            Flow::Cancelled => Ended::Cancelled,
            Flow::Thrown | Flow::ThrownOut => Ended::Thrown,
            Flow::Aborted => Ended::Aborted,
            Flow::Failed => Ended::Failed,
            _ if error != 0 => Ended::Failed,
            _ => Ended::Well,
        }
    }
}

impl Flow {
    /// What follows a statement that was a text of its own.
    fn after(ended: Ended) -> Flow {
        match ended {
            Ended::Well | Ended::Failed => Flow::Next,
            Ended::Aborted => Flow::Aborted,
            Ended::Thrown => Flow::Thrown,
            Ended::Cancelled => Flow::Cancelled,
        }
    }
}

/// Serves one connection until it ends.
pub async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    spid: u16,
    mut entry: Entry,
    gateway: Arc<Gateway>,
) -> Result<(), SessionError> {
    let client = Client::new(stream, spid, LONGEST_LOGIN);
    let mut stopping = gateway.stopping.clone();
    let limits = entry.limits();
    let login = tokio::time::timeout(LOGIN_TIMEOUT, login::log_in(client, spid, &limits, gateway));
    let mut session = tokio::select! {
        session = login => session.map_err(|_| SessionError::LoginTimeout)??,
        _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
        () = entry.evicted() => return Err(SessionError::Evicted),
    };
    drop(entry);
    session.client.set_limit(LONGEST_REQUEST);
    let end = session.requests().await;
    session.backend.close().await;
    end
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Answers requests until the client leaves or the gateway stops.
    async fn requests(&mut self) -> Result<(), SessionError> {
        let mut stopping = self.gateway.stopping.clone();
        loop {
            if let Some(bulk) = self.bulk.take() {
                if !self.take_bulk(bulk).await? {
                    return Ok(());
                }
                continue;
            }
            let request = tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
                request = self.request() => request?,
            };
            let Some(request) = request else { return Ok(()) };
            if !self.answer(&request).await? {
                return Ok(());
            }
        }
    }

    /// The next request; None when the client has left. Meanwhile the session's connection to PostgreSQL is
    /// given up: after a while, or when others have none.
    async fn request(&mut self) -> Result<Option<Message>, SessionError> {
        if !self.backend.is_open() || self.transaction.is_open() {
            return self.client.request().await;
        }
        let gateway = self.gateway.clone();
        let place = gateway.idle.try_acquire();
        let mut pause = if place.is_ok() { BACKEND_IDLE } else { BACKEND_IDLE_WITHOUT_PLACE };
        while self.backend.is_open() {
            tokio::select! {
                biased;
                request = self.client.request() => return request,
                () = gateway.scarce.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            if !self.backend.release().await {
                pause = BACKEND_HELD;
            }
        }
        drop(place);
        self.client.request().await
    }

    /// Answers one request. False: the client logs out.
    async fn answer(&mut self, request: &Message) -> Result<bool, SessionError> {
        use packet::status::{RESET, RESET_KEEP_TRANSACTION};
        if request.status & (RESET | RESET_KEEP_TRANSACTION) != 0 {
            self.reset(request.status & RESET_KEEP_TRANSACTION != 0).await;
        }
        let proceed = match request.kind {
            Kind::Batch => self.answer_batch(&request.body).await.map(|()| true),
            Kind::Rpc => self.answer_rpc(&request.body).await.map(|()| true),
            Kind::Normal => self.answer_tokens(&request.body).await,
            Kind::Transaction => self.answer_transaction_request(&request.body).await.map(|()| true),
            Kind::Attention => {
                self.client.done(Done::Statement, done::ATTENTION, None);
                Ok(true)
            }
            Kind::BulkLoad => {
                self.refuse(&ServerMessage::error(
                    4002,
                    16,
                    "Rows of a bulk copy come after an insert bulk.",
                ));
                Ok(true)
            }
            other => Err(WireError::Malformed(format!("a {other:?} message after login")).into()),
        };
        self.conclude(proceed).await
    }

    /// Sends the answer to a request. False: the client has gone.
    async fn conclude(&mut self, proceed: Result<bool, SessionError>) -> Result<bool, SessionError> {
        match proceed {
            Ok(true) => {
                self.end_answer();
                self.client.make_last();
                self.client.finish().await?;
                Ok(true)
            }
            Ok(false) => {
                // clients that wait for it want to hear that they may go
                self.client.done(Done::Statement, 0, None);
                let _ = self.client.finish().await;
                Ok(false)
            }
            Err(SessionError::Wire(error)) => {
                // the client learns what was wrong before the connection ends
                let text = format!("The TDS stream is incorrect: {error}.");
                self.client.message(&ServerMessage::error(4002, 20, text));
                self.client.done(Done::Statement, done::ERROR, None);
                self.client.finish().await?;
                Err(SessionError::Wire(error))
            }
            Err(error) => Err(error),
        }
    }

    /// An error and the end of the statement it belongs to.
    fn refuse(&mut self, message: &ServerMessage) {
        self.error = message.number;
        self.row_count = 0;
        self.client.message(message);
        self.end(done::ERROR, None);
    }

    async fn answer_batch(&mut self, body: &[u8]) -> Result<(), SessionError> {
        let dialect = self.client.dialect;
        let mut reader = wire_call::reader(body, &dialect);
        wire_call::skip_headers(&mut reader, &dialect)?;
        if !reader.remaining().is_multiple_of(2) {
            return Err(WireError::Malformed("a batch of an odd number of bytes".into()).into());
        }
        let text = reader.utf16(reader.remaining() / 2, "batch text")?;
        self.run_batch(&text, &mut Variables::default()).await?;
        Ok(())
    }

    async fn answer_rpc(&mut self, body: &[u8]) -> Result<(), SessionError> {
        let dialect = self.client.dialect;
        let mut reader = wire_call::reader(body, &dialect);
        wire_call::skip_headers(&mut reader, &dialect)?;
        let body = body.get(reader.position()..).unwrap_or(&[]);
        if self.run_planned(body).await? {
            return Ok(());
        }
        let mut reader = wire_call::reader(body, &dialect);
        while let Some(call) = wire_call::decode_rpc(&mut reader, &dialect)? {
            let ended = self.run_call(&call.procedure, &call.params).await?;
            if let (Ended::Well, wire_call::Procedure::Named(name)) = (ended, &call.procedure) {
                self.learn(body, name, &call.params);
            }
            if ended == Ended::Cancelled {
                break;
            }
        }
        Ok(())
    }

    /// A TDS 5.0 token stream. False: logout.
    async fn answer_tokens(&mut self, body: &[u8]) -> Result<bool, SessionError> {
        const LANGUAGE: u8 = 0x21;
        const LOGOUT: u8 = 0x71;
        /// CURDECLARE3 and 2; CURCLOSE to CURINFO3
        const CURSORS: [u8; 11] = [0x10, 0x23, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88];
        if self.run_planned(body).await? {
            return Ok(true);
        }
        let dialect = self.client.dialect;
        let mut reader = wire_call::reader(body, &dialect);
        while !reader.is_empty() {
            if let Some(call) = wire_call::decode_dbrpc(&mut reader, &dialect)? {
                let ended = self.run_call(&call.procedure, &call.params).await?;
                match (ended, &call.procedure) {
                    (Ended::Well, wire_call::Procedure::Named(name)) => self.learn(body, name, &call.params),
                    (Ended::Cancelled, _) => return Ok(true),
                    _ => {}
                }
                continue;
            }
            if let Some(dynamic) = wire_dynamic::decode(&mut reader, &dialect)? {
                if self.answer_dynamic(&dynamic).await? == Ended::Cancelled {
                    return Ok(true);
                }
                continue;
            }
            match reader.u8("token")? {
                LANGUAGE => {
                    if self.answer_language(&mut reader).await? == Ended::Cancelled {
                        return Ok(true);
                    }
                }
                options::TOKEN => self.answer_option(&mut reader)?,
                LOGOUT => return Ok(false),
                token if CURSORS.contains(&token) => {
                    self.refuse(&ServerMessage::error(
                        4002,
                        16,
                        "Cursors of TDS 5.0 are not served: rows come as they are found, by a plain query.",
                    ));
                    return Ok(true);
                }
                other => {
                    // its length is unknown, so nothing after it can be read
                    return Err(WireError::Malformed(format!("token 0x{other:02x} is not served")).into());
                }
            }
        }
        Ok(true)
    }

    /// LANGUAGE: text in the client's character set (SAP/go-dblib tds/packageLanguage.go).
    async fn answer_language(&mut self, reader: &mut Reader<'_>) -> Result<Ended, SessionError> {
        /// the status bit that says that parameters follow
        const HAS_PARAMETERS: u8 = 1;
        let length = reader.u32("command length")? as usize;
        let body = reader.take(length, "command")?;
        let (status, text) = body.split_first().ok_or(WireError::Truncated("command"))?;
        let params = if status & HAS_PARAMETERS == 0 {
            Vec::new()
        } else {
            wire_call::decode_arguments(reader, &self.client.dialect)?
        };
        let dialect = self.client.dialect;
        let charset = dialect.charset;
        match charset.decode(text) {
            Some(text) => match Variables::of_command(&params, &dialect) {
                Ok(mut variables) => self.run_batch(&text, &mut variables).await,
                Err(message) => {
                    self.refuse(&message);
                    Ok(Ended::Failed)
                }
            },
            None => {
                let message = format!("The command is not valid {}.", charset.name());
                self.refuse(&ServerMessage::error(2402, 16, message));
                Ok(Ended::Failed)
            }
        }
    }

    /// Back to the state after login.
    async fn reset(&mut self, keep_transaction: bool) {
        if !(keep_transaction && self.transaction.is_open()) {
            if self.transaction.started {
                self.backend.pin();
            }
            self.backend.reset().await;
            self.transaction.end();
        }
        self.settings = Settings::new(&self.client.dialect);
        self.announce_text_size();
        self.first_database.clone_into(&mut self.database);
        self.plans.clear();
        self.prepared = PreparedStatements::default();
        self.inserted = None;
        (self.row_count, self.error) = (0, 0);
        envchange::put_reset(&mut self.client.reply, &self.client.dialect);
    }

    /// What DONE says beside its own: whether a transaction is open.
    fn done_status(&self, status: u16) -> u16 {
        // 7.x clients learn it from ENVCHANGE and ignore the bit; 5.0 clients read it
        if self.transaction.is_open() && !self.client.dialect.is_tds7() {
            status | done::IN_TRANSACTION
        } else {
            status
        }
    }

    fn catalogue(&self) -> Arc<Catalogue> {
        match &self.own_catalogue {
            Some(own) if self.transaction.is_open() => own.clone(),
            _ => self.gateway.catalogue(),
        }
    }
}
