//! Events of PB/HTTP, the Archiver Appliance's binary form: each message of Protocol Buffers is a line, its line ends
//! escaped (the appliance's documentation, "The .pb file format and the .pbraw binary protocol").
//!
//! The numbers of fields are those of its EPICSEvent.proto.

use crate::column::{Column, Points, Value};

/// Fields of an event.
const SECONDS: u8 = 1;
const NANOSECONDS: u8 = 2;
const VALUE: u8 = 3;
const SEVERITY: u8 = 4;
const STATUS: u8 = 5;
const FIELD_VALUES: u8 = 7;
/// Wire types.
const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const BYTES: u8 = 2;
const FIXED_32: u8 = 5;

const SECOND: i64 = 1_000_000_000;

/// The types of a chunk's values: the members of PayloadType that ringlog uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    Text,
    Short,
    Float,
    Int,
    Double,
    Texts,
    Shorts,
    Floats,
    Ints,
    Doubles,
}

impl Payload {
    /// By its number in EPICSEvent.proto. Enumerations are encoded like shorts.
    pub fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Text,
            1 | 3 => Self::Short,
            2 => Self::Float,
            5 => Self::Int,
            6 => Self::Double,
            7 => Self::Texts,
            8 | 10 => Self::Shorts,
            9 => Self::Floats,
            12 => Self::Ints,
            13 => Self::Doubles,
            _ => return None,
        })
    }
}

/// The line before the events of a year: `pairs` are names and values of EPICS's fields, `points` the number of values
/// of the first event.
pub fn header(payload: u8, name: &[u8], year: i32, points: u32, pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let (mut message, mut pair, mut out) = (Vec::new(), Vec::new(), Vec::new());
    number(&mut message, 1, payload.into());
    bytes(&mut message, 2, name);
    number(&mut message, 3, i64::from(year) as u64);
    number(&mut message, 4, points.into());
    for (name, value) in pairs {
        pair.clear();
        bytes(&mut pair, 1, name);
        bytes(&mut pair, 2, value);
        bytes(&mut message, 15, &pair);
    }
    escape(&mut out, &message);
    out.push(b'\n');
    out
}

/// Columns of events, with one value per event.
pub struct Events<'a> {
    /// Since 1970 UTC.
    pub nanoseconds: Column<'a>,
    pub values: Column<'a>,
    /// Severity and status; None: 0.
    pub alarms: Option<(Column<'a>, Column<'a>)>,
    /// Further texts of each event, by name.
    pub fields: Vec<(&'a [u8], Column<'a>)>,
}

impl Events<'_> {
    /// Whether all columns have the same number of values.
    pub fn fit(&self) -> bool {
        let alarms = self.alarms.iter().flat_map(|(severity, status)| [severity, status]);
        let others =
            [&self.values].into_iter().chain(alarms).chain(self.fields.iter().map(|(_, texts)| texts));
        others.into_iter().all(|column| column.length == self.nanoseconds.length)
    }
}

/// Lines of events of the year that begins at this second. A missing value, or one of another type than `payload`,
/// becomes an undefined one: NaN, 0, an empty text, or a waveform of one of these.
pub fn lines(payload: Payload, begin: i64, events: &Events<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(events.nanoseconds.length * 40);
    let mut message = Vec::with_capacity(64);
    let mut pair = Vec::new();
    for index in 0..events.nanoseconds.length {
        message.clear();
        let time = events.nanoseconds.whole(index);
        number(&mut message, SECONDS, (time.div_euclid(SECOND) - begin) as u64);
        number(&mut message, NANOSECONDS, time.rem_euclid(SECOND) as u64);
        match (payload, events.values.get(index)) {
            (Payload::Text, Value::Text(text)) => bytes(&mut message, VALUE, text),
            (Payload::Text, _) => bytes(&mut message, VALUE, b""),
            (Payload::Short, value) => number(&mut message, VALUE, zigzag(whole(&value))),
            (Payload::Int, value) => {
                message.push(VALUE << 3 | FIXED_32);
                message.extend_from_slice(&(whole(&value) as i32).to_le_bytes());
            }
            (Payload::Float, value) => {
                message.push(VALUE << 3 | FIXED_32);
                message.extend_from_slice(&float(&value).to_le_bytes());
            }
            (Payload::Double, value) => {
                message.push(VALUE << 3 | FIXED_64);
                message.extend_from_slice(&double(&value).to_le_bytes());
            }
            (payload, Value::List(points)) => waveform(&mut message, &mut out, payload, points),
            (payload, missing) => undefined(&mut message, payload, &missing),
        }
        if let Some((severity, status)) = &events.alarms {
            for (field, column) in [(SEVERITY, severity), (STATUS, status)] {
                match column.whole(index) {
                    0 => {}
                    figure => number(&mut message, field, figure as u64),
                }
            }
        }
        for (name, texts) in &events.fields {
            pair.clear();
            bytes(&mut pair, 1, name);
            bytes(&mut pair, 2, if let Value::Text(text) = texts.get(index) { text } else { b"" });
            bytes(&mut message, FIELD_VALUES, &pair);
        }
        escape(&mut out, &message);
        out.push(b'\n');
    }
    out
}

/// The field of a waveform. Numbers with the same form in the message as in memory are appended to `out` directly,
/// after the present content of the message.
fn waveform(message: &mut Vec<u8>, out: &mut Vec<u8>, payload: Payload, points: Points<'_>) {
    if payload == Payload::Texts {
        for point in points.iter() {
            bytes(message, VALUE, if let Value::Text(text) = point { text } else { b"" });
        }
        return;
    }
    if points.length == 0 {
        return;
    }
    let as_they_are = match payload {
        Payload::Doubles => points.bytes(8, true),
        Payload::Floats => points.bytes(4, true),
        Payload::Ints => points.bytes(4, false),
        _ => None,
    };
    if let Some(content) = as_they_are {
        message.push(VALUE << 3 | BYTES);
        varint(message, content.len() as u64);
        escape(out, message);
        escape(out, content);
        message.clear();
        return;
    }
    let mut packed = Vec::with_capacity(8 * points.length);
    for point in points.iter() {
        match payload {
            Payload::Doubles => packed.extend_from_slice(&double(&point).to_le_bytes()),
            Payload::Floats => packed.extend_from_slice(&float(&point).to_le_bytes()),
            Payload::Ints => packed.extend_from_slice(&(whole(&point) as i32).to_le_bytes()),
            _ => varint(&mut packed, zigzag(whole(&point))),
        }
    }
    bytes(message, VALUE, &packed);
}

/// An undefined waveform has one point, because Phoebus cannot read waveforms if the first is empty.
fn undefined(message: &mut Vec<u8>, payload: Payload, missing: &Value<'_>) {
    match payload {
        Payload::Doubles => bytes(message, VALUE, &double(missing).to_le_bytes()),
        Payload::Floats => bytes(message, VALUE, &float(missing).to_le_bytes()),
        Payload::Ints => bytes(message, VALUE, &[0; 4]),
        Payload::Shorts => bytes(message, VALUE, &[0]),
        _ => bytes(message, VALUE, b""),
    }
}

fn whole(value: &Value<'_>) -> i64 {
    match value {
        Value::Whole(number) => *number,
        Value::Bit(bit) => i64::from(*bit),
        _ => 0,
    }
}

fn double(value: &Value<'_>) -> f64 {
    match value {
        Value::Double(number) => *number,
        Value::Float(number) => f64::from(*number),
        // exact up to 2^53
        Value::Whole(number) => *number as f64,
        Value::Bit(bit) => f64::from(u8::from(*bit)),
        _ => f64::NAN,
    }
}

fn float(value: &Value<'_>) -> f32 {
    match value {
        Value::Float(number) => *number,
        value => double(value) as f32,
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn number(out: &mut Vec<u8>, field: u8, number: u64) {
    out.push(field << 3 | VARINT);
    varint(out, number);
}

fn bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    out.push(field << 3 | BYTES);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes of a message in escaped form.
fn escape(out: &mut Vec<u8>, message: &[u8]) {
    let code = |byte: u8| match byte {
        0x1b => 1,
        b'\n' => 2,
        b'\r' => 3,
        _ => 0,
    };
    // most have nothing to escape; testing a block takes a few instructions
    for some in message.chunks(16) {
        if !some.iter().fold(false, |found, &byte| found | (code(byte) != 0)) {
            out.extend_from_slice(some);
            continue;
        }
        for &byte in some {
            match code(byte) {
                0 => out.push(byte),
                code => out.extend_from_slice(&[0x1b, code]),
            }
        }
    }
}
