//! Limits of what clients take: failed logins, connections to PostgreSQL, memory, and turns of result sets.

pub mod admission;
pub mod memory;
pub(crate) mod room;
pub(crate) mod shares;
pub(crate) mod turns;
