//! The interpreter of T-SQL: statements, expressions, variables and errors; sp_executesql and prepared statements.
//! The only recursive part of the gateway.

mod ahead;
mod awaited_text;
mod browsed;
mod compiled_first;
mod current;
mod cursor;
mod cursors;
mod datatypes;
mod deep;
mod demanded;
mod dynamic;
mod execute;
mod expression;
mod first_result;
mod fitted;
mod given_tables;
mod identities;
mod insert_execute;
mod inserted;
mod interpreter;
mod kept_cursors;
mod messages;
mod options;
mod outdated;
mod parameterised;
mod prepared;
mod procedure;
mod query;
mod requests;
mod running;
mod server_cursor;
mod session_variables;
mod statements;
mod system_procedures;
mod table_keys;
mod texts;
mod transactions;
mod tries;
mod undeclared;
mod under_schema;
mod variables;
mod written;

pub use interpreter::Interpreter;
