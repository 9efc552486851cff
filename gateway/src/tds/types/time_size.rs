//! The sizes of dates and times of 7.3 and later, in bytes (MS-TDS 2.2.5.5.1.8).

use super::token::TypeToken;

pub(super) const DATE_BYTES: usize = 3;
pub(super) const OFFSET_BYTES: usize = 2;

/// Bytes of a value.
pub(super) fn size(token: TypeToken, scale: u8) -> u8 {
    let time = time_bytes(scale);
    (match token {
        TypeToken::TimeN => time,
        TypeToken::DateTime2N => time + DATE_BYTES,
        TypeToken::DateTimeOffset => time + DATE_BYTES + OFFSET_BYTES,
        _ => DATE_BYTES,
    }) as u8
}

pub(super) fn time_bytes(scale: u8) -> usize {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}
