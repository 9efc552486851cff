//! Why a session ended without a logout.

use crate::tds::wire::WireError;
use std::time::Duration;

/// A request that has begun goes on within this.
pub const STALLED: Duration = Duration::from_secs(300);
/// For the client's part of a login, and for PostgreSQL's once it is the login's turn.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error("the client closed the connection")]
    Closed,
    #[error("network: {0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Wire(#[from] WireError),
    #[error("TLS: {0}")]
    Tls(std::io::Error),
    #[error("no login before too many others came")]
    Evicted,
    #[error("nothing came for {} s in the middle of a request", STALLED.as_secs())]
    Stalled,
    #[error("no login within {} s", LOGIN_TIMEOUT.as_secs())]
    LoginTimeout,
    #[error("login of {user:?} refused: {reason}")]
    Refused { user: String, reason: String },
}
