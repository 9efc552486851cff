//! An answer, read token by token as its bytes arrive: 7.x (MS-TDS 2.2.7) and 5.0 (FreeTDS src/tds/token.c).

use super::columns::{Builder, Made};
use super::{ReadError, Result};
use crate::tds::charset::{self, Charset};
use crate::tds::dialect::Dialect;
use crate::tds::login::login7;
use crate::tds::tokens::columns::{self, Column};
use crate::tds::tokens::done::{Done, Status};
use crate::tds::tokens::message::{self, ServerMessage};
use crate::tds::tokens::{envchange, loginack, returns, skip};
use crate::tds::types::take_row_value;
use crate::tds::wire::{Reader, WireError};

const NBCROW: u8 = 0xD2;

/// The answer to a login or a query, with the rows of at most one result.
pub struct Answer {
    dialect: Dialect,
    names: Vec<String>,
    builders: Vec<Builder>,
    /// Parameters of EED at 5.0.
    parameters: Vec<Column>,
    /// Complete rows in the columns.
    rows: usize,
    /// Bytes of these rows on the wire.
    bytes: usize,
    /// The first error.
    refused: Option<ServerMessage>,
    /// The status of a login.
    pub login: Option<loginack::Status>,
    pub packet_size: Option<usize>,
    /// The final DONE has been read.
    pub is_over: bool,
}

impl Answer {
    pub fn new(dialect: Dialect) -> Answer {
        Answer {
            dialect,
            names: Vec::new(),
            builders: Vec::new(),
            parameters: Vec::new(),
            rows: 0,
            bytes: 0,
            refused: None,
            login: None,
            packet_size: None,
            is_over: false,
        }
    }

    /// The names of the columns and their types in the notation of the Arrow C data interface.
    pub fn columns(&self) -> Vec<(String, String)> {
        self.names.iter().cloned().zip(self.builders.iter().map(Builder::format)).collect()
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Removes and returns the rows.
    pub fn take(&mut self) -> (usize, Vec<Made>) {
        self.bytes = 0;
        (std::mem::take(&mut self.rows), self.builders.iter_mut().map(Builder::finish).collect())
    }

    /// Reads whole tokens until there are `rows` rows, or rows of `bytes` bytes. Returns the number of bytes read.
    /// `is_all`: the answer ends with `input`.
    pub fn read(&mut self, input: &[u8], is_all: bool, rows: usize, bytes: usize) -> Result<usize> {
        let mut reader = Reader::new(input, self.dialect.endian);
        let mut end = 0;
        while !self.is_full(rows, bytes) && !reader.is_empty() {
            match self.token(&mut reader) {
                Ok(()) => end = reader.position(),
                Err(ReadError::Wire(WireError::Truncated(_))) if !is_all => break,
                Err(error) => return Err(error),
            }
        }
        Ok(end)
    }

    pub fn is_full(&self, rows: usize, bytes: usize) -> bool {
        self.rows >= rows || self.bytes >= bytes
    }

    /// Fails with the server's first error.
    pub fn demand_no_error(&mut self) -> Result<()> {
        match self.refused.take() {
            None => Ok(()),
            Some(ServerMessage { number, text, .. }) => Err(ReadError::Refused { number, text }),
        }
    }

    fn token(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let dialect = &self.dialect;
        let token = match reader.peek() {
            Some(0xFD..=0xFF) => {
                self.is_over = !Done::decode(reader, dialect)?.status.contains(Status::MORE);
                return Ok(());
            }
            _ => reader.u8("token")?,
        };
        match token {
            columns::ROW => return self.row(reader, &[]),
            NBCROW if dialect.is_tds7() => {
                let nulls = reader.take(self.builders.len().div_ceil(8), "null bitmap")?;
                return self.row(reader, nulls);
            }
            columns::COLMETADATA if dialect.is_tds7() => {
                let columns = columns::decode_colmetadata(reader, dialect)?;
                return self.describe(columns);
            }
            columns::ROWFMT | columns::ROWFMT2 if !dialect.is_tds7() => {
                let columns = columns::decode_rowfmt(reader, token == columns::ROWFMT2, dialect)?;
                return self.describe(columns);
            }
            returns::PARAMFMT | returns::PARAMFMT2 if !dialect.is_tds7() => {
                self.parameters = returns::decode_paramfmt(reader, token == returns::PARAMFMT2, dialect)?;
            }
            returns::PARAMS if !dialect.is_tds7() => {
                for parameter in &self.parameters {
                    take_row_value(reader, &parameter.type_info, dialect)?;
                }
            }
            returns::RETURNVALUE if dialect.is_tds7() => {
                let returned = returns::decode_returned(reader, dialect)?;
                take_row_value(reader, &returned.type_info, dialect)?;
            }
            returns::RETURNSTATUS => {
                returns::decode_status(reader)?;
            }
            message::ERROR | message::INFO => self.read_message(reader, token)?,
            message::EED if !dialect.is_tds7() => self.read_message(reader, token)?,
            loginack::TOKEN => {
                let (status, version) = loginack::decode_with_version(reader, dialect)?;
                self.login = Some(status);
                // the rest is in the version that the server has chosen
                if let Some(version) = login7::version_of(version).filter(|_| dialect.is_tds7()) {
                    self.dialect.version = version;
                }
            }
            envchange::TOKEN => {
                match envchange::decode(reader, dialect)? {
                    Some((envchange::Text::PacketSize, size)) => self.packet_size = size.parse().ok(),
                    // an ASE that lacks the character set of the login reports that of its texts
                    Some((envchange::Text::Charset, name)) if !dialect.is_tds7() => {
                        self.dialect.charset = Charset::named(&name).unwrap_or(&charset::ASCII);
                    }
                    _ => {}
                }
            }
            other => skip(reader, other, dialect)?,
        }
        Ok(())
    }

    pub fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    fn read_message(&mut self, reader: &mut Reader<'_>, token: u8) -> Result<()> {
        let (message, _) = message::decode(reader, token, &self.dialect)?;
        if message.is_error() && self.refused.is_none() {
            self.refused = Some(message);
        }
        Ok(())
    }

    fn describe(&mut self, columns: Vec<Column>) -> Result<()> {
        if !self.builders.is_empty() {
            return Err(ReadError::Other("the query has more than one result".into()));
        }
        self.builders = columns.iter().map(|column| Builder::new(column.type_info, &self.dialect)).collect();
        self.names = columns.into_iter().map(|column| column.name).collect();
        Ok(())
    }

    /// Decodes a row; on an error the columns remain without it.
    fn row(&mut self, reader: &mut Reader<'_>, nulls: &[u8]) -> Result<()> {
        let begin = reader.position();
        if self.builders.is_empty() {
            return Err(WireError::Malformed("a row without columns".into()).into());
        }
        let mut failed: Option<ReadError> = None;
        for (index, builder) in self.builders.iter_mut().enumerate() {
            let is_null = nulls.get(index / 8).is_some_and(|byte| byte & (1 << (index % 8)) != 0);
            let raw = if is_null {
                None
            } else {
                match take_row_value(reader, builder.type_info(), &self.dialect) {
                    Ok(raw) => raw,
                    Err(error) => {
                        failed = Some(error.into());
                        break;
                    }
                }
            };
            if let Err(error) = builder.push(raw.as_deref(), &self.dialect) {
                let column = self.names.get(index).cloned().unwrap_or_default();
                failed = Some(ReadError::Value { column, error });
                break;
            }
        }
        if let Some(error) = failed {
            self.builders.iter_mut().for_each(|builder| builder.cut(self.rows));
            return Err(error);
        }
        self.rows += 1;
        self.bytes += reader.position() - begin;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
