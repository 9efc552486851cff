//! What PostgreSQL says when it refuses, and the number legacy clients know it by.

use crate::tds::tokens::message::ServerMessage;
use postgres_protocol::message::backend::ErrorFields;

/// The fields of an ErrorResponse or NoticeResponse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    pub severity: String,
    pub sqlstate: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
    pub constraint: String,
    /// Where in a function or in a COPY it happened.
    pub context: String,
    /// What was said before an error of a call, which has to be told before it.
    pub before: Vec<Notice>,
}

impl Notice {
    /// Reads the fields; unknown ones are left out, bytes that are not UTF-8 are shown as such.
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
                b'n' => notice.constraint = value,
                b'W' => notice.context = value,
                _ => {}
            }
        }
        Ok(notice)
    }

    fn text(&self) -> String {
        let mut text = self.message.clone();
        for more in [&self.detail, &self.hint] {
            if !more.is_empty() {
                text.push(' ');
                text.push_str(more);
            }
        }
        text
    }

    /// RAISE NOTICE and the like as a client's message: number 0, as PRINT, unless it tells its own.
    pub fn to_message(&self) -> ServerMessage {
        if self.sqlstate == TOLD {
            if let Some(message) = self.numbered() {
                return message;
            }
        }
        ServerMessage { sqlstate: self.sqlstate.clone(), ..ServerMessage::info(0, self.text()) }
    }

    /// What the detail says: number, severity, state, line and procedure.
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

    /// The error with the number legacy code tests for. PostgreSQL's own words and the SQLSTATE come along.
    pub fn to_error(&self) -> ServerMessage {
        if self.sqlstate == RAISED {
            if let Some(message) = self.numbered() {
                return message;
            }
        }
        if let Some(number) = own_number(&self.sqlstate) {
            let error = ServerMessage::error(number, 16, self.text());
            return ServerMessage { sqlstate: self.sqlstate.clone(), ..error };
        }
        let (number, severity) = number(&self.sqlstate);
        let text = format!("{} (SQLSTATE {})", self.text(), self.sqlstate);
        ServerMessage { sqlstate: self.sqlstate.clone(), ..ServerMessage::error(number, severity, text) }
    }
}

/// A notice that is an error or message of its own number, told by a procedure that goes on.
const TOLD: &str = "01R03";
/// An error that a procedure compiled from T-SQL raises.
const RAISED: &str = "TS001";

/// Functions of T-SQL raise its errors under their own numbers: SQLSTATE S0245 is 245.
fn own_number(sqlstate: &str) -> Option<i32> {
    sqlstate.strip_prefix('S').filter(|digits| digits.len() == 4)?.parse().ok()
}

/// SQLSTATE to (number, severity) of Sybase and SQL Server. Numbers from 50000 on are an application's
/// own; 50000 stands for what has no number there.
fn number(sqlstate: &str) -> (i32, u8) {
    match sqlstate {
        "23505" => (2601, 14),
        "23503" | "23514" | "23P01" => (547, 16),
        "23502" => (515, 16),
        "40P01" | "40001" => (1205, 13),
        "42501" => (229, 14),
        "42P01" => (208, 16),
        "42703" => (207, 16),
        "42883" => (2812, 16),
        "42601" => (102, 15),
        "3D000" | "3F000" => (911, 16),
        "28000" | "28P01" => (18456, 14),
        "42P07" | "42710" | "42723" => (2714, 16),
        "42702" => (209, 16),
        "42803" => (8120, 16),
        "21000" => (512, 16),
        "22001" => (8152, 16),
        "22003" => (8115, 16),
        "22012" => (8134, 16),
        "22P02" | "22007" | "22008" | "22P03" | "22023" => (8114, 16),
        "42804" | "42846" => (257, 16),
        "55P03" => (1222, 16),
        // a T-SQL client sees a cancelled statement by the DONE token; the number is SQL Server's
        "57014" => (3617, 11),
        "53300" => (17809, 20),
        "53100" => (1105, 17),
        "25006" => (3906, 16),
        _ => (50000, 16),
    }
}

/// Why a request to PostgreSQL has no result.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    #[error("{}", .0.message)]
    Server(Box<Notice>),
    #[error("connection to PostgreSQL: {0}")]
    Io(#[from] std::io::Error),
    #[error("PostgreSQL sent {0}")]
    Protocol(String),
}

impl PgError {
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            PgError::Server(notice) => Some(&notice.sqlstate),
            _ => None,
        }
    }

    /// Whether the connection can be used no further.
    pub fn is_fatal(&self) -> bool {
        match self {
            PgError::Server(notice) => matches!(notice.severity.as_str(), "FATAL" | "PANIC"),
            _ => true,
        }
    }

    /// What a call said before it failed.
    pub fn before(&self) -> &[Notice] {
        match self {
            PgError::Server(notice) => &notice.before,
            _ => &[],
        }
    }

    pub fn to_message(&self) -> ServerMessage {
        match self {
            PgError::Server(notice) => notice.to_error(),
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
    fn a_message_that_tells_its_number() {
        let told = Notice {
            sqlstate: TOLD.into(),
            message: "beam lost".into(),
            detail: "20001 16 3 12 my proc".into(),
            ..Notice::default()
        };
        let message = told.to_message();
        assert_eq!((message.number, message.severity, message.state, message.line), (20001, 16, 3, 12));
        assert_eq!((message.text.as_str(), message.procedure.as_str()), ("beam lost", "my proc"));
        assert!(message.is_error());
        let raised = Notice { sqlstate: RAISED.into(), ..told.clone() };
        assert_eq!(raised.to_error().number, 20001);
        let damaged = Notice { detail: "beyond words".into(), ..told };
        assert_eq!(damaged.to_message().number, 0);
    }
}
