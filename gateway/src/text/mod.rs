//! T-SQL text that needs no translation: procedure calls, session statements, and queries PostgreSQL reads
//! as they stand.

pub mod batch;
mod exec;
mod keywords;
mod lexer;
mod query;
