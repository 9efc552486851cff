//! A TDS server in front of PostgreSQL. It knows TDS and PostgreSQL, and nothing of rings or logs.

pub mod convert;
pub mod tds;
