//! T-SQL for the session: the crate `tsql` compiles texts to programs, `cache` keeps them.

mod cache;
mod literal;
mod snapshot;

pub use cache::{Compiled, Given, Latest, Programs};
pub use literal::{refusal, value_of};
pub use snapshot::{is_global, Asking, Shared, Snapshot};
pub use tsql::program::{
    placeholder, Action, Argument, Bound, Changes, Condition, Current, CursorAction, Declaration, Define,
    Demanded, Execute, Executed, Expression, FetchFrom, Filled, FilledBy, InsertBulk, InsertExecute,
    ListItem, Made, Program, Query, QueryKind, ResultType, RowSource, SentText, Settings, Sql, Statement,
    Title, Uses, CLOCKS, CURRENT, LONGEST_TRANSACTION_NAME, SENT_TEXT,
};

use crate::convert::SqlType;
use crate::tds::tokens::done::Command;
use crate::tds::tokens::message::ServerMessage;

/// PostgreSQL's type of a variable.
pub fn sql_type(declaration: &Declaration) -> SqlType {
    SqlType { oid: declaration.of.oid, typmod: declaration.of.typmod() }
}

/// 137: no such variable.
pub fn undeclared(name: &str) -> ServerMessage {
    refusal(&tsql::Error::undeclared(name, 1_u32))
}

/// How the definitions of tables and indexes begin.
const CREATING: [&str; 3] = ["call tsql.create_table", "call tsql.create_global", "call tsql.create_index"];

/// The command in the DONE of a query.
pub fn command(query: &Query) -> Command {
    let is = |word: &str| query.sql.begins_with(word);
    match query.kind {
        QueryKind::Select if query.makes_a_table() => Command::SelectInto,
        QueryKind::Select => Command::Select,
        QueryKind::Change if is("update") => Command::Update,
        QueryKind::Change if is("delete") => Command::Delete,
        QueryKind::Change if is("merge") => Command::Merge,
        QueryKind::Change => Command::Insert,
        QueryKind::Definition if is("create") || CREATING.iter().any(|call| query.sql.starts_with(call)) => {
            Command::CreateTable
        }
        QueryKind::Definition if is("do") || is("drop") => Command::DropTable,
        QueryKind::Definition | QueryKind::Unsaid => Command::Other,
    }
}
