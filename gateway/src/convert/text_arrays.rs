//! Arrays of texts, which clients send as one text, `{ready,"in use"}` or without the braces, by the rules of
//! PostgreSQL's array_in: a quoted element is taken literally, an unquoted one is trimmed, a backslash escapes the next
//! character. Like waveforms, they have one dimension and contain no NULL.

use super::{ConvertError, ErrorKind, Value};
use bytes::{BufMut, BytesMut};
use std::iter::Peekable;
use std::str::Chars;

/// The element's oid for the oid of an array type: text[] and varchar[].
pub fn text_element(array: u32) -> Option<u32> {
    match array {
        1009 => Some(25),
        1015 => Some(1043),
        _ => None,
    }
}

/// Appends PostgreSQL's binary array (array_recv in arrayfuncs.c). On an error nothing is appended.
pub fn put_text_array(v: &Value, element: u32, out: &mut BytesMut) -> Result<(), ConvertError> {
    let before = out.len();
    let result = put(v, element, out);
    if result.is_err() {
        out.truncate(before);
    }
    result
}

fn put(v: &Value, element: u32, out: &mut BytesMut) -> Result<(), ConvertError> {
    let Value::Text(text) = v else {
        return Err(ConvertError::conversion(
            &format!("a value of type {}", v.kind()),
            "character varying[]",
        ));
    };
    let text = text.trim_ascii();
    let bare = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text).trim_ascii();
    // an empty array has no dimension
    out.put_i32(i32::from(!bare.is_empty()));
    out.put_i32(0);
    out.put_u32(element);
    if bare.is_empty() {
        return Ok(());
    }
    let counted = out.len();
    out.put_i32(0);
    out.put_i32(1);
    let mut rest = bare.chars().peekable();
    let mut count = 0i32;
    loop {
        count += 1;
        let value = next(&mut rest).map_err(|why| {
            let text = format!("element {count} of character varying[] {why}");
            ConvertError::new(ErrorKind::Conversion, text)
        })?;
        out.put_u32(value.len() as u32);
        out.put_slice(value.as_bytes());
        match rest.next() {
            None => break,
            Some(_comma) => {}
        }
    }
    if let Some(slot) = out.get_mut(counted..counted + 4) {
        slot.copy_from_slice(&count.to_be_bytes());
    }
    Ok(())
}

/// The next element, up to its comma or the end.
fn next(rest: &mut Peekable<Chars>) -> Result<String, &'static str> {
    let mut value = String::new();
    while rest.next_if(char::is_ascii_whitespace).is_some() {}
    let is_quoted = rest.next_if_eq(&'"').is_some();
    // possibly trailing blanks of an unquoted element
    let mut kept = 0;
    loop {
        match rest.peek().copied() {
            None if is_quoted => return Err("has no closing quote"),
            None => break,
            Some('"') if is_quoted => {
                rest.next();
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                return match rest.peek() {
                    None | Some(',') => Ok(value),
                    Some(_) => Err("continues after its closing quote"),
                };
            }
            Some(',') if !is_quoted => break,
            Some('{' | '}' | '"') if !is_quoted => return Err("has a brace or a quote in it: quote it"),
            Some('\0') => return Err("holds a NUL character"),
            Some('\\') => {
                rest.next();
                value.push(rest.next().ok_or("ends with a backslash")?);
                kept = value.len();
            }
            Some(character) => {
                rest.next();
                value.push(character);
                if is_quoted || !character.is_ascii_whitespace() {
                    kept = value.len();
                }
            }
        }
    }
    value.truncate(kept);
    if value.is_empty() {
        return Err("is missing: an empty text is \"\"");
    }
    if value.eq_ignore_ascii_case("null") {
        return Err("is NULL, which these arrays cannot hold; the text is \"NULL\"");
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> Result<Vec<u8>, String> {
        let mut out = BytesMut::new();
        let done = put_text_array(&Value::Text(text.into()), 1043, &mut out);
        assert!(done.is_ok() || out.is_empty());
        done.map(|()| out.to_vec()).map_err(|error| error.to_string())
    }

    fn elements(text: &str) -> Vec<String> {
        let out = written(text).unwrap();
        let mut rest = out.get(20..).unwrap_or_default();
        let mut found = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (value, after) = after.split_at(u32::from_be_bytes(*length) as usize);
            found.push(String::from_utf8(value.to_vec()).unwrap());
            rest = after;
        }
        found
    }

    #[test]
    fn as_postgresql_has_them() {
        // select array_send('{ab,"c, d"}'::varchar[])
        let sent = b"\0\0\0\x01\0\0\0\0\0\0\x04\x13\0\0\0\x02\0\0\0\x01\0\0\0\x02ab\0\0\0\x04c, d";
        assert_eq!(written("{ab,\"c, d\"}").unwrap(), sent);
        assert_eq!(written(" { } ").unwrap(), b"\0\0\0\0\0\0\0\0\0\0\x04\x13");
    }

    #[test]
    fn by_the_rules_of_array_in() {
        assert_eq!(elements("ready, in use ,busy"), ["ready", "in use", "busy"]);
        assert_eq!(elements(r#"{"a \"b\" \\", c\,d,"",  "NULL" }"#), [r#"a "b" \"#, "c,d", "", "NULL"]);
    }

    #[test]
    fn refused_by_name() {
        for (text, why) in [
            ("{a,null}", "element 2 of character varying[] is NULL"),
            ("a,,b", "element 2 of character varying[] is missing"),
            ("{{a},{b}}", "has a brace"),
            ("\"a", "no closing quote"),
            ("\"a\"b", "continues after"),
            ("a,b\\", "ends with a backslash"),
            ("a\0", "NUL"),
        ] {
            assert!(written(text).unwrap_err().contains(why), "{text}");
        }
        assert!(put_text_array(&Value::Int(1), 25, &mut BytesMut::new()).is_err());
    }

    proptest! {
        #[test]
        fn quoted_texts_go_there_and_back(texts in proptest::collection::vec("[^\0]{0,8}", 1..5)) {
            let quoted: Vec<_> =
                texts.iter().map(|text| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))).collect();
            prop_assert_eq!(elements(&format!("{{{}}}", quoted.join(","))), texts);
        }

        #[test]
        fn whatever_comes_is_read_or_refused(text: String) {
            let _ = written(&text);
        }
    }
}
