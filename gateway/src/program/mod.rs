//! T-SQL for the session: the crate `tsql` compiles texts to programs, `cache` stores them.

mod cache;
mod literal;
mod snapshot;

pub use cache::{Compiled, Given, Latest, Programs};
pub use literal::{refusal, value_of};
pub use snapshot::{Asking, Shared, Snapshot};
pub use tsql::program::{
    placeholder, Action, Argument, Changes, Condition, Current, CursorAction, Declaration, Define,
    Definition, Demanded, Execute, Executed, Expression, FetchFrom, Filled, GivenTable, InsertBulk,
    InsertExecute, ListItem, Program, Query, QueryKind, ResultType, RowSource, SentText, Settings, Sql,
    Statement, Title, Uses, CLOCKS, CURRENT, LONGEST_TRANSACTION_NAME, SENT_TEXT,
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

/// The command in the DONE of a query.
pub fn command(query: &Query) -> Command {
    match query.kind {
        QueryKind::Select if query.makes_a_table() => Command::SelectInto,
        QueryKind::Select => Command::Select,
        QueryKind::Insert => Command::Insert,
        QueryKind::Update => Command::Update,
        QueryKind::Delete => Command::Delete,
        QueryKind::Merge => Command::Merge,
        QueryKind::Definition(Definition::Create) => Command::CreateTable,
        QueryKind::Definition(Definition::Drop) => Command::DropTable,
        QueryKind::Definition(_) | QueryKind::Unsaid => Command::Other,
    }
}
