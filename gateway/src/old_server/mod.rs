//! A client of old servers for history: sends a query at TDS 5.0 or 7.1–7.4 and decodes the rows into columns in Arrow's
//! layout.
//!
//! `answer` reads the tokens, `columns` makes the columns, both without I/O; `connection` has the socket, and blocks;
//! `python` is the interface. The server is not trusted: its bytes are decoded, or an error is returned.

mod answer;
mod columns;
mod connection;
mod encryption;
mod python;

pub use answer::Answer;
pub use columns::Made;
pub use python::{OldServerError, PyOldServer};

use crate::tds::types::ConvertError;
use crate::tds::wire::WireError;

/// Why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the server's answer: {0}")]
    Wire(#[from] WireError),
    #[error("column {column}: {error}")]
    Value { column: String, error: ConvertError },
    #[error("message {number}: {text}")]
    Refused { number: i32, text: String },
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Other(String),
}

pub type Result<T> = std::result::Result<T, ReadError>;
