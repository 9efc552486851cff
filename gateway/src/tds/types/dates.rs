//! DATETIME and SMALLDATETIME of both dialects (MS-TDS 2.2.5.5.1.7) and the date types of TDS 5.0
//! (FreeTDS src/tds/convert.c tds_datecrack; BIGDATETIME_BIAS).
//!
//! DATETIME: days since 1900-01-01 and 1/300 s; SMALLDATETIME: days and minutes. TDS 5.0: DATE in days
//! since 1900-01-01, TIME in 1/300 s, BIGTIME in microseconds, BIGDATETIME in microseconds since
//! 0000-01-01. All numbers in the client's byte order.

use super::super::dialect::{Dialect, Endian};
use super::clock::{self, DAY, FIRST_DATETIME_DAY, LAST_DAY, TICKS_PER_DAY, TO_0000, TO_0001, TO_1900};
use super::framing::put_short;
use super::info::TypeInfo;
use super::integers::{ordered, wrong_length};
use super::token::TypeToken;
use super::value::{ConvertError, Result, Value};
use bytes::BytesMut;

const MINUTE: i64 = 60_000_000;
/// In BIGDATETIME's microseconds.
const YEARS_1_TO_9999: std::ops::Range<i64> = (TO_0000 - TO_0001) * DAY..(TO_0000 + LAST_DAY + 1) * DAY;

pub(super) fn decode(raw: &[u8], t: &TypeInfo, d: &Dialect) -> Result<Value<'static>> {
    use TypeToken::*;
    match t.token {
        SybDate | SybDateN => {
            let days =
                i64::from(i32::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?)) - TO_1900;
            match i32::try_from(days) {
                Ok(date) if (-TO_0001..=LAST_DAY).contains(&days) => Ok(Value::Date(date)),
                _ => Err(not_a_time(t)),
            }
        }
        SybTime | SybTimeN => {
            let ticks = i64::from(i32::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?));
            Ok(Value::Time(micros(ticks, t)?))
        }
        BigTimeN => {
            let micros = u64::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?);
            match i64::try_from(micros) {
                Ok(micros) if micros < DAY => Ok(Value::Time(micros)),
                _ => Err(not_a_time(t)),
            }
        }
        BigDateTimeN => {
            let micros = u64::from_le_bytes(ordered(raw, d).ok_or_else(|| wrong_length(t))?);
            match i64::try_from(micros) {
                Ok(micros) if YEARS_1_TO_9999.contains(&micros) => {
                    Ok(Value::DateTime(micros - TO_0000 * DAY))
                }
                _ => Err(not_a_time(t)),
            }
        }
        _ => decode_datetime(raw, t, d),
    }
}

fn decode_datetime(raw: &[u8], t: &TypeInfo, d: &Dialect) -> Result<Value<'static>> {
    if let (4, Some((days, minutes))) = (raw.len(), raw.split_at_checked(2)) {
        let days = i64::from(u16::from_le_bytes(ordered(days, d).ok_or_else(|| wrong_length(t))?));
        let minutes = i64::from(u16::from_le_bytes(ordered(minutes, d).ok_or_else(|| wrong_length(t))?));
        if minutes >= DAY / MINUTE {
            return Err(not_a_time(t));
        }
        return Ok(Value::DateTime((days - TO_1900) * DAY + minutes * MINUTE));
    }
    let (days, ticks) = raw.split_at_checked(4).ok_or_else(|| wrong_length(t))?;
    let days = i64::from(i32::from_le_bytes(ordered(days, d).ok_or_else(|| wrong_length(t))?)) - TO_1900;
    let ticks = i64::from(i32::from_le_bytes(ordered(ticks, d).ok_or_else(|| wrong_length(t))?));
    if !(FIRST_DATETIME_DAY..=LAST_DAY).contains(&days) {
        return Err(not_a_time(t));
    }
    Ok(Value::DateTime(days * DAY + micros(ticks, t)?))
}

fn micros(ticks: i64, t: &TypeInfo) -> Result<i64> {
    if (0..TICKS_PER_DAY).contains(&ticks) {
        Ok(clock::micros_of_ticks(ticks))
    } else {
        Err(not_a_time(t))
    }
}

fn not_a_time(t: &TypeInfo) -> ConvertError {
    ConvertError::overflow("a date or time outside its type", t.token.name())
}

pub(super) fn encode(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    use TypeToken::*;
    let name = t.token.name();
    let overflow = || ConvertError::overflow(v.kind(), name);
    match t.token {
        SybDate | SybDateN => {
            let days = clock::to_date(v, name)?;
            if !(-TO_0001..=LAST_DAY).contains(&days) {
                return Err(overflow());
            }
            put_i32(days + TO_1900, t, d, out)
        }
        SybTime | SybTimeN => {
            let ticks = clock::ticks_of_micros(clock::to_time(v, name)?);
            if ticks >= TICKS_PER_DAY {
                return Err(overflow());
            }
            put_i32(ticks, t, d, out)
        }
        BigTimeN => {
            let micros = clock::to_time(v, name)?;
            if micros >= DAY {
                return Err(overflow());
            }
            put_i64(micros, t, d, out)
        }
        BigDateTimeN => {
            let micros = clock::to_datetime(v, name)?;
            if !(-TO_0001..=LAST_DAY).contains(&clock::split(micros).0) {
                return Err(overflow());
            }
            put_i64(micros + TO_0000 * DAY, t, d, out)
        }
        _ => encode_datetime(v, t, d, out),
    }
}

fn encode_datetime(v: &Value, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    let name = t.token.name();
    let overflow = || ConvertError::overflow(v.kind(), name);
    let moment = match v {
        // as in T-SQL, and in clients without a type for times
        Value::Time(micros) => micros - TO_1900 * DAY,
        _ => clock::to_datetime(v, name)?,
    };
    let (mut days, micros) = clock::split(moment);
    if t.size == 4 {
        let mut minutes = (micros + MINUTE / 2) / MINUTE;
        if minutes == DAY / MINUTE {
            (days, minutes) = (days + 1, 0);
        }
        let days = u16::try_from(days + TO_1900).map_err(|_| overflow())?;
        let (days, minutes) = (order(days.to_le_bytes(), d), order((minutes as u16).to_le_bytes(), d));
        put_short(t, &[days[0], days[1], minutes[0], minutes[1]], out);
        return Ok(());
    }
    let mut ticks = clock::ticks_of_micros(micros);
    if ticks == TICKS_PER_DAY && matches!(v, Value::Time(_)) {
        return Err(overflow());
    }
    if ticks == TICKS_PER_DAY {
        (days, ticks) = (days + 1, 0);
    }
    if t.size != 8 {
        return Err(wrong_length(t));
    }
    if !(FIRST_DATETIME_DAY..=LAST_DAY).contains(&days) {
        return Err(overflow());
    }
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&order(((days + TO_1900) as i32).to_le_bytes(), d));
    bytes[4..].copy_from_slice(&order((ticks as i32).to_le_bytes(), d));
    put_short(t, &bytes, out);
    Ok(())
}

fn order<const N: usize>(mut little: [u8; N], d: &Dialect) -> [u8; N] {
    if d.endian == Endian::Big {
        little.reverse();
    }
    little
}

fn put_i32(number: i64, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    let number = i32::try_from(number).map_err(|_| not_a_time(t))?;
    put_short(t, &order(number.to_le_bytes(), d), out);
    Ok(())
}

fn put_i64(number: i64, t: &TypeInfo, d: &Dialect, out: &mut BytesMut) -> Result<()> {
    put_short(t, &order(number.to_le_bytes(), d), out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{decode_value, encode_value, ErrorKind};
    use super::*;
    use crate::tds::dialect::Version;

    fn at(text: &str) -> i64 {
        let time: jiff::civil::DateTime = text.parse().unwrap();
        time.duration_since(jiff::civil::datetime(2000, 1, 1, 0, 0, 0, 0)).as_micros() as i64
    }

    fn swapped(wire: &[u8], words: &[usize]) -> Vec<u8> {
        let mut rest = wire.iter().copied();
        let mut out = Vec::new();
        for word in words {
            let mut bytes: Vec<u8> = rest.by_ref().take(*word).collect();
            bytes.reverse();
            out.extend(bytes);
        }
        out
    }

    /// The results of FreeTDS 1.3.17's cs_convert for a text on a little-endian machine.
    #[test]
    fn the_bytes_of_freetds() {
        use TypeToken::*;
        let vectors: [(_, _, &[u8], Value, &[usize]); 8] = [
            (
                DateTimeN,
                8,
                &[0x62, 0x93, 0, 0, 0x09, 0xE6, 0x25, 0x01],
                Value::DateTime(at("2003-04-21 17:50:03.123")),
                &[4, 4],
            ),
            (
                DateTimeN,
                8,
                &[0x46, 0x2E, 0xFF, 0xFF, 0, 0, 0, 0],
                Value::DateTime(at("1753-01-01 00:00:00")),
                &[4, 4],
            ),
            (
                DateTimeN,
                8,
                &[0x7F, 0x24, 0x2D, 0x00, 0xFF, 0x81, 0x8B, 0x01],
                Value::DateTime(at("9999-12-31 23:59:59.997")),
                &[4, 4],
            ),
            (DateTimeN, 4, &[0x62, 0x93, 0x2E, 0x04], Value::DateTime(at("2003-04-21 17:50:00")), &[2, 2]),
            (SybDateN, 4, &[0x16, 0xA1, 0, 0], Value::Date((at("2012-11-27 00:00:00") / DAY) as i32), &[4]),
            (SybTimeN, 4, &[0x22, 0xAA, 0xFE, 0x00], Value::Time(55_632_327_000), &[4]),
            (
                BigDateTimeN,
                8,
                &[0xD1, 0x5B, 0x0E, 0x73, 0x55, 0xFC, 0xE1, 0x00],
                Value::DateTime(at("2015-09-12 21:48:12.638161")),
                &[8],
            ),
            (BigTimeN, 8, &[0xB6, 0xF4, 0xF1, 0xF3, 0x0C, 0, 0, 0], Value::Time(55_632_327_862), &[8]),
        ];
        let little = Dialect::new(Version::Tds50);
        let big = Dialect { endian: Endian::Big, ..little };
        for (token, size, wire, value, words) in vectors {
            let t = TypeInfo::new(token, size);
            for (d, wire) in [(&little, wire.to_vec()), (&big, swapped(wire, words))] {
                assert_eq!(decode_value(Some(&wire), &t, d).unwrap(), value, "{token:?}");
                let mut out = BytesMut::new();
                encode_value(&value, &t, d, &mut out).unwrap();
                assert_eq!(out[1..], wire, "{token:?}");
            }
        }
    }

    #[test]
    fn rounding_carries_into_the_next_day() {
        let d = Dialect::new(Version::Tds71);
        for (size, written, read) in [
            (8, "2024-02-28 23:59:59.999", "2024-02-29 00:00:00"),
            (8, "2024-02-28 12:00:00.002", "2024-02-28 12:00:00.003"),
            (4, "2024-02-28 23:59:30", "2024-02-29 00:00:00"),
            (4, "2024-02-28 23:59:29.999", "2024-02-28 23:59:00"),
        ] {
            let t = TypeInfo::new(TypeToken::DateTimeN, size);
            let mut out = BytesMut::new();
            encode_value(&Value::DateTime(at(written)), &t, &d, &mut out).unwrap();
            assert_eq!(decode_value(Some(&out[1..]), &t, &d).unwrap(), Value::DateTime(at(read)));
        }
    }

    #[test]
    fn times_outside_their_type_are_refused() {
        let d = Dialect::new(Version::Tds50);
        for (token, size, value) in [
            (TypeToken::DateTimeN, 8, Value::DateTime(at("1752-12-31 00:00:00"))),
            (TypeToken::DateTimeN, 8, Value::DateTime(at("9999-12-31 23:59:59.999"))),
            (TypeToken::DateTimeN, 4, Value::DateTime(at("2079-06-06 23:59:30"))),
            (TypeToken::SybDateN, 4, Value::Date(i32::MAX)),
            (TypeToken::SybTimeN, 4, Value::Time(DAY)),
            (TypeToken::BigDateTimeN, 8, Value::DateTime(i64::MIN)),
        ] {
            let mut out = BytesMut::new();
            let refused = encode_value(&value, &TypeInfo::new(token, size), &d, &mut out).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Overflow, "{token:?} {value:?}");
        }
        let ticks_past_midnight = [0, 0, 0, 0, 0x00, 0x82, 0x8B, 0x01];
        let t = TypeInfo::new(TypeToken::DateTime, 8);
        assert_eq!(decode_value(Some(&ticks_past_midnight), &t, &d).unwrap_err().kind, ErrorKind::Overflow);
    }
}
