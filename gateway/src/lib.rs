//! A TDS server in front of PostgreSQL. It knows TDS and PostgreSQL, and nothing of rings or logs.
//!
//! `tds` is bytes in and values out, without I/O; `convert` lies between its values and PostgreSQL's;
//! `program` is what text becomes, which the crate `tsql` reads; `catalogue` knows what can be called; `postgres` talks
//! to the database. Four owners serve a client, each of which knows only those after it: `session` its requests,
//! `batch` T-SQL, `calls` procedures, `backend` its connection to PostgreSQL; all write to `client`. `listener` starts
//! the sessions, on `threads` that keep calls and statements apart.

mod accept;
pub mod admission;
mod backend;
mod batch;
pub mod callers;
mod calls;
pub mod catalogue;
mod client;
pub mod convert;
pub mod gateway;
mod interrupt;
mod listener;
mod log;
pub mod metrics;
pub mod mirror;
mod nodes;
pub mod postgres;
pub mod program;
mod python;
mod room;
mod scheduler;
mod session;
mod socket;
mod stream;
pub mod tds;
pub mod threads;
pub mod tls;
mod turns;
