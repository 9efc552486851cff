//! Decodes the lines of PB files, in which the Archiver Appliance stores samples: a header, then a message of Protocol
//! Buffers for each sample (its documentation, "The .pb file format and the .pbraw binary protocol", and
//! EPICSEvent.proto). The bytes are not trusted: they are decoded, or an error is returned.

use crate::fields::{tag, varint, Field, Fields, BYTES};
use std::collections::BTreeMap;

const SECOND: i64 = 1_000_000_000;
const LONGEST_YEAR: u64 = 366 * 86_400;
/// Years whose times fit into nanoseconds.
const YEARS: std::ops::RangeInclusive<i32> = 1970..=2261;
const UNKNOWN_FIELD: &str = "a message has an unknown field";
/// The most names of fields that are counted.
const NAMES: usize = 64;

/// The error is the reason why a line is not a header, or not a sample.
pub type Result<T> = std::result::Result<T, &'static str>;

/// The description of a file's samples.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub payload: Payload,
    /// The name of the PV.
    pub name: String,
    pub year: i32,
    /// Names and values of EPICS's fields.
    pub fields: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    pub form: Form,
    pub is_waveform: bool,
}

/// The type of a value, or of a waveform's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    /// Also for enumerations.
    Short,
    Float,
    Byte,
    Int,
    Double,
}

impl Payload {
    /// From its number in EPICSEvent.proto.
    fn of(number: u64) -> Result<Payload> {
        let form = match number % 7 {
            0 => Form::Text,
            1 | 3 => Form::Short,
            2 => Form::Float,
            4 => Form::Byte,
            5 => Form::Int,
            _ => Form::Double,
        };
        match number {
            0..14 => Ok(Payload { form, is_waveform: number >= 7 }),
            14 => Err("its samples are structures of pvAccess, which are not read"),
            _ => Err("its samples have an unknown type"),
        }
    }

    /// The tags of a sample's fields that may be repeated: EPICS's fields, and points that are not packed.
    fn repeated(self) -> [u64; 2] {
        let is_repeated = self.is_waveform && self.form != Form::Byte;
        [tag(7, BYTES), if is_repeated { tag(3, self.form.wire_type()) } else { 0 }]
    }
}

impl Form {
    /// The type in the notation of the Arrow C data interface.
    pub fn format(self) -> &'static str {
        match self {
            Form::Text => "u",
            Form::Byte => "s",
            Form::Short | Form::Int => "i",
            Form::Float => "f",
            Form::Double => "g",
        }
    }

    /// The wire type of a value.
    fn wire_type(self) -> u64 {
        match self {
            Form::Text | Form::Byte => BYTES,
            Form::Short => 0,
            Form::Int | Form::Float => 5,
            Form::Double => 1,
        }
    }

    /// Bytes of a value; None: variable.
    fn width(self) -> Option<usize> {
        match self {
            Form::Text => None,
            Form::Byte => Some(2),
            Form::Short | Form::Int | Form::Float => Some(4),
            Form::Double => Some(8),
        }
    }
}

/// The header of a file, which is its first line.
pub fn header(line: &[u8]) -> Result<Header> {
    let mut room = Vec::new();
    let (mut payload, mut name, mut year, mut fields) = (None, None, None, Vec::new());
    for field in Fields::new(unescaped(line, &mut room)?, [tag(15, BYTES); 2]) {
        match field? {
            (1, Field::Number(number)) => payload = Some(Payload::of(number)?),
            (2, Field::Bytes(bytes)) => name = Some(text(bytes)?.to_owned()),
            (3, Field::Number(number)) => year = Some(number as i32),
            (15, Field::Bytes(bytes)) => {
                let (name, value) = pair(bytes)?;
                fields.push((name.to_owned(), value.to_owned()));
            }
            (4..15, _) => {}
            _ => return Err(UNKNOWN_FIELD),
        }
    }
    let year = year.filter(|year| YEARS.contains(year)).ok_or("the header has no year")?;
    let payload = payload.ok_or("the header has no type")?;
    Ok(Header { payload, name: name.ok_or("the header names no PV")?, year, fields })
}

/// Columns under construction, in Arrow's layout: little-endian, bounds of 32 bits.
pub struct Samples {
    payload: Payload,
    /// The start of the year, in nanoseconds since 1970.
    begin: i64,
    pub count: usize,
    /// Nanoseconds since 1970 UTC, in 64 bits.
    pub times: Vec<u8>,
    /// In 16 bits.
    pub severities: Vec<u8>,
    pub statuses: Vec<u8>,
    /// The values, or the points of all waveforms.
    pub values: Texts,
    /// For waveforms: the bounds of their points.
    pub waveforms: Vec<u8>,
    points: usize,
    /// The wanted fields of each sample.
    pub fields: Vec<(String, Texts)>,
    /// Samples with other fields, by the fields' names.
    pub others: BTreeMap<String, u64>,
    room: Vec<u8>,
}

/// A column of texts, or the bytes of a column of numbers.
#[derive(Default)]
pub struct Texts {
    /// A byte for each value: whether it is present.
    pub there: Vec<u8>,
    pub bounds: Vec<u8>,
    pub content: Vec<u8>,
}

impl Texts {
    fn new() -> Texts {
        Texts { bounds: vec![0; 4], ..Texts::default() }
    }

    fn add(&mut self, text: Option<&str>) -> Result<()> {
        self.there.push(u8::from(text.is_some()));
        self.content.extend_from_slice(text.unwrap_or_default().as_bytes());
        add_bound(&mut self.bounds, self.content.len())
    }

    fn cut(&mut self, count: usize) {
        self.there.truncate(count);
        self.bounds.truncate(4 * (count + 1));
        self.content.truncate(last_bound(&self.bounds));
    }
}

fn add_bound(bounds: &mut Vec<u8>, bound: usize) -> Result<()> {
    let bound = i32::try_from(bound).map_err(|_| "a batch has more than 2 GB of texts or points")?;
    bounds.extend_from_slice(&bound.to_le_bytes());
    Ok(())
}

fn last_bound(bounds: &[u8]) -> usize {
    bounds.last_chunk().map_or(0, |bound| i32::from_le_bytes(*bound)) as usize
}

/// A value that is not in the columns yet.
enum Value<'a> {
    Number(Field<'a>),
    Text(&'a str),
}

impl Samples {
    /// An empty set of samples of a file with this header, with the named EPICS fields.
    pub fn new(header: &Header, fields: &[String]) -> Samples {
        let year = i64::from(header.year);
        let days = 365 * (year - 1970) + (year - 1969) / 4 - (year - 1901) / 100 + (year - 1601) / 400;
        Samples {
            payload: header.payload,
            begin: days * 86_400 * SECOND,
            count: 0,
            times: Vec::new(),
            severities: Vec::new(),
            statuses: Vec::new(),
            values: Texts::new(),
            waveforms: vec![0; 4],
            points: 0,
            fields: fields.iter().map(|name| (name.clone(), Texts::new())).collect(),
            others: BTreeMap::new(),
            room: Vec::new(),
        }
    }

    /// Adds the sample of a line if its time, which is returned, is from `since` to before `until`; `last`: the time of
    /// the sample before it. After an error the columns remain unchanged.
    #[inline]
    pub fn add(&mut self, line: &[u8], since: i64, until: i64, last: Option<i64>) -> Result<i64> {
        let count = self.count;
        let mut room = std::mem::take(&mut self.room);
        let added = unescaped(line, &mut room).and_then(|message| {
            let time = self.decoded(message, since, until)?;
            self.count += usize::from((since..until).contains(&time));
            let last = last.unwrap_or(time);
            if time < last {
                Err("a sample has a time before that of the sample before it")
            } else if self.has_another(message, last) {
                Err("a line has a further sample at its end")
            } else {
                Ok(time)
            }
        });
        self.room = room;
        self.cut(if added.is_ok() { self.count } else { count });
        added
    }

    /// Whether a message ends with a whole sample, not before this time. A crash leaves the begin of a message, and the
    /// next message is appended to it: both together can be a valid message with an invented value.
    fn has_another(&mut self, message: &[u8], last: i64) -> bool {
        const BEGIN: u8 = tag(1, 0) as u8;
        let mut begins = (1..message.len()).filter(|begin| message[*begin] == BEGIN);
        let found =
            |begin| self.decoded(&message[begin..], i64::MIN, i64::MIN).is_ok_and(|time| time >= last);
        begins.any(found)
    }

    /// Truncates the columns to this many samples.
    fn cut(&mut self, count: usize) {
        let width = self.payload.form.width();
        self.count = count;
        self.times.truncate(8 * count);
        self.severities.truncate(2 * count);
        self.statuses.truncate(2 * count);
        self.waveforms.truncate(4 * (count + 1));
        self.points = if self.payload.is_waveform { last_bound(&self.waveforms) } else { count };
        match width {
            Some(width) => self.values.content.truncate(width * self.points),
            None => self.values.cut(self.points),
        }
        self.fields.iter_mut().for_each(|(_, texts)| texts.cut(count));
    }

    #[inline]
    fn decoded(&mut self, message: &[u8], since: i64, until: i64) -> Result<i64> {
        let (mut seconds, mut nanoseconds, mut severity, mut status) = (None, None, 0, 0);
        let mut value = None;
        let mut has_pairs = false;
        for field in Fields::new(message, self.payload.repeated()) {
            match field? {
                (1, Field::Number(number)) => seconds = Some(number),
                (2, Field::Number(number)) => nanoseconds = Some(number),
                (3, found) if self.payload.is_waveform => self.add_points(found)?,
                (3, found) => value = Some(self.scalar(found)?),
                (4, Field::Number(number)) => severity = alarm(number)?,
                (5, Field::Number(number)) => status = alarm(number)?,
                (6, Field::Number(number)) if u32::try_from(number).is_ok() => {}
                (7, Field::Bytes(bytes)) => {
                    pair(bytes)?;
                    has_pairs = true;
                }
                (8, Field::Number(0 | 1)) => {}
                _ => return Err(UNKNOWN_FIELD),
            }
        }
        if !self.payload.is_waveform && value.is_none() {
            return Err("a sample has no value");
        }
        let seconds =
            seconds.filter(|seconds| *seconds < LONGEST_YEAR).ok_or("a sample has no time of a year")?;
        let nanoseconds = nanoseconds.filter(|found| *found < SECOND as u64).ok_or("a sample has no time")?;
        let time = self.begin + seconds as i64 * SECOND + nanoseconds as i64;
        if !(since..until).contains(&time) {
            return Ok(time);
        }
        match value {
            Some(value) => self.put(value)?,
            None => add_bound(&mut self.waveforms, self.points)?,
        }
        self.times.extend_from_slice(&time.to_le_bytes());
        self.severities.extend_from_slice(&severity.to_le_bytes());
        self.statuses.extend_from_slice(&status.to_le_bytes());
        if has_pairs || !self.fields.is_empty() {
            self.add_fields(message)?;
        }
        Ok(time)
    }

    fn scalar<'a>(&self, found: Field<'a>) -> Result<Value<'a>> {
        match (self.payload.form, found) {
            (Form::Text, Field::Bytes(bytes)) => Ok(Value::Text(text(bytes)?)),
            (Form::Byte, Field::Bytes(&[_])) => Ok(Value::Number(found)),
            (Form::Short, Field::Number(number)) => short(number).map(|_| Value::Number(found)),
            (Form::Int | Form::Float, Field::Fixed32(_)) | (Form::Double, Field::Fixed64(_)) => {
                Ok(Value::Number(found))
            }
            _ => Err("a value has another type than the file's"),
        }
    }

    #[inline]
    fn put(&mut self, value: Value<'_>) -> Result<()> {
        let content = &mut self.values.content;
        match value {
            Value::Text(text) => return self.values.add(Some(text)),
            Value::Number(Field::Number(number)) => content.extend_from_slice(&short(number)?.to_le_bytes()),
            Value::Number(Field::Fixed32(bytes)) => content.extend_from_slice(&bytes),
            Value::Number(Field::Fixed64(bytes)) => content.extend_from_slice(&bytes),
            Value::Number(Field::Bytes(bytes)) => {
                bytes.iter().for_each(|byte| content.extend_from_slice(&wide(*byte)));
            }
        }
        Ok(())
    }

    /// Adds points of a waveform: one, or several in packed form.
    fn add_points(&mut self, found: Field<'_>) -> Result<()> {
        let content = &mut self.values.content;
        match (self.payload.form, found) {
            (Form::Text, Field::Bytes(bytes)) => {
                self.points += 1;
                return self.values.add(Some(text(bytes)?));
            }
            (Form::Byte, Field::Bytes(bytes)) => {
                self.points += bytes.len();
                bytes.iter().for_each(|byte| content.extend_from_slice(&wide(*byte)));
            }
            (Form::Short, Field::Bytes(mut packed)) => {
                while !packed.is_empty() {
                    content.extend_from_slice(&short(varint(&mut packed)?)?.to_le_bytes());
                    self.points += 1;
                }
            }
            (Form::Int | Form::Float, Field::Bytes(packed)) if packed.len().is_multiple_of(4) => {
                self.points += packed.len() / 4;
                content.extend_from_slice(packed);
            }
            (Form::Double, Field::Bytes(packed)) if packed.len().is_multiple_of(8) => {
                self.points += packed.len() / 8;
                content.extend_from_slice(packed);
            }
            _ => {
                let point = self.scalar(found)?;
                self.points += 1;
                return self.put(point);
            }
        }
        Ok(())
    }

    fn add_fields(&mut self, message: &[u8]) -> Result<()> {
        let mut values = vec![None; self.fields.len()];
        for field in Fields::new(message, self.payload.repeated()) {
            let (7, Field::Bytes(bytes)) = field? else { continue };
            let (name, value) = pair(bytes)?;
            match self.fields.iter().position(|(wanted, _)| wanted == name) {
                Some(index) => values[index] = Some(value),
                None if self.others.len() < NAMES || self.others.contains_key(name) => {
                    *self.others.entry(name.to_owned()).or_default() += 1;
                }
                None => {}
            }
        }
        self.fields.iter_mut().zip(values).try_for_each(|((_, texts), value)| texts.add(value))
    }
}

/// The number of an sint32 of a short or an enumeration.
fn short(number: u64) -> Result<i32> {
    let number = u32::try_from(number).map_err(|_| "a value has more than 32 bits")?;
    Ok((number >> 1) as i32 ^ -((number & 1) as i32))
}

/// A severity or status.
fn alarm(number: u64) -> Result<i16> {
    i16::try_from(number as i64).map_err(|_| "a severity or status is no number of 16 bits")
}

/// A signed byte in 16 bits.
fn wide(byte: u8) -> [u8; 2] {
    i16::from(byte as i8).to_le_bytes()
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")
}

/// Name and value of a FieldValue.
fn pair(bytes: &[u8]) -> Result<(&str, &str)> {
    let (mut name, mut value) = (None, None);
    for field in Fields::new(bytes, [0; 2]) {
        match field? {
            (1, Field::Bytes(bytes)) => name = Some(text(bytes)?),
            (2, Field::Bytes(bytes)) => value = Some(text(bytes)?),
            _ => return Err(UNKNOWN_FIELD),
        }
    }
    Ok((name.ok_or("a field has no name")?, value.ok_or("a field has no value")?))
}

/// The bytes of a line without the escapes.
#[inline]
fn unescaped<'a>(line: &'a [u8], room: &'a mut Vec<u8>) -> Result<&'a [u8]> {
    const ESCAPE: u8 = 0x1b;
    if !line.contains(&ESCAPE) {
        return Ok(line);
    }
    room.clear();
    let mut bytes = line.iter();
    while let Some(byte) = bytes.next() {
        room.push(match (*byte, byte == &ESCAPE) {
            (byte, false) => byte,
            _ => match bytes.next() {
                Some(1) => ESCAPE,
                Some(2) => b'\n',
                Some(3) => b'\r',
                _ => return Err("a line has an unknown escape"),
            },
        });
    }
    Ok(room)
}
