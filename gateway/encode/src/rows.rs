//! Rows as PostgreSQL's messages DataRow, values as text that its input functions take.
//!
//! <https://www.postgresql.org/docs/current/protocol-message-formats.html>: each is `D`, its length, the number of
//! values, and before each value its length, -1 for null; whole numbers are in network order.

use crate::column::{Column, Points, Value};
use crate::lines::finite;
use crate::times::{digits, Days, Form};

const SECOND: i64 = 1_000_000;
/// The begin of the year 1, in seconds since 1970.
const YEAR_ONE: i64 = -62_135_596_800;

/// The form of a column's values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Plain,
    /// Microseconds since 1970, as a time with its zone.
    Time,
}

/// The messages of `count` rows, one after the other, and the begin of each, with the end of the last. None if a
/// message is too long for the protocol, or has too many values. Each column has this many values.
pub fn rows(columns: &[(Kind, Column<'_>)], count: usize) -> Option<(Vec<u8>, Vec<u64>)> {
    let values = i16::try_from(columns.len()).ok()?;
    let mut out = Vec::with_capacity(count * (7 + 16 * columns.len()));
    let mut begins = Vec::with_capacity(count + 1);
    let mut days = Days::new(Form::Postgres);
    for index in 0..count {
        begins.push(out.len() as u64);
        out.push(b'D');
        let row = opened(&mut out);
        out.extend_from_slice(&values.to_be_bytes());
        for (kind, column) in columns {
            let value = column.get(index);
            if matches!(value, Value::Missing) {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let begin = opened(&mut out);
            match value {
                Value::Whole(micros) if *kind == Kind::Time => time(&mut out, &mut days, micros),
                value => plain(&mut out, value),
            }
            close(&mut out, begin, 0)?;
        }
        // the length of a message counts its own bytes
        close(&mut out, row, 4)?;
    }
    begins.push(out.len() as u64);
    Some((out, begins))
}

/// Leaves room for the length of what follows. Returns where that begins.
fn opened(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len()
}

/// Writes the length of what begins there.
fn close(out: &mut [u8], begin: usize, more: usize) -> Option<()> {
    let size = i32::try_from(out.len() - begin + more).ok()?;
    out[begin - 4..begin].copy_from_slice(&size.to_be_bytes());
    Some(())
}

/// Without the decimals of a whole second.
fn time(out: &mut Vec<u8>, days: &mut Days, micros: i64) {
    let seconds = micros.div_euclid(SECOND);
    days.put(out, seconds);
    let below = micros.rem_euclid(SECOND) as u32;
    if below > 0 {
        out.push(b'.');
        digits(out, below, 6);
    }
    out.extend_from_slice(if seconds < YEAR_ONE { &b"Z BC"[..] } else { b"Z" });
}

fn plain(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Missing => out.extend_from_slice(b"NULL"),
        Value::Float(number) if !number.is_finite() => out.extend_from_slice(not_finite(number.into())),
        Value::Double(number) if !number.is_finite() => out.extend_from_slice(not_finite(number)),
        Value::Float(number) => finite(out, number),
        Value::Double(number) => finite(out, number),
        Value::Whole(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        Value::Bit(bit) => out.push(if bit { b't' } else { b'f' }),
        Value::Text(text) => out.extend_from_slice(text),
        Value::List(points) => list(out, points),
    }
}

fn not_finite(number: f64) -> &'static [u8] {
    match number {
        number if number.is_nan() => b"NaN",
        number if number > 0.0 => b"inf",
        _ => b"-inf",
    }
}

/// An array as `{1,NULL,"text"}`.
fn list(out: &mut Vec<u8>, points: Points<'_>) {
    out.push(b'{');
    for (number, point) in points.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        match point {
            Value::Text(text) => {
                out.push(b'"');
                for &byte in text {
                    if matches!(byte, b'"' | b'\\') {
                        out.push(b'\\');
                    }
                    out.push(byte);
                }
                out.push(b'"');
            }
            point => plain(out, point),
        }
    }
    out.push(b'}');
}
