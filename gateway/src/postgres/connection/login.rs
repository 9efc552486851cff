//! Start-up and authentication.

use super::Connection;
use crate::postgres::address::{Address, Host, Wanted};
use crate::postgres::error::{Notice, PgError};
use crate::postgres::message::{server_error, unexpected, Message};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;
use std::collections::HashMap;
use std::io;
use std::time::Duration;

type Result<T> = std::result::Result<T, PgError>;

/// The timeout of a connection and its authentication.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// PostgreSQL is starting, stopping or recovering (SQLSTATE cannot_connect_now).
const CANNOT_CONNECT_NOW: &str = "57P03";

/// Where PostgreSQL searches unqualified names, also of operators, in the gateway's own statements: only PostgreSQL and
/// ringlog create objects there. Python's sessions have the same path (schema/session.py).
const OWN_PATH: (&str, &str) = ("search_path", "pg_catalog, online, log, ringlog, pg_temp");

impl Connection {
    /// Connects as `user`. A refusal by PostgreSQL is returned as `PgError::Server`.
    pub async fn open(
        address: &Address,
        user: &str,
        password: &str,
        application: &str,
    ) -> Result<Connection> {
        Connection::open_with(address, user, password, application, &[]).await
    }

    /// A connection for the gateway itself. The settings apply from the beginning, and RESET restores them: they
    /// override those of the role and the database.
    pub async fn open_own(
        address: &Address,
        user: &str,
        password: &str,
        application: &str,
        settings: &[(&str, &str)],
    ) -> Result<Connection> {
        let settings = [settings, &[OWN_PATH]].concat();
        Connection::open_with(address, user, password, application, &settings).await
    }

    async fn open_with(
        address: &Address,
        user: &str,
        password: &str,
        application: &str,
        settings: &[(&str, &str)],
    ) -> Result<Connection> {
        let start = Connection::start(address, user, password, application, settings);
        tokio::time::timeout(CONNECT_TIMEOUT, start)
            .await
            .map_err(|_| PgError::Io(io::Error::new(io::ErrorKind::TimedOut, "login took too long")))?
    }

    /// Connects to the first of several hosts that can be reached and has the requested role.
    async fn start(
        address: &Address,
        user: &str,
        password: &str,
        application: &str,
        settings: &[(&str, &str)],
    ) -> Result<Connection> {
        let mut failed = None;
        let mut spare = None;
        for (index, host) in address.hosts() {
            match Connection::start_at(address, host, user, password, application, settings).await {
                Ok(connection) if address.wanted == Wanted::Standby && !connection.is_read_only() => {
                    address.found_primary(index);
                    if let Some(other) = spare.replace(connection) {
                        other.close().await;
                    }
                }
                Ok(connection) if address.wanted == Wanted::Primary && connection.is_read_only() => {
                    let why = format!("{}:{} takes no changes", host.name, host.port);
                    failed.get_or_insert(PgError::Io(io::Error::new(io::ErrorKind::NotConnected, why)));
                    connection.close().await;
                }
                Ok(connection) => {
                    if let Some(spare) = spare {
                        spare.close().await;
                    }
                    address.prefer(index);
                    return Ok(connection);
                }
                // another host may answer otherwise; an error about the login is the same on all
                Err(error @ PgError::Server(_)) if error.sqlstate() != Some(CANNOT_CONNECT_NOW) => {
                    return Err(error);
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(spare) = spare {
            return Ok(spare);
        }
        Err(failed.unwrap_or_else(|| PgError::Io(io::ErrorKind::AddrNotAvailable.into())))
    }

    async fn start_at(
        address: &Address,
        host: &Host,
        user: &str,
        password: &str,
        application: &str,
        settings: &[(&str, &str)],
    ) -> Result<Connection> {
        let stream = tokio::time::timeout(address.patience(), host.open(&address.encryption));
        let mut connection = Connection {
            host: host.clone(),
            encryption: address.encryption.clone(),
            stream: stream.await.map_err(io::Error::from)??,
            input: BytesMut::with_capacity(8 * 1024),
            long: None,
            given: None,
            row: None,
            output: BytesMut::new(),
            process: 0,
            secret: 0,
            parameters: HashMap::new(),
            statements: 0,
            is_unconfirmed: false,
            notified: None,
        };
        let parameters = [
            ("user", user),
            ("database", address.database.as_str()),
            ("client_encoding", "UTF8"),
            ("application_name", application),
            // procedures and commits send information to the gateway by notices
            ("client_min_messages", "notice"),
        ];
        let parameters = parameters.into_iter().chain(settings.iter().copied());
        frontend::startup_message(parameters, &mut connection.output)?;
        connection.flush().await?;
        connection.authenticate(user, password).await?;
        loop {
            match connection.receive().await? {
                Message::BackendKeyData(key) => {
                    connection.process = key.process_id();
                    connection.secret = key.secret_key();
                }
                Message::ReadyForQuery(_) => return Ok(connection),
                Message::NoticeResponse(_) => {}
                Message::ErrorResponse(body) => return Err(server_error(&body)?),
                _ => return Err(unexpected("start-up")),
            }
        }
    }

    /// A login without a password request of PostgreSQL (trust, peer) is refused: PostgreSQL would trust the gateway,
    /// not the client.
    async fn authenticate(&mut self, user: &str, password: &str) -> Result<()> {
        let mut asked = false;
        loop {
            match self.receive().await? {
                Message::AuthenticationOk if asked => return Ok(()),
                Message::AuthenticationOk => return Err(no_password_requested(user)),
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password.as_bytes(), &mut self.output)?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(user.as_bytes(), password.as_bytes(), body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.output)?;
                }
                Message::AuthenticationSasl(body) => {
                    let offered = body.mechanisms().any(|name| Ok(name == sasl::SCRAM_SHA_256))?;
                    if !offered {
                        return Err(PgError::Protocol(
                            "an authentication request without SCRAM-SHA-256".into(),
                        ));
                    }
                    self.scram(password).await?;
                    asked = true;
                    continue;
                }
                Message::ErrorResponse(body) => return Err(server_error(&body)?),
                Message::NoticeResponse(_) => continue,
                _ => return Err(PgError::Protocol("an authentication request that is not served".into())),
            }
            asked = true;
            self.flush().await?;
        }
    }

    async fn scram(&mut self, password: &str) -> Result<()> {
        let mut scram = sasl::ScramSha256::new(password.as_bytes(), sasl::ChannelBinding::unsupported());
        frontend::sasl_initial_response(sasl::SCRAM_SHA_256, scram.message(), &mut self.output)?;
        self.flush().await?;
        match self.receive().await? {
            Message::AuthenticationSaslContinue(body) => {
                // thousands of hashes, which must not delay other sessions
                let data = body.data().to_vec();
                let update = move || scram.update(&data).map(|()| scram);
                scram = tokio::task::spawn_blocking(update).await.map_err(io::Error::other)??;
            }
            Message::ErrorResponse(body) => return Err(server_error(&body)?),
            _ => return Err(unexpected("SCRAM")),
        }
        frontend::sasl_response(scram.message(), &mut self.output)?;
        self.flush().await?;
        match self.receive().await? {
            Message::AuthenticationSaslFinal(body) => scram.finish(body.data())?,
            Message::ErrorResponse(body) => return Err(server_error(&body)?),
            _ => return Err(unexpected("SCRAM")),
        }
        Ok(())
    }

    /// Whether it is a standby, or a setting makes it read-only.
    pub fn is_read_only(&self) -> bool {
        ["in_hot_standby", "default_transaction_read_only"]
            .iter()
            .any(|name| self.parameter(name) == Some("on"))
    }
}

fn no_password_requested(user: &str) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "FATAL".into(),
        sqlstate: "28000".into(),
        message: format!("PostgreSQL asks no password of \"{user}\" here"),
        hint: "Demand scram-sha-256 from the gateway's address in pg_hba.conf.".into(),
        ..Notice::default()
    }))
}
