//! The system procedures of server cursors at 7.x (SQL Server: "System stored procedures (API cursors)").

use super::fetch::send_of;
use super::keyed::{change_rows, hold_keys, keyset, read_only, Change};
use super::options::{invalid, wants_changes, Given, ALLOW_DIRECT, PARAMETERIZED};
use super::position::{Fetch, Position};
use super::rows::{hold_rows, written_selection};
use super::{Selection, ServerCursor, ServerCursors};
use crate::calls::{OutputValue, Returned};
use crate::client::Client;
use crate::convert::PgType;
use crate::cursors::postgres::{close_in_postgres, is_taken};
use crate::interrupt::{Failure, Interrupt};
use crate::rpc::{
    bound, prepare, prepared_as, statement_of, target_of, CursorProcedure, Prepared, PreparedStatements,
    Target,
};
use crate::run::State;
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::sync::Arc;

/// The indexes of a call's parameters for an open cursor: its number, scrollopt, ccopt and rowcount, between which the
/// statement may stand; the values of the statement's parameters come last.
#[derive(Clone, Copy)]
struct Indexes {
    cursor: usize,
    scroll: usize,
    values: usize,
    /// The number of the prepared statement, if it is returned.
    handle: Option<i32>,
}

/// The outcome of a procedure of server cursors.
pub enum CursorCall {
    Done(Returned),
    /// Its statement cannot have a cursor and is to run directly, with the values from this parameter on; the outputs to
    /// return.
    Direct(Arc<Prepared>, usize, Vec<OutputValue>),
}

/// The rows of a fetch without a number of rows.
const DEFAULT_ROWS: i64 = 20;

/// sp_cursorfetch returns it if the fetch begins at the first row instead of before it.
const ADJUSTED: i32 = 2;
/// A fast forward cursor has been closed after its last row.
const CLOSED: i32 = 16;

pub async fn call_cursor(
    state: &mut State,
    prepared_statements: &mut PreparedStatements,
    client: &mut Client,
    procedure: CursorProcedure,
    params: &[Param<'_>],
    described: bool,
) -> Result<CursorCall, Interrupt> {
    Ok(CursorCall::Done(match procedure {
        CursorProcedure::Open => {
            let scroll = integer(client, params, 2, "sp_cursoropen", "scrollopt")?.unwrap_or(0);
            let has_values = scroll & PARAMETERIZED != 0;
            let (declarations, values) = if has_values { (5, 6) } else { (usize::MAX, usize::MAX) };
            let prepared = selection_from(state, client, params, declarations, 1).await?;
            let indexes = Indexes { cursor: 0, scroll: 2, values, handle: None };
            return open_server_cursor(state, client, prepared, params, indexes, described).await;
        }
        CursorProcedure::Execute => {
            let Target::Text(prepared) =
                target_of(prepared_statements, client, params).map_err(Failure::of_statement)?
            else {
                let text = "sp_cursorexecute expects the handle of a select, and this one is of a call.";
                return Err(Failure::of_statement(ServerMessage::error(16937, 16, text)).into());
            };
            let indexes = Indexes { cursor: 1, scroll: 2, values: 5, handle: None };
            return open_server_cursor(state, client, prepared, params, indexes, described).await;
        }
        CursorProcedure::PrepareAndExecute => {
            let prepared = selection_from(state, client, params, 2, 3).await?;
            let handle =
                prepared_statements.keep(Target::Text(prepared.clone())).map_err(Failure::of_statement)?;
            let indexes = Indexes { cursor: 1, scroll: 4, values: 7, handle: Some(handle) };
            return open_server_cursor(state, client, prepared, params, indexes, described).await;
        }
        CursorProcedure::Prepare => {
            let scroll = integer(client, params, 4, "sp_cursorprepare", "scrollopt")?;
            let concurrency = integer(client, params, 5, "sp_cursorprepare", "ccopt")?;
            let given = Given::of(scroll, concurrency, false).map_err(Failure::of_statement)?;
            let mut returned =
                prepare(prepared_statements, state, client, params).await.map_err(Failure::of_statement)?;
            returned.outputs.extend(given_outputs(given, 4));
            returned.outputs.retain(|output| is_output(params, output));
            returned
        }
        CursorProcedure::Fetch => fetch_server_cursor(state, client, params, described).await?,
        CursorProcedure::Close => close_server_cursors(state, client, params).await?,
        CursorProcedure::Option => cursor_option(&state.cursors.server, client, params)?,
        CursorProcedure::Change => {
            change_by_cursor(state, client, params).await?;
            Returned::status(0)
        }
    }))
}

/// A statement for a cursor, possibly with clauses that only cursors have.
async fn selection_from(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
    declarations: usize,
    text: usize,
) -> Result<Arc<Prepared>, Interrupt> {
    let text = statement_of(client, params, text).map_err(Failure::of_statement)?;
    let refusal = match prepared_as(state, client, params, declarations, &text, false).await {
        Ok(prepared) => return Ok(prepared),
        Err(refusal) => refusal,
    };
    // `for update` and `for read only` are valid only after the select of a cursor
    let declared = format!("declare c cursor for {text}");
    match prepared_as(state, client, params, declarations, &declared, false).await {
        Ok(prepared) if Selection::of(&prepared.program).is_some() => Ok(prepared),
        _ => Err(Failure::of_statement(refusal).into()),
    }
}

async fn open_server_cursor(
    state: &mut State,
    client: &mut Client,
    prepared: Arc<Prepared>,
    params: &[Param<'_>],
    indexes: Indexes,
    described: bool,
) -> Result<CursorCall, Interrupt> {
    const PROCEDURE: &str = "sp_cursoropen";
    let concurrency = integer(client, params, indexes.scroll + 1, PROCEDURE, "ccopt")?;
    let Some(selection) = Selection::of(&prepared.program) else {
        if concurrency.is_none_or(|concurrency| concurrency & ALLOW_DIRECT == 0) {
            return Err(Failure::of_statement(no_cursor_for(&prepared)).into());
        }
        client.reply.message(&ServerMessage::info(16954, "Executing SQL directly; no cursor."));
        // all requested outputs are returned, unchanged (mssql-jdbc reads the cursor and the number of rows)
        let mut outputs: Vec<OutputValue> = handles(indexes, 0).collect();
        for (index, name) in (indexes.scroll..).zip(["scrollopt", "ccopt", "rowcount"]) {
            let value = integer(client, params, index, PROCEDURE, name)?;
            outputs.push(output(index, name, value.unwrap_or(0)));
        }
        outputs.retain(|output| is_output(params, output));
        return Ok(CursorCall::Direct(prepared, indexes.values, outputs));
    };
    let selection = written_selection(&mut state.procedures, client, selection).await?;
    let scroll = integer(client, params, indexes.scroll, PROCEDURE, "scrollopt")?;
    let rows = integer(client, params, indexes.scroll + 2, PROCEDURE, "rowcount")?;
    let rows = rows.filter(|rows| *rows > 0).unwrap_or(DEFAULT_ROWS);
    let variables = bound(state, client, &prepared, params, indexes.values).await?;
    let keyset = match wants_changes(scroll, concurrency) {
        true => keyset(state, client, &prepared, &selection, &variables).await?,
        false => None,
    };
    let given = Given::of(scroll, concurrency, keyset.is_some()).map_err(Failure::of_statement)?;
    let number = state.cursors.server.admit().map_err(Failure::of_statement)?;
    let held = match keyset {
        Some(keyset) => hold_keys(state, client, keyset, &selection, &variables, given.scrolls()).await?,
        None => hold_rows(state, client, &selection, &variables, given.scrolls()).await?,
    };
    let mut cursor = ServerCursor { rows: held, given, position: Position::BeforeFirst };
    let (fetch, rows) = if given.fetches { (Fetch::Next, rows) } else { (Fetch::First, 0) };
    let sent = match send_of(&mut state.procedures.backend, client, &mut cursor, fetch, rows, described).await
    {
        Ok((sent, _)) => sent,
        Err(interrupt) => {
            close_in_postgres(&mut state.procedures.backend, client, &cursor.rows.name).await?;
            return Err(interrupt);
        }
    };
    let mut outputs: Vec<OutputValue> = handles(indexes, number).collect();
    outputs.extend(given_outputs(given, indexes.scroll));
    let total = if given.fetches { sent } else { cursor.rows.total.unwrap_or(-1) };
    outputs.push(output(indexes.scroll + 2, "rowcount", total));
    outputs.retain(|output| is_output(params, output));
    let mut status = 0;
    if given.closes && given.fetches && sent < rows {
        close_in_postgres(&mut state.procedures.backend, client, &cursor.rows.name).await?;
        status = CLOSED;
    } else {
        state.cursors.server.open.insert(number, cursor);
    }
    let rows = u64::try_from(sent).ok();
    Ok(CursorCall::Done(Returned { rows, ..Returned::outputs(status, outputs) }))
}

async fn fetch_server_cursor(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
    described: bool,
) -> Result<Returned, Interrupt> {
    const PROCEDURE: &str = "sp_cursorfetch";
    const INFO: i64 = 0x100;
    let number = cursor_number(client, params, PROCEDURE)?;
    let kind = integer(client, params, 1, PROCEDURE, "fetchtype")?;
    let row = integer(client, params, 2, PROCEDURE, "rownum")?;
    let rows = integer(client, params, 3, PROCEDURE, "nrows")?;
    if kind == Some(INFO) {
        let Some(cursor) = state.cursors.server.open.get(&number) else {
            return Err(no_such_cursor(PROCEDURE, number).into());
        };
        let (at, total) = (cursor.position.number(), cursor.rows.total.unwrap_or(-1));
        let mut outputs = vec![output(2, "rownum", at), output(3, "nrows", total)];
        outputs.retain(|output| is_output(params, output));
        return Ok(Returned::outputs(0, outputs));
    }
    let fetch = fetch_of(kind, row)?;
    let rows = rows.unwrap_or(DEFAULT_ROWS);
    let may_be_none = matches!(fetch, Fetch::First | Fetch::Last | Fetch::Refresh);
    if rows < 0 || rows == 0 && !may_be_none {
        return Err(Failure::of_statement(invalid(PROCEDURE, "nrows")).into());
    }
    let Some(mut cursor) = state.cursors.server.open.remove(&number) else {
        return Err(no_such_cursor(PROCEDURE, number).into());
    };
    let sent = send_of(&mut state.procedures.backend, client, &mut cursor, fetch, rows, described).await;
    let (sent, adjusted) = match sent {
        Err(interrupt) if is_taken(&interrupt) => {
            // a rollback has closed it
            return Err(no_such_cursor(PROCEDURE, number).into());
        }
        Ok((sent, _)) if cursor.given.closes && sent < rows => {
            close_in_postgres(&mut state.procedures.backend, client, &cursor.rows.name).await?;
            return Ok(Returned { rows: u64::try_from(sent).ok(), ..Returned::status(CLOSED) });
        }
        sent => {
            state.cursors.server.open.insert(number, cursor);
            sent?
        }
    };
    let status = if adjusted { ADJUSTED } else { 0 };
    Ok(Returned { rows: u64::try_from(sent).ok(), ..Returned::status(status) })
}

/// sp_cursorclose: -1 closes all.
async fn close_server_cursors(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
) -> Result<Returned, Interrupt> {
    const PROCEDURE: &str = "sp_cursorclose";
    let number = cursor_number(client, params, PROCEDURE)?;
    if number == -1 {
        for cursor in std::mem::take(&mut state.cursors.server.open).into_values() {
            close_in_postgres(&mut state.procedures.backend, client, &cursor.rows.name).await?;
        }
        return Ok(Returned::status(0));
    }
    let Some(cursor) = state.cursors.server.open.remove(&number) else {
        return Err(no_such_cursor(PROCEDURE, number).into());
    };
    close_in_postgres(&mut state.procedures.backend, client, &cursor.rows.name).await?;
    Ok(Returned::status(0))
}

fn cursor_option(
    cursors: &ServerCursors,
    client: &Client,
    params: &[Param<'_>],
) -> Result<Returned, Failure> {
    const PROCEDURE: &str = "sp_cursoroption";
    const CURSOR_NAME: i64 = 2;
    let number = cursor_number(client, params, PROCEDURE)?;
    let cursor = cursors.open.get(&number);
    let cursor = cursor.ok_or_else(|| no_such_cursor(PROCEDURE, number))?;
    let value = match integer(client, params, 1, PROCEDURE, "code")? {
        // used by `where current of`, which does not work on this cursor: it changes rows by sp_cursor
        Some(CURSOR_NAME) => return Ok(Returned::status(0)),
        Some(4) => cursor.given.scroll,
        Some(5) => cursor.given.concurrency,
        Some(6) => cursor.rows.total.unwrap_or(-1),
        _ => return Err(Failure::of_statement(invalid(PROCEDURE, "code"))),
    };
    Ok(Returned::outputs(0, vec![output(2, "value", value)]))
}

/// sp_cursor: cursor, operation, row of the fetch buffer, table, values.
async fn change_by_cursor(
    state: &mut State,
    client: &mut Client,
    params: &[Param<'_>],
) -> Result<(), Interrupt> {
    const PROCEDURE: &str = "sp_cursor";
    /// The changed row is the current one anyway; its number is that in the buffer.
    const SET_POSITION: i64 = 0x20;
    let number = cursor_number(client, params, PROCEDURE)?;
    let operation = integer(client, params, 1, PROCEDURE, "optype")?.unwrap_or(0);
    let row = integer(client, params, 2, PROCEDURE, "rownum")?.unwrap_or(0);
    let change = match operation & !SET_POSITION {
        0 if operation != 0 => None,
        1 => Some(Change::Update),
        2 => Some(Change::Delete),
        4 => Some(Change::Insert),
        _ => return Err(Failure::of_statement(invalid(PROCEDURE, "optype")).into()),
    };
    let Some(mut cursor) = state.cursors.server.open.remove(&number) else {
        return Err(no_such_cursor(PROCEDURE, number).into());
    };
    let values = params.get(4..).unwrap_or(&[]);
    let changed = match change {
        Some(_) if cursor.rows.keyset.is_none() => Err(read_only().into()),
        Some(change) => change_rows(state, client, &mut cursor.rows, change, row, values).await,
        None => Ok(()),
    };
    state.cursors.server.open.insert(number, cursor);
    changed
}

fn cursor_number(client: &Client, params: &[Param<'_>], procedure: &str) -> Result<i32, Failure> {
    let number =
        integer(client, params, 0, procedure, "cursor")?.and_then(|number| i32::try_from(number).ok());
    number.ok_or_else(|| Failure::of_statement(invalid(procedure, "cursor")))
}

fn integer(
    client: &Client,
    params: &[Param<'_>],
    index: usize,
    procedure: &str,
    name: &str,
) -> Result<Option<i64>, Failure> {
    let Some(param) = params.get(index) else { return Ok(None) };
    match param.value(&client.reply.dialect) {
        Ok(Value::Int(value)) => Ok(Some(value)),
        Ok(Value::Null) => Ok(None),
        _ => Err(Failure::of_statement(invalid(procedure, name))),
    }
}

fn fetch_of(kind: Option<i64>, row: Option<i64>) -> Result<Fetch, Failure> {
    /// About timestamps, which cursors do not have here.
    const SKIP_CHECK: i64 = 0x400;
    Ok(match kind.map(|kind| kind & !SKIP_CHECK) {
        Some(0x01) => Fetch::First,
        None | Some(0x02) => Fetch::Next,
        Some(0x04) => Fetch::Prior,
        Some(0x08) => Fetch::Last,
        Some(0x10) => Fetch::Absolute(row.unwrap_or(0)),
        Some(0x20) => Fetch::Relative(row.unwrap_or(0)),
        Some(0x80) => Fetch::Refresh,
        Some(0x200) => Fetch::PriorUnadjusted,
        _ => return Err(Failure::of_statement(invalid("sp_cursorfetch", "fetchtype"))),
    })
}

fn no_such_cursor(procedure: &str, number: i32) -> Failure {
    let text = format!("{procedure}: The cursor identifier value provided ({number:x}) is not valid.");
    Failure::of_statement(ServerMessage::error(16909, 16, text))
}

/// The error for a statement that cannot have a cursor.
pub(super) fn no_cursor_for(prepared: &Prepared) -> ServerMessage {
    use crate::program::{Action, Statement};
    if let [Statement { action: Action::Execute(_), .. }] = prepared.program.statements.as_slice() {
        let text =
            "A server cursor is not allowed on a remote stored procedure or stored procedure with more \
                    than one SELECT statement. Use a default result set or client cursor.";
        return ServerMessage::error(16937, 16, text);
    }
    let text = "sp_cursoropen/sp_cursorprepare: The statement parameter can only be a batch or a stored \
                procedure with a single select, without FOR BROWSE, COMPUTE BY, or variable assignments.";
    ServerMessage::error(16938, 16, text)
}

fn output(index: usize, name: &str, value: i64) -> OutputValue {
    OutputValue { index, name: name.to_owned(), value: Value::Int(value), pg_type: PgType::Int4 }
}

/// The numbers of the prepared statement and of the cursor.
fn handles(indexes: Indexes, cursor: i32) -> impl Iterator<Item = OutputValue> {
    let prepared = indexes.handle.map(|handle| output(0, "prepared_handle", i64::from(handle)));
    prepared.into_iter().chain([output(indexes.cursor, "cursor", i64::from(cursor))])
}

/// The options granted instead of the requested ones.
fn given_outputs(given: Given, scroll: usize) -> [OutputValue; 2] {
    [output(scroll, "scrollopt", given.scroll), output(scroll + 1, "ccopt", given.concurrency)]
}

fn is_output(params: &[Param<'_>], output: &OutputValue) -> bool {
    params.get(output.index).is_some_and(|param| param.output)
}
