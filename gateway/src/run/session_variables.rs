//! `@@` variables, which are read from the session's state, without PostgreSQL.

use crate::client::Settings;
use crate::convert::SqlType;
use crate::cursors::Cursors;
use crate::tds::dialect::Dialect;
use crate::tds::login::Login;
use crate::tds::tokens::loginack;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use tsql::facts::session::{self, ROW_LIMIT};
use tsql::facts::types::INT;

/// The state from which the variables are read.
pub struct SessionState<'a> {
    pub dialect: &'a Dialect,
    pub settings: &'a Settings,
    pub spid: u16,
    pub row_count: i64,
    pub error: i32,
    pub transactions: i32,
    pub transaction_state: i32,
    pub charset: &'a str,
    pub packet_size: usize,
    pub nesting: u8,
    /// The oid of the running procedure; 0 in a batch.
    pub procedure: u32,
    pub login: &'a Login,
    pub database: &'a str,
    /// The error that the running CATCH block has caught.
    pub caught: Option<&'a ServerMessage>,
    pub cursors: &'a Cursors,
    /// `set context_info`
    pub context: Option<&'a [u8]>,
}

/// The type of `@@name` in PostgreSQL; text for a variable that no table has.
pub fn type_of(name: &str) -> SqlType {
    match session::variable(name).or_else(|| (name == ROW_LIMIT).then_some(INT)) {
        Some(of) => SqlType { oid: of.oid, typmod: of.typmod() },
        None => SqlType::TEXT,
    }
}

/// The value of `@@name`; None if there is no such variable. Functions of the session's state, and of the error that a
/// CATCH block has caught, are variables too.
pub fn variable(state: &SessionState<'_>, name: &str) -> Option<Value<'static>> {
    let integer = Value::Int;
    let text = |value: &str| Value::Text(value.to_owned().into());
    let of_caught = |number: fn(&ServerMessage) -> i64| {
        state.caught.map_or(Value::Null, |caught| Value::Int(number(caught)))
    };
    Some(match name {
        "@@spid" => integer(i64::from(state.spid)),
        "@@version" => text(&version(state.dialect)),
        "@@version_as_integer" | "@@version_number" => integer(ASE_VERSION),
        "@@microsoftversion" => integer(i64::from(u32::from_be_bytes(loginack::VERSION_7))),
        "@@rowcount" => integer(state.row_count),
        ROW_LIMIT => integer(i64::from(state.settings.row_limit)),
        "@@error" => integer(i64::from(state.error)),
        "@@trancount" => integer(i64::from(state.transactions)),
        "@@tranchained" => integer(i64::from(state.settings.implicit_transactions)),
        "@@isolation" => integer(state.settings.locking.isolation.number()),
        "@@lock_timeout" => integer(state.settings.locking.timeout.map_or(-1, i64::from)),
        "@@servername" => text("ringlog"),
        "@@servicename" => text("ringlog"),
        "@@language" => text("us_english"),
        "@@langid" => integer(0),
        "@@datefirst" => integer(i64::from(state.settings.calendar.first_day)),
        "@@max_precision" => integer(38),
        "@@maxcharlen" => integer(4),
        "@@ncharsize" => integer(4),
        "@@unicharsize" => integer(2),
        "@@client_csname" => text(state.charset),
        "@@maxpagesize" | "@@pagesize" => integer(8192),
        "@@packet_size" => integer(i64::try_from(state.packet_size).unwrap_or(0)),
        "@@textsize" => integer(i64::from(state.settings.text_size.bytes())),
        "@@options" => integer(options(state)),
        "@@nestlevel" => integer(i64::from(state.nesting.saturating_sub(1))),
        "@@fetch_status" => integer(state.cursors.status()),
        "@@sqlstatus" => integer(state.cursors.sybase_status()),
        "@@cursor_rows" => integer(state.cursors.rows()),
        "@@procid" => integer(i64::from(state.procedure)),
        "@@context_info" => {
            state.context.map_or(Value::Null, |context| Value::Binary(context.to_vec().into()))
        }
        "@@xact_state" => integer(i64::from(state.transaction_state)),
        "@@db_name" => text(state.database),
        "@@host_name" => text(&state.login.host),
        "@@app_name" => text(&state.login.application),
        "@@user_name" | "@@suser_name" => text(&state.login.user),
        "@@error_number" => of_caught(|caught| i64::from(caught.number)),
        "@@error_severity" => of_caught(|caught| i64::from(caught.severity)),
        "@@error_state" => of_caught(|caught| i64::from(caught.state)),
        "@@error_line" => of_caught(|caught| i64::from(caught.line)),
        "@@error_message" => match state.caught {
            Some(caught) => text(&caught.text),
            None => Value::Null,
        },
        "@@error_procedure" => match state.caught {
            Some(caught) if !caught.procedure.is_empty() => text(&caught.procedure),
            _ => Value::Null,
        },
        _ => return None,
    })
}

/// SET options as the bits of @@options (SQL Server: "Configure the user options server configuration option").
fn options(state: &SessionState<'_>) -> i64 {
    // warnings, arithabort, null defaults on, concatenated nulls: always on, whatever SET requests
    const HOLD: i64 = 8 | 64 | 1024 | 4096;
    let settings = state.settings;
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
        let answered = [include_str!("session_variables.rs"), include_str!("expression.rs")].concat();
        let functions = FUNCTIONS.iter().map(|(_, variable, _)| variable);
        for name in VARIABLES.iter().map(|(name, _)| name).chain(functions) {
            assert!(answered.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
