//! The reasons why a session ends without a logout.

use crate::tds::tokens::message::ServerMessage;
use crate::tds::wire::WireError;
use std::time::Duration;

/// Timeout for the next bytes of a request that has begun.
pub const STALLED: Duration = Duration::from_secs(300);
/// Minimum bytes per second of a long request while others wait for its slot.
pub const PACE: usize = 64 << 10;
/// Timeout for a client that does not read its reply.
pub const UNREAD: Duration = Duration::from_secs(900);
/// Timeout for the client's part of a login, and for PostgreSQL's part from the login's turn on.
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
    /// The message to a client whose session ends because it was too slow.
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
