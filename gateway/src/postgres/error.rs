//! PostgreSQL's errors, and their T-SQL numbers.

use crate::tds::tokens::message::ServerMessage;
use postgres_protocol::message::backend::ErrorFields;
use tsql::facts::message_forms::{GENERATED, WITH_DETAIL};
use tsql::facts::{errors, notices};

/// The fields of an ErrorResponse or NoticeResponse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    pub severity: String,
    pub sqlstate: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
    pub schema: String,
    pub table: String,
    pub constraint: String,
    /// The location in a function or in a COPY.
    pub context: String,
    /// The statement of a function or procedure that PostgreSQL could not parse.
    pub query: String,
    /// T-SQL's message made from the catalogue, with its number and severity (`Backend::explained`).
    pub of_tsql: Option<(i32, u8, String)>,
    /// Notices before the error of a call, which must be sent before it.
    pub before: Vec<Notice>,
    /// Rows selected before the error cannot be sent.
    pub lost_rows: bool,
    /// The statement was written for other declarations of its tables, and has not run.
    pub is_outdated: bool,
    /// It was raised in a trigger of T-SQL, where SET XACT_ABORT is on.
    pub in_trigger: bool,
}

impl Notice {
    /// Reads the fields; unknown ones are ignored, and invalid UTF-8 is replaced.
    pub fn read(fields: ErrorFields<'_>) -> std::io::Result<Notice> {
        use fallible_iterator::FallibleIterator;
        let mut notice = Notice::default();
        let mut fields = fields;
        while let Some(field) = fields.next()? {
            let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'V' => notice.severity = value,
                b'C' => notice.sqlstate = value,
                b'M' => notice.message = value,
                b'D' => notice.detail = value,
                b'H' => notice.hint = value,
                b's' => notice.schema = value,
                b't' => notice.table = value,
                b'n' => notice.constraint = value,
                b'W' => notice.context = value,
                b'q' => notice.query = value,
                _ => {}
            }
        }
        if let Some(name) = notice.name_taken() {
            notice = Notice {
                severity: notice.severity,
                sqlstate: "42P07".into(),
                message: format!("relation \"{name}\" already exists"),
                context: notice.context,
                ..Notice::default()
            };
        }
        Ok(notice)
    }

    /// The name of an object that another transaction has created at the same moment: a duplicate key of PostgreSQL's
    /// catalogue, whose detail is for example `Key (typname, typnamespace)=(t, 2200) already exists.`
    fn name_taken(&self) -> Option<String> {
        if self.sqlstate != errors::DUPLICATE || self.schema != "pg_catalog" {
            return None;
        }
        let (columns, values) = self.detail.strip_suffix(") already exists.")?.split_once(")=(")?;
        values.rsplitn(1 + columns.matches(", ").count(), ", ").last().map(str::to_owned)
    }

    /// The approximate bytes in memory.
    pub fn size(&self) -> usize {
        let texts = [&self.message, &self.detail, &self.hint, &self.context];
        size_of::<Notice>() + texts.iter().map(|text| text.len()).sum::<usize>()
    }

    fn text(&self) -> String {
        let mut text = self.message.clone();
        for more in [&self.detail, &self.hint] {
            if !more.is_empty() {
                if !text.ends_with(['.', ':', ';', '!', '?']) {
                    text.push('.');
                }
                text.push(' ');
                text.push_str(more);
            }
        }
        text
    }

    /// A notice as a client's message: number 0, as PRINT, unless it has its own number.
    pub fn to_message(&self) -> ServerMessage {
        if self.sqlstate == notices::NUMBERED {
            if let Some(message) = self.numbered() {
                return message;
            }
        }
        self.located(ServerMessage { sqlstate: self.sqlstate.clone(), ..ServerMessage::info(0, self.text()) })
    }

    /// The message, with the procedure that it comes from.
    fn located(&self, message: ServerMessage) -> ServerMessage {
        match self.context.lines().find_map(location) {
            Some((procedure, line)) => ServerMessage { procedure: procedure.to_owned(), line, ..message },
            None => message,
        }
    }

    /// The message from the detail: number, severity, state, line and procedure.
    fn numbered(&self) -> Option<ServerMessage> {
        let mut words = self.detail.splitn(5, ' ');
        let number = words.next()?.parse().ok()?;
        let severity = words.next()?.parse().ok()?;
        let state = words.next()?.parse().ok()?;
        let line = words.next()?.parse().ok()?;
        let procedure = words.next().unwrap_or("").to_owned();
        let error = ServerMessage::error(number, severity, self.message.clone());
        Some(ServerMessage { state, line, procedure, ..error })
    }

    /// The error with the number that legacy code tests for, with T-SQL's text or with PostgreSQL's and the SQLSTATE.
    pub fn to_error(&self) -> ServerMessage {
        if self.sqlstate == notices::RAISED {
            if let Some(message) = self.numbered() {
                return message;
            }
        }
        if let Some((number, severity, text)) = &self.of_tsql {
            return self.located(ServerMessage {
                sqlstate: self.sqlstate.clone(),
                ..ServerMessage::error(*number, *severity, text.clone())
            });
        }
        if let Some(number) = errors::own_number(&self.sqlstate) {
            let error = ServerMessage::error(number, 16, self.text());
            return self.located(ServerMessage { sqlstate: self.sqlstate.clone(), ..error });
        }
        if let Some((number, text)) = errors::of_variant(&self.sqlstate, &self.message) {
            return self.located(ServerMessage::error(number, 16, text));
        }
        // only the detail shows which kind of column accepts no value, and why a view cannot be changed
        let message = match self.sqlstate.as_str() {
            _ if self.detail.ends_with("is a generated column.") => format!("{GENERATED}{}", self.message),
            WITH_DETAIL => self.text(),
            _ => self.message.clone(),
        };
        let (number, severity) = errors::number(&self.sqlstate, &message, &self.table, &self.constraint);
        let text = errors::words(&self.sqlstate, &message)
            .unwrap_or_else(|| format!("{} (SQLSTATE {})", self.text(), self.sqlstate));
        self.located(ServerMessage {
            sqlstate: self.sqlstate.clone(),
            ..ServerMessage::error(number, severity, text)
        })
    }
}

/// The function that a line of PostgreSQL's context names, and the line in it; None for functions that implement T-SQL
/// itself. A procedure compiled from T-SQL has the lines of its text.
fn location(context: &str) -> Option<(&str, u32)> {
    let (signature, rest) = context.strip_prefix("PL/pgSQL function ")?.rsplit_once(") line ")?;
    let (line, _) = rest.split_once(' ')?;
    let name = match signature.rsplit_once("\"(") {
        Some((quoted, _)) => quoted.rsplit_once('"')?.1,
        None => {
            let (name, _) = signature.split_once('(')?;
            name.rsplit_once('.').map_or(name, |(_, name)| name)
        }
    };
    let is_language = ["tsql.", "sys.", "sybsystemprocs."].iter().any(|schema| signature.starts_with(schema));
    Some((name, line.parse().ok()?)).filter(|_| !is_language)
}

/// The reasons why a request to PostgreSQL has no result.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    #[error("{}", .0.message)]
    Server(Box<Notice>),
    #[error("connection to PostgreSQL: {0}")]
    Io(#[from] std::io::Error),
    #[error("PostgreSQL sent {0}")]
    Protocol(String),
    /// It has committed, and the connection remains usable.
    #[error("the commit no longer waited for its synchronous standby, which may not have it")]
    Unconfirmed,
}

impl PgError {
    /// An error of T-SQL itself, as a function of schema tsql raises it.
    pub fn refused(number: i32, text: String) -> PgError {
        let sqlstate = format!("S{number:04}");
        PgError::Server(Box::new(Notice {
            severity: "ERROR".into(),
            sqlstate,
            message: text,
            ..Notice::default()
        }))
    }

    /// 2801 for a statement that was written for other declarations of its tables.
    pub fn changed() -> PgError {
        let text = "The definition of a table has changed since the statement was compiled.";
        let mut error = PgError::refused(2801, String::from(text));
        error.set_outdated();
        error
    }

    pub fn set_outdated(&mut self) {
        if let PgError::Server(notice) = self {
            notice.is_outdated = true;
        }
    }

    pub fn is_outdated(&self) -> bool {
        matches!(self, PgError::Server(notice) if notice.is_outdated)
    }

    pub fn is_in_trigger(&self) -> bool {
        matches!(self, PgError::Server(notice) if notice.in_trigger)
    }

    /// The number of such an error.
    pub fn own_number(&self) -> Option<i32> {
        self.sqlstate().and_then(errors::own_number)
    }

    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            PgError::Server(notice) => Some(&notice.sqlstate),
            _ => None,
        }
    }

    /// Whether the connection is unusable.
    pub fn is_fatal(&self) -> bool {
        match self {
            PgError::Server(notice) => matches!(notice.severity.as_str(), "FATAL" | "PANIC"),
            PgError::Unconfirmed => false,
            _ => true,
        }
    }

    /// Whether rows selected before the error are lost. After a deadlock the whole call is repeated.
    pub fn takes_rows(&self) -> bool {
        matches!(self, PgError::Server(notice) if notice.lost_rows && !notice.sqlstate.starts_with("40"))
    }

    /// A constraint that PostgreSQL found violated.
    pub fn violation(&mut self) -> Option<&mut Notice> {
        match self {
            PgError::Server(notice) if notice.sqlstate.starts_with("23") && !notice.table.is_empty() => {
                Some(notice)
            }
            _ => None,
        }
    }

    /// The notices of a call before its failure.
    pub fn before(&self) -> &[Notice] {
        match self {
            PgError::Server(notice) => &notice.before,
            _ => &[],
        }
    }

    pub fn to_message(&self) -> ServerMessage {
        match self {
            PgError::Server(notice) => notice.to_error(),
            PgError::Unconfirmed => ServerMessage::error(
                50000,
                16,
                "PostgreSQL no longer waited for its synchronous standby: the statement took effect, and is lost \
                 if the standby takes over without it. A put may be repeated.",
            ),
            other => ServerMessage::error(
                50000,
                16,
                format!(
                    "{other}. Whether the statement took effect is not known: repeat it when PostgreSQL is back."
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_and_hint_are_sentences_of_their_own() {
        let mut notice = Notice { message: "there is no signal 'x'".into(), ..Notice::default() };
        notice.hint = "find_signals lists them.".into();
        assert_eq!(notice.to_message().text, "there is no signal 'x'. find_signals lists them.");
    }

    #[test]
    fn a_name_of_the_catalogue_that_another_has_taken() {
        for (detail, name) in [
            ("Key (typname, typnamespace)=(a, b, 2200) already exists.", "a, b"),
            ("Key (nspname)=(site) already exists.", "site"),
            ("Key (proname, proargtypes, pronamespace)=(p, 23 25, 2200) already exists.", "p"),
        ] {
            let (sqlstate, schema) = ("23505".into(), "pg_catalog".into());
            let notice = Notice { sqlstate, schema, detail: detail.into(), ..Notice::default() };
            assert_eq!(notice.name_taken().as_deref(), Some(name));
            assert_eq!(Notice { schema: "site".into(), ..notice }.name_taken(), None);
        }
    }

    #[test]
    fn the_innermost_procedure_says_it() {
        for (context, expected) in [
            ("PL/pgSQL function p(integer) line 5 at SQL statement", ("p", 5)),
            ("PL/pgSQL function site.p(integer,text) line 12 at RAISE", ("p", 12)),
            ("PL/pgSQL function site.\"My p(1)\"(integer) line 1 at assignment", ("My p(1)", 1)),
            (
                "PL/pgSQL function tsql.fail(integer,text) line 3 at RAISE\nSQL function \"f\" statement 1\n\
                 PL/pgSQL function inner() line 2 at SQL statement\nPL/pgSQL function around() line 7 at CALL",
                ("inner", 2),
            ),
            ("SQL statement \"select 1\"", ("", 1)),
            ("PL/pgSQL function inline_code_block line 3 at RAISE", ("", 1)),
        ] {
            let notice = Notice { context: context.into(), sqlstate: "22012".into(), ..Notice::default() };
            let message = notice.to_error();
            assert_eq!((message.procedure.as_str(), message.line), expected, "{context}");
        }
    }

    #[test]
    fn a_message_with_a_number_of_its_own() {
        let notice = Notice {
            sqlstate: notices::NUMBERED.into(),
            message: "beam lost".into(),
            detail: "20001 16 3 12 my proc".into(),
            ..Notice::default()
        };
        let message = notice.to_message();
        assert_eq!((message.number, message.severity, message.state, message.line), (20001, 16, 3, 12));
        assert_eq!((message.text.as_str(), message.procedure.as_str()), ("beam lost", "my proc"));
        assert!(message.is_error());
        let raised = Notice { sqlstate: notices::RAISED.into(), ..notice.clone() };
        assert_eq!(raised.to_error().number, 20001);
        let damaged = Notice { detail: "beyond words".into(), ..notice };
        assert_eq!(damaged.to_message().number, 0);
    }
}
