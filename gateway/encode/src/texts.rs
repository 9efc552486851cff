//! Texts in JSON and in CSV.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A text with its quotes (RFC 8259), with the necessary escapes only.
pub fn json(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut written = 0;
    for (index, &byte) in text.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text[written..index]);
        written = index + 1;
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

/// A text, in quotes if it contains a comma, a quote, a tab or a line break (RFC 4180).
pub fn csv(out: &mut Vec<u8>, text: &[u8]) {
    if !text.iter().any(|byte| matches!(byte, b',' | b'"' | b'\t' | b'\n' | b'\r')) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
