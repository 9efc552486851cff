//! Checks and converts the values of a bulk copy's row for a COPY.

use super::running::Defaults;
use crate::convert::{declared, to_pg, Capacity, ConvertError, PgType, SqlType, Value, Zone};
use crate::postgres::message::{put_value, PgColumn};
use crate::postgres::PgError;
use crate::tds::bulk::stored_row;
use crate::tds::bulk::{Column, Row};
use crate::tds::dialect::Dialect;
use crate::tds::tokens::message::ServerMessage;
use crate::tds::types::{decode_value, Decimal};
use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use std::borrow::Cow;
use tsql::units;

/// Checks that the client sends the columns it has named.
pub fn fit(sent: &[Column], wanted: &[PgColumn]) -> Result<(), ServerMessage> {
    if sent.len() != wanted.len() {
        return Err(ServerMessage::error(
            213,
            16,
            format!("The bulk copy has {} columns where {} were named.", sent.len(), wanted.len()),
        ));
    }
    for (sent, wanted) in sent.iter().zip(wanted) {
        if !sent.name.is_empty() && !sent.name.eq_ignore_ascii_case(&wanted.name) {
            return Err(ServerMessage::error(
                213,
                16,
                format!("The bulk copy has a column '{}' where '{}' was named.", sent.name, wanted.name),
            ));
        }
    }
    Ok(())
}

/// A value that cannot be stored, and its column.
pub struct Misfit {
    column: String,
    error: ConvertError,
}

impl Misfit {
    pub fn in_row(self, number: u64) -> ServerMessage {
        let text = format!("Row {number}, column '{}': {}", self.column, self.error);
        ServerMessage::error(self.error.number(), 16, text)
    }
}

/// Appends a tuple of a binary COPY. `sent`: the columns of `row`, as the client describes them.
pub fn put_row(
    out: &mut BytesMut,
    sent: &[Column],
    row: &Row<'_>,
    columns: &[PgColumn],
    defaults: &Defaults,
    zone: &Zone,
    dialect: &Dialect,
) -> Result<(), Misfit> {
    let dialect = if dialect.is_tds7() { *dialect } else { stored_row::dialect(dialect) };
    // a table has at most 1,600 columns
    out.put_i16(columns.len() as i16);
    for ((column, sent), raw) in columns.iter().zip(sent).zip(row) {
        let put = |out: &mut BytesMut| {
            let value = decode_value(raw.as_deref(), &sent.type_info, &dialect)?;
            match &value {
                Value::Null => match defaults.get(&column.name) {
                    Some(None) => Err(ConvertError::conversion(
                        "NULL where the column has a default that is another one in each row (leave the column out, or \
                         ask for KEEP_NULLS)",
                        "that default",
                    )),
                    Some(Some(Some(value))) => {
                        out.put_slice(value);
                        Ok(IsNull::No)
                    }
                    Some(Some(None)) | None => Ok(IsNull::Yes),
                },
                Value::Binary(bytes) if column.declared.of.and_then(declared::bytes).is_some() => {
                    out.put_slice(bytes_of(bytes, column)?.as_ref());
                    Ok(IsNull::No)
                }
                Value::Decimal(decimal) if !keeps_digits(decimal, column) => {
                    Err(ConvertError::overflow("decimal", "the digits of the column"))
                }
                Value::Text(text) if !is_room(column, text) => {
                    Err(ConvertError::truncation("text", "the column"))
                }
                _ => put_fitted(&value, column, zone, out).map(|()| IsNull::No),
            }
        };
        put_value(out, put).map_err(|error| Misfit { column: column.name.clone(), error })?;
    }
    Ok(())
}

/// Appends a value as PostgreSQL expects it; a time is rounded to the column's digits.
fn put_fitted(
    value: &Value<'_>,
    column: &PgColumn,
    zone: &Zone,
    out: &mut BytesMut,
) -> Result<(), ConvertError> {
    let (pg_type, before) = (PgType::from_oid(column.oid), out.len());
    to_pg(value, pg_type, zone, out)?;
    match Capacity::of(pg_type, column.typmod) {
        Some(steps @ Capacity::Steps { .. }) => steps.fit(out.get_mut(before..).unwrap_or_default()),
        _ => Ok(()),
    }
}

/// The bytes for a column of binary(n) or varbinary(n): padded with zeros, never cut.
fn bytes_of<'v>(bytes: &'v [u8], column: &PgColumn) -> Result<Cow<'v, [u8]>, ConvertError> {
    let limit = column.declared.of.and_then(declared::bytes);
    match limit {
        Some((length, _)) if bytes.len() > length => Err(ConvertError::truncation("binary", "the column")),
        Some((length, true)) if bytes.len() < length => {
            let mut filled = bytes.to_vec();
            filled.resize(length, 0);
            Ok(Cow::Owned(filled))
        }
        _ => Ok(Cow::Borrowed(bytes)),
    }
}

/// Whether a text fits into varchar(n) or char(n) by its number of UTF-16 units. PostgreSQL itself counts characters.
fn is_room(column: &PgColumn, text: &str) -> bool {
    let most = match PgType::from_oid(column.oid) {
        PgType::Varchar | PgType::Bpchar => usize::try_from(column.typmod - 4).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    units::fits(text.trim_end_matches(' '), most) || text.chars().count() > most
}

/// Whether a numeric column keeps all decimals of the value, which PostgreSQL would round.
fn keeps_digits(decimal: &Decimal, column: &PgColumn) -> bool {
    match (SqlType { oid: column.oid, typmod: column.typmod }).digits() {
        Some((_, scale @ ..=38)) => decimal.rescaled(scale).is_some(),
        _ => true,
    }
}

/// PostgreSQL's error with its location: `COPY t, line 3, column b`.
pub fn message_of(error: &PgError) -> ServerMessage {
    let mut message = error.to_message();
    if let PgError::Server(notice) = error {
        if let Some(location) = location(&notice.context) {
            message.text = format!("{location}: {}", message.text);
        }
    }
    message
}

fn location(context: &str) -> Option<String> {
    let (_, location) = context.lines().find_map(|line| line.strip_prefix("COPY ")?.split_once(", line "))?;
    let (row, column) = match location.split_once(", column ") {
        Some((row, column)) => (row, Some(column)),
        None => (location, None),
    };
    let row: u64 = row.split(':').next()?.parse().ok()?;
    Some(match column {
        Some(column) => format!("Row {row}, column '{column}'"),
        None => format!("Row {row}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsql::facts::types::{self, Type};

    #[test]
    fn where_a_copy_failed() {
        assert_eq!(location("COPY mine, line 3, column b"), Some("Row 3, column 'b'".into()));
        let nested = "PL/pgSQL function f() line 3 at RAISE\nCOPY my t, line 12";
        assert_eq!(location(nested), Some("Row 12".into()));
        assert_eq!(location(""), None);
    }

    #[test]
    fn binaries_are_filled_and_never_cut() {
        let column = |of| PgColumn {
            name: "b".into(),
            oid: 17,
            typmod: -1,
            origin: (0, 0),
            declared: crate::convert::Declaration { of, ..Default::default() },
        };
        let fixed = column(Some(Type { length: Some(4), ..types::BINARY }));
        assert_eq!(bytes_of(&[1], &fixed).as_deref(), Ok(&[1, 0, 0, 0][..]));
        assert!(bytes_of(&[0; 5], &fixed).is_err());
        let varying = column(Some(Type { length: Some(4), ..types::VARBINARY }));
        assert_eq!(bytes_of(&[1], &varying).as_deref(), Ok(&[1][..]));
        assert!(bytes_of(&[0; 5], &varying).is_err());
        assert!(bytes_of(&[0; 50], &column(None)).is_ok());
    }

    #[test]
    fn texts_have_room_by_units() {
        let column = |oid, typmod| PgColumn {
            name: "t".into(),
            oid,
            typmod,
            origin: (0, 0),
            declared: Default::default(),
        };
        let short = column(1043, 4 + 2);
        for (text, fits) in [("ab", true), ("😀", true), ("😀  ", true), ("a😀", false)] {
            assert_eq!(is_room(&short, text), fits, "{text}");
        }
        assert!(is_room(&column(25, -1), "a😀") && is_room(&column(1043, -1), "a😀"));
    }

    #[test]
    fn columns_must_be_those_that_were_named() {
        let sent = |name: &str| Column {
            name: name.into(),
            type_info: crate::tds::types::TypeInfo::new(crate::tds::types::TypeToken::IntN, 4),
        };
        let wanted = |name: &str| PgColumn {
            name: name.into(),
            oid: 23,
            typmod: -1,
            origin: (0, 0),
            declared: Default::default(),
        };
        assert!(fit(&[sent("A"), sent("")], &[wanted("a"), wanted("b")]).is_ok());
        assert!(fit(&[sent("b")], &[wanted("a")]).unwrap_err().text.contains("'b' where 'a'"));
        assert!(fit(&[sent("a")], &[wanted("a"), wanted("b")]).is_err());
    }
}
