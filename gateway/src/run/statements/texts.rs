//! Texts and images written by their pointers: by a statement, or from the client's next message (ct_send_data of
//! CT-Library, dbwritetext of DB-Library; FreeTDS src/tds/bulk.c, tds_writetext_start).

use crate::backend::{begin_copy, uncommittable, Completed, Rows, Source};
use crate::client::Client;
use crate::convert::{client_type, PgType, SqlType};
use crate::interrupt::{Failure, Interrupt};
use crate::postgres::message::row_values;
use crate::program::{InsertBulk, SentText, Sql, SENT_TEXT};
use crate::run::state::{AwaitedText, State};
use crate::run::variables::Variables;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::tokens::returns::{put_outputs, Output};
use crate::tds::types::{decode_value, encode_value, TypeInfo, TypeToken, Value};
use crate::tds::wire::Reader;
use bytes::BytesMut;

/// Runs writetext and updatetext, which count no rows.
pub async fn change_text(
    state: &mut State,
    client: &mut Client,
    sql: &Sql,
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    if client.settings().only_formats {
        return Ok(());
    }
    write_by_pointer(state, client, sql, variables).await?;
    client.reply.finished(0);
    Ok(())
}

/// Runs the statement. Returns the column's new timestamp.
async fn write_by_pointer(
    state: &mut State,
    client: &mut Client,
    sql: &Sql,
    variables: &Variables<'_>,
) -> Result<Vec<u8>, Interrupt> {
    let parameters = state.parameters(client, sql, variables).await?;
    let backend = &mut state.procedures.backend;
    if backend.is_doomed() {
        return Err(uncommittable().into());
    }
    // the session remembers the row's new version
    backend.pin();
    let source = Source::Query { sql, parameters: &parameters, only_reads: false, in_try: false };
    let Completed { outcome, .. } = backend.run(client, source, Rows::Kept).await?;
    let timestamp = outcome.row.iter().flat_map(row_values).next().flatten();
    Ok(timestamp.map(<[u8]>::to_vec).unwrap_or_default())
}

/// `writetext bulk`: the text follows, if it can be written.
pub async fn await_text(
    state: &mut State,
    client: &mut Client,
    text: &SentText,
    variables: &Variables<'_>,
) -> Result<(), Interrupt> {
    if state.nesting.depth > 1 || client.settings().only_formats {
        let text = "'writetext bulk' must be the only statement of its batch: the text follows it.";
        return Err(ServerMessage::error(102, 15, text).into());
    }
    state.evaluate(client, &text.check, variables).await?;
    let backend = &mut state.procedures.backend;
    let columns = backend.columns(client, &text.column, &[]).await?;
    let mut named = Variables::default();
    for variable in text.change.variables.iter().filter_map(|name| variables.get(name)) {
        named.hold(variable.name.clone(), variable.sql_type, variable.value.clone().into_owned());
    }
    let awaited = |column| Box::new(AwaitedText { change: text.change.clone(), named, column });
    state.awaited_text = columns.first().cloned().map(awaited);
    client.reply.finished(0);
    Ok(())
}

/// Writes the awaited text. `body`: its length in four bytes, then the text, encoded as values of the column are
/// sent to the client.
pub async fn write_text(
    state: &mut State,
    client: &mut Client,
    awaited: AwaitedText,
    body: &[u8],
) -> Result<(), Interrupt> {
    let dialect = client.dialect();
    let AwaitedText { change, named: mut variables, column } = awaited;
    let mut reader = Reader::new(body, dialect.endian);
    let length = reader.u32("text length").map_or(usize::MAX, |length| length as usize);
    if length != reader.remaining() {
        let text = format!("A text of {length} bytes was announced, and {} came.", reader.remaining());
        return Err(Failure::of_statement(ServerMessage::error(4002, 16, text)).into());
    }
    let pg_type = PgType::from_oid(column.oid);
    let type_info = client_type(pg_type, column.typmod, column.declared.of, &dialect);
    let text = body.get(body.len() - length..);
    let value = decode_value(text, &type_info, &dialect).map_err(|error| {
        let text = format!("Column '{}': {error}", column.name);
        Failure::of_statement(ServerMessage::error(error.number(), 16, text))
    })?;
    let sql_type = SqlType { oid: column.oid, typmod: column.typmod };
    variables.hold(SENT_TEXT.to_owned(), sql_type, value.into_owned());
    let timestamp = write_by_pointer(state, client, &change, &variables).await?;
    if !dialect.is_tds7() {
        put_timestamp(client, timestamp)?;
    }
    client.reply.finished(0);
    Ok(())
}

/// `insert bulk`: the rows follow.
pub async fn open_bulk(state: &mut State, client: &mut Client, bulk: &InsertBulk) -> Result<(), Interrupt> {
    if state.nesting.depth > 1 || client.settings().only_formats {
        let text = "'insert bulk' must be the only statement of its batch: the rows follow it.";
        return Err(ServerMessage::error(102, 15, text).into());
    }
    begin_copy(&mut state.procedures.backend, client, bulk).await
}

/// Returns the new timestamp to the client as a parameter (Open Client, ct_send_data).
fn put_timestamp(client: &mut Client, timestamp: Vec<u8>) -> Result<(), ServerMessage> {
    let dialect = client.dialect();
    let type_info = TypeInfo::new(TypeToken::VarBinary, 8);
    let mut value = BytesMut::new();
    encode_value(&Value::Binary(timestamp.into()), &type_info, &dialect, &mut value)
        .map_err(|error| ServerMessage::error(error.number(), 16, error.to_string()))?;
    let output = Output { name: String::from("txts"), ordinal: 0, type_info, value, of_function: false };
    put_outputs(&mut client.reply.tokens, &[output], &dialect);
    Ok(())
}
