//! T-SQL text that needs no translation: procedure calls, session statements, and queries PostgreSQL reads
//! as they stand.

pub mod batch;
pub mod bulk;
pub mod declaration;
pub mod exec;
mod keywords;
mod lexer;
pub mod literal;
pub mod parser;
pub mod query;
