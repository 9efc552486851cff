//! Values of the session: @@variables, and functions that return them.

use super::types::{numeric, nvarchar, Type, BINARY, INT, SMALLINT, TINYINT, VARBINARY};
use crate::Dialect;

const NAME: Type = nvarchar(Some(128));

/// The variables of the session that a text may name, in alphabetical order.
pub const VARIABLES: &[(&str, Type)] = &[
    ("@@client_csname", NAME),
    ("@@cursor_rows", INT),
    ("@@datefirst", TINYINT),
    ("@@dbts", Type { length: Some(8), ..BINARY }),
    ("@@error", INT),
    ("@@fetch_status", INT),
    ("@@identity", numeric(38, 0)),
    ("@@isolation", INT),
    ("@@langid", INT),
    ("@@language", NAME),
    ("@@lock_timeout", INT),
    ("@@max_precision", TINYINT),
    ("@@maxcharlen", INT),
    ("@@maxpagesize", INT),
    ("@@microsoftversion", INT),
    ("@@ncharsize", INT),
    ("@@nestlevel", INT),
    ("@@options", INT),
    ("@@packet_size", INT),
    ("@@pagesize", INT),
    ("@@procid", INT),
    ("@@rowcount", INT),
    ("@@servername", NAME),
    ("@@servicename", NAME),
    ("@@spid", SMALLINT),
    ("@@sqlstatus", INT),
    ("@@textsize", INT),
    ("@@tranchained", INT),
    ("@@trancount", INT),
    ("@@transtate", INT),
    ("@@unicharsize", INT),
    ("@@version", nvarchar(Some(300))),
    ("@@version_as_integer", INT),
    ("@@version_number", INT),
];

/// Further names that no text can declare: variables of compiled procedures, and T-SQL's that ringlog does not have.
const OTHERS: &[&str] = &[
    "@@aborts",
    "@@began",
    "@@body",
    "@@call",
    "@@condition",
    "@@connections",
    "@@context",
    "@@cpu_busy",
    "@@cursor",
    "@@detail",
    "@@doomed",
    "@@fired",
    "@@idle",
    "@@index",
    "@@io_busy",
    "@@json",
    "@@left",
    "@@made",
    "@@message",
    "@@n",
    "@@outer_trancount",
    "@@pack_received",
    "@@pack_sent",
    "@@packet_errors",
    "@@part",
    "@@r",
    "@@remserver",
    "@@rolled_back",
    "@@row",
    "@@schema",
    "@@silent",
    "@@status",
    "@@table",
    "@@text",
    "@@timeticks",
    "@@total_errors",
    "@@total_read",
    "@@total_write",
    "@@try",
    "@@value",
    "@@whole",
    "@@xml",
];

/// Holds the number of `set rowcount`; no text can name it.
pub const ROW_LIMIT: &str = "@@row limit";

/// Variables with the time of the statement, by the database's clock and in UTC. Their type is timestamp.
pub const CLOCKS: [&str; 2] = ["#clock", "#utc_clock"];

/// The beginning of the name of the variable with ctid and xmin of a cursor's row; the cursor's name follows.
pub const CURRENT: &str = "@@current ";

/// The variable with the text that follows a writetext.
pub const SENT_TEXT: &str = "#text";

/// Functions without arguments, the variable that the session fills for each, and its type.
pub const FUNCTIONS: &[(&str, &str, Type)] = &[
    ("app_name", "@@app_name", NAME),
    ("context_info", "@@context_info", Type { length: Some(128), ..VARBINARY }),
    ("db_name", "@@db_name", NAME),
    ("error_line", "@@error_line", INT),
    ("error_message", "@@error_message", nvarchar(Some(4000))),
    ("error_number", "@@error_number", INT),
    ("error_procedure", "@@error_procedure", NAME),
    ("error_severity", "@@error_severity", INT),
    ("error_state", "@@error_state", INT),
    ("host_name", "@@host_name", NAME),
    ("original_login", "@@suser_name", NAME),
    ("scope_identity", "@@scope_identity", numeric(38, 0)),
    ("suser_name", "@@suser_name", NAME),
    ("suser_sname", "@@suser_name", NAME),
    ("user_name", "@@user_name", NAME),
    ("xact_state", "@@xact_state", SMALLINT),
];

/// Functions without parentheses, and the function that each stands for.
pub const NILADIC: &[(&str, &str)] = &[
    ("current_timestamp", "getdate"),
    ("current_user", "user_name"),
    ("session_user", "user_name"),
    ("system_user", "suser_name"),
    ("user", "user_name"),
];

/// Options of SET that only confirm permanent behaviour, with the values for which they do.
const HOLDS: &[(&str, &[&str])] = &[
    ("ansi_null_dflt_on", &["on"]),
    ("ansi_warnings", &["on"]),
    ("arithabort", &["on"]),
    ("arithignore", &["off"]),
    ("concat_null_yields_null", &["on"]),
    ("fips_flagger", &["off"]),
    ("flushmessage", &["on", "off"]),
    ("noexec", &["off"]),
    ("numeric_roundabort", &["off"]),
    ("parseonly", &["off"]),
    ("showplan_text", &["off"]),
    ("string_rtruncation", &["on"]),
];

/// Whether SET with these arguments changes nothing: `arithabort , ansi_warnings on`.
pub fn holds(words: &[&str]) -> bool {
    let Some((value, options)) = words.split_last() else { return false };
    let is_so = |option: &&str| HOLDS.iter().any(|(name, values)| name == option && values.contains(value));
    match options {
        [] => false,
        // ASE
        [option @ ("arithabort" | "arithignore"), "arith_overflow"]
        | [option @ "arithabort", "numeric_truncation"] => is_so(option),
        options => options.iter().filter(|option| **option != ",").all(is_so),
    }
}

/// Options of SET that are ON or OFF.
const SWITCHES: &[&str] = &[
    "ansi_defaults",
    "ansi_null_dflt_off",
    "ansi_null_dflt_on",
    "ansi_nulls",
    "ansi_padding",
    "ansi_warnings",
    "arithabort",
    "arithignore",
    "concat_null_yields_null",
    "cursor_close_on_commit",
    "fmtonly",
    "forceplan",
    "implicit_transactions",
    "nocount",
    "noexec",
    "numeric_roundabort",
    "parseonly",
    "quoted_identifier",
    "remote_proc_transactions",
    "xact_abort",
];

/// SQL Server's error for a value that an option of SET does not take: its number, severity and text.
pub fn wrong_value(words: &[&str]) -> Option<(i32, u8, String)> {
    let near = |word: &str| Some((102, 15, format!("Incorrect syntax near '{word}'.")));
    let parameter = |option: &str, of: &str| {
        Some((2743, 16, format!("SET {} statement requires {of} parameter.", option.to_uppercase())))
    };
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    match words {
        ["datefirst", day] => match day.parse::<i64>() {
            Ok(1..=7) => None,
            Ok(day) => Some((2742, 16, format!("SET DATEFIRST {day} is out of range."))),
            Err(_) => parameter("datefirst", "integer"),
        },
        [option @ ("dateformat" | "language"), number] if is_number(number) => parameter(option, "string"),
        ["dateformat", order] => {
            let known = ["mdy", "dmy", "ymd", "ydm", "myd", "dym"].contains(order);
            (!known).then(|| (2741, 16, format!("SET DATEFORMAT date order '{order}' is invalid.")))
        }
        ["rowcount", ""] => {
            let text = "Invalid argument for SET ROWCOUNT. Must be a non-null non-negative integer.";
            Some((507, 16, text.to_owned()))
        }
        ["rowcount", sign @ ("-" | "+"), ..] => near(sign),
        ["rowcount", number] if is_number(number) && number.parse::<i32>().is_err() => {
            Some((1080, 15, format!("The integer value {number} is out of range.")))
        }
        ["fips_flagger", level] if !["entry", "full", "intermediate", "off"].contains(level) => near(level),
        ["transaction" | "tran", "isolation", "level", level, ..]
            // by number as Sybase's drivers say it
            if !["read", "repeatable", "serializable", "snapshot", "0", "1", "2", "3"].contains(level) =>
        {
            near(level)
        }
        [option, value] if SWITCHES.contains(option) && !["on", "off"].contains(value) => near(value),
        _ => None,
    }
}

/// Whether SET with these arguments changes no result.
pub fn is_beside_results(words: &[&str], dialect: &Dialect) -> bool {
    let is_number = |word: &str| word.parse::<u32>().is_ok();
    match words {
        [option, "on" | "off"] => dialect.options_beside_results.contains(option),
        ["statistics", counted @ .., "on" | "off"] => {
            !counted.is_empty() && counted.iter().all(|word| dialect.statistics.contains(word))
        }
        ["table", "count", number] => dialect.has_goals_of_plans && is_number(number),
        [option, number] => dialect.numbers_of_plans.contains(option) && is_number(number),
        ["plan", "optgoal", "allrows_mix" | "allrows_dss" | "allrows_oltp"] => dialect.has_goals_of_plans,
        _ => false,
    }
}

/// The variable of a function of the session, and its type.
pub fn function(name: &str) -> Option<(&'static str, Type)> {
    let index = FUNCTIONS.binary_search_by(|(known, ..)| (*known).cmp(name)).ok()?;
    Some((FUNCTIONS[index].1, FUNCTIONS[index].2))
}

/// The type of a variable of the session, which a text may name or a function represent.
pub fn variable(name: &str) -> Option<Type> {
    match VARIABLES.binary_search_by(|(known, _)| (*known).cmp(name)) {
        Ok(index) => Some(VARIABLES[index].1),
        Err(_) => FUNCTIONS.iter().find(|(_, variable, _)| *variable == name).map(|(.., of)| *of),
    }
}

/// Whether a name belongs to the session, or to the code that a procedure is compiled to. Older scripts declare other
/// names with @@ like those with @.
pub fn is_global(name: &str) -> bool {
    name.starts_with("@@") && (name.contains(' ') || variable(name).is_some() || OTHERS.contains(&name))
}

/// The function that a word without parentheses stands for.
pub fn niladic(word: &str) -> Option<&'static str> {
    NILADIC.iter().find(|(known, _)| *known == word).map(|(_, function)| *function)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ASE, SQL_SERVER};

    #[test]
    fn options_that_change_nothing() {
        let said = |text: &str| holds(&text.split(' ').collect::<Vec<_>>());
        assert!(said("arithabort on") && said("arithabort , ansi_warnings on") && said("flushmessage off"));
        assert!(!said("arithabort off") && !said("arithabort , nocount on") && !said("on") && !said(""));
    }

    #[test]
    fn values_that_an_option_does_not_take() {
        let number = |text: &str| wrong_value(&text.split(' ').collect::<Vec<_>>()).map(|error| error.0);
        assert_eq!(
            [number("datefirst 8"), number("datefirst x"), number("datefirst 7")],
            [Some(2742), Some(2743), None]
        );
        assert_eq!(
            [number("nocount maybe"), number("nocount on"), number("no_such maybe")],
            [Some(102), None, None]
        );
        assert_eq!(
            [number("rowcount "), number("rowcount 2.5"), number("rowcount 5")],
            [Some(507), Some(1080), None]
        );
        assert!(SWITCHES.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn options_of_what_is_beside_results() {
        let said = |text: &str, dialect| is_beside_results(&text.split(' ').collect::<Vec<_>>(), dialect);
        for text in ["forceplan on", "statistics io on", "statistics io , time off"] {
            assert!(said(text, &ASE) && said(text, &SQL_SERVER), "{text}");
        }
        for text in [
            "showplan on",
            "table count 4",
            "parallel_degree 1",
            "statistics plancost on",
            "plan optgoal allrows_mix",
        ] {
            assert!(said(text, &ASE) && !said(text, &SQL_SERVER), "{text}");
        }
        for text in [
            "statistics xml on",
            "statistics on",
            "showplan_all on",
            "noexec on",
            "table count x",
            "forceplan 1",
        ] {
            assert!(!said(text, &ASE) && !said(text, &SQL_SERVER), "{text}");
        }
    }

    #[test]
    fn tables_are_in_order() {
        assert!(VARIABLES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(FUNCTIONS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
