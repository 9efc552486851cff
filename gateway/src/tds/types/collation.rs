//! The character set that a TDS 7.x collation implies (MS-TDS 2.2.5.1.2: 20 bits of LCID, 8 of
//! flags, 4 of version, then the sort id of a SQL collation).
//!
//! Sources of the tables: FreeTDS src/tds/iconv.c collate2charset, mssql-jdbc SQLCollation.java.

use super::super::charset::{self, Charset};
use super::super::dialect::Dialect;

/// SQL_Latin1_General_CP1_CI_AS, SQL Server's default. Most columns here are NVARCHAR, which it does not affect; those
/// declared as char, varchar and text use its code page.
pub(crate) const DEFAULT: [u8; 5] = [0x09, 0x04, 0xD0, 0x00, 0x34];

/// Latin1_General_100_CI_AS_SC_UTF8: single-byte columns for clients that support the flag of UTF-8.
pub(crate) const UTF8: [u8; 5] = [0x09, 0x04, 0xD0, 0x24, 0x00];

const UTF8_FLAG: u8 = 0x04;

/// The character set of single-byte data in this collation; None for locales of which only the ASCII part is known. A
/// collation of zeros is the connection's own.
pub(super) fn charset(collation: [u8; 5], d: &Dialect) -> Option<&'static Charset> {
    let [low, high, _, flags, sort_id] = collation;
    if collation == [0; 5] {
        return Some(d.charset);
    }
    if flags & UTF8_FLAG != 0 {
        return Some(&charset::UTF_8);
    }
    if sort_id != 0 {
        return of_sort_id(sort_id).and_then(Charset::named);
    }
    of_locale(u16::from_le_bytes([low, high])).and_then(Charset::named)
}

fn of_sort_id(sort_id: u8) -> Option<&'static str> {
    Some(match sort_id {
        30..=34 => "cp437",
        40..=44 | 49 | 55..=61 => "cp850",
        50..=54 | 71..=75 | 183..=186 | 210..=217 => "cp1252",
        80..=98 => "cp1250",
        104..=108 => "cp1251",
        112..=114 | 120..=122 | 124 => "cp1253",
        128..=130 => "cp1254",
        136..=138 => "cp1255",
        144..=146 => "cp1256",
        152..=160 => "cp1257",
        _ => return None,
    })
}

fn of_locale(locale: u16) -> Option<&'static str> {
    // the language is the low ten bits, the script or country the rest
    Some(match (locale & 0x3FF, locale) {
        (_, 0x0404 | 0x0C04 | 0x1404) => "cp950",
        (0x04, _) => "cp936",
        (0x11, _) => "cp932",
        (0x12, _) => "cp949",
        // Serbian and Bosnian, Azeri and Uzbek: Latin or Cyrillic
        (_, 0x0C1A | 0x1C1A | 0x201A | 0x281A | 0x301A | 0x082C | 0x0843) => "cp1251",
        (0x1A, _) => "cp1250",
        (0x2C | 0x43, _) => "cp1254",
        (0x05 | 0x0E | 0x15 | 0x18 | 0x1B | 0x1C | 0x24 | 0x42, _) => "cp1250",
        (0x02 | 0x19 | 0x22 | 0x23 | 0x28 | 0x2F | 0x3F | 0x40 | 0x44 | 0x50 | 0x6D | 0x85, _) => "cp1251",
        (0x08, _) => "cp1253",
        (0x1F, _) => "cp1254",
        (0x0D, _) => "cp1255",
        (0x01 | 0x20 | 0x29 | 0x80 | 0x8C, _) => "cp1256",
        (0x25..=0x27, _) => "cp1257",
        (0x2A, _) => "cp1258",
        (0x1E, _) => "cp874",
        (0x03 | 0x06 | 0x07 | 0x09..=0x0C | 0x0F | 0x10 | 0x13 | 0x14 | 0x16 | 0x17 | 0x1D | 0x21, _)
        | (0x2D | 0x2E | 0x32 | 0x34..=0x38 | 0x3B..=0x3E | 0x41 | 0x52 | 0x56 | 0x5D | 0x5F | 0x62, _)
        | (0x64 | 0x68 | 0x6A..=0x6C | 0x6E..=0x70 | 0x7A | 0x7C | 0x7E | 0x82..=0x84 | 0x86..=0x88, _) => {
            "cp1252"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tds::dialect::Version;

    #[test]
    fn collations_name_their_code_page() {
        let d = Dialect { charset: Charset::named("koi8").unwrap(), ..Dialect::new(Version::Tds74) };
        for (collation, expected) in [
            ([0; 5], Some("koi8")),
            (DEFAULT, Some("cp1252")),
            // Cyrillic_General_CI_AS
            ([0x19, 0x04, 0xD0, 0x00, 0x00], Some("cp1251")),
            // Japanese_CI_AS, LCID 0x10411
            ([0x11, 0x04, 0xD1, 0x00, 0x00], Some("sjis")),
            // Latin1_General_100_CI_AS_SC_UTF8
            ([0x09, 0x04, 0xD0, 0x24, 0x00], Some("utf8")),
            // SQL_Latin1_General_CP850_CI_AS: sort id 42
            ([0x09, 0x04, 0xD0, 0x00, 42], Some("cp850")),
            // Hindi has no code page
            ([0x39, 0x04, 0xD0, 0x00, 0x00], None),
        ] {
            assert_eq!(charset(collation, &d).map(Charset::name), expected, "{collation:?}");
        }
    }
}
