//! Parses T-SQL and translates it for PostgreSQL: text → tokens → tree → program. Without I/O.
//!
//! `lexer` splits a text, `parser` builds a `tree`.

pub mod bind;
mod compile;
pub mod databases;
mod digest;
pub mod error;
pub mod facts;
pub mod fragments;
mod keywords;
pub mod lexer;
mod lift;
pub mod long_names;
mod message;
pub mod parser;
mod plpgsql;
pub mod postgres;
mod procedure;
pub mod program;
pub mod quoting;
mod reading;
pub mod resolve;
pub mod schema;
pub mod tree;
pub mod units;

pub use compile::{
    bytes_of, insert_of_rows, keyed, stored_parameter, text_for, undeclared, Keyed, Undeclared,
};
pub use databases::Databases;
pub use error::Error;
pub use facts::dialect::{Dialect, ASE, SQL_SERVER};
pub use lexer::Syntax;
pub use parser::{parse, parse_parameters, Batch};
pub use reading::{compile, declarations, Reading};
