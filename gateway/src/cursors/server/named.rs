//! Server cursors of TDS 5.0: the client chooses the name, the server the number (ct_cursor of CT-Library).

use super::calls::no_cursor_for;
use super::fetch::send_of;
use super::options::Given;
use super::position::{Fetch, Position};
use super::rows::{hold_rows, written_selection};
use super::{NamedCursor, Selection, ServerCursor, Text};
use crate::client::Client;
use crate::cursors::postgres::{close_in_postgres, is_taken, no_such_cursor, not_open};
use crate::interrupt::{Failure, Interrupt};
use crate::rpc::{Prepared, PreparedStatements};
use crate::run::{State, Variables};
use crate::tds::call::Param;
use crate::tds::cursor::{put_info, Cursor, CursorRequest, Operation, Status};
use crate::tds::tokens::done;
use crate::tds::tokens::message::ServerMessage;
use std::sync::Arc;

pub async fn answer_cursor(
    state: &mut State,
    prepared_statements: &PreparedStatements,
    client: &mut Client,
    request: &CursorRequest<'_>,
) -> Result<(), Interrupt> {
    client.reply.begin_answer();
    let done = match &request.operation {
        Operation::Declare { text, is_dynamic, scrolls, has_params } => {
            let text =
                declared_text(state, prepared_statements, client, text, *is_dynamic, *has_params).await;
            text.and_then(|text| declare_named(state, client, request.cursor, text, *scrolls))
                .map(|()| None)
                .map_err(|message| Failure::of_statement(message).into())
        }
        operation => match number_of(state, client, request.cursor) {
            Ok(number) => run_named(state, prepared_statements, client, number, operation).await,
            Err(message) => Err(Failure::of_statement(message).into()),
        },
    };
    match done {
        Ok(rows) => {
            client.reply.end(done::Status::empty(), rows.and_then(|rows| u64::try_from(rows).ok()));
            client.reply.passed(Some(rows.unwrap_or(0)));
        }
        Err(Interrupt::Failed(failure)) => client.reply.refuse(&failure.message),
        Err(interrupt) => return Err(interrupt),
    }
    client.reply.end_answer();
    Ok(())
}

fn number_of(state: &State, client: &Client, cursor: Cursor<'_>) -> Result<i32, ServerMessage> {
    match cursor {
        Cursor::Number(number) => Ok(number),
        Cursor::Name(name) => {
            let name = client.dialect().charset.decode_lossily(name);
            state.cursors.server.number_of(&name).ok_or_else(|| no_such_cursor(&name))
        }
    }
}

async fn declared_text(
    state: &mut State,
    prepared_statements: &PreparedStatements,
    client: &mut Client,
    text: &[u8],
    is_dynamic: bool,
    has_params: bool,
) -> Result<Text, ServerMessage> {
    let charset = client.dialect().charset;
    let text = charset.decode(text).ok_or_else(|| {
        ServerMessage::error(2402, 16, format!("The statement is not valid {}.", charset.name()))
    })?;
    if is_dynamic {
        prepared_statements.named(&text)?;
        return Ok(Text::Dynamic(text.into_owned()));
    }
    if has_params {
        return Ok(Text::Typed(text.into_owned()));
    }
    selected(state, client, &text, &Variables::default()).await.map(Text::Select)
}

/// A select for a cursor.
async fn selected(
    state: &mut State,
    client: &mut Client,
    text: &str,
    variables: &Variables<'_>,
) -> Result<Arc<Prepared>, ServerMessage> {
    let mut settings = state.compiling(client);
    variables.declare_to(&mut settings);
    let compiled = match state.compile(client, text, &settings, false).await {
        Ok(compiled) => compiled,
        Err(refusal) => {
            // `for update` and `for read only` are valid only after the select of a cursor
            let declared = format!("declare c cursor for {text}");
            state.compile(client, &declared, &settings, false).await.map_err(|_| refusal)?
        }
    };
    let prepared = Prepared { literals: compiled.literals, ..Prepared::of(compiled.program) };
    match Selection::of(&prepared.program) {
        Some(_) => Ok(Arc::new(prepared)),
        None => Err(no_cursor_for(&prepared)),
    }
}

fn declare_named(
    state: &mut State,
    client: &mut Client,
    cursor: Cursor<'_>,
    text: Text,
    scrolls: bool,
) -> Result<(), ServerMessage> {
    let name = match cursor {
        Cursor::Name(name) => client.dialect().charset.decode_lossily(name),
        Cursor::Number(number) => number.to_string(),
    };
    if state.cursors.server.number_of(&name).is_some() {
        let text = format!("A cursor with the name '{name}' already exists.");
        return Err(ServerMessage::error(16915, 16, text));
    }
    let number = state.cursors.server.admit()?;
    let cursor = NamedCursor { name, text, scrolls, rows: 1, open: None };
    put_state(client, number, cursor.status(), cursor.rows);
    state.cursors.server.named.insert(number, cursor);
    Ok(())
}

/// Returns the number of rows if some were fetched.
async fn run_named(
    state: &mut State,
    prepared_statements: &PreparedStatements,
    client: &mut Client,
    number: i32,
    operation: &Operation<'_>,
) -> Result<Option<i64>, Interrupt> {
    let cursor = state.cursors.server.named(number)?;
    match operation {
        Operation::SetRows(rows) => {
            cursor.rows = (*rows).max(1);
            put_state(client, number, cursor.status().and(Status::ROWS), cursor.rows);
            Ok(None)
        }
        Operation::Inquire => {
            put_state(client, number, cursor.status(), cursor.rows);
            Ok(None)
        }
        Operation::Open { params } => open_named(state, prepared_statements, client, number, params).await,
        Operation::Fetch { direction, row } => {
            fetch_named(state, client, number, *direction, *row).await.map(Some)
        }
        Operation::Close { deallocates } => {
            let open = cursor.open.take();
            let mut status = Status::CLOSED;
            if *deallocates {
                state.cursors.server.named.remove(&number);
                status = status.and(Status::DEALLOCATED);
            } else {
                status = status.and(Status::DECLARED);
            }
            if let Some(open) = open {
                close_in_postgres(&mut state.procedures.backend, client, &open.rows.name).await?;
            }
            put_state(client, number, status, 0);
            Ok(None)
        }
        Operation::Change => Err(ServerMessage::error(16929, 16, "The cursor is READ ONLY.").into()),
        Operation::Declare { .. } => Ok(None),
    }
}

async fn open_named(
    state: &mut State,
    prepared_statements: &PreparedStatements,
    client: &mut Client,
    number: i32,
    params: &[Param<'_>],
) -> Result<Option<i64>, Interrupt> {
    let cursor = state.cursors.server.named(number)?;
    if cursor.open.is_some() {
        return Err(ServerMessage::error(16905, 16, "The cursor is already open.").into());
    }
    let (text, scrolls) = (cursor.text.clone(), cursor.scrolls);
    let dialect = client.dialect();
    let (prepared, mut variables) = match &text {
        Text::Select(prepared) => (prepared.clone(), Variables::default()),
        Text::Typed(text) => {
            let variables = Variables::of_command(params, &dialect)?;
            (selected(state, client, text, &variables).await?, variables)
        }
        Text::Dynamic(name) => {
            let prepared = prepared_statements.named(name)?;
            let variables = Variables::in_order(params, &dialect)?;
            let program = state.compile_dynamic(client, &prepared.text, Some(&variables)).await?;
            (Arc::new(Prepared::of(program)), variables)
        }
    };
    let Some(selection) = Selection::of(&prepared.program) else {
        return Err(no_cursor_for(&prepared).into());
    };
    let selection = written_selection(&mut state.procedures, client, selection).await?;
    let expected = prepared.program.placeholders;
    if params.len() < expected {
        let text = format!("The cursor has {expected} parameters and {} values were sent.", params.len());
        return Err(ServerMessage::error(201, 16, text).into());
    }
    variables.give(&prepared.literals);
    let held = hold_rows(state, client, &selection, &variables, scrolls).await?;
    let given = Given::plain(scrolls);
    let mut open = ServerCursor { rows: held, given, position: Position::BeforeFirst };
    // CT-Library expects the state "open" before the description of the columns
    let status = if scrolls { Status::OPEN.and(Status::SCROLLABLE) } else { Status::OPEN };
    put_state(client, number, status.and(Status::READ_ONLY), 0);
    match send_of(&mut state.procedures.backend, client, &mut open, Fetch::First, 0, true).await {
        Ok(_) => {
            state.cursors.server.named(number)?.open = Some(open);
            Ok(None)
        }
        Err(interrupt) => {
            close_in_postgres(&mut state.procedures.backend, client, &open.rows.name).await?;
            Err(interrupt)
        }
    }
}

async fn fetch_named(
    state: &mut State,
    client: &mut Client,
    number: i32,
    direction: u8,
    row: i32,
) -> Result<i64, Interrupt> {
    let row = i64::from(row);
    let fetch = match direction {
        1 => Fetch::Next,
        2 => Fetch::Prior,
        3 => Fetch::First,
        4 => Fetch::Last,
        5 => Fetch::Absolute(row),
        6 => Fetch::Relative(row),
        other => {
            let text = format!("fetch: The fetch type {other} is not known.");
            return Err(ServerMessage::error(16902, 16, text).into());
        }
    };
    let cursor = state.cursors.server.named(number)?;
    let rows = i64::from(cursor.rows);
    let Some(mut open) = cursor.open.take() else {
        return Err(not_open().into());
    };
    let sent = send_of(&mut state.procedures.backend, client, &mut open, fetch, rows, false).await;
    if sent.as_ref().is_err_and(is_taken) {
        // a rollback has closed it
        return Err(not_open().into());
    }
    state.cursors.server.named(number)?.open = Some(open);
    sent.map(|(sent, _)| sent)
}

fn put_state(client: &mut Client, number: i32, status: Status, rows: u32) {
    let dialect = client.dialect();
    put_info(&mut client.reply.tokens, number, status, rows, &dialect);
}
