//! A client of old servers for history: sends a query at TDS 5.0 or 7.1–7.4 and decodes the rows into columns in
//! Arrow's layout; and a decoder of bcp's data files.
//!
//! `answer` reads the tokens, `bcp` the rows of files, `columns` builds the columns, all without I/O; `connection` has
//! the socket, and blocks, `file` the file; `python` is the interface. The bytes are not trusted: they are decoded, or
//! an error is returned.

mod answer;
mod bcp;
mod columns;
mod connection;
mod encryption;
mod file;
mod python;

pub use answer::Answer;
pub use bcp::{Described, Rows};
pub use columns::Made;
pub use python::{OldServerError, PyBcpFile, PyOldServer};

use crate::tds::types::ConvertError;
use crate::tds::wire::WireError;

/// The reasons why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the server's answer: {0}")]
    Wire(#[from] WireError),
    #[error("column {column}: {error}")]
    Value { column: String, error: ConvertError },
    #[error("row {row}, column {name}{what}")]
    Field { row: u64, name: String, what: String },
    #[error("message {number}: {text}")]
    Refused { number: i32, text: String },
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Other(String),
}

pub type Result<T> = std::result::Result<T, ReadError>;
