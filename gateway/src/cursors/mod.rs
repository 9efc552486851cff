//! Cursors: declared by a text, and opened by calls.

mod current;
mod declared;
mod kept;
mod postgres;
mod server;
mod statements;

pub use current::check_current;
pub use declared::{Cursor, Cursors};
pub use kept::{keep_cursors, open_again};
pub use postgres::NOT_OPEN;
pub use server::{answer_cursor, call_cursor, CursorCall};
pub use statements::{end_local_cursors, run_cursor};
