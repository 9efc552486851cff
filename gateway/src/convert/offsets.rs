//! datetimeoffset: PostgreSQL's tsql.datetimeoffset, a composite type of the instant, the minutes of its offset, and a
//! json that is always `{}` (gateway/sql/types/datetimeoffset.sql).

use super::{calendar, ConvertError, PgType, Value};
use crate::tds::types::clock;
use bytes::{BufMut, BytesMut};

const TIMESTAMPTZ: u32 = 1184;
const INT2: u32 = 21;
const JSON: u32 = 114;
const UNCOMPARED: &[u8] = b"{}";

/// A value in the form of record_send: the number of fields, then for each its type, length and bytes.
pub fn read(raw: &[u8]) -> Result<Value<'static>, ConvertError> {
    let malformed =
        || ConvertError::conversion("a malformed value of PostgreSQL", PgType::DateTimeOffset.name());
    let (head, fields) = raw.split_first_chunk::<4>().ok_or_else(malformed)?;
    if u32::from_be_bytes(*head) != 3 {
        return Err(malformed());
    }
    let (moment, rest) = field::<8>(fields, TIMESTAMPTZ).ok_or_else(malformed)?;
    let (minutes, _) = field::<2>(rest, INT2).ok_or_else(malformed)?;
    Ok(Value::DateTimeOffset { utc: i64::from_be_bytes(moment), offset_minutes: i16::from_be_bytes(minutes) })
}

/// A field of N bytes, and the bytes after it.
fn field<const N: usize>(raw: &[u8], of: u32) -> Option<([u8; N], &[u8])> {
    let (oid, rest) = raw.split_first_chunk::<4>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (bytes, rest) = rest.split_first_chunk::<N>()?;
    (u32::from_be_bytes(*oid) == of && usize::try_from(u32::from_be_bytes(*length)) == Ok(N))
        .then_some((*bytes, rest))
}

/// Appends a value, in the form of record_send. A time without an offset is taken as UTC.
pub fn put(v: &Value, name: &str, out: &mut BytesMut) -> Result<(), ConvertError> {
    let read = match v {
        Value::Text(text) => Some(
            calendar::read(text)
                .ok_or_else(|| ConvertError::conversion("a text that is not a date or time", name))?,
        ),
        _ => None,
    };
    let v = read.as_ref().unwrap_or(v);
    let (utc, offset_minutes) = match v {
        Value::DateTimeOffset { utc, offset_minutes } => (*utc, *offset_minutes),
        _ => (clock::to_datetime(v, name)?, 0),
    };
    if !clock::in_calendar(utc) {
        return Err(ConvertError::overflow(v.kind(), name));
    }
    out.put_u32(3);
    for (oid, bytes) in
        [(TIMESTAMPTZ, &utc.to_be_bytes()[..]), (INT2, &offset_minutes.to_be_bytes()[..]), (JSON, UNCOMPARED)]
    {
        out.put_u32(oid);
        out.put_u32(bytes.len() as u32);
        out.put_slice(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_kept() {
        let value = Value::DateTimeOffset { utc: 86_400_000_000, offset_minutes: -90 };
        let mut out = BytesMut::new();
        put(&value, "datetimeoffset", &mut out).unwrap();
        assert_eq!(read(&out), Ok(value));
        for cut in 0..out.len() - 10 {
            assert!(read(&out[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_has_no_offset_is_of_utc() {
        let stored = |value: Value<'static>| {
            let mut out = BytesMut::new();
            put(&value, "datetimeoffset", &mut out).map(|()| read(&out).unwrap())
        };
        let at = |utc, offset_minutes| Ok(Value::DateTimeOffset { utc, offset_minutes });
        assert_eq!(stored(Value::DateTime(7)), at(7, 0));
        assert_eq!(stored(Value::Text("2000-01-01 01:00:00 +01:00".into())), at(0, 60));
        assert!(stored(Value::Int(1)).is_err());
    }
}
