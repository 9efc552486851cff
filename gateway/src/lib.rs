//! A TDS server in front of PostgreSQL. It knows TDS and PostgreSQL, and nothing of rings or logs.
//!
//! `tds` is bytes in and values out, without I/O; `convert` lies between its values and PostgreSQL's;
//! `text` reads T-SQL that asks no query, `program` is what text becomes; `catalogue` knows what can be called; `postgres` talks to the database;
//! `session` serves one client, `server` all of them.

pub mod admission;
pub mod catalogue;
pub mod convert;
pub mod gateway;
pub mod metrics;
pub mod postgres;
pub mod program;
mod python;
pub mod server;
pub mod session;
pub mod tds;
pub mod text;
pub mod tls;
mod traffic;
