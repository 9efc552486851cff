//! A row in the layout in which ASE stores it, as bulk copies of TDS 5.0 send it (FreeTDS src/tds/bulk.c,
//! tds5_send_record and tds5_bcp_add_variable_columns). The gateway describes all columns to its clients as variable,
//! so a row consists of
//!
//! * its length in two bytes of the client's byte order; all else except texts is little-endian for every client;
//! * the number of stored columns, and a zero (the number of the row on its page);
//! * the length of the row once more, if there are columns;
//! * the values without lengths, NULL being empty, and trailing NULLs omitted;
//! * the offsets of the values and of the end of the last one. The low bytes are at the very end, last to first; before
//!   them, for each multiple of 256, highest first, one more than the number of offsets below it; before those,
//!   sometimes, the number of offsets.
//! * Then for each text column, or each up to the last that is not NULL: a zero in two bytes, with which no row begins,
//!   its type, its number and length, and its bytes.

use super::{Column, Row};
use crate::tds::dialect::{Dialect, Endian};
use crate::tds::types::Layout;
use crate::tds::wire::{Reader, Result, WireError};
use std::borrow::Cow;

/// The most columns whose offsets a stored row can hold in single bytes.
pub const MOST_COLUMNS: usize = 250;
/// The size of the text pointer that replaces a text's bytes, which follow the row.
const TEXT_POINTER: usize = 16;
/// The count, the zero and the length before the first value.
const HEAD: usize = 4;

/// Reads one row. `is_last`: no bytes follow those of the reader.
pub fn decode<'a>(reader: &mut Reader<'a>, columns: &[Column], is_last: bool) -> Result<Row<'a>> {
    let length = usize::from(reader.u16("row length")?);
    let stored = reader.take(length, "row")?;
    let count = match stored {
        [count, 0, ..] => usize::from(*count),
        _ => return Err(malformed("does not begin with its columns")),
    };
    if count > columns.len() {
        return Err(malformed("has more columns than the table"));
    }
    let offsets = if count == 0 { Vec::new() } else { offsets(stored, count)? };
    let mut row: Row<'a> = Vec::with_capacity(columns.len());
    for pair in offsets.windows(2) {
        let &[start, end] = pair else { continue };
        let value = stored.get(start..end).ok_or_else(|| malformed("has a value outside it"))?;
        row.push((!value.is_empty()).then_some(Cow::Borrowed(value)));
    }
    row.resize(columns.len(), None);
    take_texts(reader, columns, &mut row, is_last)?;
    Ok(row)
}

/// The offsets of the values, and of the end of the last.
fn offsets(stored: &[u8], count: usize) -> Result<Vec<usize>> {
    let wrong = || malformed("has no valid offsets of its columns");
    let length = u16::from_le_bytes([*stored.get(2).ok_or_else(wrong)?, *stored.get(3).ok_or_else(wrong)?]);
    if usize::from(length) != stored.len() {
        return Err(malformed("has two different lengths"));
    }
    let lows_at = stored.len().checked_sub(count + 1).ok_or_else(wrong)?;
    let lows = stored.get(lows_at..).ok_or_else(wrong)?;
    // the table begins at the end of the last value, at 256 * high + low, and has `high` more bytes, or one more
    let low = usize::from(*lows.first().ok_or_else(wrong)?);
    let before = lows_at.checked_sub(low).ok_or_else(wrong)?;
    let (high, has_count) = match (before / 257, before % 257) {
        (high, 0) => (high, false),
        (high, 1) => (high, true),
        _ => return Err(wrong()),
    };
    let highs_at = lows_at.checked_sub(high).ok_or_else(wrong)?;
    if has_count && stored.get(highs_at.wrapping_sub(1)) != u8::try_from(count + 1).ok().as_ref() {
        return Err(wrong());
    }
    let highs = stored.get(highs_at..lows_at).ok_or_else(wrong)?;
    let mut offsets = Vec::with_capacity(count + 1);
    let mut least = HEAD;
    for (index, low) in lows.iter().rev().enumerate() {
        let pages = highs.iter().filter(|below| usize::from(**below) <= index + 1).count();
        let offset = 256 * pages + usize::from(*low);
        if offset < least {
            return Err(wrong());
        }
        least = offset;
        offsets.push(offset);
    }
    if offsets.first() != Some(&HEAD) || offsets.last() != Some(&(256 * high + low)) {
        return Err(wrong());
    }
    Ok(offsets)
}

/// Reads the texts that follow the row into their columns.
fn take_texts<'a>(
    reader: &mut Reader<'a>,
    columns: &[Column],
    row: &mut Row<'a>,
    is_last: bool,
) -> Result<()> {
    let is_text = |column: &Column| column.type_info.token.layout() == Layout::TextPointer;
    let texts = columns.iter().zip(row.iter_mut()).filter(|(column, _)| is_text(column));
    let mut are_left_out = false;
    for (_, value) in texts {
        if value.as_ref().is_some_and(|pointer| pointer.len() != TEXT_POINTER) {
            return Err(malformed("has a text pointer that is none"));
        }
        are_left_out |= value.is_none() && ((is_last && reader.is_empty()) || begins_row(reader)?);
        if are_left_out && value.is_none() {
            continue;
        }
        if reader.u16("text")? != 0 || are_left_out {
            return Err(malformed("lacks a text"));
        }
        reader.take(2, "type and number of a text")?;
        reader.u16("place of a text")?;
        let length = reader.u32("length of a text")? as usize;
        let text = reader.take(length, "text")?;
        match value {
            Some(value) => *value = Cow::Borrowed(text),
            None if text.is_empty() => {}
            None => return Err(malformed("has a text for a NULL")),
        }
    }
    Ok(())
}

/// Whether a row begins here, rather than a text.
fn begins_row(reader: &Reader<'_>) -> Result<bool> {
    Ok(reader.clone().u16("text")? != 0)
}

fn malformed(what: &str) -> WireError {
    WireError::Malformed(format!("a row of a bulk copy {what}"))
}

/// The byte order of the values in a stored row.
pub fn dialect(dialect: &Dialect) -> Dialect {
    Dialect { endian: Endian::Little, ..*dialect }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::types::{TypeInfo, TypeToken};
    use proptest::prelude::*;

    fn columns(texts: &[bool]) -> Vec<Column> {
        let column = |is_text: &bool| Column {
            name: String::new(),
            type_info: TypeInfo::new(if *is_text { TypeToken::Text } else { TypeToken::VarChar }, 255),
        };
        texts.iter().map(column).collect()
    }

    /// A row in FreeTDS's layout; before 1.4 (`old`) the table always contains the number of offsets, and NULL texts
    /// are never omitted.
    fn stored(values: &[Option<Vec<u8>>], texts: &[bool], old: bool, big: bool) -> Vec<u8> {
        let mut row = vec![0, 0, 0, 0];
        let mut offsets = vec![row.len()];
        for (value, is_text) in values.iter().zip(texts) {
            match value {
                Some(_) if *is_text => row.extend([0; TEXT_POINTER]),
                Some(value) => row.extend(value),
                None => {}
            }
            offsets.push(row.len());
        }
        while offsets.len() > 1 && offsets[offsets.len() - 1] == offsets[offsets.len() - 2] {
            offsets.pop();
        }
        let count = offsets.len() - 1;
        if count == 0 {
            row.truncate(2);
        } else {
            if old || offsets[count] / 256 == offsets[count - 1] / 256 {
                row.push(count as u8 + 1);
            }
            for page in (1..=offsets[count] / 256).rev() {
                row.push(1 + offsets.iter().filter(|offset| **offset / 256 < page).count() as u8);
            }
            row.extend(offsets.iter().rev().map(|offset| *offset as u8));
            let length = (row.len() as u16).to_le_bytes();
            row[2..4].copy_from_slice(&length);
            row[0] = count as u8;
        }
        let two = |n: usize| if big { (n as u16).to_be_bytes() } else { (n as u16).to_le_bytes() };
        let mut out = two(row.len()).to_vec();
        out.extend(row);
        let mut sent: Vec<_> = values.iter().zip(texts).filter(|(_, is_text)| **is_text).collect();
        while !old && sent.last().is_some_and(|(value, _)| value.is_none()) {
            sent.pop();
        }
        for (value, _) in sent {
            let empty = Vec::new();
            let value = value.as_ref().unwrap_or(&empty);
            out.extend([0, 0, 0x23, 0xFF]);
            out.extend(two(0));
            let length = value.len() as u32;
            out.extend(if big { length.to_be_bytes() } else { length.to_le_bytes() });
            out.extend(value);
        }
        out
    }

    proptest! {
        #[test]
        fn every_row_is_read(
            cells in proptest::collection::vec(
                (proptest::option::of(proptest::collection::vec(any::<u8>(), 1..300)), any::<bool>()), 1..60),
            old: bool,
            big: bool,
        ) {
            let (values, texts): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
            let bytes = stored(&values, &texts, old, big);
            let endian = if big { Endian::Big } else { Endian::Little };
            // two rows, the second at the end
            let both = [&bytes[..], &bytes].concat();
            let mut reader = Reader::new(&both, endian);
            for _ in 0..2 {
                let row = decode(&mut reader, &columns(&texts), true);
                let row: Vec<_> = row.unwrap().into_iter().map(|value| value.map(Cow::into_owned)).collect();
                prop_assert_eq!(&row, &values);
            }
            prop_assert!(reader.is_empty());
            for length in 0..bytes.len() {
                let mut reader = Reader::new(&bytes[..length], endian);
                let cut = decode(&mut reader, &columns(&texts), false);
                prop_assert!(matches!(cut, Err(WireError::Truncated(_))), "{}", length);
            }
        }

        #[test]
        fn no_damage_makes_it_panic(
            changes in proptest::collection::vec((0usize..400, any::<u8>()), 1..6),
            length in 0usize..400,
        ) {
            let values = [Some(vec![1; 300]), None, Some(vec![2; 5]), Some(vec![3; 9])];
            let texts = [false, false, true, false];
            let mut bytes = stored(&values, &texts, false, false);
            for (at, byte) in changes {
                if let Some(damaged) = bytes.get_mut(at) { *damaged = byte; }
            }
            bytes.truncate(length);
            let _ = decode(&mut Reader::new(&bytes, Endian::Little), &columns(&texts), length % 2 == 0);
        }
    }
}
