//! Lengths of texts in UTF-16 units, as T-SQL counts them ("nchar and nvarchar": n is in byte-pairs). Schema tsql
//! counts in the same way (gateway/sql/texts/units.sql).

/// The error for a text that would be cut inside a character of two units, which has no half here.
pub const HALF: &str =
    "A character beyond U+FFFF would be cut in two: it is a surrogate pair, and ringlog has no half of one.";

pub fn units(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

/// Whether a text has at most `most` units.
pub fn fits(text: &str, most: usize) -> bool {
    text.len() <= most || units(text) <= most
}

/// The end of the first `most` units of a text, in bytes; None if it is inside a character.
pub fn end(text: &str, most: usize) -> Option<usize> {
    if text.len() <= most {
        return Some(text.len());
    }
    let mut units = 0;
    for (at, character) in text.char_indices() {
        if units >= most {
            return (units == most).then_some(at);
        }
        units += character.len_utf16();
    }
    (units <= most).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_beyond_the_bmp_is_two() {
        assert_eq!((units("abc"), units("äΩ電"), units("a😀"), units("")), (3, 3, 3, 0));
        assert!(fits("😀😀", 4) && !fits("😀😀", 3) && fits("äö", 2));
    }

    #[test]
    fn a_text_is_cut_between_characters_only() {
        assert_eq!(
            [0, 1, 2, 3, 4, 9].map(|most| end("a😀é", most)),
            [Some(0), Some(1), None, Some(5), Some(7), Some(7)]
        );
        assert_eq!((end("😀", 1), end("😀", 2), end("", 0)), (None, Some(4), Some(0)));
    }

    #[test]
    fn schema_tsql_refuses_in_the_same_words() {
        assert!(include_str!("../../sql/texts/units.sql").contains(HALF));
    }
}
