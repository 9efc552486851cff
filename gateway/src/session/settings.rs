//! What `set` changes and `@@` variables tell: answered from the session, without PostgreSQL.

use crate::convert::SqlType;
use crate::tds::dialect::Dialect;
use crate::tds::login::Login;
use crate::tds::tokens::loginack;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub quoted_identifiers: bool,
    /// `set implicit_transactions on` or `set chained on`: the first statement begins a transaction.
    pub implicit_transactions: bool,
    pub text_size: TextSize,
    /// `set fmtonly on`: statements tell their columns and do nothing.
    pub only_formats: bool,
    /// `set nocount on`: no numbers of rows are told.
    pub no_count: bool,
    /// `set rowcount n`: rows of a result at most; 0 for all.
    pub row_limit: i32,
    /// `set xact_abort on`: every error ends the batch and undoes the transaction.
    pub abort_on_error: bool,
}

/// How much of a text or binary of any length is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSize {
    bytes: i32,
    /// What a character, or half of one outside the basic plane, counts: 2 in UTF-16. At 5.0 bytes of UTF-8 count.
    bytes_of_unit: usize,
}

impl TextSize {
    const UNLIMITED: i32 = i32::MAX;

    /// @@textsize
    pub fn bytes(self) -> i32 {
        self.bytes
    }

    /// What the client has set, if it has.
    pub fn limit(self) -> Option<u32> {
        u32::try_from(self.bytes).ok().filter(|_| self.bytes != TextSize::UNLIMITED)
    }

    pub fn cut(self, value: Value<'_>) -> Value<'_> {
        let limit = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        match value {
            _ if self.bytes == TextSize::UNLIMITED => value,
            Value::Text(text) if text.len() * self.bytes_of_unit > limit => {
                let mut size = 0;
                let fits = |(_, character): &(usize, char)| {
                    size += if self.bytes_of_unit == 2 {
                        2 * character.len_utf16()
                    } else {
                        character.len_utf8()
                    };
                    size > limit
                };
                match text.char_indices().find(fits) {
                    Some((end, _)) => Value::Text(text[..end].to_owned().into()),
                    None => Value::Text(text),
                }
            }
            Value::Binary(bytes) if bytes.len() > limit => Value::Binary(bytes[..limit].to_vec().into()),
            value => value,
        }
    }
}

impl Settings {
    pub fn new(dialect: &Dialect) -> Settings {
        Settings {
            // "x" is a name for SQL Server's clients and a text for Sybase's, unless they say otherwise
            quoted_identifiers: dialect.is_tds7(),
            implicit_transactions: false,
            text_size: TextSize {
                bytes: TextSize::UNLIMITED,
                bytes_of_unit: if dialect.is_tds7() { 2 } else { 1 },
            },
            only_formats: false,
            no_count: false,
            row_limit: 0,
            abort_on_error: false,
        }
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
    ("noexec", &["off"]),
    ("numeric_roundabort", &["off"]),
    ("parseonly", &["off"]),
    ("showplan_text", &["off"]),
    ("string_rtruncation", &["on"]),
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
        ["nocount", value @ ("on" | "off")] => settings.no_count = *value == "on",
        ["xact_abort", value @ ("on" | "off")] => settings.abort_on_error = *value == "on",
        ["rowcount", number] => match number.parse() {
            Ok(number @ 0..) => settings.row_limit = number,
            _ => return refused(),
        },
        ["implicit_transactions" | "chained", value @ ("on" | "off")] => {
            settings.implicit_transactions = *value == "on";
        }
        ["textsize", size] => match size.parse::<i64>() {
            // 0 is the default, which here as with -1 is no limit
            Ok(size) => {
                let size = i32::try_from(size).ok().filter(|size| *size > 0);
                settings.text_size.bytes = size.unwrap_or(TextSize::UNLIMITED);
            }
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
    pub nesting: u8,
    pub login: &'a Login,
    pub database: &'a str,
    /// What the CATCH block that runs has caught.
    pub caught: Option<&'a ServerMessage>,
}

/// The value of `@@name` and its type; None when there is no such variable. Functions that tell of the session
/// and of what a CATCH block has caught are variables too.
pub fn variable(state: &State<'_>, name: &str) -> Option<(SqlType, Value<'static>)> {
    let integer = |value: i64| (SqlType::INT4, Value::Int(value));
    let text = |value: &str| (SqlType::TEXT, Value::Text(value.to_owned().into()));
    let of_caught = |number: fn(&ServerMessage) -> i64| {
        (SqlType::INT4, state.caught.map_or(Value::Null, |caught| Value::Int(number(caught))))
    };
    Some(match name {
        "@@spid" => (SqlType::INT2, Value::Int(i64::from(state.spid))),
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
        "@@textsize" => integer(i64::from(state.settings.text_size.bytes)),
        "@@options" => integer(0),
        "@@lock_timeout" => integer(-1),
        "@@nestlevel" => integer(i64::from(state.nesting.saturating_sub(1))),
        "@@fetch_status" => integer(0),
        "@@procid" => integer(0),
        "@@xact_state" => integer(i64::from(state.transactions > 0)),
        // ASE: 0 in progress, 1 committed
        "@@transtate" => integer(i64::from(state.transactions == 0)),
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
            None => (SqlType::TEXT, Value::Null),
        },
        "@@error_procedure" => match state.caught {
            Some(caught) if !caught.procedure.is_empty() => text(&caught.procedure),
            _ => (SqlType::TEXT, Value::Null),
        },
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
        for text in ["arithabort on", "transaction isolation level read committed", "rowcount 0"] {
            assert!(set(text).is_ok(), "{text}");
        }
        assert!(set("nocount on").unwrap().no_count && set("xact_abort on").unwrap().abort_on_error);
        assert_eq!(set("rowcount 5").unwrap().row_limit, 5);
    }

    #[test]
    fn texts_end_where_textsize_says() {
        let cut =
            |size: i32, bytes_of_unit, text: &'static str| match (TextSize { bytes: size, bytes_of_unit })
                .cut(Value::Text(text.into()))
            {
                Value::Text(text) => text.into_owned(),
                other => panic!("{other:?}"),
            };
        assert_eq!(cut(4, 2, "abc"), "ab");
        assert_eq!(cut(6, 2, "abc"), "abc");
        assert_eq!(cut(3, 1, "aéz"), "aé");
        assert_eq!(cut(3, 2, "é€"), "é");
        assert_eq!(cut(TextSize::UNLIMITED, 2, "abc"), "abc");
        let binary = (TextSize { bytes: 2, bytes_of_unit: 2 }).cut(Value::Binary(vec![1, 2, 3].into()));
        assert_eq!(binary, Value::Binary(vec![1, 2].into()));
    }

    #[test]
    fn a_setting_that_would_change_results_is_refused() {
        for text in ["rowcount -5", "dateformat dmy", "noexec on", "ansi_nulls off", "no_such on"] {
            let error = set(text).unwrap_err();
            assert!(error.text.contains(text), "{}", error.text);
        }
    }
}
