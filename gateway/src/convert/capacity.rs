//! The declared length or digits of a column. PostgreSQL checks them too, but its error does not name the column, it
//! counts characters where T-SQL counts UTF-16 units, and its rounding of times differs from T-SQL's.

use super::{ConvertError, ErrorKind, PgType};
use tsql::units;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// varchar(n), char(n), in UTF-16 units
    Text { most: u32, of: PgType },
    /// numeric(precision, scale)
    Digits { precision: i32, scale: i32 },
    /// timestamp(n), time(n): microseconds of the last digit
    Steps { step: i64, of: PgType },
}

/// PostgreSQL's VARHDRSZ, which is added to these typmods.
const HEADER: i32 = 4;

impl Capacity {
    /// From the type and typmod of a column (src/include/utils/numeric.h, varchar.c); None: no limit.
    pub fn of(pg_type: PgType, typmod: i32) -> Option<Capacity> {
        if let PgType::Timestamp | PgType::TimestampTz | PgType::Time = pg_type {
            // PostgreSQL has no more than six digits
            let digits = u32::try_from(typmod).ok().filter(|digits| *digits < 6)?;
            return Some(Capacity::Steps { step: 10_i64.pow(6 - digits), of: pg_type });
        }
        let typmod = typmod.checked_sub(HEADER).filter(|typmod| *typmod >= 0)?;
        match pg_type {
            PgType::Varchar | PgType::Bpchar => {
                Some(Capacity::Text { most: typmod.unsigned_abs(), of: pg_type })
            }
            // the scale has 11 bits and a sign
            PgType::Numeric => Some(Capacity::Digits {
                precision: typmod >> 16 & 0xFFFF,
                scale: ((typmod & 0x7FF) ^ 1024) - 1024,
            }),
            _ => None,
        }
    }

    /// Checks that a value in PostgreSQL's format fits. Trailing blanks of a text may be cut, and digits beyond the
    /// scale rounded, as in PostgreSQL and in SQL Server. Times are rounded here: PostgreSQL rounds a half before 2000
    /// down, and the end of a day to 24:00.
    pub fn fit(self, value: &mut [u8]) -> Result<(), ConvertError> {
        match self {
            Capacity::Steps { step, of } => {
                if let Ok(bytes) = <&mut [u8; 8]>::try_from(value) {
                    *bytes = rounded(i64::from_be_bytes(*bytes), step, of).to_be_bytes();
                }
                Ok(())
            }
            Capacity::Text { most, of } => {
                let (most, of) = (most as usize, of.name());
                if value.len() <= most {
                    return Ok(());
                }
                let text = String::from_utf8_lossy(value);
                if units::fits(text.trim_end_matches(' '), most) {
                    return Ok(());
                }
                let text = format!("value too long for type {of}({most})");
                Err(ConvertError::new(ErrorKind::Truncation, text))
            }
            Capacity::Digits { precision, scale } => {
                if integer_digits(value) <= precision - scale {
                    return Ok(());
                }
                let text = format!("value out of range for numeric({precision},{scale})");
                Err(ConvertError::new(ErrorKind::Overflow, text))
            }
        }
    }
}

/// Rounds half up to the nearest step; the last times of a day stay within it.
fn rounded(micros: i64, step: i64, of: PgType) -> i64 {
    const DAY: i64 = 86_400_000_000;
    let nearest = match micros.checked_add(step / 2) {
        Some(sum) => sum.div_euclid(step) * step,
        // PostgreSQL's infinity
        None => return micros,
    };
    if of == PgType::Time && nearest >= DAY {
        DAY - step
    } else {
        nearest
    }
}

/// The number of digits before the decimal point of a numeric in binary form: number of groups of four digits, power of
/// 10,000 of the first, sign, scale, groups.
fn integer_digits(value: &[u8]) -> i32 {
    let word = |index: usize| {
        let bytes = value.get(2 * index..2 * index + 2).and_then(|bytes| bytes.try_into().ok());
        i32::from(bytes.map_or(0, i16::from_be_bytes))
    };
    let (groups, weight, first) = (word(0), word(1), word(4));
    if groups == 0 || weight < 0 {
        return 0;
    }
    4 * weight + first.max(1).ilog10() as i32 + 1
}

#[cfg(test)]
mod tests {
    use super::super::{to_pg, Value, Zone};
    use super::*;
    use bytes::BytesMut;

    fn checked(value: Value, pg_type: PgType, typmod: i32) -> Result<(), ErrorKind> {
        let mut out = BytesMut::new();
        to_pg(&value, pg_type, &Zone::UTC, &mut out).unwrap();
        Capacity::of(pg_type, typmod).unwrap().fit(&mut out).map_err(|error| error.kind)
    }

    #[test]
    fn a_half_goes_up_before_2000_too() {
        let to_tenths = |micros| rounded(micros, 100_000, PgType::Timestamp);
        assert_eq!([-50_000, -50_001, -150_000, 50_000].map(to_tenths), [0, -100_000, -100_000, 100_000]);
        let to_seconds = |micros| rounded(micros, 1_000_000, PgType::Time);
        assert_eq!(to_seconds(86_399_900_000), 86_399_000_000);
        assert_eq!([Capacity::of(PgType::Time, 6), Capacity::of(PgType::Timestamp, -1)], [None, None]);
    }

    #[test]
    fn a_text_is_measured_in_units_and_loses_blanks_only() {
        let text = |text: &'static str| checked(Value::Text(text.into()), PgType::Varchar, HEADER + 3);
        assert_eq!(text("abc"), Ok(()));
        assert_eq!(text("äöü"), Ok(()));
        assert_eq!(text("abc  "), Ok(()));
        assert_eq!(text("a😀"), Ok(()));
        assert_eq!(text("😀😀"), Err(ErrorKind::Truncation));
        assert_eq!(text("abcd"), Err(ErrorKind::Truncation));
        assert_eq!(text("äöüß"), Err(ErrorKind::Truncation));
        assert_eq!(checked(Value::Int(1234), PgType::Varchar, HEADER + 3), Err(ErrorKind::Truncation));
    }

    #[test]
    fn a_number_has_its_digits_before_the_point() {
        // numeric(6,2)
        let number = |number: &'static str| {
            checked(Value::Text(number.into()), PgType::Numeric, HEADER + (6 << 16 | 2))
        };
        for fits in ["0", "9999", "9999.99", "-9999.994", "0.001", "1e3"] {
            assert_eq!(number(fits), Ok(()), "{fits}");
        }
        for too_large in ["10000", "-12345.6", "1e9"] {
            assert_eq!(number(too_large), Err(ErrorKind::Overflow), "{too_large}");
        }
    }

    #[test]
    fn a_type_without_a_bound_has_none() {
        assert_eq!(Capacity::of(PgType::Varchar, -1), None);
        assert_eq!(Capacity::of(PgType::Float8, 8), None);
    }
}
