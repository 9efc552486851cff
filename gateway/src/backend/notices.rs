//! Notices by which procedures send more than messages.

use crate::postgres::Notice;
use crate::program::{ResultType, Title};
use crate::tds::tokens::done::Command;
use crate::tds::tokens::message::ServerMessage;
use tsql::facts::{notices, type_names};

/// A number of rows of a statement inside a procedure or trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub rows: u64,
    /// The kind of the statement.
    pub command: Command,
    pub in_trigger: bool,
    /// Its procedure, or one that has called it, has set nocount on.
    pub is_silent: bool,
}

/// The meaning of a notice.
pub enum Meaning {
    Message(ServerMessage),
    ResultSet {
        cursor: String,
        columns: Option<Vec<Title>>,
        counted: bool,
    },
    Count(Counted),
    /// A statement without a number of rows has ended.
    Ended {
        failed: bool,
    },
    /// @@error after the call
    LeftError(i32),
    /// @@rowcount after the call
    LeftRows(i64),
    /// The caller's transaction cannot be committed any more.
    Doomed,
    /// An error of a call, for the TRY block around it.
    HandedOver,
    /// The end of a statement under SET NOCOUNT ON, or a notice that T-SQL does not have.
    Nothing,
}

impl Meaning {
    pub fn of(notice: &Notice) -> Meaning {
        let has = |text: &str, word: &str| text.split(' ').any(|part| part == word);
        let says = |word: &str| has(&notice.detail, word);
        let meaning = match notice.sqlstate.as_str() {
            notices::RESULT_SET => Some(Meaning::ResultSet {
                cursor: notice.message.clone(),
                columns: titles(&notice.detail, has(&notice.hint, notices::WIDE)),
                counted: !has(&notice.hint, "nocount"),
            }),
            notices::ROW_COUNT => notice.message.parse().ok().map(|rows| {
                let known = [
                    ("select", Command::Select),
                    ("insert", Command::Insert),
                    ("delete", Command::Delete),
                    ("merge", Command::Merge),
                ];
                let command = known.iter().find(|(word, _)| says(word));
                let command = command.map_or(Command::Update, |(_, command)| *command);
                Meaning::Count(Counted {
                    rows,
                    command,
                    in_trigger: says("trigger"),
                    is_silent: says("nocount"),
                })
            }),
            notices::ENDED if says("nocount") => Some(Meaning::Nothing),
            notices::ENDED => Some(Meaning::Ended { failed: says("failed") }),
            notices::LEFT_ERROR => notice.message.parse().ok().map(Meaning::LeftError),
            notices::LEFT_ROWS => notice.message.parse().ok().map(Meaning::LeftRows),
            notices::DOOMED => Some(Meaning::Doomed),
            notices::HANDED_OVER => Some(Meaning::HandedOver),
            // IF EXISTS says nothing in T-SQL
            "00000"
                if notice.severity == "NOTICE" && notice.message.ends_with(" does not exist, skipping") =>
            {
                Some(Meaning::Nothing)
            }
            _ => None,
        };
        meaning.unwrap_or_else(|| Meaning::Message(notice.to_message()))
    }

    /// The same outside of a call: no cursor is fetched, and only the client's statement ends.
    pub fn outside_of_call(notice: &Notice) -> Option<Meaning> {
        match Meaning::of(notice) {
            Meaning::Ended { .. } | Meaning::Nothing => None,
            Meaning::ResultSet { .. } | Meaning::Count(Counted { in_trigger: false, .. }) => {
                Some(Meaning::Message(notice.to_message()))
            }
            meaning => Some(meaning),
        }
    }
}

fn titles(detail: &str, is_wide: bool) -> Option<Vec<Title>> {
    use serde_json::Value;
    let title = |value: Value| match value {
        Value::String(name) => Some(Title::given(name)),
        Value::Array(own) => own.first().and_then(Value::as_str).map(Title::own),
        Value::Object(typed) => {
            let declared = typed.get("type").and_then(Value::as_str).and_then(type_names::declared);
            let result_type = declared.map(|of| ResultType {
                of,
                not_null: typed.get("not_null").and_then(Value::as_bool).unwrap_or(false),
            });
            typed.get("name").and_then(Value::as_str).map(|name| Title { result_type, ..Title::given(name) })
        }
        _ => None,
    };
    let titles = serde_json::from_str::<Vec<Value>>(detail).ok()?.into_iter().map(title);
    titles.map(|title| title.map(|title| Title { is_wide, ..title })).collect()
}
