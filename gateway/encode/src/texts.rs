//! Texts in JSON and in CSV.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A text with its quotes (RFC 8259), with the necessary escapes only.
pub fn json(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut written = 0;
    for (place, &byte) in text.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text[written..place]);
        written = place + 1;
        out.push(b'\\');
        match byte {
            0x08 => out.push(b'b'),
            b'\t' => out.push(b't'),
            b'\n' => out.push(b'n'),
            0x0c => out.push(b'f'),
            b'\r' => out.push(b'r'),
            byte if byte < 0x20 => {
                out.extend_from_slice(b"u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            byte => out.push(byte),
        }
    }
    out.extend_from_slice(&text[written..]);
    out.push(b'"');
}

/// A text on one line, in quotes if it has a comma, a quote or a tab (RFC 4180).
pub fn csv(out: &mut Vec<u8>, text: &[u8]) {
    let quoted = text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\t'));
    if quoted {
        out.push(b'"');
    }
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let length = line_end(rest);
        if length > 0 {
            // one between lines, none at the end
            if rest.len() > length {
                out.push(b' ');
            }
            rest = &rest[length..];
            continue;
        }
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
        rest = &rest[1..];
    }
    if quoted {
        out.push(b'"');
    }
}

/// Bytes of the line end that a text begins with, 0 for none: those of Python's `str.splitlines`.
fn line_end(text: &[u8]) -> usize {
    match text {
        [b'\r', b'\n', ..] => 2,
        [b'\n' | b'\r' | 0x0b | 0x0c | 0x1c..=0x1e, ..] => 1,
        [0xc2, 0x85, ..] => 2,
        [0xe2, 0x80, 0xa8 | 0xa9, ..] => 3,
        _ => 0,
    }
}
