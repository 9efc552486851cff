//! Runs the statements of T-SQL: control flow, TRY, transactions, variables, expressions and queries. Only this and the
//! calls of `rpc` are recursive.

mod ahead;
mod awaited_text;
mod compiled_first;
mod deep;
mod demanded;
mod execute;
mod expression;
mod fitted;
mod given_tables;
mod identities;
mod insert_execute;
mod inserted;
mod interpreter;
mod messages;
mod outdated;
mod procedure;
mod query;
mod running;
mod session_variables;
mod statements;
mod texts;
mod transactions;
mod tries;
mod under_schema;
mod variables;
mod written;

pub use execute::Answered;
pub use interpreter::Interpreter;
pub use under_schema::under_schema;
pub use variables::{texts_taken, Variables};
