//! Bulk copy in: rows of the client are streamed into PostgreSQL's binary COPY, under the client's own role. All rows
//! of one message are stored, or none.

mod row;
pub(super) mod running;

use super::cancellable::{cancelled_with_client, interrupted};
use super::connection::Backend;
use super::open::Open;
use super::own::look_after_globals;
use super::unfinished::Unfinished;
use crate::client::{Client, SessionError};
use crate::convert::{client_type, PgType, Value};
use crate::interrupt::Interrupt;
use crate::postgres::message::PgColumn;
use crate::postgres::{Canceller, Cancelling, Connection, PgError};
use crate::program::InsertBulk;
use crate::tds::bulk::stored_row;
use crate::tds::bulk::{Column, Row, Rows};
use crate::tds::dialect::Dialect;
use crate::tds::packet::{self, MessageKind};
use crate::tds::tokens::done::{Command, Status};
use crate::tds::tokens::message::ServerMessage;
use crate::tds::wire::WireError;
use bytes::BufMut;
use row::{fit, put_row};
use running::{BulkCopy, Defaults};
use std::convert::Infallible;
use tsql::fragments::Facts;
use tsql::quoting::{literal, quoted};

/// Bytes of converted rows gathered before they are sent.
const FLUSH: usize = 64 * 1024;
/// The file header of a binary COPY: signature, flags, no extension.
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The columns of the result that describes the row layout to TDS 5.0 clients (FreeTDS src/tds/bulk.c,
/// tds5_bulk_insert_column).
const LAYOUT: [&str; 7] = ["colcnt", "colid", "type", "length", "status", "offset", "dflt"];

/// `insert bulk`: PostgreSQL begins a COPY at once, so its errors are reported before any row is sent.
pub async fn begin_copy(
    backend: &mut Backend,
    client: &mut Client,
    bulk: &InsertBulk,
) -> Result<(), Interrupt> {
    backend.before_statement(client, true, true).await;
    // a trigger may leave any state
    backend.pin();
    let facts = Facts { tables: vec![bulk.table.clone()], ..Facts::default() };
    let looked_after = look_after_globals(backend, &facts).await;
    if let Err(error) = match looked_after {
        Ok(()) => backend.start_statement().await,
        Err(error) => Err(error),
    } {
        backend.check(&error, client);
        return Err((&error).into());
    }
    match start_copy(backend, client, bulk).await {
        Ok(opened) => {
            put_layout(client, &opened);
            backend.copy = Some(opened);
            client.reply.passed(Some(0));
            Ok(())
        }
        Err(unfinished) => {
            if let Unfinished::Refused(error) | Unfinished::Failed(error) = &unfinished {
                backend.check(error, client);
            }
            if backend.transaction.is_open() {
                if let Err(error) = backend.settle_statement(false).await {
                    backend.check(&error, client);
                }
            }
            Err(unfinished.into())
        }
    }
}

/// Whether rows of a bulk copy come next.
pub fn awaits_rows(backend: &Backend) -> bool {
    backend.copy.is_some()
}

/// Begins the COPY, unless the client has cancelled or disconnected meanwhile.
async fn start_copy(
    backend: &mut Backend,
    client: &mut Client,
    bulk: &InsertBulk,
) -> Result<BulkCopy, Unfinished> {
    let dialect = client.dialect();
    let open = backend.open().await?;
    let canceller = Canceller::of(&open.connection);
    let opening = open_copy(open, dialect, bulk);
    let (attention, opened) = cancelled_with_client(client, canceller, opening).await;
    let Some(attention) = attention else {
        return opened?.map_err(Unfinished::Unsendable);
    };
    if let Ok(Ok(mut copy)) = opened {
        if let Some(open) = &mut backend.open {
            copy.give_up(&mut open.connection).await;
        }
        if copy.is_lost {
            backend.lose(client);
        }
        return Err(interrupted(attention, None));
    }
    Err(interrupted(attention, opened.err()))
}

/// Reads the rows that follow an `insert bulk`. False: another request came instead.
pub async fn take_rows(backend: &mut Backend, client: &mut Client) -> Result<bool, SessionError> {
    let Some(mut bulk) = backend.copy.take() else {
        return Ok(false);
    };
    let stopping = backend.gateway.stopping.clone();
    let kind = tokio::select! {
        kind = client.next_kind() => kind?,
        () = stopping.cancelled() => return Err(SessionError::Closed),
    };
    match kind {
        None => return Err(SessionError::Closed),
        Some(MessageKind::BulkLoad) => {}
        Some(_) => {
            // another request, which has its own answer
            give_up(backend, client, &mut bulk).await?;
            return Ok(false);
        }
    }
    loop {
        let Some(open) = &mut backend.open else {
            return Err(no_connection());
        };
        let part = tokio::select! {
            biased;
            message = open.connection.receive(), if bulk.is_copying => {
                bulk.receive(message);
                continue;
            }
            part = client.part() => part?,
            () = stopping.cancelled() => return Err(SessionError::Closed),
        };
        match part.kind {
            MessageKind::BulkLoad if part.status.contains(packet::Status::IGNORE) => {
                // the client aborted the request and expects a DONE
                give_up(backend, client, &mut bulk).await?;
                client.reply.close(Status::ERROR);
                return Ok(true);
            }
            MessageKind::BulkLoad => {}
            MessageKind::Attention => {
                give_up(backend, client, &mut bulk).await?;
                client.reply.close(Status::ATTENTION);
                return Ok(true);
            }
            other => {
                let text = format!("a {other:?} message amid the rows of a bulk copy");
                return Err(WireError::Malformed(text).into());
            }
        }
        let is_last = part.status.contains(packet::Status::LAST);
        if bulk.failure.is_none() {
            bulk.rows.push(&part.body);
            pass_on(backend, client, &mut bulk, is_last).await?;
        }
        if is_last {
            break;
        }
    }
    let cancelled = finish_copy(backend, client, &mut bulk).await?;
    settle_copy(backend, client, &mut bulk).await;
    for notice in &bulk.notices {
        client.reply.message(&notice.to_message());
    }
    if bulk.left_out > 0 {
        let text = format!("{} more messages came during the bulk copy.", bulk.left_out);
        client.reply.message(&ServerMessage::info(0, text));
    }
    match bulk.failure.take() {
        Some(_) if cancelled && !bulk.is_lost => client.acknowledge_cancel(),
        Some(message) => client.reply.refuse(&message),
        None => {
            client.reply.row_count = bulk.stored.and_then(|count| i64::try_from(count).ok()).unwrap_or(0);
            client.reply.command = Command::BulkInsert;
            client.reply.end(Status::empty(), bulk.stored);
        }
    }
    Ok(true)
}

/// Converts the rows received so far and sends them to PostgreSQL.
async fn pass_on(
    backend: &mut Backend,
    client: &Client,
    bulk: &mut BulkCopy,
    is_last: bool,
) -> Result<(), SessionError> {
    let dialect = client.dialect();
    let Some(open) = &mut backend.open else {
        return Err(no_connection());
    };
    let connection = &mut open.connection;
    if let Some(columns) = bulk.rows.columns(is_last)? {
        if let Err(message) = fit(columns, &bulk.columns) {
            bulk.failure = Some(message);
            return Ok(());
        }
    }
    loop {
        let number = bulk.count + 1;
        let (columns, defaults, zone) = (&bulk.columns, &bulk.defaults, &bulk.zone);
        let put = |sent: &[Column], row: &Row<'_>| {
            connection.put_copy_data(|out| {
                put_row(out, sent, row, columns, defaults, zone, &dialect)
                    .map_err(|error| error.in_row(number))
            })
        };
        match bulk.rows.next(is_last, put)? {
            None => break,
            Some(Ok(())) => bulk.count = number,
            Some(Err(message)) => {
                bulk.failure = Some(message);
                return Ok(());
            }
        }
        if connection.unsent() >= FLUSH {
            bulk.send(connection).await;
            if bulk.failure.is_some() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Ends the COPY. Returns whether the client has cancelled meanwhile; the cancel may have come too late.
async fn finish_copy(
    backend: &mut Backend,
    client: &mut Client,
    bulk: &mut BulkCopy,
) -> Result<bool, SessionError> {
    let Some(open) = &mut backend.open else {
        return Err(no_connection());
    };
    let connection = &mut open.connection;
    if bulk.is_copying {
        if bulk.failure.is_none() {
            let Ok(()) = connection.put_copy_data::<Infallible>(|out| {
                out.put_i16(-1);
                Ok(())
            });
            connection.put_copy_done();
        } else if let Err(error) = connection.put_copy_fail("a row could not be converted") {
            bulk.lost(&error);
        }
        bulk.send(connection).await;
    }
    let mut cancelling = None;
    while bulk.is_copying {
        tokio::select! {
            biased;
            message = connection.receive() => bulk.receive(message),
            attention = client.attention(), if cancelling.is_none() => {
                let asking = Cancelling::of(Canceller::of(connection));
                // PostgreSQL does not notice that the client has disconnected
                attention?;
                cancelling = Some(asking);
            }
        }
    }
    let cancelled = cancelling.is_some();
    if let Some(cancelling) = cancelling {
        cancelling.finish().await;
    }
    Ok(cancelled)
}

/// Undoes the COPY without an answer.
async fn give_up(
    backend: &mut Backend,
    client: &mut Client,
    bulk: &mut BulkCopy,
) -> Result<(), SessionError> {
    let Some(open) = &mut backend.open else {
        return Err(no_connection());
    };
    bulk.give_up(&mut open.connection).await;
    settle_copy(backend, client, bulk).await;
    Ok(())
}

/// Ends the statement, and its part of the client's transaction.
async fn settle_copy(backend: &mut Backend, client: &mut Client, bulk: &mut BulkCopy) {
    if bulk.failure.is_none() && bulk.stored.is_none() {
        bulk.failure = Some(ServerMessage::error(3617, 11, "The bulk copy was given up."));
    }
    if bulk.is_lost {
        backend.lose(client);
    } else if backend.transaction.is_open() {
        if let Err(error) = backend.settle_statement(bulk.failure.is_none()).await {
            bulk.failure = Some(backend.message_of(&error, client));
        }
    }
}

/// Begins a COPY in PostgreSQL, or returns the error that prevents it.
async fn open_copy(
    open: &mut Open,
    dialect: Dialect,
    bulk: &InsertBulk,
) -> Result<Result<BulkCopy, ServerMessage>, PgError> {
    let zone = open.zone()?;
    let connection = &mut open.connection;
    let table = &bulk.table.sql;
    let names = match bulk.columns.as_slice() {
        [] => "*".to_owned(),
        columns => columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
    };
    let select = format!("select {names} from {table}");
    let (_, mut columns) = connection.prepare("", &select, &[]).await?;
    open.declare(&mut columns).await?;
    let connection = &mut open.connection;
    if let Some(column) = columns.iter().find(|column| PgType::from_oid(column.oid).wants_text()) {
        return Ok(Err(ServerMessage::error(
            4816,
            16,
            format!("Column '{}' is of a type that no bulk copy can fill: insert such rows.", column.name),
        )));
    }
    let defaults = if bulk.keep_nulls { Defaults::new() } else { defaults_of(connection, table).await? };
    let rows = if dialect.is_tds7() {
        Rows::described(dialect)
    } else if columns.len() > stored_row::MOST_COLUMNS {
        return Ok(Err(ServerMessage::error(
            4816,
            16,
            format!(
                "A bulk copy of TDS 5.0 has at most {} columns: use TDS 7.x for '{table}'.",
                stored_row::MOST_COLUMNS
            ),
        )));
    } else {
        let described = |column: &PgColumn| Column {
            name: column.name.clone(),
            type_info: client_type(PgType::from_oid(column.oid), column.typmod, column.declared.of, &dialect),
        };
        Rows::stored(dialect, columns.iter().map(described).collect())
    };
    let names: Vec<_> = columns.iter().map(|column| quoted(&column.name)).collect();
    // a log is a view, and COPY does not write to views
    let sql =
        format!("select sys.stored_in({}::pg_catalog.regclass::oid)::pg_catalog.regclass", literal(table));
    let stored = connection.query_text(&sql).await?.into_iter().flatten().flatten().next();
    let stored = stored.as_deref().unwrap_or(table);
    connection
        .begin_copy(&format!("copy {stored} ({}) from stdin (format binary)", names.join(", ")))
        .await?;
    let Ok(()) = connection.put_copy_data::<Infallible>(|out| {
        out.put_slice(COPY_HEADER);
        Ok(())
    });
    Ok(Ok(BulkCopy {
        columns: columns.into(),
        defaults,
        rows,
        zone,
        count: 0,
        notices: Vec::new(),
        notice_bytes: 0,
        left_out: 0,
        failure: None,
        is_copying: true,
        is_lost: false,
        stored: None,
    }))
}

/// The defaults of a table's columns, which a COPY does not apply to a NULL. Those that call no volatile function are one
/// value for all rows.
async fn defaults_of(connection: &mut Connection, table: &str) -> Result<Defaults, PgError> {
    let sql = format!(
        "select attname, case when attidentity = '' and not exists (\
             select from pg_catalog.regexp_matches(adbin::text, ':(?:op)?funcid (\\d+)', 'g') as called \
             join pg_catalog.pg_proc on pg_proc.oid = called[1]::oid where provolatile = 'v') \
         then pg_catalog.format('pg_catalog.encode(%s(%s), ''hex'')', typsend, pg_catalog.pg_get_expr(adbin, adrelid)) end \
         from pg_catalog.pg_attribute join pg_catalog.pg_type on pg_type.oid = atttypid \
         left join pg_catalog.pg_attrdef on adrelid = attrelid and adnum = attnum \
         where attrelid = {}::pg_catalog.regclass::oid and attnum > 0 and not attisdropped and attgenerated = '' \
         and (atthasdef or attidentity <> '')",
        literal(table)
    );
    let (mut defaults, mut names, mut values) = (Defaults::new(), Vec::new(), Vec::new());
    for row in connection.query_text(&sql).await? {
        let mut row = row.into_iter();
        let Some(name) = row.next().flatten() else { continue };
        match row.next().flatten() {
            Some(value) => {
                names.push(name);
                values.push(value);
            }
            None => {
                defaults.insert(name, None);
            }
        }
    }
    if !values.is_empty() {
        let row = connection.query_text(&format!("select {}", values.join(", "))).await?;
        let bytes = |hex: String| {
            let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or_default());
            pairs.map(|pair| u8::from_str_radix(pair, 16)).collect::<Result<_, _>>().ok()
        };
        let given = names.into_iter().zip(row.into_iter().flatten());
        defaults.extend(given.map(|(name, hex)| (name, hex.map_or(Some(None), |hex| bytes(hex).map(Some)))));
    }
    Ok(defaults)
}

/// TDS 5.0: sends the row layout. A negative offset marks a column of variable length, as all are.
fn put_layout(client: &mut Client, bulk: &BulkCopy) {
    let dialect = client.dialect();
    if dialect.is_tds7() {
        return;
    }
    let columns: Vec<_> = LAYOUT.iter().map(|name| ((*name).to_owned(), PgType::Int4, -1)).collect();
    let count = i64::try_from(bulk.columns.len()).unwrap_or(0);
    let row = |(index, column): (usize, &PgColumn)| {
        let sent_as = client_type(PgType::from_oid(column.oid), column.typmod, column.declared.of, &dialect);
        let number = i64::try_from(index).unwrap_or(0) + 1;
        let token = i64::from(sent_as.token.to_wire(&dialect).unwrap_or(0));
        let nullable = 8;
        [count, number, token, i64::from(sent_as.size), nullable, -number, 0].map(Value::Int).to_vec()
    };
    let rows: Vec<_> = bulk.columns.iter().enumerate().map(row).collect();
    // integers fit into every column
    let _ = client.reply.result_set(&columns, &rows);
}

fn no_connection() -> SessionError {
    SessionError::Io(std::io::ErrorKind::NotConnected.into())
}
