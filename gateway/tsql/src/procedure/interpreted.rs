//! Procedures that are not PL/pgSQL: PostgreSQL stores their name, arguments, rights and text, and the gateway runs the
//! text (`gateway/src/run/procedure.rs`).
//!
//! The last line of the routine's body contains the options of parsing at its creation: `tds5` or `tds7`, `quoted` if
//! "x" was a name, `nulls` if null equals null, and `gateway` if the gateway runs it. Compiled procedures that call
//! others have it too: one that calls a procedure run by the gateway is run by the gateway itself.

use super::arguments::arguments;
use super::{mark, status_argument, takes, Header};
use crate::error::Error;
use crate::plpgsql::{Routine, Step};
use crate::postgres::{call, Scalar};
use crate::program::Settings;
use crate::resolve::Scope;

/// The message to the client that creates the procedure. `refusal`: the reason why it cannot be PL/pgSQL.
pub fn notice(header: &Header<'_>, refusal: &Error) -> String {
    let Error { line, text, .. } = refusal;
    let name = &header.name;
    let why = text.trim_end_matches('.');
    format!("PostgreSQL cannot run line {line} ({why}): the gateway runs '{name}', with the rights of its callers.")
}

/// The definition of its routine in PostgreSQL.
pub fn definition(
    header: &Header<'_>,
    source: &str,
    scope: &Scope,
    settings: &Settings,
) -> Result<Routine, Error> {
    let mut arguments = arguments(header, scope)?;
    arguments.insert(0, status_argument());
    let refuse = Step::Perform(call("tsql.refuse_call", [Scalar::text(header.name.as_str())]));
    let types = takes(header.parameters.iter().map(|(_, of)| of));
    Ok(Routine {
        is_procedure: true,
        arguments,
        security_definer: false,
        body: vec![refuse],
        notes: types.into_iter().chain([mark(source), read_as(settings, true)]).collect(),
        ..header.routine()
    })
}

/// The note with the options of parsing its text.
pub fn read_as(settings: &Settings, by_gateway: bool) -> String {
    let gateway = if by_gateway { " gateway" } else { "" };
    format!("read as {}{gateway}", options(settings))
}

/// The options of parsing.
pub fn options(settings: &Settings) -> String {
    let quoted = if settings.quoted_identifiers { " quoted" } else { "" };
    let nulls = if settings.nulls_equal { " nulls" } else { "" };
    format!("{}{quoted}{nulls}", settings.dialect.name)
}
