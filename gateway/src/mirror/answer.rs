//! A server's answer, parsed token by token as a client does, so that two can be compared: 7.x (MS-TDS 2.2.7) and 5.0
//! (FreeTDS src/tds/token.c, SAP/go-dblib tds/).

use crate::tds::dialect::Dialect;
use crate::tds::tokens::columns::{self, Column};
use crate::tds::tokens::done::{Done, Status};
use crate::tds::tokens::message::{self, ServerMessage};
use crate::tds::tokens::{loginack, returns, skip};
use crate::tds::types::{decode_value, take_row_value, Layout, TypeInfo, TypeToken, Value};
use crate::tds::wire::{Reader, Result};

/// The parts of an answer that a client sees.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The columns of each result set, as "name type".
    pub columns: Vec<String>,
    /// The rows of all result sets, their values separated by |.
    pub rows: Vec<String>,
    pub statuses: Vec<i32>,
    pub outputs: Vec<String>,
    /// Number and severity of each message; also the text, if the number is an application's.
    pub messages: Vec<String>,
    /// The numbers of rows in DONE tokens.
    pub counts: Vec<u64>,
    /// The login has succeeded.
    pub logged_in: bool,
    /// A cancel was acknowledged.
    pub cancelled: bool,
    /// A transaction is open at the end of the answer.
    pub in_transaction: bool,
}

/// Numbers from here on belong to applications, whose texts clients display or compare; so does 0, the number of PRINT.
const APPLICATION: i32 = 17_000;
/// The longest text of a value in the report.
const LONGEST_VALUE: usize = 200;

/// Reads a whole answer.
pub fn read(body: &[u8], dialect: &Dialect) -> Result<Answer> {
    let mut answer = Answer::default();
    let mut reader = Reader::new(body, dialect.endian);
    let mut columns: Vec<Column> = Vec::new();
    let mut parameters: Vec<Column> = Vec::new();
    // parameters of a message, which are not outputs
    let mut of_message = false;
    while let Some(token) = reader.peek() {
        if matches!(token, 0xFD..=0xFF) {
            put_done(&mut answer, Done::decode(&mut reader, dialect)?);
            continue;
        }
        reader.u8("token")?;
        match token {
            columns::COLMETADATA if dialect.is_tds7() => {
                columns = columns::decode_colmetadata(&mut reader, dialect)?;
                answer.columns.push(described(&columns));
            }
            columns::ROWFMT | columns::ROWFMT2 if !dialect.is_tds7() => {
                columns = columns::decode_rowfmt(&mut reader, token == columns::ROWFMT2, dialect)?;
                answer.columns.push(described(&columns));
            }
            returns::PARAMFMT | returns::PARAMFMT2 if !dialect.is_tds7() => {
                parameters = returns::decode_paramfmt(&mut reader, token == returns::PARAMFMT2, dialect)?;
            }
            returns::PARAMS if !dialect.is_tds7() => {
                for parameter in &parameters {
                    let output = output(&mut reader, parameter, dialect)?;
                    if !of_message {
                        answer.outputs.push(output);
                    }
                }
                of_message = false;
            }
            columns::ROW => answer.rows.push(row(&mut reader, &columns, None, dialect)?),
            0xD2 if dialect.is_tds7() => {
                let nulls = reader.take(columns.len().div_ceil(8), "null bitmap")?;
                answer.rows.push(row(&mut reader, &columns, Some(nulls), dialect)?);
            }
            returns::RETURNVALUE if dialect.is_tds7() => {
                let returned = returns::decode_returned(&mut reader, dialect)?;
                answer.outputs.push(output(&mut reader, &returned, dialect)?);
            }
            returns::RETURNSTATUS => answer.statuses.push(returns::decode_status(&mut reader)?),
            message::ERROR | message::INFO => {
                put_message(&mut answer, &message::decode(&mut reader, token, dialect)?.0)
            }
            message::EED if !dialect.is_tds7() => {
                let (message, has_parameters) = message::decode(&mut reader, token, dialect)?;
                put_message(&mut answer, &message);
                of_message = has_parameters;
            }
            loginack::TOKEN => {
                answer.logged_in = loginack::decode(&mut reader, dialect)? == loginack::Status::Succeeded;
            }
            other => skip(&mut reader, other, dialect)?,
        }
    }
    Ok(answer)
}

fn described(columns: &[Column]) -> String {
    let shown: Vec<_> = columns
        .iter()
        .map(|column| {
            let t = &column.type_info;
            match t.token {
                TypeToken::Decimal | TypeToken::Numeric => {
                    format!("{} {}({}, {})", column.name, t.token.name(), t.precision, t.scale)
                }
                _ => match t.token.layout() {
                    Layout::Fixed(_) | Layout::Partial => format!("{} {}", column.name, t.token.name()),
                    _ => format!("{} {}({})", column.name, t.token.name(), t.size),
                },
            }
        })
        .collect();
    shown.join(", ")
}

fn row(
    reader: &mut Reader<'_>,
    columns: &[Column],
    nulls: Option<&[u8]>,
    dialect: &Dialect,
) -> Result<String> {
    let mut shown = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        let byte = nulls.and_then(|nulls| nulls.get(index / 8)).copied().unwrap_or(0);
        if byte & (1 << (index % 8)) != 0 {
            shown.push("NULL".to_owned());
        } else {
            shown.push(value(reader, &column.type_info, dialect)?);
        }
    }
    Ok(shown.join("|"))
}

fn output(reader: &mut Reader<'_>, parameter: &Column, dialect: &Dialect) -> Result<String> {
    Ok(format!("{} = {}", parameter.name, value(reader, &parameter.type_info, dialect)?))
}

/// A value as text: the same for equal values in types of any width.
fn value(reader: &mut Reader<'_>, type_info: &TypeInfo, dialect: &Dialect) -> Result<String> {
    let raw = take_row_value(reader, type_info, dialect)?;
    Ok(match decode_value(raw.as_deref(), type_info, dialect) {
        Ok(value) => shown(&value),
        // a type without a text form: its bytes
        Err(_) => raw.as_deref().map_or_else(|| "NULL".to_owned(), hexadecimal),
    })
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Bit(bit) => u8::from(*bit).to_string(),
        Value::Int(number) => number.to_string(),
        Value::Real(number) => format!("{number:?}"),
        Value::Float(number) => format!("{number:?}"),
        Value::Decimal(number) => {
            let sign = if number.negative && number.magnitude != 0 { "-" } else { "" };
            format!("{sign}{}e-{}", number.magnitude, number.scale)
        }
        Value::Money(amount) => format!("{amount}e-4"),
        Value::Text(text) => format!("'{text}'"),
        Value::Binary(bytes) => hexadecimal(bytes),
        Value::Guid(bytes) => hexadecimal(bytes),
        other => format!("{other:?}"),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn put_message(answer: &mut Answer, message: &ServerMessage) {
    let ServerMessage { number, severity, text, .. } = message;
    // sent with every login and USE; the servers' texts differ
    if matches!(number, 5701 | 5703 | 5704) {
        return;
    }
    answer.messages.push(if *number == 0 || *number >= APPLICATION {
        format!("{number}, severity {severity}: {text}")
    } else {
        format!("{number}, severity {severity}")
    });
}

fn put_done(answer: &mut Answer, done: Done) {
    answer.counts.extend(done.count);
    answer.cancelled |= done.status.contains(Status::ATTENTION);
    answer.in_transaction = done.status.contains(Status::IN_TRANSACTION);
}

/// A difference of two answers: the part, and its text from the old and the new server.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub part: &'static str,
    pub old: String,
    pub new: String,
}

impl Answer {
    pub fn differences(&self, new: &Answer) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |part, old: &[String], new: &[String]| {
            if let Some((old, new)) = first_difference(old, new) {
                found.push(Difference { part, old, new });
            }
        };
        let texts = |numbers: &[i32]| numbers.iter().map(i32::to_string).collect::<Vec<_>>();
        compare("status", &texts(&self.statuses), &texts(&new.statuses));
        compare("outputs", &self.outputs, &new.outputs);
        compare("messages", &self.messages, &new.messages);
        compare("columns", &self.columns, &new.columns);
        compare("rows", &self.rows, &new.rows);
        let texts = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>();
        compare("counts", &texts(&self.counts), &texts(&new.counts));
        found
    }
}

/// Describes the first index at which two lists differ.
fn first_difference(old: &[String], new: &[String]) -> Option<(String, String)> {
    if old == new {
        return None;
    }
    let index = old.iter().zip(new).position(|(old, new)| old != new).unwrap_or(old.len().min(new.len()));
    let shown = |list: &[String]| match list.get(index) {
        Some(text) => {
            let cut: String = text.chars().take(LONGEST_VALUE).collect();
            format!("number {} of {}: {cut}", index + 1, list.len())
        }
        None => format!("{} in all", list.len()),
    };
    Some((shown(old), shown(new)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::{Endian, Version};
    use crate::tds::tokens::columns::Traits;
    use crate::tds::tokens::done::{Command, Scope};
    use crate::tds::types::encode_value;
    use bytes::{BufMut, BytesMut};
    use proptest::prelude::*;

    fn dialects() -> Vec<Dialect> {
        let mut all: Vec<_> =
            [Version::Tds50, Version::Tds71, Version::Tds74].into_iter().map(Dialect::new).collect();
        all.push(Dialect { endian: Endian::Big, ..Dialect::new(Version::Tds50) });
        all
    }

    fn written(dialect: &Dialect, number: i64, name: &str, count: u64) -> BytesMut {
        let int = TypeInfo::new(TypeToken::IntN, 4);
        let text = TypeInfo::new(TypeToken::VarChar, 30);
        let mut out = BytesMut::new();
        let described = [("n", int), ("name", text)].map(|(name, type_info)| Column {
            name: name.into(),
            type_info,
            traits: Traits::default(),
            table: None,
        });
        columns::put(&mut out, &described, dialect);
        out.put_u8(columns::ROW);
        encode_value(&Value::Int(number), &int, dialect, &mut out).unwrap();
        encode_value(&Value::Text(name.into()), &text, dialect, &mut out).unwrap();
        Done::new(Scope::InProcedure, Status::MORE, Command::Select, Some(count), dialect)
            .encode(&mut out, dialect);
        message::put(&mut out, &ServerMessage::error(20001, 16, "beam lost"), dialect);
        message::put(&mut out, &ServerMessage::error(547, 16, "PostgreSQL's own words"), dialect);
        returns::put_status(&mut out, -4, dialect);
        let mut value = BytesMut::new();
        encode_value(&Value::Int(number + 1), &int, dialect, &mut value).unwrap();
        let output =
            returns::Output { name: "@v".into(), ordinal: 0, type_info: int, value, of_function: false };
        returns::put_outputs(&mut out, &[output], dialect);
        Done::new(Scope::Procedure, Status::empty(), Command::Other, None, dialect).encode(&mut out, dialect);
        out
    }

    #[test]
    fn what_the_gateway_writes_is_read() {
        for dialect in dialects() {
            let answer = read(&written(&dialect, 7, "b1", 1), &dialect).unwrap();
            assert_eq!(answer.rows, ["7|'b1'"], "{dialect:?}");
            assert_eq!(answer.columns, ["n INTN(4), name VARCHAR(30)"]);
            assert_eq!((answer.statuses.as_slice(), answer.counts.as_slice()), (&[-4][..], &[1][..]));
            assert_eq!(answer.outputs, ["@v = 8"]);
            assert_eq!(answer.messages, ["20001, severity 16: beam lost", "547, severity 16"]);
        }
    }

    #[test]
    fn each_part_that_differs_is_reported() {
        for dialect in dialects() {
            let old = read(&written(&dialect, 7, "b1", 1), &dialect).unwrap();
            assert_eq!(old.differences(&old), []);
            let new = read(&written(&dialect, 8, "b1", 2), &dialect).unwrap();
            let parts: Vec<_> = old.differences(&new).iter().map(|found| found.part).collect();
            assert_eq!(parts, ["outputs", "rows", "counts"]);
            let found = &old.differences(&new)[1];
            assert_eq!(
                (found.old.as_str(), found.new.as_str()),
                ("number 1 of 1: 7|'b1'", "number 1 of 1: 8|'b1'")
            );
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for dialect in dialects() {
                let _ = read(&bytes, &dialect);
            }
        }

        #[test]
        fn no_damage_makes_it_panic(at in 0usize..200, byte: u8) {
            for dialect in dialects() {
                let mut bytes = written(&dialect, 7, "b1", 1);
                if let Some(damaged) = bytes.get_mut(at) { *damaged = byte; }
                let _ = read(&bytes, &dialect);
            }
        }
    }
}
