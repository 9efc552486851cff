//! One connection to PostgreSQL: start-up, authentication, messages out and in.

use super::address::{Address, Host};
use super::encryption::Encryption;
use super::error::{Notice, PgError};
use crate::convert::Declaration;
use crate::stream::Stream;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::{backend, frontend};
use postgres_protocol::IsNull;
use std::collections::HashMap;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub use backend::Message;

type Result<T> = std::result::Result<T, PgError>;

/// How long a connection and its authentication may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// PostgreSQL starts, stops or recovers (SQLSTATE cannot_connect_now).
const CANNOT_CONNECT_NOW: &str = "57P03";

/// A buffer that has been longer is given back, in bytes.
const LARGEST_KEPT: usize = 4 << 20;

/// A column as RowDescription tells it.
#[derive(Clone, Debug)]
pub struct PgColumn {
    pub name: String,
    pub oid: u32,
    pub typmod: i32,
    /// The column of a table that it is, by the table's oid and its number there; zeros for none.
    pub origin: (u32, i16),
    /// What T-SQL declares of it and PostgreSQL does not say.
    pub declared: Declaration,
}

pub struct Connection {
    host: Host,
    encryption: Encryption,
    stream: Box<dyn Stream>,
    input: BytesMut,
    /// What the next `flush` sends.
    output: BytesMut,
    process: i32,
    secret: i32,
    parameters: HashMap<String, String>,
    statements: u64,
}

impl Connection {
    /// Connects as `user`. PostgreSQL's own refusal comes back as `PgError::Server`.
    pub async fn open(
        address: &Address,
        user: &str,
        password: &str,
        application: &str,
    ) -> Result<Connection> {
        Connection::open_with(address, user, password, application, &[]).await
    }

    /// The same with settings that hold from the beginning, and that RESET goes back to: they win over those of
    /// the role and the database.
    pub async fn open_with(
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

    /// Of several hosts the first that can be reached and is what is wanted.
    async fn start(
        address: &Address,
        user: &str,
        password: &str,
        application: &str,
        settings: &[(&str, &str)],
    ) -> Result<Connection> {
        let mut failed = None;
        for (place, host) in address.hosts() {
            match Connection::start_at(address, host, user, password, application, settings).await {
                Ok(connection) if address.read_write && connection.is_read_only() => {
                    let why = format!("{}:{} takes no changes", host.name, host.port);
                    failed.get_or_insert(PgError::Io(io::Error::new(io::ErrorKind::NotConnected, why)));
                    connection.close().await;
                }
                Ok(connection) => {
                    address.prefer(place);
                    return Ok(connection);
                }
                // another host may know better; what PostgreSQL says of the login holds everywhere
                Err(error @ PgError::Server(_)) if error.sqlstate() != Some(CANNOT_CONNECT_NOW) => {
                    return Err(error);
                }
                Err(error) => failed = Some(error),
            }
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
            output: BytesMut::new(),
            process: 0,
            secret: 0,
            parameters: HashMap::new(),
            statements: 0,
        };
        let parameters = [
            ("user", user),
            ("database", address.database.as_str()),
            ("client_encoding", "UTF8"),
            ("application_name", application),
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

    /// Whoever logs in here must have shown a password: where PostgreSQL asks for none (trust, peer), it
    /// would be the gateway it trusts, not the client.
    async fn authenticate(&mut self, user: &str, password: &str) -> Result<()> {
        let mut asked = false;
        loop {
            match self.receive().await? {
                Message::AuthenticationOk if asked => return Ok(()),
                Message::AuthenticationOk => return Err(no_password_asked(user)),
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
                // thousands of hashes, which nobody else is to wait for
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

    /// Whether it is a standby, or takes no changes by a setting.
    fn is_read_only(&self) -> bool {
        ["in_hot_standby", "default_transaction_read_only"]
            .iter()
            .any(|name| self.parameter(name) == Some("on"))
    }

    /// A setting PostgreSQL reports by itself, such as TimeZone.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The number of the process that serves this connection, as PostgreSQL or a pooler in between tells it.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// What cancels this connection's running statement, for use while the connection is busy.
    pub fn canceller(&self) -> Canceller {
        Canceller {
            host: self.host.clone(),
            encryption: self.encryption.clone(),
            process: self.process,
            secret: self.secret,
        }
    }

    /// The buffer of messages to send; nothing goes out before `flush`.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    pub async fn flush(&mut self) -> Result<()> {
        while self.output.has_remaining() {
            let sent = self.stream.write_buf(&mut self.output).await?;
            if sent == 0 {
                return Err(PgError::Io(io::ErrorKind::WriteZero.into()));
            }
        }
        if self.output.capacity() > LARGEST_KEPT {
            self.output = BytesMut::new();
        }
        // TLS keeps what it could not send
        Ok(self.stream.flush().await?)
    }

    /// A message that has already arrived. ParameterStatus is kept and not returned.
    pub fn arrived(&mut self) -> Result<Option<Message>> {
        while let Some(message) = Message::parse(&mut self.input)? {
            let Message::ParameterStatus(body) = message else { return Ok(Some(message)) };
            self.parameters.insert(body.name()?.to_owned(), body.value()?.to_owned());
        }
        Ok(None)
    }

    /// The next message. Safe to drop while waiting.
    pub async fn receive(&mut self) -> Result<Message> {
        loop {
            if let Some(message) = self.arrived()? {
                return Ok(message);
            }
            self.input.reserve(16 * 1024);
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(closed());
            }
        }
    }

    /// Whether PostgreSQL has ended the connection while nothing ran on it.
    pub async fn has_ended(&mut self) -> bool {
        loop {
            tokio::select! {
                biased;
                message = self.receive() => match message {
                    Ok(Message::NoticeResponse(_) | Message::NotificationResponse(_)) => {}
                    _ => return true,
                },
                () = std::future::ready(()) => return false,
            }
        }
    }

    /// A name for the next prepared statement.
    pub fn statement_name(&mut self) -> String {
        self.statements += 1;
        format!("s{}", self.statements)
    }

    /// Parses `sql` under `name` and asks for the types of its parameters and its result columns; one round
    /// trip. A parameter type of 0 is PostgreSQL's to infer.
    pub async fn prepare(
        &mut self,
        name: &str,
        sql: &str,
        parameter_types: &[u32],
    ) -> Result<(Vec<u32>, Vec<PgColumn>)> {
        frontend::parse(name, sql, parameter_types.iter().copied(), &mut self.output)?;
        frontend::describe(b'S', name, &mut self.output)?;
        frontend::sync(&mut self.output);
        self.flush().await?;
        let mut parameters = Vec::new();
        let mut columns = Vec::new();
        let mut error = None;
        loop {
            match self.receive().await? {
                Message::ParameterDescription(body) => parameters = body.parameters().collect()?,
                Message::RowDescription(body) => columns = read_columns(&body)?,
                Message::ErrorResponse(body) => error = Some(survived(&body)?),
                Message::ReadyForQuery(_) => return error.map_or(Ok((parameters, columns)), Err),
                Message::ParseComplete
                | Message::CloseComplete
                | Message::NoData
                | Message::NoticeResponse(_)
                | Message::NotificationResponse(_) => {}
                _ => return Err(unexpected("an answer to Parse")),
            }
        }
    }

    /// Parses `sql` without a name and asks for its columns, inside the transaction that is under way.
    pub async fn put_parse(&mut self, sql: &str) -> Result<()> {
        frontend::parse("", sql, [], &mut self.output)?;
        frontend::describe(b'S', "", &mut self.output)?;
        self.put_flush();
        self.flush().await
    }

    /// Puts a Bind and an Execute for `limit` rows, 0 for all, into the output. `values` holds each parameter with its
    /// length. `parameters` and `results` are formats, 0 for text and 1 for binary.
    pub fn put_execute(
        &mut self,
        statement: &str,
        parameters: &[i16],
        values: &[u8],
        results: &[i16],
        limit: i32,
    ) {
        let out = &mut self.output;
        put_message(out, b'B', |out| {
            out.put_u8(0);
            out.put_slice(statement.as_bytes());
            out.put_u8(0);
            put_formats(out, parameters);
            out.put_u16(parameters.len() as u16);
            out.put_slice(values);
            put_formats(out, results);
        });
        put_message(out, b'E', |out| {
            out.put_u8(0);
            out.put_i32(limit);
        });
    }

    pub fn put_close_cursor(&mut self, name: &str) -> Result<()> {
        Ok(frontend::close(b'P', name, &mut self.output)?)
    }

    /// Puts the word that answers are wanted, though the transaction goes on.
    pub fn put_flush(&mut self) {
        frontend::flush(&mut self.output);
    }

    pub fn put_sync(&mut self) {
        frontend::sync(&mut self.output);
    }

    /// Runs statements of our own by the simple protocol and returns the rows of text.
    pub async fn query_text(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        self.run_text(sql).await.map(|(rows, _)| rows)
    }

    /// COMMIT. False: the transaction had failed, so PostgreSQL has rolled it back instead.
    pub async fn commit(&mut self) -> Result<bool> {
        self.run_text("commit").await.map(|(_, tag)| tag == "COMMIT")
    }

    /// The rows, and the tag of the last command.
    async fn run_text(&mut self, sql: &str) -> Result<(Vec<Vec<Option<String>>>, String)> {
        frontend::query(sql, &mut self.output)?;
        self.flush().await?;
        let mut rows = Vec::new();
        let mut tag = String::new();
        let mut error = None;
        loop {
            match self.receive().await? {
                Message::DataRow(body) => {
                    let mut row = Vec::new();
                    let mut ranges = body.ranges();
                    while let Some(range) = ranges.next()? {
                        row.push(
                            range
                                .and_then(|range| body.buffer().get(range))
                                .map(|raw| String::from_utf8_lossy(raw).into_owned()),
                        );
                    }
                    rows.push(row);
                }
                Message::CommandComplete(body) => body.tag()?.clone_into(&mut tag),
                Message::ErrorResponse(body) => error = Some(survived(&body)?),
                Message::ReadyForQuery(_) => return error.map_or(Ok((rows, tag)), Err),
                _ => {}
            }
        }
    }

    /// Begins a COPY … FROM STDIN, whose data then goes out by [`Connection::put_copy_data`].
    pub async fn begin_copy(&mut self, sql: &str) -> Result<()> {
        frontend::query(sql, &mut self.output)?;
        self.flush().await?;
        let mut error = None;
        loop {
            match self.receive().await? {
                Message::CopyInResponse(_) => return Ok(()),
                Message::ErrorResponse(body) => error = Some(survived(&body)?),
                Message::ReadyForQuery(_) => return Err(error.unwrap_or_else(|| unexpected("COPY"))),
                _ => {}
            }
        }
    }

    /// Puts what `body` writes into the output as data of a COPY; nothing when it fails.
    pub fn put_copy_data<E>(
        &mut self,
        body: impl FnOnce(&mut BytesMut) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let before = self.output.len();
        let mut written = Ok(());
        put_message(&mut self.output, b'd', |out| written = body(out));
        if written.is_err() {
            self.output.truncate(before);
        }
        written
    }

    pub fn put_copy_done(&mut self) {
        frontend::copy_done(&mut self.output);
    }

    /// Puts the word that the COPY is to be undone.
    pub fn put_copy_fail(&mut self, reason: &str) -> Result<()> {
        Ok(frontend::copy_fail(reason, &mut self.output)?)
    }

    /// How much waits to be sent, in bytes.
    pub fn unsent(&self) -> usize {
        self.output.len()
    }

    /// Sends the output and takes what PostgreSQL says meanwhile, so that neither waits for the other. None: all
    /// is sent.
    pub async fn flush_or_receive(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some(message) = self.arrived()? {
                return Ok(Some(message));
            }
            self.input.reserve(16 * 1024);
            let (mut reading, mut writing) = tokio::io::split(&mut self.stream);
            let output = &mut self.output;
            let sending = async {
                if !output.has_remaining() {
                    return writing.flush().await.map(|()| true);
                }
                match writing.write_buf(output).await? {
                    0 => Err(io::ErrorKind::WriteZero.into()),
                    _ => Ok(false),
                }
            };
            tokio::select! {
                is_sent = sending => {
                    if is_sent? {
                        return Ok(None);
                    }
                }
                read = reading.read_buf(&mut self.input) => {
                    if read? == 0 {
                        return Err(closed());
                    }
                }
            }
        }
    }

    /// Says goodbye; the connection is closed when it is dropped.
    pub async fn close(mut self) {
        frontend::terminate(&mut self.output);
        let _ = self.flush().await;
    }
}

/// Cancels a running statement from another connection.
#[derive(Clone, Debug)]
pub struct Canceller {
    host: Host,
    encryption: Encryption,
    process: i32,
    secret: i32,
}

impl Canceller {
    /// Asks PostgreSQL to cancel; whether the statement ended by it shows on its own connection.
    pub async fn cancel(&self) -> io::Result<()> {
        let mut stream = self.host.open(&self.encryption).await?;
        let mut request = BytesMut::new();
        frontend::cancel_request(self.process, self.secret, &mut request);
        stream.write_all(&request).await?;
        stream.flush().await?;
        // PostgreSQL closes once it has sent the signal
        let _ = stream.read_u8().await;
        Ok(())
    }
}

fn closed() -> PgError {
    PgError::Io(io::Error::new(io::ErrorKind::UnexpectedEof, "PostgreSQL closed the connection"))
}

fn no_password_asked(user: &str) -> PgError {
    PgError::Server(Box::new(Notice {
        severity: "FATAL".into(),
        sqlstate: "28000".into(),
        message: format!("PostgreSQL asks no password of \"{user}\" here"),
        hint: "Demand scram-sha-256 from the gateway's address in pg_hba.conf.".into(),
        ..Notice::default()
    }))
}

/// A message with its length filled in afterwards. Ours stay far below 2 GiB: requests are bounded.
fn put_message(out: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(kind);
    let at = out.len();
    out.put_u32(0);
    body(out);
    let length = ((out.len() - at) as u32).to_be_bytes();
    out[at..at + 4].copy_from_slice(&length);
}

fn put_formats(out: &mut BytesMut, formats: &[i16]) {
    out.put_u16(formats.len() as u16);
    for format in formats {
        out.put_i16(*format);
    }
}

pub fn read_columns(body: &backend::RowDescriptionBody) -> Result<Vec<PgColumn>> {
    let mut columns = Vec::new();
    let mut fields = body.fields();
    while let Some(field) = fields.next()? {
        columns.push(PgColumn {
            name: field.name().to_owned(),
            oid: field.type_oid(),
            typmod: field.type_modifier(),
            origin: (field.table_oid(), field.column_id()),
            declared: Declaration::default(),
        });
    }
    Ok(columns)
}

pub fn server_error(body: &backend::ErrorResponseBody) -> Result<PgError> {
    Ok(PgError::Server(Box::new(Notice::read(body.fields())?)))
}

/// An error after which the connection goes on; a fatal one comes back as such.
fn survived(body: &backend::ErrorResponseBody) -> Result<PgError> {
    match server_error(body)? {
        fatal if fatal.is_fatal() => Err(fatal),
        error => Ok(error),
    }
}

pub fn server_notice(body: &backend::NoticeResponseBody) -> Result<Notice> {
    Ok(Notice::read(body.fields())?)
}

/// The count in a command tag such as `INSERT 0 5`; None for commands that count nothing.
pub fn row_count(tag: &str) -> Option<u64> {
    tag.rsplit(' ').next()?.parse().ok()
}

pub fn unexpected(during: &str) -> PgError {
    PgError::Protocol(format!("an unexpected message during {during}"))
}

/// One value of a Bind: its length and bytes, or NULL.
pub fn put_value<E>(
    out: &mut BytesMut,
    value: impl FnOnce(&mut BytesMut) -> std::result::Result<IsNull, E>,
) -> std::result::Result<(), E> {
    let at = out.len();
    out.put_i32(-1);
    if let IsNull::No = value(out)? {
        let length = ((out.len() - at - 4) as i32).to_be_bytes();
        out[at..at + 4].copy_from_slice(&length);
    }
    Ok(())
}

/// The values of a data row, each None for NULL.
pub fn row_values(row: &Bytes) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = &row[..];
    std::iter::from_fn(move || {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        let Ok(length) = usize::try_from(length) else {
            rest = tail;
            return Some(None);
        };
        let (value, next) = tail.split_at_checked(length)?;
        rest = next;
        Some(Some(value))
    })
}
