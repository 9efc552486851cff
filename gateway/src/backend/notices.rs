//! Notices by which procedures send more than messages (docs/developer.md).

use crate::postgres::Notice;
use crate::program::{ResultType, Title};
use crate::tds::tokens::done::Command;
use crate::tds::tokens::message::ServerMessage;
use tsql::facts::types;

/// Names a cursor, whose rows are a result set; the detail may be a JSON list of names for its columns;
/// a name in brackets of its own is that of a table's column. With a hint `nocount` its number of rows is not sent.
const RESULT_SET: &str = "01R01";
/// A number of rows; the detail `select` says that they gave variables their values, `trigger` that a trigger's
/// statement has changed them.
const ROW_COUNT: &str = "01R02";
/// The error that a procedure leaves behind: @@error after its call.
const LEFT_ERROR: &str = "01R04";

/// The value of @@rowcount after a procedure, if its latest number of rows or result set does not determine it.
const LEFT_ROWS: &str = "01R05";

/// A procedure has caught an error that leaves the transaction of its caller uncommittable.
const DOOMS: &str = "01R06";

pub fn dooms(notice: &Notice) -> bool {
    notice.sqlstate == DOOMS
}

/// The number of rows that a notice says a procedure leaves.
pub fn left_rows_of(notice: &Notice) -> Option<i64> {
    (notice.sqlstate == LEFT_ROWS).then(|| notice.message.parse().ok()).flatten()
}

/// A number of rows of a statement inside a procedure or trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub rows: u64,
    /// The kind of the statement.
    pub command: Command,
    pub in_trigger: bool,
}

/// The number of rows that a notice has.
pub fn row_count_of(notice: &Notice) -> Option<Counted> {
    let rows = (notice.sqlstate == ROW_COUNT).then(|| notice.message.parse().ok()).flatten()?;
    let says = |word: &str| notice.detail.split(' ').any(|said| said == word);
    let command = if says("select") { Command::Select } else { Command::Update };
    Some(Counted { rows, command, in_trigger: says("trigger") })
}

/// The number of the error that a notice says a procedure leaves.
pub fn left_error_of(notice: &Notice) -> Option<i32> {
    (notice.sqlstate == LEFT_ERROR).then(|| notice.message.parse().ok()).flatten()
}

/// The meaning of a notice of a call.
pub enum Announced {
    Message(ServerMessage),
    ResultSet {
        cursor: String,
        columns: Option<Vec<Title>>,
        counted: bool,
    },
    Count(Counted),
    /// The value of @@rowcount after the call.
    LeftRows(i64),
}

impl Announced {
    /// `in_call`: of a procedure whose cursors can be fetched.
    pub fn of(notice: &Notice, in_call: bool) -> Announced {
        if in_call && notice.sqlstate == RESULT_SET {
            return Announced::ResultSet {
                cursor: notice.message.clone(),
                columns: titles(&notice.detail),
                counted: notice.hint.is_empty(),
            };
        }
        if let Some(rows) = left_rows_of(notice) {
            return Announced::LeftRows(rows);
        }
        match row_count_of(notice).filter(|counted| in_call || counted.in_trigger) {
            Some(counted) => Announced::Count(counted),
            None => Announced::Message(notice.to_message()),
        }
    }
}

fn titles(detail: &str) -> Option<Vec<Title>> {
    use serde_json::Value;
    let title = |value: Value| match value {
        Value::String(name) => Some(Title::given(name)),
        Value::Array(own) => own.first().and_then(Value::as_str).map(Title::own),
        Value::Object(typed) => {
            let declared = typed.get("type").and_then(Value::as_str).and_then(types::declared);
            let result_type = declared.map(|of| ResultType {
                of,
                not_null: typed.get("not_null").and_then(Value::as_bool).unwrap_or(false),
            });
            typed.get("name").and_then(Value::as_str).map(|name| Title { result_type, ..Title::given(name) })
        }
        _ => None,
    };
    serde_json::from_str::<Vec<Value>>(detail).ok()?.into_iter().map(title).collect()
}
