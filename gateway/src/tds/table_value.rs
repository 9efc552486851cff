//! A table-valued parameter of a 7.3 call: TVP_TYPE_INFO with its rows (MS-TDS 2.2.5.5.5).

use super::dialect::{Dialect, Endian};
use super::types::{take_value, TypeInfo, TypeToken};
use super::wire::{Reader, Result, WireError};
use std::borrow::Cow;

/// TVPTYPE.
const TABLE_VALUE: u8 = 0xF3;
/// TVP_NULL_TOKEN, which replaces the number of columns.
const NO_COLUMNS: u16 = 0xFFFF;
/// "Column count up to 1024 max"
const MOST_COLUMNS: usize = 1024;
/// fDefault of a column: its rows have no value.
const IS_DEFAULT: u16 = 0x200;

const END: u8 = 0x00;
const ROW: u8 = 0x01;
const ORDER_UNIQUE: u8 = 0x10;
const COLUMN_ORDERING: u8 = 0x11;

/// A table sent by a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableValue<'a> {
    /// "" for the schema of the called procedure.
    pub schema: String,
    /// "" if the client leaves it to the procedure.
    pub type_name: String,
    /// None for NULL, which has no rows.
    pub columns: Option<Vec<SentColumn>>,
    /// The rows one after another, which have been checked to their end.
    rows: Cow<'a, [u8]>,
}

/// A column of the table type, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentColumn {
    pub type_info: TypeInfo,
    /// Each row has the column's default.
    pub is_default: bool,
}

/// The values of a row, without those of columns with defaults.
pub type SentRow<'a> = Vec<Option<Cow<'a, [u8]>>>;

impl<'a> TableValue<'a> {
    /// Whether the next parameter's type is a table.
    pub fn is_next(reader: &Reader<'_>, dialect: &Dialect) -> bool {
        dialect.is_tds7() && reader.peek() == Some(TABLE_VALUE)
    }

    pub fn decode(reader: &mut Reader<'a>, dialect: &Dialect) -> Result<TableValue<'a>> {
        reader.u8("type")?;
        let database = name(reader)?;
        let schema = name(reader)?;
        let type_name = name(reader)?;
        if !database.is_empty() {
            return Err(malformed("names a database, which is never sent"));
        }
        let columns = decode_columns(reader, dialect)?;
        skip_order(reader, columns.as_deref().unwrap_or(&[]))?;
        let start = reader.clone();
        let none = Vec::new();
        while next_row(reader, columns.as_ref().unwrap_or(&none), dialect)?.is_some() {}
        if columns.is_none() && reader.position() > start.position() + 1 {
            return Err(malformed("is NULL and has rows"));
        }
        let rows = start.clone().take(reader.position() - start.position(), "rows of a table")?;
        Ok(TableValue { schema, type_name, columns, rows: rows.into() })
    }

    pub fn into_owned(self) -> TableValue<'static> {
        TableValue {
            schema: self.schema,
            type_name: self.type_name,
            columns: self.columns,
            rows: self.rows.into_owned().into(),
        }
    }

    /// Bytes of all rows.
    pub fn length(&self) -> usize {
        self.rows.len()
    }

    pub fn rows<'t>(&'t self, dialect: &'t Dialect) -> impl Iterator<Item = Result<SentRow<'t>>> + 't {
        let mut reader = Reader::new(&self.rows, Endian::Little);
        let columns = self.columns.as_deref().unwrap_or(&[]);
        std::iter::from_fn(move || next_row(&mut reader, columns, dialect).transpose()).fuse()
    }
}

fn name(reader: &mut Reader<'_>) -> Result<String> {
    let units = reader.u8("name of a table type")?;
    reader.utf16(usize::from(units), "name of a table type")
}

/// TVP_COLMETADATA.
fn decode_columns(reader: &mut Reader<'_>, dialect: &Dialect) -> Result<Option<Vec<SentColumn>>> {
    let count = reader.u16("columns of a table")?;
    if count == NO_COLUMNS {
        return Ok(None);
    }
    if count == 0 || usize::from(count) > MOST_COLUMNS {
        return Err(malformed("has no columns, or more than 1024"));
    }
    let column = |reader: &mut Reader<'_>| {
        reader.u32("user type of a column")?;
        let flags = reader.u16("flags of a column")?;
        let type_info = TypeInfo::decode(reader, dialect)?;
        if type_info.token == TypeToken::Null {
            return Err(malformed("has a column without a type"));
        }
        // empty according to the specification, and ignored
        let units = reader.u8("name of a column")?;
        reader.take(usize::from(units) * 2, "name of a column")?;
        Ok(SentColumn { type_info, is_default: flags & IS_DEFAULT != 0 })
    };
    (0..count).map(|_| column(reader)).collect::<Result<_>>().map(Some)
}

/// Reads up to the end of the metadata. The order and uniqueness of rows only serve the server's plans.
fn skip_order(reader: &mut Reader<'_>, columns: &[SentColumn]) -> Result<()> {
    let mut has_order = false;
    loop {
        match reader.u8("order of a table")? {
            END => return Ok(()),
            ORDER_UNIQUE if !std::mem::replace(&mut has_order, true) => {
                for _ in 0..reader.u16("order of a table")? {
                    let number = usize::from(reader.u16("order of a table")?);
                    reader.u8("order of a table")?;
                    let column = number.checked_sub(1).and_then(|index| columns.get(index));
                    if column.is_none_or(|column| column.is_default) {
                        return Err(malformed("is ordered by a column that it does not have"));
                    }
                }
            }
            COLUMN_ORDERING => {
                let what = "a table-valued parameter with its columns in another order than its type";
                return Err(WireError::Unsupported(what));
            }
            other => return Err(malformed(&format!("has the token 0x{other:02X} before its rows"))),
        }
    }
}

/// TVP_ROW; None at the end.
fn next_row<'a>(
    reader: &mut Reader<'a>,
    columns: &[SentColumn],
    dialect: &Dialect,
) -> Result<Option<SentRow<'a>>> {
    match reader.u8("rows of a table")? {
        END => Ok(None),
        ROW => {
            let sent = columns.iter().filter(|column| !column.is_default);
            sent.map(|column| take_value(reader, &column.type_info, dialect)).collect::<Result<_>>().map(Some)
        }
        other => Err(malformed(&format!("has the token 0x{other:02X} among its rows"))),
    }
}

fn malformed(what: &str) -> WireError {
    WireError::Malformed(format!("a table-valued parameter {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::call::{self, Procedure};
    use crate::tds::dialect::Version;
    use crate::tds::types::{decode_value, Value};

    /// MS-TDS 4, "TVP Insert Statement", without its headers.
    const DOCUMENTED: &[u8] = b"\x03\0f\0o\0o\0\0\0\0\0\xf3\0\x03d\0b\0o\0\x07t\0v\0p\0t\0y\0p\0e\0\
        \x01\0\0\0\0\0\0\0\x26\x01\0\0\x01\x01\x02\0";

    fn dialect() -> Dialect {
        Dialect::new(Version::Tds74)
    }

    fn decoded(bytes: &[u8]) -> Result<TableValue<'_>> {
        let dialect = dialect();
        let mut reader = call::reader(bytes, &dialect);
        assert!(TableValue::is_next(&reader, &dialect));
        let table = TableValue::decode(&mut reader, &dialect)?;
        assert!(reader.is_empty(), "{} bytes left", reader.remaining());
        Ok(table)
    }

    fn values(table: &TableValue<'_>) -> Vec<Vec<Value<'static>>> {
        let dialect = dialect();
        let sent: Vec<_> = table.columns.iter().flatten().filter(|column| !column.is_default).collect();
        let value = |(raw, column): (&Option<Cow<'_, [u8]>>, &&SentColumn)| {
            decode_value(raw.as_deref(), &column.type_info, &dialect).unwrap().into_owned()
        };
        let rows = table.rows(&dialect).map(|row| row.unwrap().iter().zip(&sent).map(value).collect());
        rows.collect()
    }

    #[test]
    fn microsofts_example() {
        let dialect = dialect();
        let call = call::decode_rpc(&mut call::reader(DOCUMENTED, &dialect), &dialect).unwrap().unwrap();
        assert_eq!(call.procedure, Procedure::Named("foo".into()));
        let [param] = &call.params[..] else { panic!("one parameter") };
        let table = param.table().unwrap();
        assert_eq!((table.schema.as_str(), table.type_name.as_str()), ("dbo", "tvptype"));
        assert_eq!(values(table), [[Value::Int(2)]]);
        assert!(param.value(&dialect).is_err() && !param.is_named());
        for length in 13..DOCUMENTED.len() {
            let cut = call::decode_rpc(&mut call::reader(&DOCUMENTED[..length], &dialect), &dialect);
            assert!(cut.is_err(), "{length}");
        }
    }

    #[test]
    fn defaults_orders_and_null() {
        // an int, a column with its default and an nvarchar(4), ordered by the first; two rows
        let table = decoded(
            b"\xf3\0\0\x01t\0\x03\0\0\0\0\0\0\0\x26\x04\0\0\0\0\0\0\x02\x26\x04\0\0\0\0\0\x01\0\xe7\x08\0\0\0\0\0\0\0\
              \x10\x01\0\x01\0\x01\0\x01\x04\x07\0\0\0\x02\0a\0\x01\0\xff\xff\0",
        )
        .unwrap();
        let rows = values(&table);
        assert_eq!(rows, [[Value::Int(7), Value::Text("a".into())], [Value::Null, Value::Null]]);
        let null = decoded(b"\xf3\0\0\x01t\0\xff\xff\0\0").unwrap();
        assert_eq!((null.columns.as_ref(), values(&null).len()), (None, 0));
    }

    #[test]
    fn what_cannot_be_is_malformed() {
        for wire in [
            // a database, NULL with a row, no columns, 1,025 columns, NULLTYPE, a table in a table
            &b"\xf3\x01d\0\0\x01t\0\xff\xff\0\0"[..],
            b"\xf3\0\0\x01t\0\xff\xff\0\x01\0",
            b"\xf3\0\0\x01t\0\0\0\0\0",
            b"\xf3\0\0\x01t\0\x01\x04\0\0",
            b"\xf3\0\0\x01t\0\x01\0\0\0\0\0\0\0\x1f\0\0\0",
            b"\xf3\0\0\x01t\0\x01\0\0\0\0\0\0\0\xf3\0\0\0",
            // ordered by column 2, ordered twice, an unknown token
            b"\xf3\0\0\x01t\0\x01\0\0\0\0\0\0\0\x26\x04\0\x10\x01\0\x02\0\x01\0\0",
            b"\xf3\0\0\x01t\0\x01\0\0\0\0\0\0\0\x26\x04\0\x10\0\0\x10\0\0\0\0",
            b"\xf3\0\0\x01t\0\x01\0\0\0\0\0\0\0\x26\x04\0\0\x02\0",
        ] {
            assert!(matches!(decoded(wire), Err(WireError::Malformed(_))), "{wire:?}");
        }
        let ordered = b"\xf3\0\0\x01t\0\x01\0\0\0\0\0\0\0\x26\x04\0\x11\x01\0\x01\0\0\0";
        assert!(matches!(decoded(ordered), Err(WireError::Unsupported(_))));
    }
}
