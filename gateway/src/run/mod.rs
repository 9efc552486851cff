//! Runs the statements of T-SQL: control flow, TRY, transactions, variables, expressions and queries. Only this and the
//! calls of `rpc` are recursive.

mod ahead;
mod binding;
mod deep;
mod errors;
mod execute;
mod expression;
mod fitted;
mod interpreter;
mod outputs;
mod procedure;
mod state;
mod statements;
mod transactions;
mod variables;

pub use binding::under_schema;
pub use binding::written::{written, written_and_described};
pub use execute::end_call;
pub use expression::values;
pub use interpreter::Interpreter;
pub use outputs::set_texts;
pub use procedure::{forget_tables, temporary_tables};
pub use state::State;
pub use statements::settings::apply;
pub use statements::texts::write_text;
pub use transactions::{commit, end_doomed, rollback, undo_transaction};
pub use variables::{texts_taken, Variables};
