//! Login: PRELOGIN, the login record, and authentication by PostgreSQL.

use crate::backend::Backend;
use crate::callers::Caller;
use crate::calls::Procedures;
use crate::client::{Client, SessionError, Settings, LOGIN_TIMEOUT};
use crate::gateway::Gateway;
use crate::limits::admission::Limits;
use crate::limits::shares::{Claimant, Permit};
use crate::postgres::PgError;
use crate::run::Interpreter;
use crate::tds::login::prelogin::Agreed;
use crate::tds::login::{login5, login7, negotiate, prelogin, Login, Password, PasswordEncryption};
use crate::tds::packet::{self, MessageKind};
use crate::tds::tokens::done::Status;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::tokens::{envchange, loginack};
use crate::tds::types::DEFAULT_COLLATION;
use crate::tds::wire::WireError;
use crate::tls::{self, LoginKey, Tls};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::sync::Arc;

pub async fn log_in(
    client: &mut Client,
    spid: u16,
    limits: &Limits,
    gateway: &Arc<Gateway>,
) -> Result<(Interpreter, Permit), SessionError> {
    let mut login = in_time(read(client, gateway)).await?;
    if let Some(encryption) = login.password_encryption {
        // not counted as a step of the client: on a busy machine this may take longer than a step
        let key = gateway.login_key().await.map_err(io::Error::other)?;
        login.password = in_time(encrypted_password(client, &login, encryption, key)).await?;
    }
    limits.login_arrived();
    let is_known = limits.was_right(&login.user, &login.password.0);
    // logins equal to an earlier one of their address do not wait for others
    let claimant = Claimant {
        login: format!("{} {is_known}", limits.address()).into(),
        most: usize::MAX,
        has_reserve: is_known,
    };
    let mut permit = permit(client, gateway, &claimant).await?;
    if !is_known {
        let Some(wait) = limits.turn(&login.user) else {
            drop(permit);
            let text = "Too many failed logins of this name from this address: try again later.";
            in_time(put_refusal(client, &login, &[ServerMessage::error(17809, 20, text)])).await?;
            return Err(SessionError::Refused { user: login.user, reason: text.to_owned() });
        };
        if !wait.is_zero() {
            drop(permit);
            tokio::time::sleep(wait).await;
            permit = self::permit(client, gateway, &claimant).await?;
        }
    }
    in_time(enter(client, spid, limits, gateway, login, permit)).await
}

/// Waits for a permit to check a login. Many logins may arrive at once; the client determines how long it waits.
async fn permit(client: &mut Client, gateway: &Gateway, claimant: &Claimant) -> Result<Permit, SessionError> {
    let recall = Arc::default();
    let taking = gateway.logins.take(claimant, &recall);
    tokio::pin!(taking);
    tokio::select! {
        biased;
        permit = &mut taking => Ok(permit),
        cancelled = client.attention() => {
            cancelled?;
            Ok(taking.await)
        }
    }
}

async fn in_time<T>(step: impl Future<Output = Result<T, SessionError>>) -> Result<T, SessionError> {
    tokio::time::timeout(LOGIN_TIMEOUT, step).await.map_err(|_| SessionError::LoginTimeout)?
}

/// The client's login, with its password unless that is sent encrypted.
async fn read(client: &mut Client, gateway: &Gateway) -> Result<Login, SessionError> {
    let login = match read_record(client, gateway.tls.as_deref()).await {
        Ok(login) => login,
        Err(SessionError::Wire(error)) => {
            client.reply.message(&ServerMessage::error(4002, 16, format!("Login is not possible: {error}.")));
            client.reply.close(Status::ERROR);
            client.finish().await?;
            return Err(SessionError::Wire(error));
        }
        Err(error) => return Err(error),
    };
    client.set_dialect(login.dialect);
    Ok(login)
}

/// Logs in to PostgreSQL with the client's login, and answers.
pub(super) async fn enter(
    client: &mut Client,
    spid: u16,
    limits: &Limits,
    gateway: &Arc<Gateway>,
    login: Login,
    permit: Permit,
) -> Result<(Interpreter, Permit), SessionError> {
    let entered = Backend::log_in(gateway, &login, spid).await;
    drop(permit);
    match entered {
        Ok((mut backend, role)) => {
            limits.succeeded(&login.user, &login.password.0);
            let Some(session) = gateway.session_permit(backend.user(), &role) else {
                backend.close().await;
                let text = format!(
                    "The login {} has as many sessions as it may have, or all sessions are taken: end some, or try again later.",
                    login.user
                );
                return refuse(
                    client,
                    gateway,
                    login,
                    &[ServerMessage::error(17809, 20, text.clone())],
                    text,
                )
                .await;
            };
            tracing::Span::current().record("login", login.user.as_str());
            tracing::debug!(version = ?login.dialect.version, "logged in");
            client.reply.login.clone_from(&login.user);
            client.set(Settings::new(&login.dialect, login.is_odbc));
            let path = role.path.into();
            let procedures = Procedures::new(gateway.clone(), backend, role.oid, path, Caller::of(&login));
            let interpreter = Interpreter::new(gateway.clone(), procedures, spid, login.clone());
            welcome(client, &interpreter, &login).await?;
            Ok((interpreter, session))
        }
        Err(error) => {
            let refusal = refusal(&error, &login);
            if matches!(refusal[0].number, 18456 | 4002) {
                tokio::time::sleep(limits.failed(&login.user)).await;
            }
            refuse(client, gateway, login, &refusal, reason(&error)).await
        }
    }
}

async fn refuse<T>(
    client: &mut Client,
    gateway: &Gateway,
    login: Login,
    refusal: &[ServerMessage],
    reason: String,
) -> Result<T, SessionError> {
    // counted before the reply: the client may then read the count
    gateway.metrics.refused_logins.inc();
    put_refusal(client, &login, refusal).await?;
    Err(SessionError::Refused { user: login.user, reason })
}

/// Requests the password in encrypted form. A password that is encrypted in another way counts as wrong, so
/// that an attacker learns nothing from the answer.
async fn encrypted_password(
    client: &mut Client,
    login: &Login,
    encryption: PasswordEncryption,
    key: &LoginKey,
) -> Result<Password, SessionError> {
    let dialect = login.dialect;
    let nonce = tls::nonce();
    loginack::put(&mut client.reply.tokens, login, loginack::Status::Negotiate);
    negotiate::put_challenge(&mut client.reply.tokens, encryption, key.public.as_bytes(), &nonce, &dialect);
    client.reply.close(Status::empty());
    client.finish().await?;
    let message = client.request().await?.ok_or(SessionError::Closed)?;
    if !matches!(message.kind, MessageKind::Normal | MessageKind::Login5) {
        return Err(WireError::Malformed(format!("a {:?} message before login", message.kind)).into());
    }
    let encrypted = negotiate::decode_response(&message.body, &dialect)?;
    // this takes a millisecond or two; a thread for each of hundreds of clients would slow calls down more
    let clear = key.decrypt(&nonce, &encrypted);
    let text = clear.and_then(|clear| dialect.charset.decode(&clear).map(String::from));
    // a password of PostgreSQL cannot contain a NUL
    Ok(Password(text.unwrap_or_else(|| String::from("\0"))))
}

async fn put_refusal(
    client: &mut Client,
    login: &Login,
    refusal: &[ServerMessage],
) -> Result<(), SessionError> {
    for message in refusal {
        client.reply.message(message);
    }
    if !login.dialect.is_tds7() {
        loginack::put(&mut client.reply.tokens, login, loginack::Status::Failed);
    }
    client.reply.close(Status::ERROR);
    client.finish().await
}

/// The first bytes of TLS before the login: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;

async fn read_record(client: &mut Client, tls: Option<&Tls>) -> Result<Login, SessionError> {
    if client.first_byte().await? == Some(TLS_HANDSHAKE) {
        let tls = tls.ok_or_else(|| {
            SessionError::Tls(io::Error::other("requested by the client, but not configured"))
        })?;
        client.encrypt(tls, false).await?;
    }
    let mut agreed = Agreed::Nothing;
    loop {
        let message = client.request().await?.ok_or(SessionError::Closed)?;
        let login = match message.kind {
            // FreeTDS requests no encryption, and begins a handshake if the server requires it
            MessageKind::Prelogin if message.body.first() == Some(&TLS_HANDSHAKE) => {
                let text = "this server demands TLS, and the client's settings rule it out \
                            (FreeTDS: encryption = off)";
                return Err(SessionError::Tls(io::Error::other(text)));
            }
            MessageKind::Prelogin => {
                let asked = prelogin::decode(&message.body)?;
                // strict TLS is already established
                let tls = tls.filter(|_| !client.is_encrypted());
                let answer = asked.answer(tls.is_some(), tls.is_some_and(|tls| tls.required));
                agreed = answer.1;
                prelogin::encode(answer.0, loginack::VERSION_7, &mut client.reply.tokens);
                client.finish().await?;
                if let (Agreed::Login | Agreed::Everything, Some(tls)) = (agreed, tls) {
                    client.encrypt(tls, true).await?;
                }
                continue;
            }
            MessageKind::Login7 => {
                client.set_dialect(login7::dialect_of_refusal(&message.body));
                login7::decode(&message.body)?
            }
            MessageKind::Login5 => {
                client.set_dialect(login5::dialect_of_refusal(&message.body));
                login5::decode(&message.body)?
            }
            other => return Err(WireError::Malformed(format!("a {other:?} message before login")).into()),
        };
        if tls.is_some_and(|tls| tls.required) && !client.is_encrypted() {
            client.set_dialect(login.dialect);
            return Err(WireError::Malformed("this server demands TLS".into()).into());
        }
        if agreed == Agreed::Login {
            client.decrypt();
        }
        return Ok(login);
    }
}

/// The message of a failed login gives no reason; a server that cannot be reached is another error. For a
/// database that does not exist SQL Server sends its name and that the login failed (errors 4060 and 18456,
/// "Database Engine errors"): python-tds tries again until the second arrives.
fn refusal(error: &PgError, login: &Login) -> Vec<ServerMessage> {
    let failed = if login.dialect.is_tds7() {
        ServerMessage::error(18456, 14, format!("Login failed for user '{}'.", login.user))
    } else {
        ServerMessage::error(4002, 14, "Login failed.")
    };
    let refusal = match error {
        // a name or password with a NUL, which PostgreSQL's protocol cannot represent
        PgError::Io(error) if error.kind() == ErrorKind::InvalidInput => failed,
        PgError::Server(notice) => match notice.sqlstate.as_str() {
            "53300" => ServerMessage::error(17809, 20, "PostgreSQL has no free connection: try again later."),
            // also admin_shutdown and crash_shutdown: PostgreSQL stops during the login
            "57P01" | "57P02" | "57P03" => {
                ServerMessage::error(6005, 16, "PostgreSQL is starting up or shutting down: try again later.")
            }
            "3F000" if login.dialect.is_tds7() => {
                let text = format!("Cannot open database \"{}\" requested by the login.", login.database);
                return vec![ServerMessage::error(4060, 11, format!("{text} The login failed.")), failed];
            }
            "3F000" => ServerMessage::error(911, 16, notice.message.clone()),
            // not a wrong password: resources, the connection, the disk, an internal error
            state if ["08", "53", "58", "XX"].iter().any(|class| state.starts_with(class)) => {
                ServerMessage::error(17142, 16, format!("PostgreSQL cannot be reached: {}.", notice.message))
            }
            _ => failed,
        },
        other => ServerMessage::error(17142, 16, format!("PostgreSQL cannot be reached: {other}.")),
    };
    vec![refusal]
}

/// The reason for the log, with more details than the client gets.
fn reason(error: &PgError) -> String {
    match error {
        PgError::Server(notice) if !notice.hint.is_empty() => {
            format!("{}. {}", notice.message, notice.hint)
        }
        other => other.to_string(),
    }
}

/// The reply to a successful login.
async fn welcome(client: &mut Client, interpreter: &Interpreter, login: &Login) -> Result<(), SessionError> {
    let dialect = client.dialect();
    let asked = login.packet_size;
    let size = asked.unwrap_or(4096).clamp(packet::SMALLEST, packet::LARGEST);
    interpreter.state.put_database(client, "");
    let out = &mut client.reply.tokens;
    if dialect.is_tds7() {
        envchange::put_collation(out, DEFAULT_COLLATION, &dialect);
    } else if login.charset.is_empty() {
        envchange::put_text(out, envchange::Text::Charset, "utf8", "", &dialect);
    } else {
        envchange::put_text(out, envchange::Text::Charset, &login.charset, "", &dialect);
    }
    envchange::put_text(out, envchange::Text::Language, "us_english", "", &dialect);
    if dialect.is_tds7() {
        client.reply.message(&ServerMessage::info(5703, "Changed language setting to us_english."));
    }
    // SQL Server always sends it, and mssql-python's bulk copy needs it
    let is_news = dialect.is_tds7() || asked != Some(size) || size != client.packet_size();
    let out = &mut client.reply.tokens;
    if is_news {
        envchange::put_text(out, envchange::Text::PacketSize, &size.to_string(), "4096", &dialect);
    }
    loginack::put(out, login, loginack::Status::Succeeded);
    if !dialect.is_tds7() {
        loginack::put_capabilities(out, login);
    }
    client.reply.close(Status::empty());
    if !dialect.is_tds7() {
        // the client reads the reply to its login in packets of the minimum size
        client.set_packet_size(packet::SMALLEST);
    }
    client.finish().await?;
    client.set_packet_size(size);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::Notice;
    use crate::tds::dialect::{Dialect, Version};

    #[test]
    fn only_what_is_about_the_login_counts_as_a_wrong_password() {
        let login = Login::plain(Dialect::new(Version::Tds74), "w");
        for (sqlstate, number) in [
            ("28P01", 18456),
            ("28000", 18456),
            ("42501", 18456),
            ("53300", 17809),
            ("57P01", 6005),
            ("57P02", 6005),
            ("57P03", 6005),
            ("53200", 17142),
            ("58P01", 17142),
            ("08006", 17142),
            ("XX000", 17142),
        ] {
            let notice = Notice { sqlstate: sqlstate.into(), ..Notice::default() };
            assert_eq!(refusal(&PgError::Server(Box::new(notice)), &login)[0].number, number, "{sqlstate}");
        }
    }
}
