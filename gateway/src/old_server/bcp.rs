//! Rows of bcp's data files, in native and in character format, without I/O.
//!
//! A row consists of fields in the order of the format file: a length in a prefix of 1, 2, 4 or 8 bytes, the value, a
//! terminator; a value without prefix and terminator has a fixed length. A length of -1 is NULL, as is 0 for a value of
//! fixed size and in ASE's files. A text without a prefix is NULL if it has no bytes, and empty if it is a zero byte
//! (SQL Server, "Non-XML format files", "Specify prefix length in data files by using bcp", "bcp utility"; ASE, Utility
//! Guide, bcp, "Format files"). Native values are encoded as in TDS, in little-endian order.

use super::columns::{Builder, Made};
use super::{ReadError, Result};
use crate::tds::charset::Charset;
use crate::tds::dialect::{Dialect, Version};
use crate::tds::types::{bytes_of_precision, decode_value, ConvertError, TypeInfo, TypeToken, Value};
use std::ops::Range;

/// A field as the format file describes it, with the type of its column in the log.
#[derive(Clone, Debug)]
pub struct Described {
    /// The column's name.
    pub name: String,
    /// The host type without SQL or SYB, such as FLT4.
    pub kind: String,
    pub is_sybase: bool,
    /// Bytes of the length prefix.
    pub prefix: usize,
    /// Bytes of a value without prefix and terminator.
    pub length: usize,
    pub terminator: Vec<u8>,
    /// The log's type in the notation of the Arrow C data interface: numbers stored as texts are read as this type.
    /// None: the field is skipped.
    pub wanted: Option<String>,
}

struct Field {
    name: String,
    prefix: usize,
    length: usize,
    terminator: Vec<u8>,
    /// Bytes of each value; None: any number.
    width: Option<usize>,
    /// Bytes of a text's code unit; 0: it is no text.
    unit: usize,
    is_empty_null: bool,
    coding: Coding,
    column: Option<Builder>,
}

/// The encoding of a field's values in the file.
enum Coding {
    Native,
    /// Numbers as texts.
    Written,
    /// Precision, scale, sign and magnitude: 19 bytes of SQL Server's DBNUMERIC, which is ODBC's SQL_NUMERIC_STRUCT; 35
    /// of Open Client's CS_NUMERIC, whose precision determines the bytes in use. Sign and magnitude are encoded as in
    /// TDS.
    Numeric(Box<Dialect>),
}

/// The columns of the wanted fields, under construction.
pub struct Rows {
    fields: Vec<Field>,
    dialect: Dialect,
    rows: usize,
    /// Bytes of the rows in the file.
    bytes: usize,
    /// Rows that were returned before.
    before: u64,
}

fn type_of(kind: &str, is_sybase: bool, scale: u8) -> Option<TypeInfo> {
    let token = match kind {
        "REAL" | "FLT4" => TypeToken::Real,
        "FLOAT" | "FLT8" => TypeToken::Float,
        "TINYINT" | "INT1" => TypeToken::Int1,
        "SMALLINT" | "INT2" => TypeToken::Int2,
        "INT" | "INT4" => TypeToken::Int4,
        "BIGINT" | "INT8" => TypeToken::Int8,
        "BIT" => TypeToken::Bit,
        "MONEY" => TypeToken::Money,
        "MONEY4" => TypeToken::SmallMoney,
        "DATETIME" => TypeToken::DateTime,
        "DATETIM4" | "DATETIME4" => TypeToken::SmallDateTime,
        "DATETIME2" => return Some(TypeInfo::of_time(TypeToken::DateTime2N, scale)),
        "DATE" if !is_sybase => return Some(TypeInfo::of_time(TypeToken::DateN, 0)),
        "DATE" => TypeToken::SybDate,
        "BIGDATETIME" => return Some(TypeInfo::new(TypeToken::BigDateTimeN, 8)),
        "CHAR" | "VARCHAR" => TypeToken::VarChar,
        "NCHAR" | "NVARCHAR" => TypeToken::NVarChar,
        "BINARY" | "VARBINARY" => TypeToken::VarBinary,
        // texts: each value has its own scale
        "DECIMAL" | "NUMERIC" => TypeToken::VarChar,
        _ => return None,
    };
    Some(TypeInfo::new(token, 0))
}

impl Rows {
    /// `charset`: of texts; `scale`: of datetime2, which format files lack.
    pub fn new(fields: Vec<Described>, charset: &'static Charset, scale: u8) -> Result<Rows> {
        let dialect = Dialect { charset, ..Dialect::new(Version::Tds50) };
        let fields =
            fields.into_iter().map(|field| Field::new(field, scale, &dialect)).collect::<Result<Vec<_>>>()?;
        if fields.is_empty() {
            return Err(ReadError::Other("the format file has no fields".into()));
        }
        Ok(Rows { fields, dialect, rows: 0, bytes: 0, before: 0 })
    }

    /// The names of the columns and their types in the notation of the Arrow C data interface.
    pub fn columns(&self) -> Vec<(String, String)> {
        self.fields
            .iter()
            .filter_map(|field| Some((field.name.clone(), field.column.as_ref()?.format())))
            .collect()
    }

    /// Decodes complete rows of at least `bytes` bytes. Returns the number of bytes read. `is_all`: the file ends with
    /// `input`.
    pub fn read(&mut self, input: &[u8], is_all: bool, bytes: usize) -> Result<usize> {
        let mut at = 0;
        while self.bytes < bytes && at < input.len() {
            match self.row(input, at)? {
                Some(end) => {
                    self.bytes += end - at;
                    at = end;
                }
                None if is_all => {
                    let begun = input.len() - at;
                    let what = format!("ends in the middle of a row, {begun} bytes after its begin");
                    return Err(ReadError::Other(what));
                }
                None => break,
            }
        }
        Ok(at)
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn is_full(&self, bytes: usize) -> bool {
        self.bytes >= bytes
    }

    /// Removes and returns the rows.
    pub fn take(&mut self) -> (usize, Vec<Made>) {
        self.bytes = 0;
        self.before += self.rows as u64;
        let columns = self.fields.iter_mut().filter_map(|field| field.column.as_mut());
        (std::mem::take(&mut self.rows), columns.map(Builder::finish).collect())
    }

    /// Returns the end of the row; None: it is incomplete. The columns remain without it then, and after an error.
    fn row(&mut self, input: &[u8], begin: usize) -> Result<Option<usize>> {
        let mut at = begin;
        for field in &mut self.fields {
            let failed = match field.take(input, at, &self.dialect) {
                Ok(Some(end)) => {
                    at = end;
                    continue;
                }
                Ok(None) => None,
                Err(what) => Some(ReadError::Field {
                    row: self.before + self.rows as u64 + 1,
                    name: field.name.clone(),
                    what,
                }),
            };
            let columns = self.fields.iter_mut().filter_map(|field| field.column.as_mut());
            columns.for_each(|column| column.cut(self.rows));
            return failed.map_or(Ok(None), Err);
        }
        self.rows += 1;
        Ok(Some(at))
    }
}

impl Field {
    fn new(described: Described, scale: u8, dialect: &Dialect) -> Result<Field> {
        let Described { name, kind, is_sybase, prefix, length, terminator, wanted } = described;
        let wrong = |what: String| ReadError::Other(format!("field {name:?} {what}"));
        let type_info = type_of(&kind, is_sybase, scale)
            .ok_or_else(|| wrong(format!("has the type {kind}, which is not read")))?;
        let is_numeric = matches!(kind.as_str(), "DECIMAL" | "NUMERIC");
        let unit = match type_info.token {
            TypeToken::VarChar if !is_numeric => 1,
            TypeToken::NVarChar => 2,
            _ => 0,
        };
        let width = match type_info.token {
            _ if is_numeric => Some(if is_sybase { 35 } else { 19 }),
            TypeToken::VarBinary => None,
            _ => (unit == 0).then_some(type_info.size as usize),
        };
        if !matches!(prefix, 0 | 1 | 2 | 4 | 8) {
            return Err(wrong(format!("has a prefix of {prefix} bytes")));
        }
        if prefix == 0 && terminator.is_empty() && width.unwrap_or(length) == 0 {
            return Err(wrong("has no length and no terminator".into()));
        }
        let number =
            wanted.as_deref().filter(|_| unit == 1).and_then(|format| Builder::of_written(format, dialect));
        let coding = match &number {
            _ if is_numeric => {
                let version = if is_sybase { Version::Tds50 } else { Version::Tds71 };
                Coding::Numeric(Box::new(Dialect { charset: dialect.charset, ..Dialect::new(version) }))
            }
            Some(_) => Coding::Written,
            None => Coding::Native,
        };
        let column = wanted.map(|_| number.unwrap_or_else(|| Builder::exact(type_info, dialect)));
        let is_empty_null = is_sybase || width.is_some();
        Ok(Field { name, prefix, length, terminator, width, unit, is_empty_null, coding, column })
    }

    /// Decodes the value and returns the start of the next field; None: it is incomplete.
    #[inline]
    fn take(
        &mut self,
        input: &[u8],
        at: usize,
        dialect: &Dialect,
    ) -> std::result::Result<Option<usize>, String> {
        let Some((value, end)) = self.find(input, at)? else { return Ok(None) };
        if let Some(column) = &mut self.column {
            let raw = value.and_then(|range| input.get(range));
            let pushed = match (raw, &self.coding) {
                (Some(raw), Coding::Written) => column.push_written(raw),
                (Some(raw), Coding::Numeric(of)) => {
                    numeric(raw, of).and_then(|text| column.push(Some(text.as_bytes()), dialect))
                }
                _ => column.push(raw, dialect),
            };
            pushed.map_err(|error| format!(": {error}"))?;
        }
        Ok(Some(end))
    }

    /// The position of the value, None for NULL, and the start of the next field. None: the field is incomplete.
    #[inline]
    #[allow(clippy::type_complexity)]
    fn find(
        &self,
        input: &[u8],
        at: usize,
    ) -> std::result::Result<Option<(Option<Range<usize>>, usize)>, String> {
        let (value, end) = if self.prefix > 0 {
            let begin = at + self.prefix;
            let Some(head) = input.get(at..begin) else { return Ok(None) };
            let length = head.iter().rev().fold(0, |length, byte| length << 8 | u64::from(*byte));
            if length == u64::MAX >> (64 - 8 * self.prefix) || length == 0 && self.is_empty_null {
                (None, begin)
            } else {
                if let Some(width) = self.width.filter(|width| *width as u64 != length) {
                    return Err(format!(
                        " has a length of {length} bytes, not {width}: the format file is another one, or the scale \
                         of datetime2 in the description"
                    ));
                }
                let end = begin.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
                (Some(begin..end), end)
            }
        } else if self.terminator.is_empty() || self.width.is_some() {
            let end = at + self.width.unwrap_or(self.length);
            (Some(at..end), end)
        } else {
            let Some(rest) = input.get(at..) else { return Ok(None) };
            let Some(length) = self.length_of(rest) else { return Ok(None) };
            let end = at + length;
            match (length, rest.get(..length)) {
                (0, _) => (None, end),
                (length, Some([0] | [0, 0])) if length == self.unit => (Some(at..at), end),
                _ => (Some(at..end), end),
            }
        };
        let after = end.saturating_add(self.terminator.len());
        match input.get(end..after) {
            None => Ok(None),
            Some(found) if found == self.terminator => Ok(Some((value, after))),
            Some(_) => Err(" has no terminator after it: the format file is another one".into()),
        }
    }

    /// Bytes before the terminator.
    #[inline]
    fn length_of(&self, rest: &[u8]) -> Option<usize> {
        let (first, more) = self.terminator.split_first()?;
        let mut begin = 0;
        loop {
            let offset = begin + rest.get(begin..)?.iter().position(|byte| byte == first)?;
            if offset % self.unit.max(1) == 0 && rest.get(offset + 1..)?.starts_with(more) {
                return Some(offset);
            }
            begin = offset + 1;
        }
    }
}

/// A numeric in PostgreSQL's text format.
fn numeric(raw: &[u8], dialect: &Dialect) -> std::result::Result<String, ConvertError> {
    let wrong = || ConvertError::overflow("a numeric of these digits", "numeric");
    let ([precision, scale], digits) = raw.split_first_chunk().ok_or_else(wrong)?;
    let size = if dialect.is_tds7() { 17 } else { bytes_of_precision(*precision, dialect) };
    let digits = digits.get(..usize::from(size)).ok_or_else(wrong)?;
    let type_info = TypeInfo::new(TypeToken::Numeric, size.into()).with_scale(*precision, *scale);
    match decode_value(Some(digits), &type_info, dialect)? {
        value @ Value::Decimal(number) if number.digits() <= *precision && scale <= precision => {
            Ok(value.to_text("text")?.into_owned())
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
