//! The extended query protocol: statements parsed, bound and executed.

use super::Connection;
use crate::postgres::error::PgError;
use crate::postgres::message::{
    put_formats, put_message, read_columns, survived, unexpected, Message, PgColumn,
};
use crate::postgres::Values;
use bytes::BufMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::frontend;

type Result<T> = std::result::Result<T, PgError>;

/// The bytes of a long value at which a system call is worthwhile.
const FULL: usize = 32 << 10;

impl Connection {
    /// A name for the next prepared statement.
    pub fn statement_name(&mut self) -> String {
        self.statements += 1;
        format!("s{}", self.statements)
    }

    /// Parses `sql` under `name` and requests the types of its parameters and its result columns, in one round trip.
    /// PostgreSQL infers a parameter type of 0.
    pub async fn prepare(
        &mut self,
        name: &str,
        sql: &str,
        parameter_types: &[u32],
    ) -> Result<(Vec<u32>, Vec<PgColumn>)> {
        frontend::parse(name, sql, parameter_types.iter().copied(), &mut self.output)?;
        frontend::describe(b'S', name, &mut self.output)?;
        frontend::sync(&mut self.output);
        self.flush().await?;
        let mut parameters = Vec::new();
        let mut columns = Vec::new();
        let mut error = None;
        loop {
            match self.receive().await? {
                Message::ParameterDescription(body) => parameters = body.parameters().collect()?,
                Message::RowDescription(body) => columns = read_columns(&body)?,
                Message::ErrorResponse(body) => error = Some(survived(&body)?),
                Message::ReadyForQuery(_) => return error.map_or(Ok((parameters, columns)), Err),
                Message::ParseComplete
                | Message::CloseComplete
                | Message::NoData
                | Message::NoticeResponse(_)
                | Message::NotificationResponse(_) => {}
                _ => return Err(unexpected("an answer to Parse")),
            }
        }
    }

    /// Describes statements again: an error if the columns of one have changed since it was prepared.
    pub async fn describe_again(&mut self, names: impl Iterator<Item = &String>) -> Result<()> {
        for name in names {
            frontend::describe(b'S', name, &mut self.output)?;
        }
        frontend::sync(&mut self.output);
        self.flush().await?;
        let mut error = None;
        loop {
            match self.receive().await? {
                Message::ErrorResponse(body) => error = Some(survived(&body)?),
                Message::ReadyForQuery(_) => return error.map_or(Ok(()), Err),
                Message::ParameterDescription(_)
                | Message::RowDescription(_)
                | Message::CloseComplete
                | Message::NoData
                | Message::NoticeResponse(_)
                | Message::NotificationResponse(_) => {}
                _ => return Err(unexpected("an answer to Describe")),
            }
        }
    }

    /// Parses `sql` without a name and requests its columns, inside the current transaction.
    pub async fn put_parse(&mut self, sql: &str) -> Result<()> {
        frontend::parse("", sql, [], &mut self.output)?;
        frontend::describe(b'S', "", &mut self.output)?;
        self.put_flush();
        self.flush().await
    }

    /// Appends a Bind and an Execute for `limit` rows, 0 for all, to the output. `values` contains each parameter with
    /// its length. `parameters` and `results` are formats, 0 for text and 1 for binary.
    pub fn put_execute(
        &mut self,
        statement: &str,
        parameters: &[i16],
        values: &[u8],
        results: &[i16],
        limit: i32,
    ) {
        self.put_bind(statement, parameters, values.len(), results);
        self.output.put_slice(values);
        self.put_execution(results, limit);
    }

    /// Like `put_execute` for all rows, but sends long waveforms while it converts them, so that the output never holds
    /// more than a piece of one.
    pub async fn send_execute(
        &mut self,
        statement: &str,
        parameters: &[i16],
        values: &Values,
        results: &[i16],
    ) -> Result<()> {
        self.put_bind(statement, parameters, values.length(), results);
        for (before, waveform) in values.waveforms() {
            self.output.put_slice(before);
            waveform.put_header(&mut self.output);
            for piece in waveform.pieces() {
                if self.output.len() >= FULL {
                    self.flush().await?;
                }
                waveform.put(piece, &mut self.output);
            }
        }
        self.output.put_slice(values.end());
        self.put_execution(results, 0);
        Ok(())
    }

    /// Like `put_execute`, but sends long values in pieces, so that the output never holds them all.
    pub async fn send_values(
        &mut self,
        statement: &str,
        parameters: &[i16],
        values: &[u8],
        results: &[i16],
        limit: i32,
    ) -> Result<()> {
        self.put_bind(statement, parameters, values.len(), results);
        for piece in values.chunks(FULL) {
            if self.output.len() >= FULL {
                self.flush().await?;
            }
            self.output.put_slice(piece);
        }
        self.put_execution(results, limit);
        Ok(())
    }

    /// Appends a Bind up to its values, which have this many bytes.
    fn put_bind(&mut self, statement: &str, parameters: &[i16], values: usize, results: &[i16]) {
        let out = &mut self.output;
        let formats = |formats: &[i16]| 2 + 2 * formats.len();
        let length = 4 + 1 + statement.len() + 1 + formats(parameters) + 2 + values + formats(results);
        out.put_u8(b'B');
        // requests are bounded: the length stays far below 2 GiB
        out.put_u32(length as u32);
        out.put_u8(0);
        out.put_slice(statement.as_bytes());
        out.put_u8(0);
        put_formats(out, parameters);
        out.put_u16(parameters.len() as u16);
    }

    /// Appends the end of a Bind, and an Execute.
    fn put_execution(&mut self, results: &[i16], limit: i32) {
        put_formats(&mut self.output, results);
        put_message(&mut self.output, b'E', |out| {
            out.put_u8(0);
            out.put_i32(limit);
        });
    }

    pub fn put_close_cursor(&mut self, name: &str) -> Result<()> {
        Ok(frontend::close(b'P', name, &mut self.output)?)
    }

    /// Appends a Flush, which requests the answers while the transaction continues.
    pub fn put_flush(&mut self) {
        frontend::flush(&mut self.output);
    }

    pub fn put_sync(&mut self) {
        frontend::sync(&mut self.output);
    }
}
