//! Values, alarms and properties in the structures of db_access.h of EPICS Base 7.

use std::ffi::{c_long, c_short, c_void};
use std::ptr;
use std::slice;

use crate::libca::{CHAR, DBR_GR_ENUM, DBR_TIME, DOUBLE, ENUM, FLOAT, LONG, SHORT, STRING};
use crate::reading::Reading;
use crate::signals::Alarm;

/// EPICS time stamps count from 1990.
const EPOCH: i64 = 631_152_000;
/// The alarm status of a record whose value is undefined.
pub const UDF: u16 = 17;
/// Bytes of a text, of an enumeration's name and of a unit.
const TEXT: usize = 40;
const NAME: usize = 26;
const UNIT: usize = 8;

/// A value sent by a monitor.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The alarm says that the value is undefined.
    Missing,
    Whole(i64),
    Float(f64),
    Text(String),
    Texts(Vec<String>),
    /// The bytes of an array's points, and numpy's code of their type.
    Points(&'static str, Vec<u8>),
}

/// The part of an update that a column stores.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Double,
    Real,
    /// An integer of this many bits.
    Whole(u32),
    Bit,
    Severity,
    Status,
    /// The time stamp, in seconds since 1970.
    Time,
}

/// A property of a record: the names of its states, or its unit, digits and limits.
#[derive(Clone, Debug, PartialEq)]
pub enum Property {
    States(Vec<String>),
    Numbers {
        decimals: i16,
        /// None: it is longer than the message.
        unit: Option<String>,
        /// Low and high, of warnings and of alarms.
        limits: [f64; 4],
    },
    /// A field of the record.
    Field(&'static str, String),
}

/// The beginning of each structure dbr_time_….
#[repr(C)]
struct Header {
    status: c_short,
    severity: c_short,
    seconds: u32,
    nanoseconds: u32,
}

/// The value of the type `kind`, DBR_TIME_…, with its alarm and time stamp; None for a type that libca does not have.
/// `is_single`: it is no array; `is_text`: characters are a text.
///
/// # Safety
/// `value` is a structure of this type with so many points.
pub unsafe fn read(
    kind: c_long,
    count: usize,
    value: *const c_void,
    is_single: bool,
    is_text: bool,
) -> Option<(Value, Alarm)> {
    // SAFETY, of this and the next: in db_access.h this type's points are at this offset
    let header: Header = unsafe { ptr::read_unaligned(value.cast()) };
    let alarm = Alarm {
        severity: header.severity.cast_unsigned(),
        status: header.status.cast_unsigned(),
        seconds: i64::from(header.seconds) + EPOCH,
        nanoseconds: header.nanoseconds,
    };
    if alarm.status == UDF {
        return Some((Value::Missing, alarm));
    }
    let (offset, size, code) = match c_short::try_from(kind - DBR_TIME).ok()? {
        STRING => (12, TEXT, ""),
        SHORT => (14, 2, "i2"),
        FLOAT => (12, 4, "f4"),
        ENUM => (14, 2, "u2"),
        CHAR => (15, 1, "u1"),
        LONG => (12, 4, "i4"),
        DOUBLE => (16, 8, "f8"),
        _ => return None,
    };
    let points = unsafe { slice::from_raw_parts(value.byte_add(offset).cast::<u8>(), count * size) };
    let value = match (code, points) {
        ("", _) if is_single => Value::Text(text(points)),
        ("", _) => Value::Texts(points.chunks_exact(size).map(text).collect()),
        ("u1", _) if is_text => Value::Text(text(points)),
        _ if !is_single => Value::Points(code, points.to_vec()),
        ("u1", &[byte]) => Value::Whole(byte.into()),
        ("i2", &[a, b]) => Value::Whole(i16::from_ne_bytes([a, b]).into()),
        ("u2", &[a, b]) => Value::Whole(u16::from_ne_bytes([a, b]).into()),
        ("i4", &[a, b, c, d]) => Value::Whole(i32::from_ne_bytes([a, b, c, d]).into()),
        ("f4", &[a, b, c, d]) => Value::Float(f32::from_ne_bytes([a, b, c, d]).into()),
        ("f8", _) => Value::Float(f64::from_ne_bytes(points.try_into().ok()?)),
        _ => return None,
    };
    Some((value, alarm))
}

/// The properties in a structure of the type `kind`, DBR_GR_ENUM or DBR_GR_DOUBLE.
///
/// # Safety
/// `value` is a structure of this type.
pub unsafe fn properties(kind: c_long, value: *const c_void) -> Property {
    // SAFETY, of all: in db_access.h these are at these offsets, after status and severity
    let short = unsafe { ptr::read_unaligned(value.byte_add(4).cast::<i16>()) };
    let bytes = |offset, size| unsafe { slice::from_raw_parts(value.byte_add(offset).cast::<u8>(), size) };
    if kind == DBR_GR_ENUM {
        let count = usize::try_from(short).unwrap_or(0).min(16);
        return Property::States(bytes(6, count * NAME).chunks_exact(NAME).map(text).collect());
    }
    let unit = text(bytes(8, UNIT));
    // after the limits of displays: upper alarm, upper warning, lower warning, lower alarm
    let limit = |index: usize| unsafe { ptr::read_unaligned(value.byte_add(32 + 8 * index).cast::<f64>()) };
    Property::Numbers {
        decimals: short,
        unit: (unit.len() < UNIT - 1).then_some(unit),
        limits: [limit(2), limit(1), limit(3), limit(0)],
    }
}

/// The text of a field that was read as DBR_STRING.
///
/// # Safety
/// `value` is of this type.
pub unsafe fn field(value: *const c_void) -> String {
    text(unsafe { slice::from_raw_parts(value.cast::<u8>(), TEXT) })
}

/// A text up to its NUL.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The reading that a column takes from an update; None if its value does not fit exactly.
pub fn fit(value: &Value, alarm: &Alarm, part: Part) -> Option<Reading> {
    match part {
        Part::Severity => return Some(Reading::Whole(alarm.severity.into())),
        Part::Status => return Some(Reading::Whole(alarm.status.into())),
        Part::Time => {
            let microseconds = alarm.seconds * 1_000_000 + i64::from(alarm.nanoseconds / 1000);
            return Some(Reading::Float(microseconds as f64 / 1e6));
        }
        _ => {}
    }
    let number = match value {
        Value::Missing => return Some(Reading::Missing),
        Value::Whole(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Text(_) | Value::Texts(_) | Value::Points(..) => return None,
    };
    match part {
        Part::Real => {
            (!number.is_finite() || number.abs() <= f64::from(f32::MAX)).then_some(Reading::Float(number))
        }
        Part::Bit => (number == 0.0 || number == 1.0).then_some(Reading::Bit(number == 1.0)),
        Part::Whole(bits) => {
            let half = 2f64.powi(bits.cast_signed() - 1);
            let fits = number.fract() == 0.0 && -half <= number && number < half;
            fits.then_some(Reading::Whole(number as i64))
        }
        _ => Some(Reading::Float(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_exactly_or_not_at_all() {
        let alarm = Alarm { severity: 0, status: 0, seconds: 0, nanoseconds: 0 };
        let fits = |value, part| fit(&value, &alarm, part).is_some();
        assert!(fits(Value::Float(1e300), Part::Double) && !fits(Value::Float(1e300), Part::Real));
        assert!(fits(Value::Float(f64::INFINITY), Part::Real) && fits(Value::Float(f64::NAN), Part::Real));
        assert!(
            fits(Value::Float(-32768.0), Part::Whole(16)) && !fits(Value::Float(32768.0), Part::Whole(16))
        );
        for number in [0.5, f64::NAN, f64::INFINITY] {
            assert!(!fits(Value::Float(number), Part::Whole(64)), "{number}");
        }
        assert!(fits(Value::Whole(1), Part::Bit) && !fits(Value::Whole(2), Part::Bit));
        assert!(
            !fits(Value::Text(String::new()), Part::Double)
                && !fits(Value::Points("f8", Vec::new()), Part::Double)
        );
    }

    #[test]
    fn structures_are_those_of_db_access() {
        // status, severity, seconds, nanoseconds, and 4 bytes before a double
        let mut bytes = [3_i16.to_ne_bytes(), 2_i16.to_ne_bytes()].concat();
        for part in [10_u32, 20, 0] {
            bytes.extend(part.to_ne_bytes());
        }
        bytes.extend(1.5_f64.to_ne_bytes());
        let read = |bytes: &[u8], is_single| {
            // SAFETY: the bytes have a double
            unsafe { read(DBR_TIME + c_long::from(DOUBLE), 1, bytes.as_ptr().cast(), is_single, false) }
        };
        let alarm = Alarm { severity: 2, status: 3, seconds: EPOCH + 10, nanoseconds: 20 };
        assert_eq!(read(&bytes, true), Some((Value::Float(1.5), alarm)));
        let points = Value::Points("f8", 1.5_f64.to_ne_bytes().to_vec());
        assert_eq!(read(&bytes, false), Some((points, alarm)));
        bytes[..2].copy_from_slice(&17_i16.to_ne_bytes());
        assert_eq!(read(&bytes, true).map(|(value, _)| value), Some(Value::Missing));
    }
}
