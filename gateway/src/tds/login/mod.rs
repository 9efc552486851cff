//! How a client logs in: PRELOGIN, the login records of TDS 5.0 and 7.x, and encrypted passwords.

pub mod login5;
pub mod login7;
pub mod negotiate;
pub mod prelogin;

use crate::tds::dialect::Dialect;
use std::fmt;

/// A password that is never shown in a log or a panic message.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// How a TDS 5.0 client sends its password if it is not in the login record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordEncryption {
    /// Encrypted with a nonce before it (TDS_SEC_LOG_ENCRYPT3).
    Nonce,
    /// The same, for clients that can also encrypt commands.
    OnDemand,
}

/// A decoded login record.
#[derive(Clone, Debug)]
pub struct Login {
    pub dialect: Dialect,
    pub user: String,
    /// Empty if it is sent encrypted.
    pub password: Password,
    pub password_encryption: Option<PasswordEncryption>,
    pub host: String,
    pub application: String,
    pub database: String,
    pub language: String,
    /// TDS 7.x: the client is ODBC or similar (fODBC): "x" is a name.
    pub is_odbc: bool,
    /// TDS 7.x: the client declares that it only reads (ApplicationIntent=ReadOnly).
    pub reads_only: bool,
    /// Requested packet size in bytes; None: the server's choice.
    pub packet_size: Option<usize>,
    /// The TDS version bytes to return in LOGINACK.
    pub version: [u8; 4],
    /// TDS 5.0: the name of the client's character set, "" for the server's choice.
    pub charset: String,
    /// TDS 5.0: the capability token's body.
    pub capabilities: Vec<u8>,
}

#[cfg(test)]
impl Login {
    /// A login that asks for nothing.
    pub fn plain(dialect: Dialect, user: &str) -> Login {
        Login {
            dialect,
            user: String::from(user),
            password: Password(String::from("password")),
            password_encryption: None,
            host: String::new(),
            application: String::new(),
            database: String::new(),
            language: String::new(),
            is_odbc: false,
            reads_only: false,
            packet_size: None,
            version: [0; 4],
            charset: String::new(),
            capabilities: Vec::new(),
        }
    }
}

/// A login that this program sends as a client.
pub struct Request<'a> {
    pub user: &'a str,
    pub password: &'a Password,
    pub host: &'a str,
    pub application: &'a str,
    pub server: &'a str,
    /// Not sent at TDS 5.0.
    pub database: &'a str,
    pub packet_size: usize,
    /// Sent at TDS 5.0.
    pub charset: &'a str,
}
