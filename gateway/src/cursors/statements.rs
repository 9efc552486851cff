//! Cursors of a session. PostgreSQL keeps the rows of an open cursor as of the time it was opened.

use super::declared::{is_taken, new_name, Cursor, Fetched, NOT_OPEN};
use crate::backend::{Completed, Parameter, Rows, Source};
use crate::client::Client;
use crate::convert::{from_pg, PgType, SqlType};
use crate::interrupt::{Failure, Interrupt};
use crate::memory::Kept;
use crate::postgres::message::row_values;
use crate::program::{Changes, CursorAction, Expression, FetchFrom, RowSource, Sql};
use crate::run::Interpreter;
use crate::run::Variables;
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::Value;
use std::borrow::Cow;
use tsql::quoting::literal;

/// The most cursors of one session.
const MOST: usize = 1000;
/// The most bytes of the variables of a cursor.
const MOST_BYTES: usize = 32 << 20;

impl Interpreter {
    pub async fn run_cursor(
        &mut self,
        client: &mut Client,
        action: &CursorAction,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        match action {
            CursorAction::Declare { name, query, scrolls, is_filled, is_static, changes } => {
                let written = self.written(client, &query.sql, false).await?;
                let query = written.as_deref().unwrap_or(query);
                let values = self.parameters(client, &query.sql, variables).await?;
                let value = |parameter: Parameter<'_>| {
                    (parameter.name.to_owned(), parameter.sql_type, parameter.value.into_owned().into_owned())
                };
                let values: Vec<_> = values.into_iter().map(value).collect();
                let mut kept = Kept::default();
                let bytes = values.iter().map(|(.., value)| value.length()).sum();
                kept.keep(bytes, MOST_BYTES, "the variables of a cursor").map_err(Failure::of_value)?;
                let cursor = Cursor {
                    _kept: kept,
                    query: query.sql.clone(),
                    columns: query.columns.clone(),
                    scrolls: *scrolls,
                    is_filled: *is_filled,
                    is_static: *is_static,
                    values,
                    changes: changes.clone(),
                    open: None,
                    titles: None,
                    tables: Vec::new(),
                    places: Vec::new(),
                    changed: 0,
                };
                self.declare_cursor(client, name, cursor).await?;
            }
            CursorAction::Open(name) => return self.open_cursor(client, name, variables).await,
            CursorAction::Fetch { name, from, into, taken } => {
                return self.fetch(client, name, from, into, taken.as_ref(), variables).await;
            }
            CursorAction::Close(name) => {
                let Some(open) = self.cursors.cursor(name)?.close() else { return Err(not_open().into()) };
                self.close_in_postgres(client, &open).await?;
            }
            CursorAction::Deallocate(name) => {
                self.cursors.cursor(name)?;
                let cursor = self.cursors.known.remove(name);
                if let Some(open) = cursor.and_then(|cursor| cursor.open) {
                    self.close_in_postgres(client, &open).await?;
                }
            }
        }
        client.reply.end(Status::empty(), None);
        client.reply.passed(Some(0));
        Ok(())
    }

    /// A variable can be given another cursor; a name must be new.
    async fn declare_cursor(
        &mut self,
        client: &mut Client,
        name: &str,
        cursor: Cursor,
    ) -> Result<(), Interrupt> {
        if self.cursors.known.contains_key(name) && !name.starts_with('@') {
            let text = format!("A cursor with the name '{name}' already exists.");
            return Err(ServerMessage::error(16915, 16, text).into());
        }
        if self.cursors.known.len() >= MOST {
            let text = format!("This session has {MOST} cursors: deallocate some.");
            return Err(ServerMessage::error(8623, 16, text).into());
        }
        let before = self.cursors.known.insert(name.to_owned(), cursor);
        match before.and_then(|before| before.open) {
            Some(open) => self.close_in_postgres(client, &open).await,
            None => Ok(()),
        }
    }

    async fn open_cursor(
        &mut self,
        client: &mut Client,
        name: &str,
        variables: &Variables<'_>,
    ) -> Result<(), Interrupt> {
        if let Some(open) = self.cursors.cursor(name)?.open.clone() {
            if self.is_in_postgres(client, &open).await? {
                return Err(ServerMessage::error(16905, 16, "The cursor is already open.").into());
            }
        }
        let cursor = self.cursors.cursor(name)?;
        cursor.close();
        if !client.dialect().is_tds7() {
            // ASE reads variables when it is opened, SQL Server when it is declared
            for (name, _, value) in &mut cursor.values {
                if let Some(variable) = variables.get(name) {
                    *value = variable.value.clone().into_owned();
                }
            }
        }
        let is_filled = cursor.is_filled;
        let scroll = if cursor.scrolls || is_filled { "scroll" } else { "no scroll" };
        let own = new_name();
        let (query, values) = (cursor.query.clone(), cursor.values.clone());
        let changing = if cursor.changes == Changes::None { None } else { query.with_places() };
        let (query, tables) = match changing {
            Some((with_places, sources)) if self.are_tables(client, sources).await? => {
                (with_places, sources.iter().map(|source| source.table.clone()).collect())
            }
            _ => (query, Vec::new()),
        };
        let sql = query.following(&format!("declare {own} {scroll} cursor with hold for ")).once();
        let parameters: Vec<_> = values
            .iter()
            .map(|(name, sql_type, value)| Parameter {
                name,
                sql_type: *sql_type,
                value: Cow::Borrowed(value),
            })
            .collect();
        self.procedures.backend.pin();
        let source = Source::Query { sql: &sql, parameters: &parameters, only_reads: false };
        self.procedures.backend.run(client, source, Rows::Kept).await?;
        // -1: the rows are not counted
        let mut rows = -1;
        if is_filled {
            let counted = self.move_in(client, &own, "forward all").await?;
            rows = i64::try_from(counted).unwrap_or(i64::MAX);
            self.move_in(client, &own, "absolute 0").await?;
        }
        let cursor = self.cursors.cursor(name)?;
        (cursor.open, cursor.tables, cursor.places) = (Some(own.clone()), tables, Vec::new());
        self.cursors.last = Some((own, rows));
        client.reply.end(Status::empty(), None);
        client.reply.passed(Some(0));
        Ok(())
    }

    /// Whether an open cursor still exists: a rollback may have closed it.
    async fn is_in_postgres(&mut self, client: &mut Client, open: &str) -> Result<bool, Interrupt> {
        let asked = format!("select 1 from pg_catalog.pg_cursors where name = {}", literal(open));
        Ok(!self.ask(client, &asked).await?.is_empty())
    }

    /// Whether all of these are tables, whose rows have a ctid.
    async fn are_tables(&mut self, client: &mut Client, sources: &[RowSource]) -> Result<bool, Interrupt> {
        let tables: Vec<_> = sources.iter().map(|source| literal(&source.table)).collect();
        let asked = format!(
            "select count(*) from pg_catalog.unnest(array[{}]::text[]) named (name) \
               join pg_catalog.pg_class c on c.oid = pg_catalog.to_regclass(name)::oid where c.relkind = 'r'",
            tables.join(", ")
        );
        let rows = self.ask(client, &asked).await?;
        let count = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
        Ok(count == Some(tables.len()))
    }

    /// Moves a cursor of PostgreSQL; returns the number of rows that it has passed.
    pub async fn move_in(&mut self, client: &mut Client, open: &str, how: &str) -> Result<u64, Interrupt> {
        let sql = Sql::plain(format!("move {how} in {open}")).once();
        let source = Source::Query { sql: &sql, parameters: &[], only_reads: true };
        let moved = self.procedures.backend.run(client, source, Rows::Kept).await?;
        Ok(moved.outcome.count.unwrap_or(0))
    }

    async fn fetch(
        &mut self,
        client: &mut Client,
        name: &str,
        from: &FetchFrom,
        into: &[String],
        taken: Option<&Sql>,
        variables: &mut Variables<'_>,
    ) -> Result<(), Interrupt> {
        // a loop on @@fetch_status ends after an error too
        self.cursors.fetched = Fetched::Error;
        let direction = match from {
            FetchFrom::Next => String::from("next"),
            FetchFrom::Prior => String::from("prior"),
            FetchFrom::First => String::from("first"),
            FetchFrom::Last => String::from("last"),
            FetchFrom::Absolute(row) => {
                format!("absolute {}", self.row_number(client, row, variables).await?)
            }
            FetchFrom::Relative(rows) => {
                format!("relative {}", self.row_number(client, rows, variables).await?)
            }
        };
        let cursor = self.cursors.cursor(name)?;
        if *from != FetchFrom::Next && !cursor.scrolls {
            let word = direction.split(' ').next().unwrap_or_default();
            let text = format!("fetch: The fetch type {word} cannot be used with forward only cursors.");
            return Err(ServerMessage::error(16911, 16, text).into());
        }
        let Some(open) = &cursor.open else { return Err(not_open().into()) };
        let sql = Sql::plain(format!("fetch {direction} from {open}")).once();
        let columns = cursor.titles.as_ref().or(cursor.columns.as_ref()).cloned();
        let places = cursor.tables.len();
        let rows = match (into.is_empty(), places) {
            (true, 0) => Rows::ToClient(columns.as_deref()),
            (true, _) => Rows::AndPlaces(columns.as_deref(), places),
            (false, _) => Rows::Kept,
        };
        let source = Source::Query { sql: &sql, parameters: &[], only_reads: true };
        let ran = self.procedures.backend.run(client, source, rows).await.map_err(Interrupt::from);
        if ran.as_ref().is_err_and(is_taken) {
            self.cursors.cursor(name)?.close();
        }
        let Completed { outcome, columns } = ran?;
        let own = columns.len().saturating_sub(places);
        let text = |raw: Option<&[u8]>| raw.map(|raw| String::from_utf8_lossy(raw).into_owned());
        let found_at = outcome.row.iter().flat_map(|row| row_values(row).skip(own)).map(text).collect();
        self.cursors.cursor(name)?.places = found_at;
        if !into.is_empty() && into.len() != own {
            let text =
                "Cursorfetch: The number of variables declared in the INTO list must match that of selected \
                        columns.";
            return Err(ServerMessage::error(16924, 16, text).into());
        }
        if let (Some(taken), Some(row)) = (taken, &outcome.row) {
            let zone = self.gateway.zone();
            let values = row_values(row).zip(columns.iter()).take(own).map(|(raw, column)| {
                let sql_type = SqlType { oid: column.oid, typmod: column.typmod };
                match raw {
                    None => Ok((sql_type, Value::Null)),
                    Some(raw) => from_pg(PgType::from_oid(column.oid), raw, &zone)
                        .map(|value| (sql_type, value.into_owned())),
                }
            });
            let values: Result<Vec<_>, _> = values.collect();
            let values = values
                .map_err(|error| Failure::of_value(ServerMessage::error(error.number(), 16, error.text)))?;
            for (name, value) in into.iter().zip(self.taken(client, taken, values).await?) {
                variables.set(name, &value, &zone).map_err(Failure::of_value)?;
            }
        }
        let found = outcome.count.unwrap_or(0);
        self.cursors.fetched = if found > 0 { Fetched::Row } else { Fetched::NoRow };
        client.reply.command = Command::Select;
        client.reply.end(Status::empty(), Some(found).filter(|_| into.is_empty()));
        client.reply.passed(Some(i64::try_from(found).unwrap_or(0)));
        Ok(())
    }

    /// Converts values by `taken`, the SQL of their conversions.
    pub async fn taken(
        &mut self,
        client: &mut Client,
        taken: &Sql,
        values: Vec<(SqlType, Value<'static>)>,
    ) -> Result<Vec<Value<'static>>, Interrupt> {
        let mut variables = Variables::default();
        for (place, (sql_type, value)) in (1..).zip(values) {
            variables.hold(format!("#taken_{place}"), sql_type, value);
        }
        self.evaluate(client, taken, &variables).await
    }

    async fn row_number(
        &mut self,
        client: &mut Client,
        row: &Expression,
        variables: &Variables<'_>,
    ) -> Result<i64, Interrupt> {
        match self.value(client, row, variables).await? {
            Value::Int(number) => Ok(number),
            _ => Err(ServerMessage::error(16902, 16, "fetch: The row is not a number.").into()),
        }
    }

    pub async fn close_in_postgres(&mut self, client: &mut Client, open: &str) -> Result<(), Interrupt> {
        if self.cursors.last.as_ref().is_some_and(|(last, _)| last == open) {
            self.cursors.last = None;
        }
        let sql = Sql::plain(format!("close {open}")).once();
        let source = Source::Query { sql: &sql, parameters: &[], only_reads: false };
        let ran = self.procedures.backend.run(client, source, Rows::Kept).await;
        match ran.map_err(Interrupt::from) {
            // a rollback has closed it
            Err(interrupt) if is_taken(&interrupt) => Ok(()),
            closed => closed.map(|_| ()),
        }
    }
}

pub fn not_open() -> ServerMessage {
    ServerMessage::error(NOT_OPEN, 16, "Cursor is not open.")
}
