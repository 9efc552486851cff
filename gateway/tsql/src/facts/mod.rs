//! Facts about T-SQL as tables, each in one place.

pub mod arguments;
pub mod collations;
pub mod conversions;
pub mod database_options;
pub mod dialect;
pub mod errors;
pub mod functions;
pub mod message_forms;
pub mod notices;
pub mod outside;
pub mod session;
pub mod system;
pub mod type_names;
pub mod types;
pub mod variants;
pub mod without_effect;

/// A script of schema tsql with the facts that it names as `{facts.<name>}`, as the same functions for PostgreSQL.
pub fn filled(script: &str) -> String {
    let tables = conversions::tables().into_iter().chain(errors::tables());
    tables.fold(script.to_owned(), |text, (name, facts)| text.replace(&format!("{{facts.{name}}}"), &facts))
}
