//! The session's use of PostgreSQL: its connection, prepared statements, transaction, result sets and COPY.

mod ahead;
mod begin_commit;
mod bound;
mod bulk_copy;
mod cancellable;
mod compiling;
mod connection;
mod copy;
mod copy_row;
mod declarations;
mod definition;
mod described;
mod globals;
mod notices;
mod open;
mod own;
mod parameters;
mod pointers;
mod result_set;
mod role;
mod schema;
mod sent;
mod statement;
mod transaction;
mod transaction_state;
mod unfinished;

pub use begin_commit::uncommittable;
pub use connection::Backend;
pub use described::Described;
pub use notices::{Counted, Meaning};
pub use parameters::{Parameter, Typing};
pub use result_set::columns::{
    declaring, described_as, own_titles, put_description, BrowsedColumns, Fetched, KeyedColumns,
};
pub use result_set::cursors::rows_are_lost;
pub use result_set::Rows;
pub use role::{privilege_to_act, Role};
pub use statement::{Errors, Source};
pub use unfinished::{Completed, Unfinished};
