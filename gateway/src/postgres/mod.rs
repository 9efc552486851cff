//! The client of PostgreSQL: connections, errors, and group commit.

pub mod address;
pub mod commit;
pub mod connection;
pub mod encryption;
pub mod error;
#[cfg(test)]
pub mod fake;
#[cfg(test)]
pub mod memory;
pub mod message;
pub mod priority;
#[cfg(test)]
pub mod script;
#[cfg(test)]
pub mod scripted;
mod values;

pub use address::{Address, Host, Wanted};
pub use connection::{Canceller, Cancelling, Connection};
pub use encryption::Encryption;
pub use error::{Notice, PgError};
pub use values::Values;
