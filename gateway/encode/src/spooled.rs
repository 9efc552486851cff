//! Rows of a writer's spool, whose readings are a JSON array without blanks, as put_<table>_batch takes them: an array of
//! objects in ASCII, which every driver can send at any length.

use crate::lines::finite;
use crate::times::{digits, Days, Form};

/// A column: its name in JSON with a colon, and whether it is a real.
pub struct Column {
    name: Vec<u8>,
    is_real: bool,
}

impl Column {
    pub fn new(name: &str, is_real: bool) -> Self {
        let mut quoted = Vec::new();
        let mut whole = Vec::new();
        crate::texts::json(&mut whole, name.as_bytes());
        ascii(&mut quoted, &String::from_utf8_lossy(&whole));
        quoted.push(b':');
        Self { name: quoted, is_real }
    }
}

/// A row: index in the ring, microseconds since 1970, readings.
pub type Row<'a> = (Option<i64>, i64, &'a str);

/// The text of some rows. None: the readings of a row are not those of the columns.
///
/// A number of a real is rounded to it first, as in a call with this row alone; one that is not finite is a text.
pub fn batch(columns: &[Column], rows: &[Row<'_>]) -> Option<Vec<u8>> {
    let names: usize = columns.iter().map(|column| column.name.len() + 4).sum();
    let readings: usize = rows.iter().map(|(_, _, readings)| readings.len() + names + 64).sum();
    let mut out = Vec::with_capacity(readings);
    let mut days = Days::new(Form::Iso);
    out.push(b'[');
    for (index, &(seq_no, time, readings)) in rows.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"seq_no\":");
        match seq_no {
            Some(seq_no) => out.extend_from_slice(itoa::Buffer::new().format(seq_no).as_bytes()),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"time\":\"");
        days.put(&mut out, time.div_euclid(1_000_000));
        out.push(b'.');
        digits(&mut out, time.rem_euclid(1_000_000) as u32, 6);
        out.extend_from_slice(b"+00:00\"");
        let mut rest = readings.strip_prefix('[')?;
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                rest = rest.strip_prefix(',')?;
            }
            let element = &rest[..length(rest)?];
            rest = &rest[element.len()..];
            out.push(b',');
            out.extend_from_slice(&column.name);
            put(&mut out, element, column.is_real);
        }
        if rest != "]" {
            return None;
        }
        out.push(b'}');
    }
    out.push(b']');
    Some(out)
}

/// The length of the element that a text begins with.
fn length(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    if bytes.first() != Some(&b'"') {
        return bytes.iter().position(|byte| matches!(byte, b',' | b']')).filter(|&length| length > 0);
    }
    let mut index = 1;
    loop {
        match bytes.get(index)? {
            b'"' => return Some(index + 1),
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
}

fn put(out: &mut Vec<u8>, element: &str, is_real: bool) {
    match element.as_bytes()[0] {
        b'"' => ascii(out, element),
        b'N' | b'I' => quoted(out, element),
        b'-' if element == "-Infinity" => quoted(out, element),
        b'-' | b'0'..=b'9' if is_real => match element.parse::<f64>().map(|number| number as f32) {
            Ok(number) if number.is_finite() => finite(out, number),
            // the server refuses rows that are too large
            _ => out.extend_from_slice(element.as_bytes()),
        },
        _ => out.extend_from_slice(element.as_bytes()),
    }
}

fn quoted(out: &mut Vec<u8>, element: &str) {
    out.push(b'"');
    out.extend_from_slice(element.as_bytes());
    out.push(b'"');
}

/// Appends JSON with the escapes of characters that are not ASCII.
fn ascii(out: &mut Vec<u8>, json: &str) {
    if json.is_ascii() {
        out.extend_from_slice(json.as_bytes());
        return;
    }
    for character in json.chars() {
        if character.is_ascii() {
            out.push(character as u8);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(columns: &[(&str, bool)], readings: &str) -> Option<String> {
        let columns: Vec<_> = columns.iter().map(|(name, is_real)| Column::new(name, *is_real)).collect();
        batch(&columns, &[(Some(7), 1_764_000_000_000_001, readings)])
            .map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn readings_get_the_names_of_their_columns() {
        let columns = [("a", true), ("b", false), ("ü", false), ("d", true), ("e", false)];
        assert_eq!(
            text(&columns, r#"[0.123456789,0.123456789,"ä,]\"\\",null,NaN]"#).as_deref(),
            Some(
                r#"[{"seq_no":7,"time":"2025-11-24T16:00:00.000001+00:00","a":0.12345679,"b":0.123456789,"\u00fc":"\u00e4,]\"\\","d":null,"e":"NaN"}]"#
            )
        );
        assert_eq!(
            text(&columns, r#"[1e39,true,"😀",-Infinity,-5]"#).as_deref(),
            Some(
                r#"[{"seq_no":7,"time":"2025-11-24T16:00:00.000001+00:00","a":1e39,"b":true,"\u00fc":"\ud83d\ude00","d":"-Infinity","e":-5}]"#
            )
        );
    }

    #[test]
    fn other_readings_are_refused() {
        for readings in
            ["", "[", "[1", "[1]", "[1,2,3]", "[1,]", "[,1]", "[1,\"a]", "[1,\"\\", "[1 2]", "[1,2] "]
        {
            assert_eq!(text(&[("a", false), ("b", false)], readings), None, "{readings}");
        }
        let empty: [(&str, bool); 0] = [];
        assert!(text(&empty, "[]").is_some());
    }
}
