//! `@@` variables, which are read from the session's state, without PostgreSQL.

use super::State;
use crate::client::{Client, Settings};
use crate::convert::SqlType;
use crate::tds::dialect::Dialect;
use crate::tds::tokens::loginack;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use tsql::facts::session::{self, ROW_LIMIT};
use tsql::facts::types::INT;

/// The type of `@@name` in PostgreSQL; text for a variable that no table has.
pub fn type_of(name: &str) -> SqlType {
    match session::variable(name).or_else(|| (name == ROW_LIMIT).then_some(INT)) {
        Some(of) => SqlType { oid: of.oid, typmod: of.typmod() },
        None => SqlType::TEXT,
    }
}

/// The value of `@@name`; None if there is no such variable. Functions of the session's state, and of the error that a
/// CATCH block has caught, are variables too.
pub fn variable(state: &State, client: &Client, name: &str) -> Option<Value<'static>> {
    let (settings, backend, nesting) = (client.settings(), &state.procedures.backend, &state.nesting);
    let integer = Value::Int;
    let text = |value: &str| Value::Text(value.to_owned().into());
    let caught = nesting.caught.last();
    let of_caught =
        |number: fn(&ServerMessage) -> i64| caught.map_or(Value::Null, |caught| Value::Int(number(caught)));
    Some(match name {
        "@@spid" => integer(i64::from(state.spid)),
        "@@version" => text(&version(&client.dialect())),
        "@@version_as_integer" | "@@version_number" => integer(ASE_VERSION),
        "@@microsoftversion" => integer(i64::from(u32::from_be_bytes(loginack::VERSION_7))),
        "@@rowcount" => integer(client.reply.row_count),
        ROW_LIMIT => integer(i64::from(settings.row_limit)),
        "@@error" => integer(i64::from(client.reply.error)),
        "@@trancount" => integer(i64::from(backend.transaction_depth())),
        "@@tranchained" => integer(i64::from(settings.implicit_transactions)),
        "@@isolation" => integer(settings.locking.isolation.number()),
        "@@lock_timeout" => integer(settings.locking.timeout.map_or(-1, i64::from)),
        "@@servername" => text("ringlog"),
        "@@servicename" => text("ringlog"),
        "@@language" => text("us_english"),
        "@@langid" => integer(0),
        "@@datefirst" => integer(i64::from(settings.calendar.first_day)),
        "@@max_precision" => integer(38),
        "@@maxcharlen" => integer(4),
        "@@ncharsize" => integer(4),
        "@@unicharsize" => integer(2),
        "@@client_csname" => text(&state.login.charset),
        "@@maxpagesize" | "@@pagesize" => integer(8192),
        "@@packet_size" => integer(i64::try_from(client.packet_size()).unwrap_or(0)),
        "@@textsize" => integer(i64::from(settings.text_size.bytes())),
        "@@options" => integer(options(settings)),
        "@@nestlevel" => integer(i64::from(nesting.depth.saturating_sub(1))),
        "@@fetch_status" => integer(state.cursors.status()),
        "@@sqlstatus" => integer(state.cursors.sybase_status()),
        "@@cursor_rows" => integer(state.cursors.rows()),
        "@@procid" => integer(nesting.running.as_ref().map_or(0, |running| i64::from(running.oid))),
        "@@context_info" => {
            state.context.as_ref().map_or(Value::Null, |context| Value::Binary(context.clone().into()))
        }
        "@@xact_state" => integer(i64::from(backend.transaction_state())),
        "@@db_name" => text(backend.catalogue().databases().around(&backend.database)),
        "@@host_name" => text(&state.login.host),
        "@@app_name" => text(&state.login.application),
        "@@user_name" | "@@suser_name" => text(&state.login.user),
        "@@error_number" => of_caught(|caught| i64::from(caught.number)),
        "@@error_severity" => of_caught(|caught| i64::from(caught.severity)),
        "@@error_state" => of_caught(|caught| i64::from(caught.state)),
        "@@error_line" => of_caught(|caught| i64::from(caught.line)),
        "@@error_message" => match caught {
            Some(caught) => text(&caught.text),
            None => Value::Null,
        },
        "@@error_procedure" => match caught {
            Some(caught) if !caught.procedure.is_empty() => text(&caught.procedure),
            _ => Value::Null,
        },
        _ => return None,
    })
}

/// SET options as the bits of @@options (SQL Server: "Configure the user options server configuration option").
fn options(settings: &Settings) -> i64 {
    // warnings, arithabort, null defaults on, concatenated nulls: always on, whatever SET requests
    const HOLD: i64 = 8 | 64 | 1024 | 4096;
    [
        (settings.implicit_transactions, 2),
        (settings.closes_cursors, 4),
        (!settings.cuts_padding, 16),
        (!settings.nulls_equal, 32),
        (settings.quoted_identifiers, 256),
        (settings.no_count, 512),
        (settings.abort_on_error, 16384),
    ]
    .iter()
    .filter(|(is_on, _)| *is_on)
    .fold(HOLD, |bits, (_, bit)| bits | bit)
}

/// "15.7" as an integer.
const ASE_VERSION: i64 = 15_700;

/// The version begins as clients expect from the emulated server, and names ringlog.
fn version(dialect: &Dialect) -> String {
    let as_if = if dialect.is_tds7() {
        "Microsoft SQL Server 2014 - 12.0.2000.8"
    } else {
        "Adaptive Server Enterprise/15.7"
    };
    format!("{as_if} (ringlog {}, PostgreSQL behind a TDS gateway)", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use tsql::facts::session::{FUNCTIONS, VARIABLES};

    #[test]
    fn every_variable_of_the_table_is_answered() {
        let answered = [include_str!("session_variables.rs"), include_str!("../expression.rs")].concat();
        let functions = FUNCTIONS.iter().map(|(_, variable, _)| variable);
        for name in VARIABLES.iter().map(|(name, _)| name).chain(functions) {
            assert!(answered.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
