//! One connection to PostgreSQL: start-up, authentication, messages out and in.

use super::error::{Notice, PgError};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::{backend, frontend};
use postgres_protocol::IsNull;
use std::collections::HashMap;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

pub use backend::Message;

type Result<T> = std::result::Result<T, PgError>;

/// How long a connection and its authentication may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Where the database is.
#[derive(Clone, Debug)]
pub struct Address {
    /// A name or address, or the directory of the Unix socket.
    pub host: String,
    pub port: u16,
    pub database: String,
}

trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

async fn open(address: &Address) -> io::Result<Box<dyn Stream>> {
    if address.host.starts_with('/') {
        let path = format!("{}/.s.PGSQL.{}", address.host, address.port);
        return Ok(Box::new(UnixStream::connect(path).await?));
    }
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

/// A column as RowDescription tells it.
#[derive(Clone, Debug)]
pub struct PgColumn {
    pub name: String,
    pub oid: u32,
    pub typmod: i32,
}

pub struct Connection {
    address: Address,
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
        tokio::time::timeout(CONNECT_TIMEOUT, Connection::start(address, user, password, application))
            .await
            .map_err(|_| PgError::Io(io::Error::new(io::ErrorKind::TimedOut, "login took too long")))?
    }

    async fn start(address: &Address, user: &str, password: &str, application: &str) -> Result<Connection> {
        let mut connection = Connection {
            address: address.clone(),
            stream: open(address).await?,
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
            Message::AuthenticationSaslContinue(body) => scram.update(body.data())?,
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

    /// A setting PostgreSQL reports by itself, such as TimeZone.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// What cancels this connection's running statement, for use while the connection is busy.
    pub fn canceller(&self) -> Canceller {
        Canceller { address: self.address.clone(), process: self.process, secret: self.secret }
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
        Ok(())
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
                Message::ErrorResponse(body) => error = Some(server_error(&body)?),
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
                Message::ErrorResponse(body) => error = Some(server_error(&body)?),
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
                Message::ErrorResponse(body) => error = Some(server_error(&body)?),
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
        while self.output.has_remaining() {
            if let Some(message) = self.arrived()? {
                return Ok(Some(message));
            }
            self.input.reserve(16 * 1024);
            let (mut reading, mut writing) = tokio::io::split(&mut self.stream);
            tokio::select! {
                sent = writing.write_buf(&mut self.output) => {
                    if sent? == 0 {
                        return Err(PgError::Io(io::ErrorKind::WriteZero.into()));
                    }
                }
                read = reading.read_buf(&mut self.input) => {
                    if read? == 0 {
                        return Err(closed());
                    }
                }
            }
        }
        Ok(None)
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
    address: Address,
    process: i32,
    secret: i32,
}

impl Canceller {
    /// Asks PostgreSQL to cancel; whether the statement ended by it shows on its own connection.
    pub async fn cancel(&self) -> io::Result<()> {
        let mut stream = open(&self.address).await?;
        let mut request = BytesMut::new();
        frontend::cancel_request(self.process, self.secret, &mut request);
        stream.write_all(&request).await?;
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
        });
    }
    Ok(columns)
}

pub fn server_error(body: &backend::ErrorResponseBody) -> Result<PgError> {
    Ok(PgError::Server(Box::new(Notice::read(body.fields())?)))
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
