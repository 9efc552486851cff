//! Lines of text by a template: constant pieces, and values of columns in some form.

use crate::column::{Column, Points, Value};
use crate::texts;
use crate::times::{digits, Days, Form};

pub enum Piece<'a> {
    Text(&'a [u8]),
    Value(Style<'a>, Column<'a>),
}

/// The form of a column's values.
#[derive(Clone, Copy)]
pub enum Style<'a> {
    /// JSON, null for a value that JSON cannot represent. Bits are 0 and 1.
    Json,
    /// The same with bits as true and false.
    JsonBits,
    /// The same with NaN, Infinity and -Infinity, as a writer's spool has readings.
    Reading,
    /// A text as it is.
    Raw,
    /// CSV, with this text for a missing value. Lists are JSON in quotes, with NaN and Infinity.
    Csv(&'a [u8]),
    /// The seconds of nanoseconds.
    Seconds,
    /// The nanoseconds below the second.
    BelowSecond,
    /// The milliseconds of nanoseconds.
    Milliseconds,
    /// The seconds of nanoseconds as Nov/20/2026 14:00:00.
    Human,
    /// Microseconds as milliseconds, with three decimals unless they are whole.
    Thousandths,
    /// Microseconds as 2026-11-20T14:00:00.000000Z, empty for a missing value.
    Iso,
}

/// Writes `count` lines; each column has this many values.
pub fn lines(pieces: &[Piece<'_>], count: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(count * (24 * pieces.len()));
    let (mut iso, mut human) = (Days::new(Form::Iso), Days::new(Form::Human));
    for index in 0..count {
        for piece in pieces {
            let (style, column) = match piece {
                Piece::Text(text) => {
                    out.extend_from_slice(text);
                    continue;
                }
                Piece::Value(style, column) => (style, column),
            };
            match style {
                Style::Json => json(&mut out, column.get(index), false),
                Style::JsonBits => json(&mut out, column.get(index), true),
                Style::Reading => match column.get(index) {
                    Value::Bit(bit) => json(&mut out, Value::Bit(bit), true),
                    value => plain(&mut out, value, named_number),
                },
                Style::Raw => {
                    if let Value::Text(text) = column.get(index) {
                        out.extend_from_slice(text);
                    }
                }
                Style::Csv(missing) => csv(&mut out, column.get(index), missing),
                Style::Seconds => whole(&mut out, column.whole(index).div_euclid(SECOND)),
                Style::BelowSecond => whole(&mut out, column.whole(index).rem_euclid(SECOND)),
                Style::Milliseconds => whole(&mut out, column.whole(index).div_euclid(1_000_000)),
                Style::Human => human.put(&mut out, column.whole(index).div_euclid(SECOND)),
                Style::Thousandths => thousandths(&mut out, column.whole(index)),
                Style::Iso => {
                    if let Value::Whole(micros) = column.get(index) {
                        iso.put(&mut out, micros.div_euclid(1_000_000));
                        out.push(b'.');
                        digits(&mut out, micros.rem_euclid(1_000_000) as u32, 6);
                        out.push(b'Z');
                    }
                }
            }
        }
    }
    out
}

const SECOND: i64 = 1_000_000_000;

fn whole(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn thousandths(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    let number = number.unsigned_abs();
    out.extend_from_slice(itoa::Buffer::new().format(number / 1000).as_bytes());
    if !number.is_multiple_of(1000) {
        out.push(b'.');
        digits(out, (number % 1000) as u32, 3);
    }
}

fn json(out: &mut Vec<u8>, value: Value<'_>, bits: bool) {
    match value {
        Value::Bit(bit) if bits => out.extend_from_slice(if bit { b"true" } else { b"false" }),
        value => plain(out, value, json_number),
    }
}

fn plain(out: &mut Vec<u8>, value: Value<'_>, not_finite: NotFinite) {
    match value {
        Value::Float(number) if !number.is_finite() => out.extend_from_slice(not_finite(number.into())),
        Value::Double(number) if !number.is_finite() => out.extend_from_slice(not_finite(number)),
        Value::Float(number) => finite(out, number),
        Value::Double(number) => finite(out, number),
        Value::Missing => out.extend_from_slice(NULL),
        Value::Whole(number) => whole(out, number),
        Value::Bit(bit) => out.push(b'0' + u8::from(bit)),
        Value::Text(text) => texts::json(out, text),
        Value::List(points) => list(out, points, not_finite),
    }
}

/// The text of a number that is not finite.
type NotFinite = fn(f64) -> &'static [u8];

const NULL: &[u8] = b"null";

fn json_number(_: f64) -> &'static [u8] {
    NULL
}

fn named_number(number: f64) -> &'static [u8] {
    match number {
        number if number.is_nan() => b"NaN",
        number if number > 0.0 => b"Infinity",
        _ => b"-Infinity",
    }
}

pub fn finite<F: zmij::Float>(out: &mut Vec<u8>, number: F) {
    out.extend_from_slice(zmij::Buffer::new().format_finite(number).as_bytes());
}

fn list(out: &mut Vec<u8>, points: Points<'_>, not_finite: NotFinite) {
    out.push(b'[');
    let begin = out.len();
    // a comma follows each; the last one becomes the end
    if let Some(bytes) = points.bytes(8, true) {
        out.reserve(bytes.len() * 3);
        for number in bytes.chunks_exact(8) {
            let number = f64::from_le_bytes(number.try_into().unwrap_or_default());
            match number.is_finite() {
                true => finite(out, number),
                false => out.extend_from_slice(not_finite(number)),
            }
            out.push(b',');
        }
    } else {
        for value in points.iter() {
            plain(out, value, not_finite);
            out.push(b',');
        }
    }
    if out.len() > begin {
        out.pop();
    }
    out.push(b']');
}

fn csv(out: &mut Vec<u8>, value: Value<'_>, missing: &[u8]) {
    match value {
        Value::Missing => out.extend_from_slice(missing),
        Value::Text(text) => texts::csv(out, text),
        Value::List(points) if points.iter().any(|point| matches!(point, Value::Text(_))) => {
            let mut shown = Vec::new();
            list(&mut shown, points, json_number);
            texts::csv(out, &shown);
        }
        Value::List(points) => {
            out.push(b'"');
            list(out, points, named_number);
            out.push(b'"');
        }
        value => plain(out, value, named_number),
    }
}
