//! Why a session ended without a logout.

use crate::tds::tokens::message::ServerMessage;
use crate::tds::wire::WireError;
use std::time::Duration;

/// A request that has begun goes on within this.
pub const STALLED: Duration = Duration::from_secs(300);
/// Bytes a second of a long request that holds a place others wait for.
pub const PACE: usize = 64 << 10;
/// A client reads more of its reply within this.
pub const UNREAD: Duration = Duration::from_secs(900);
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
    #[error("fewer than {} KiB/s came of a request while others waited for its place", PACE >> 10)]
    TooSlow,
    #[error("the client did not read its results, and others waited or {} min were over", UNREAD.as_secs() / 60)]
    Unread,
    #[error("no login within {} s", LOGIN_TIMEOUT.as_secs())]
    LoginTimeout,
    #[error("login of {user:?} refused: {reason}")]
    Refused { user: String, reason: String },
}

impl SessionError {
    /// What the client is told when the session ends for its slowness.
    pub fn farewell(&self) -> Option<ServerMessage> {
        matches!(self, SessionError::Stalled | SessionError::TooSlow | SessionError::Unread).then(|| {
            ServerMessage::error(
                596,
                21,
                format!("The server has ended this session: {self}. Connect again."),
            )
        })
    }
}
