//! Server cursors of TDS 5.0: the client chooses the name, the server the number (ct_cursor of CT-Library).

use super::calls::no_cursor_for;
use super::options::Given;
use super::position::{Fetch, Position};
use super::{NamedCursor, Selection, ServerCursor, Text};
use crate::client::Client;
use crate::cursors::declared::{is_taken, no_such_cursor};
use crate::cursors::statements::not_open;
use crate::interrupt::{Failure, Interrupt};
use crate::rpc::Prepared;
use crate::run::Interpreter;
use crate::run::Variables;
use crate::tds::call::Param;
use crate::tds::cursor::{put_info, Cursor, CursorRequest, Operation, Status};
use crate::tds::tokens::done;
use crate::tds::tokens::message::ServerMessage;
use std::sync::Arc;

impl Interpreter {
    pub(crate) async fn answer_cursor(
        &mut self,
        client: &mut Client,
        request: &CursorRequest<'_>,
    ) -> Result<(), Interrupt> {
        client.reply.begin_answer();
        let done = match &request.operation {
            Operation::Declare { text, is_dynamic, scrolls, has_params } => {
                let text = self.declared_text(client, text, *is_dynamic, *has_params).await;
                text.and_then(|text| self.declare_named(client, request.cursor, text, *scrolls))
                    .map(|()| None)
                    .map_err(|message| Failure::of_statement(message).into())
            }
            operation => match self.number_of(client, request.cursor) {
                Ok(number) => self.run_named(client, number, operation).await,
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

    fn number_of(&self, client: &Client, cursor: Cursor<'_>) -> Result<i32, ServerMessage> {
        match cursor {
            Cursor::Number(number) => Ok(number),
            Cursor::Name(name) => {
                let name = client.dialect().charset.decode_lossily(name);
                self.server_cursors.number_of(&name).ok_or_else(|| no_such_cursor(&name))
            }
        }
    }

    async fn declared_text(
        &mut self,
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
            self.dynamic(&text)?;
            return Ok(Text::Dynamic(text.into_owned()));
        }
        if has_params {
            return Ok(Text::Typed(text.into_owned()));
        }
        self.selected(client, &text, &Variables::default()).await.map(Text::Select)
    }

    /// A select for a cursor.
    async fn selected(
        &mut self,
        client: &mut Client,
        text: &str,
        variables: &Variables<'_>,
    ) -> Result<Arc<Prepared>, ServerMessage> {
        let mut settings = self.compiling(client);
        variables.declare_to(&mut settings);
        let compiled = match self.compile(client, text, &settings, false).await {
            Ok(compiled) => compiled,
            Err(refusal) => {
                // `for update` and `for read only` are valid only after the select of a cursor
                let declared = format!("declare c cursor for {text}");
                self.compile(client, &declared, &settings, false).await.map_err(|_| refusal)?
            }
        };
        let program = compiled.program;
        let prepared =
            Prepared { declarations: Vec::new(), program, literals: compiled.literals, text: String::new() };
        match Selection::of(&prepared.program) {
            Some(_) => Ok(Arc::new(prepared)),
            None => Err(no_cursor_for(&prepared)),
        }
    }

    fn declare_named(
        &mut self,
        client: &mut Client,
        cursor: Cursor<'_>,
        text: Text,
        scrolls: bool,
    ) -> Result<(), ServerMessage> {
        let name = match cursor {
            Cursor::Name(name) => client.dialect().charset.decode_lossily(name),
            Cursor::Number(number) => number.to_string(),
        };
        if self.server_cursors.number_of(&name).is_some() {
            let text = format!("A cursor with the name '{name}' already exists.");
            return Err(ServerMessage::error(16915, 16, text));
        }
        let number = self.server_cursors.admit()?;
        let cursor = NamedCursor { name, text, scrolls, rows: 1, open: None };
        put_state(client, number, cursor.status(), cursor.rows);
        self.server_cursors.named.insert(number, cursor);
        Ok(())
    }

    /// Returns the number of rows if some were fetched.
    async fn run_named(
        &mut self,
        client: &mut Client,
        number: i32,
        operation: &Operation<'_>,
    ) -> Result<Option<i64>, Interrupt> {
        let cursor = self.server_cursors.named(number)?;
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
            Operation::Open { params } => self.open_named(client, number, params).await,
            Operation::Fetch { direction, row } => {
                self.fetch_named(client, number, *direction, *row).await.map(Some)
            }
            Operation::Close { deallocates } => {
                let open = cursor.open.take();
                let mut status = Status::CLOSED;
                if *deallocates {
                    self.server_cursors.named.remove(&number);
                    status = status.and(Status::DEALLOCATED);
                } else {
                    status = status.and(Status::DECLARED);
                }
                if let Some(open) = open {
                    self.let_go(client, &open.rows).await?;
                }
                put_state(client, number, status, 0);
                Ok(None)
            }
            Operation::Change => Err(ServerMessage::error(16929, 16, "The cursor is READ ONLY.").into()),
            Operation::Declare { .. } => Ok(None),
        }
    }

    async fn open_named(
        &mut self,
        client: &mut Client,
        number: i32,
        params: &[Param<'_>],
    ) -> Result<Option<i64>, Interrupt> {
        let cursor = self.server_cursors.named(number)?;
        if cursor.open.is_some() {
            return Err(ServerMessage::error(16905, 16, "The cursor is already open.").into());
        }
        let (text, scrolls) = (cursor.text.clone(), cursor.scrolls);
        let dialect = client.dialect();
        let (prepared, mut variables) = match &text {
            Text::Select(prepared) => (prepared.clone(), Variables::default()),
            Text::Typed(text) => {
                let variables = Variables::of_command(params, &dialect)?;
                (self.selected(client, text, &variables).await?, variables)
            }
            Text::Dynamic(name) => (self.dynamic(name)?, Variables::in_order(params, &dialect)?),
        };
        let Some(selection) = Selection::of(&prepared.program) else {
            return Err(no_cursor_for(&prepared).into());
        };
        let selection = self.written_selection(client, selection).await?;
        let expected = prepared.program.placeholders;
        if params.len() < expected {
            let text = format!("The cursor has {expected} parameters and {} values were sent.", params.len());
            return Err(ServerMessage::error(201, 16, text).into());
        }
        variables.give(&prepared.literals);
        let held = self.hold_rows(client, &selection, &variables, scrolls).await?;
        let given = Given::plain(scrolls);
        let mut open = ServerCursor { rows: held, given, position: Position::BeforeFirst };
        // CT-Library expects the state "open" before the description of the columns
        let status = if scrolls { Status::OPEN.and(Status::SCROLLABLE) } else { Status::OPEN };
        put_state(client, number, status.and(Status::READ_ONLY), 0);
        match self.send_of(client, &mut open, Fetch::First, 0, true).await {
            Ok(_) => {
                self.server_cursors.named(number)?.open = Some(open);
                Ok(None)
            }
            Err(interrupt) => {
                self.let_go(client, &open.rows).await?;
                Err(interrupt)
            }
        }
    }

    async fn fetch_named(
        &mut self,
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
        let cursor = self.server_cursors.named(number)?;
        let rows = i64::from(cursor.rows);
        let Some(mut open) = cursor.open.take() else {
            return Err(not_open().into());
        };
        let sent = self.send_of(client, &mut open, fetch, rows, false).await;
        if sent.as_ref().is_err_and(is_taken) {
            // a rollback has closed it
            return Err(not_open().into());
        }
        self.server_cursors.named(number)?.open = Some(open);
        sent.map(|(sent, _)| sent)
    }
}

fn put_state(client: &mut Client, number: i32, status: Status, rows: u32) {
    let dialect = client.dialect();
    put_info(&mut client.reply.tokens, number, status, rows, &dialect);
}
