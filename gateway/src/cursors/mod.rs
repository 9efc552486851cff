//! Cursors: declared by a text, and opened by calls.

mod current;
mod declared;
mod kept;
mod server;
mod statements;

pub use declared::{Cursor, Cursors, NOT_OPEN};
pub use server::ServerCursors;
