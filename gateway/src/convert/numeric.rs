//! PostgreSQL's binary numeric (numeric_send and numeric_recv in numeric.c): number of base-10000 digits, weight of the
//! first, sign, number of decimals, then the digits, all of 16 bits.

use super::{ConvertError, ErrorKind};
use crate::tds::types::numerals::Numeral;
use crate::tds::types::Decimal;
use bytes::{BufMut, BytesMut};

const NEGATIVE: u16 = 0x4000;
/// The limits of numeric: digits before the decimal point, digits after it.
const LONGEST_INTEGER: i64 = 131_072;
const LONGEST_FRACTION: i64 = 16_383;

/// Writes a number with all its digits; `from` names the value in errors.
pub(super) fn put(numeral: Numeral, from: &str, out: &mut BytesMut) -> Result<(), ConvertError> {
    let overflow = || ConvertError::overflow(from, "numeric");
    let written = numeral.integer.len() + numeral.fraction.len();
    let zeros = numeral.integer.iter().chain(numeral.fraction).take_while(|digit| **digit == b'0').count();
    let digit = |at: i64| -> u16 {
        let at = usize::try_from(at).ok().and_then(|at| at.checked_add(zeros)).unwrap_or(usize::MAX);
        let fraction = || numeral.fraction.get(at.checked_sub(numeral.integer.len())?);
        let digit = numeral.integer.get(at).or_else(fraction);
        digit.map_or(0, |digit| u16::from(digit - b'0'))
    };
    // both counted without the leading zeros
    let digits = to_i64(written - zeros);
    let point = to_i64(numeral.integer.len()) - to_i64(zeros) + i64::from(numeral.exponent);
    let scale = (digits - point).max(0);
    if scale > LONGEST_FRACTION {
        return Err(overflow());
    }
    if digits == 0 {
        put_header(0, 0, 0, scale as u16, out);
        return Ok(());
    }
    if point > LONGEST_INTEGER {
        return Err(overflow());
    }
    let weight = (point + 3).div_euclid(4) - 1;
    let first = point - 4 * (weight + 1);
    let group = |index: i64| (0..4).fold(0, |group, i| group * 10 + digit(first + 4 * index + i));
    let mut groups = (digits - first + 3) / 4;
    while groups > 0 && group(groups - 1) == 0 {
        groups -= 1;
    }
    let (Ok(count), Ok(weight)) = (u16::try_from(groups), i16::try_from(weight)) else {
        return Err(overflow());
    };
    put_header(count, weight, if numeral.negative { NEGATIVE } else { 0 }, scale as u16, out);
    for index in 0..groups {
        out.put_u16(group(index));
    }
    Ok(())
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn put_header(count: u16, weight: i16, sign: u16, scale: u16, out: &mut BytesMut) {
    out.put_u16(count);
    out.put_i16(weight);
    out.put_u16(sign);
    out.put_u16(scale);
}

/// The most groups for 38 digits, with zeros before the first and after the last.
const MOST_GROUPS: usize = 11;

/// A numeric of at most 38 digits with its own number of decimals.
pub(super) fn read(raw: &[u8]) -> Result<Decimal, ConvertError> {
    let malformed = || ConvertError::conversion("a malformed value of PostgreSQL", "decimal");
    let word = |at: usize| {
        let bytes = raw.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u16::from_be_bytes).ok_or_else(malformed)
    };
    let (count, weight, sign, scale) = (usize::from(word(0)?), word(2)? as i16, word(4)?, word(6)?);
    if sign != 0 && sign != NEGATIVE {
        let text = "a numeric NaN or infinity has no equivalent for this client";
        return Err(ConvertError::new(ErrorKind::Overflow, text));
    }
    let too_long = || ConvertError::overflow("numeric", "a decimal of 38 digits: cast it");
    if count > MOST_GROUPS {
        return Err(too_long());
    }
    let mut digits = [b'0'; 4 * MOST_GROUPS];
    for (index, group_digits) in digits.chunks_exact_mut(4).take(count).enumerate() {
        let mut group = word(8 + 2 * index)?;
        for digit in group_digits.iter_mut().rev() {
            *digit += (group % 10) as u8;
            group /= 10;
        }
    }
    let numeral = Numeral {
        negative: sign == NEGATIVE,
        integer: digits.get(..4 * count).unwrap_or_default(),
        fraction: &[],
        exponent: 4 * (i32::from(weight) - count as i32 + 1),
    };
    let decimal = numeral.to_decimal().ok_or_else(too_long)?;
    Ok(decimal.rescaled(scale.min(38) as u8).filter(|rescaled| rescaled.digits() <= 38).unwrap_or(decimal))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(text: &str) -> Vec<u8> {
        let mut out = BytesMut::new();
        put(Numeral::read(text).unwrap(), "text", &mut out).unwrap();
        out.to_vec()
    }

    /// From PostgreSQL 18: select encode(numeric_send('…'), 'hex').
    #[test]
    fn the_bytes_of_numeric_send() {
        for (text, hex) in [
            ("0", "0000000000000000"),
            ("0.00", "0000000000000002"),
            ("1", "00010000000000000001"),
            ("-1.5", "00020000400000010001 1388"),
            ("10000", "00010001000000000001"),
            ("12345678.9", "0003000100000001 04d2 162e 2328"),
            ("0.0001", "0001ffff00000004 0001"),
            ("0.00001", "0001fffe00000005 03e8"),
            ("1e6", "0001000100000000 0064"),
        ] {
            let expected: String = hex.split(' ').collect();
            let hex: String = binary(text).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected, "{text}");
        }
    }

    #[test]
    fn limits() {
        assert!(binary(&"9".repeat(5000)).len() == 8 + 2 * 1250);
        for too_long in ["1e131073", "1e-16384"] {
            let mut out = BytesMut::new();
            let refused = put(Numeral::read(too_long).unwrap(), "text", &mut out).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Overflow);
        }
        let widest = format!("{}.{}", "9".repeat(20), "9".repeat(18));
        assert_eq!(read(&binary(&widest)).unwrap().magnitude, 10u128.pow(38) - 1);
        assert_eq!(read(&binary(&"9".repeat(39))).unwrap_err().kind, ErrorKind::Overflow);
        let nan = [0, 0, 0, 0, 0xC0, 0, 0, 0];
        assert_eq!(read(&nan).unwrap_err().kind, ErrorKind::Overflow);
        assert!(read(&[0, 1, 0, 0]).is_err());
    }
}
