//! Rows of a recording in CSV (RFC 4180), as Python's module `csv` reads them strictly, and the readings of their cells
//! in JSON.

use std::io::{BufRead, Error};

use crate::lines::finite;
use crate::texts;

#[derive(Debug)]
pub enum Wrong {
    File(Error),
    /// The file is not CSV.
    Form(&'static str),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::File(error)
    }
}

/// The records of a file: `next` reads the next one, `cell` has its cells.
pub struct Records<R> {
    source: R,
    /// Lines read, those of the present record included.
    pub line: usize,
    text: Vec<u8>,
    ends: Vec<usize>,
    after_return: bool,
}

#[derive(Clone, Copy)]
enum State {
    Begin,
    Plain,
    Quoted,
    /// Behind a quote in a quoted cell: its end, or half of a quote.
    Quote,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<R: BufRead> Records<R> {
    pub fn new(mut source: R) -> Result<Self, Error> {
        if source.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
            source.consume(BYTE_ORDER_MARK.len());
        }
        Ok(Self { source, line: 0, text: Vec::new(), ends: Vec::new(), after_return: false })
    }

    /// Cells of the present record; an empty line has none.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    pub fn cell(&self, index: usize) -> &[u8] {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[index]]
    }

    /// Reads the next record. False at the end of the file.
    pub fn advance(&mut self) -> Result<bool, Wrong> {
        self.text.clear();
        self.ends.clear();
        let mut state = State::Begin;
        loop {
            let bytes = self.source.fill_buf()?;
            if bytes.is_empty() {
                return self.end_of_file(state);
            }
            let mut used = 0;
            let mut ended = false;
            while used < bytes.len() && !ended {
                let byte = bytes[used];
                if std::mem::take(&mut self.after_return) && byte == b'\n' {
                    // the second half of a line's end
                    used += 1;
                    if matches!(state, State::Quoted) {
                        self.text.push(byte);
                    }
                    continue;
                }
                let is_end = matches!(byte, b'\n' | b'\r');
                if is_end {
                    self.after_return = byte == b'\r';
                    self.line += 1;
                }
                match (state, byte) {
                    (State::Begin, b'"') => state = State::Quoted,
                    (State::Begin, _) if is_end && self.ends.is_empty() => ended = true,
                    (State::Quoted, b'"') => state = State::Quote,
                    (State::Quoted, _) => self.text.push(byte),
                    (State::Quote, b'"') => {
                        self.text.push(byte);
                        state = State::Quoted;
                    }
                    (_, b',') => {
                        self.ends.push(self.text.len());
                        state = State::Begin;
                    }
                    (State::Quote, _) if !is_end => return Err(Wrong::Form("',' expected after '\"'")),
                    _ if is_end => {
                        self.ends.push(self.text.len());
                        ended = true;
                    }
                    _ => {
                        let rest = &bytes[used..];
                        let is_special = |byte: &u8| matches!(byte, b',' | b'\n' | b'\r');
                        let length = rest.iter().position(is_special).unwrap_or(rest.len());
                        self.text.extend_from_slice(&rest[..length]);
                        used += length - 1;
                        state = State::Plain;
                    }
                }
                used += 1;
            }
            self.source.consume(used);
            if ended {
                return Ok(true);
            }
        }
    }

    fn end_of_file(&mut self, state: State) -> Result<bool, Wrong> {
        match state {
            State::Begin if self.ends.is_empty() => Ok(false),
            State::Quoted => Err(Wrong::Form("unexpected end of data")),
            _ => {
                self.line += 1;
                self.ends.push(self.text.len());
                Ok(true)
            }
        }
    }
}

/// The type of a column whose cells native code reads; it leaves unusual cells to Python.
#[derive(Clone, Copy)]
pub enum Kind {
    Number { largest: f64 },
    Whole { least: i64, most: i64 },
    Bit,
    Text { longest: usize },
    Other,
}

/// Appends the reading of a cell that is not empty in JSON. False if it is wrong, or of a form that is not read here.
pub fn reading(out: &mut Vec<u8>, kind: Kind, cell: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(cell) else { return false };
    match kind {
        Kind::Number { largest } => {
            let is_digits =
                cell.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
            match text.parse::<f64>() {
                Ok(number) if is_digits && number.abs() <= largest => finite(out, number),
                _ => return false,
            }
        }
        Kind::Whole { least, most } => match text.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => {
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
            _ => return false,
        },
        Kind::Bit => match cell {
            b"0" | b"false" => out.extend_from_slice(b"false"),
            b"1" | b"true" => out.extend_from_slice(b"true"),
            _ => return false,
        },
        Kind::Text { longest } if !cell.contains(&0) && text.chars().count() <= longest => {
            texts::json(out, cell)
        }
        Kind::Text { .. } | Kind::Other => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of each record, with the line that it ends at; then the error.
    fn read(text: &str) -> (Vec<(usize, Vec<String>)>, Option<&'static str>) {
        // by pieces of three bytes, so that each form is also cut
        let source = std::io::BufReader::with_capacity(3, text.as_bytes());
        let mut records = Records::new(source).unwrap();
        let mut found = Vec::new();
        loop {
            match records.advance() {
                Ok(true) => {
                    let cells =
                        (0..records.count()).map(|index| String::from_utf8_lossy(records.cell(index)).into());
                    found.push((records.line, cells.collect()));
                }
                Ok(false) => return (found, None),
                Err(Wrong::Form(error)) => return (found, Some(error)),
                Err(Wrong::File(error)) => panic!("{error}"),
            }
        }
    }

    fn records(rows: &[(usize, &[&str])]) -> Vec<(usize, Vec<String>)> {
        rows.iter()
            .map(|(line, cells)| (*line, cells.iter().map(|&cell| cell.to_owned()).collect()))
            .collect()
    }

    #[test]
    fn cells_are_those_of_rfc_4180() {
        let text = "\u{feff}a,b\r\n1,\"x,\"\"y\r\nz\"\r\n\r\n,\"\"\r2,5\" \n3,";
        let wanted = records(&[
            (1, &["a", "b"]),
            (3, &["1", "x,\"y\r\nz"]),
            (4, &[]),
            (5, &["", ""]),
            (6, &["2", "5\" "]),
            (7, &["3", ""]),
        ]);
        assert_eq!(read(text), (wanted, None));
    }

    #[test]
    fn other_forms_are_errors() {
        assert_eq!(read("a\n\"b\"c\n"), (records(&[(1, &["a"])]), Some("',' expected after '\"'")));
        assert_eq!(read("\"a\n"), (vec![], Some("unexpected end of data")));
    }

    fn json(kind: Kind, cell: &str) -> Option<String> {
        let mut out = Vec::new();
        reading(&mut out, kind, cell.as_bytes()).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn readings_are_exact_or_left_to_others() {
        let real = Kind::Number { largest: f64::from(f32::MAX) };
        for (cell, wanted) in
            [("+1.", "1.0"), (".5", "0.5"), ("-0", "-0.0"), ("1e3", "1000.0"), ("0.1", "0.1")]
        {
            assert_eq!(json(real, cell).as_deref(), Some(wanted));
        }
        for cell in ["nan", "inf", "1e39", "0x1", " 1", "1_0", ".", "e1", "1e"] {
            assert_eq!(json(real, cell), None, "{cell}");
        }
        let small = Kind::Whole { least: -32768, most: 32767 };
        assert_eq!(json(small, "+32767").as_deref(), Some("32767"));
        for cell in ["32768", "1.0", "", "1e2"] {
            assert_eq!(json(small, cell), None, "{cell}");
        }
        assert_eq!(json(Kind::Bit, "true").as_deref(), Some("true"));
        assert_eq!(json(Kind::Bit, "2"), None);
        let text = Kind::Text { longest: 3 };
        assert_eq!(json(text, "ä\"\n").as_deref(), Some("\"ä\\\"\\n\""));
        assert_eq!(json(text, "long"), None);
        assert_eq!(json(text, "a\0"), None);
    }
}
