//! The system procedures of server cursors at 7.x (SQL Server: "System stored procedures (API cursors)").

use super::keyed::{read_only, Change};
use super::options::{invalid, wants_changes, Given, ALLOW_DIRECT, PARAMETERIZED};
use super::position::{Fetch, Position};
use super::{Selection, ServerCursor};
use crate::calls::{Form, OutputValue, Returned};
use crate::client::Client;
use crate::convert::PgType;
use crate::cursors::declared::is_taken;
use crate::interrupt::{Failure, Interrupt};
use crate::rpc::CursorProcedure;
use crate::rpc::{handle, no_such_handle, statement_of};
use crate::rpc::{Prepared, Target};
use crate::run::Interpreter;
use crate::run::{texts_taken, Variables};
use crate::tds::call::Param;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::sync::Arc;

/// The indexes of a call's parameters for an open cursor: its number, scrollopt, ccopt and rowcount, between which the
/// statement may stand; the values of the statement's parameters come last.
#[derive(Clone, Copy)]
struct Places {
    cursor: usize,
    scroll: usize,
    values: usize,
    /// The number of the prepared statement, if it is returned.
    handle: Option<i32>,
}

/// The rows of a fetch without a number of rows.
const DEFAULT_ROWS: i64 = 20;

/// sp_cursorfetch returns it if the fetch begins at the first row instead of before it.
const ADJUSTED: i32 = 2;
/// A fast forward cursor has been closed after its last row.
const CLOSED: i32 = 16;

impl Interpreter {
    /// None: it failed and the call has been ended.
    pub(crate) async fn call_cursor(
        &mut self,
        client: &mut Client,
        procedure: CursorProcedure,
        params: &[Param<'_>],
        form: Form,
        described: bool,
    ) -> Result<Returned, Interrupt> {
        match procedure {
            CursorProcedure::Open => {
                let scroll = integer(client, params, 2, "sp_cursoropen", "scrollopt")?.unwrap_or(0);
                let has_values = scroll & PARAMETERIZED != 0;
                let (declarations, values) = if has_values { (5, 6) } else { (usize::MAX, usize::MAX) };
                let prepared = self.selection_from(client, params, declarations, 1).await?;
                let places = Places { cursor: 0, scroll: 2, values, handle: None };
                self.open_server_cursor(client, &prepared, params, places, form, described).await
            }
            CursorProcedure::Execute => {
                let Target::Text(prepared) = self.target_of(client, params).map_err(Failure::of_statement)?
                else {
                    let text = "sp_cursorexecute expects the handle of a select, and this one is of a call.";
                    return Err(Failure::of_statement(ServerMessage::error(16937, 16, text)).into());
                };
                let places = Places { cursor: 1, scroll: 2, values: 5, handle: None };
                self.open_server_cursor(client, &prepared, params, places, form, described).await
            }
            CursorProcedure::PrepareAndExecute => {
                let prepared = self.selection_from(client, params, 2, 3).await?;
                let handle = self.prepared.keep(prepared.clone()).map_err(Failure::of_statement)?;
                let places = Places { cursor: 1, scroll: 4, values: 7, handle: Some(handle) };
                self.open_server_cursor(client, &prepared, params, places, form, described).await
            }
            CursorProcedure::Prepare => {
                let scroll = integer(client, params, 4, "sp_cursorprepare", "scrollopt")?;
                let concurrency = integer(client, params, 5, "sp_cursorprepare", "ccopt")?;
                let given = Given::of(scroll, concurrency, false).map_err(Failure::of_statement)?;
                let mut returned = self.prepare(client, params).await.map_err(Failure::of_statement)?;
                returned.outputs.extend(given_outputs(given, 4));
                returned.outputs.retain(|output| is_output(params, output));
                Ok(returned)
            }
            CursorProcedure::Unprepare => {
                let handle = handle(client, params).map_err(Failure::of_statement)?;
                match self.prepared.close(handle) {
                    true => Ok(Returned::status(0)),
                    false => Err(Failure::of_statement(no_such_handle(handle)).into()),
                }
            }
            CursorProcedure::Fetch => self.fetch_server_cursor(client, params, described).await,
            CursorProcedure::Close => self.close_server_cursors(client, params).await,
            CursorProcedure::Option => {
                self.cursor_option(client, params).map_err(|m| Failure::of_statement(m).into())
            }
            CursorProcedure::Change => {
                self.change_by_cursor(client, params).await.map(|()| Returned::status(0))
            }
        }
    }

    /// A statement for a cursor, possibly with clauses that only cursors have.
    async fn selection_from(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
        declarations: usize,
        text: usize,
    ) -> Result<Arc<Prepared>, Interrupt> {
        let text = statement_of(client, params, text).map_err(Failure::of_statement)?;
        let refusal = match self.prepared_as(client, params, declarations, &text, false).await {
            Ok(prepared) => return Ok(prepared),
            Err(refusal) => refusal,
        };
        // `for update` and `for read only` are valid only after the select of a cursor
        let declared = format!("declare c cursor for {text}");
        match self.prepared_as(client, params, declarations, &declared, false).await {
            Ok(prepared) if Selection::of(&prepared.program).is_some() => Ok(prepared),
            _ => Err(Failure::of_statement(refusal).into()),
        }
    }

    async fn open_server_cursor(
        &mut self,
        client: &mut Client,
        prepared: &Prepared,
        params: &[Param<'_>],
        places: Places,
        form: Form,
        described: bool,
    ) -> Result<Returned, Interrupt> {
        const PROCEDURE: &str = "sp_cursoropen";
        let concurrency = integer(client, params, places.scroll + 1, PROCEDURE, "ccopt")?;
        let Some(selection) = Selection::of(&prepared.program) else {
            if concurrency.is_none_or(|concurrency| concurrency & ALLOW_DIRECT == 0) {
                return Err(Failure::of_statement(no_cursor_for(prepared)).into());
            }
            client.reply.message(&ServerMessage::info(16954, "Executing SQL directly; no cursor."));
            // all requested outputs are returned, unchanged (mssql-jdbc reads the cursor and the number of rows)
            let mut outputs: Vec<OutputValue> = handles(places, 0).collect();
            for (index, name) in (places.scroll..).zip(["scrollopt", "ccopt", "rowcount"]) {
                let value = integer(client, params, index, PROCEDURE, name)?;
                outputs.push(output(index, name, value.unwrap_or(0)));
            }
            outputs.retain(|output| is_output(params, output));
            return self.execute(client, prepared, params, places.values, outputs, form).await;
        };
        let selection = self.written_selection(client, selection).await?;
        let scroll = integer(client, params, places.scroll, PROCEDURE, "scrollopt")?;
        let rows = integer(client, params, places.scroll + 2, PROCEDURE, "rowcount")?;
        let rows = rows.filter(|rows| *rows > 0).unwrap_or(DEFAULT_ROWS);
        let dialect = client.dialect();
        let values = params.get(places.values..).unwrap_or(&[]);
        let arithabort = client.settings().arithabort;
        self.set_texts(client, values, &texts_taken(&prepared.declarations, values, &dialect)).await?;
        let mut variables =
            Variables::bind(&prepared.declarations, values, places.values, &dialect, arithabort)
                .map_err(Failure::of_statement)?;
        variables.give(&prepared.literals);
        let keyset = match wants_changes(scroll, concurrency) {
            true => self.keyset(client, prepared, &selection, &variables).await?,
            false => None,
        };
        let given = Given::of(scroll, concurrency, keyset.is_some()).map_err(Failure::of_statement)?;
        let number = self.server_cursors.admit().map_err(Failure::of_statement)?;
        let held = match keyset {
            Some(keyset) => self.hold_keys(client, keyset, &selection, &variables, given.scrolls()).await?,
            None => self.hold_rows(client, &selection, &variables, given.scrolls()).await?,
        };
        let mut cursor = ServerCursor { rows: held, given, position: Position::BeforeFirst };
        let (fetch, rows) = if given.fetches { (Fetch::Next, rows) } else { (Fetch::First, 0) };
        let sent = match self.send_of(client, &mut cursor, fetch, rows, described).await {
            Ok((sent, _)) => sent,
            Err(interrupt) => {
                self.let_go(client, &cursor.rows).await?;
                return Err(interrupt);
            }
        };
        let mut outputs: Vec<OutputValue> = handles(places, number).collect();
        outputs.extend(given_outputs(given, places.scroll));
        let total = if given.fetches { sent } else { cursor.rows.total.unwrap_or(-1) };
        outputs.push(output(places.scroll + 2, "rowcount", total));
        outputs.retain(|output| is_output(params, output));
        let mut status = 0;
        if given.closes && given.fetches && sent < rows {
            self.let_go(client, &cursor.rows).await?;
            status = CLOSED;
        } else {
            self.server_cursors.open.insert(number, cursor);
        }
        let rows = u64::try_from(sent).ok();
        Ok(Returned { rows, ..Returned::outputs(status, outputs) })
    }

    async fn fetch_server_cursor(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
        described: bool,
    ) -> Result<Returned, Interrupt> {
        const PROCEDURE: &str = "sp_cursorfetch";
        const INFO: i64 = 0x100;
        let number = self.cursor_number(client, params, PROCEDURE).map_err(Failure::of_statement)?;
        let kind = integer(client, params, 1, PROCEDURE, "fetchtype")?;
        let row = integer(client, params, 2, PROCEDURE, "rownum")?;
        let rows = integer(client, params, 3, PROCEDURE, "nrows")?;
        if kind == Some(INFO) {
            let Some(cursor) = self.server_cursors.open.get(&number) else {
                return Err(Failure::of_statement(no_such_cursor(PROCEDURE, number)).into());
            };
            let (at, total) = (cursor.position.number(), cursor.rows.total.unwrap_or(-1));
            let mut outputs = vec![output(2, "rownum", at), output(3, "nrows", total)];
            outputs.retain(|output| is_output(params, output));
            return Ok(Returned::outputs(0, outputs));
        }
        let fetch = fetch_of(kind, row).map_err(Failure::of_statement)?;
        let rows = rows.unwrap_or(DEFAULT_ROWS);
        let may_be_none = matches!(fetch, Fetch::First | Fetch::Last | Fetch::Refresh);
        if rows < 0 || rows == 0 && !may_be_none {
            return Err(Failure::of_statement(invalid(PROCEDURE, "nrows")).into());
        }
        let Some(mut cursor) = self.server_cursors.open.remove(&number) else {
            return Err(Failure::of_statement(no_such_cursor(PROCEDURE, number)).into());
        };
        let sent = self.send_of(client, &mut cursor, fetch, rows, described).await;
        let (sent, adjusted) = match sent {
            Err(interrupt) if is_taken(&interrupt) => {
                // a rollback has closed it
                return Err(Failure::of_statement(no_such_cursor(PROCEDURE, number)).into());
            }
            Ok((sent, _)) if cursor.given.closes && sent < rows => {
                self.let_go(client, &cursor.rows).await?;
                return Ok(Returned { rows: u64::try_from(sent).ok(), ..Returned::status(CLOSED) });
            }
            sent => {
                self.server_cursors.open.insert(number, cursor);
                sent?
            }
        };
        let status = if adjusted { ADJUSTED } else { 0 };
        Ok(Returned { rows: u64::try_from(sent).ok(), ..Returned::status(status) })
    }

    /// Sends the rows of a fetch. Returns their number, and whether the fetch was adjusted.
    pub(super) async fn send_of(
        &mut self,
        client: &mut Client,
        cursor: &mut ServerCursor,
        fetch: Fetch,
        rows: i64,
        described: bool,
    ) -> Result<(i64, bool), Interrupt> {
        let Some(total) = cursor.rows.total else {
            let first = cursor.rows.at + 1;
            let rows = match fetch {
                Fetch::Next => cursor.rows.left(rows),
                // the cursor has just been opened
                Fetch::First if rows == 0 && first == 1 => 0,
                _ => return Err(Failure::of_statement(forward_only(fetch)).into()),
            };
            if rows == 0 && first > 1 {
                // PostgreSQL would return its current row again
                self.moved(client, &cursor.rows, "forward all").await?;
            }
            let sent = self.send_rows(client, &mut cursor.rows, None, rows, described).await?;
            cursor.position = match (rows, sent) {
                (0, _) if first == 1 => Position::BeforeFirst,
                (_, 0) => Position::AfterLast,
                (_, rows) => Position::On { first, rows },
            };
            return Ok((sent, false));
        };
        let found = cursor.position.after(fetch, rows, total);
        cursor.position = found.position;
        let (first, rows) = match found.position {
            Position::On { first, rows } => (first, rows),
            // no rows, only their columns
            _ => (1, 0),
        };
        let sent = self.send_rows(client, &mut cursor.rows, Some(first), rows, described).await?;
        Ok((sent, found.adjusted))
    }

    /// sp_cursorclose: -1 closes all.
    async fn close_server_cursors(
        &mut self,
        client: &mut Client,
        params: &[Param<'_>],
    ) -> Result<Returned, Interrupt> {
        const PROCEDURE: &str = "sp_cursorclose";
        let number = self.cursor_number(client, params, PROCEDURE).map_err(Failure::of_statement)?;
        if number == -1 {
            for cursor in std::mem::take(&mut self.server_cursors.open).into_values() {
                self.let_go(client, &cursor.rows).await?;
            }
            return Ok(Returned::status(0));
        }
        let Some(cursor) = self.server_cursors.open.remove(&number) else {
            return Err(Failure::of_statement(no_such_cursor(PROCEDURE, number)).into());
        };
        self.let_go(client, &cursor.rows).await?;
        Ok(Returned::status(0))
    }

    fn cursor_option(&self, client: &Client, params: &[Param<'_>]) -> Result<Returned, ServerMessage> {
        const PROCEDURE: &str = "sp_cursoroption";
        const CURSOR_NAME: i64 = 2;
        let number = self.cursor_number(client, params, PROCEDURE)?;
        let cursor = self.server_cursors.open.get(&number);
        let cursor = cursor.ok_or_else(|| no_such_cursor(PROCEDURE, number))?;
        let value = match integer_of(client, params, 1, PROCEDURE, "code")? {
            // used by `where current of`, which does not work on this cursor: it changes rows by sp_cursor
            Some(CURSOR_NAME) => return Ok(Returned::status(0)),
            Some(4) => cursor.given.scroll,
            Some(5) => cursor.given.concurrency,
            Some(6) => cursor.rows.total.unwrap_or(-1),
            _ => return Err(invalid(PROCEDURE, "code")),
        };
        Ok(Returned::outputs(0, vec![output(2, "value", value)]))
    }

    /// sp_cursor: cursor, operation, row of the fetch buffer, table, values.
    async fn change_by_cursor(&mut self, client: &mut Client, params: &[Param<'_>]) -> Result<(), Interrupt> {
        const PROCEDURE: &str = "sp_cursor";
        /// The changed row is the current one anyway; its number is that in the buffer.
        const SET_POSITION: i64 = 0x20;
        let number = self.cursor_number(client, params, PROCEDURE).map_err(Failure::of_statement)?;
        let operation = integer(client, params, 1, PROCEDURE, "optype")?.unwrap_or(0);
        let row = integer(client, params, 2, PROCEDURE, "rownum")?.unwrap_or(0);
        let change = match operation & !SET_POSITION {
            0 if operation != 0 => None,
            1 => Some(Change::Update),
            2 => Some(Change::Delete),
            4 => Some(Change::Insert),
            _ => return Err(Failure::of_statement(invalid(PROCEDURE, "optype")).into()),
        };
        let Some(mut cursor) = self.server_cursors.open.remove(&number) else {
            return Err(Failure::of_statement(no_such_cursor(PROCEDURE, number)).into());
        };
        let values = params.get(4..).unwrap_or(&[]);
        let changed = match change {
            Some(_) if cursor.rows.keyset.is_none() => Err(read_only().into()),
            Some(change) => self.change_rows(client, &mut cursor.rows, change, row, values).await,
            None => Ok(()),
        };
        self.server_cursors.open.insert(number, cursor);
        changed
    }

    fn cursor_number(
        &self,
        client: &Client,
        params: &[Param<'_>],
        procedure: &str,
    ) -> Result<i32, ServerMessage> {
        let number = integer_of(client, params, 0, procedure, "cursor")?;
        number.and_then(|number| i32::try_from(number).ok()).ok_or_else(|| invalid(procedure, "cursor"))
    }
}

fn integer_of(
    client: &Client,
    params: &[Param<'_>],
    index: usize,
    procedure: &str,
    name: &str,
) -> Result<Option<i64>, ServerMessage> {
    let Some(param) = params.get(index) else { return Ok(None) };
    match param.value(&client.reply.dialect) {
        Ok(Value::Int(value)) => Ok(Some(value)),
        Ok(Value::Null) => Ok(None),
        _ => Err(invalid(procedure, name)),
    }
}

/// The same, with an error of the call.
fn integer(
    client: &Client,
    params: &[Param<'_>],
    index: usize,
    procedure: &str,
    name: &str,
) -> Result<Option<i64>, Failure> {
    integer_of(client, params, index, procedure, name).map_err(Failure::of_statement)
}

fn fetch_of(kind: Option<i64>, row: Option<i64>) -> Result<Fetch, ServerMessage> {
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
        _ => return Err(invalid("sp_cursorfetch", "fetchtype")),
    })
}

pub(super) fn forward_only(fetch: Fetch) -> ServerMessage {
    let kind = match fetch {
        Fetch::First => "FIRST",
        Fetch::Next => "NEXT",
        Fetch::Prior | Fetch::PriorUnadjusted => "PREVIOUS",
        Fetch::Last => "LAST",
        Fetch::Absolute(_) => "ABSOLUTE",
        Fetch::Relative(_) => "RELATIVE",
        Fetch::Refresh => "REFRESH",
    };
    let text = format!("sp_cursorfetch: The fetch type {kind} cannot be used with forward only cursors.");
    ServerMessage::error(16911, 16, text)
}

fn no_such_cursor(procedure: &str, number: i32) -> ServerMessage {
    let text = format!("{procedure}: The cursor identifier value provided ({number:x}) is not valid.");
    ServerMessage::error(16909, 16, text)
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
fn handles(places: Places, cursor: i32) -> impl Iterator<Item = OutputValue> {
    let prepared = places.handle.map(|handle| output(0, "prepared_handle", i64::from(handle)));
    prepared.into_iter().chain([output(places.cursor, "cursor", i64::from(cursor))])
}

/// The options granted instead of the requested ones.
fn given_outputs(given: Given, scroll: usize) -> [OutputValue; 2] {
    [output(scroll, "scrollopt", given.scroll), output(scroll + 1, "ccopt", given.concurrency)]
}

fn is_output(params: &[Param<'_>], output: &OutputValue) -> bool {
    params.get(output.index).is_some_and(|param| param.output)
}
