//! A TDS server in front of PostgreSQL. It depends on TDS and PostgreSQL only, not on rings or logs.
//!
//! `tds` is the wire format, without I/O; `convert` converts its values to and from PostgreSQL's; `program` holds texts
//! compiled by the crate `tsql`; `old_server` reads rows of other servers and their files, `pb` samples of the Archiver
//! Appliance's files; `catalogue` describes the procedures; `postgres` is the client of the database. The layers
//! that serve a client each use only those after them: `session` its messages; `rpc` its requests and `run` the
//! statements of T-SQL, which call each other; `cursors`, `describe`; `calls` procedures, `backend` its connection to
//! PostgreSQL; all write to `client`, under `limits`. `listener` starts the sessions, on `threads` of two kinds, for
//! calls and for statements. `python` is the interface for ringlog's other parts.

mod backend;
pub mod callers;
mod calls;
pub mod catalogue;
mod client;
pub mod convert;
mod cursors;
mod describe;
pub mod gateway;
mod interrupt;
pub mod limits;
mod listener;
mod log;
mod metrics;
pub mod mirror;
mod nodes;
pub mod old_server;
pub mod pb;
pub mod postgres;
pub mod program;
mod python;
mod rpc;
mod run;
mod scheduler;
mod session;
mod stream;
pub mod tds;
pub mod threads;
pub mod tls;
