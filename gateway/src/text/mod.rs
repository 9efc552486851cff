//! T-SQL text that needs no translation: procedure calls and statements about the session.

pub mod batch;
pub mod bulk;
pub mod declaration;
pub mod exec;
mod keywords;
mod lexer;
pub mod literal;
pub mod parser;
