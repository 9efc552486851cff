//! The settings of a client (`set …`).

use crate::tds::dialect::Dialect;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use tsql::facts::session;
use tsql::program::{Action, Statement};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The rules of the client's T-SQL.
    pub dialect: &'static tsql::Dialect,
    pub quoted_identifiers: bool,
    /// `set ansi_nulls off`: a null variable or literal equals null.
    pub nulls_equal: bool,
    /// `set ansi_padding off`: columns of created tables do not keep trailing blanks and zeros.
    pub cuts_padding: bool,
    /// `set implicit_transactions on` or `set chained on`: the first statement begins a transaction.
    pub implicit_transactions: bool,
    pub text_size: TextSize,
    /// `set fmtonly on`: statements only describe their columns.
    pub only_formats: bool,
    /// `set nocount on`: row counts are not sent.
    pub no_count: bool,
    /// `set rowcount n`: the most rows of a result; 0: all.
    pub row_limit: i32,
    /// `set xact_abort on`: every error ends the batch and undoes the transaction.
    pub abort_on_error: bool,
    /// `set cursor_close_on_commit on`: open cursors are closed with the transaction.
    pub closes_cursors: bool,
    pub locking: Locking,
    pub calendar: Calendar,
    /// `set arithabort` of ASE; None at TDS 7.x.
    pub arithabort: Option<Arithabort>,
    /// `set identity_insert table on`: the table whose identity column takes values, as SQL names it.
    pub identity_insert: Option<String>,
}

/// Orders of the parts of a date (`set dateformat`).
const ORDERS: [&str; 6] = ["mdy", "dmy", "ymd", "ydm", "myd", "dym"];

/// The order of parts of dates in texts, and the first day of weeks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// `set datefirst`: 1 for Monday to 7 for Sunday.
    pub first_day: u8,
    /// `set dateformat`
    pub order: &'static str,
}

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar { first_day: 7, order: ORDERS[0] }
    }
}

impl Calendar {
    /// Whether 2026-11-20 means 20 November in every type.
    pub fn reads_year_first(&self) -> bool {
        matches!(self.order, "mdy" | "ymd" | "myd")
    }

    /// The number of the order in TDS 5.0, from 1.
    pub fn order_number(&self) -> u32 {
        ORDERS.iter().zip(1..).find(|(order, _)| **order == self.order).map_or(1, |(_, number)| number)
    }

    /// Applies a number or an order; false if it is invalid.
    fn set(&mut self, what: &str, value: &str) -> bool {
        match what {
            "datefirst" => match value.parse() {
                Ok(day @ 1..=7) => self.first_day = day,
                _ => return false,
            },
            _ => match ORDERS.iter().find(|order| **order == value) {
                Some(order) => self.order = order,
                None => return false,
            },
        }
        true
    }
}

/// Which arithmetic results are errors, and what these end (ASE Reference Manual: Commands, "set").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithabort {
    /// An overflow or division by zero ends the transaction; off: the statement.
    pub overflow: bool,
    /// An implicit conversion that would lose decimals is an error; off: they are lost.
    pub truncation: bool,
}

impl Default for Arithabort {
    fn default() -> Arithabort {
        Arithabort { overflow: true, truncation: true }
    }
}

impl Arithabort {
    /// Sets these options; false if they do not exist.
    fn set(&mut self, options: &[&str], on: bool) -> bool {
        match options {
            [] => (self.overflow, self.truncation) = (on, on),
            ["arith_overflow"] => self.overflow = on,
            ["numeric_truncation"] => self.truncation = on,
            _ => return false,
        }
        true
    }
}

/// The isolation of transactions, and how long they wait for locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locking {
    pub isolation: Isolation,
    /// Lock timeout in milliseconds; None: no limit.
    pub timeout: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub enum Isolation {
    #[default]
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// The level of `set transaction isolation level`, by name or ASE's number. Read uncommitted becomes read
    /// committed, as in PostgreSQL.
    fn of(words: &[&str]) -> Option<Isolation> {
        Some(match words {
            ["0" | "1"] | ["read", "committed" | "uncommitted"] => Isolation::ReadCommitted,
            ["2"] | ["repeatable", "read"] => Isolation::RepeatableRead,
            ["3"] | ["serializable"] => Isolation::Serializable,
            _ => return None,
        })
    }

    /// By its number in a transaction manager request (MS-TDS 2.2.6.9). None: unchanged.
    pub fn of_request(number: u8) -> Result<Option<Isolation>, ServerMessage> {
        Ok(Some(match number {
            0 => return Ok(None),
            1 | 2 => Isolation::ReadCommitted,
            3 => Isolation::RepeatableRead,
            4 => Isolation::Serializable,
            other => {
                let text = format!("Isolation level {other} of a transaction is not served.");
                return Err(ServerMessage::error(195, 15, text));
            }
        }))
    }

    /// @@isolation
    pub fn number(self) -> i64 {
        match self {
            Isolation::ReadCommitted => 1,
            Isolation::RepeatableRead => 2,
            Isolation::Serializable => 3,
        }
    }
}

/// The length to which texts and binaries of unlimited types are truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSize {
    bytes: i32,
    /// Counts a character as one, as in SQL Server's text, and as two outside the basic plane. At 5.0 bytes
    /// of UTF-8 count.
    counts_characters: bool,
}

impl TextSize {
    const UNLIMITED: i32 = i32::MAX;

    /// SQL Server's default, which 0 selects (SET TEXTSIZE, "Arguments").
    const DEFAULT: i32 = 4096;
    const NO_LIMIT: i32 = -1;

    /// @@textsize
    pub fn bytes(self) -> i32 {
        self.bytes
    }

    /// SQL Server: 0 is its default, and -1 no limit. At 5.0 neither limits anything.
    fn set(&mut self, size: i64) {
        self.bytes = match i32::try_from(size) {
            Ok(0) if self.counts_characters => TextSize::DEFAULT,
            Ok(TextSize::NO_LIMIT) if self.counts_characters => TextSize::NO_LIMIT,
            Ok(size @ 1..) => size,
            _ => TextSize::UNLIMITED,
        };
    }

    /// The client's setting, if it has set one.
    pub fn limit(self) -> Option<u32> {
        u32::try_from(self.bytes).ok().filter(|_| self.bytes != TextSize::UNLIMITED)
    }

    pub fn cut(self, value: Value<'_>) -> Value<'_> {
        let limit = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        match value {
            _ if self.bytes == TextSize::UNLIMITED => value,
            Value::Text(text) if text.len() > limit => {
                let mut size = 0;
                let fits = |(_, character): &(usize, char)| {
                    size += if self.counts_characters { character.len_utf16() } else { character.len_utf8() };
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
    /// `is_odbc`: by default "x" is a name, and nothing equals null; for all other clients it is a text, and
    /// null equals null (SQL Server: "SET QUOTED_IDENTIFIER", "SET ANSI_NULLS", "Remarks"; ASE: set
    /// ansinull).
    pub fn new(dialect: &Dialect, is_odbc: bool) -> Settings {
        Settings {
            dialect: dialect.of_texts(),
            quoted_identifiers: is_odbc,
            nulls_equal: !is_odbc,
            cuts_padding: false,
            implicit_transactions: false,
            text_size: TextSize { bytes: TextSize::UNLIMITED, counts_characters: dialect.is_tds7() },
            only_formats: false,
            no_count: false,
            row_limit: 0,
            abort_on_error: false,
            closes_cursors: false,
            locking: Locking::default(),
            calendar: Calendar::default(),
            arithabort: (!dialect.is_tds7()).then(Arithabort::default),
            identity_insert: None,
        }
    }
}

/// A refused setting refuses the whole text, before its earlier statements run. Settings at the beginning of
/// a text, which a client sends together at its start, are applied one by one.
pub fn refuse_settings(statements: &[Statement], settings: &Settings) -> Result<(), ServerMessage> {
    let is_setting = |statement: &&Statement| matches!(statement.action, Action::Set(_));
    statements.iter().skip_while(is_setting).try_for_each(|statement| check_statement(statement, settings))
}

fn check_statement(statement: &Statement, settings: &Settings) -> Result<(), ServerMessage> {
    match &statement.action {
        // its value is known only when the SET runs
        Action::Set(words) if words.iter().any(|word| word.starts_with('@')) => Ok(()),
        Action::Set(words) => {
            let applied = settings.clone().apply(words);
            applied.map_err(|error| ServerMessage { line: statement.line, ..error })
        }
        action => action
            .bodies()
            .into_iter()
            .flatten()
            .try_for_each(|statement| check_statement(statement, settings)),
    }
}

impl Settings {
    /// Applies `set` with these options.
    pub fn apply(&mut self, words: &[String]) -> Result<(), ServerMessage> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let refused = || {
            let text = format!("'set {}' is not understood: ringlog has no such setting.", words.join(" "));
            Err(ServerMessage::error(195, 15, text))
        };
        let wrong = if self.dialect.is_strict { session::wrong_value(&words) } else { None };
        if let Some((number, severity, text)) = wrong {
            return Err(ServerMessage::error(number, severity, text));
        }
        match words.as_slice() {
            ["quoted_identifier", value @ ("on" | "off")] => self.quoted_identifiers = *value == "on",
            // the options that it comprises (SQL Server, SET ANSI_DEFAULTS); the others are always on
            ["ansi_defaults", "on"] => {
                self.quoted_identifiers = true;
                self.nulls_equal = false;
                self.cuts_padding = false;
                self.implicit_transactions = true;
                self.closes_cursors = true;
            }
            ["cursor_close_on_commit", value @ ("on" | "off")]
            | ["close", "on", "endtran", value @ ("on" | "off")] => self.closes_cursors = *value == "on",
            ["ansi_nulls" | "ansinull", value @ ("on" | "off")] => self.nulls_equal = *value == "off",
            ["ansi_padding", value @ ("on" | "off")] => self.cuts_padding = *value == "off",
            ["fmtonly", value @ ("on" | "off")] => self.only_formats = *value == "on",
            ["nocount", value @ ("on" | "off")] => self.no_count = *value == "on",
            ["xact_abort", value @ ("on" | "off")] => self.abort_on_error = *value == "on",
            // the session stores it, and no procedure restores it
            ["context_info", value] if value.starts_with("0x") => {}
            ["rowcount", number] => match number.parse() {
                Ok(number @ 0..) => self.row_limit = number,
                _ => return refused(),
            },
            ["implicit_transactions" | "chained", value @ ("on" | "off")] => {
                self.implicit_transactions = *value == "on";
            }
            ["textsize", size @ ..] => match size.concat().parse::<i64>() {
                Ok(size) => self.text_size.set(size),
                Err(_) => return refused(),
            },
            [what @ ("datefirst" | "dateformat"), value] => {
                if !self.calendar.set(what, value) {
                    return refused();
                }
            }
            ["arithabort", options @ .., value @ ("on" | "off")] if self.arithabort.is_some() => {
                if !self.arithabort.as_mut().is_some_and(|of| of.set(options, *value == "on")) {
                    return refused();
                }
            }
            // DATEFIRST and DATEFORMAT stay as set: the language is already this one
            ["language", "us_english" | "english"] => {}
            ["transaction" | "tran", "isolation", "level", level @ ..] => match Isolation::of(level) {
                Some(isolation) => self.locking.isolation = isolation,
                None => return refused(),
            },
            ["lock_timeout", number @ ..] => match number.concat().parse::<i32>() {
                Ok(-1) => self.locking.timeout = None,
                Ok(number) if number >= 0 => self.locking.timeout = number.try_into().ok(),
                _ => return refused(),
            },
            // ASE, in seconds
            ["lock", "wait"] if self.arithabort.is_some() => self.locking.timeout = None,
            ["lock", "nowait"] if self.arithabort.is_some() => self.locking.timeout = Some(0),
            ["lock", "wait", seconds] if self.arithabort.is_some() => match seconds.parse::<u32>() {
                Ok(seconds) => self.locking.timeout = Some(seconds.saturating_mul(1000)),
                Err(_) => return refused(),
            },
            // several options may share a value: set ansi_nulls, quoted_identifier on
            [options @ .., value]
                if options.contains(&",") && options.split(|word| *word == ",").all(|one| one.len() == 1) =>
            {
                let mut changed = self.clone();
                for option in options.iter().filter(|option| **option != ",") {
                    changed.apply(&[(*option).to_owned(), (*value).to_owned()])?;
                }
                *self = changed;
            }
            words if session::holds(words) || session::is_beside_results(words, self.dialect) => {}
            _ => return refused(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Version;

    fn set(text: &str) -> Result<Settings, ServerMessage> {
        let mut settings = Settings::new(&Dialect::new(Version::Tds74), true);
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        settings.apply(&words).map(|()| settings)
    }

    #[test]
    fn settings_that_change_and_those_that_hold() {
        assert!(!set("quoted_identifier off").unwrap().quoted_identifiers);
        assert!(set("implicit_transactions on").unwrap().implicit_transactions);
        // SQL Server, SET ANSI_DEFAULTS, "Remarks"
        let defaults = set("ansi_defaults on").unwrap();
        assert!(defaults.implicit_transactions && defaults.closes_cursors);
        assert!(set("cursor_close_on_commit on").unwrap().closes_cursors);
        // ASE, set, "close on endtran"
        assert!(set("close on endtran on").unwrap().closes_cursors);
        // SQL Server, CREATE INDEX: the options for indexed views
        let several = set("ansi_padding , ansi_nulls , quoted_identifier , nocount on").unwrap();
        assert!(several.quoted_identifiers && several.no_count);
        assert_eq!(
            set("ansi_nulls , quoted_identifier , ansi_warnings off").unwrap_err().text,
            "'set ansi_warnings off' is not understood: ringlog has no such setting."
        );
        assert!(set("ansi_nulls off").unwrap().nulls_equal && !set("ansinull on").unwrap().nulls_equal);
        assert!(
            set("ansi_padding off").unwrap().cuts_padding && !set("ansi_padding on").unwrap().cuts_padding
        );
        for text in ["arithabort on", "tran isolation level read committed", "rowcount 0"] {
            assert!(set(text).is_ok(), "{text}");
        }
        assert!(set("nocount on").unwrap().no_count && set("xact_abort on").unwrap().abort_on_error);
        assert_eq!(set("rowcount 5").unwrap().row_limit, 5);
        let level =
            |text: &str| set(&format!("transaction isolation level {text}")).unwrap().locking.isolation;
        assert_eq!(level("serializable"), level("3"));
        assert_eq!((level("repeatable read").number(), level("read uncommitted").number()), (2, 1));
        assert_eq!(set("lock_timeout 1800").unwrap().locking.timeout, Some(1800));
        let calendar = |text: &str| set(text).unwrap().calendar;
        assert_eq!((calendar("datefirst 1").first_day, calendar("dateformat dmy").order), (1, "dmy"));
        assert_eq!(calendar("language english"), Calendar::default());
        let text_size = |text: &str| set(text).unwrap().text_size;
        assert_eq!((text_size("textsize 0").bytes(), text_size("textsize 0").limit()), (4096, Some(4096)));
        assert_eq!((text_size("textsize -1").bytes(), text_size("textsize -1").limit()), (-1, None));
        assert_eq!(set("lock_timeout - 1").unwrap().locking.timeout, None);
    }

    // ASE Reference Manual: Commands, "set", arithabort
    #[test]
    fn arithabort_of_ase() {
        let set = |text: &str| {
            let mut settings = Settings::new(&Dialect::new(Version::Tds50), false);
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let done = settings.apply(&words).map_err(|message| message.number);
            done.map(|()| settings.arithabort.map(|of| (of.overflow, of.truncation)))
        };
        assert_eq!(set("arithabort numeric_truncation off"), Ok(Some((true, false))));
        assert_eq!(set("arithabort arith_overflow off"), Ok(Some((false, true))));
        assert_eq!(
            (set("arithabort off"), set("arithabort on")),
            (Ok(Some((false, false))), Ok(Some((true, true))))
        );
        assert_eq!(
            (set("arithabort no_such off"), set("arithignore arith_overflow on")),
            (Err(195), Err(195))
        );
        assert!(set("arithignore arith_overflow off").is_ok());
    }

    // ibidem, lock
    #[test]
    fn waiting_for_locks_in_ase() {
        let timeout = |text: &str| {
            let mut settings = Settings::new(&Dialect::new(Version::Tds50), false);
            settings.locking.timeout = Some(7);
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            settings.apply(&words).map(|()| settings.locking.timeout).map_err(|message| message.number)
        };
        assert_eq!((timeout("lock wait"), timeout("lock nowait")), (Ok(None), Ok(Some(0))));
        assert_eq!((timeout("lock wait 5"), timeout("lock wait x")), (Ok(Some(5000)), Err(195)));
        assert_eq!(set("lock nowait").unwrap_err().number, 195);
    }

    #[test]
    fn texts_end_where_textsize_says() {
        let cut = |size: i32, counts_characters, text: &'static str| match (TextSize {
            bytes: size,
            counts_characters,
        })
        .cut(Value::Text(text.into()))
        {
            Value::Text(text) => text.into_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(cut(2, true, "abc"), "ab");
        assert_eq!(cut(3, true, "abc"), "abc");
        assert_eq!(cut(3, false, "aéz"), "aé");
        assert_eq!(cut(1, true, "é€"), "é");
        assert_eq!(cut(TextSize::UNLIMITED, true, "abc"), "abc");
        let binary =
            (TextSize { bytes: 2, counts_characters: true }).cut(Value::Binary(vec![1, 2, 3].into()));
        assert_eq!(binary, Value::Binary(vec![1, 2].into()));
    }

    #[test]
    fn a_setting_that_would_change_results_is_refused() {
        for text in [
            "language german",
            "lock_timeout -2",
            "transaction isolation level snapshot",
            "noexec on",
            "ansi_warnings off",
            "no_such on",
        ] {
            let error = set(text).unwrap_err();
            assert!(error.text.contains(text), "{}", error.text);
        }
    }
}
