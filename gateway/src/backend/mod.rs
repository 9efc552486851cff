//! The session's use of PostgreSQL: its connection, prepared statements, transaction, result sets and COPY.

mod ahead;
mod cancellable;
mod connection;
mod copy;
mod definition;
mod notices;
mod open;
mod own;
mod parameters;
mod result_set;
mod role;
mod schema;
mod source;
mod statement;
mod transaction;
mod unfinished;

pub use ahead::{flush_ahead, forget_ahead, may_send_ahead, queue_ahead};
pub use connection::Backend;
pub use copy::{awaits_rows, begin_copy, take_rows};
pub use definition::define_in;
pub use notices::{Counted, Meaning};
pub use open::described::Described;
pub use parameters::{Parameter, Typing};
pub use result_set::columns::{
    declaring, described_as, own_titles, put_description, BrowsedColumns, Fetched, KeyedColumns,
};
pub use result_set::cursors::rows_are_lost;
pub use result_set::Rows;
pub use role::{privilege_to_act, Role};
pub use source::{Errors, Source};
pub use transaction::begin_commit::uncommittable;
pub use unfinished::{Completed, Unfinished};
