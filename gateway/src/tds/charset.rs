//! Character sets, by the names that Sybase's clients send at login, and by the code pages of 7.x collations. Both
//! directions are exact: bytes and characters without an equivalent are reported to the caller.
//!
//! Most tables are encoding_rs's, which lacks the code pages of DOS and HP's Roman-8, and has Windows code pages in
//! place of ISO 8859. Roman-8: RFC 1345, hp-roman8.

use encoding_rs::Encoding;
use oem_cp::code_table as oem;
use std::borrow::Cow;
use std::fmt;

/// A character set. ASCII is part of each.
pub struct Charset {
    /// Sybase's name first, then synonyms.
    names: &'static [&'static str],
    map: Map,
}

enum Map {
    Web(&'static Encoding),
    /// Like the Windows code page, except that the bytes 0x80 to 0x9F are control characters.
    Iso(&'static Encoding),
    /// Both bytes of a two-byte character are in 0xA1 to 0xFE; the web's map has more.
    Euc(&'static Encoding),
    /// The upper half of a page.
    Page(&'static [char; 128]),
    PageWithGaps(&'static [Option<char>; 128]),
    /// The upper half from 0xA1 on; lower values are control characters.
    Roman(&'static str),
    Ascii,
}

const ROMAN8: &str =
    "ÀÂÈÊËÎÏ´ˋˆ¨˜ÙÛ₤¯Ýý°ÇçÑñ¡¿¤£¥§ƒ¢âêôûáéóúàèòùäëöüÅîØÆåíøæÄìÖÜÉïßÔÁÃãÐðÍÌÓÒÕõŠšÚŸÿÞþ·µ¶¾—¼½ªº«■»±";
/// With the euro instead of the currency sign.
const ROMAN9: &str =
    "ÀÂÈÊËÎÏ´ˋˆ¨˜ÙÛ₤¯Ýý°ÇçÑñ¡¿€£¥§ƒ¢âêôûáéóúàèòùäëöüÅîØÆåíøæÄìÖÜÉïßÔÁÃãÐðÍÌÓÒÕõŠšÚŸÿÞþ·µ¶¾—¼½ªº«■»±";

pub static UTF_8: Charset = Charset { names: &["utf8", "utf-8"], map: Map::Web(&encoding_rs::UTF_8_INIT) };
pub static CP1252: Charset =
    Charset { names: &["cp1252", "windows-1252"], map: Map::Web(&encoding_rs::WINDOWS_1252_INIT) };
/// Code pages of which only the common half is supported.
pub static ASCII: Charset = Charset { names: &["ascii_7", "us-ascii", "ascii", "roman7"], map: Map::Ascii };

macro_rules! charsets {
    ($($names:expr, $map:expr;)*) => {
        static CHARSETS: &[&Charset] = &[&UTF_8, &CP1252, &ASCII, $(&Charset { names: &$names, map: $map }),*];
    };
}

charsets! {
    ["iso_1", "iso-8859-1", "iso8859-1", "latin1"], Map::Iso(&encoding_rs::WINDOWS_1252_INIT);
    ["iso15", "iso-8859-15", "iso885915"], Map::Web(&encoding_rs::ISO_8859_15_INIT);
    ["iso88592", "iso-8859-2"], Map::Web(&encoding_rs::ISO_8859_2_INIT);
    ["iso88595", "iso-8859-5"], Map::Web(&encoding_rs::ISO_8859_5_INIT);
    ["iso88596", "iso-8859-6"], Map::Web(&encoding_rs::ISO_8859_6_INIT);
    ["iso88597", "iso-8859-7"], Map::Web(&encoding_rs::ISO_8859_7_INIT);
    ["iso88598", "iso-8859-8"], Map::Web(&encoding_rs::ISO_8859_8_INIT);
    ["iso88599", "iso-8859-9"], Map::Iso(&encoding_rs::WINDOWS_1254_INIT);
    ["iso885913", "iso-8859-13"], Map::Web(&encoding_rs::ISO_8859_13_INIT);
    ["cp1250", "windows-1250"], Map::Web(&encoding_rs::WINDOWS_1250_INIT);
    ["cp1251", "windows-1251"], Map::Web(&encoding_rs::WINDOWS_1251_INIT);
    ["cp1253", "windows-1253"], Map::Web(&encoding_rs::WINDOWS_1253_INIT);
    ["cp1254", "windows-1254"], Map::Web(&encoding_rs::WINDOWS_1254_INIT);
    ["cp1255", "windows-1255"], Map::Web(&encoding_rs::WINDOWS_1255_INIT);
    ["cp1256", "windows-1256"], Map::Web(&encoding_rs::WINDOWS_1256_INIT);
    ["cp1257", "windows-1257"], Map::Web(&encoding_rs::WINDOWS_1257_INIT);
    ["cp1258", "windows-1258"], Map::Web(&encoding_rs::WINDOWS_1258_INIT);
    ["cp437", "ibm437"], Map::Page(&oem::DECODING_TABLE_CP437);
    ["cp850", "ibm850"], Map::Page(&oem::DECODING_TABLE_CP850);
    ["cp852", "ibm852"], Map::Page(&oem::DECODING_TABLE_CP852);
    ["cp855", "ibm855"], Map::Page(&oem::DECODING_TABLE_CP855);
    ["cp857", "ibm857"], Map::PageWithGaps(&oem::DECODING_TABLE_CP857);
    ["cp858", "ibm858"], Map::Page(&oem::DECODING_TABLE_CP858);
    ["cp860", "ibm860"], Map::Page(&oem::DECODING_TABLE_CP860);
    ["cp864", "ibm864"], Map::PageWithGaps(&oem::DECODING_TABLE_CP864);
    ["cp866", "ibm866"], Map::Web(&encoding_rs::IBM866_INIT);
    ["cp869", "ibm869"], Map::Page(&oem::DECODING_TABLE_CP869);
    ["cp874", "windows-874"], Map::Web(&encoding_rs::WINDOWS_874_INIT);
    ["tis620", "tis-620"], Map::Web(&encoding_rs::WINDOWS_874_INIT);
    ["koi8", "koi8-r"], Map::Web(&encoding_rs::KOI8_R_INIT);
    ["mac", "macintosh"], Map::Web(&encoding_rs::MACINTOSH_INIT);
    ["mac_cyr", "x-mac-cyrillic"], Map::Web(&encoding_rs::X_MAC_CYRILLIC_INIT);
    ["roman8", "hp-roman8"], Map::Roman(ROMAN8);
    ["roman9"], Map::Roman(ROMAN9);
    ["sjis", "shift_jis", "cp932", "windows-31j"], Map::Web(&encoding_rs::SHIFT_JIS_INIT);
    ["eucjis", "euc-jp", "deckanji"], Map::Web(&encoding_rs::EUC_JP_INIT);
    ["eucksc", "euc-kr"], Map::Euc(&encoding_rs::EUC_KR_INIT);
    ["cp949", "windows-949"], Map::Web(&encoding_rs::EUC_KR_INIT);
    ["eucgb", "gb2312"], Map::Euc(&encoding_rs::GBK_INIT);
    ["cp936", "gbk"], Map::Web(&encoding_rs::GBK_INIT);
    ["gb18030"], Map::Web(&encoding_rs::GB18030_INIT);
    ["big5", "cp950"], Map::Web(&encoding_rs::BIG5_INIT);
}

/// Bytes that are control characters in ISO 8859 and other characters in Windows code pages.
const CONTROLS: std::ops::RangeInclusive<u8> = 0x80..=0x9F;

impl Charset {
    /// The character set that a login names.
    pub fn named(name: &str) -> Option<&'static Charset> {
        CHARSETS
            .iter()
            .copied()
            .find(|charset| charset.names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    }

    /// Sybase's name of it, for messages.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or("")
    }

    /// The most bytes of a character, by which columns are sized.
    pub fn max_bytes_per_char(&self) -> u32 {
        let two = [encoding_rs::SHIFT_JIS, encoding_rs::EUC_KR, encoding_rs::BIG5, encoding_rs::GBK];
        match self.map {
            Map::Euc(_) => 2,
            Map::Web(encoding) if encoding.is_single_byte() => 1,
            Map::Web(encoding) if two.contains(&encoding) => 2,
            Map::Web(encoding) if encoding == encoding_rs::EUC_JP => 3,
            Map::Web(_) => 4,
            _ => 1,
        }
    }

    /// None if some bytes are invalid.
    pub fn decode<'a>(&self, raw: &'a [u8]) -> Option<Cow<'a, str>> {
        if let Map::Web(encoding) | Map::Euc(encoding) = self.map {
            return encoding.decode_without_bom_handling_and_without_replacement(raw);
        }
        if raw.is_ascii() {
            return std::str::from_utf8(raw).ok().map(Cow::Borrowed);
        }
        raw.iter().map(|byte| self.character(*byte)).collect::<Option<String>>().map(Cow::Owned)
    }

    /// Like [`Charset::decode`], for messages: invalid bytes are replaced.
    pub fn decode_lossily(&self, raw: &[u8]) -> String {
        match self.decode(raw) {
            Some(text) => text.into_owned(),
            None => {
                raw.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\u{FFFD}' }).collect()
            }
        }
    }

    /// The bytes of `text`, or the first character without an encoding.
    pub fn encode<'a>(&self, text: &'a str) -> Result<Cow<'a, [u8]>, char> {
        if text.is_ascii() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        if let Map::Web(encoding) = self.map {
            let (bytes, _, unmappable) = encoding.encode(text);
            if !unmappable && (self.is_one_to_one() || encoding.decode(&bytes).0 == text) {
                return Ok(bytes);
            }
        }
        let mut bytes = Vec::with_capacity(text.len());
        for character in text.chars() {
            self.put(character, &mut bytes).ok_or(character)?;
        }
        Ok(Cow::Owned(bytes))
    }

    /// Whether no two characters have the same bytes. The web's Japanese maps encode the yen as a backslash.
    fn is_one_to_one(&self) -> bool {
        match self.map {
            Map::Web(encoding) => encoding.is_single_byte() || encoding == encoding_rs::UTF_8,
            _ => true,
        }
    }

    /// A byte of a map of single bytes.
    fn character(&self, byte: u8) -> Option<char> {
        let upper = byte.checked_sub(0x80);
        match (upper.map(usize::from), &self.map) {
            (None, _) => Some(char::from(byte)),
            (_, Map::Iso(_) | Map::Roman(_)) if CONTROLS.contains(&byte) => Some(char::from(byte)),
            (_, Map::Iso(encoding)) => {
                encoding.decode_without_bom_handling_and_without_replacement(&[byte])?.chars().next()
            }
            (Some(0x20), Map::Roman(_)) => Some('\u{A0}'),
            (Some(at), Map::Roman(upper)) => upper.chars().nth(at.checked_sub(0x21)?),
            (Some(at), Map::Page(upper)) => upper.get(at).copied(),
            (Some(at), Map::PageWithGaps(upper)) => upper.get(at).copied().flatten(),
            _ => None,
        }
    }

    fn put(&self, character: char, out: &mut Vec<u8>) -> Option<()> {
        if let Ok(ascii @ ..=0x7F) = u8::try_from(character) {
            out.push(ascii);
            return Some(());
        }
        if let Map::Web(encoding) | Map::Iso(encoding) | Map::Euc(encoding) = self.map {
            let is_control = u8::try_from(character).is_ok_and(|byte| CONTROLS.contains(&byte));
            if let (Map::Iso(_), true) = (&self.map, is_control) {
                out.push(u8::try_from(character).ok()?);
                return Some(());
            }
            let mut buffer = [0; 4];
            let (bytes, _, unmappable) = encoding.encode(character.encode_utf8(&mut buffer));
            let is_known = !unmappable
                && match self.map {
                    Map::Iso(_) => !bytes.iter().any(|byte| CONTROLS.contains(byte)),
                    Map::Euc(_) => bytes.iter().all(|byte| *byte >= 0xA1),
                    _ => self.is_one_to_one() || encoding.decode(&bytes).0.starts_with(character),
                };
            return is_known.then(|| out.extend_from_slice(&bytes));
        }
        out.push((0x80..=0xFF).find(|byte| self.character(*byte) == Some(character))?);
        Some(())
    }
}

impl fmt::Debug for Charset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Charset {
    fn eq(&self, other: &Charset) -> bool {
        self.names == other.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(name: &str) -> &'static Charset {
        Charset::named(name).unwrap()
    }

    #[test]
    fn characters_by_their_bytes() {
        // Unicode's own tables (MAPPINGS/VENDORS/MICSFT/PC, ISO8859, APPLE); RFC 1345 for roman8
        for (name, text, bytes) in [
            ("iso_1", "Größe", &b"Gr\xf6\xdfe"[..]),
            ("iso15", "€", b"\xa4"),
            ("cp1252", "€", b"\x80"),
            ("cp437", "Größe ░π", b"Gr\x94\xe1e \xb0\xe3"),
            ("cp850", "Größe ß×", b"Gr\x94\xe1e \xe1\x9e"),
            ("CP858", "€", b"\xd5"),
            ("roman8", "Größe", b"Gr\xce\xdee"),
            ("roman9", "€", b"\xba"),
            ("mac", "Größe", b"Gr\x9a\xa7e"),
            ("sjis", "加速器ｱ", b"\x89\xc1\x91\xac\x8a\xed\xb1"),
            ("eucjis", "加速器", b"\xb2\xc3\xc2\xae\xb4\xef"),
            ("deckanji", "加速器", b"\xb2\xc3\xc2\xae\xb4\xef"),
            ("eucksc", "가속기", b"\xb0\xa1\xbc\xd3\xb1\xe2"),
            ("utf8", "加速器", "加速器".as_bytes()),
            ("koi8", "Да", b"\xe4\xc1"),
            ("iso88599", "ğ", b"\xf0"),
        ] {
            assert_eq!(named(name).encode(text).as_deref(), Ok(bytes), "{name}");
            assert_eq!(named(name).decode(bytes).as_deref(), Some(text), "{name}");
        }
    }

    #[test]
    fn what_has_no_equivalent_is_named() {
        for (name, text, character) in [
            ("iso_1", "1 €", '€'),
            ("iso_1", "Ω", 'Ω'),
            ("iso88599", "€", '€'),
            ("cp850", "aπ", 'π'),
            ("cp437", "€", '€'),
            ("roman8", "€", '€'),
            ("ascii_7", "é", 'é'),
            ("sjis", "é", 'é'),
            ("sjis", "加¥", '¥'),
            ("eucjis", "‾", '‾'),
            ("eucksc", "똠", '똠'),
            ("mac", "加", '加'),
        ] {
            assert_eq!(named(name).encode(text), Err(character), "{name}");
        }
        assert_eq!(named("cp949").encode("똠").map(|bytes| bytes.len()), Ok(2));
        for (name, bytes) in
            [("utf8", &b"a\xff"[..]), ("ascii_7", b"\x80"), ("cp857", b"\xd5"), ("roman8", b"\xff")]
        {
            assert_eq!(named(name).decode(bytes), None, "{name}");
        }
        assert!(Charset::named("klingon").is_none());
    }

    #[test]
    fn single_bytes_go_both_ways() {
        for charset in CHARSETS.iter().filter(|charset| charset.max_bytes_per_char() == 1) {
            for byte in 0..=255u8 {
                if let Some(text) = charset.decode(&[byte]).map(Cow::into_owned) {
                    assert_eq!(
                        charset.encode(&text).as_deref(),
                        Ok(&[byte][..]),
                        "{} {byte:#x}",
                        charset.name()
                    );
                }
            }
        }
        for byte in 0x80..=0x9F_u8 {
            assert_eq!(named("iso_1").decode(&[byte]), Some(char::from(byte).to_string().into()));
        }
    }

    #[test]
    fn names_are_of_one_charset_each() {
        let names: Vec<_> = CHARSETS.iter().flat_map(|charset| charset.names).collect();
        let mut unique = names.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(names.len(), unique.len());
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(text in "[a-z¡-ÿ−‾가-힣ぁ-ん一-龠Α-я€]{0,8}") {
            for charset in CHARSETS {
                match charset.encode(&text) {
                    Ok(bytes) => {
                        prop_assert_eq!(charset.decode(&bytes), Some(text.as_str().into()), "{}", charset.name());
                        let most = text.chars().count() as u32 * charset.max_bytes_per_char();
                        prop_assert!(bytes.len() as u32 <= most);
                    }
                    Err(character) => prop_assert!(text.contains(character)),
                }
            }
        }
    }
}
