//! The PostgreSQL side: connections, the errors they give, and group commit.

pub mod commit;
pub mod connection;
pub mod error;

pub use connection::{Address, Connection};
pub use error::{Notice, PgError};
