//! Runs the statements of T-SQL: control flow, TRY, transactions, variables, expressions and queries. Only this and the
//! calls of `rpc` are recursive.

mod ahead;
mod deep;
mod demanded;
mod errors;
mod execute;
mod expression;
mod fitted;
mod identities;
mod insert_execute;
mod insert_rows;
mod interpreter;
mod messages;
mod nesting;
mod outdated;
mod outputs;
mod procedure;
mod query;
mod session_variables;
mod settings;
mod state;
mod texts;
mod transactions;
mod under_schema;
mod variables;
mod written;

pub use execute::end_call;
pub use expression::values;
pub use interpreter::Interpreter;
pub use outputs::set_texts;
pub use procedure::{forget_tables, temporary_tables};
pub use settings::apply;
pub use state::State;
pub use texts::write_text;
pub use transactions::{commit, end_doomed, rollback, undo_transaction};
pub use under_schema::under_schema;
pub use variables::{texts_taken, Variables};
pub use written::{written, written_and_described};
