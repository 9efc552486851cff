//! What `set` changes and `@@` variables tell: answered from the session, without PostgreSQL.

use crate::convert::PgType;
use crate::tds::dialect::Dialect;
use crate::tds::tokens::loginack;
use crate::tds::tokens::message::ServerMessage;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub quoted_identifiers: bool,
    /// `set implicit_transactions on` or `set chained on`: the first statement begins a transaction.
    pub implicit_transactions: bool,
    /// `set textsize`: what the client can take, which limits nothing here.
    pub text_size: Option<u32>,
    /// `set fmtonly on`: statements tell their columns and do nothing.
    pub only_formats: bool,
}

impl Settings {
    pub fn new(dialect: &Dialect) -> Settings {
        Settings {
            // "x" is a name for SQL Server's clients and a text for Sybase's, unless they say otherwise
            quoted_identifiers: dialect.is_tds7(),
            implicit_transactions: false,
            text_size: None,
            only_formats: false,
        }
    }
}

impl Settings {
    /// @@textsize
    pub fn text_size(&self) -> u32 {
        self.text_size.unwrap_or(i32::MAX as u32)
    }
}

/// Options that only state what holds anyway, with the values for which it does.
const HOLDS: &[(&str, &[&str])] = &[
    ("ansi_defaults", &["on"]),
    ("ansi_null_dflt_on", &["on"]),
    ("ansi_nulls", &["on"]),
    ("ansi_padding", &["on"]),
    ("ansi_warnings", &["on"]),
    ("ansinull", &["on"]),
    ("arithabort", &["on"]),
    ("arithignore", &["off"]),
    ("concat_null_yields_null", &["on"]),
    ("cursor_close_on_commit", &["on", "off"]),
    ("datefirst", &["7"]),
    ("dateformat", &["mdy"]),
    ("flushmessage", &["on", "off"]),
    ("language", &["us_english", "english"]),
    ("lock_timeout", &["-1", "- 1"]),
    ("nocount", &["on", "off"]),
    ("noexec", &["off"]),
    ("numeric_roundabort", &["off"]),
    ("parseonly", &["off"]),
    ("rowcount", &["0"]),
    ("showplan_text", &["off"]),
    ("string_rtruncation", &["on"]),
    ("xact_abort", &["on", "off"]),
];

/// Applies `set` with these words.
pub fn apply(settings: &mut Settings, words: &[String]) -> Result<(), ServerMessage> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let refused = || {
        let text = format!("'set {}' is not understood: ringlog has no such setting.", words.join(" "));
        Err(ServerMessage::error(195, 15, text))
    };
    match words.as_slice() {
        ["quoted_identifier", value @ ("on" | "off")] => settings.quoted_identifiers = *value == "on",
        ["fmtonly", value @ ("on" | "off")] => settings.only_formats = *value == "on",
        ["implicit_transactions" | "chained", value @ ("on" | "off")] => {
            settings.implicit_transactions = *value == "on";
        }
        ["textsize", size] => match size.parse::<i64>() {
            // 0 and -1 mean no limit
            Ok(size) => settings.text_size = u32::try_from(size).ok().filter(|size| *size > 0),
            Err(_) => return refused(),
        },
        // PostgreSQL gives read committed; reading uncommitted rows is more than anyone may ask
        ["transaction", "isolation", "level", "1" | "0"]
        | ["transaction", "isolation", "level", "read", "committed" | "uncommitted"] => {}
        [options @ .., value] if !options.is_empty() => {
            // several options may share a value: set ansi_nulls, ansi_padding on
            for option in options.iter().filter(|option| **option != ",") {
                if !HOLDS.iter().any(|(name, values)| name == option && values.contains(value)) {
                    return refused();
                }
            }
        }
        _ => return refused(),
    }
    Ok(())
}

/// What the variables are read from.
pub struct State<'a> {
    pub dialect: &'a Dialect,
    pub settings: &'a Settings,
    pub spid: u16,
    pub row_count: i64,
    pub error: i32,
    pub transactions: i32,
    pub charset: &'a str,
    pub packet_size: usize,
}

/// The value of `@@name` and the type it is told as; None when there is no such variable.
pub fn variable(state: &State<'_>, name: &str) -> Option<(PgType, String)> {
    let integer = |value: i64| (PgType::Int4, value.to_string());
    let text = |value: &str| (PgType::Varchar, value.to_owned());
    Some(match name {
        "@@spid" => (PgType::Int2, state.spid.to_string()),
        "@@version" => text(&version(state.dialect)),
        "@@microsoftversion" => integer(i64::from(u32::from_be_bytes(loginack::VERSION_7))),
        "@@rowcount" => integer(state.row_count),
        "@@error" => integer(i64::from(state.error)),
        "@@trancount" => integer(i64::from(state.transactions)),
        "@@tranchained" => integer(i64::from(state.settings.implicit_transactions)),
        "@@isolation" => integer(1),
        "@@servername" => text("ringlog"),
        "@@servicename" => text("ringlog"),
        "@@language" => text("us_english"),
        "@@langid" => integer(0),
        "@@datefirst" => integer(7),
        "@@max_precision" => integer(38),
        "@@maxcharlen" => integer(4),
        "@@ncharsize" => integer(4),
        "@@unicharsize" => integer(2),
        "@@client_csname" => text(state.charset),
        "@@maxpagesize" | "@@pagesize" => integer(8192),
        "@@packet_size" => integer(i64::try_from(state.packet_size).unwrap_or(0)),
        "@@textsize" => integer(i64::from(state.settings.text_size().min(i32::MAX as u32))),
        "@@options" => integer(0),
        "@@lock_timeout" => integer(-1),
        "@@nestlevel" => integer(0),
        "@@fetch_status" => integer(0),
        _ => return None,
    })
}

/// Begins as clients expect of the server they think they talk to, and says what it is.
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
    use super::*;
    use crate::tds::dialect::Version;

    fn set(text: &str) -> Result<Settings, ServerMessage> {
        let mut settings = Settings::new(&Dialect::new(Version::Tds74));
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        apply(&mut settings, &words).map(|()| settings)
    }

    #[test]
    fn settings_that_change_and_those_that_hold() {
        assert!(!set("quoted_identifier off").unwrap().quoted_identifiers);
        assert!(set("implicit_transactions on").unwrap().implicit_transactions);
        for text in
            ["arithabort on", "nocount on", "transaction isolation level read committed", "rowcount 0"]
        {
            assert!(set(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_setting_that_would_change_results_is_refused() {
        for text in ["rowcount 5", "dateformat dmy", "noexec on", "ansi_nulls off", "no_such on"] {
            let error = set(text).unwrap_err();
            assert!(error.text.contains(text), "{}", error.text);
        }
    }
}
